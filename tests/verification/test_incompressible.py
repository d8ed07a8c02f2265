"""The verifications ``cavity`` and ``incompressible``: what they are made of, and with ``long`` the whole."""

from __future__ import annotations

import numpy as np
import pytest

from fluxloom.core.errors import SolverError
from fluxloom.dsl.context import Context
from fluxloom.fv.incompressible.projection_schemes import AdamsBashforth, RungeKutta
from fluxloom_lab.problems.cylinder import CylinderFlow, Field, mean_period, steady_limit
from fluxloom_lab.problems.incompressible_cases import decaying_vortices, identities, shear
from fluxloom_lab.verify.cavity import cavity, extremes
from fluxloom_lab.verify.registry import verifications


@pytest.fixture(scope="module")
def context() -> Context:
    return Context("cpu", threads=1, tuning=False)


def test_extremes_of_a_polynomial() -> None:
    """A cubic across the centreline and a parabola along it are met exactly; between cells too."""
    n = 10
    x, y = np.meshgrid((np.arange(n) + 0.5) / n, (np.arange(n) + 0.5) / n)
    u = -0.4 + 3.0 * (y - 0.33) ** 2 + (x - 0.5) ** 3 + (x - 0.5) * y
    v = 0.3 - 2.0 * (x - 0.61) ** 2 + (y - 0.5) ** 3
    least, largest, lowest = extremes(np.stack([u, v], axis=2))
    assert least == pytest.approx(-0.4, abs=1e-12)
    assert largest == pytest.approx(0.3, abs=1e-12)
    assert lowest == pytest.approx(0.3 - 2.0 * 0.56**2, abs=1e-12)


def test_cavity_on_a_coarse_mesh(context: Context) -> None:
    """On 16 x 16 cells the error is half the values; who starts from the flow stays there."""
    first = cavity(context, 16, [])
    assert first.extremes == pytest.approx((-0.39, 0.38, -0.53), rel=0.5)
    again = cavity(context, 16, [first.velocity])
    assert again.extremes == pytest.approx(first.extremes, rel=2e-3)
    assert again.time < first.time


def test_period() -> None:
    time = np.linspace(0.0, 3.0, 400)
    first, last, period = mean_period(time, 0.2 + np.sin(2 * np.pi * (time - 0.1) / 0.7))
    assert (first, last, period) == pytest.approx((0.1, 2.9, 0.7), abs=2e-3)


def test_steady_limit() -> None:
    """Exact for two modes of which one turns, after three differences and one more; a state at rest is its own."""
    random = np.random.default_rng(3)
    rest, modes = random.normal(size=(20, 2)), random.normal(size=(3, 20, 2))
    turn = 0.9 * np.exp(0.7j) ** np.arange(5)
    states = [rest + (0.9**k * turn[k]).real * modes[0] + (0.9**k * turn[k]).imag * modes[1] + 0.5**k * modes[2]
              for k in range(5)]  # fmt: skip
    assert steady_limit(states) == pytest.approx(rest, abs=1e-5)
    assert np.abs(states[-1] - rest).max() > 0.3
    assert (steady_limit([rest, rest, rest]) == rest).all()


def test_steady_cylinder(context: Context) -> None:
    """It is where it would be after long, in less time; there is an end to trying."""
    flow = CylinderFlow(context, 6, 20.0)
    took = flow.settle(1e-4)
    assert took < 10.0
    found = flow.steady()
    flow.run(flow.flow.time + 3.0)
    assert flow.steady().drag == pytest.approx(found.drag, rel=1e-4)
    assert flow.steady().lift == pytest.approx(found.lift, abs=6e-4)
    with pytest.raises(SolverError, match=r"still change by more than 1e-30 after a time of 2\.25"):
        CylinderFlow(context, 4, 20.0).settle(1e-30, rounds=1)


def test_field_elsewhere() -> None:
    """Linear fields are met inside; outside there is the nearest."""
    places = np.random.default_rng(1).uniform(size=(200, 2))
    field = Field(places, np.stack([places[:, 0], 2.0 - places[:, 1]], axis=1))
    inside = np.random.default_rng(2).uniform(0.3, 0.7, size=(20, 2))
    assert field.at(inside) == pytest.approx(np.stack([inside[:, 0], 2.0 - inside[:, 1]], axis=1))
    nearest = np.linalg.norm(places - [3.0, 3.0], axis=1).argmin()
    assert field.at(np.array([[3.0, 3.0]]))[0] == pytest.approx(field.velocity[nearest])


def test_identities(context: Context) -> None:
    found = dict(identities(context))
    assert len(found) == 6
    assert max(found.values()) < 1e-12


def test_orders(context: Context) -> None:
    assert np.log2(decaying_vortices(context, 8, RungeKutta()) / decaying_vortices(context, 16, RungeKutta())) > 1.8
    assert np.log2(shear(context, 16, AdamsBashforth()) / shear(context, 32, AdamsBashforth())) > 1.9


def test_cylinder_starts_from_a_coarser_mesh(context: Context) -> None:
    """The drag goes on from where the coarser mesh was."""
    coarse = CylinderFlow(context, 6, 20.0)
    coarse.run(1.5)
    fine = CylinderFlow(context, 8, 20.0, coarse.field())
    fine.run(0.2)
    assert fine.steady().drag == pytest.approx(coarse.steady().drag, rel=0.08)
    assert fine.steady().difference == pytest.approx(0.1175, rel=0.1)


@pytest.mark.long
@pytest.mark.parametrize("name", ["cavity", "incompressible"])
def test_all_checks_pass(name: str) -> None:
    checks = list(verifications()[name].run(verifications()[name].options(threads=1), lambda _line: None))
    assert len(checks) > 10
    assert [check.name for check in checks if not check.ok] == []
