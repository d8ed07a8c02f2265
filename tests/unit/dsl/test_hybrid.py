"""Unequal devices that share the work of a step: the balance found by measuring."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fluxloom as fl
from fluxloom.comm.base import Comm, SelfComm
from fluxloom.comm.threads import run_threads
from fluxloom.core.errors import FluxloomError
from fluxloom.dsl.run.hybrid import DistributedProgram, Measured, Team, TimedComm, balance
from fluxloom.linalg import SparseMatrix
from fluxloom.linalg.matrix.rings import RingProduct
from fluxloom_lab.problems.matrices import GENERATORS

# --------------------------------------------------------------------------------- balance: known costs


@dataclass
class Costs:
    """Devices of known speed that slow each other down: ``busy = share * seconds * (1 + slow)`` and a fixed time."""

    seconds: tuple[float, ...]
    slow: tuple[float, ...] = ()
    fixed: float = 0.0
    noise: float = 0.0
    impossible: Callable[[Sequence[float]], bool] = lambda shares: False
    built: list[tuple[float, ...]] = field(default_factory=list)
    open: int = 0
    random: np.random.Generator = field(default_factory=lambda: np.random.default_rng(1))

    def busy(self, devices: Sequence[int], shares: Sequence[float]) -> tuple[float, ...]:
        slow = self.slow if self.slow and len(devices) > 1 else (0.0,) * len(self.seconds)
        return tuple(s * self.seconds[k] * (1.0 + slow[k]) for k, s in zip(devices, shares, strict=True))

    def __call__(self, devices: Sequence[int], shares: Sequence[float]) -> FakeProgram:
        if self.impossible(shares):
            raise FluxloomError("too large for its memory")
        self.built.append(tuple(shares))
        self.open += 1
        return FakeProgram(self, self.busy(devices, shares))

    def best(self, pieces: int) -> float:
        """Return the least time of two devices with the work in so many pieces."""
        every = [(n / pieces, 1.0 - n / pieces) for n in range(1, pieces)]
        return min(max(self.busy((0, 1), s)) + self.fixed for s in every if not self.impossible(s))


@dataclass
class FakeProgram:
    costs: Costs
    times: tuple[float, ...]

    def measure(self) -> Measured:
        factors = 1.0 + self.costs.noise * self.costs.random.standard_normal(len(self.times))
        busy = tuple(float(t * f) for t, f in zip(self.times, factors, strict=True))
        return Measured(max(busy) + self.costs.fixed, busy)

    def close(self) -> None:
        self.costs.open -= 1


def test_equal_devices_get_halves() -> None:
    costs = Costs((2.0, 2.0))
    found = balance(costs, (0, 1))
    assert found.shares == (0.5, 0.5)
    assert found.seconds == 1.0
    assert found.alone == (2.0, 2.0)
    assert found.rates == (0.5, 0.5)
    assert found.efficiency == 1.0
    assert found.pays
    assert costs.open == 0


@settings(max_examples=60, deadline=None)
@given(
    st.floats(1.0, 30.0), st.floats(0.0, 1.5), st.floats(0.0, 1.5), st.sampled_from([0.0, 0.05]), st.integers(1, 4)
)
def test_finds_the_best_while_both_run(ratio: float, one: float, other: float, fixed: float, coarse: int) -> None:
    """However much the devices slow each other down, which times of each alone do not show."""
    costs = Costs((1.0, ratio), (one, other), fixed)
    found = balance(costs, (0, 1), granules=(4 * coarse, 64 * coarse))
    assert found.seconds == pytest.approx(costs.best(64 * coarse), rel=1e-12)
    assert sum(found.shares) == pytest.approx(1.0)
    assert len(found.history) <= 40
    assert len({attempt.shares for attempt in found.history}) == len(found.history)
    assert costs.open == 0
    assert found.pays is (found.seconds < 1.0 + fixed)


def test_the_best_is_not_what_separate_rates_say() -> None:
    """The first device keeps its speed, the second loses half of it: 1 : 2 alone, 1 : 1 together."""
    costs = Costs((2.0, 1.0), (0.0, 1.0))
    found = balance(costs, (0, 1), granules=(12,))
    assert found.history[0].shares == (4 / 12, 8 / 12)
    assert found.history[1].shares == (0.5, 0.5)  # as the first measurement of both suggests
    assert found.shares == (0.5, 0.5)
    assert found.rates == (0.5, 0.5)
    assert found.efficiency == 1.0
    assert not found.pays  # the second alone takes as long
    assert len(found.history) == 4  # those two, and a piece more and less


def test_slowed_down_by_what_the_other_has() -> None:
    """A cost that no scaling of rates explains: the search has to follow the measurements."""

    class Throttled(Costs):
        def busy(self, devices: Sequence[int], shares: Sequence[float]) -> tuple[float, ...]:
            if len(devices) == 1:
                return (self.seconds[devices[0]],)
            a, b = shares
            return a * 1.0 * (1 + 2.0 * b**2), b * 3.0 * (1 + a**3)

    costs = Throttled((1.0, 3.0))
    found = balance(costs, (0, 1), granules=(32,))
    assert found.seconds == pytest.approx(costs.best(32), rel=1e-12)
    assert len(found.history) < 12


@pytest.mark.parametrize("rounds", [1, 5])
def test_noise(rounds: int) -> None:
    """With noise of one per cent the result is within a few of the best."""
    costs = Costs((1.0, 4.0), (0.3, 0.1), noise=0.01)
    found = balance(costs, (0, 1), rounds=rounds)
    quiet = Costs((1.0, 4.0), (0.3, 0.1))
    assert max(quiet.busy((0, 1), found.shares)) <= 1.05 * quiet.best(64)


def test_three_devices() -> None:
    costs = Costs((1.0, 2.0, 4.0), (0.0, 0.5, 0.0))
    found = balance(costs, (0, 1, 2), granules=(16, 64))
    ideal = 1.0 / (1.0 + 1.0 / 3.0 + 1.0 / 4.0)
    assert ideal <= found.seconds <= 1.04 * ideal
    assert found.efficiency == pytest.approx(ideal / found.seconds)


def test_given_rates_spare_the_runs_alone() -> None:
    costs = Costs((1.0, 3.0))
    found = balance(costs, (0, 1), rates=(3.0, 1.0), granules=(8,))
    assert found.shares == (0.75, 0.25)
    assert found.alone == ()
    assert all(len(shares) == 2 for shares in costs.built)
    assert found.pays  # nothing is known that would be faster


def test_shares_that_cannot_run() -> None:
    """The best does not fit into the memory of the first device: the nearest that fits is found."""
    costs = Costs((1.0, 3.0), impossible=lambda shares: 0.6 < shares[0] < 1.0)
    found = balance(costs, (0, 1), granules=(8, 16))
    assert found.shares == (9 / 16, 7 / 16)
    errors = [attempt for attempt in found.history if attempt.error]
    assert errors
    assert all(attempt.seconds == np.inf and attempt.busy == () for attempt in errors)
    costs = Costs((1.0, 3.0), impossible=lambda shares: len(shares) == 2)
    with pytest.raises(FluxloomError, match="shares can run: too large for its memory"):
        balance(costs, (0, 1))
    costs = Costs((1.0, 3.0), impossible=lambda shares: len(shares) == 1)
    with pytest.raises(FluxloomError, match="alone: too large for its memory; give rates"):
        balance(costs, (0, 1))


@pytest.mark.parametrize("budget", [1, 2, 3])
def test_budget(budget: int) -> None:
    costs = Costs((1.0, 7.0), (0.9, 0.0))
    found = balance(costs, (0, 1), budget=budget)
    assert len(found.history) == budget
    assert found.seconds == min(attempt.seconds for attempt in found.history)


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"rates": (1.0,)}, "1 rates for 2 devices"),
        ({"rates": (1.0, 0.0)}, "measure each process"),
        ({"granules": ()}, "granules"),
        ({"granules": (1,)}, "at least 2"),
        ({"granules": (16, 40)}, "multiple of the one before"),
        ({"rounds": 0}, "at least 1"),
        ({"budget": 0}, "at least 1"),
    ],
)
def test_choices_that_make_no_sense(choices: dict[str, Any], message: str) -> None:
    with pytest.raises(FluxloomError, match=message):
        balance(Costs((1.0, 1.0)), (0, 1), **choices)
    with pytest.raises(FluxloomError, match="at least two"):
        balance(Costs((1.0,)), (0,))


def test_ranks_go_by_the_slowest() -> None:
    """Each rank knows its own time only, and waits for the other: all decide alike."""

    def work(comm: Comm) -> tuple[tuple[float, ...], float, int]:
        costs = Costs((1.0, 3.0), (0.2, 0.0))

        class OneRank(FakeProgram):
            def measure(self) -> Measured:
                mine = self.times[comm.rank] if len(self.times) > comm.rank else 0.0
                busy = tuple(mine if k == comm.rank else 0.0 for k in range(len(self.times)))
                return Measured(mine, busy)

        def build(devices: Sequence[int], shares: Sequence[float]) -> OneRank:
            if comm.rank == 1 and shares[0] > 0.9 and len(devices) == 2:
                raise FluxloomError("not here")
            return OneRank(costs, costs.busy(devices, shares))

        found = balance(build, (0, 1), rates=(1.0, 1.0), granules=(16, 64), comm=comm)
        return found.shares, found.seconds, len(found.history)

    first, second = run_threads(2, work)
    assert first == second
    assert first[1] == pytest.approx(Costs((1.0, 3.0), (0.2, 0.0)).best(64))


# ------------------------------------------------------------------------------------- on two contexts


@pytest.mark.parametrize("other", ["cpu", "reference", pytest.param("opencl", marks=pytest.mark.opencl)])
def test_a_product_on_two_contexts(other: str) -> None:
    """Rows of one matrix on two devices at the same time: the result is the product, whatever the shares."""
    a = GENERATORS["laplacian2d"](2000, 1)
    x = np.random.default_rng(1).random(a.shape[0])
    results: list[np.ndarray] = []

    class Product:
        def __init__(self, devices: Sequence[fl.Context], shares: Sequence[float]) -> None:
            cuts = [round(c * a.shape[0]) for c in np.cumsum([0.0, *shares])]
            runs, self.parts = [], []
            for context, first, last in zip(devices, cuts[:-1], cuts[1:], strict=True):
                matrix = SparseMatrix.from_scipy(context, a[first:last])
                y = context.dat(matrix.rows)
                loop = matrix.product(context.dat(matrix.columns, x), y)
                runs.append(lambda loop=loop, context=context: (loop(), context.synchronize()))
                self.parts.append(y)
            self.team = Team(runs)

        def measure(self) -> Measured:
            self.team()
            results.append(np.concatenate([y.read() for y in self.parts]))
            return Measured(max(self.team.seconds), tuple(self.team.seconds))

        def close(self) -> None:
            self.team.close()

    pair = [fl.Context("cpu", threads=1), fl.Context(other, threads=1)]
    found = balance(Product, pair, granules=(8,), rounds=1, budget=4)
    assert sum(found.shares) == pytest.approx(1.0)
    assert found.seconds == min(attempt.seconds for attempt in found.history)
    assert len(results) == 2 * (2 + len(found.history))
    for result in results:
        np.testing.assert_allclose(result, a @ x, rtol=1e-12)


# -------------------------------------------------------------------------------------------- on ranks


def test_busy_is_what_is_not_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("time.perf_counter", lambda: now[0])
    timed = TimedComm(SelfComm())

    class Late(SelfComm):
        def barrier(self) -> None:
            now[0] += 2.0

    timed.inner, timed.settle = Late(), lambda: now.__setitem__(0, now[0] + 0.5)

    def step() -> None:
        now[0] += 1.0
        timed.barrier()

    program = DistributedProgram(timed, step, 4)
    # A step computes 1, and the device 0.5 more before the wait of 2; at the end the device is waited for once more.
    assert program.measure() == Measured((4 * 3.5 + 0.5) / 4, ((4 * 1.5 + 0.5) / 4,))
    assert program.measure().seconds == (4 * 3.5 + 0.5) / 4
    program.close()


@pytest.mark.parametrize("other", ["cpu", pytest.param("opencl", marks=pytest.mark.opencl)])
def test_powers_on_unequal_ranks(other: str) -> None:
    """Ranks with devices of their own share the rows of a matrix and exchange: right results for all shares."""
    a = GENERATORS["laplacian2d"](2000, 1)
    x = np.random.default_rng(1).random(a.shape[0])
    expected = a @ (a @ x)

    def work(comm: Comm) -> tuple[tuple[float, ...], int]:
        timed = TimedComm(comm)
        context = fl.Context(("cpu", other)[comm.rank], threads=1)
        timed.settle = context.synchronize

        def build(_: Sequence[str], shares: Sequence[float]) -> DistributedProgram:
            cuts = [round(c * a.shape[0]) for c in np.cumsum([0.0, *shares])]
            rows = slice(cuts[comm.rank], cuts[comm.rank + 1])
            product = RingProduct(context, a[rows], rings=1, times=2, comm=timed)
            np.testing.assert_allclose(product(x[rows]), expected[rows], rtol=1e-12)
            return DistributedProgram(timed, product.run, 3, product.close)

        found = balance(build, ("cpu", other), rates=(1.0, 1.0), granules=(8,), rounds=1, budget=4, comm=comm)
        assert all(0.0 < busy <= attempt.seconds for attempt in found.history for busy in attempt.busy)
        return found.shares, len(found.history)

    first, second = run_threads(2, work)
    assert first == second
