"""Slip: flat sides that reflect like mirrors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fluxloom.dsl.run.loop import Loop
from fluxloom.lbm.boundaries.link_kernels import copy
from fluxloom.lbm.boundaries.part import Part, Site
from fluxloom.lbm.cells.links import Links
from fluxloom.lbm.streaming.space import Space

__all__ = ["Slip"]


@dataclass(frozen=True)
class Slip:
    r"""A side without friction, or a plane of symmetry: half-way specular reflection.

    .. math:: f_i(x) = f_r(x'), \qquad c_r = c_i \text{ mirrored at the side}

    with what left :math:`x'`, the mirror image of :math:`x - c_i`. Where two such sides meet it is mirrored at both.
    The image of a body that touches the side is a body: there it is bounce-back. (U. Frisch et al., *Complex Systems* 1
    (1987) 649, section 7; the side is half a cell beyond the last cells.)
    """

    order = 4
    stage = 2

    def part(self, space: Space, site: Site) -> Part:
        """Return what runs before every step."""
        site.side()
        if not len(site.links):
            return Part(site.name, [()], links=0)
        links = site.links[space.order(site.links.cells, site.links.directions)]
        total, over = len(links), space.elements(links.cells, f"{site.name} links")
        links = links[over.which]
        outs = space.departed(over, *_images(space, site, links), f"{site.name} out")
        backs = space.arriving(over, links.cells, links.directions, f"{site.name} back")
        steps = [
            [Loop(copy, over.set, out, back, name=f"{site.name} slip")] for out, back in zip(outs, backs, strict=True)
        ]
        return Part(site.name, steps, links=total)


Places = npt.NDArray[np.int64]


def _images(space: Space, site: Site, links: Links) -> tuple[Places, Places]:
    """Return the cells and directions of the populations that arrive when they are mirrored."""
    box, lattice = space.box, space.lattice
    velocities = np.array(lattice.velocities)
    c, beyond = velocities[links.directions], links.crossed != 0
    image = box.shifted(links.cells, np.where(beyond, 0, -c))
    code = 3 ** np.arange(box.dimensions)
    number = np.zeros(3**box.dimensions, dtype=np.int64)
    number[(velocities + 1) @ code] = np.arange(lattice.q)
    turned = number[(np.where(beyond, -c, c) + 1) @ code]
    solid = ~site.is_fluid(image)
    back = np.array(lattice.opposite)[links.directions]
    return np.where(solid, links.cells, image), np.where(solid, back, turned)
