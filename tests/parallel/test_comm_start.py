"""The ranks that a command line asks for are started, and each finds its entry."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from textwrap import dedent

import pytest

from fluxloom.machine import ranks
from fluxloom.machine.ranks import Starter
from tests.parallel.launch import ROOT, mpiexec, run

pytestmark = pytest.mark.mpi

START = "import sys; from fluxloom.machine.ranks import parse, start; sys.exit(start(parse({0!r}), {1!r}))"


def started(text: str, words: list[str]) -> subprocess.CompletedProcess[str]:
    return run([sys.executable, "-c", START.format(text, words)], dict(os.environ), 60)


def test_start(launcher: Starter) -> None:
    done = started("cpu:1,reference", ["--help", "--ranks", "cpu:1,reference"])
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("Usage") == 2


def test_exit_status(launcher: Starter) -> None:
    done = started("cpu:1*2", ["run", "no-such-file.toml", "--ranks=cpu:1*2"])
    assert done.returncode in (2, 9), f"{done.returncode}: {done.stderr}"  # it may tell that it killed the other
    assert "no-such-file.toml" in done.stderr


def test_entries_reach_the_ranks(launcher: Starter) -> None:
    program = """
        from fluxloom.machine.ranks import spec_of
        import sys; sys.stdout.write(f"{comm.rank} {spec_of(comm)}\\n")
    """
    done = mpiexec(3, program, environment={ranks.VARIABLE: "cuda:1,cpu:5,opencl:0"})
    assert sorted(done.stdout.splitlines()) == ["0 cuda:1", "1 cpu:5", "2 opencl:0"]
    done = mpiexec(2, program, environment={ranks.VARIABLE: "cpu*3"}, check=False)
    assert done.returncode in (2, 9)
    assert "FLUXLOOM_RANKS='cpu*3' names 3 ranks, but 2 run" in done.stderr


def instead(folder: Path, text: str) -> str:
    """Write a package that ranks started in a folder take for this one; return a program that starts two of them."""
    package = folder / "fluxloom"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "__main__.py").write_text(dedent(text), encoding="utf-8")
    return (
        f"import os, sys; from fluxloom.machine.ranks import parse, start; os.chdir({str(folder)!r}); "
        "sys.exit(start(parse('cpu:1*2'), []))"
    )


WORLD = f"""
import ctypes, sys
sys.path.insert(0, {str(ROOT)!r})
for name in [name for name in sys.modules if name.startswith("fluxloom")]:
    del sys.modules[name]
from fluxloom.comm import world
comm = world()
"""


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        ("if comm.rank: comm.abort('no good', 77)", 77, "rank 1 of 2: no good"),
        ("if comm.rank: ctypes.CDLL(None)._exit(0)", 1, "one of 2 ranks ended with status 0 in the middle of the run"),
        ("if not comm.rank: ctypes.CDLL(None).exit(0)", 1, "one of 2 ranks ended with status 0 in the middle"),
        ("", 0, ""),
    ],
)
def test_status_of_the_rank_that_ends_the_others(
    body: str, status: int, words: str, launcher: Starter, tmp_path: Path
) -> None:
    """It comes through, whatever the launcher makes of it; else the launcher's own does, but for a 0 too early."""
    program = instead(tmp_path, f"{WORLD}{body}\ncomm.barrier()\n")
    done = run([sys.executable, "-c", program], dict(os.environ), 60)
    assert done.returncode == status, done.stderr
    assert words in done.stderr


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGTERM, 143), pytest.param(signal.SIGINT, 130, marks=pytest.mark.long)]
)
def test_signals_reach_the_ranks(number: signal.Signals, status: int, launcher: Starter, tmp_path: Path) -> None:
    """Ending the process that started the ranks ends the ranks."""
    program = instead(tmp_path, "import os, pathlib, time; pathlib.Path(f'pid{os.getpid()}').touch(); time.sleep(100)")
    process = subprocess.Popen(
        [sys.executable, "-c", program], cwd=ROOT, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    deadline = time.monotonic() + 60
    while len(found := list(tmp_path.glob("pid*"))) < 2 and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    assert len(found) == 2
    if number == signal.SIGINT:
        os.killpg(process.pid, number)  # as a terminal does
    else:
        process.send_signal(number)
    assert process.wait(timeout=60) == status
    while any(alive(int(path.name[3:])) for path in found) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not any(alive(int(path.name[3:])) for path in found)


def alive(number: int) -> bool:
    """Whether a process runs; one that has ended but was not waited for does not."""
    try:
        with open(f"/proc/{number}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
