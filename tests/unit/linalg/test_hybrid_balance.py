"""How many rows each device should have: found by measuring, and honest about whether it pays."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from fluxloom.core.errors import FluxloomError, SolverError
from fluxloom.dsl.run.hybrid import Attempt, Balanced, Measured, balance
from fluxloom.linalg import Jacobi
from fluxloom.linalg.mixed.balance import _PROGRAMS, KINDS, Kind, balance_kernel, balance_rows
from fluxloom.linalg.mixed.hybrid import HybridMatrix
from fluxloom.linalg.mixed.report import KernelBalance
from fluxloom.linalg.mixed.team import DeviceTeam
from fluxloom_lab.problems.matrices import lattice_laplacian, tet_dual

TWO = ["cpu:1", "cpu:1"]


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Measure for a short time: which split is found for it is no concern of most tests."""
    monkeypatch.setattr("fluxloom.linalg.mixed.balance._SECONDS", 0.002)


def slow(kind: Kind, seconds: Sequence[float]) -> Any:
    """Return a program whose devices sleep after each call: so long for all rows, less for fewer."""
    inner = _PROGRAMS[kind]

    def program(work: Any, shares: Sequence[float]) -> Any:
        ranks, steps, reset, kernels, most = inner(work, shares)

        def slowed(rank: int) -> Any:
            member = ranks.members[rank]

            def step() -> None:
                steps[rank]()
                time.sleep(shares[member] * seconds[member])

            return step

        return ranks, [slowed(rank) for rank in range(ranks.size)], reset, kernels, min(most, 2)

    return program


@pytest.mark.parametrize(
    ("seconds", "low", "high"),
    [((0.008, 0.08), 0.7, 1.0), pytest.param((0.08, 0.008), 0.0, 0.3, marks=pytest.mark.long)],
)
@pytest.mark.parametrize("kind", [pytest.param("axpy", marks=pytest.mark.long), "spmv"])
def test_less_for_the_slow_one(
    kind: Kind, seconds: tuple[float, float], low: float, high: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A device that sleeps ten times as long gets few rows, whatever the split of equal devices would be."""
    monkeypatch.setitem(_PROGRAMS, kind, slow(kind, seconds))
    found = balance_kernel(tet_dual(10_000), TWO, kind=kind, granules=(8, 16), rounds=1, budget=8)
    assert low < found.found.shares[0] < high
    assert found.fastest == int(seconds[0] > seconds[1])
    tried = [attempt.shares for attempt in found.trace]
    assert len(set(tried)) == len(tried), "a point was visited twice"
    assert tried[:2] == [(1.0, 0.0), (0.0, 1.0)]
    assert found.found.seconds == min(attempt.seconds for attempt in found.found.history)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kernel(kind: Kind) -> None:
    with DeviceTeam(TWO) as team:
        found = balance_kernel(lattice_laplacian((20, 20, 20)), team, kind=kind, granules=(4,), rounds=1, budget=2)
    assert found.kind == kind
    assert 0 < found.seconds == min(found.again)
    assert found.pays == (found.speed_up > 1.0)
    assert sum(found.shares) == pytest.approx(1.0)
    assert 1.0 < found.ideal <= 2.0
    assert 2 < len(found.trace) <= 4
    record = found.record()
    assert record["kernel"] == kind
    assert len(record["trace"]) == len(found.trace)
    text = list(found.lines())
    assert len(text) == len(found.trace) + 1
    assert text[-1].endswith("it pays" if found.pays else "it does not pay")


def report(seconds: float) -> KernelBalance:
    tried = Attempt((0.5, 0.5), seconds, (seconds, seconds))
    found = Balanced(
        (0, 1), tried.shares, seconds, (1.0, 1.0), (2.0, 3.0), (tried, Attempt((0.9, 0.1), np.inf, (), "full"))
    )
    return KernelBalance("spmv", ("a", "b"), found, (2.2, seconds))


def test_where_it_does_not_pay_one_device_gets_all() -> None:
    good, bad = report(1.6), report(2.5)
    assert (good.pays, good.shares, good.seconds) == (True, (0.5, 0.5), 1.6)
    assert (bad.pays, bad.shares, bad.seconds) == (False, (1.0, 0.0), 2.2)
    assert good.speed_up == pytest.approx(2.2 / 1.6)
    assert bad.speed_up == pytest.approx(0.88)
    assert good.ideal == pytest.approx(1.0 + 2.0 / 3.0)
    assert list(good.lines())[3] == "  spmv 0.9 : 0.1: full"
    assert good.record()["trace"][3] == {"shares": [0.9, 0.1], "seconds": None, "busy": [], "error": "full"}


def test_rows_that_were_balanced() -> None:
    a: Any = tet_dual(10_000)
    b = np.random.default_rng(1).standard_normal(a.shape[0])
    with balance_rows(a, TWO, kind="spmv", reorder=True, granules=(4,), rounds=1, budget=2) as hybrid:
        assert isinstance(hybrid, HybridMatrix)
        assert hybrid.balance is not None
        assert hybrid.shares == pytest.approx(hybrid.balance.shares, abs=64 / hybrid.size)  # a group of rows
        x = hybrid.vector()
        hybrid.solver(hybrid.vector(b), x, preconditioner=Jacobi()).solve().require()
        found = x.read()
    assert np.linalg.norm(b - a @ found) < 1e-7 * np.linalg.norm(b)


def test_wrong_searches() -> None:
    a = lattice_laplacian((6, 6))
    with pytest.raises(SolverError, match=r"kind 'spvm'.* did you mean 'spmv'.*one of spmv, axpy, dot, cg"):
        balance_kernel(a, TWO, kind="spvm")  # type: ignore[arg-type]
    with pytest.raises(FluxloomError, match="a balance needs at least two"):
        balance_rows(a, ["cpu:1"])
    with pytest.raises(FluxloomError, match=r"restarts .* give 2 shares each"):
        balance_kernel(a, TWO, restarts=[(1.0,)])
    with pytest.raises(FluxloomError, match="shares can run: only 1 of 2 devices would have rows"):
        balance_kernel(lattice_laplacian((1, 1)), TWO, granules=(2,), rounds=1)


def test_restarts_leave_a_local_minimum() -> None:
    """Two valleys: from the rates the search ends in the shallow one, begun again elsewhere it finds the deep one."""
    valleys = {0.75: 1.0, 0.25: 0.5}

    class Valleys:
        def __init__(self, shares: Sequence[float]) -> None:
            self.shares = shares

        def measure(self) -> Measured:
            seconds = min(depth + 4.0 * abs(self.shares[0] - place) for place, depth in valleys.items())
            return Measured(seconds, (seconds * self.shares[0] / 0.75, seconds * self.shares[1] / 0.25))

        def close(self) -> None:
            pass

    def build(_devices: Sequence[int], shares: Sequence[float]) -> Valleys:
        return Valleys(shares)

    choices: dict[str, Any] = {"rates": (3.0, 1.0), "granules": (16,), "rounds": 1}
    assert balance(build, (0, 1), **choices).shares == (0.75, 0.25)
    assert balance(build, (0, 1), restarts=[(0.2, 0.8)], **choices).shares == (0.25, 0.75)
