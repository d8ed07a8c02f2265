"""Lattice Boltzmann on several devices of one process: slabs of any thickness give what one device gives."""

from __future__ import annotations

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.core.errors import DeviceUnavailable, SolverError
from fluxloom.lbm.collisions.operators import TRT
from fluxloom.lbm.lattices import D2Q9, D3Q19
from fluxloom.solvers.lattice.devices import DividedLattice, balance_lattice
from tests.lattice_names import lattice_flow, values


def start(shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(5)
    return 1 + 0.01 * rng.random(shape), 0.03 * rng.standard_normal((*shape, len(shape)))


@pytest.mark.parametrize(
    ("shape", "shares", "counts", "streaming"),
    [
        ((13, 5, 6), (0.7, 0.3), (2, 4), "pull"),
        ((9, 12), (0.2, 0.3, 0.5), (3, 4), "in-place"),
        ((9, 12), (0.5, 0.0, 0.5), (3, 4), "push"),
    ],
)
def test_slabs(shape: tuple[int, ...], shares: tuple[float, ...], counts: tuple[int, ...], streaming: str) -> None:
    lattice = D3Q19 if len(shape) == 3 else D2Q9
    one = lattice_flow(fl.Context("cpu", threads=1), shape, viscosity=0.02, lattice=lattice, dtype="float64",
                           collision=TRT(), streaming=streaming)  # fmt: skip
    one.initialise(*start(shape))
    one.step(sum(counts))
    names = ["cpu:1"] * len(shares)
    with DividedLattice(names, shape, shares=shares, viscosity=0.02, lattice=lattice, dtype="float64",
                        collision=TRT(), **values({"streaming": streaming})) as flow:  # fmt: skip
        flow.initialise(*start(shape))
        for count in counts:
            flow.step(count)
        np.testing.assert_array_equal(flow.velocity(), one.velocity())
        np.testing.assert_array_equal(flow.density(), one.density())
        np.testing.assert_allclose(flow.totals(), one.totals(), rtol=1e-12)
        assert flow.cells == one.cells
        assert sum(flow.shares) == pytest.approx(1.0)
        assert [share > 0 for share in flow.shares] == [share > 0 for share in shares]


def test_a_balance_is_found() -> None:
    options = {"viscosity": 0.02, "lattice": D2Q9, "dtype": "float64"}
    with balance_lattice(["cpu:1", "cpu:1"], (48, 64), granules=(4,), rounds=1, budget=3, **options) as flow:
        assert flow.balance is not None
        assert 2 <= len(flow.balance.history) <= 3
        assert flow.balance.pays == (max(flow.shares) < 1.0)
        flow.initialise()
        flow.step(2)
        np.testing.assert_allclose(flow.density(), 1.0, rtol=1e-13)


@pytest.mark.parametrize("shares", [(1.0,), (0.0, 0.0), (1.0, -1.0), (float("nan"), 1.0)])
def test_shares_that_do_not_fit(shares: tuple[float, ...]) -> None:
    with pytest.raises(SolverError, match="one a device, not all zero"):
        DividedLattice(["cpu:1", "cpu:1"], (8, 8), shares=shares, viscosity=0.1, lattice=D2Q9)


@pytest.mark.parametrize(
    "other",
    [pytest.param("opencl", marks=[pytest.mark.opencl, pytest.mark.long]),
     pytest.param("cuda", marks=pytest.mark.cuda)],
)  # fmt: skip
@pytest.mark.parametrize("streaming", ["pull", "in-place"])
def test_a_processor_beside_another_device(other: str, streaming: str) -> None:
    try:
        fl.Context(other)
    except DeviceUnavailable as error:
        pytest.skip(str(error))
    shape, options = (12, 8, 10), {"viscosity": 0.02, "dtype": "float32", "streaming": streaming}
    one = lattice_flow(fl.Context("cpu", threads=1), shape, **options)
    one.initialise(*start(shape))
    one.step(5)
    with DividedLattice(["cpu:1", other], shape, shares=(0.4, 0.6), **values(options)) as flow:
        flow.initialise(*start(shape))
        flow.step(5)
        np.testing.assert_allclose(flow.velocity(), one.velocity(), atol=2e-7)
