"""Lattices and collision kernels: isotropy, conservation, the formula, and what the kernels lower to."""

from __future__ import annotations

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.core.errors import SolverError
from fluxloom.kernel.analysis import used_components
from fluxloom.kernel.ir import ArgShape, Kind, LoweredKernel
from fluxloom.lbm.collisions.operators import BGK
from fluxloom.lbm.lattices import D2Q9, D3Q19, D3Q27, Lattice
from fluxloom.lbm.streaming.steps import Constants, pull
from fluxloom.solvers.lattice.flow import LatticeBoltzmann

OPERATIONS = {"D2Q9": 75, "D3Q19": 152, "D3Q27": 232}  # of one cell and step

lattices = pytest.mark.parametrize("lattice", [D2Q9, D3Q19, D3Q27], ids=lambda lattice: lattice.name)


def lowered(lattice: Lattice) -> LoweredKernel:
    q = lattice.q
    constants = Constants(lattice, BGK(), 0.1, "float64").of(pull)
    shapes = {"f": ArgShape(q, (q,), Kind.REAL), "out": ArgShape(None, (q,), Kind.REAL)}
    return pull.leaving_out(["field"]).lower(shapes, constants)


def bgk(lattice: Lattice, f: np.ndarray, omega: float) -> np.ndarray:
    """Relax arrived populations ``(..., q)`` as the textbook says."""
    c, w = np.array(lattice.velocities), np.array(lattice.weights)
    rho = f.sum(axis=-1, keepdims=True)
    u = f @ c / rho
    cu, uu = u @ c.T, (u * u).sum(axis=-1, keepdims=True)
    return f + omega * (w * rho * (1 + 3 * cu + 4.5 * cu**2 - 1.5 * uu) - f)


@lattices
def test_moments_of_the_weights(lattice: Lattice) -> None:
    """The sums over velocities are those of a Maxwellian up to the fourth, with ``c_s^2 = 1/3``."""
    c, w = np.array(lattice.velocities, dtype=float), np.array(lattice.weights)
    one = np.eye(lattice.dimensions)
    pairs = np.einsum("ab,cd->abcd", one, one)
    fourth = pairs + pairs.transpose(0, 2, 1, 3) + pairs.transpose(0, 2, 3, 1)
    assert w.sum() == pytest.approx(1, abs=1e-15)
    np.testing.assert_allclose(w @ c, 0, atol=1e-16)
    np.testing.assert_allclose(np.einsum("k,ka,kb->ab", w, c, c), one / 3, atol=1e-16)
    np.testing.assert_allclose(np.einsum("k,ka,kb,kc->abc", w, c, c, c), 0, atol=1e-16)
    np.testing.assert_allclose(np.einsum("k,ka,kb,kc,kd->abcd", w, c, c, c, c), fourth / 9, atol=1e-16)


@lattices
def test_pairs_are_side_by_side(lattice: Lattice) -> None:
    """The kernels rely on it: rest, then each direction followed by its opposite."""
    assert lattice.q == len(set(lattice.velocities)) == len(lattice.weights)
    assert lattice.opposite == (0, *(k + 1 if k % 2 else k - 1 for k in range(1, lattice.q)))
    assert lattice.sources == tuple(lattice.velocities[k] for k in lattice.opposite)


@lattices
def test_every_access_is_constant(lattice: Lattice) -> None:
    """Population ``k`` through leg ``k`` and nothing else: each has a register on every device."""
    kernel = lowered(lattice)
    assert used_components(kernel, "f") == {(k, (k,)) for k in range(lattice.q)}
    assert used_components(kernel, "out") == {(None, (k,)) for k in range(lattice.q)}
    assert kernel.arrays == ()
    assert kernel.flops == OPERATIONS[lattice.name]


@lattices
def test_steps(lattice: Lattice) -> None:
    """Populations move by their velocity and relax, in either buffer; after one, two and five steps.

    The largest lattice, which takes long to compile, moves two steps at a time only.
    """
    shape = (4, 5, 3)[: lattice.dimensions]
    flow = LatticeBoltzmann(fl.Context("cpu", threads=1), shape, viscosity=0.1, lattice=lattice, dtype="float64")
    w, axes = np.array(lattice.weights), tuple(range(lattice.dimensions))
    f = w * (1 + 0.05 * np.random.default_rng(1).standard_normal((*shape, lattice.q)))
    flow.populations.write(f - w)
    omega = 1.0 / (3.0 * flow.viscosity + 0.5)
    for done, steps in ((2, 2), (2, 0), (6, 4)) if lattice is D3Q27 else ((1, 1), (1, 0), (2, 1), (5, 3)):
        flow.step(steps)
        for _ in range(steps):
            arrived = [np.roll(f[..., k], lattice.velocities[k], axis=axes) for k in range(lattice.q)]
            f = bgk(lattice, np.stack(arrived, axis=-1), omega)
        assert flow.steps == done
        np.testing.assert_allclose(flow.populations.read(), f - w, atol=1e-15)
        np.testing.assert_allclose(flow.density(), f.sum(axis=-1), rtol=1e-14)


@lattices
def test_equilibrium_has_its_moments(lattice: Lattice) -> None:
    shape = (3, 4, 5)[: lattice.dimensions]
    rng = np.random.default_rng(2)
    rho, u = 1 + 0.1 * rng.random(shape), 0.1 * rng.standard_normal((*shape, lattice.dimensions))
    flow = LatticeBoltzmann(fl.Context("cpu", threads=1), shape, viscosity=0.1, lattice=lattice, dtype="float64")
    flow.initialise(rho, u)
    np.testing.assert_allclose(flow.density(), rho, rtol=1e-14)
    np.testing.assert_allclose(flow.velocity(), u, atol=1e-15)
    assert flow.kinetic_energy() == pytest.approx(0.5 * (rho * (u**2).sum(axis=-1)).sum(), rel=1e-12)


def test_mistakes() -> None:
    ctx = fl.Context("reference")
    with pytest.raises(SolverError, match="viscosity must be positive"):
        LatticeBoltzmann(ctx, (2, 2, 2), viscosity=0.0)
    with pytest.raises(SolverError, match="D3Q19 needs a shape of 3 axes"):
        LatticeBoltzmann(ctx, (2, 2), viscosity=0.1)
    flow = LatticeBoltzmann(ctx, (2, 2, 2), viscosity=0.1)
    flow.populations.write(np.inf)
    with pytest.raises(SolverError, match="step 0: the flow is not finite any more"):
        flow.check_finite()
