"""Writes through a stencil: allowed where no two elements can meet, which the kernel itself proves.

Leg ``k`` of a stencil on a lattice whose ends are joined leads each element to another one. If a kernel reaches every
component of an argument through one leg only, then each place of the dat (element and component) is read and written
by exactly one element, and the loop has no races: push streaming ``out[k][k] = ...``, and the in-place scheme
that reads ``f[k'][k']`` and writes ``f[k][k]``.
"""

from __future__ import annotations

from collections.abc import Sequence

from fluxloom.core.access import Access
from fluxloom.core.errors import LoopError
from fluxloom.dsl.args import Argument
from fluxloom.dsl.maps import OffsetMap
from fluxloom.dsl.sets import Grid, Set
from fluxloom.kernel.analysis import used_components
from fluxloom.kernel.ir import LoweredKernel, Parameter

__all__ = ["check_stencil_writes", "spreads"]


def spreads(arg: Argument, access: Access) -> bool:
    """Whether an argument is written through a stencil."""
    return isinstance(arg.map, OffsetMap) and access in (Access.WRITE, Access.RW)


def check_stencil_writes(
    name: str, over: Set, parameters: Sequence[Parameter], arguments: Sequence[Argument], lowered: LoweredKernel
) -> None:
    """Check that no two elements of a loop meet where it writes through stencils.

    Raises
    ------
    LoopError
        If the lattice is cut or has ghosts, or some component is reached through several legs.
    """
    for parameter, arg in zip(parameters, arguments, strict=True):
        if spreads(arg, parameter.access):
            assert isinstance(arg.map, OffsetMap)
            where = f"{name}: argument {parameter.name!r} is {parameter.access.value} through stencil {arg.map.name!r}"
            _check_lattice(where, over)
            _check_legs(where, parameter.name, lowered)


def _check_lattice(where: str, over: Set) -> None:
    """Check that every leg leads each element to one of its own; a lattice without ghosts is joined where one leads."""
    grid = over.parent
    assert isinstance(grid, Grid)
    if over.context.ranked:
        raise LoopError(
            f"{where}, and on several ranks {grid} is cut: elements of other ranks would be written; let a loop over "
            "the targets read"
        )
    if any(grid.ghost):
        raise LoopError(f"{where}, and {grid} has ghosts {grid.ghost}; declare it without, periodic along each axis")


def _check_legs(where: str, parameter: str, lowered: LoweredKernel) -> None:
    used = used_components(lowered, parameter)
    if used is None:
        raise LoopError(
            f"{where}, and the kernel computes a leg or a component of it; use numbers, or loops over range() that can "
            "be written out"
        )
    legs: dict[tuple[int, ...], int | None] = {}
    for leg, component in sorted(used, key=lambda place: (place[1], place[0] or 0)):
        if legs.setdefault(component, leg) != leg:
            text = f"component {component[0] if len(component) == 1 else component}" if component else "it"
            raise LoopError(
                f"{where}, and the kernel reaches {text} through legs {legs[component]} and {leg}: elements would "
                "meet; reach each component through one leg, or write another dat"
            )
