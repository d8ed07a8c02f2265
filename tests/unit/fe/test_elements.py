"""Lagrange elements: the basis, its gradients, what it reproduces, and where its points lie."""

from __future__ import annotations

from itertools import product
from math import comb

import numpy as np
import pytest

from fluxloom.core.errors import SolverError
from fluxloom.fe.cells.elements import CELLS, MAX_ORDER, Lagrange
from fluxloom.mesh.data.elements import element

ALL = [Lagrange(shape, order) for shape, most in MAX_ORDER.items() for order in range(1, most + 1)]
SIMPLICES = ("triangle", "tetrahedron")

every = pytest.mark.parametrize("item", ALL, ids=lambda item: f"{item.shape}{item.order}")


def places(item: Lagrange, count: int = 12) -> np.ndarray:
    """Return places inside the reference cell, ``(count, d)``."""
    x = np.random.default_rng(7).random((count, item.dimension))
    return x / (1.0 + x.sum(axis=1, keepdims=True)) if item.shape in SIMPLICES else x


def degrees(item: Lagrange, order: int) -> list[tuple[int, ...]]:
    """Return the exponents of all monomials that an element of that order holds."""
    found = product(range(order + 1), repeat=item.dimension)
    return [powers for powers in found if item.shape not in SIMPLICES or sum(powers) <= order]


def monomial(x: np.ndarray, powers: tuple[int, ...]) -> np.ndarray:
    return np.prod(x ** np.array(powers), axis=1)


def slope(x: np.ndarray, powers: tuple[int, ...]) -> np.ndarray:
    """Return the gradient ``(m, d)`` of a monomial."""
    lower = [tuple(p - (j == k) for j, p in enumerate(powers)) for k in range(len(powers))]
    columns = [p * monomial(x, down) if p else np.zeros(len(x)) for p, down in zip(powers, lower, strict=True)]
    return np.stack(columns, axis=1)


# --------------------------------------------------------------------------------------------- the basis


@every
def test_each_function_is_one_at_its_own_point_and_zero_at_the_others(item: Lagrange) -> None:
    assert item.values(item.points) == pytest.approx(np.eye(item.size), abs=1e-14)


@every
def test_functions_have_the_sum_one_also_outside(item: Lagrange) -> None:
    x = np.vstack([places(item), places(item) + 0.5])
    assert item.values(x).shape == (24, item.size)
    assert item.values(x).sum(axis=1) == pytest.approx(1.0, abs=1e-11)
    assert item.gradients(x).sum(axis=1) == pytest.approx(0.0, abs=1e-10)


@every
def test_polynomials_of_the_order_and_their_gradients_are_exact(item: Lagrange) -> None:
    x = places(item)
    values, gradients = item.values(x), item.gradients(x)
    held = degrees(item, item.order)
    assert len(held) == item.size
    for powers in held:
        nodal = monomial(item.points, powers)
        assert values @ nodal == pytest.approx(monomial(x, powers), abs=1e-13), powers
        assert np.einsum("mnd,n->md", gradients, nodal) == pytest.approx(slope(x, powers), abs=2e-12), powers


@every
def test_a_polynomial_of_a_higher_order_is_not_held(item: Lagrange) -> None:
    x, powers = places(item), (item.order + 1,) + (0,) * (item.dimension - 1)
    assert np.abs(item.values(x) @ monomial(item.points, powers) - monomial(x, powers)).max() > 1e-4


@every
def test_gradients_agree_with_differences(item: Lagrange) -> None:
    x, step = places(item), 1e-5
    for axis in range(item.dimension):
        shift = step * np.eye(item.dimension)[axis]
        difference = (item.values(x + shift) - item.values(x - shift)) / (2 * step)
        assert item.gradients(x)[:, :, axis] == pytest.approx(difference, abs=1e-7)


# ------------------------------------------------------------------------------------ where points lie


@every
def test_sizes(item: Lagrange) -> None:
    p, d = item.order, item.dimension
    assert item.kind == element(CELLS[item.shape])
    assert item.size == (comb(p + d, d) if item.shape in SIMPLICES else (p + 1) ** d)
    assert item.points.shape == (item.size, d)
    assert item.corners == item.kind.n_nodes
    assert item.on_edges.shape == (len(item.kind.edges), p - 1)
    assert len(item.on_faces) == (len(item.kind.faces) if d == 3 else 0)
    numbers = [np.arange(item.corners), item.on_edges, item.on_faces, item.inside]
    assert np.concatenate([part.ravel() for part in numbers]).tolist() == list(range(item.size))


@every
def test_corners_turn_as_those_of_the_mesh(item: Lagrange) -> None:
    """Faces of the reference cell point outward by the right-hand rule when corners follow the mesh's order."""
    corners = item.points[: item.corners]
    assert sorted(set(corners.ravel())) == [0.0, 1.0]
    if item.dimension == 1:
        assert corners.tolist() == [[0.0], [1.0]]
    for face in item.kind.faces if item.dimension > 1 else ():
        a, b, c = (corners[face[k]] for k in (0, 1, -1))
        normal = np.cross(b - a, c - a) if item.dimension == 3 else np.array([(b - a)[1], -(b - a)[0]])
        assert normal @ (corners[list(face)].mean(axis=0) - corners.mean(axis=0)) > 0.0


@every
def test_points_of_edges_run_from_the_first_to_the_second_corner(item: Lagrange) -> None:
    part = np.arange(1, item.order)[:, None] / item.order
    for (first, second), numbers in zip(item.kind.edges, item.on_edges, strict=True):
        start, end = item.points[first], item.points[second]
        assert item.points[numbers] == pytest.approx(start + part * (end - start), abs=1e-15)


@pytest.mark.parametrize("order", [2, 3, 4])
def test_points_of_faces_of_a_hexahedron(order: int) -> None:
    """They are those inside the quad of this order, laid onto the corners of the face."""
    item, quad, bilinear = Lagrange("hexahedron", order), Lagrange("quad", order), Lagrange("quad", 1)
    shares = bilinear.values(quad.points[quad.inside])
    for face, numbers in zip(item.kind.faces, item.on_faces, strict=True):
        assert item.points[numbers] == pytest.approx(shares @ item.points[list(face)], abs=1e-15)


@pytest.mark.parametrize("shape", ["quad", "hexahedron"])
def test_points_inside_go_first_along_x(shape: str) -> None:
    inner = Lagrange(shape, 3)
    grid = [place[::-1] for place in product((1, 2), repeat=inner.dimension)]
    assert 3 * inner.points[inner.inside] == pytest.approx(np.array(grid), abs=1e-15)


def test_basis_of_an_edge_is_zero_on_the_others() -> None:
    """Cells that share an edge agree on it: on a side only its own functions differ from 0."""
    item = Lagrange("triangle", 2)
    on_bottom = np.column_stack([np.linspace(0.0, 1.0, 7), np.zeros(7)])
    bottom = [0, 1, *item.on_edges[0]]
    others = np.setdiff1d(np.arange(item.size), bottom)
    assert np.abs(item.values(on_bottom)[:, others]).max() < 1e-15
    line = Lagrange("line", 2).values(on_bottom[:, :1])
    assert item.values(on_bottom)[:, bottom] == pytest.approx(line, abs=1e-15)


# ---------------------------------------------------------------------------------- values and errors


def test_elements_are_values_and_their_arrays_read_only() -> None:
    item = Lagrange("quad", 2)
    assert item == Lagrange("quad", 2) != Lagrange("quad", 3)
    assert len({item, Lagrange("quad", 2)}) == 1
    for array in (item.points, item.on_edges, item.on_faces, item.inside, item.levels):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0


@pytest.mark.parametrize(
    ("shape", "order", "text"),
    [
        ("hexahedra", 1, "unknown shape 'hexahedra' of a cell; did you mean 'hexahedron'"),
        ("tetra", 1, "did you mean 'tetrahedron'"),
        ("prism", 1, "known: line, quad, hexahedron, triangle, tetrahedron"),
        ("quad", 0, "a quad has the orders 1 to 4, not 0"),
        ("hexahedron", 5, "a hexahedron has the orders 1 to 4, not 5"),
        ("triangle", 3, "a triangle has the orders 1 to 2, not 3"),
        ("tetrahedron", True, "not True"),
        ("line", 2.0, "not 2.0"),
    ],
)
def test_wrong_shapes_and_orders(shape: str, order: int, text: str) -> None:
    with pytest.raises(SolverError, match=text):
        Lagrange(shape, order)


@pytest.mark.parametrize("x", [np.zeros((3, 3)), np.zeros(2), np.zeros((2, 2, 2))], ids=str)
def test_places_of_a_wrong_shape(x: np.ndarray) -> None:
    item = Lagrange("quad", 2)
    with pytest.raises(SolverError, match=r"places of the shape \(m, 2\) are wanted"):
        item.values(x)
    with pytest.raises(SolverError, match="are wanted"):
        item.gradients(x)
