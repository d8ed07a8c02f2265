"""Control volumes that are extrusions, and the pressure of a flow in them by transforms."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.core.errors import MeshError
from fluxloom.fv.geometry.control_volumes import control_volumes
from fluxloom.fv.geometry.extrusion import extrusion_of
from fluxloom.fv.geometry.volumes import ControlVolumes
from fluxloom.fv.incompressible.boundary import Boundary, FlowConditions, NoSlip, Outflow
from fluxloom.fv.incompressible.matrices import FlowMatrices
from fluxloom.linalg import ConjugateGradient, Jacobi, SparseMatrix, Stop
from fluxloom.mesh.generate.boxes import box3d
from fluxloom.solvers.incompressible.flow import Incompressible
from fluxloom.solvers.incompressible.pressure import ConjugateGradients, Fourier

SIDES = {2: ("zmin", "zmax"), 1: ("ymin", "ymax"), 0: ("xmin", "xmax")}


def volumes(
    nz: int = 4, kind: str = "hexahedron", axis: int = 2, more: tuple[tuple[str, str], ...] = (), **choices: Any
) -> ControlVolumes:
    """Return the control volumes of a box, periodic along an axis."""
    sizes = {2: (5, 3, nz), 1: (5, nz, 3), 0: (nz, 5, 3)}[axis]
    mesh = box3d(*sizes, (1.0, 0.7, 1.3), kind=kind, **choices)
    return control_volumes(mesh, [SIDES[axis], *more])


@pytest.mark.parametrize("planes", [1, 2, 3, 6])
@pytest.mark.parametrize(("kind", "axis"), [("hexahedron", 2), ("prism", 2), ("hexahedron", 1), ("hexahedron", 0)])
def test_columns_of_cells(kind: str, axis: int, planes: int) -> None:
    cv = volumes(planes, kind, axis)
    found = extrusion_of(cv)
    assert (found.axis, found.planes) == (axis, planes)
    length = (1.0, 0.7, 1.3)[axis]
    assert found.spacing == pytest.approx(length / planes)
    assert found.areas.sum() == pytest.approx(1.0 * 0.7 * 1.3 / length)
    np.testing.assert_array_equal(np.sort(found.order.ravel()), np.arange(cv.cells))
    centres = cv.centres[found.order]
    np.testing.assert_allclose(np.diff(centres[..., axis], axis=1), found.spacing)
    across = np.delete(centres, axis, axis=2)
    np.testing.assert_allclose(across, np.broadcast_to(across[:, :1], across.shape), atol=1e-12)


@pytest.mark.parametrize("planes", [1, 2, 3, 6])
@pytest.mark.parametrize("free", [False, True])
@pytest.mark.parametrize("kind", ["hexahedron", "prism"])
def test_pressure_of_the_whole_matrix(kind: str, free: bool, planes: int) -> None:
    cv = volumes(planes, kind, axes=((lambda s: s**1.5), None, None))
    sides: dict[str, Boundary] = dict.fromkeys(cv.patches, NoSlip())
    matrix = FlowMatrices(cv, FlowConditions.of(cv, sides | {"xmax": Outflow() if free else NoSlip()})).poisson
    context = fl.Context("cpu", threads=1, tuning=False)
    stop = Stop(rtol=1e-11)
    whole = SparseMatrix.from_scipy(context, matrix)
    right = np.random.default_rng(1).standard_normal(cv.cells)
    b, x, y = (context.dat(whole.rows, name=name, shape=()) for name in "bxy")
    b.write(right - right.mean())
    null = "none" if free else "constant"
    ConjugateGradient(whole, b, x, preconditioner=Jacobi(), stop=stop, nullspace=null).solve().require()
    fast = extrusion_of(cv).poisson(matrix, b, y, stop=stop)
    assert fast.nullspace == null
    assert fast.solve().converged
    np.testing.assert_allclose(y.read(), x.read(), rtol=1e-7, atol=1e-9 * np.abs(x.read()).max())


def test_in_place_of_the_solver_of_a_flow() -> None:
    """A flow whose pressure is solved by transforms is the same flow."""
    cv = volumes(4, kind="prism", more=(("xmin", "xmax"),))
    flows = []
    for fast in (False, True):
        context = fl.Context("cpu", threads=1, tuning=False)
        walls = {"ymin": NoSlip(), "ymax": NoSlip((1.0, 0.0, 0.0))}
        method = Fourier() if fast else ConjugateGradients()
        flow = Incompressible(context, cv, 0.05, walls, stop=Stop(rtol=1e-10), pressure=method)
        flow.initialise(lambda at: np.sin(7 * at[:, [1, 2, 0]]))
        for _ in range(3):
            assert flow.step(0.01).converged
        flows.append(flow.velocity())
    np.testing.assert_allclose(flows[1], flows[0], rtol=1e-6, atol=1e-7)


def test_meshes_that_are_none() -> None:
    for cv, said in (
        (volumes(4, axes=(None, None, lambda s: s**2)), "the distances of planes differ"),
        (volumes(4, kind="tetra"), "faces neither along it nor across it"),
        (volumes(4, perturb=0.2), "faces neither along it nor across it"),
        (control_volumes(box3d(3, 3, 3)), "a boundary across it"),
    ):
        with pytest.raises(MeshError, match=f"no uniform periodic extrusion: along axis 2 .*{said}"):
            extrusion_of(cv, 2)
    with pytest.raises(MeshError, match=r"along axis 2 .*; along axis 1 .*; along axis 0 there is a boundary"):
        extrusion_of(control_volumes(box3d(3, 3, 3)))
    with pytest.raises(MeshError, match="axis is 0, 1 or 2, not 3"):
        extrusion_of(volumes(), 3)
    cv = volumes(4)
    changed = cv.volumes.copy()
    changed[7] *= 1.1
    with pytest.raises(MeshError, match="volumes differ"):
        extrusion_of(replace(cv, volumes=changed), 2)


def test_matrices_that_are_none() -> None:
    cv = volumes(4)
    found = extrusion_of(cv)
    matrix = FlowMatrices(cv, FlowConditions.of(cv, dict.fromkeys(cv.patches, NoSlip()))).poisson.tolil()
    matrix[17, 17] += 1.0
    with pytest.raises(MeshError, match="the row of cell 17 of the matrix is not that of the plane, repeated"):
        found.plane(matrix)
    with pytest.raises(MeshError, match="a matrix of 60 cells is wanted"):
        found.plane(matrix[:5, :5])
