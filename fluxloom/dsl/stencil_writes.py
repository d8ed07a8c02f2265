"""What must hold of writes through a stencil, and of loops over subsets whose members may change.

Writes through a stencil are allowed where no two elements can meet, which the kernel itself proves.

Leg ``k`` of a stencil on a lattice whose ends are joined leads each element to another one. If a kernel reaches every
component of an argument through one leg only, then each place of the dat (element and component) is read and written
by exactly one element, and the loop has no races: push streaming ``out[k][k] = ...``, and the in-place scheme
that reads ``f[k'][k']`` and writes ``f[k][k]``. The same holds for a table each leg of which leads no two elements to
the same target, though different legs do: cells in a list, whose neighbours are in a table (`parts_ways`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fluxloom.core.access import Access
from fluxloom.core.errors import LoopError
from fluxloom.dsl.dats import Dat
from fluxloom.dsl.maps import BoundArgument, EntriesMap, OffsetMap, RaggedMap, TableMap
from fluxloom.dsl.sets import Grid, Set, Subset
from fluxloom.graph import is_injective
from fluxloom.kernel.analysis import used_components
from fluxloom.kernel.ir import LoweredKernel

__all__ = ["check_changing", "check_stencil_writes", "parts_ways", "spreads"]


def spreads(arg: BoundArgument) -> bool:
    """Whether an argument is written through a stencil, or through a table whose legs meet."""
    if arg.access not in (Access.WRITE, Access.RW):
        return False
    return isinstance(arg.map, OffsetMap) or (isinstance(arg.map, TableMap) and arg.leg < 0 and not arg.map.distinct)


def parts_ways(over: Set, arg: BoundArgument, lowered: LoweredKernel) -> bool:
    """Whether no two elements of a loop meet in a component that they reach through a table.

    Each component is reached through one leg only, and none of these legs leads two elements to the same target.
    """
    through = arg.map
    assert isinstance(through, TableMap)
    legs = _legs_by_component(lowered, arg.name)
    if arg.leg >= 0 or legs is None or any(len(found) > 1 for found in legs.values()):
        return False
    table = through.table[over.indices] if isinstance(over, Subset) else through.table
    columns = {leg for found in legs.values() for leg in found}
    return all(is_injective(np.ascontiguousarray(table[:, leg : leg + 1]), through.target.stored) for leg in columns)


def _legs_by_component(lowered: LoweredKernel, parameter: str) -> dict[tuple[int, ...], list[int]] | None:
    """Return the legs through which a kernel reaches each component, ascending; None: it computes some of them."""
    used = used_components(lowered, parameter)
    if used is None:
        return None
    found: dict[tuple[int, ...], list[int]] = {}
    for leg, component in sorted(used, key=lambda place: (place[1], place[0] or 0)):
        found.setdefault(component, []).append(leg or 0)
    return found


def check_stencil_writes(
    name: str, over: Set, arguments: Sequence[BoundArgument], lowered: LoweredKernel
) -> None:
    """Check that no two elements of a loop meet where it writes through stencils.

    Raises
    ------
    LoopError
        If the lattice has ghosts, or some component is reached through several legs; if the kernel computes
        components of a stencil that turns round at ends.
    """
    for arg in arguments:
        if isinstance(arg.map, OffsetMap) and arg.map.mirror:
            where = f"{name}: argument {arg.name!r}, through stencil {arg.map.name!r} that turns round at ends,"
            _check_mirror(where, arg, _legs_by_component(lowered, arg.name), spreads(arg))
        if isinstance(arg.map, OffsetMap) and spreads(arg):
            where = f"{name}: argument {arg.name!r} is {arg.access.value} through stencil {arg.map.name!r}"
            _check_lattice(where, over)
            _check_legs(where, arg.name, lowered)


def _check_lattice(where: str, over: Set) -> None:
    """Check that every leg leads each element to one of its own; a lattice without ghosts is joined where one leads.

    On several ranks a leg may lead to the copy of another rank's element: what is written there goes back to that rank
    (`fluxloom.dsl.tasks`).
    """
    grid = over.parent
    assert isinstance(grid, Grid)
    if any(grid.beyond):
        raise LoopError(f"{where}, and {grid} has ghosts {grid.beyond}; declare it without, periodic along each axis")


def _check_legs(where: str, parameter: str, lowered: LoweredKernel) -> None:
    legs = _legs_by_component(lowered, parameter)
    if legs is None:
        raise LoopError(
            f"{where}, and the kernel computes a leg or a component of it; use numbers, or loops over range() that can "
            "be written out"
        )
    for component, found in legs.items():
        if len(found) > 1:
            text = f"component {component[0] if len(component) == 1 else component}" if component else "it"
            raise LoopError(
                f"{where}, and the kernel reaches {text} through legs {found[0]} and {found[1]}: elements would "
                "meet; reach each component through one leg, or write another dat"
            )


def _check_mirror(where: str, arg: BoundArgument, legs: dict[tuple[int, ...], list[int]] | None, written: bool) -> None:
    """Check that components are known, and that no two elements meet in one where legs lead back.

    Through the leg of component ``c`` an element at an end reaches its own component ``c'``. Through the leg of ``c'``
    only the element beyond that end would, if that leg leads the other way along the last axis.
    """
    assert isinstance(arg.map, OffsetMap)
    if legs is None:
        raise LoopError(f"{where} has a leg or a component that the kernel computes; use numbers, or range()")
    if not written:
        return
    along = {c: arg.map.offsets[arg.leg if arg.leg >= 0 else found[0]][-1] for (c,), found in legs.items()}
    for c, shift in along.items():
        back = arg.map.mirror[c]
        if shift and along.get(back, -shift) != -shift:
            raise LoopError(
                f"{where} is written, and the legs of components {c} and {back}, which change places at ends, do not "
                "lead opposite ways along the last axis: elements would meet"
            )


def check_changing(name: str, over: Set, arguments: Sequence[BoundArgument]) -> None:
    """Check that no plan of a loop depends on the members of its subset.

    Writes and reductions through tables and slots need plans, or a proof, made for given members; of stencils and of
    an element's own values the proof holds for any.

    Raises
    ------
    LoopError
        If the members may change and an argument needs to know them.
    """
    if over.most is None:
        return
    written = [a.data for a in arguments if a.access.writes and isinstance(a.data, Dat)]
    advice = "declare the subset without capacity"
    for arg in arguments:
        if arg.map is None or isinstance(arg.map, OffsetMap):
            continue
        where = f"{name}: argument {arg.name!r}"
        if isinstance(arg.map, RaggedMap | EntriesMap):
            raise LoopError(f"{where} goes through a ragged map, and the members of {over} may change; {advice}")
        if arg.access is not Access.READ:
            raise LoopError(
                f"{where} is {arg.access.value} through {arg.map.name!r}, and the members of {over} may change: "
                f"that needs a plan made for them; {advice}"
            )
        if any(arg.data is data for data in written):
            raise LoopError(
                f"{where} reads {arg.data.name!r}, which the loop writes, and the members of {over} may change; write "
                f"another dat, or {advice}"
            )
