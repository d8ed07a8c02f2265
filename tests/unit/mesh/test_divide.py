"""Meshes of other cells as triangles and tetrahedra: the same points, volume and patches, neighbours that fit."""

from __future__ import annotations

import numpy as np
import pytest

from fluxloom.core.errors import MeshError
from fluxloom.mesh.data.mesh import MeshData, PatchFaces, Polyhedra
from fluxloom.mesh.generate.boxes import box2d, box3d
from fluxloom.mesh.geometry.divide import divided
from fluxloom.mesh.quality.check import check


def boxes() -> list[MeshData]:
    plane = [box2d(5, 4, kind=kind, perturb=0.2) for kind in ("quad", "triangle")]
    kinds = ("hexahedron", "prism", "pyramid", "tetra")
    return plane + [box3d(3, 4, 2, kind=kind, perturb=0.1) for kind in kinds]


def mixed() -> MeshData:
    """A pentagon, a quad and a triangle."""
    points = np.array([[0, 0], [1, 0], [1, 1], [0.5, 1.5], [0, 1], [2, 0], [2, 1], [1.5, 1.5]], dtype=float)
    cells = {"polygon5": np.array([[0, 1, 2, 3, 4]]), "quad": np.array([[5, 6, 2, 1]])}
    cells["triangle"] = np.array([[2, 6, 7]])
    edges = np.array([[0, 1], [1, 5], [5, 6], [6, 7], [7, 2], [2, 3], [3, 4], [4, 0]])
    return MeshData(points, cells, {"all": PatchFaces({"line": edges})})


def measure(mesh: MeshData) -> np.ndarray:
    """Return the volumes of the cells of a divided mesh, with signs."""
    (block,) = mesh.cells.values()
    x = mesh.points[block]
    return np.linalg.det(x[:, 1:] - x[:, :1]) / (2 if mesh.dimension == 2 else 6)


@pytest.mark.parametrize("mesh", [*boxes(), mixed()], ids=lambda mesh: "-".join(mesh.cells))
def test_cells_fit(mesh: MeshData) -> None:
    """`check` finds faces that do not meet, cells inside out, and patches that are none of the boundary."""
    found = divided(mesh)
    check(found)
    assert list(found.cells) == [{2: "triangle", 3: "tetra"}[mesh.dimension]]
    assert found.points is mesh.points
    assert list(found.patches) == list(mesh.patches)
    volumes = measure(found)
    assert volumes.min() > 0.0
    assert volumes.sum() == pytest.approx(2.5 if "polygon5" in mesh.cells else 1.0)
    assert (found is mesh) == (list(mesh.cells) == list(found.cells))


def test_messages_name_the_cell_that_was_divided() -> None:
    found = divided(box3d(2, 2, 2, kind="hexahedron"))
    assert "tetra element 1" in found.locate_cell(11)
    assert found.n_cells == 48


def test_polyhedra_are_refused() -> None:
    from fluxloom.mesh.geometry.dual import dual

    mesh = dual(box3d(2, 2, 2, kind="tetra"))
    assert isinstance(mesh.polyhedra, Polyhedra)
    with pytest.raises(MeshError, match="polyhedra are not divided into tetrahedra"):
        divided(mesh)
