"""Links through the corners of the box: what each of the walls that they cross gets of their momentum.

Such a link belongs to one side, whose condition says what arrives. Its momentum is that of all sides which it crosses:
each gets the component across itself. So the pressure on a wall acts on all of it, and none along the next one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from fluxloom.core.dtypes import SoA
from fluxloom.dsl.declare.dats import Dat, Global
from fluxloom.dsl.run.loop import Loop
from fluxloom.lbm.boundaries.link_kernels import book
from fluxloom.lbm.boundaries.part import Condition, Part, Site, own_components
from fluxloom.lbm.boundaries.wall import Wall
from fluxloom.lbm.cells.links import joined_links
from fluxloom.lbm.streaming.space import Elements, Space

__all__ = ["corner_parts"]


def corner_parts(
    space: Space, conditions: Mapping[str, Condition], sites: Mapping[str, Site], parts: Mapping[str, Part]
) -> list[Part]:
    """Return what adds to the forces on walls, behind all conditions, what goes through the links of other sides."""
    found = []
    for name, site in sites.items():
        wall, axis = conditions.get(name), site.axis
        if axis is None or not isinstance(wall, Wall) or parts[name].force is None:
            continue
        some = []
        for key, other in sites.items():
            if key != name:
                one = conditions.get(key)
                theirs = own_components(other, other.links, interpolated=isinstance(one, Wall) and one.interpolated)
                some.append(other.links[(other.links.crossed[:, axis] == site.outward) & (theirs[:, axis] == 0)])
        if sum(map(len, some)):
            found.append(_part(space, site, joined_links(some), wall, parts[name]))
    return found


def _part(space: Space, site: Site, links: Any, wall: Wall, part: Part) -> Part:
    """Return the part of the links of others through a side."""
    name, axis, force = f"{site.name} corners", site.axis, part.force
    assert isinstance(force, Global)
    assert part.torque is None or isinstance(part.torque, Global)
    links = links[space.order(links.cells, links.directions)]
    over = space.elements(links.cells, f"{name} links")
    links = links[over.which]
    c = np.array(space.lattice.velocities)[links.directions]
    heading = np.where(np.arange(c.shape[1]) == axis, c, 0) + 1
    headed = _dat(space, over, heading, f"{name} heading", "uint8")
    arm = None
    if wall.center is not None:
        at = np.stack(space.box.coordinates(links.cells), axis=-1) - links.fractions[:, None] * c
        arm = _dat(space, over, at - np.asarray(wall.center), f"{name} arm", space.real)
    against = np.array(space.lattice.opposite)[links.directions]
    outs = space.departed(over, links.cells, against, f"{name} out")
    backs = space.arriving(over, links.cells, links.directions, f"{name} back")
    steps = [
        [Loop(book, over.set, out, back, headed, None, arm, force, part.torque, name=name, per=1.0 / space.unit)]
        for out, back in zip(outs, backs, strict=True)
    ]
    return Part(name, steps, links=0, begin=((),))


def _dat(space: Space, over: Elements, values: Any, name: str, dtype: str) -> Dat:
    return space.context.dat(over.set, values, name, dtype=dtype, layout=SoA())
