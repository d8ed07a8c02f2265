"""Whether a residual has stopped falling, since when, and what is said of it."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from fluxloom.cases.files.loading import load_case
from fluxloom.dsl.context import Context
from fluxloom.run.stall import stall, unconverged


def _falling(steps: int, rate: float = 0.95) -> list[float]:
    return [rate**k for k in range(steps)]


def test_a_residual_that_falls_has_not_stalled() -> None:
    assert stall(_falling(400)) is None
    assert "still falling" in unconverged(_falling(400), 1e-12)


def test_too_few_steps_say_nothing() -> None:
    assert stall([1.0] * 100) is None
    assert unconverged([1.0, 0.5], 1e-3) == "residual 5.0e-01 of 0.001 wanted after 2 steps"


def test_a_plateau_begins_where_it_was_last_halved() -> None:
    values = [max(0.9**k, 1e-3) for k in range(500)]
    found = stall(values)
    assert found is not None
    assert found.since == 1 + math.ceil(math.log(2e-3) / math.log(0.9))
    assert unconverged(values, 1e-10) == (
        f"residual 1.0e-03 of 1e-10 wanted after 500 steps; it stopped falling at step {found.since}"
    )


def test_a_cycle_is_told_with_its_range() -> None:
    values = [max(0.9**k, 1e-3 * (2.0 + math.sin(k))) for k in range(500)]
    found = stall(values)
    assert found is not None
    assert found.turns > 20
    assert "goes to and fro between 0.001 and 0.003" in found.text


def test_growth_is_told() -> None:
    values = [*_falling(200), *(0.95**200 * 1.05**k for k in range(200))]
    found = stall(values)
    assert found is not None
    assert "has grown since" in found.text
    assert 180 < found.since <= 200


def test_lost_residuals_count_as_large() -> None:
    assert stall([1.0, math.nan, math.inf] * 100) is not None


COUETTE = """
[case]
name = "couette"
solver = "compressible"
[mesh]
x = [0.0, 0.25]
y = [0.0, 1.0]
nx = 4
ny = 16
periodic = [["xmin", "xmax"]]
[gas]
viscosity = { type = "constant", mu = 1.0 }
[flow]
mach = 0.5
temperature = 300.0
pressure = 100000.0
[initial]
velocity_x = "300 * y"
velocity_y = "0"
[boundary.ymin]
type = "wall"
[boundary.ymax]
type = "wall"
velocity = [300.0, 0.0]
temperature = 300.0
[scheme]
limiter = "none"
[time]
integrator = "implicit"
residual_drop = 1e-10
[implicit]
switch = 1e-12
[run]
iterations = 120
threads = 1
"""

CHANNEL = """
[case]
name = "channel"
solver = "incompressible"
[mesh]
nx = 8
ny = 8
[fluid]
viscosity = 0.1
[initial]
velocity_x = "4 * y * (1 - y)"
[boundary.xmin]
type = "inflow"
velocity_x = "4 * y * (1 - y)"
[boundary.xmax]
type = "outflow"
[boundary.ymin]
type = "wall"
[boundary.ymax]
type = "wall"
[pressure]
rtol = 1e-3
[time]
steady = 1e-13
[run]
iterations = 600
threads = 1
"""


@pytest.mark.parametrize(
    ("text", "why"),
    [(COUETTE, "CFL held at 10 by implicit.switch = 1e-12"), (CHANNEL, "limited by pressure.rtol = 0.001")],
)
def test_runs_say_why(tmp_path: Path, text: str, why: str) -> None:
    path = tmp_path / "case.toml"
    path.write_text(text, encoding="utf-8")
    case, application = load_case(path)
    runner: Any = application.build(case, Context("cpu", threads=1, tuning=False))
    values = []
    for _ in range(case.run.iterations):
        runner.advance()
        values.append(runner.residual())
    told = unconverged(values, 1e-13, runner.flow)
    assert "stopped falling" in told or "grown since" in told
    assert why in told
