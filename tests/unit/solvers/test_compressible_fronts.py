"""Sweeps in the order of fronts, with approximate factors: exact along a line, the same on every device."""

from __future__ import annotations

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.dsl.declare.dats import Dat
from fluxloom.dsl.run.loop import Loop
from fluxloom.fv.compressible.boundary import FarField
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
MEAN = np.array([1.0, 0.4, 0.2, 0.7, 0.3])


def prepared(wavefront: bool, cells: tuple[int, int], device: str = "cpu") -> SteadySteps:
    """Steps of turbulent flow with all sorts of states, linearised at a large CFL number."""
    cv = control_volumes(box2d(*cells, (2.0, 0.3), perturb=0.1))
    far = FarField(MEAN[:4].tolist(), turbulence=0.3)
    flow = CompressibleFlow(
        fl.Context(device, threads=1, tuning=False), cv, dict.fromkeys(cv.patches, far),
        Gas(constant=1.0, viscosity=ConstantViscosity(0.02)),
        CompressibleScheme(order=1, flux=Roe(entropy_fix=0.0), turbulence=SpalartAllmaras()),
        np.linspace(0.4, 0.9, cv.cells),
    )  # fmt: skip
    flow.start(MEAN * (1.0 + 0.2 * np.random.default_rng(3).uniform(-1.0, 1.0, (cv.cells, 5))))
    steps = SteadySteps(flow, Implicit(wavefront=wavefront, cfl=100.0, sweeps=1))
    steps.begin()
    steps._keep()
    steps._pace.set(cfl=100.0)
    steps._linearise()
    return steps


def put(dat: Dat, values: Array) -> None:
    whole = np.zeros((dat.set.size, *values.shape[1:]))
    whole[: len(values)] = values
    dat.write(whole)


def applied(steps: SteadySteps, z: Array, rate: Array) -> Array:
    """The linearisation's product with increments, its diagonal blocks with other steps than its own."""
    flow, sweeps, n = steps.flow, steps.sweeps, steps.flow.volumes.cells
    zero, out = (flow.context.dat(flow.elements, shape=(flow.components,)) for _ in range(2))
    put(sweeps.z, z)
    Loop(lessen, flow.elements, flow.w, *sweeps._within.arguments(flow.w, sweeps.z), zero, out, **sweeps._gas)()
    block, w = sweeps.block.read()[:n], flow.states()
    found = -out.read()[:n]
    for i in range(n):
        q, u = block[i, :16].reshape(4, 4), w[i]
        change = np.array([
            [1.0, 0.0, 0.0, 0.0], [u[1], u[0], 0.0, 0.0], [u[2], 0.0, u[0], 0.0],
            [0.5 * (u[1] ** 2 + u[2] ** 2), u[0] * u[1], u[0] * u[2], 2.5],
        ])  # fmt: skip
        found[i, :4] += (np.linalg.inv(q) + rate[i] * change) @ z[i, :4]
        found[i, 4] += (1.0 / block[i, 16] + rate[i] * u[0]) * z[i, 4]
    return found


def solved(steps: SteadySteps, r: Array) -> Array:
    put(steps.sweeps.r, r)
    steps.sweeps.solve()
    return steps.sweeps.z.read()[: len(r)]


def rests(cells: tuple[int, int]) -> dict[bool, float]:
    """What one sweep leaves of a right-hand side, in fronts and in colours."""
    plain, n = prepared(False, cells), cells[0] * cells[1]
    r, found = np.random.default_rng(1).standard_normal((n, 5)), {}
    for wavefront in (True, False):
        steps = prepared(wavefront, cells)
        z = solved(steps, r)
        more = steps.sweeps.rate.read()[:n] - plain.sweeps.rate.read()[:n]
        found[wavefront] = float(np.linalg.norm(applied(plain, z, more) - r) / np.linalg.norm(r))
    return found


def test_a_sweep_solves_a_line() -> None:
    found = rests((9, 1))
    assert found[True] < 1e-9, found
    assert found[False] > 1e-2, found


def test_a_sweep_leaves_less_than_one_through_colours() -> None:
    found = rests((8, 6))
    assert found[True] < 0.5 * found[False], found


def test_reference_factors_the_same() -> None:
    blocks = [prepared(True, (3, 2), device).sweeps.block.read() for device in ("cpu", "reference")]
    np.testing.assert_allclose(blocks[0], blocks[1], rtol=1e-10, atol=1e-10)


@pytest.mark.long
def test_steps_in_fronts_find_the_steady_flow_of_the_others() -> None:
    found = []
    for wavefront in (True, False):
        steps = prepared(wavefront, (8, 6))
        norms = SteadySteps(steps.flow, Implicit(wavefront=wavefront, cfl=5.0, switch=1.0)).solve(1e-10, 60)
        assert norms[-1] <= 1e-10 * norms[0]
        found.append(steps.flow.states())
    np.testing.assert_allclose(found[0], found[1], rtol=1e-7, atol=1e-8)
