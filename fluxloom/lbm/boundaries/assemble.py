"""All conditions of a flow: sides and bodies with their links, in the order in which they run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError
from fluxloom.lbm.boundaries.bounce import bounce_parts
from fluxloom.lbm.boundaries.corners import corner_parts
from fluxloom.lbm.boundaries.edges import edge_parts
from fluxloom.lbm.boundaries.part import Condition, Part, Site
from fluxloom.lbm.boundaries.side import Pressure, Velocity
from fluxloom.lbm.boundaries.slip import Slip
from fluxloom.lbm.boundaries.sponge import Sponge
from fluxloom.lbm.boundaries.wall import Wall
from fluxloom.lbm.cells.box import Box
from fluxloom.lbm.cells.links import Links, find_links, joined_links
from fluxloom.lbm.shapes.shapes import Shape
from fluxloom.lbm.streaming.space import Space

__all__ = ["Body", "at_row_ends", "beside_sponges", "parts_of", "rows_turn"]

PLAIN = "walls"
"""Name of the part that has all walls at rest whose force nobody wants."""


@dataclass(frozen=True)
class Body:
    """A solid body in the box. Where bodies overlap the one that is given first has the cells, and the surface there.

    Attributes
    ----------
    name
        For forces and messages; not that of a side.
    shape
        Where it is, from `fluxloom.lbm.shapes.shapes`.
    condition
        Of its surface: a wall at rest whose force is measured by default.
    """

    name: str
    shape: Shape
    condition: Condition = field(default_factory=lambda: Wall(measure=True))


def parts_of(
    space: Space, sides: Mapping[str, Condition | Sponge], bodies: Sequence[Body], labels: npt.NDArray[np.int16]
) -> dict[str, Part]:
    """Return the parts of all sides and bodies by name, in the order in which they run before a step.

    Links through an edge belong to the side whose condition has the least `Condition.order`; what runs first is the
    condition of the least `Condition.stage`. All walls that are at rest, half-way and not measured are one part,
    ``"walls"``. Walls of bodies of one kind (interpolated, moving, measured) share their loops, which the first of them
    has. Cells where sides meet that set velocity or pressure have a part of their own, ``"xmin+ymax"``, and so
    have sponges, ``"xmax sponge"``, which run first.

    Parameters
    ----------
    sides
        Conditions of all sides across axes that are not periodic, by name.
    labels
        Over the grid: 0 where there is fluid, ``n`` in body ``n - 1``, -1 beyond the sides.

    Raises
    ------
    SolverError
        If a side has no condition, a body is not there for the lattice, or a condition does not fit.
    """
    sponges = {name: one for name, one in sides.items() if isinstance(one, Sponge)}
    sides = beside_sponges(sides)
    priority = _priority(sides)
    mirrors = {name: isinstance(one, Slip) for name, one in sides.items() if isinstance(one, Slip | Wall)}
    found = find_links(space.box, space.lattice, labels, [body.shape for body in bodies], priority, mirrors)
    sites = {name: _side(space, name, found[name], labels) for name in priority if name in found}
    sites |= {b.name: Site(b.name, found[n + 1], labels) for n, b in enumerate(bodies) if n + 1 in found}
    for number, body in enumerate(bodies, start=1):
        if not len(found[number]) and not (labels == number).any():
            raise SolverError(
                f"body {body.name!r} has no cell, and cuts no way between cells: it is outside of the box, or too small"
            )
    for number, body in enumerate(bodies, start=1):
        volume, cells = body.shape.measure(), np.count_nonzero(labels == number)
        if volume is not None and abs(volume - cells) < len(found[number]):  # else others have most of it
            sites[body.name] = replace(sites[body.name], excess=volume - cells)
    cut, standing = _cut(found.values()), _standing(space.box, mirrors)
    planes = tuple(space.box.axis(name) for name, mirrored in mirrors.items() if mirrored)
    sites = {name: replace(site, cut=cut, standing=standing, planes=planes) for name, site in sites.items()}
    conditions = {name: sides[name] for name in sites if name in sides}
    conditions |= {body.name: body.condition for body in bodies if body.name in sites}
    if PLAIN in conditions:
        raise SolverError(f"a body cannot be called {PLAIN!r}: that stands for all walls at rest; choose another name")
    together = {n: c for n, c in conditions.items() if isinstance(c, Velocity | Pressure) and c.on_cells}
    shared = _shared([sites[name].cells for name in together])
    parts = {f"{name} sponge": one.layer(space, sites[name]) for name, one in sponges.items()}
    plain = [name for name, condition in conditions.items() if isinstance(condition, Wall) and condition.plain]
    apart = dict(sites)
    if plain:
        sites[PLAIN] = Site(PLAIN, joined_links([sites[name].links for name in plain]), labels, cut=cut, planes=planes)
        conditions = {PLAIN: Wall()} | {name: one for name, one in conditions.items() if name not in plain}
    alike = _alike({body.name: conditions[body.name] for body in bodies if body.name in conditions})
    # of two outflows that meet the one that has the links through the edge looks at what the other one has done
    last_first = {name: -place for place, name in enumerate(conditions)}
    late: list[Part] = []  # between what reads what has left cells and what completes what arrives
    for name in sorted(conditions, key=lambda name: (conditions[name].stage, last_first[name])):
        if conditions[name].stage > Slip.stage:
            parts |= {part.name: part for part in late}
            late.clear()
        if name in parts:
            continue
        if name in alike:
            walls = [(sites[n], wall) for n, wall in alike[name].items()]
            made = bounce_parts(space, walls)
        else:
            site = sites[name]
            own = replace(site, cells=np.setdiff1d(site.cells, shared)) if name in together else site
            made = [conditions[name].part(space, own)]
        parts |= {part.name: part for part in made}
        # not at the start: what has been put there would be taken for what has left the cells
        late += [Part(f"{part.name} put", part.late, links=0, begin=((),)) for part in made if part.late]
    parts |= {part.name: part for part in late}
    for part in edge_parts(space, together, sites, parts):
        parts[part.name] = part
    return parts | {part.name: part for part in corner_parts(space, conditions, apart, parts)}


def _cut(links: Iterable[Links]) -> frozenset[tuple[int, int]]:
    """Return cells and directions of links that are cut between fluid cells."""
    some = [one[one.cut] for one in links]
    return frozenset(pair for one in some for pair in zip(one.cells.tolist(), one.directions.tolist(), strict=True))


def _standing(box: Box, closed: Iterable[str]) -> tuple[bool, ...]:
    """Return across which axes a side is closed."""
    axes = {box.axis(name)[0] for name in closed}
    return tuple(axis in axes for axis in range(box.dimensions))


def _alike(bodies: Mapping[str, Condition]) -> dict[str, dict[str, Wall]]:
    """Return, by the names of bodies, the walls of all bodies that are of the same kind, where there are several."""
    found: dict[Any, dict[str, Wall]] = {}
    for name, one in bodies.items():
        if isinstance(one, Wall):
            found.setdefault(one.kind, {})[name] = one
    return {name: walls for walls in found.values() if len(walls) > 1 for name in walls}


def beside_sponges(sides: Mapping[str, Condition | Sponge]) -> dict[str, Condition]:
    """Return the conditions at the sides themselves."""
    return {name: one.beside if isinstance(one, Sponge) else one for name, one in sides.items()}


def _priority(sides: Mapping[str, Condition]) -> list[str]:
    """Return the names of sides; links through an edge are those of the first one."""
    return sorted(sides, key=lambda name: (sides[name].order, list(sides).index(name)))


def rows_turn(sides: Mapping[str, Condition | Sponge]) -> bool:
    """Return whether populations can come back at the ends of rows by themselves (`fluxloom.lbm.cells.box`).

    Both of these are walls at rest, half-way and not measured, and so is every side that has links through edges which
    would otherwise be theirs. No wall wants the force of what goes through the corners. No condition writes what
    arrives through their links, for walls to put right afterwards.
    """
    conditions = beside_sponges(sides)
    if any(one.stage < Wall.stage or (isinstance(one, Wall) and one.measure) for one in conditions.values()):
        return False
    plain = {name for name, one in conditions.items() if isinstance(one, Wall) and one.plain}
    if not plain >= {"xmin", "xmax"}:
        return False
    priority = _priority(conditions)
    return plain.issuperset(priority[: max(priority.index("xmin"), priority.index("xmax"))])


def at_row_ends(cells: int, bodies: Sequence[Body]) -> bool:
    """Return whether the force of a body that reaches the ends of rows is wanted: it takes part of what goes there."""
    for body in bodies:
        low, high = (float(end[-1]) for end in body.shape.bounds())
        if isinstance(body.condition, Wall) and body.condition.measure and (low < 1.0 or high > cells - 2.0):
            return True
    return False


def _side(space: Space, name: str, links: Links, labels: npt.NDArray[np.int16]) -> Site:
    axis, outward = space.box.axis(name)
    fluid = np.zeros(labels.shape, dtype=bool)
    at = list(space.box.inside)
    at[axis] = slice(0, 1) if outward < 0 else slice(space.box.shape[axis] - 1, space.box.shape[axis])
    fluid[tuple(at)] = labels[tuple(at)] == 0
    return Site(name, links, labels, axis, outward, np.flatnonzero(fluid).astype(np.int64))


def _shared(cells: Sequence[npt.NDArray[np.int64]]) -> npt.NDArray[np.int64]:
    """Return the cells that are in several lists."""
    if not cells:
        return np.zeros(0, dtype=np.int64)
    number, count = np.unique(np.concatenate(cells), return_counts=True)
    return number[count > 1]
