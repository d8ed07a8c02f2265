"""The nodes of what a rank has, in numbers of the whole mesh."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from fluxloom.comm.rows import Places
from fluxloom.fv.geometry.volumes import ControlVolumes
from fluxloom.mesh.data.mesh import Ragged

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


def _numbers(volumes: ControlVolumes) -> tuple[Index, Index, Index]:
    """Return the numbers in the whole mesh of owned cells, boundary elements, and interior faces."""
    shared = volumes.shared
    elements, faces = np.empty(volumes.elements, dtype=np.int64), np.empty(len(volumes.faces), dtype=np.int64)
    elements[shared.element_order], faces[shared.face_order] = shared.elements.numbers, shared.faces.numbers
    outer = elements[volumes.cells :] - shared.cells.total
    return elements[: volumes.owned], outer, faces[: volumes.interior]
