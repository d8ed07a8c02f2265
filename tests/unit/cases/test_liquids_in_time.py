"""Values in space and time in case files of incompressible flow, of every solver, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fluxloom.cases.files.loading import load_case
from fluxloom.core.errors import CaseError, FluxloomError
from fluxloom.dsl.context import Context

CASE = """
[case]
name = "liquid"
solver = "{solver}"
[mesh]
x = [0.0, 2.0]
nx = 8
ny = 6
{mesh}
[fluid]
viscosity = {viscosity}
force = {force}
[boundary]
xmin = {xmin}
xmax = {xmax}
ymin = {{ type = "wall" }}
ymax = {ymax}
{more}
[time]
dt = 0.02
[run]
iterations = 10
threads = 1
"""
PLAIN = {
    "mesh": "", "viscosity": "0.02", "force": "[]", "ymax": '{ type = "wall" }', "xmax": '{ type = "outflow" }',
    "xmin": '{ type = "inflow", velocity_x = "y * (1 - y) * (1 + t)" }', "more": "",
}  # fmt: skip
MESHES = {"incompressible": "", "staggered": "", "edge_flow": 'kind = "triangle"'}
TRANSPORT = """
[case]
name = "smoke"
solver = "edge_transport"
[mesh]
nx = 6
ny = 6
kind = "triangle"
[transport]
velocity_x = "0.1 * sin(t)"
diffusivity = "0.01 * (1 + t)"
source = "t * x"
[boundary]
xmin = { type = "given", value = "sin(t) * y" }
xmax = { type = "flux", value = "cos(t)" }
ymin = { type = "free" }
ymax = { type = "free" }
[time]
dt = 0.02
[run]
iterations = 10
threads = 1
"""


def advanced(folder: Path, text: str, steps: int = 4) -> dict[str, np.ndarray]:
    """Return the fields behind some steps."""
    path = folder / "case.toml"
    path.write_text(text, encoding="utf-8")
    case, application = load_case(path)
    runner: Any = application.build(case, Context("cpu", threads=1, tuning=False))
    for _ in range(steps):
        runner.advance()
    return dict(runner.fields())


def liquid(solver: str, **words: str) -> str:
    return CASE.format(solver=solver, **PLAIN | {"mesh": MESHES[solver]} | words)


@pytest.mark.parametrize("solver", MESHES)
def test_tables_formulas_and_numbers_are_alike(tmp_path: Path, solver: str) -> None:
    """A profile times nothing else, a series for a force and a lid, and formulas that say the same."""
    y, t = np.linspace(0.0, 1.0, 2001), np.linspace(0.0, 1.0, 401)
    np.savetxt(tmp_path / "profile.dat", np.stack([y, y * (1 - y)], axis=1))
    np.savetxt(tmp_path / "series.dat", np.stack([t, np.sin(3 * t)], axis=1))
    series = f'{{ type = "series", file = "{tmp_path}/series.dat" }}'
    profile = f'{{ type = "profile", file = "{tmp_path}/profile.dat", along = "y" }}'
    tables = advanced(tmp_path, liquid(
        solver, xmin=f'{{ type = "inflow", velocity_x = {profile} }}', force=f"[0.0, {series}]",
        ymax=f'{{ type = "wall", velocity_x = {series} }}',
    ))  # fmt: skip
    formulas = advanced(tmp_path, liquid(
        solver, xmin='{ type = "inflow", velocity_x = "y * (1 - y)" }', force='[0.0, "sin(3 * t)"]',
        ymax='{ type = "wall", velocity_x = "sin(3 * t)" }',
    ))  # fmt: skip
    assert formulas["speed"].max() > 0.1
    for name in ("u", "v"):
        np.testing.assert_allclose(tables[name], formulas[name], atol=2e-5)


@pytest.mark.parametrize("solver", ["incompressible", "edge_flow"])
def test_a_pressure_that_pulsates(tmp_path: Path, solver: str) -> None:
    """It drives a stream through a channel that nothing else does; what it is, is there at the end."""
    found = advanced(tmp_path, liquid(solver, xmin='{ type = "outflow", pressure = "sin(20 * t)" }'))
    assert found["u"].max() > 0.01
    assert 0.5 < found["p"].max() < 1.0


@pytest.mark.parametrize("solver", ["incompressible", "edge_flow"])
def test_a_lid_that_turns(tmp_path: Path, solver: str) -> None:
    """``spin`` may be a formula in t: along a plane lid through its centre, ``u = -spin (y - y_c)``."""
    spin = '{ type = "wall", spin = "4 * t", spin_centre = [1.0, 0.5] }'
    with pytest.raises(FluxloomError, match="along its normal"):  # a plane wall does not turn about a place beside it
        advanced(tmp_path, liquid(solver, ymax=spin))


def test_a_lid_that_turns_in_its_plane(tmp_path: Path) -> None:
    lid = 'zmax = { type = "wall", spin = [0.0, 0.0, "9 * t"], spin_centre = [1.0, 0.5, 1.0] }'
    text = liquid("staggered", mesh="nz = 6", xmin='{ type = "wall" }', xmax='{ type = "wall" }',
                  ymax='{ type = "wall" }\nzmin = { type = "wall" }\n' + lid)  # fmt: skip
    found = advanced(tmp_path, text)
    u = found["u"].reshape(6, 6, 8)
    assert np.abs(u[-1]).max() > 0.02
    np.testing.assert_allclose(u, -u[:, ::-1, ::-1], atol=1e-12)  # it turns about the middle


def test_transport(tmp_path: Path) -> None:
    scalar = advanced(tmp_path, TRANSPORT)["scalar"]
    assert scalar.max() > 0.05


@pytest.mark.parametrize(
    ("solver", "words", "expected"),
    [
        ("incompressible", {"force": '["z", 0.0]'}, r"fluid.force: 'z': unknown name 'z': the mesh has 2 dimensions"),
        ("edge_flow", {"viscosity": '"y - 0.5"'}, r"fluid.viscosity: 'y - 0.5' is -0.5 at \(0, 0\); at least 0 is"),
        ("incompressible", {"ymax": '{ type = "wall", velocity_x = "1 / t" }'},
         r"boundary.ymax.velocity_x: '1 / t' is inf .*at t = 0"),
        ("staggered", {"xmax": '{ type = "outflow", pressure = "t" }'}, "xmax: outflows of a staggered grid"),
        ("edge_flow", {"ymax": '{ type = "wall", pressure = 1.0 }'}, 'type = "wall" has no pressure'),
        ("incompressible", {"more": '[initial]\nvelocity_x = "t"'}, r"initial.velocity_x: 't': unknown name 't'"),
        ("incompressible", {"xmax": '{ type = "inflow", velocity_x = "y * (1 - y)" }'},
         r"at t = 0.02 the given velocities let 0.00\d* more in"),
        ("edge_flow", {"force": '["log(0.03 - t)", 0.0]'}, r"force: 'log\(0.03 - t\)' is -inf at t = 0.03"),
    ],
)  # fmt: skip
def test_mistakes(tmp_path: Path, solver: str, words: dict[str, str], expected: str) -> None:
    with pytest.raises((CaseError, FluxloomError), match=expected):
        advanced(tmp_path, liquid(solver, **words))
