r"""The column of fluid: what a uniform force makes of the density where the fluid is at rest.

.. math:: c_s^2 \nabla \rho = F

A side that sets one density for all of itself means that in its middle: along the side the fluid weighs, and a density
that is the same above and below would drive it. Along periodic axes a force drives the flow, and nothing stands there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from fluxloom.dsl.dats import Dat
from fluxloom.lbm.boundaries.in_time import changing
from fluxloom.lbm.boundaries.part import Site
from fluxloom.lbm.boundaries.values import Places, Reals, Scalars, scalars_at
from fluxloom.lbm.lattices import SOUND_SPEED_SQUARED
from fluxloom.lbm.space import Space

__all__ = ["Densities", "risen"]


def risen(space: Space, force: Sequence[float], way: Reals) -> Reals:
    """Return by how much the density rises on ways ``(n, dimensions)`` in a fluid at rest, ``(n,)``."""
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
