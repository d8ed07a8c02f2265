r"""What the pressure of fluid at rest under a uniform force does at walls that are not half-way between cells.

The density rises by :math:`\nabla \rho = 3 F`. Half-way bounce-back leaves that as it is; interpolation takes a
population from another cell, whose density differs: what comes back is too much by
:math:`(1 - s)\, 3 w_i\, c_i F`, with the share :math:`s` of the first population, and the fluid would never rest.

The momentum through a link is that of the pressure half-way; at the wall, at :math:`q`, it is another one. All links of
a body together make it as heavy as its cells, :math:`-N F`; with

.. math:: \Delta F = - \sum 6 w_i (\tfrac12 - q)(c_i F)\, c_i

it weighs what is between the surfaces, chord by chord, and a body that fluid surrounds weighs its area, or volume.

Only the force along axes that a wall or a plane of symmetry closes is carried so: along others it drives the flow.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from fluxloom.core.access import RW, Inc, Read
from fluxloom.core.dtypes import SoA
from fluxloom.dsl.dats import Dat, Global
from fluxloom.dsl.local_sets import local_set
from fluxloom.dsl.loop import Loop
from fluxloom.kernel.frontend import kernel
from fluxloom.lbm.boundaries.part import Site
from fluxloom.lbm.space import Space

__all__ = ["Weights", "standing_force"]

Reals = npt.NDArray[np.float64]

_CLOSED = 1e-9
"""Sum of all links of a body that fluid surrounds."""


@kernel
def add_weight(weight: Read, force: Inc):
    """Add to what has been summed over all links of a wall."""
    for a in range(len(weight)):
        force[a] += weight[a]


@kernel
def add_weight_by_wall(weight: Read, force: RW):
    """Add to what has been summed over the links of each wall."""
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
