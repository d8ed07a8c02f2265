"""What a user has is kept, in every solver: refusals, finished runs, restarts, disks."""

from __future__ import annotations

import csv
import json
import socket
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fluxloom.run.results import files
from fluxloom.run.results import results as result_folder
from tests.faults.cases import CASES
from tests.faults.conftest import tree

SOLVERS = list(CASES)
TABLE = {"airfoil": "residual.csv", "tsunami": "gauges.csv"}  # of the others history.csv


def write(solver: str, iterations: int = 6, *changes: tuple[str, str], add: str = "") -> Path:
    """Write the case of a solver; return its file."""
    text = CASES[solver].text.replace("ITERATIONS", str(iterations))
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    path = Path(f"{solver}.toml")
    path.write_text(text + add)
    return path


def checkpoints(every: int) -> str:
    return f"\n[checkpoint]\nevery = {every}\n"


def record(folder: str | Path = "out") -> dict[str, Any]:
    return json.loads((Path(folder) / "run.json").read_text())


def rows(path: Path, *, leave: tuple[str, ...] = ("seconds",)) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return [{k: v for k, v in row.items() if k not in leave} for row in csv.DictReader(file)]


def end(solver: str) -> list[str]:
    """Return options by which a run of a few steps is what the user wants."""
    return ["-n", "6"] if solver == "compressible" else []


# ------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_changed_case_is_refused_and_nothing_is_touched(solver: str, run: Any) -> None:
    assert run(write(solver), "-o", "out", *end(solver)) == 0
    before = tree(Path("out"))
    changed = write(solver, 6, CASES[solver].changed)
    assert run(changed, "-o", "out", *end(solver)) == 2
    assert "--overwrite" in run.said
    assert "was " in run.said
    assert tree(Path("out")) == before
    assert run(changed, "-o", "out", "--overwrite", *end(solver)) == 0
    assert set(tree(Path("out"))) == set(before)
    assert all(tree(Path("out"))[name] != before[name] for name in (CASES[solver].fields, "run.json"))


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_refused_run_leaves_the_folder_as_it_was(solver: str, run: Any) -> None:
    assert run(write(solver, add=checkpoints(3)), "-o", "out", *end(solver)) == 0
    (Path("out") / "notes.txt").write_text("mine")
    before = tree(Path("out"))
    more = [("time = 40.0", "time = 60.0")] if solver == "tsunami" else []
    refusals = [
        (*more, ("threads = 1", "threads = 1\nno_such_key = 1")),
        (*more, ("threads = 1", 'threads = 1\ndevice = "opencl:77"')),
        (*more, ("threads = 1", 'threads = 1\ndevice = "cpu:9"')),
    ]
    for changes in refusals:
        assert run(write(solver, 9, *changes, add=checkpoints(3)), "-o", "out") == 2
        assert tree(Path("out")) == before
    damaged = Path("out") / "checkpoint.h5"
    for path in Path("out").glob("checkpoint.h5*"):
        path.write_bytes(path.read_bytes()[:100])
    damaged_tree = tree(Path("out"))
    assert run(write(solver, 9, *more, add=checkpoints(3)), "-o", "out", "-n", 9) == 2
    assert str(damaged) in run.said
    assert tree(Path("out")) == damaged_tree
    assert run(write(solver, 9, add=checkpoints(3)), "-o", "new/deep", "--device", "opencl:77") == 2
    assert not Path("new").exists()


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_disk_without_room_is_refused(solver: str, run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(result_folder.shutil, "disk_usage", lambda _: SimpleNamespace(free=1000))
    assert run(write(solver), "-o", "out", *end(solver)) == 2
    assert "free some space" in run.said
    assert not Path("out").exists()


@pytest.mark.parametrize("solver", [name for name in SOLVERS if CASES[name].start[0]])
def test_a_start_that_is_not_a_number_is_refused(solver: str, run: Any) -> None:
    assert run(write(solver), "-o", "out", *end(solver)) == 0
    before = tree(Path("out"))
    case = write(solver, 6, CASES[solver].start)
    assert run(case, "-o", "out", "--overwrite", *end(solver)) == 2
    assert tree(Path("out")) == before
    assert run(case, "-o", "other", *end(solver)) == 2
    assert not Path("other").exists()


# -------------------------------------------------------------------------------- the same command again


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("kept", [False, True], ids=["without-checkpoint", "with-checkpoint"])
def test_a_finished_run_says_so_and_keeps_everything(solver: str, kept: bool, run: Any) -> None:
    case = write(solver, add=checkpoints(3) if kept else "")
    assert run(case, "-o", "out", *end(solver)) == 0
    before = tree(Path("out"))
    assert run(case, "-o", "out", *end(solver)) == 0
    assert "at its end already: end reached" in run.said
    killed = {"process": 2**22, "machine": socket.gethostname()}  # just before its lock went
    (Path("out") / ".fluxloom-lock").write_text(json.dumps(killed))
    assert run(case, "-o", "out", *end(solver)) == 0
    assert tree(Path("out")) == before
    assert run(case, "-o", "out", *end(solver), "--overwrite") == 0
    assert "at its end already" not in run.said


@pytest.mark.parametrize("solver", SOLVERS)
def test_three_restarts_make_the_run_in_one_piece(solver: str, run: Any) -> None:
    table, count = TABLE.get(solver, "history.csv"), 9
    if solver == "tsunami":  # its iterations are parts of one time: the run is interrupted instead, elsewhere
        pytest.skip("-n of a tsunami is the number of reports in its time, not a number of steps")
    case = write(solver, count, add=checkpoints(2))
    assert run(case, "-o", "whole", "-n", count) == 0
    for steps in (2, 5, 6, count):
        assert run(case, "-o", "parts", "-n", steps) == 0
        assert record("parts")["iterations"] == steps
        assert ("resumed from step" in run.said) == (steps > 2)
    assert rows(Path("parts") / table) == rows(Path("whole") / table)
    assert rows(Path("parts/residual.csv")) == rows(Path("whole/residual.csv"))
    one, other = tree(Path("whole")), tree(Path("parts"))
    assert set(one) <= set(other)
    assert same_fields(Path("whole") / CASES[solver].fields, Path("parts") / CASES[solver].fields)


def same_fields(a: Path, b: Path) -> bool:
    if a.suffix == ".vti":
        return a.read_bytes() == b.read_bytes()
    from fluxloom.mesh import read_fields

    one, other = read_fields(a), read_fields(b)
    for first, second in ((one.cell_data, other.cell_data), (one.point_data, other.point_data)):
        if set(first) != set(second) or any(first[k].tobytes() != second[k].tobytes() for k in first):
            return False
    return True


# ------------------------------------------------------------------------------------------- full disks


@pytest.mark.parametrize("solver", SOLVERS)
def test_an_output_that_cannot_be_written_is_lost_alone(solver: str, run: Any, monkeypatch: pytest.MonkeyPatch) -> None:

    whole, table = files.Lines._put, TABLE.get(solver, "history.csv")
    if table == "gauges.csv":
        table = "residual.csv"

    def full(self: files.Lines, text: str) -> None:
        if self._path is not None and self._path.name == table and self._size > 60:
            self._fail(OSError(28, "No space left on device"))
        else:
            whole(self, text)

    monkeypatch.setattr(files.Lines, "_put", full)
    assert run(write(solver, add=checkpoints(3)), "-o", "out", *end(solver)) == 3
    assert f"output lost: {table}: the disk is full" in run.said
    assert run.said.count("the disk is full") == 2  # when it happened, and in the summary
    found = record()
    assert found["status"] == "end reached"
    assert found["lost"] == {table: "the disk is full"}
    assert {CASES[solver].fields, "checkpoint.h5"} <= set(found["files"])
    assert table not in found["files"]
    monkeypatch.setattr(files.Lines, "_put", whole)
    assert run(write(solver, add=checkpoints(3)), "-o", "out", *end(solver)) == 0  # what was lost is made now
    assert record()["lost"] == {}
    assert table in record()["files"]
