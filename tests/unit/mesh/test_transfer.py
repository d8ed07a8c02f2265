"""Values of one mesh at places of another: linear fields are exact, bounds hold, what is not covered is said."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest

from fluxloom.core.errors import MeshError
from fluxloom.mesh.data.mesh import MeshData
from fluxloom.mesh.generate.boxes import box2d, box3d
from fluxloom.mesh.geometry.transfer import CellSearch, Transfer

Array = npt.NDArray[np.float64]


def mixed() -> MeshData:
    """Return hexahedra beside prisms: these are halves of the hexahedra of one side."""
    box = box3d(4, 3, 3, perturb=0.2)
    hexa = box.cells["hexahedron"]
    cut = box.points[hexa].mean(axis=1)[:, 0] < 0.5
    low, high = hexa[cut][:, [0, 1, 2, 4, 5, 6]], hexa[cut][:, [0, 2, 3, 4, 6, 7]]
    columns = np.concatenate([low, high])
    return MeshData(box.points, {"hexahedron": hexa[~cut], "prism": columns})


MESHES: dict[str, Callable[[], MeshData]] = {
    "triangles": lambda: box2d(9, 7, (1, 1), "triangle", perturb=0.2),
    "quads": lambda: box2d(9, 7, (1, 1), "quad", perturb=0.2),
    "tetrahedra": lambda: box3d(5, 4, 6, (1, 1, 1), "tetra"),
    "hexahedra": lambda: box3d(5, 4, 6, perturb=0.2),
    "mixed": mixed,
}


def linear(places: Array) -> Array:
    return 1.0 + places @ np.arange(1.0, places.shape[1] + 1.0)


@pytest.mark.parametrize("name", MESHES)
def test_linear_fields(name: str) -> None:
    """In cells and at nodes, at random places: exact, and not beyond the values around where they are bounded."""
    mesh = MESHES[name]()
    search, places = CellSearch(mesh), np.random.default_rng(1).random((500, mesh.dimension))
    for nodal, at in ((False, search.centres), (True, mesh.points)):
        transfer, values = Transfer(search, places, nodal=nodal), linear(at)
        np.testing.assert_allclose(transfer(values), linear(places), rtol=1e-12)
        found, (low, high) = transfer(values, bounded=True), transfer.bounds(values)
        assert ((low <= found) & (found <= high)).all()
        assert not transfer.same.any()


@pytest.mark.parametrize("name", MESHES)
def test_the_cell_of_a_place(name: str) -> None:
    """A step from one cell to the next is where the cells meet: found for places in cells, from their corners."""
    mesh = MESHES[name]()
    search, rows = CellSearch(mesh), mesh.cell_nodes()
    rng = np.random.default_rng(2)
    middle = np.add.reduceat(mesh.points[rows.indices], rows.offsets[:-1]) / rows.counts[:, None]
    corner = mesh.points[rows.indices[rows.offsets[:-1] + rng.integers(0, rows.counts)]]
    cells, beyond = search.find(middle + 0.5 * (corner - middle))
    assert (cells == np.arange(mesh.n_cells)).mean() > 0.99  # faces of hexahedra are not plane
    assert beyond.max() < 1e-2


def test_the_same_mesh_in_another_order() -> None:
    """Each place has its own value, bit by bit."""
    search = CellSearch(box2d(6, 5, (1, 1), "triangle", perturb=0.2))
    order = np.random.default_rng(3).permutation(len(search.centres))
    values = np.random.default_rng(4).random(order.size)
    transfer = Transfer(search, search.centres[order] * (1.0 + 1e-15))
    assert transfer.all_same
    np.testing.assert_array_equal(transfer(values), values[order])
    twice = Transfer(search, search.centres[np.zeros(order.size, dtype=int)])
    assert twice.same.all()
    assert not twice.all_same


def test_what_is_not_covered() -> None:
    """An error with how many and where; or the nearest values. Curved walls are divided in other ways, and covered."""
    search = CellSearch(box2d(8, 8))
    places = np.array([[0.5, 0.5], [1.02, 0.5], [1.2, 0.25], [1.3, 0.75]])
    with pytest.raises(MeshError, match=r"does not cover 2 of the 4 cells .*, in \[1.2, 1.3\] x \[0.25, 0.75\]"):
        Transfer(search, places)
    found = Transfer(search, places, outside="nearest")
    assert found.outside.tolist() == [False, False, True, True]
    np.testing.assert_allclose(found(search.centres[:, 1])[2:], [0.3125, 0.8125], atol=0.13)
    with pytest.raises(MeshError, match="has 2 dimensions, the mesh of this run 3"):
        Transfer(search, np.zeros((1, 3)))


def test_thin_layers_at_a_curved_wall() -> None:
    """Cells a thousand times as long as thick, round a circle, to twice as many: each place is found in its layer."""
    def ring(around: int, layers: int) -> MeshData:
        angles = np.linspace(0.0, 2 * np.pi, around, endpoint=False)
        radii = 1.0 + 1e-4 * np.linspace(0.0, 1.0, layers + 1)
        points = np.concatenate([r * np.stack([np.cos(angles), np.sin(angles)], axis=1) for r in radii])
        k, j = (a.ravel() for a in np.meshgrid(np.arange(around), np.arange(layers)))
        after = (k + 1) % around
        quads = np.stack([j * around + k, (j + 1) * around + k, (j + 1) * around + after, j * around + after], axis=1)
        return MeshData(points, {"quad": quads.astype(np.int32)})

    coarse, fine = CellSearch(ring(128, 16)), CellSearch(ring(256, 16))
    layer = np.repeat(np.arange(16.0), 128)
    found = Transfer(coarse, fine.centres)(layer)
    assert np.isfinite(found).all()
    assert not Transfer(coarse, fine.centres).outside.any()
