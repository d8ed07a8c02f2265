r"""What each patch bears of the force at points where patches meet.

The discrete momentum of a point ``I`` gives one force for all patches that meet there, ``R_I``. With the vectors of
area :math:`A_k = \int N_I n \, dA` and the areas :math:`a_k = \int N_I \, dA` of the faces of each patch,

.. math:: F_k = p_I A_k + w_k \Big( R_I - p_I \sum_j A_j \Big), \quad w_k = a_k / \sum_{j \text{ wall}} a_j

The pressure pushes each patch along its own normal, and what is left, friction above all, is borne by walls: neither
an inflow, nor an outflow, nor a plane of symmetry has a layer beside it. Without a wall at the point all patches take
part. The forces of all patches add up to ``R_I``, and where one patch is alone, or all that meet are asked for, there
is nothing to divide.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fluxloom.fe.edges.patch_points import PatchPoints
from fluxloom.fv.incompressible.boundary import NoSlip
from fluxloom.solvers.edges.boundary import EdgePatch, WallLaw

__all__ = ["ForceShares", "force_shares"]

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ForceShares:
    """What some patches bear of the forces at all points, ``share R + p push``.

    Attributes
    ----------
    points : (k,) int64
        Those of the patches, ascending.
    share : (n,)
        Of the force of each point: 1 where no other patch is, the sum of ``w``; 0 away from the patches.
    push : (n, d)
        Sum of ``A`` of these patches, less ``share`` of that of all patches; m^(d-1). 0 where no other patch is.
    """

    points: npt.NDArray[np.int64]
    share: Array
    push: Array


def force_shares(
    patches: Mapping[str, PatchPoints], boundaries: Mapping[str, EdgePatch], chosen: Collection[str], size: int
) -> ForceShares:
    """Return what some of the patches bear, ``F = p A_k + w_k (R - p sum_j A_j)`` of the force ``R`` of a point.

    Parameters
    ----------
    patches, boundaries
        All of them.
    chosen
        Names of those that are asked for.
    size
        Points of this rank.
    """
    d = next(iter(patches.values())).areas.shape[1]
    vectors, areas, walls = np.zeros((2, size, d)), np.zeros((2, size)), np.zeros((2, size))
    asked, others = np.zeros(size, dtype=bool), np.zeros(size, dtype=bool)
    for name, patch in patches.items():
        at, mine = patch.points, name in chosen
        (asked if mine else others)[at] = True
        for kind in (0, 1) if mine else (1,):  # what is asked for, and all
            vectors[kind, at] += patch.areas
            areas[kind, at] += patch.extents
            if isinstance(boundaries[name], NoSlip | WallLaw):
                walls[kind, at] += patch.extents
    share, push, met = asked.astype(np.float64), np.zeros((size, d)), np.flatnonzero(asked & others)
    part, whole = np.where(walls[1, met] > 0.0, walls[:, met], areas[:, met])
    share[met] = part / whole
    push[met] = vectors[0, met] - share[met, None] * vectors[1, met]
    return ForceShares(np.flatnonzero(asked), share, push)
