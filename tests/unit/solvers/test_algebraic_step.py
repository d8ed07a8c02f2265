"""The step of three kernels against the fused one, and what it counts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.core.errors import SolverError
from fluxloom.fv.geometry.control_volumes import control_volumes
from fluxloom.fv.incompressible.boundary import Boundary, Inflow, NoSlip, Outflow, Symmetry
from fluxloom.fv.incompressible.eddy_viscosity import Sigma, Wale
from fluxloom.fv.incompressible.projection_schemes import RungeKutta
from fluxloom.linalg import Stop
from fluxloom.linalg.krylov.counted_gradient import CountedGradient
from fluxloom.linalg.krylov.three_kernels import Algebra, KernelCalls
from fluxloom.linalg.matrix.matrix import SparseMatrix
from fluxloom.mesh import box2d, box3d
from fluxloom.mesh.data.mesh import MeshData
from fluxloom.solvers.algebraic.step import ITERATION, START, AlgebraicStep
from fluxloom.solvers.incompressible.flow import Incompressible
from fluxloom.solvers.incompressible.scalar import Scalar
from fluxloom_lab.bench.flows.les_model import ITERATION as PUBLISHED_ITERATION
from fluxloom_lab.bench.flows.les_model import OUTSIDE
from fluxloom_lab.problems.matrices import lattice_laplacian

Array = np.ndarray
XZ = [("xmin", "xmax"), ("zmin", "zmax")]


def stream(places: Array) -> Array:
    return np.stack([places[:, 1] * (1.0 - places[:, 1]), 0.0 * places[:, 0]], axis=1)


def turning(places: Array) -> Array:
    found = np.zeros(places.shape)
    found[:, 0], found[:, 1] = np.sin(3.0 * places[:, 1]), np.cos(5.0 * places[:, 0])
    return found


@dataclass(frozen=True)
class Case:
    mesh: Callable[[], MeshData]
    periodic: list[tuple[str, str]] = field(default_factory=list)
    boundaries: dict[str, Boundary] = field(default_factory=dict)
    model: Any = None
    force: tuple[float, ...] = ()


CASES = {
    "duct": Case(
        lambda: box2d(6, 4, kind="triangle", perturb=0.2), [],
        {"ymin": NoSlip(), "ymax": NoSlip((0.3, 0.0)), "xmin": Inflow(stream), "xmax": Outflow()},
    ),
    "flat duct": Case(
        lambda: box2d(6, 4), [],
        {"ymin": NoSlip(), "ymax": NoSlip((0.3, 0.0)), "xmin": Inflow(stream), "xmax": Outflow()},
    ),
    "corner": Case(
        lambda: box3d(2, 2, 2, kind="tetra", perturb=0.2), [],
        {"xmin": NoSlip(), "xmax": NoSlip(), "ymin": NoSlip(), "zmin": NoSlip(), "zmax": NoSlip(),
         "ymax": NoSlip((0.3, 0.0, 0.1))},
    ),
    "rings": Case(lambda: box2d(7, 4), [("xmin", "xmax"), ("ymin", "ymax")], model=Wale()),
    "channel": Case(lambda: box3d(5, 4, 4), XZ, {"ymin": NoSlip(), "ymax": NoSlip()}, Wale(), (0.3, 0.0, 0.0)),
    "half channel": Case(
        lambda: box3d(4, 4, 3, kind="prism", perturb=0.1), XZ, {"ymin": NoSlip(), "ymax": Symmetry()}, Sigma()
    ),
    "box": Case(lambda: box3d(4, 4, 4), [*XZ, ("ymin", "ymax")], model=Wale()),
}  # fmt: skip


def flow_of(name: str, device: str = "cpu", rtol: float = 1e-12) -> Incompressible:
    case = CASES[name]
    flow = Incompressible(
        fl.Context(device, threads=1, tuning=False), control_volumes(case.mesh(), case.periodic), 0.01, case.boundaries,
        stop=Stop(rtol=rtol), model=case.model, force=case.force,
    )  # fmt: skip
    flow.initialise(turning)
    return flow


@pytest.mark.parametrize(("name", "device"), [*((name, "cpu") for name in CASES), ("box", "reference")])
def test_steps_are_those_of_the_fused_solver(name: str, device: str) -> None:
    """From a flow under way, with steps of three lengths: velocities, pressure, faces, eddy viscosity, stable step."""
    flow = flow_of(name, device)
    flow.step(0.02)
    step = AlgebraicStep(flow)
    for dt in (0.02, 0.01, 0.03):
        mine, wanted = step.step(dt), flow.step(dt)
        assert mine.converged
        assert abs(mine.iterations - wanted.iterations) <= 0.1 * wanted.iterations + 1
    np.testing.assert_allclose(step.velocity(), flow.velocity(), rtol=0, atol=1e-11)
    np.testing.assert_allclose(step.pressure(), flow.pressure(), rtol=0, atol=1e-10)
    np.testing.assert_allclose(step.nus.read(), flow.nus.read(), rtol=0, atol=1e-13)
    assert step.stable_step() == pytest.approx(flow.stable_step(), rel=1e-9)
    assert (step.time, step.steps, step.dt) == (pytest.approx(flow.time), flow.steps, flow.dt)


@pytest.mark.parametrize("name", ["channel", "duct"])
def test_first_step_is_euler(name: str) -> None:
    flow = flow_of(name)
    step = AlgebraicStep(flow)
    assert step.steps == 0
    step.step(0.02)
    flow.step(0.02)
    np.testing.assert_allclose(step.velocity(), flow.velocity(), rtol=0, atol=1e-12)


def outside(step: AlgebraicStep) -> KernelCalls:
    return sum((calls for name, calls in step.counts.items() if name not in (START, ITERATION)), KernelCalls())


def test_counts_are_the_published_ones() -> None:
    """Beyond them: the mean at faces (SpMV) and velocities at faces (AXPY); both DOT are in the pointwise pass."""
    step = AlgebraicStep(flow_of("box", rtol=1e-6))
    step.stable_step()
    step.step(0.02)
    counts = step.counts
    assert counts["predictor"] == KernelCalls(spmv=8, axpy=6 + 1)
    assert counts["pressure source"] == KernelCalls(spmv=3, axpy=1)
    assert counts["correction"] == KernelCalls(spmv=3, axpy=3)
    assert counts["face velocity"] == KernelCalls(spmv=7)
    assert counts["eddy viscosity"] == KernelCalls(spmv=9 + 1, extra=1)
    assert counts["time step"] == KernelCalls(extra=1)
    assert outside(step) == KernelCalls(spmv=OUTSIDE[0] + 1, axpy=OUTSIDE[1] + 1, extra=2)
    assert step.solver.made > 0
    assert counts[ITERATION] == step.solver.made * KernelCalls(*PUBLISHED_ITERATION)
    assert counts[START] == KernelCalls(spmv=3, axpy=2, dot=2)
    step.step(0.02)
    assert step.counts["predictor"] == KernelCalls(spmv=16, axpy=14)


def test_boundaries_and_forces_are_counted() -> None:
    """Given velocities need nothing, outflows and symmetry two passes; a force one sum for each direction."""
    walls, duct, oblique = (AlgebraicStep(flow_of(name)) for name in ("channel", "flat duct", "duct"))
    for step in (walls, duct, oblique):
        step.step(0.02)
    assert "boundary" not in walls.counts
    assert walls.counts["predictor"] == KernelCalls(spmv=8, axpy=8)
    assert duct.counts["boundary"] == KernelCalls(extra=2)
    assert duct.counts["predictor"] == KernelCalls(spmv=5, axpy=5)
    gradients, faces, entries, sums = 3 * 4, 4 + 2 + 4 + 2 + 4, 2 + 1, 4
    assert oblique.counts["predictor"] == KernelCalls(spmv=5 + gradients + faces + entries + sums, axpy=6, extra=1)


def test_only_three_kernels_and_extras() -> None:
    """Loops run one by one, so that what is counted is what runs."""
    step = AlgebraicStep(flow_of("box", rtol=1e-6))
    step.step(0.02)
    chains = [chain for part in step.plan for chain in part.chains]
    names = {loop.bound.kernel.name for chain in [*chains, step.solver.start, step.solver.body] for loop in chain.loops}
    assert names == {"spmv", "spmv_onto", "spmv_from", "axpy", "axpy_apart", "dot", "gather_tensor", "eddy_viscosity"}
    assert not any(chain.fused for chain in [*chains, step.solver.body] if chain.name != "model")


def test_fixed_iterations() -> None:
    """A stop that no residual reaches makes as many iterations as it allows."""
    step = AlgebraicStep(flow_of("duct"), stop=Stop(rtol=1e-30, iterations=10))
    assert step.step(0.02).reason == "iterations"
    assert step.solver.made == 10


def test_no_scalars() -> None:
    case = CASES["rings"]
    flow = Incompressible(
        fl.Context("cpu", threads=1), control_volumes(case.mesh(), case.periodic), 0.01,
        scalars=[Scalar("heat", 0.01, {})],
    )  # fmt: skip
    with pytest.raises(SolverError, match="the flow carries heat"):
        AlgebraicStep(flow)


def test_wrong_steps() -> None:
    flow = flow_of("rings")
    with pytest.raises(SolverError, match="a positive number is wanted, not 0"):
        AlgebraicStep(flow).step(0.0)
    case = CASES["rings"]
    stages = Incompressible(
        fl.Context("cpu", threads=1), control_volumes(case.mesh(), case.periodic), 0.01, scheme=RungeKutta()
    )  # fmt: skip
    with pytest.raises(SolverError, match=r"not RungeKutta\(\)"):
        AlgebraicStep(stages)


def test_not_finite() -> None:
    step = AlgebraicStep(flow_of("rings"))
    step.u[1][0].write(np.full(step.u[1][0].set.size, np.nan))
    with pytest.raises(SolverError, match="step 1, time 0: the velocity is not finite"):
        step.step(0.02)


def test_gradients_solve() -> None:
    ctx = fl.Context("cpu", threads=1, tuning=False)
    matrix = SparseMatrix.from_scipy(ctx, lattice_laplacian((5, 6, 4)))
    wanted = np.random.default_rng(2).standard_normal(120)
    b, x = ctx.dat(matrix.rows, matrix.to_scipy() @ wanted, "b"), ctx.dat(matrix.rows, name="x")
    solver = CountedGradient(Algebra(ctx), matrix, b, x, Stop(rtol=1e-11))
    status = solver.solve().require("lattice")
    np.testing.assert_allclose(x.read(), wanted, atol=1e-8)
    assert 0 <= solver.made - status.iterations < solver.interval
    assert (solver.iterating, solver.starting) == (KernelCalls(2, 3, 2), KernelCalls(3, 2, 2))
