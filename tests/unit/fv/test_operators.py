"""Operators that preserve symmetries: identities to round-off on every kind of cell."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.sparse.linalg import lsqr

from fluxloom.core.errors import MeshError
from fluxloom.fv.geometry.control_volumes import control_volumes
from fluxloom.fv.incompressible.operators import Operators
from fluxloom.mesh.data.mesh import MeshData
from fluxloom.mesh.generate.boxes import box2d, box3d

EPS = 1e-13
PERIODIC = {"walls": (), "x": (("xmin", "xmax"),), "xy": (("xmin", "xmax"), ("ymax", "ymin"))}


def mesh_of(kind: str) -> MeshData:
    if kind in ("quad", "triangle"):
        return box2d(6, 5, kind=kind, perturb=0.3, seed=1)
    sides = {"hexahedron": (4, 3, 3), "tetra": (3, 2, 2), "prism": (3, 3, 2), "pyramid": (2, 2, 2)}[kind]
    return box3d(*sides, kind=kind, perturb=0.2 if kind in ("hexahedron", "tetra") else 0.0, seed=2)


KINDS = ("quad", "triangle", "hexahedron", "tetra", "prism", "pyramid")


@pytest.fixture(params=[f"{kind}-{sides}" for kind in KINDS for sides in PERIODIC], scope="module")
def case(request: pytest.FixtureRequest) -> Operators:
    kind, sides = request.param.split("-")
    return Operators(control_volumes(mesh_of(kind), PERIODIC[sides]))


def solenoidal(ops: Operators, through: bool = False) -> np.ndarray:
    """Return a velocity at the faces, random but for its divergence; ``through``: also through the boundary."""
    cv = ops.volumes
    u = np.random.default_rng(0).standard_normal(len(cv.faces))
    free = np.arange(u.size) < (u.size if through else cv.interior)
    u[~free] = 0.0
    u[free] -= lsqr(csr_array(ops.divergence[:, free]), ops.divergence @ u, atol=1e-15, btol=1e-15, iter_lim=5000)[0]
    assert np.abs(ops.divergence @ u).max() < 1e-11
    return u


def inner(ops: Operators, matrix: csr_array) -> np.ndarray:
    """Return the columns of the cells: what is left where boundary values are zero."""
    return matrix[:, : ops.volumes.cells].toarray()


def behind(ops: Operators) -> csr_array:
    """Return the matrix that gives boundary elements the value of their cell, ``(elements, cells)``."""
    cv = ops.volumes
    column = np.concatenate([np.arange(cv.cells), cv.faces[cv.interior :, 0]])
    return csr_array((np.ones(cv.elements), (np.arange(cv.elements), column)), shape=(cv.elements, cv.cells))


def largest(matrix: np.ndarray | csr_array) -> float:
    return float(np.abs(matrix).max())


def test_convection_is_skew(case: Operators) -> None:
    convection = inner(case, case.from_entries(case.convection_map @ solenoidal(case)))
    assert largest(convection) > 1e-3
    assert largest(convection + convection.T) < 1e-11


def test_convection_of_a_constant(case: Operators) -> None:
    convection = case.from_entries(case.convection_map @ solenoidal(case, through=True))
    assert np.abs(convection @ np.full(case.volumes.elements, 3.0)).max() < 1e-10


def test_diffusion_is_symmetric_and_positive(case: Operators) -> None:
    viscosity = np.random.default_rng(1).random(len(case.volumes.faces)) + 0.1
    whole = case.from_entries(case.diffusion_map @ viscosity)
    diffusion = inner(case, whole)
    scale = largest(diffusion)
    assert largest(diffusion - diffusion.T) < EPS * scale
    least = np.linalg.eigvalsh(diffusion).min()
    assert least > (0 if case.volumes.patches else -1e-12 * scale)
    assert np.abs(whole @ np.ones(case.volumes.elements)).max() < 1e-12 * scale


def test_gradient_is_the_negative_transpose_of_divergence(case: Operators) -> None:
    for k in range(case.volumes.dimension):
        pressure = (case.gradient(k) @ behind(case)).toarray() * case.volumes.volumes[:, None]
        velocity = inner(case, case.cell_divergence(k))
        assert largest(pressure + velocity.T) < EPS
        assert largest(velocity) > 1e-3 or case.volumes.patches == {}


def test_laplacian(case: Operators) -> None:
    neumann = (case.laplacian @ behind(case)).toarray()
    scale = largest(neumann)
    assert largest(neumann - neumann.T) < EPS * scale
    assert np.abs(neumann.sum(axis=1)).max() < 1e-12 * scale
    assert np.linalg.eigvalsh(neumann).max() < 1e-11 * scale
    diffusion = case.from_entries(case.diffusion_map @ np.ones(len(case.volumes.faces)))
    assert largest(diffusion + case.laplacian) < EPS * scale


def test_maps_are_direct_assembly(case: Operators) -> None:
    cv = case.volumes
    u, nu = np.random.default_rng(2).standard_normal((2, len(cv.faces)))
    convection, diffusion = np.zeros((2, cv.cells, cv.elements))
    for f, (a, b) in enumerate(cv.faces):
        area, interior = cv.area[f], f < cv.interior
        for i, j, sign in ((a, b, 1.0), (b, a, -1.0))[: 2 if interior else 1]:
            convection[i, i] += sign * 0.5 * area * u[f] if interior else 0.0
            convection[i, j] += sign * area * u[f] * (0.5 if interior else 1.0)
            diffusion[i, i] += nu[f] * area / cv.spacing[f]
            diffusion[i, j] -= nu[f] * area / cv.spacing[f]
    assert largest(case.from_entries(case.convection_map @ u).toarray() - convection) < EPS * largest(convection)
    assert largest(case.from_entries(case.diffusion_map @ nu).toarray() - diffusion) < EPS * largest(diffusion)
    assert case.convection_map.nnz <= 4 * cv.interior + len(cv.faces) - cv.interior


def test_linear_fields_on_regular_cells() -> None:
    cv = control_volumes(box3d(4, 3, 5, lengths=(2.0, 1.0, 1.5)))
    ops = Operators(cv)
    slope = np.array([0.3, -1.2, 2.0])
    field = cv.centres @ slope + 0.7
    for k in range(3):
        assert np.abs(ops.gradient(k) @ field - slope[k]).max() < 1e-12
    assert np.abs(ops.normal_gradient @ field - cv.normals @ slope).max() < 1e-12
    assert np.abs(ops.laplacian @ field).max() < 1e-12


def test_eigenvalues_of_a_periodic_box() -> None:
    """Those of a ring of cells are ``2 (1 - cos(2 pi k / n)) / h^2``."""
    n = 12
    cv = control_volumes(box2d(n, 1), (("xmin", "xmax"), ("ymin", "ymax")))
    assert cv.elements == cv.cells == n
    found = np.linalg.eigvalsh(-Operators(cv).laplacian.toarray() / cv.volumes[:, None])
    wanted = np.sort(2 * (1 - np.cos(2 * np.pi * np.arange(n) / n))) * n * n
    assert np.allclose(found, wanted, atol=1e-10 * n * n)


def test_patches_and_faces() -> None:
    cv = control_volumes(box2d(4, 3), [("ymin", "ymax")])
    assert (cv.cells, cv.elements, cv.interior) == (12, 18, 3 * 3 + 4 * 2 + 4)
    assert list(cv.patches) == ["xmin", "xmax"]
    for name, x in (("xmin", 0.0), ("xmax", 1.0)):
        assert np.allclose(cv.centres[list(cv.patches[name]), 0], x)
    assert np.allclose(np.sort(cv.spacing)[:6], 0.125)
    assert np.array_equal(cv.faces[cv.interior :, 1], np.arange(12, 18))


@pytest.mark.parametrize(
    ("periodic", "message"),
    [
        ([("xmin", "xmxa")], "no patch 'xmxa'.*did you mean 'xmax'"),
        ([("xmin", "xmax"), ("xmax", "ymin")], "patch 'xmax' is named twice"),
        ([("xmin", "ymin")], "'xmin' and 'ymin' have 3 and 4 faces"),
        (["xmin"], "pairs of patches are wanted, not 'xmin'"),
    ],
)
def test_wrong_periodic_patches(periodic: list, message: str) -> None:
    with pytest.raises(MeshError, match=message):
        control_volumes(box2d(4, 3), periodic)


def test_periodic_patches_that_do_not_match() -> None:
    with pytest.raises(MeshError, match=r"periodic patches 'xmin' and 'ymin': moved by .* away from its partner"):
        control_volumes(box2d(3, 3), [("xmin", "ymin")])
