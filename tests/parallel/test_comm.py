"""Real ranks do what a communicator must do, and end together when one of them cannot go on."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fluxloom.machine.ranks import Starter
from tests.parallel.launch import mpiexec, run

pytestmark = pytest.mark.mpi

KILLED = 9
"""What a launcher may report when it notices the ranks that it killed before the one that ended them."""

BATTERY = """
    from tests.unit.comm import cases
    import mpi4py.MPI
    assert comm.name == "mpi" and comm.handle != mpi4py.MPI.COMM_WORLD
    cases.battery(comm)
    comm.largest = 1000   # messages are then described in units of 1000 bytes
    for case in (cases.exchanges, cases.rings, cases.stars, cases.memories, cases.short_messages):
        case(comm)
        comm.barrier()
    half = type(comm)(comm.handle.Split(comm.rank % 2))
    cases.rings(half)
    assert half.size == (comm.size + 1 - comm.rank % 2) // 2
    comm.barrier()
    import sys; sys.stdout.write(f"<{comm.rank}>")
"""


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_battery(ranks: int) -> None:
    done = mpiexec(ranks, BATTERY, timeout=120, environment={"FLUXLOOM_PATIENCE": "1"})
    assert sorted(re.findall(r"<(\d)>", done.stdout)) == [str(rank) for rank in range(ranks)]


def test_long_message_is_an_error() -> None:
    """A message longer than the memory for it: both ranks say so, and the first one ends all."""
    done = mpiexec(
        2,
        """
        import numpy as np
        from fluxloom.comm import Message
        channel = comm.channel([Message(1, np.zeros(9))] if comm.rank == 0 else [],
                               [Message(0, np.zeros(2))] if comm.rank else [], 6)
        channel.start(); channel.finish(); comm.barrier()
        """,
        check=False,
        environment={"FLUXLOOM_PATIENCE": "1"},
    )
    assert done.returncode in (2, KILLED)
    told = ("messages with tag 6 did not reach rank 1", "rank 0 sent 72 bytes with tag 6, rank 1 expected 16")
    assert any(f"rank 0 of 2: error: {text}" in done.stderr for text in told)  # as far as MPI says how long it is


WAITS = {
    "allgather": "comm.allgather(1)",
    "channel": "import numpy as np; from fluxloom.comm import Message; "
    "c = comm.channel([], [Message(1, np.zeros(1))], 0); c.start(); c.finish()",
}


@pytest.mark.parametrize(
    ("raised", "wait", "status", "said"),
    [
        ("ValueError('no good')", "allgather", 1, "ValueError: no good"),
        ("CommError('no good')", "channel", 2, "rank 1 of 3: error: no good"),
        pytest.param("KeyboardInterrupt", "allgather", 130, "rank 1 of 3: interrupted", marks=pytest.mark.long),
        ("SystemExit('no good')", "allgather", 1, "exits with status 1: no good, but other ranks go on"),
    ],
)
def test_error_on_one_rank(raised: str, wait: str, status: int, said: str) -> None:
    program = f"""
        from fluxloom.comm import ending_together
        from fluxloom.core.errors import CommError
        with ending_together(comm, patience=0.2):
            comm.barrier()
            if comm.rank == 1:
                raise {raised}
            {WAITS[wait]}
            print("not reached")
        """
    done = mpiexec(3, program, check=False)
    assert done.returncode in (status, KILLED)
    assert done.stderr.count(said) == 1
    assert "not reached" not in done.stdout
    assert ("Traceback" in done.stderr) == (raised.startswith("ValueError"))


def test_same_error_everywhere() -> None:
    """The lowest rank speaks; the others are ended before they do."""
    done = mpiexec(3, "from fluxloom.core.errors import CaseError\nraise CaseError('no such case')", check=False)
    assert done.returncode in (2, KILLED)
    assert "rank 0 of 3: error: no such case" in done.stderr


@pytest.mark.parametrize("status", [0, 3])
def test_all_exit(status: int) -> None:
    done = mpiexec(3, f"import sys, time\ntime.sleep(0.1 * comm.rank)\nsys.exit({status})", check=False)
    assert (done.returncode, done.stdout) == (status, "")
    assert "rank" not in done.stderr or done.stderr.startswith("---")  # a launcher may remark on the status


def test_abort() -> None:
    done = mpiexec(2, "if comm.rank:\n    comm.abort('cannot go on', 7)\ncomm.barrier()", check=False)
    assert done.returncode in (7, KILLED)
    assert "rank 1 of 2: cannot go on\n" in done.stderr


def test_killed_rank() -> None:
    """The death of one rank ends the others, which wait for it."""
    program = """
        import os, signal
        comm.barrier()
        if comm.rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        comm.barrier()
        print("not reached")
    """
    done = mpiexec(3, program, check=False)
    assert done.returncode != 0
    assert "not reached" not in done.stdout


# ---------------------------------------------------------------- launchers that do not fit the library

LOOK = "import sys; from fluxloom.comm import detect; comm = detect(); "
LOOK += "sys.stdout.write(f'{comm.name} {comm.rank} {comm.size}\\n')"


def alone(program: str, environment: dict[str, str], launcher: Starter) -> subprocess.CompletedProcess[str]:
    """Run Python once, without a launcher, in an environment that may say otherwise."""
    return run([sys.executable, "-c", program], launcher.environment() | environment, 60)


def test_many_single_ranks(launcher: Starter) -> None:
    """A launcher says that it started four processes, MPI sees one."""
    done = alone(LOOK, {"SLURM_STEP_NUM_TASKS": "4", "SLURM_PROCID": "2"}, launcher)
    assert done.returncode == 1
    assert "CommError: 4 processes were started by srun of Slurm, but mpi4py uses another MPI (" in done.stderr
    assert launcher.family in done.stderr.replace("OpenMPI", "Open MPI")
    assert "mpiexec of that library" in done.stderr


def test_wrong_launcher_is_seen_before_mpi_starts(launcher: Starter) -> None:
    """Libraries end the process, or hang, when they meet a launcher of another one."""
    other = {
        "MPICH": {"OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_RANK": "0", "PMIX_RANK": "0"},
        "Open MPI": {"PMI_SIZE": "2", "PMI_RANK": "0", "MPI_LOCALNRANKS": "2"},
    }[launcher.family]
    look = LOOK.replace("comm = detect()", "import mpi4py; comm = detect()")
    done = alone(look, other, launcher)
    assert done.returncode == 1
    assert "CommError: 2 processes were started by mpiexec of" in done.stderr


def test_real_wrong_launcher(launcher: Starter) -> None:
    """The mpiexec of another MPI that this machine happens to have."""
    name = {"MPICH": "mpiexec.openmpi", "Open MPI": "mpiexec.mpich"}[launcher.family]
    program = shutil.which(name)
    if program is None:
        pytest.skip(f"there is no {name} here")
    other = Starter(program, {"MPICH": "Open MPI", "Open MPI": "MPICH"}[launcher.family])
    done = run(other.command(2, ["-c", LOOK]), other.environment(), 60)
    assert done.returncode != 0
    assert re.search(r"CommError: 2 processes were started by mpiexec of .*, but mpi4py uses another MPI", done.stderr)
    assert "mpi 0 1" not in done.stdout


def test_detect(launcher: Starter) -> None:
    """Without a launcher a rank is alone and mpi4py is not loaded; with one it is MPI."""
    look = f"{LOOK}; print('mpi4py' in sys.modules)"
    assert alone(look, {}, launcher).stdout == "self 0 1\nFalse\n"
    done = mpiexec(2, f"{LOOK}; assert comm.size == 2")
    assert sorted(done.stdout.split("\n")) == ["", "mpi 0 2", "mpi 1 2"]


def test_mpi_that_is_missing(launcher: Starter, tmp_path: Path) -> None:
    use = "from fluxloom.comm import world; world()"
    done = alone(f"import sys; sys.modules['mpi4py'] = None; {use}", {}, launcher)
    assert "running on several ranks needs mpi4py, which is not installed: pip install 'fluxloom[mpi]'" in done.stderr
    package = tmp_path / "mpi4py"
    package.mkdir()
    (package / "__init__.py").write_text("class rc:\n    initialize, finalize = True, None\n")
    for error in ("RuntimeError('cannot load')", "ImportError('cannot load')"):
        (package / "MPI.py").write_text(f"raise {error}\n")
        done = alone(f"import sys; sys.path.insert(0, {str(tmp_path)!r}); {use}", {}, launcher)
        said = "CommError: mpi4py finds no MPI library: pip install 'fluxloom[mpi]', or load one (cannot load)"
        assert said in done.stderr


@pytest.mark.long
def test_mpi_of_the_caller(launcher: Starter) -> None:
    """MPI that the program has started before is used, and one that it has not started is not."""
    begin = "import mpi4py; mpi4py.rc.initialize = False; from mpi4py import MPI"
    end = "from fluxloom.comm import world; print(world().size)"
    assert alone(f"{begin}; MPI.Init(); {end}; MPI.Finalize()", {}, launcher).stdout == "1\n"
    assert "call MPI.Init() first" in alone(f"{begin}; {end}", {}, launcher).stderr
