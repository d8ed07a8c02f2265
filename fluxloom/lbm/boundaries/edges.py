"""Edges: cells at which two sides meet that both set velocity or pressure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.dtypes import SoA
from fluxloom.core.errors import SolverError
from fluxloom.dsl.declare.dats import Dat
from fluxloom.dsl.run.loop import Loop
from fluxloom.lbm.boundaries.cell_kernels import edge
from fluxloom.lbm.boundaries.hydrostatics import Densities, risen
from fluxloom.lbm.boundaries.in_time import AT_CELLS, Timed
from fluxloom.lbm.boundaries.part import Part, Site
from fluxloom.lbm.boundaries.ramp import Ramp
from fluxloom.lbm.boundaries.side import Pressure, Velocity, cell_places, pull_at, timed_at
from fluxloom.lbm.boundaries.values import speeds_at
from fluxloom.lbm.streaming.space import Elements, Space

__all__ = ["edge_parts"]

Cells = npt.NDArray[np.int64]


def edge_parts(
    space: Space, sides: Mapping[str, Velocity | Pressure], sites: Mapping[str, Site], parts: Mapping[str, Part]
) -> list[Part]:
    """Return the parts of cells that belong to several of some sides.

    The velocity is that of the first of the sides (in the order given) that sets one, the density that of the first
    which sets one; new values of a side (`Part.assign`) hold at its edges too.

    Parameters
    ----------
    sites
        Of the sides, with all their cells.
    parts
        Of the sides.

    Raises
    ------
    SolverError
        If a body covers the next cell inwards, or the box is too thin to have one.
    """
    met: dict[tuple[str, ...], list[int]] = {}
    of: dict[int, list[str]] = {}
    for name in sides:
        for cell in sites[name].cells.tolist():
            of.setdefault(cell, []).append(name)
    for cell, names in of.items():
        if len(names) > 1:
            met.setdefault(tuple(names), []).append(cell)
    return [
        _edge(space, names, np.array(sorted(cells), dtype=np.int64), sides, sites, parts)
        for names, cells in met.items()
    ]


def _edge(
    space: Space,
    names: Sequence[str],
    cells: Cells,
    sides: Mapping[str, Velocity | Pressure],
    sites: Mapping[str, Site],
    parts: Mapping[str, Part],
) -> Part:
    label, lattice, d = "+".join(names), space.lattice, space.lattice.dimensions
    near = _inner(space, label, cells, [sites[name] for name in names])
    total, over = len(cells), space.elements(cells, f"{label} cells", reach=2)
    cells, near = over.cells, near[over.which]
    above = space.context.dat(over.set, name=f"{label} density", shape=(1,), dtype=space.real)
    u = space.context.dat(over.set, name=f"{label} velocity", shape=(d,), dtype=space.real, layout=SoA())
    fast = next((name for name in names if isinstance(sides[name], Velocity)), "")
    dense = next((name for name in names if isinstance(sides[name], Pressure)), "")
    ramp = _ramp(space, over, u, label, sides.get(fast))
    target = u if ramp is None else ramp.target

    def set_velocity(values: Any) -> None:
        target.write(speeds_at(values, cell_places(space, _with_cells(sites[fast], cells))))

    timed: list[Timed] = []
    if isinstance(moving := sides.get(fast), Velocity):
        set_velocity(moving.value)
        parts[fast].follow(set_velocity)
        places = cell_places(space, _with_cells(sites[fast], cells))
        timed += timed_at(space, over, places, moving.value, target, AT_CELLS)
    if isinstance(still := sides.get(dense), Pressure):
        places = cell_places(space, _with_cells(sites[dense], cells))
        timed += timed_at(space, over, places, still.density, above, AT_CELLS)
    carry = _densities(space, above, cells, near, dense, sides, sites, parts)
    constants: dict[str, Any] = space.constants | {"density": bool(dense), "velocity": bool(fast)}
    every = np.arange(lattice.q)[None, :]
    pull = pull_at(space, over, label)
    froms = space.arriving(over, near[:, None], every, f"{label} near")
    tos = space.arriving(over, cells[:, None], every, f"{label} arriving")
    steps = [
        [Loop(edge, over.set, a, above, u, pull, b, name=f"{label} edge", **constants)]
        for a, b in zip(froms, tos, strict=True)
    ]
    if ramp is None:
        return Part(label, steps, links=total, begin=((),), carry=carry, timed=timed)
    grown = [[ramp.loop, *s] for s in steps]
    return Part(label, grown, links=total, begin=((ramp.begin,),), state=ramp.state, carry=carry, timed=timed)


def _densities(
    space: Space, above: Dat, cells: Cells, near: Cells, dense: str, sides: Mapping[str, Velocity | Pressure],
    sites: Mapping[str, Site], parts: Mapping[str, Part],
) -> Callable[[Sequence[float]], None]:  # fmt: skip
    """Set the densities of an edge, or by how much they differ from those of the next cells; return what carries on."""
    side = sides.get(dense)
    if isinstance(side, Pressure):
        site = _with_cells(sites[dense], cells)
        found = Densities(space, site, cell_places(space, site), above, side.density, beyond=False)
        parts[dense].follow(found.assign)
        return found.carry
    way = np.stack(space.box.coordinates(cells), -1) - np.stack(space.box.coordinates(near), -1)

    def carry(force: Sequence[float]) -> None:
        above.write(risen(space, force, way.astype(np.float64))[:, None])

    carry(space.weight)
    return carry


def _ramp(space: Space, over: Elements, u: Dat, label: str, side: Velocity | Pressure | None) -> Ramp | None:
    """Return the ramp of the side that sets the velocity, if it has one."""
    if not isinstance(side, Velocity) or not side.ramp:
        return None
    return Ramp(space, over, u, side.ramp, label)


def _with_cells(site: Site, cells: Cells) -> Site:
    return Site(site.name, site.links, site.labels, site.axis, site.outward, cells)


def _inner(space: Space, label: str, cells: Cells, sites: Sequence[Site]) -> Cells:
    """Return the next cells away from all of the sides."""
    shift = np.zeros((len(cells), space.box.dimensions), dtype=np.int64)
    for site in sites:
        axis, outward = site.side()
        if space.box.shape[axis] < 3:
            raise SolverError(f"{label}: such sides can meet only in a box of three cells or more")
        shift[:, axis] = -outward
    near = space.box.shifted(cells, shift)
    if not np.all(sites[0].is_fluid(near)):
        raise SolverError(f"{label}: a body covers a cell next to the edge of these sides; move it away")
    return near
