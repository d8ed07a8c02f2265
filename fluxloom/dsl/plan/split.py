"""The knob ``split``: a loop runs component by component.

Source: the split of nested loops over equations in explicit finite volumes, which pays on GPUs for large
meshes and loses on CPUs (compressible solver on many GPUs, 2022, section on nested loops).
"""

from __future__ import annotations

from fluxloom.core.access import Access
from fluxloom.core.errors import PlanError
from fluxloom.dsl.declare.dats import Dat
from fluxloom.dsl.declare.maps import RaggedMap
from fluxloom.dsl.declare.schedule import Schedule
from fluxloom.dsl.plan.bind import Bound
from fluxloom.dsl.plan.races import RaceInfo

__all__ = ["SPLITTABLE", "components", "require_split", "why_whole"]

SPLITTABLE = ("direct", "atomic", "gather", "element_colour", "block_colour")
"""Strategies with one kernel a loop, so that a component can have it for itself."""


def why_whole(bound: Bound, strategy: str, *, stage: bool = False) -> str:
    """Return why a loop has to handle all components at once; empty when each can be handled by itself.

    The components must not meet: what is written has the same number of them everywhere, is not read by
    the loop, and no global is reduced.
    """
    if strategy not in SPLITTABLE or stage:
        return f"strategy {strategy!r}{' in stages' if stage else ''} needs all components of an element together"
    written, read = [], []
    for arg in bound.arguments:
        if arg.access is Access.READ:
            read.append(arg.data)
            continue
        if not isinstance(arg.data, Dat):
            return f"{arg.name!r} is a global: its value is made of all components"
        if arg.access is Access.RW:
            return f"{arg.name!r} is read and written: a later component would meet an earlier one's result"
        if isinstance(arg.map, RaggedMap):
            return f"{arg.name!r} goes through a ragged map"
        written.append(arg.data)
    if any(w is r for w in written for r in read):
        return "it reads what it writes"
    sizes = {data.dim for data in written}
    if len(sizes) != 1:
        return f"what it writes has {' and '.join(str(s) for s in sorted(sizes)) or 'no'} components"
    return "" if sizes != {1} else "what it writes has one component"


def components(bound: Bound) -> int:
    """Return the number of components of what a loop writes."""
    return max((a.data.dim for a in bound.arguments if a.access is not Access.READ), default=1)


def require_split(bound: Bound, races: RaceInfo, own: Schedule) -> None:
    """Raise `PlanError` when a loop itself was asked to run component by component and cannot."""
    if own.split and bound.over.context.device.items:
        strategy = own.strategy or ("gather" if races.racing else "direct")
        if reason := why_whole(bound, strategy, stage=bool(own.stage)):
            raise PlanError(f"{bound.name}: split is not possible: {reason}")
