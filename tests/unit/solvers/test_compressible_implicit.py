"""Implicit steps of compressible flow: the linearisation, sweeps through it, Newton's method, devices, errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.core.errors import SolverError
from fluxloom.dsl.declare.dats import Dat
from fluxloom.dsl.run.loop import Loop
from fluxloom.fv.compressible.boundary import BoundaryCondition, FarField, PressureOutlet, SlipWall, TotalInlet
from fluxloom.fv.compressible.fluxes import Roe
from fluxloom.fv.compressible.gas import ConstantViscosity, Gas
from fluxloom.fv.compressible.implicit import lessen
from fluxloom.fv.compressible.spalart_allmaras import SpalartAllmaras
from fluxloom.fv.geometry.control_volumes import control_volumes
from fluxloom.mesh import box2d
from fluxloom.solvers.compressible.flow import CompressibleFlow
from fluxloom.solvers.compressible.implicit import Implicit, SteadySteps
from fluxloom.solvers.compressible.scheme import CompressibleScheme

Array = np.ndarray
FAST = np.array([1.0, 2.4, 1.8, 1.0 / 1.4])
"""Faster than sound along both axes, none of the waves so slow that it is rounded."""


def context(device: str = "cpu") -> fl.Context:
    return fl.Context(device, threads=1, tuning=False)


def uniform(turbulent: bool = False) -> SteadySteps:
    """A uniform flow in a box of 3 x 2 cells, of first order."""
    cv = control_volumes(box2d(3, 2, (1.5, 1.0)))
    far = FarField(FAST.tolist(), turbulence=0.3)
    scheme = CompressibleScheme(order=1, flux=Roe(entropy_fix=0.0), turbulence=SpalartAllmaras() if turbulent else None)
    gas = Gas(constant=1.0, viscosity=ConstantViscosity(0.05) if turbulent else None)
    distance = np.linspace(0.4, 0.9, cv.cells) if turbulent else None
    flow = CompressibleFlow(context(), cv, dict.fromkeys(cv.patches, far), gas, scheme, distance)
    flow.start(np.append(FAST, [0.3] * turbulent))
    return SteadySteps(flow, Implicit(sweeps=40, krylov=0, cfl=3.0))


def jet(device: str = "cpu", cells: int = 6, **options: Any) -> SteadySteps:
    """Gas with more pressure on one side than on the other enters a channel: smooth, without a limiter."""
    cv = control_volumes(box2d(cells, cells // 2, (2.0, 1.0), perturb=0.1))
    sides: dict[str, BoundaryCondition] = {
        "xmin": TotalInlet(lambda x: 1.2 + 0.1 * x[:, 1], 1.0, direction=(1.0, 0.0)), "xmax": PressureOutlet(1.0),
        "ymin": SlipWall(), "ymax": SlipWall(),
    }  # fmt: skip
    flow = CompressibleFlow(context(device), cv, sides, Gas(constant=1.0), CompressibleScheme(limiter=None))
    flow.start((1.0, 0.3, 0.0, 1.0))
    return SteadySteps(flow, Implicit(**options))


def prepare(steps: SteadySteps) -> None:
    steps.begin()
    steps._keep()
    steps._linearise()


def put(dat: Dat, values: Array) -> None:
    """Write values of the cells, zero for boundary elements."""
    whole = np.zeros((dat.set.size, *values.shape[1:]))
    whole[: len(values)] = values
    dat.write(whole)


def matrix_of(steps: SteadySteps) -> Array:
    """The matrix that sweeps solve with: diagonal blocks by inverting theirs, the others column by column."""
    flow, sweeps = steps.flow, steps.sweeps
    n, nv, q = flow.volumes.cells, flow.components, flow.dimension + 2
    zero, out = flow.context.dat(flow.elements, shape=(nv,)), flow.context.dat(flow.elements, shape=(nv,))
    apply = Loop(lessen, flow.elements, flow.w, *sweeps._within.arguments(flow.w, sweeps.z), zero, out, **sweeps._gas)
    found = np.zeros((n, nv, n, nv))
    for column in range(n * nv):
        unit = np.zeros(n * nv)
        unit[column] = 1.0
        put(sweeps.z, unit.reshape(n, nv))
        apply()
        found[:, :, column // nv, column % nv] = -out.read()[:n]
    inverse = sweeps.block.read()[:n]
    for i in range(n):
        found[i, :q, i, :q] += np.linalg.inv(inverse[i, : q * q].reshape(q, q))
        if nv > q:
            found[i, q, i, q] += 1.0 / inverse[i, q * q]
    return found.reshape(n * nv, n * nv)


def jacobian(steps: SteadySteps) -> Array:
    """``V / dt dU/dw - dR/dw`` by differences of the residual."""
    flow = steps.flow
    n, nv, d = flow.volumes.cells, flow.components, flow.dimension
    loops = flow.right_hand_side(flow.w)
    start, rate = flow.w.read(), steps.sweeps.rate.read()[:n]
    found = np.zeros((n, nv, n, nv))
    for cell in range(n):
        for v in range(nv):
            for step in (1e-5, -1e-5):
                moved = start.copy()
                moved[cell, v] += step
                flow.w.write(moved)
                for loop in loops:
                    loop()
                found[:, :, cell, v] -= flow.res.read()[:n] / (2.0 * step)
                u = moved[cell, : d + 2]
                energy = u[1 + d] / 0.4 + 0.5 * u[0] * (u[1 : 1 + d] @ u[1 : 1 + d])
                conserved = np.array([u[0], *(u[0] * u[1 : 1 + d]), energy, *(start[cell, 0] * moved[cell, d + 2 :])])
                found[cell, :, cell, v] += rate[cell] * conserved / (2.0 * step)
    flow.w.write(start)
    return found.reshape(n * nv, n * nv)


def test_linearisation_of_uniform_flow() -> None:
    """Where both states of a face are equal the matrix is the derivative of Roe's scheme of first order."""
    steps = uniform()
    prepare(steps)
    np.testing.assert_allclose(matrix_of(steps), jacobian(steps), rtol=1e-6, atol=2e-6)


@pytest.mark.long
def test_linearisation_of_a_turbulence_model() -> None:
    """The row of the model with its own variable: transport, diffusion, and what the source loses.

    Of the two cells where no gas leaves: there the full scheme continues a slope to the boundary.
    """
    steps = uniform(turbulent=True)
    prepare(steps)
    nv = steps.flow.components
    found, want = (m[nv - 1 :: nv, nv - 1 :: nv] for m in (matrix_of(steps), jacobian(steps)))
    np.testing.assert_allclose(found[:2], want[:2], rtol=1e-5, atol=1e-6)


def test_sweeps_solve_the_linear_system() -> None:
    steps = jet(cells=4, sweeps=80, krylov=0, cfl=20.0)
    prepare(steps)
    n, nv = steps.flow.volumes.cells, steps.flow.components
    r = np.random.default_rng(1).standard_normal((n, nv))
    want = np.linalg.solve(matrix_of(steps), r.ravel()).reshape(n, nv)
    put(steps.sweeps.r, r)
    steps.sweeps.solve()
    found = steps.sweeps.z.read()
    np.testing.assert_allclose(found[:n], want, rtol=1e-8, atol=1e-9 * np.abs(want).max())
    assert (found[n:] == 0.0).all()


def test_newton_converges_faster_than_linearly() -> None:
    steps = jet(switch=1.0, cfl=50.0, growth=20.0, cfl_max=1e12, krylov=60, tolerance=1e-5)
    norms = np.array(steps.solve(1e-12, 25))
    assert norms[-1] < 1e-12 * norms[0], norms
    orders = np.log(norms[2:] / norms[0]) / np.log(norms[1:-1] / norms[0])
    assert orders[-3:-1].max() > 1.4
    assert (steps.flow.states()[:, 1] > 0.2).all()


@pytest.mark.long
def test_sweeps_then_newton() -> None:
    """From sweeps to Newton's steps, whose CFL number grows; the explicit steps stand still there."""
    steps = jet(cfl=10.0, switch=0.1)
    first = steps.begin()
    found = []
    while steps.total > 1e-11 * first.total:
        found.append(steps.step())
        assert len(found) < 40
    assert found[0].products == 0
    assert found[-1].products > 0
    assert found[-1].cfl > 1e4
    before = steps.flow.states()
    steps.flow.iterate(5)
    np.testing.assert_allclose(steps.flow.states(), before, atol=1e-10)


def test_reference_makes_the_same_steps() -> None:
    found = []
    for device in ("cpu", "reference"):
        steps = jet(device, cells=4, switch=1.0, krylov=2, sweeps=1, cfl=5.0)
        steps.step()
        found.append((steps.flow.states(), steps.total))
    np.testing.assert_allclose(found[0][0], found[1][0], rtol=1e-6)
    np.testing.assert_allclose(found[0][1], found[1][1], rtol=1e-5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cfl": 0.0}, "cfl: above 0"),
        ({"cfl": float("nan")}, "cfl: above 0"),
        ({"tolerance": 1.5}, "tolerance"),
        ({"switch": 0.0}, "switch"),
        ({"sweeps": 0}, "sweeps is a whole number of at least 1"),
        ({"krylov": 2.5}, "krylov is a whole number"),
        ({"wavefront": 1}, "wavefront is true or false"),
        ({"cfl": 10.0, "cfl_max": 5.0}, r"cfl_max \(5\) is less than cfl"),
    ],
)
def test_choices(options: dict[str, Any], message: str) -> None:
    with pytest.raises(SolverError, match=message):
        Implicit(**options)
