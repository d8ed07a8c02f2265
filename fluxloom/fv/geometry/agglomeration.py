r"""Coarser control volumes, made of groups of cells: the levels of geometric multigrid.

A coarse cell is a group of neighbours (`fluxloom.graph.agglomerate`), the faces between two groups are one face, those
of a group in one patch one boundary element. Volumes and area vectors are sums, so whatever is conserved on the fine
level is on the coarse one, and the area vectors of a coarse cell add up to zero:

.. math:: V_I = \sum_{i \in I} V_i, \quad S_{IJ} = \sum_{i \in I, j \in J} S_{ij}, \quad
          x_I = \frac{1}{V_I} \sum_{i \in I} V_i x_i .

Flat cells, as in boundary layers, are stacked until they are as high as wide. Groups do not reach across periodic
patches, nor to cells of other ranks.

References
----------
D. J. Mavriplis, V. Venkatakrishnan: *Agglomeration multigrid for two-dimensional viscous flows*. Computers & Fluids
24, 1995.
H. Nishikawa, B. Diskin, J. L. Thomas: *Critical study of agglomerated multigrid methods for diffusion*. AIAA J. 48,
2010 (fronts from the boundaries, boundary elements by patch).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from fluxloom.comm.agreement import raise_on_all_ranks
from fluxloom.core.activity import activity
from fluxloom.core.errors import MeshError, did_you_mean
from fluxloom.fv.geometry.coarse_volumes import Coarse, grouped
from fluxloom.fv.geometry.volumes import ControlVolumes
from fluxloom.graph.agglomerate import Grouping, agglomerate
from fluxloom.graph.csr import Csr

__all__ = ["Coarse", "Grouping", "coarsen", "grouped", "hierarchy"]

Array = npt.NDArray[np.float64]

_STALLED = 0.8
"""A level with more cells than this part of the finer one is not worth its sweeps."""


def coarsen(
    volumes: ControlVolumes, walls: Sequence[str] = (), grouping: Grouping | None = None, wetted: Array | None = None
) -> Coarse:
    """Return control volumes of groups of cells. Collective.

    Parameters
    ----------
    volumes
        The fine ones, on several ranks those of this one: groups are made of cells of one rank.
    walls
        Patches where the front of groups starts; all by default.
    grouping
        How; by default groups of four cells in two dimensions, of eight in three.
    wetted : (faces,)
        Of the fine faces, if these are coarse themselves; by default their areas.

    Raises
    ------
    MeshError
        If a patch does not exist, or a boundary element is not in one patch.
    DatError
        If a volume or an area is not above 0.
    """

    def group() -> npt.NDArray[np.int32]:
        size, first = volumes.volumes[: volumes.owned], _behind(volumes, walls)
        return agglomerate(*_graph(volumes), size, first, grouping or Grouping(volumes.dimension))

    return grouped(volumes, raise_on_all_ranks(volumes.shared.comm, group), wetted)


def hierarchy(
    volumes: ControlVolumes, levels: int, walls: Sequence[str] = (), grouping: Grouping | None = None, fewest: int = 16
) -> list[Coarse]:
    """Return coarser and coarser control volumes, the first made of the given ones, each other of the one before.

    Parameters
    ----------
    volumes, walls, grouping
        As in `coarsen`.
    levels
        At most so many; fewer, when a level has not ``fewest`` cells, or hardly fewer than the one before.
    fewest
        Cells of a level, of all ranks together.

    Notes
    -----
    Corrections that are constant in each group are too large where diffusion is discretised anew on several levels:
    V cycles may diverge on three and more, W cycles do not. Groups of pairs (``Grouping(1)``) converge fastest, at the
    price of half the cells on the first level. In a layer of cells that grow by a factor ``g`` from one to the next,
    stacks of ``m`` grow by ``g^m``: take few levels for steep layers.

    Raises
    ------
    MeshError, DatError
        As `coarsen`; also for a negative number of levels.
    """
    if levels < 0:
        raise MeshError(f"agglomeration: {levels} coarse levels are wanted; give 0 or more")
    found: list[Coarse] = []
    with activity("coarse levels of the mesh", total=levels) as work:
        for _ in range(levels):
            fine = found[-1].volumes if found else volumes
            coarse = coarsen(fine, walls, grouping, found[-1].wetted if found else None)
            if coarse.volumes.total < max(fewest, 1) or coarse.volumes.total > _STALLED * fine.total:
                break
            found.append(coarse)
            work.step()
    return found


# ------------------------------------------------------------------------------------------ groups of a rank
def _graph(volumes: ControlVolumes) -> tuple[Csr, Array]:
    """Return the neighbours of the owned cells among themselves, not across periodic faces, and the areas between."""
    from scipy.sparse import coo_array, csr_array

    n, kept = volumes.owned, np.ones(volumes.interior, dtype=bool)
    kept[volumes.wrapped.faces] = False
    inner = volumes.faces[: volumes.interior]
    kept &= (inner < n).all(axis=1)
    row, column = inner[kept].astype(np.int32).T
    area = volumes.area[: volumes.interior][kept]
    ends = np.concatenate([row, column]), np.concatenate([column, row])
    found = csr_array(coo_array((np.concatenate([area, area]), ends), shape=(n, n)))
    return Csr(found.indptr.astype(np.int64), found.indices.astype(np.int32)), np.asarray(found.data, dtype=np.float64)


def _behind(volumes: ControlVolumes, walls: Sequence[str]) -> npt.NDArray[np.int32]:
    """Return the cells behind some patches, or behind all."""
    for name in walls:
        if name not in volumes.patches:
            known = ", ".join(volumes.patches) or "none"
            raise MeshError(f"agglomeration: no patch {name!r}{did_you_mean(name, volumes.patches)} (patches: {known})")
    behind = volumes.faces[volumes.interior :, 0]
    if walls:
        behind = np.concatenate([behind[np.asarray(volumes.patches[name]) - volumes.cells] for name in walls])
    return np.unique(behind).astype(np.int32)
