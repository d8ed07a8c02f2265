"""Sides of sectors of a divided mesh: what is beyond the faces of one rank, with partners that others may own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from fluxloom.comm.base import Comm
from fluxloom.fv.control_volumes import Turned
from fluxloom.fv.sectors import Sector, Side, check_sectors, joined
from fluxloom.fv.volume_tables import CellTable, ImageTable, OuterTable, chain_tables, taken
from fluxloom.mesh.rows import together

__all__ = ["Beyond", "shared_sectors"]

Array = npt.NDArray[np.float64]
Index = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Beyond:
    """Boundary faces of this rank with images beyond, and the rotations ``(m, d, d)`` of all ranks."""

    images: ImageTable
    rotations: Array

    def turned(self, edge: Index, outer: OuterTable, cells: Index) -> Turned:
        """Return them by the numbers of this rank.

        Parameters
        ----------
        edge, outer
            Numbers of the boundary elements, and their faces, ascending.
        cells
            Number of the partner of each image.
        """
        place = np.searchsorted(outer.number, self.images.number)
        return Turned(edge[place], cells, self.images.which, self.rotations)


def shared_sectors(
    comm: Comm, sectors: Sequence[Sector], patches: Mapping[str, range], outer: OuterTable, known: CellTable
) -> tuple[Beyond, OuterTable, CellTable]:
    """Return what is beyond the sides of sectors, boundary faces with their geometry, and the cells behind all sides.

    Faces of these patches are known to every rank while they are matched, as those of periodic ones are; so each finds
    the same partners and the same rotation as one rank alone. Collective.

    Parameters
    ----------
    comm
        The ranks.
    sectors, patches
        Pairs of patches, and patch to global numbers of boundary faces.
    outer
        Boundary faces of this rank's cells, ascending.
    known
        The cells behind them at least, ascending.

    Raises
    ------
    MeshError
        On every rank, see `fluxloom.fv.sectors.sector_volumes`.
    """
    together(comm, lambda: check_sectors(patches, sectors))
    faces, cells = _gathered(comm, sectors, patches, outer, known)
    centre, area = outer.centre.copy(), outer.area.copy()
    tables: list[ImageTable] = []
    rotations: list[Array] = []
    for sector in sectors:
        spans = [patches[name] for name in (sector.first, sector.second)]
        rows = [np.arange(*np.searchsorted(faces.number, (span.start, span.stop))) for span in spans]
        first, second = (Side(faces.area[row], faces.centre[row], cells.centre[row]) for row in rows)
        for side, found in enumerate(together(comm, lambda s=sector, a=first, b=second: joined(s, a, b))):
            own, partner = rows[side][found.places], rows[1 - side][found.partners]
            mine = np.flatnonzero(cells.owner[own] == comm.rank)
            number = faces.number[own[mine]]
            place = np.searchsorted(outer.number, number)
            centre[place], area[place] = found.centres[mine], found.areas[mine]
            which = np.full(mine.size, len(rotations))
            tables.append(ImageTable(number, cells.number[partner[mine]], which, found.arms[mine]))
            rotations.append(found.rotation)
    beyond = Beyond(chain_tables(tables), np.stack(rotations))
    return beyond, replace(outer, area=area, centre=centre), cells


def _gathered(
    comm: Comm, sectors: Sequence[Sector], patches: Mapping[str, range], outer: OuterTable, known: CellTable
) -> tuple[OuterTable, CellTable]:
    """Return the faces of all ranks in the patches of sectors, ascending, and the cell behind each."""
    kept = np.zeros(outer.number.size, dtype=bool)
    for span in (patches[name] for sector in sectors for name in (sector.first, sector.second)):
        kept |= (outer.number >= span.start) & (outer.number < span.stop)
    mine = taken(outer, np.flatnonzero(kept))
    items = comm.allgather((mine, taken(known, known.place(mine.cell))))
    faces, cells = chain_tables([item[0] for item in items]), chain_tables([item[1] for item in items])
    order = np.argsort(faces.number)
    return taken(faces, order), taken(cells, order)
