"""Control volumes of one rank from what it knows of them in global numbers: cells, faces between them, and others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fluxloom.comm.base import Comm
from fluxloom.dsl.parts import Part
from fluxloom.fv.volume_tables import Beyond, CellTable, FaceShapes, FaceTable, OuterTable, Places, taken
from fluxloom.fv.volumes import ControlVolumes, SharedVolumes, Wrapped

__all__ = ["Totals", "assemble"]

Array = npt.NDArray[np.float64]
Index = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Totals:
    """Cells, faces between cells and boundary faces of all ranks; faces from ``joined`` on may lead to images."""

    cells: int
    faces: int
    outer: int
    joined: int


def assemble(
    comm: Comm,
    near: CellTable,
    faces: FaceTable,
    outer: OuterTable,
    patches: Mapping[str, range],
    totals: Totals,
    beyond: Beyond | None = None,
    *,
    ways: Array | None = None,
    shapes: FaceShapes | None = None,
) -> ControlVolumes:
    """Return the control volumes in local numbers: own cells, those of the halo, boundary elements. Collective.

    Parameters
    ----------
    comm
        The ranks.
    near
        The cells of this rank, those across their faces, and those whose images they have beyond, ascending.
    faces
        Those between two cells of which this rank has one, ascending.
    outer, patches
        Boundary faces of its cells, ascending, and patch to global numbers of boundary faces.
    totals
        What all ranks have.
    beyond
        Boundary faces that have images of cells beyond, of no patch; all ranks give them, or none.
    ways : (n, d)
        Across the faces from ``totals.joined`` on, from the first cell to the second, or to its image.
    shapes
        Of the faces, then of the boundary faces, where they are known.
    """
    shared = _shared(comm, near, faces, outer, totals, beyond)
    cells, table = shared.cells, Places(shared.cells.numbers)
    whole, behind = taken(near, near.place(cells.numbers)), table.of(outer.cell)
    edge = cells.stored + np.arange(outer.number.size)
    areas = np.concatenate([faces.area, outer.area])
    turned = None if beyond is None else beyond.turned(edge, outer, table.of(beyond.images.partner))
    spans = {
        name: range(*(cells.stored + int(np.searchsorted(outer.number, bound)) for bound in (span.start, span.stop)))
        for name, span in patches.items()
    }
    centres = np.concatenate([whole.centre, outer.centre])
    table_of_faces = np.empty((len(areas), 2), dtype=np.int64)
    for side, (inner, other) in enumerate(((faces.first, behind), (faces.second, edge))):
        table_of_faces[: inner.size, side], table_of_faces[inner.size :, side] = table.of(inner), other
    across = np.empty_like(areas)
    for axis, centre in enumerate(centres.T):
        np.subtract(centre[table_of_faces[:, 1]], centre[table_of_faces[:, 0]], out=across[:, axis])
    arms = np.concatenate([faces.arm, across[faces.number.size :]])
    if beyond is not None and turned is not None:
        arms[faces.number.size + turned.elements - cells.stored] = beyond.images.arm
    some = range(int(np.searchsorted(faces.number, totals.joined)), faces.number.size)
    if ways is not None:
        across[some.start : some.stop] = ways
    size = np.sqrt(sum(column * column for column in areas.T))
    spacing = np.abs(np.einsum("ij,ij->i", areas, across)) / size
    wrapped = Wrapped.of(centres, table_of_faces, across, some)
    moments, warps = (None, None) if shapes is None else (shapes.moments, shapes.warps)
    return ControlVolumes(whole.volume, centres, table_of_faces, areas, spacing, arms, spans, wrapped, shared, turned,
                          moments, warps)  # fmt: skip


def _shared(
    comm: Comm,
    near: CellTable,
    faces: FaceTable,
    outer: OuterTable,
    totals: Totals,
    beyond: Beyond | None,
) -> SharedVolumes:
    """Return the parts of cells, elements and faces. Collective.

    A face is in the interior if both cells are owned, a cell if all its faces are; boundary elements are, but those
    that are images of cells of other ranks: these, their faces and the cells behind them are not.
    """
    first, second = (near.owner[near.place(side)] for side in (faces.first, faces.second))
    crossing = (first != comm.rank) | (second != comm.rank)
    apart, partners = _apart(comm, near, outer, beyond)
    touched = np.zeros(near.number.size, dtype=bool)
    for numbers in (faces.first[crossing], faces.second[crossing], outer.cell[apart], partners):
        touched[near.place(numbers)] = True
    own = near.owner == comm.rank
    inside, rest, others = near.number[own & ~touched], near.number[own & touched], taken(near, touched & ~own)
    cells = Part.of_reads(comm, inside, rest, others.number, others.owner, totals.cells)
    near_by, away_by = outer.number[~apart], outer.number[apart]
    elements = Part.of_reads(
        comm, np.concatenate([inside, totals.cells + near_by]), np.concatenate([rest, totals.cells + away_by]),
        others.number, others.owner, totals.cells + totals.outer,
    )  # fmt: skip
    edge = np.arange(outer.number.size)
    order = cells.stored + edge
    ends = np.split(np.arange(cells.stored), [inside.size, cells.owned])
    element_order = np.concatenate([ends[0], order[~apart], ends[1], order[apart], ends[2]])
    mine = first == comm.rank
    within, across, away = (np.flatnonzero(chosen) for chosen in (mine & ~crossing, mine & crossing, ~mine))
    away = away[np.argsort(first[away], kind="stable")]
    part = Part.of_reads(
        comm, np.concatenate([faces.number[within], totals.faces + near_by]),
        np.concatenate([faces.number[across], totals.faces + away_by]),
        faces.number[away], first[away], totals.faces + totals.outer,
    )  # fmt: skip
    order = crossing.size + edge
    face_order = np.concatenate([within, order[~apart], across, order[apart], away])
    return SharedVolumes(comm, cells, elements, part, element_order, face_order)


def _apart(
    comm: Comm, near: CellTable, outer: OuterTable, beyond: Beyond | None
) -> tuple[npt.NDArray[np.bool_], Index]:
    """Return which boundary elements are images of cells of other ranks, and these cells."""
    apart = np.zeros(outer.number.size, dtype=bool)
    if beyond is None:
        return apart, np.empty(0, dtype=np.int64)
    away = near.owner[near.place(beyond.images.partner)] != comm.rank
    apart[np.searchsorted(outer.number, beyond.images.number[away])] = True
    return apart, beyond.images.partner[away]
