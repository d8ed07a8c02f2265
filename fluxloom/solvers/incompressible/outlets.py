"""Outflows know hydrostatics: along them the pressure is that of the column of fluid under what acts on it.

::

    p_b(x) = integral of f . dz along the outflow,   of mean zero over outflows that touch each other

so that a force that is a potential leaves the flow alone. A uniform one gives ``f . (x - mean)``. Buoyancy, along its
own direction, is that of the scalar that arrives, its mean at each height.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fluxloom.solvers.incompressible.corrections import CorrectedFlow

__all__ = ["Outlets"]

Array = npt.NDArray[np.float64]
Index = npt.NDArray[np.int64]
_SAME = 1e-9
"""Of the height of an outflow: places at one height."""
_TOUCH = 1.01


class Outlets:
    """The faces of outflow of all ranks, in groups of patches that touch. Collective.

    Parameters
    ----------
    flow
        Whose, with its control volumes and boundary conditions.

    Attributes
    ----------
    elements, faces : (n,)
        Numbers of this rank's boundary elements and faces.
    """

    def __init__(self, flow: CorrectedFlow) -> None:
        cv, self._comm = flow.volumes, flow.context.comm
        found = np.flatnonzero(flow.conditions.open)
        self.elements, self.faces = found + cv.cells, found + cv.interior
        moments = cv.moments() if cv.moments is not None else None
        area = cv.area[self.faces]
        spread = area**2 / 12.0 if moments is None else np.trace(moments[self.faces], axis1=1, axis2=2)
        names = np.full(cv.elements, "", dtype=object)
        for name, elements in cv.patches.items():
            names[elements] = name
        parts = self._comm.allgather((cv.centres[self.elements], area, np.sqrt(3.0 * spread), names[self.elements]))
        before = sum(len(part[1]) for part in parts[: self._comm.rank])
        self._mine = slice(before, before + found.size)
        self.centres, self._area, reach, patch = (np.concatenate([part[k] for part in parts]) for k in range(4))
        self._groups = _touching(self.centres, reach, patch)

    def heights(self, direction: Array) -> Array:
        """Return how far faces are along a direction, ``z = x . e - mean``, ``(all,)``, by group; zeros: nothing is."""
        found = self.centres @ direction
        size = np.abs(found).max(initial=0.0) + np.ptp(self.centres, axis=0).max(initial=0.0) if found.size else 0.0
        for group in self._groups:
            found[group] -= np.average(found[group], weights=self._area[group])
            if np.abs(found[group]).max() <= _SAME * size:
                found[group] = 0.0
        return found

    def own(self, values: Array) -> Array:
        """Return the values of this rank's faces, of those of all."""
        return values[self._mine]

    def column(self, heights: Array, here: Array) -> Array:
        """Return the integral over the height of what acts there, ``p = int f dz``, on this rank's faces. Collective.

        Parameters
        ----------
        heights
            Of all faces.
        here
            What acts on those of this rank.
        """
        values, found = np.concatenate(self._comm.allgather(here)), np.zeros_like(heights)
        for group in self._groups:
            z, area = heights[group], self._area[group]
            order = np.argsort(z, kind="stable")
            level = np.empty(z.size, dtype=np.int64)
            level[order] = np.concatenate([[0], np.cumsum(np.diff(z[order]) > _SAME * (np.ptp(z) or 1.0))])
            weight = np.bincount(level, area)
            mean, at = (np.bincount(level, area * v) / weight for v in (values[group], z))
            p = np.concatenate([[0.0], np.cumsum(0.5 * (mean[1:] + mean[:-1]) * np.diff(at))])[level]
            found[group] = p - np.average(p, weights=area)
        return found[self._mine]


def _touching(centres: Array, reach: Array, patch: npt.NDArray[np.object_]) -> list[Index]:
    """Return the faces of each group of patches that touch; ``reach``: of the corners of a face from its centre."""
    names = sorted(set(patch))
    group = {name: name for name in names}
    if len(names) > 1:
        from scipy.spatial import KDTree

        of = {name: np.flatnonzero(patch == name) for name in names}
        for k, one in enumerate(names):
            tree = KDTree(centres[of[one]])
            for other in names[k + 1 :]:
                gap, near = tree.query(centres[of[other]])
                if (gap <= _TOUCH * (reach[of[other]] + reach[of[one]][near])).any():
                    old, new = group[other], group[one]
                    group = {name: new if root == old else root for name, root in group.items()}
    roots = np.array([group[name] for name in patch], dtype=object)
    return [np.flatnonzero(roots == root) for root in sorted(set(group.values()))]
