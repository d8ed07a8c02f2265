"""Keys that mean the same in every solver: velocities, and the end of a run."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from fluxloom.cases.files.loading import load_case
from fluxloom.core.errors import CaseError
from fluxloom.dsl.context import Context

HEAD = """
[case]
name = "box"
solver = "{solver}"
[run]
threads = 1
RUN
[time]
dt = 0.01
[mesh]
nx = 8
ny = 4
"""
SIDES = """
[boundary]
xmin = { {inflow}, INFLOW }
xmax = { {outflow} }
ymin = { type = "wall" }
ymax = { type = "wall", WALL }
[initial]
START
"""
SIZE = "x = [0.0, 2.0]\ny = [0.0, 1.0]\n"
TRIANGLES = SIZE + 'kind = "triangle"\n'
LIQUID = "[fluid]\nviscosity = 0.1"
GAS = '[gas]\nconstant = 1.0\nviscosity = { type = "constant", mu = 0.1 }\n[flow]\npressure = 1.0\ntemperature = 1.0'


def _box(solver: str, middle: str, inflow: str, outflow: str) -> str:
    sides = SIDES.replace("{inflow}", inflow).replace("{outflow}", outflow)
    return HEAD.replace("{solver}", solver) + middle + sides


LIQUIDS = {"incompressible": SIZE, "staggered": SIZE, "edge_flow": TRIANGLES}
CASES = {
    solver: _box(solver, mesh + LIQUID, 'type = "inflow"', 'type = "outflow"') for solver, mesh in LIQUIDS.items()
} | {
    "lattice": _box(
        "lattice", "length = 2.0\n[fluid]\nviscosity = 0.1", 'type = "velocity"', 'type = "pressure"'
    ),
    "compressible": _box(
        "compressible", SIZE + GAS, 'type = "velocity-inlet", density = 1.0', 'type = "outlet", pressure = 1.0'
    ).replace("dt = 0.01", "end = 1.0"),
    "edge_transport": HEAD.replace("{solver}", "edge_transport") + TRIANGLES + """
[transport]
diffusivity = 0.1
INFLOW
[initial]
scalar = "x"
[boundary]
xmin = { type = "free" }
xmax = { type = "free" }
ymin = { type = "free" }
ymax = { type = "free" }
""",
    "diffusion": HEAD.replace("{solver}", "diffusion") + """
[diffusion]
conductivity = 1.0
[boundary]
xmin = { type = "given", value = 1.0 }
xmax = { type = "insulated" }
ymin = { type = "insulated" }
ymax = { type = "insulated" }
""",
    "tsunami": HEAD.replace("{solver}", "tsunami").replace("[time]\ndt = 0.01\n", "time = 0.4\n") + SIZE
    + "[initial]\nSTART\n",
}  # fmt: skip
"""A case of each solver; INFLOW, WALL and START stand for velocities, RUN for the steps."""

PLACES = {"INFLOW": "boundary.xmin", "WALL": "boundary.ymax", "START": "initial"}
REST = dict.fromkeys(PLACES, "velocity = [0.1, 0.0]")


def text(solver: str, run: str = "iterations = 5", **words: str) -> str:
    found = CASES[solver]
    for word, given in (REST | {"RUN": run} | words).items():
        found = found.replace(word, given)
    return found


def place(solver: str, word: str) -> str:
    return "transport" if solver == "edge_transport" else PLACES[word]


def fields(path: Path, case: str) -> dict[str, np.ndarray]:
    """Return the fields behind four steps."""
    path.write_text(case, encoding="utf-8")
    found, application = load_case(path)
    runner = application.build(found, Context("cpu", threads=1, tuning=False))
    for _ in range(4):
        runner.advance()
    return {name: np.asarray(values) for name, values in runner.fields().items()}


EVERYWHERE = [(solver, word) for solver, case in CASES.items() for word in PLACES if word in case]


@pytest.mark.parametrize(("solver", "word"), EVERYWHERE)
def test_a_velocity_as_a_list_and_by_components(tmp_path: Path, solver: str, word: str) -> None:
    """Numbers, formulas and tables give the same bits both ways; what is left out is zero."""
    y, t = np.linspace(0.0, 1.0, 21), np.linspace(0.0, 9.0, 19)
    np.savetxt(tmp_path / "profile.dat", np.stack([y, 0.1 + 0.2 * y * (1.0 - y)], axis=1))
    np.savetxt(tmp_path / "series.dat", np.stack([t, 0.1 + 0.3 * t], axis=1))
    along, over = (f'{{ type = "{kind}", file = "{tmp_path}/{kind}.dat" }}' for kind in ("profile", "series"))
    values = ["0.2", '"0.1 + 0.2 * y * (1 - y)"', along]
    values += [] if word == "START" else ['"0.1 + 0.3 * t"', over]
    known = []
    for value in values:
        whole = fields(tmp_path / "case.toml", text(solver, **{word: f"velocity = [{value}, 0.0]"}))
        parts = fields(tmp_path / "case.toml", text(solver, **{word: f"velocity_x = {value}"}))
        assert whole.keys() == parts.keys()
        for name, numbers in whole.items():
            np.testing.assert_array_equal(numbers, parts[name], err_msg=f"{value}: {name}")
        known.append(np.concatenate([numbers.ravel() for numbers in whole.values()]))
    for formula, table in ((1, 2), (3, 4))[: len(known) // 2]:
        np.testing.assert_allclose(known[table], known[formula], atol=5e-3)
        assert np.abs(known[formula] - known[0]).max() > 1e-3


@pytest.mark.parametrize(("solver", "word"), EVERYWHERE)
@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("velocity = [1.0, 0.0, 0.0]", ".velocity: 2 numbers are wanted, as the mesh has 2 dimensions, not 3"),
        ('velocity = ["y"]', ".velocity: 2 numbers are wanted, as the mesh has 2 dimensions, not 1"),
        ("velocity_z = 1.0", ".velocity_z: the mesh has 2 dimensions; leave it out"),
        ("velocity = [1.0, 0.0], velocity_x = 1.0", ": give only one of velocity and velocity_x"),
        ('velocity = ["q", 0.0]', ".velocity: 'q': unknown name 'q'"),
    ],
)  # fmt: skip
def test_velocities_that_are_refused(tmp_path: Path, solver: str, word: str, given: str, expected: str) -> None:
    given = given.replace("], v", "]\nv") if word == "START" or solver == "edge_transport" else given
    with pytest.raises(CaseError) as caught:
        fields(tmp_path / "case.toml", text(solver, **{word: given}))
    assert place(solver, word) + expected in str(caught.value).replace(".velocity.0:", ".velocity:")


def test_slip_walls_in_gas(tmp_path: Path) -> None:
    """Gas passes one with what its velocity has along the normal, whatever says it."""
    case = text("compressible").replace('ymin = { type = "wall" }', 'ymin = { type = "slip", SLIP }')
    one, other, numbers, still = (
        fields(tmp_path / "case.toml", case.replace("SLIP", given))
        for given in ('velocity_y = "0.1"', 'velocity = [0, "0.1"]', "velocity = [0.0, 0.1]", "velocity = [0.1, 0.0]")
    )
    np.testing.assert_array_equal(one["v"], other["v"])
    assert np.abs(one["v"] - numbers["v"]).max() < 1e-12 < 1e-4 < np.abs(one["v"] - still["v"]).max()


TIMED = [solver for solver in CASES if solver != "tsunami"]


@pytest.mark.parametrize("solver", TIMED)
def test_a_time_is_end_enough(tmp_path: Path, fluxloom: Callable[..., SimpleNamespace], solver: str) -> None:
    """``time.end`` alone ends a run, which has as many steps as it takes."""
    path, out = tmp_path / "case.toml", tmp_path / "out"
    base = text(solver, run="").replace("[time]\ndt = 0.01\n", "[time]\ndt = 0.01\nend = 0.05\n")
    path.write_text(base.replace("end = 1.0", "end = 0.05"), encoding="utf-8")
    assert "until time.end = 0.05" in fluxloom("check", path).out
    found = fluxloom("run", path, "--output", out, "--no-picture")
    assert found.code == 0, found.text
    record = json.loads((out / "run.json").read_text(encoding="utf-8"))
    assert (record["status"], record["ended_by"]) == ("end reached", "time.end")
    assert record["time"] == pytest.approx(0.05, rel=1e-9 if solver != "lattice" else 0.5)
    assert record["iterations"] > 1
    found = fluxloom("run", path, "--output", tmp_path / "less", "--no-picture", "-n", 2)
    assert found.code == 0, found.text
    assert json.loads((tmp_path / "less" / "run.json").read_text(encoding="utf-8"))["iterations"] == 2


@pytest.mark.parametrize("solver", TIMED)
def test_without_an_end(tmp_path: Path, solver: str) -> None:
    path = tmp_path / "case.toml"
    path.write_text(text(solver, run="").replace("end = 1.0", ""), encoding="utf-8")
    with pytest.raises(CaseError, match=r"there is no end: give run\.iterations, the steps .*, or time\.end, the time"):
        load_case(path)
