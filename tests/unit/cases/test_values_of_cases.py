"""Values in space and time as case files of compressible flow give them, and what wrong ones are answered with."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fluxloom.cases.files.loading import load_case
from fluxloom.cases.files.strategy_tables import strategy_of, strategy_table
from fluxloom.cases.shared.wall_motion import WallVelocityTable, velocity_values
from fluxloom.core.errors import CaseError, SolverError
from fluxloom.dsl.context import Context
from fluxloom.values.value import Formula, Given, value_of

GAS = """
[case]
name = "gas"
solver = "compressible"
[mesh]
nx = 6
ny = 4
{mesh}
[gas]
constant = 1.0
viscosity = {{ type = "constant", mu = 0.01 }}
[initial]
density = "1"
pressure = "1"
{more}
[boundary]
xmin = {xmin}
xmax = {{ type = "outlet", pressure = {outlet} }}
ymin = {ymin}
ymax = {{ type = "slip" }}
[time]
{time}
[run]
iterations = 5
threads = 1
"""
PLAIN = {"mesh": "", "more": "", "xmin": '{ type = "slip" }', "outlet": "1.0", "ymin": '{ type = "wall" }',
         "time": "end = 1.0"}  # fmt: skip


def built(folder: Path, **words: str) -> Any:
    """Return the solver of a case."""
    path = folder / "case.toml"
    path.write_text(GAS.format(**PLAIN | words), encoding="utf-8")
    case, application = load_case(path)
    return application.build(case, Context("cpu", threads=1, tuning=False)).flow.solver


def states(folder: Path, **words: str) -> np.ndarray:
    """Return the states behind a few steps."""
    flow = built(folder, **words)
    flow.advance_to(0.1)
    return flow.states()


def test_a_number_by_any_name(tmp_path: Path) -> None:
    """A formula, a series and a profile that say the same are the same."""
    (tmp_path / "p.csv").write_text("t p\n0 1\n10 6\n")
    (tmp_path / "y.csv").write_text("y T\n0 1\n1 3\n")
    ramp = states(tmp_path, outlet='"1 + 0.5 * t"')
    assert np.abs(ramp[:, 1]).max() > 1e-3
    series = f'{{ type = "series", file = "{tmp_path / "p.csv"}", column = "p" }}'
    np.testing.assert_allclose(states(tmp_path, outlet=series), ramp, atol=1e-12)
    warm = states(tmp_path, xmin='{ type = "wall", temperature = "1 + 2 * y" }')
    profile = f'{{ type = "profile", file = "{tmp_path / "y.csv"}" }}'
    np.testing.assert_allclose(states(tmp_path, xmin=f'{{ type = "wall", temperature = {profile} }}'), warm, atol=1e-12)
    assert np.abs(warm - states(tmp_path)).max() > 1e-3


def test_walls_in_time(tmp_path: Path) -> None:
    """A spin may grow, nothing passes a wall that slides, and the heat of a wall is what the gas gains."""
    turning = states(tmp_path, ymin='{ type = "wall", velocity_x = "0.3 * sin(9 * t)" }')
    assert np.abs(turning[:, 1]).max() > 1e-4
    spun = velocity_values(WallVelocityTable(spin=["2 * t"], spin_centre=[0.0, -1.0]), "boundary.ymin", 2)
    places = np.array([[0.5, 0.0], [2.0, 3.0]])
    assert [value_of(part).at(places, 1.5).tolist() for part in spun] == [[-3.0, -12.0], [1.5, 6.0]]
    with pytest.raises(SolverError, match="a wall that moves along itself has a part along its normal"):
        states(tmp_path, ymin='{ type = "wall", velocity_y = "t" }')
    cold = states(tmp_path, ymin='{ type = "wall", heat_flux = -0.05 }')
    assert (cold[:6, -1] / cold[:6, 0]).max() < 1.0


def test_streams_and_sources(tmp_path: Path) -> None:
    stream = '[flow]\nmach = "0.2 + t"\nalpha = "10 * t"\npressure = 1.0\ntemperature = 1.0'
    flow = built(tmp_path, xmin='{ type = "far-field" }', more=stream)
    flow.given.prepare(0.5)
    for loop in flow.given.loops(0):
        loop()
    row = flow.par.read()[flow.volumes.patches["xmin"].start]
    speed = 0.7 * np.sqrt(1.4)
    assert row[1:3] == pytest.approx([speed * np.cos(np.radians(5.0)), speed * np.sin(np.radians(5.0))])
    pushed = states(tmp_path, more='[source]\nmomentum_x = "t * y"\nenergy = 0.1')
    assert pushed[-6:, 1].max() > 2.0 * np.abs(pushed[:6, 1]).max() > 0.0


def test_fluctuations(tmp_path: Path) -> None:
    """They are those of the seed, and the mean velocity carries them."""
    inlet = '{{ type = "velocity-inlet", velocity = {}, temperature = 1.0, fluctuation = {} }}'
    one, same, other = (
        states(tmp_path, xmin=inlet.format("[0.2, 0.0]", f"{{ intensity = 0.02, length = 0.3, seed = {seed} }}"))
        for seed in (1, 1, 2)
    )
    assert one.tolist() == same.tolist()
    assert np.abs(one - other).max() > 1e-4
    with pytest.raises(CaseError, match="fluctuation: give mean, the velocity that carries the eddies"):
        built(tmp_path, xmin=inlet.format('["0.2 * y", 0.0]', "{ intensity = 0.02, length = 0.3 }"))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"outlet": "-1.0"}, r"boundary.xmax.pressure: must be at least 0, got -1"),
        ({"outlet": '"1 + q"'}, r"boundary.xmax.pressure: '1 \+ q': unknown name 'q' \(allowed: x, y, z, t, pi, e\)"),
        ({"outlet": '"1 + z"'}, r"patch 'xmax': pressure: '1 \+ z': the places have 2 dimensions: leave z out"),
        ({"outlet": '"x - 1"'}, r"patch 'xmax': pressure: above 0 is wanted, not 0"),
        ({"outlet": '{ type = "serie", file = "p" }'}, r"unknown value 'serie'; did you mean 'series'"),
        ({"outlet": '{ type = "series", fil = "p" }'}, r"series: no key 'fil'; did you mean 'file'"),
        ({"outlet": '{ type = "series", file = "no.csv" }'}, r"no.csv: no such file"),
        ({"ymin": '{ type = "wall", heat_flux = 1.0, temperature = 1.0 }'}, "give only one of temperature and heat"),
        ({"outlet": '"1 + t"', "time": "cfl = 0.5"}, r"boundary.xmax: '1 \+ t' depends on the time, and"),
        ({"outlet": '"1 + t"', "time": 'integrator = "implicit"'}, r"boundary.xmax: '1 \+ t' depends on the time"),
        ({"more": '[flow]\nmach = "x"'}, r"flow.mach: 'x': unknown name 'x' \(allowed: t\)"),
        ({"more": '[source]\nenergy = "log(x - t)"', "mesh": "x = [-1.0, 1.0]"}, r"source: 'log.* is nan at \(-0.8"),
        ({"more": "[source]\nmomentum_z = 1.0"}, r"source.momentum_z: the mesh has 2 dimensions; leave it out"),
    ],
)
def test_wrong_ones(tmp_path: Path, words: dict[str, str], message: str) -> None:
    with pytest.raises(CaseError, match=message):
        built(tmp_path, **words)


def test_a_value_of_a_strategy_of_ones_own() -> None:
    """A field annotated as `Given` takes a number, a formula or a table from a case."""

    @dataclass(frozen=True)
    class Screen:
        """A condition of somebody else."""

        pressure: Given = 1.0
        other: Given | None = None

    table = strategy_table(Screen)
    found = strategy_of(Screen, table.model_validate({"pressure": "1 + t", "other": {"type": "formula", "text": "x"}}))
    assert isinstance(found.pressure, Formula)
    assert isinstance(found.other, Formula)
    assert strategy_of(Screen, table.model_validate({"pressure": 2.0})) == Screen(2.0)
    with pytest.raises(ValueError, match="unknown name 'q'"):
        table.model_validate({"pressure": "q"})
