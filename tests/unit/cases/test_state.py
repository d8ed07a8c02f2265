"""Runs of all solvers that are killed and go on: fields and tables are those of one run, bit by bit."""

from __future__ import annotations

import shutil
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fluxloom.cases.files.errors import Document
from fluxloom.cases.files.loading import parse_case
from fluxloom.cases.lattice.tables import LatticeCase, units_of
from fluxloom.comm.threads import run_threads
from fluxloom.core.errors import CheckpointError
from fluxloom.run.results.case_difference import case_differences
from fluxloom_lab.problems.small.state_cases import CASES, LONG, changed
from tests.state_runs import Leg, leg, same

EVERY = [pytest.param(name, marks=pytest.mark.long) if name in LONG else name for name in CASES]
SAVED = {"checkpoint.every": 1}
QUICK = "edge_transport"
RANKS = {
    "airfoil": 1e-13, "tsunami": 1e-12, "edge_transport": 1e-13, "lattice pull": 1e-12, "compressible in time": 1e-12,
    "compressible values": 1e-12,
    "incompressible closed": 1e-4, "edge_flow": 1e-4, "incompressible scalar": 1e-4, "compressible local": 1e-8,
    "lattice list": 1e-12, "lattice pulse": 1e-12, "lattice push": 1e-12, "lattice moving": 0.0,
    "lattice particles": 0.0,
    "lattice elastic": 0.0, "diffusion in time": 1e-7,
}  # fmt: skip
"""How far fields may be from those of one run behind changes of the number of ranks; 0: by `rounding`."""


@pytest.mark.parametrize("name", EVERY)
def test_goes_on_to_the_same_bits(name: str, tmp_path: Path) -> None:
    """Killed three times, the long ones six; behind the last restart all that is no state is made unusable before."""
    text, changes, steps = CASES[name]
    whole = leg(text, tmp_path / "whole", steps, changes, save=False)
    parts, cuts = tmp_path / "parts", (1, 2, 3, 5, 6, 8) if name in LONG else (3, 5, 8)
    for before, cut in zip((0, *cuts), cuts, strict=False):
        found = leg(text, parts, cut, changes | SAVED, killed=True)
        assert (found.resumed.steps if found.resumed else 0, found.iterations) == (before, cut)
    last = leg(text, parts, steps, changes, poison=True)
    assert last.resumed is not None
    assert (last.resumed.steps, last.told) == (8, ())
    assert same(whole, last) == []


def ended(name: str, time: float | None) -> dict[str, Any]:
    """Return the changes by which a case of a solver is at its end at a time, or with any residual."""
    if time is None:
        return {} if name == "airfoil" else {"time.residual_drop": 0.999999}
    return {"run.time" if name == "tsunami" else "time.end": time}


@pytest.mark.parametrize("name", EVERY)
def test_at_its_end_no_step_is_made(name: str, tmp_path: Path) -> None:
    """Nothing changes: fields, means, the last lines of all tables, and forces, which no step reads."""
    text, changes, steps = CASES[name]
    whole = leg(text, tmp_path, steps := min(steps, 9), changes)
    again = leg(text, tmp_path, steps, changes)
    assert again.resumed is not None
    assert (again.resumed.steps, same(whole, again)) == (steps, [])
    solver, more = tomllib.loads(text)["case"]["solver"], 0 if name == "airfoil" else 5  # it has steps alone
    last = leg(text, tmp_path, steps + more, changes | ended(solver, again.resumed.time))
    assert (last.iterations, same(whole, last)) == (steps, [])


SPINNING = {"shape": "circle", "diameter": 0.5, "spin": [2.0]}
PAIR: dict[str, Any] = {
    "body.cylinder": SPINNING | {"center": [1.0, 1.05]}, "body.other": SPINNING | {"center": [2.0, 0.6]},
    "forces.cylinder.point": [1.0, 1.0], "forces.other.point": [0.0, 0.0],
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "more"),
    [("lattice list", {}), ("lattice three", PAIR), ("lattice pulse", {}), ("lattice moving", {})],
)
def test_forces_over_ranks(name: str, more: dict[str, Any], tmp_path: Path) -> None:
    """Forces and torques of the last step go on to other ranks, though no step is made there; each rank has a part."""
    text, changes, _ = CASES[name]
    tables = [ran(ranks, text, tmp_path, 7, changes | more).tables["history.csv"] for ranks in (2, 1, 3)]
    rows = [np.array(table.splitlines()[-1].split(","), dtype=np.float64) for table in tables]
    heading = tables[0].splitlines()[0].split(",")
    assert rows[0][heading.index("cylinder.force_x")] != 0.0
    assert not more or rows[0][heading.index("other.moment_z")] != 0.0
    for other in rows[1:]:
        np.testing.assert_allclose(other, rows[0], rtol=1e-5, atol=1e-7)


def ran(ranks: int, *arguments: Any, **options: Any) -> Leg:
    return run_threads(ranks, lambda comm: leg(*arguments, comm=comm, **options))[0]


@pytest.mark.parametrize(
    "name",
    [name if name in ("airfoil", "edge_transport", "lattice pull") else pytest.param(name, marks=pytest.mark.long)
     for name in RANKS],
)  # fmt: skip
def test_ranks(name: str, tmp_path: Path) -> None:
    """With as many ranks the same bits; on one and then on three the same but for rounding and tolerances."""
    text, changes, steps = CASES[name]
    whole = ran(2, text, tmp_path / "whole", steps, changes, save=False)
    ran(2, text, tmp_path / "parts", 5, changes | SAVED, killed=True)
    shutil.copytree(tmp_path / "parts", tmp_path / "one")
    assert same(whole, ran(2, text, tmp_path / "parts", steps, changes)) == []
    one = ran(1, text, tmp_path / "one", 7, changes | SAVED, killed=True)
    other = ran(3, text, tmp_path / "one", steps, changes)
    assert one.resumed is not None
    assert other.resumed is not None
    assert (one.resumed.steps, other.resumed.steps) == (5, 7)
    near = dict.fromkeys(whole.fields, RANKS[name]) if RANKS[name] else rounding(text, changes, whole)
    for field, values in whole.fields.items():
        np.testing.assert_allclose(other.fields[field], values, rtol=RANKS[name], atol=near[field], err_msg=field)


def rounding(text: str, changes: dict[str, Any], found: Leg) -> dict[str, float]:
    """Return what rounding to single precision, once a step, does to the fields of a lattice at most.

    Populations are stored without those at rest: they are as large as the greatest change of the density, which is 1,
    or velocity in cells a step. Sums at markers, whose order ranks change, round them.
    """
    case, _ = parse_case(Document(Path("case"), changed(tomllib.loads(text), changes), {}))
    assert isinstance(case, LatticeCase)
    units = units_of(case)
    speed, pressure = units.speed, units.speed**2 / 3.0
    scales = {"u": speed, "v": speed, "speed": speed, "p": pressure, "vorticity": speed / units.dx, "fluid": 0.0}
    largest = max(np.abs(found.fields[field]).max() / scales[field] for field in ("speed", "p"))
    rounded = found.iterations * float(np.finfo(np.float32).eps) * largest
    return {field: rounded * scale for field, scale in scales.items()}


def started(directory: Path, name: str = QUICK, steps: int = 4) -> str:
    text, changes, _ = CASES[name]
    leg(text, directory, steps, changes | SAVED, killed=True)
    return text


def test_another_case_is_refused(tmp_path: Path) -> None:
    """The message names the key and both values; nothing in the directory changes."""
    text = started(tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(CheckpointError, match=r"transport\.diffusivity: was 0\.001, is 0\.002.*resume = false"):
        leg(text, tmp_path, 9, {"transport.diffusivity": 2e-3})
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    assert leg(text, tmp_path, 6, {"transport.diffusivity": 2e-3, "checkpoint.resume": False}).resumed is None


def test_what_may_differ(tmp_path: Path) -> None:
    """Outputs and monitors: an old probe keeps its lines, a new one begins now; said."""
    text = started(tmp_path)
    found = leg(text, tmp_path, 8, {"probes.points.other": [0.4, 0.1], "history.every": 2, "case.name": "b"})
    assert found.resumed is not None
    assert any(line.startswith("[probes] is not as in checkpoint.h5") for line in found.resumed.told)
    rows = np.genfromtxt(tmp_path / "probes.csv", delimiter=",", names=True)
    assert len(rows) == 8
    assert np.isfinite(rows["startc"] if "startc" in rows.dtype.names else rows[rows.dtype.names[1]]).all()
    new = rows[rows.dtype.names[2]]
    assert np.isnan(new[:4]).all()
    assert np.isfinite(new[4:]).all()


def test_a_damaged_file(tmp_path: Path) -> None:
    """The one before is taken, and said; without one the run is refused."""
    text = started(tmp_path)
    path = tmp_path / "checkpoint.h5"
    data = bytearray(path.read_bytes())
    data[len(data) // 2 :] = b"\0" * (len(data) - len(data) // 2)
    path.write_bytes(data)
    found = leg(text, tmp_path, 6)
    assert found.resumed is not None
    assert (found.resumed.steps, found.resumed.path.name) == (3, "checkpoint.h5.1")
    assert "checkpoint.h5" in found.resumed.told[0]
    for name in ("checkpoint.h5", "checkpoint.h5.1"):
        (tmp_path / name).write_bytes(b"nothing")
    with pytest.raises(CheckpointError, match="no other checkpoint is whole"):
        leg(text, tmp_path, 8)


def test_a_checkpoint_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run goes on, and the checkpoint before stays."""
    text = started(tmp_path)
    before = (tmp_path / "checkpoint.h5").read_bytes()

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("fluxloom.comm.store.publish", full)
    found = leg(text, tmp_path, 6, SAVED)
    assert found.iterations == 6
    assert all("No space left on device; free some space" in line for line in found.told)
    assert len(found.told) == 3  # behind two steps, and at the end
    assert (tmp_path / "checkpoint.h5").read_bytes() == before


def test_without_h5py(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Asked for, checkpoints are refused before the first step; otherwise there is none, said once."""
    monkeypatch.setitem(__import__("sys").modules, "h5py", None)
    text = CASES[QUICK][0]
    with pytest.raises(Exception, match="h5py, which is not installed"):
        leg(text, tmp_path / "a", 3, SAVED)
    found = leg(text, tmp_path / "b", 3)
    assert found.iterations == 3
    assert len(found.told) == 1
    assert "no checkpoint is written" in found.told[0]


def test_differences() -> None:
    """What machines, ends, outputs and monitors say does not count; the rest does, with both values."""
    one = {
        "case": {"name": "a", "solver": "s"}, "run": {"threads": 1, "iterations": 5}, "time": {"end": 1.0, "dt": 0.1},
        "probes": {"every": 1}, "event": [{"time": 1.0}],
    }  # fmt: skip
    free = one | {"case": {"name": "b", "solver": "s"}, "run": {"threads": 2, "iterations": 7}, "probes": {},
                  "time": {"end": 2.0, "dt": 0.1}}  # fmt: skip
    assert case_differences(one, free) == []
    named, valued = ({**one, "pressure": {"solver": solver}} for solver in ("cg", {"type": "cg"}))
    assert case_differences(named, valued) == []
    other = one | {"time": {"end": 1.0, "dt": 0.2}, "event": [{"time": 2.0}], "les": {"model": "wale"}}
    assert case_differences(one, other) == [
        "time.dt: was 0.1, is 0.2", "event[1].time: was 1.0, is 2.0", 'les.model: was not there, is "wale"',
    ]  # fmt: skip
