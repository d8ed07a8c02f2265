"""Running a snippet of Python on real ranks."""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import subprocess
import tempfile
from pathlib import Path
from subprocess import CompletedProcess
from textwrap import dedent

import pytest

from fluxloom.core.errors import CommError
from fluxloom.machine.ranks import Starter, find_starter

ROOT = Path(__file__).resolve().parents[2]

_PRELUDE = """
import runpy, sys
from fluxloom.comm import ending_together, world
size, script, sys.argv = int(sys.argv[1]), sys.argv[2], sys.argv[2:]
comm = world()
assert comm.size == size, f"{comm!r}, but {size} ranks were started"
with ending_together(comm):
    runpy.run_path(script, {"comm": comm}, "__main__")
"""


@functools.cache
def starter() -> Starter | str:
    """Return the launcher of the MPI library, or why there is none."""
    try:
        return find_starter()
    except CommError as error:
        return str(error)


def mpiexec(
    ranks: int,
    program: str | Path,
    *arguments: object,
    timeout: float = 60,
    check: bool = True,
    environment: dict[str, str] | None = None,
) -> CompletedProcess[str]:
    """Run Python on real ranks, each of which finds its communicator in the name ``comm``.

    An error on one rank ends them all. The calling test is skipped where MPI or its launcher is missing.

    Parameters
    ----------
    ranks
        Their number; each rank asserts that it is that of its communicator.
    program
        A file, or the text of one (indented as the caller likes).
    arguments
        Words in ``sys.argv[1:]``.
    timeout
        Seconds; all ranks are ended after it and the test fails.
    check
        Whether the test fails when the exit status is not 0.
    environment
        Variables that differ from those of this process.
    """
    found = starter()
    if isinstance(found, str):
        pytest.skip(found)
    with tempfile.TemporaryDirectory(prefix="fluxloom-ranks-") as folder:
        path = Path(folder) / "ranks.py"
        if isinstance(program, Path):
            path = program
        else:
            path.write_text(dedent(program), encoding="utf-8")
        words = ["-c", _PRELUDE, str(ranks), str(path), *map(str, arguments)]
        variables = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", **found.environment(), **(environment or {})}
        done = run(found.command(ranks, words), variables, timeout)
    if check and done.returncode:
        pytest.fail(f"{ranks} ranks ended with status {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done


def run(command: list[str], environment: dict[str, str], timeout: float) -> CompletedProcess[str]:
    """Run a command in a process group of its own; when it takes too long, end it all and fail the test."""
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT,
        env=environment, start_new_session=True,
    )  # fmt: skip
    try:
        out, err = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        process.terminate()  # a launcher ends its ranks
        try:
            out, err = process.communicate(timeout=10)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            out, err = process.communicate()
        pytest.fail(f"the ranks did not end within {timeout:g} s\n{out}\n{err}")
    return CompletedProcess(command, process.returncode, out, err)
