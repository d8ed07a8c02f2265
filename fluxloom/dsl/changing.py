"""Loops over subsets whose members may change: what must hold for whatever members there will be."""

from __future__ import annotations

from collections.abc import Sequence

from fluxloom.core.access import Access
from fluxloom.core.errors import LoopError
from fluxloom.dsl.dats import Dat
from fluxloom.dsl.maps import BoundArgument, EntriesMap, OffsetMap, RaggedMap
from fluxloom.dsl.sets import Set

__all__ = ["check_changing"]


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
