"""What flows through sides: loads of patches, exact and convergent solutions, devices, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import fluxloom as fl
from fluxloom.core.errors import MeshError, SolverError
from fluxloom.fe.cells.elements import MAX_ORDER
from fluxloom.fe.cells.quadrature import gauss
from fluxloom.fe.poisson import LocalMatrices, MatrixFree
from fluxloom.fe.spaces import LagrangeSpace
from fluxloom.linalg import ConjugateGradient, Stop
from fluxloom.mesh.data.mesh import MeshData
from fluxloom.mesh.generate.boxes import box2d, box3d
from fluxloom.mesh.ranks.bind import bind
from tests.unit.fe.test_dofs import renumbered
from tests.unit.fe.test_poisson import long, matrices_of, run

Array = npt.NDArray[np.float64]

SLANT = np.array([[1.0, 0.3, -0.2], [0.1, 0.8, 0.25], [0.2, -0.15, 1.1]])
KAPPA = 3.0
ORDERS = [(shape, order) for shape in ("quad", "triangle", "hexahedron", "tetrahedron")
          for order in range(1, MAX_ORDER[shape] + 1)]  # fmt: skip


def slanted(shape: str) -> MeshData:
    """Return a perturbed mesh of a box that was sheared, its points and cells in no order."""
    data = {
        "quad": lambda: box2d(3, 2, perturb=0.3),
        "triangle": lambda: box2d(3, 2, kind="triangle", perturb=0.3),
        "hexahedron": lambda: box3d(2, 2, 2, perturb=0.3),
        "tetrahedron": lambda: box3d(2, 2, 2, kind="tetra", perturb=0.2),
    }[shape]()
    d = data.dimension
    return renumbered(replace(data, points=data.points @ SLANT[:d, :d].T), shape)


def space_on(shape: str, order: int, device: str = "reference", **options: Any) -> LagrangeSpace:
    """Return the space of some order on a slanted mesh."""
    return LagrangeSpace.on(bind(slanted(shape), fl.Context(device, **options)), order)


def outward(d: int) -> dict[str, Array]:
    """Return the unit normals of the patches of a sheared box: rows of the inverse of the shear."""
    rows = np.linalg.inv(SLANT[:d, :d])
    rows /= np.linalg.norm(rows, axis=1)[:, None]
    return {f"{'xyz'[a]}{end}": sign * rows[a] for a in range(d) for sign, end in ((-1.0, "min"), (1.0, "max"))}


def loads(space: LagrangeSpace) -> dict[str, Array]:
    """Return loads of every kind of flux, on top of a vector, with some values prescribed."""
    context, boundary = space.context, space.mesh.boundary
    operator = MatrixFree(space, fixed=space.dofs.on(["xmin"]))
    faces = np.arange(1.0, 1.0 + boundary.size)
    points = np.sin(7.0 * space.sides.places()).sum(axis=2)
    kinds: dict[str, Any] = {
        "number": 2.5,
        "scalar": context.scalar(-0.5, "q"),
        "faces": context.dat(boundary, faces, "faces"),
        "points": context.dat(boundary, points, "points"),
        "function": lambda x: np.sin(7.0 * x).sum(axis=1),
    }
    found = {}
    for name, flux in kinds.items():
        b = context.dat(space.rows, np.arange(float(space.rows.size)), "b")
        run(operator.flux(["ymax", "xmax"], flux, b))
        found[name] = b.read()
    return found


@pytest.mark.parametrize(("shape", "order"), [long(s, p) if s == "hexahedron" and p > 2 else (s, p) for s, p in ORDERS])
def test_linear_solutions_are_exact(shape: str, order: int) -> None:
    """One side prescribed, fluxes through all others: a linear function, on a mesh with slanting sides."""
    space = space_on(shape, order)
    d = space.mesh.dimension
    slope = np.arange(1.0, 1.0 + d)
    exact, fixed = 0.5 + space.dofs.points @ slope, space.dofs.on("ymin")
    operator, b = MatrixFree(space, KAPPA, fixed), space.context.dat(space.rows, name="b")
    for name, normal in outward(d).items():
        flux = float(KAPPA * (normal @ slope))
        run(operator.flux([name], (lambda x, q=flux: np.full(len(x), q)) if name == "xmax" else flux, b))
    assert not b.read()[fixed].any()
    whole = np.zeros((space.rows.size,) * 2)
    for nodes, matrix in zip(space.dofs.cells, KAPPA * matrices_of(space, np.ones(len(space.dofs.cells))), strict=True):
        whole[np.ix_(nodes, nodes)] += matrix
    right = b.read()[~fixed] - whole[np.ix_(~fixed, fixed)] @ exact[fixed]
    found = np.linalg.solve(whole[np.ix_(~fixed, ~fixed)], right)
    assert np.abs(found - exact[~fixed]).max() < 1e-12


@pytest.mark.parametrize(("shape", "order"), [("quad", 3), ("triangle", 2), ("hexahedron", 2), ("tetrahedron", 2)])
def test_loads_are_integrals(shape: str, order: int) -> None:
    """Shape functions add up to 1, so that loads add up to fluxes: of a number its area, of a function its integral."""
    space = space_on(shape, order)
    d, data = space.mesh.dimension, space.mesh.data
    operator, b = MatrixFree(space), space.context.dat(space.rows, name="b")
    area = np.linalg.norm(np.linalg.inv(SLANT[:d, :d])[1]) * np.linalg.det(SLANT[:d, :d])
    run(operator.flux("ymax", 2.0, b))
    assert b.read().sum() == pytest.approx(2.0 * area, rel=1e-13)
    away = np.ones(space.rows.size, dtype=bool)
    away[space.dofs.patches["ymax"]] = False
    assert not b.read()[away].any()
    b.write(np.zeros(space.rows.size))
    run(operator.flux(list(data.patches), lambda x: x @ outward(d)["xmax"], b))
    sides = space.sides
    points = sides.places()
    assert points.shape == (space.mesh.boundary.size, sides.rule.size, d)
    middle = {name: SLANT[:d, :d] @ ((np.sign(outward_axis(name, d)) + 1.0) / 2.0) for name in data.patches}
    sizes = {name: abs(outward_axis(name, d)) @ np.linalg.norm(np.linalg.inv(SLANT[:d, :d]), axis=1)
             * np.linalg.det(SLANT[:d, :d]) for name in data.patches}  # fmt: skip
    wanted = sum(sizes[name] * (middle[name] @ outward(d)["xmax"]) for name in data.patches)
    assert b.read().sum() == pytest.approx(wanted, rel=1e-12)


def outward_axis(name: str, d: int) -> Array:
    """Return the normal of a patch of the box before it was sheared."""
    out = np.zeros(d)
    out["xyz".index(name[0])] = 1.0 if name.endswith("max") else -1.0
    return out


def test_kinds_of_flux() -> None:
    """Points and the function they come from load alike; so do a number and the same number on each face."""
    space = space_on("quad", 2)
    found, start = loads(space), np.arange(float(space.rows.size))
    fixed = space.dofs.on(["xmin"])
    assert np.array_equal(found["points"], found["function"])
    assert np.allclose((found["number"] - start) * -0.2, found["scalar"] - start, rtol=0.0, atol=1e-14)
    for values in found.values():
        assert np.array_equal(values[fixed], start[fixed])
        assert np.abs(values - start).max() > 0.1
    operator, b = MatrixFree(space), space.context.dat(space.rows, name="b")
    run(operator.flux("xmax", lambda x: x[:, 1] ** 5, b, rule=gauss("line", 5)))
    run(operator.flux("xmax", lambda x: -(x[:, 1] ** 5), b, rule=gauss("line", 7)))
    assert np.abs(b.read()).max() < 1e-15


@pytest.mark.parametrize(
    ("shape", "order", "device"),
    [("quad", 2, "cpu"),
     pytest.param("quad", 2, "opencl", marks=[pytest.mark.opencl, pytest.mark.long]),
     pytest.param("tetrahedron", 2, "opencl", marks=[pytest.mark.opencl, pytest.mark.long]),
     *(pytest.param(shape, order, "cuda", marks=pytest.mark.cuda)
       for shape, order in (("quad", 4), ("triangle", 2), ("hexahedron", 2), ("tetrahedron", 2))),
     *(long(shape, order, "cpu") for shape, order in ORDERS if (shape, order) != ("quad", 2))],
)  # fmt: skip
def test_devices_agree(shape: str, order: int, device: str) -> None:
    """Each device finds the loads of plain Python."""
    wanted, found = loads(space_on(shape, order)), loads(space_on(shape, order, device, tuning=False))
    for name, values in wanted.items():
        assert np.abs(found[name] - values).max() < 1e-13 * np.abs(values).max(), name


def solution_error(order: int, n: int) -> float:
    """Return the error in L2 of ``u = e^x sin y``, which is harmonic, with its flux through two sides."""

    def exact(x: Array) -> Array:
        return np.exp(x[:, 0]) * np.sin(x[:, 1])

    space = LagrangeSpace.on(bind(box2d(n, n), fl.Context("reference")), order)
    fixed = space.dofs.on(["xmin", "ymin"])
    operator = LocalMatrices(space, fixed=fixed)
    f, b, u, g = (space.context.dat(space.rows, name=name) for name in "fbug")
    g.write(exact(space.dofs.points))
    run(operator.load(f, b, g))
    run(operator.flux("xmax", exact, b))
    run(operator.flux("ymax", lambda x: np.exp(x[:, 0]) * np.cos(x[:, 1]), b))
    ConjugateGradient(operator, b, u, stop=Stop(rtol=1e-12), interval=2).solve().require("u")
    return space.with_rule(gauss("quad", order + 3)).error(u, exact)


@pytest.mark.parametrize(("order", "n"), [(2, 2), long(1, 4), long(3, 2), long(4, 2)])
def test_order_of_accuracy(order: int, n: int) -> None:
    """Half the spacing divides the error in L2 by ``2^(p + 1)``."""
    coarse, fine = solution_error(order, n), solution_error(order, 2 * n)
    assert order + 0.85 < np.log2(coarse / fine) < order + 1.3


def test_wrong_fluxes_are_refused() -> None:
    """Messages say what is wanted."""
    space = space_on("quad", 1)
    context, operator = space.context, MatrixFree(space)
    b, flux = context.dat(space.rows, name="b"), operator.flux
    with pytest.raises(MeshError, match=r"no patch 'ymix'; did you mean 'ym"):
        flux(["ymix"], 1.0, b)
    for wrong in (
        float("nan"),
        "1",
        True,
        np.ones(3),
        context.dat(space.rows, name="q"),
        context.dat(space.mesh.cells),
    ):
        with pytest.raises(SolverError, match=r"a dat of shape \(\) or \(2,\) on Set\(boundary"):
            flux("xmax", wrong, b)  # type: ignore[arg-type]
    with pytest.raises(SolverError, match=r"np.full\(len\(x\), value\) is a constant"):
        flux("xmax", lambda _: 1.0, b)
    with pytest.raises(SolverError, match=r"for each of 4 points \(4, 2\), and it gives inf at \["):
        flux("xmax", lambda x: np.full(len(x), np.inf), b)
    with pytest.raises(SolverError, match=r"on the line, as gauss\('line', 3\) gives it, not Quadrature\(quad"):
        flux("xmax", 1.0, b, rule=gauss("quad", 2))
    with pytest.raises(SolverError, match=r"flux: scalars on Set\(dofs"):
        flux("xmax", 1.0, context.dat(space.mesh.nodes, name="v"))
