"""The nodes of what one of several ranks has, in numbers of the whole mesh."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from fluxloom.comm.base import Comm
from fluxloom.fv.geometry.volume_tables import Places
from fluxloom.fv.geometry.volumes import ControlVolumes
from fluxloom.mesh.data.mesh import Ragged
from fluxloom.mesh.geometry.connectivity import Connectivity

if TYPE_CHECKING:
    from fluxloom.mesh.ranks.part import MeshPart

__all__ = ["NodeRows"]

Index = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class NodeRows:
    """Nodes of the owned cells, of boundary elements and of interior faces, in the order of `ControlVolumes`.

    Attributes
    ----------
    cells, outer, inner
        Rows of nodes.
    total
        Nodes of the mesh.
    """

    cells: Ragged
    outer: Ragged
    inner: Ragged
    total: int

    @classmethod
    def of_part(cls, part: MeshPart, volumes: ControlVolumes) -> NodeRows:
        """Return those of a part of a mesh that is divided with `fluxloom.fv.geometry.control_volumes.FLOW_MAPS`."""
        numbers = part.part("nodes").numbers

        def rows(name: str, over: str, wanted: Index) -> Ragged:
            table = part.rows(name)
            found = table.take(Places(part.part(over).numbers[: len(table)]).of(wanted))
            return Ragged(found.offsets, numbers[found.indices].astype(np.int32))

        cells, outer, inner = _numbers(volumes)
        return cls(
            rows("cell_nodes", "cells", cells), rows("boundary_nodes", "boundary", outer),
            rows("face_nodes", "faces", inner), part.part("nodes").total,
        )  # fmt: skip

    @classmethod
    def dealt(cls, links: Connectivity | None, volumes: ControlVolumes) -> NodeRows:
        """Return those of a mesh whose connectivity rank 0 has, and nobody else. Collective."""
        asked, comm = _numbers(volumes), volumes.shared.comm
        given = (None, None, None) if links is None else (links.cell_nodes, links.boundary_nodes, links.interior_nodes)
        cells, outer, inner = (_dealt(comm, whole, wanted) for whole, wanted in zip(given, asked, strict=True))
        return cls(cells, outer, inner, comm.broadcast(0 if links is None else links.n_points))


def _numbers(volumes: ControlVolumes) -> tuple[Index, Index, Index]:
    """Return the numbers in the whole mesh of owned cells, boundary elements, and interior faces."""
    shared = volumes.shared
    elements, faces = np.empty(volumes.elements, dtype=np.int64), np.empty(len(volumes.faces), dtype=np.int64)
    elements[shared.element_order], faces[shared.face_order] = shared.elements.numbers, shared.faces.numbers
    outer = elements[volumes.cells :] - shared.cells.total
    return elements[: volumes.owned], outer, faces[: volumes.interior]


def _dealt(comm: Comm, whole: Ragged | None, asked: Index) -> Ragged:
    """Return rows of a table that rank 0 has. Collective."""
    wanted = comm.exchange([asked, *[asked[:0]] * (comm.size - 1)])
    rows = [Ragged.from_counts(np.empty(0, np.int64), np.empty(0, np.int32))] * comm.size
    if whole is not None and comm.rank == 0:
        rows = [whole.take(numbers) for numbers in wanted]
    counts = comm.exchange([row.counts for row in rows])[0]
    return Ragged.from_counts(counts, comm.exchange([row.indices for row in rows])[0])
