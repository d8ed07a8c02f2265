"""States of cycles that are mixed: exact for as many kinds of errors as there are changes, else forgotten."""

from __future__ import annotations

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.fv.compressible.boundary import SlipWall
from fluxloom.fv.geometry.control_volumes import control_volumes
from fluxloom.mesh import box2d
from fluxloom.solvers.compressible.flow import CompressibleFlow
from fluxloom.solvers.compressible.mixing import Mixing

STATE = np.array([1.0, 0.3, 0.2, 1.5])


class Relaxation:
    """A flow whose residual is a linear function of its states, with three rates, and relaxation of it as a cycle."""

    def __init__(self, device: str, count: int) -> None:
        volumes = control_volumes(box2d(4, 3))
        self.flow = CompressibleFlow(fl.Context(device, threads=1, tuning=False), volumes,
                                     {name: SlipWall() for name in volumes.patches})  # fmt: skip
        self.cells = volumes.cells
        self.rates = np.array([1.0, 0.3, 0.05])[np.arange(self.cells) % 3][:, None]
        self.steady = STATE * (1.0 + 0.1 * np.sin(np.arange(4.0 * self.cells)).reshape(-1, 4))
        self.flow.start(STATE)
        self.mixing = Mixing(self.flow, count, self.measure)

    def measure(self) -> float:
        """Set the residual of the states now and return its norm."""
        found = np.zeros_like(self.flow.res.read())
        found[: self.cells] = self.rates * (self.steady - self.flow.states())
        self.flow.res.write(found)
        return float(np.linalg.norm(found))

    def cycle(self) -> float:
        """Relax the states, and mix."""
        self.measure()
        self.flow.w.write(self.flow.w.read() + 0.5 * self.flow.res.read())
        return self.mixing.step(self.measure())


@pytest.mark.parametrize("device", ["cpu", "reference"])
def test_as_many_cycles_as_rates(device: str) -> None:
    case = Relaxation(device, 3)
    found = [case.cycle() for _ in range(5)]
    assert found[0] > 0.1
    assert found[-1] < 1e-9
    assert case.mixing.taken >= 3
    np.testing.assert_allclose(case.flow.states(), case.steady, rtol=1e-7)


def test_relaxation_alone_is_slow_and_worse_states_are_not_taken() -> None:
    case = Relaxation("reference", 4)
    first = case.cycle()
    case.mixing.forget()
    assert case.cycle() > 0.5 * first
    assert case.mixing.taken == 0
    good = case.measure
    case.mixing._measure = lambda: 2.0 * good()
    before = case.measure()
    case.flow.w.write(case.flow.w.read() + 0.5 * case.flow.res.read())
    wanted = case.flow.states()
    assert case.mixing.step(case.measure()) < 2.0 * before
    np.testing.assert_array_equal(case.flow.states(), wanted)
    assert case.mixing.taken == 0
