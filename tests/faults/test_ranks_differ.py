"""Ranks that declare or run different things all get the same error: no wrong field, no hang."""

from __future__ import annotations

import ast
import os
from pathlib import Path
from typing import Any

import pytest

from fluxloom.comm.base import Comm
from fluxloom.comm.threads import run_threads
from fluxloom.core.errors import CommError
from tests.faults.rank_cases import CASES, leaves, restored_by_one
from tests.parallel.launch import ROOT, mpiexec, run, starter


def errors(body: Any, *arguments: Any, ranks: int = 2, **other: Any) -> list[str]:
    """Return the message of what each rank raises."""

    def rank(comm: Comm) -> str:
        try:
            body(comm, *arguments, **other)
        except CommError as error:
            return str(error)
        return ""

    return run_threads(ranks, rank)


@pytest.mark.parametrize("name", CASES)
def test_threads_that_differ(name: str) -> None:
    body, other, words = CASES[name]
    first, second = errors(body, **other)
    assert first == second
    assert "the ranks disagree: rank 0: " in first
    assert "; rank 1: " in first
    assert all(word in first for word in words)


def test_the_same_on_all_threads_is_no_error() -> None:
    body, _, _ = CASES["dtype"]
    assert errors(body) == ["", ""]
    assert errors(body, ranks=3) == ["", "", ""]


def test_one_of_three() -> None:
    body, other, _ = CASES["sums"]
    found = errors(body, ranks=3, **other)
    assert len(set(found)) == 1
    assert "ranks 0 and 2: " in found[0]


def test_a_checkpoint_read_by_one(tmp_path: Path) -> None:
    pytest.importorskip("h5py")
    first, second = errors(restored_by_one, str(tmp_path))
    assert first == second
    assert "rank 0: a broadcast from rank 0; rank 1: loop scatter" in first


def test_a_thread_that_leaves() -> None:
    first, second = errors(leaves)
    assert "rank 0: value of s float64; rank 1: nothing more" in first
    assert second == ""


ALL = """
    import json, sys
    from fluxloom.core.errors import CommError
    from tests.faults.rank_cases import CASES, declared
    declared(comm)
    for name, (body, other, _) in CASES.items():
        text = ""
        try:
            body(comm, **other)
        except CommError as error:
            text = str(error)
        said = comm.rally(text, 20.0)   # all ranks leave what they did, and go on
        if comm.rank == 0:
            sys.stdout.write(json.dumps([name, said]) + chr(10))
    declared(comm)
"""


@pytest.mark.mpi
def test_processes_that_differ() -> None:
    import json

    done = mpiexec(2, ALL, environment={"FLUXLOOM_PATIENCE": "1"})
    found = dict(json.loads(line) for line in done.stdout.splitlines())
    assert list(found) == list(CASES)
    for name, (first, second) in found.items():
        assert first == second, name
        assert first.startswith("the ranks disagree: rank 0: "), name
        assert all(word in first for word in CASES[name][2]), name


ENDS = {
    "exits": "import sys; sys.exit(0)",
    "fails": "raise ValueError('no good')",
    "is killed": "import os; os.kill(os.getpid(), 9)",
    "leaves": "import os; os._exit(0)",
}


@pytest.mark.mpi
@pytest.mark.parametrize(
    ("how", "first"),
    [("exits", 0), ("fails", 1), ("is killed", 1), ("leaves", 0), *(pytest.param(*case, marks=pytest.mark.long)
     for case in (("exits", 1), ("fails", 0), ("is killed", 0), ("leaves", 1)))],
)  # fmt: skip
def test_a_process_that_ends(how: str, first: int, tmp_path: Path) -> None:
    """Without `ending_together`: the other one, which waits for it, ends too."""
    found = starter()
    if isinstance(found, str):
        pytest.skip(found)
    program = tmp_path / "ranks.py"
    program.write_text(f"import fluxloom as fl\ncomm = fl.world()\nif comm.rank == {first}:\n    {ENDS[how]}\n"
                       "comm.allgather(1)\nprint('not reached')\n")  # fmt: skip
    environment = {**os.environ, **found.environment(), "PYTHONPATH": str(ROOT), "FLUXLOOM_PATIENCE": "1"}
    done = run(found.command(2, [str(program)]), environment, 30)
    assert done.returncode != 0
    assert "not reached" not in done.stdout
    if how == "leaves":
        assert f"rank {first} of 2: os._exit(0) in the middle of the run" in done.stderr
    elif how != "is killed":
        assert f"rank {first}: it has ended" in done.stderr


@pytest.mark.mpi
def test_copies_of_a_process_may_leave() -> None:
    """So do processes of ``multiprocessing``; and ranks behind the end of MPI."""
    program = """
        import os
        if os.fork() == 0:
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.wait()[1]) == 0
        comm.allgather(1)
        comm.module.Finalize()
        os._exit(0)
    """
    assert mpiexec(2, program).returncode == 0


@pytest.mark.mpi
def test_a_long_wait_is_told() -> None:
    """Who waits, for whom, behind what; and it is no fault."""
    program = """
        import time
        from tests.faults.rank_cases import Ring
        ring = Ring(comm)
        ring.scatter()
        if comm.rank == 1:
            time.sleep(0.5)
        ring.scatter()
    """
    done = mpiexec(2, program, environment={"FLUXLOOM_PATIENCE": "0.2"})
    assert "rank 0 of 2 has waited for 0 s" in done.stderr
    assert "loop scatter" in done.stderr
    assert "rank 1 has come to no message meanwhile" in done.stderr


DEVICES = """
    import sys, time
    from fluxloom.core.errors import CommError

    def run(acts, seconds):
        \"\"\"Do something, and wait for a device that needs so long; return what was raised.\"\"\"
        for act in acts[comm.rank]:
            comm.note(act)
        begin = time.monotonic()
        try:
            comm.wait_for_device(lambda: time.monotonic() - begin > seconds[comm.rank])
            comm.barrier()
        except CommError as error:
            return str(error)
        return ""

    for acts, seconds in (
        ([[b"loop a", b"loop c"], [b"loop b"]], [9.0, 9.0]),       # none comes to its end
        ([[b"loop a"], [b"loop b"]], [9.0, 0.0]),                  # one does, and waits for the other
        ([[b"loop a"], [b"loop a", b"loop b"]], [0.8, 0.8]),       # one may just be behind
        ([[b"loop a"], [b"loop a"]], [0.7, 0.0]),
        ([[b"loop a"], [b"loop a"]], [0.7, 0.7]),
    ):
        comm.devices_talk()
        said = comm.rally(run(acts, seconds), 20.0)
        if comm.rank == 0:
            sys.stdout.write(repr(said) + chr(10))
"""


@pytest.mark.mpi
def test_ranks_that_wait_for_their_devices() -> None:
    """Different acts are told at once; a device that computes is waited for, and a long wait is told."""
    done = mpiexec(2, DEVICES, environment={"FLUXLOOM_PATIENCE": "0.4"})
    stuck, one, behind, *right = [ast.literal_eval(line) for line in done.stdout.splitlines()]
    for first, second in (stuck, one):
        assert first == second
        assert first.startswith("the ranks disagree: rank 0: loop a; rank 1: loop b")
    assert right == [["", ""]] * 2
    assert behind == [behind[0]] * 2
    assert behind[0].startswith("the ranks disagree: rank 0: a barrier; rank 1: loop b")  # once its device was done
    assert "s, waiting for its device, in: loop a; " in done.stderr


ENDED = """
import sys, time
import fluxloom as fl
comm = fl.world()
comm.devices_talk()
comm.barrier()
comm.note(b"loop a")
{body}
"""


@pytest.mark.mpi
@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        ("comm.note(b'loop b' if comm.rank else b'loop c')", 2, "the ranks disagree: rank 0: loop c; rank 1: loop b"),
        ("if comm.rank: comm.note(b'loop b')", 2, "the ranks disagree: rank 0: it has ended; rank 1: loop b"),
        ("comm.note(b'loop b')", 0, ""),
        ("if comm.rank: comm.note(b'loop b'); raise ValueError('no good')", 1, "ValueError: no good"),
        ("if comm.rank: comm.note(b'loop b'); comm.wait_for_device(lambda: False)", 1,
         "the ranks disagree: rank 0: it has ended; rank 1: loop b"),
    ],
)  # fmt: skip
def test_ends_of_ranks_with_devices_that_talk(body: str, status: int, words: str, tmp_path: Path) -> None:
    """What was done is compared at the end, too, for no message may have been seen behind it."""
    found = starter()
    if isinstance(found, str):
        pytest.skip(found)
    program = tmp_path / "ranks.py"
    program.write_text(ENDED.format(body=body))
    environment = {**os.environ, **found.environment(), "PYTHONPATH": str(ROOT), "FLUXLOOM_PATIENCE": "0.8"}
    done = run(found.command(2, [str(program)]), environment, 30)
    assert done.returncode == status, done.stderr
    assert words in done.stderr
    assert done.stderr.count("the ranks disagree") <= 1


def test_a_long_wait_of_threads_is_told(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    import time

    monkeypatch.setenv("FLUXLOOM_PATIENCE", "0.1")

    def rank(comm: Comm) -> None:
        if comm.rank == 1:
            time.sleep(0.3)
        comm.barrier()

    run_threads(2, rank)
    assert "rank 0 of 2 has waited for 0 s for the other ranks in a barrier; rank 1 does not" in capfd.readouterr().err
