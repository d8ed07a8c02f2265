"""The ranks that a command line asks for are started, and each finds its entry."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from fluxloom.app import ranks
from fluxloom.app.ranks import Starter
from tests.parallel.launch import ROOT, mpiexec, run

pytestmark = pytest.mark.mpi

START = "import sys; from fluxloom.app.ranks import parse, start; sys.exit(start(parse({0!r}), {1!r}))"


def started(text: str, words: list[str]) -> subprocess.CompletedProcess[str]:
    return run([sys.executable, "-c", START.format(text, words)], dict(os.environ), 60)


def test_start(launcher: Starter) -> None:
    done = started("cpu:1*2,reference", ["--help", "--ranks", "cpu:1*2,reference"])
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("Usage") == 3


def test_exit_status(launcher: Starter) -> None:
    done = started("cpu:1*2", ["run", "no-such-file.toml", "--ranks=cpu:1*2"])
    assert done.returncode == 2
    assert "no-such-file.toml" in done.stderr


def test_entries_reach_the_ranks(launcher: Starter) -> None:
    program = """
        from fluxloom.app.ranks import spec_of
        print(comm.rank, spec_of(comm))
    """
    done = mpiexec(3, program, environment={ranks.VARIABLE: "cuda:1,cpu:5,opencl:0"})
    assert sorted(done.stdout.splitlines()) == ["0 cuda:1", "1 cpu:5", "2 opencl:0"]
    done = mpiexec(2, program, environment={ranks.VARIABLE: "cpu*2"})
    share = max(1, len(os.sched_getaffinity(0)) // 2)
    assert sorted(done.stdout.splitlines()) == [f"0 cpu:{share}", f"1 cpu:{share}"]
    done = mpiexec(2, program)
    assert sorted(done.stdout.splitlines()) == ["0 None", "1 None"]
    done = mpiexec(2, program, environment={ranks.VARIABLE: "cpu*3"}, check=False)
    assert done.returncode == 2
    assert "FLUXLOOM_RANKS='cpu*3' names 3 ranks, but 2 run" in done.stderr


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_signals_reach_the_ranks(number: signal.Signals, status: int, launcher: Starter, tmp_path) -> None:
    """Ending the process that started the ranks ends the ranks."""
    package = tmp_path / "fluxloom"
    package.mkdir()
    (package / "__main__.py").write_text(
        "import os, pathlib, sys, time\n"
        "pathlib.Path(sys.argv[1], f'pid{os.getpid()}').touch()\n"
        "time.sleep(100)\n"
    )  # fmt: skip
    program = (
        "import os, sys; from fluxloom.app.ranks import parse, start; os.chdir(sys.argv[1]);"
        "sys.exit(start(parse('cpu:1*2'), [sys.argv[1]]))"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path)], cwd=ROOT, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    deadline = time.monotonic() + 60
    while len(found := list(tmp_path.glob("pid*"))) < 2 and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    assert len(found) == 2
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
