"""The folder of results: one run at a time, files that stand until their successor does, losses that end nothing."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fluxloom.core.errors import CaseError, DeviceUnavailable, FluxloomError
from fluxloom.run.results.files import Lines, ResidualLog, read_residuals
from fluxloom.run.results.results import LOCK, Earlier, FolderLock, ResultFolder, digests_of_inputs, examine

CASE = {
    "case": {"name": "a"}, "run": {"iterations": 10}, "fluid": {"viscosity": 0.1}, "time": {"end": 2.0, "steady": 0.0},
}  # fmt: skip


def tree(path: Path) -> dict[str, bytes]:
    return {found.name: found.read_bytes() for found in path.iterdir()}


# ------------------------------------------------------------------------------------------------ tables


def test_a_new_table_grows_in_place(tmp_path: Path) -> None:
    lines = Lines(tmp_path / "t.csv", "a,b")
    lines.add("1,2")
    assert (tmp_path / "t.csv").read_text() == "a,b\n1,2\n"
    assert lines.close()
    assert [path.name for path in tmp_path.iterdir()] == ["t.csv"]


def test_a_table_replaces_another_one_when_it_is_closed(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("old\n")
    lines = Lines(tmp_path / "t.csv", "a")
    for k in range(9):
        lines.add(str(k))
    assert (tmp_path / "t.csv").read_text() == "old\n"
    assert lines.close()
    assert (tmp_path / "t.csv").read_text() == "a\n" + "".join(f"{k}\n" for k in range(9))


def test_a_table_that_goes_on_takes_the_place_when_it_has_overtaken(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a\n1\n2\n3\n")
    lines = Lines(tmp_path / "t.csv", "a", ["1"])
    assert (tmp_path / "t.csv").read_text() == "a\n1\n2\n3\n"
    lines.add("2")
    lines.add("3")
    assert not (tmp_path / "t.csv.part").exists()
    lines.add("4")
    assert (tmp_path / "t.csv").read_text() == "a\n1\n2\n3\n4\n"
    assert lines.close()


def test_a_table_on_a_full_device_is_lost_alone(tmp_path: Path) -> None:
    lost: dict[str, str] = {}
    (tmp_path / "t.csv").symlink_to("/dev/full")
    lines = Lines(tmp_path / "t.csv", "a", lose=lost.__setitem__)
    lines.add("1")
    assert not lines.close()
    assert lost == {"t.csv": "the disk is full"}
    assert (tmp_path / "t.csv").is_symlink()


def test_a_table_stays_where_a_link_leads(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "real.csv").write_text("old\n")
    (tmp_path / "t.csv").symlink_to("elsewhere/real.csv")
    lines = Lines(tmp_path / "t.csv", "a")
    assert (tmp_path / "t.csv").read_text() == "old\n"
    assert lines.close()
    assert (tmp_path / "elsewhere" / "real.csv").read_text() == "a\n"
    assert (tmp_path / "t.csv").is_symlink()


def test_residuals_go_on(tmp_path: Path) -> None:
    log = ResidualLog(tmp_path / "residual.csv")
    for k in (1, 2, 3):
        log.add(k, 0.5**k, 0.1 * k)
    log.close()
    again = ResidualLog()
    again.memory = log.memory
    again.begin(tmp_path / "residual.csv")
    again.add(4, 0.5**4, 0.4)
    again.close()
    steps, values = read_residuals(tmp_path / "residual.csv")
    assert steps.tolist() == [1, 2, 3, 4]
    assert values.tolist() == [0.5, 0.25, 0.125, 0.0625]


# ------------------------------------------------------------------------------------------------ lock


def test_a_second_run_is_refused_while_the_first_lives(tmp_path: Path) -> None:
    first = FolderLock(tmp_path, "fluxloom run a.toml")
    with pytest.raises(CaseError, match=f"process {os.getpid()} on {socket.gethostname()} is writing .*run a.toml"):
        FolderLock(tmp_path, "b")
    first.release()
    assert not list(tmp_path.iterdir())
    FolderLock(tmp_path, "b").release()


def test_a_killed_run_is_taken_over(tmp_path: Path) -> None:
    program = f"from fluxloom.run.results.results import FolderLock; from pathlib import Path; import os\n" \
              f"FolderLock(Path({str(tmp_path)!r}), 'first'); os._exit(9)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 9
    before = tree(tmp_path)
    assert set(before) == {LOCK}
    lock = FolderLock(tmp_path, "second")
    assert "has ended without saying so" in lock.taken_over
    lock.release(refused=True)
    assert tree(tmp_path) == before
    FolderLock(tmp_path, "third").release()
    assert not tree(tmp_path)


@pytest.mark.parametrize(("age", "refused"), [(5.0, True), (90.0, False)])
def test_another_machine_counts_by_its_heartbeat(tmp_path: Path, age: float, refused: bool) -> None:
    path = tmp_path / LOCK
    path.write_text(json.dumps({"process": 1, "machine": "elsewhere", "command": "run", "since": time.time() - 900}))
    os.utime(path, (time.time() - age,) * 2)
    if refused:
        with pytest.raises(CaseError, match="process 1 on elsewhere"):
            FolderLock(tmp_path, "b")
    else:
        lock = FolderLock(tmp_path, "b")
        assert lock.taken_over.startswith("process 1 on elsewhere")
        lock.release()


# ------------------------------------------------------------------------------------------------ folder


def test_a_refused_run_leaves_nothing(tmp_path: Path) -> None:
    folder = ResultFolder(tmp_path / "a" / "b")
    folder.open("run")
    assert (tmp_path / "a" / "b" / LOCK).exists()
    folder.close(refused=True)
    assert not (tmp_path / "a").exists()
    with pytest.raises(CaseError, match=r"only .* are free"):
        ResultFolder(tmp_path / "a" / "b").open("run", needed=1 << 62)
    assert not (tmp_path / "a").exists()


def test_a_file_that_fails_is_lost_alone(tmp_path: Path) -> None:
    told: list[str] = []
    folder = ResultFolder(tmp_path, told.append)
    with folder.attempt("good.csv"):
        (folder / "good.csv").write_text("1")
    full = OSError(28, "No space left on device")
    for error in (full, FluxloomError("bad.csv: cannot be written: no"), ValueError("odd")):
        with folder.attempt("bad.csv"):
            raise error
    with folder.attempt("picture.png"):
        raise DeviceUnavailable("pictures need a package")
    assert folder.written == ["good.csv"]
    assert folder.lost == {"bad.csv": "the disk is full"}
    assert told == ["output lost: bad.csv: the disk is full",
                    "warning: picture.png is left out: pictures need a package"]  # fmt: skip


def test_orphans_of_killed_writers_go_and_other_files_stay(tmp_path: Path) -> None:
    for name in (".final-123-1a2b.vtkhdf", "history.csv.part", "checkpoint.h5.part"):
        (tmp_path / name).write_text("x")
    for name in (".gitignore", "mine.part", "notes-1-2.txt", "final.vtkhdf"):
        (tmp_path / name).write_text("x")
    ResultFolder(tmp_path).remove_orphans()
    assert {path.name for path in tmp_path.iterdir()} == {".gitignore", "mine.part", "notes-1-2.txt", "final.vtkhdf"}


def test_only_results_of_an_earlier_run_go(tmp_path: Path) -> None:
    folder = ResultFolder(tmp_path)
    for name in ("old.png", "notes.txt", "final.vtu", "checkpoint.h5.1", "run.json"):
        (tmp_path / name).write_text("x")
    folder.written = ["final.vtu"]
    folder.remove_earlier(["old.png", "notes.txt", "../b", "", "final.vtu", "run.json", "checkpoint.h5.1"])
    assert {path.name for path in tmp_path.iterdir()} == {"notes.txt", "final.vtu", "run.json"}


# ------------------------------------------------------------------------------------------------ earlier


def look(path: Path, case: dict[str, object], *, overwrite: bool = False, resume: bool = True) -> Earlier:
    known = {"inputs": {}} | case
    return examine(ResultFolder(path), known, overwrite=overwrite, resume=resume, has_checkpoint=lambda: False)


def record(path: Path, status: str, ended_by: str = "run.iterations", reached: float = 10, **more: object) -> None:
    found = {"case": CASE, "status": status, "ended_by": ended_by, "reached": reached, "iterations": 10,
             "files": ["final.vti"], **more}  # fmt: skip
    (path / "run.json").write_text(json.dumps(found))


def test_an_empty_folder_is_free(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    found = look(tmp_path, CASE)
    assert (found.record, found.over, found.files) == (None, None, ())


def test_results_of_no_known_run_are_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "final.vtkhdf").write_text("x")
    with pytest.raises(CaseError, match=r"results of no run that is known \(final.vtkhdf\); --overwrite"):
        look(tmp_path, CASE)
    assert look(tmp_path, CASE, overwrite=True).files == ("final.vtkhdf",)
    (tmp_path / "run.json").write_text('{"case": ')
    with pytest.raises(CaseError, match=r"run\.json"):
        look(tmp_path, CASE)


@pytest.mark.parametrize("status", ["end reached", "interrupted", "diverged", "running"])
def test_another_case_is_refused_and_its_keys_are_named(tmp_path: Path, status: str) -> None:
    record(tmp_path, status)
    other = CASE | {"fluid": {"viscosity": 0.2}}
    with pytest.raises(CaseError, match=r"fluid.viscosity: was 0.1, is 0.2. --overwrite .* --output"):
        look(tmp_path, other)
    assert not look(tmp_path, other, overwrite=True).goes_on
    assert not look(tmp_path, other, resume=False).goes_on


def test_an_input_file_that_changed_makes_another_case(tmp_path: Path) -> None:
    mesh = tmp_path / "mesh.su2"
    mesh.write_text("1")
    case = CASE | {"mesh": {"file": str(mesh)}}
    inputs = digests_of_inputs(case)
    assert list(inputs) == [str(mesh)]
    record(tmp_path, "end reached", case=case, inputs=inputs)
    assert look(tmp_path, case | {"inputs": inputs}).over == "end reached"
    mesh.write_text("2")
    with pytest.raises(CaseError, match=r"inputs.*mesh.su2"):
        look(tmp_path, case | {"inputs": digests_of_inputs(case)})


@pytest.mark.parametrize(
    ("status", "ended_by", "reached", "changed", "over"),
    [
        ("end reached", "run.iterations", 10, {}, True),
        ("end reached", "run.iterations", 10, {"run": {"iterations": 20}}, False),
        ("end reached", "run.iterations", 10, {"run": {"iterations": 5}}, True),
        ("end reached", "run.iterations", 10, {"run": {"iterations": 0}}, False),
        ("end reached", "time.end", 2.0, {"run": {"iterations": 20}}, True),
        ("end reached", "time.end", 2.0, {"time": {"end": 0.0, "steady": 0.0}}, False),
        ("end reached", "time.end", 2.0, {"time": {"end": 3.0, "steady": 0.0}}, False),
        ("end reached", "time.end", 2.0, {"time": {"end": 2.0, "steady": 1e-3}}, False),
        ("converged", "time.steady", 1e-4, {"time": {"end": 2.0, "steady": 1e-3}}, True),
        ("converged", "time.steady", 1e-4, {"time": {"end": 2.0, "steady": 1e-5}}, False),
        ("not converged", "run.iterations", 10, {}, True),
        ("not converged", "run.iterations", 10, {"run": {"iterations": 11}}, False),
        ("diverged", "", None, {}, False),
        ("interrupted", "", None, {}, False),
        ("running", "", None, {}, False),
    ],
)
def test_the_same_command_again(
    tmp_path: Path, status: str, ended_by: str, reached: float, changed: dict[str, object], over: bool
) -> None:
    record(tmp_path, status, ended_by, reached)
    found = look(tmp_path, CASE | changed)
    assert found.over == (status if over else None)
    assert found.goes_on


def test_lost_outputs_and_new_ones_are_made_again(tmp_path: Path) -> None:
    record(tmp_path, "end reached", lost={"final.vti": "the disk is full"})
    assert look(tmp_path, CASE).over is None
    record(tmp_path, "end reached")
    assert look(tmp_path, CASE | {"probes": {"every": 1}}).over is None
    assert look(tmp_path, CASE | {"run": {"iterations": 10, "device": "cuda"}}).over == "end reached"
