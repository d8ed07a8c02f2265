r"""Fluid at rest under a uniform force: the density rises along it, and walls carry the weight.

.. math:: c_s^2 \nabla \rho = F

A side that sets one density for all of itself means that in its middle: along the side the fluid weighs, and a density
that is the same above and below would drive it. Along periodic axes a force drives the flow, and nothing stands there.

Half-way bounce-back leaves the rising density as it is; interpolation takes a population from another cell, whose
density differs: what comes back is too much by :math:`(1 - s)\, 3 w_i\, c_i F`, with the share :math:`s` of the first
population, and the fluid would never rest. The momentum through a link is that of the pressure half-way; at the wall,
at :math:`q`, it is another one. All links of a body together make it as heavy as its cells, :math:`-N F`; with

.. math:: \Delta F = - \sum 6 w_i (\tfrac12 - q)(c_i F)\, c_i

it weighs what is between the surfaces, chord by chord, and a body that fluid surrounds weighs its area, or volume. Only
the force along axes that a wall or a plane of symmetry closes is carried so: along others it drives the flow.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from fluxloom.core.access import RW, Inc, Read
from fluxloom.core.dtypes import SoA
from fluxloom.dsl.declare.dats import Dat, Global
from fluxloom.dsl.declare.local_sets import local_set
from fluxloom.dsl.run.loop import Loop
from fluxloom.kernel.frontend import kernel
from fluxloom.lbm.boundaries.in_time import changing
from fluxloom.lbm.boundaries.part import Site
from fluxloom.lbm.boundaries.values import Places, Reals, Scalars, scalars_at
from fluxloom.lbm.lattices import SOUND_SPEED_SQUARED
from fluxloom.lbm.streaming.space import Space

__all__ = ["Densities", "Weights", "risen", "standing_force"]

_CLOSED = 1e-9
"""Sum of all links of a body that fluid surrounds."""


def risen(space: Space, force: Sequence[float], way: Reals) -> Reals:
    """Return ``rho - rho_0 = F . s / c_s^2`` on ways ``s`` ``(n, dimensions)`` in a fluid at rest, ``(n,)``."""
    acting = np.where(space.box.periodic, 0.0, np.asarray(tuple(force) or (0.0,) * space.box.dimensions))
    return way @ acting / SOUND_SPEED_SQUARED


class Densities:
    """The densities that a condition sets, less one, under the force that acts now. Collective.

    Parameters
    ----------
    space
        Where the populations are.
    site
        The side.
    places
        Where densities are set.
    target
        Where loops find them.
    values
        What is set: one number stands for the middle of the side.
    beyond
        Whether the side is half a cell beyond the cells, or at their centres.
    """

    def __init__(
        self, space: Space, site: Site, places: Places, target: Dat, values: Scalars, *, beyond: bool = True
    ) -> None:
        self._space, self._places, self._target = space, places, target
        axis, outward = site.side()
        ends = np.array(space.box.shape, dtype=np.float64)
        middle = 0.5 * (ends - 1.0)
        middle[axis] += outward * (middle[axis] + 0.5 * beyond)
        self._way = places.positions - middle
        self._force: Sequence[float] = space.weight
        self.assign(values)

    def assign(self, values: Scalars) -> None:
        """Set other values."""
        found = scalars_at(values, self._places) - 1.0
        if not isinstance(values, Callable) and np.ndim(values) == 0:
            found = found + risen(self._space, self._force, self._way)
        self._values = values
        self._target.write(found[:, None])

    def carry(self, force: Sequence[float]) -> None:
        """Take another force of the whole fluid."""
        self._force = tuple(force)
        if changing(self._values):  # they are set anew in every step, as they are
            return
        self.assign(self._values)


@kernel
def add_weight(weight: Read, force: Inc):
    """``F += Delta F``: add to what has been summed over all links of a wall."""
    for a in range(len(weight)):
        force[a] += weight[a]


@kernel
def add_weight_by_wall(weight: Read, force: RW):
    """``F_w = F_w + Delta F_w``: add to what has been summed over the links of each wall ``w``."""
    for a in range(len(weight)):
        force[a] = force[a] + weight[a]


def standing_force(site: Site, force: Sequence[float], dimensions: int) -> Reals:
    """Return the part of a uniform force that fluid at rest carries."""
    acting = np.asarray(tuple(force) or (0.0,) * dimensions, dtype=np.float64)
    return np.where(site.standing or (False,) * dimensions, acting, 0.0)


class Weights:
    """What the forces on walls are changed by, so that these weigh what is inside.

    Parameters
    ----------
    space
        Where the populations are.
    sites
        Of the walls.
    name
        For reports.
    """

    remembers, forgets = ("_force",), ("_targets",)  # values of the first rank alone

    def __init__(self, space: Space, sites: Sequence[Site], name: str) -> None:
        self._space, self._sites, self._name = space, sites, name
        self._tables = [self._table(site) for site in sites]
        self._targets: list[Dat] = []
        self._force: Sequence[float] = space.weight

    @property
    def any(self) -> bool:
        """Whether the force may ever change one."""
        return self._space.force is not None and any(table.any() for table in self._tables)

    def _table(self, site: Site) -> Reals:
        """Return ``(dimensions, dimensions)``, by which the force of a wall changes with the uniform one."""
        d = self._space.box.dimensions
        links = site.links
        c = np.array(self._space.lattice.velocities, dtype=np.float64)[links.directions]
        w = 6.0 * np.array(self._space.lattice.weights)[links.directions]
        if not any(site.standing):
            return np.zeros((d, d))
        if site.excess is not None and np.abs(w @ c).max(initial=0.0) < _CLOSED:
            return -site.excess * np.eye(d)
        return -np.einsum("n,na,nb->ab", w * (0.5 - links.fractions), c, c)

    def into(self, force: Global) -> Loop:
        """Return the loop that changes the sum of the one wall that there is."""
        context = self._space.context
        weight = self._dat(local_set(context, 1, f"{self._name} weight"))
        return Loop(add_weight, weight.set, weight, force, name=f"{self._name} weight")

    def behind(self, force: Dat) -> Loop:
        """Return the loop that changes the sums of all walls."""
        return Loop(add_weight_by_wall, force.set, self._dat(force.set), force, name=f"{self._name} weight")

    def _dat(self, over: object) -> Dat:
        space = self._space
        named = {"name": f"{self._name} weight", "shape": (space.box.dimensions,), "dtype": space.total}
        dat = space.context.dat(over, **named, layout=SoA())  # type: ignore[arg-type]
        self._targets.append(dat)
        self.carry(self._force)
        return dat

    def restored(self) -> None:
        """Find the weights again under the force that a checkpoint has kept."""
        self.carry(self._force)

    def carry(self, force: Sequence[float]) -> None:
        """Take another uniform force."""
        self._force = tuple(force)
        d, first = self._space.box.dimensions, self._space.context.comm.rank == 0
        values = [table @ standing_force(site, force, d) for table, site in zip(self._tables, self._sites, strict=True)]
        for dat in self._targets:
            dat.write(np.array(values).reshape(-1, d) * float(first))  # sums are over the ranks
