"""Ranks with a GPU each that run different things: messages from GPU to GPU carry no account, but waits and ends do."""

from __future__ import annotations

import pytest

from tests.parallel.launch import mpiexec

pytestmark = [pytest.mark.cuda, pytest.mark.mpi]

PROGRAM = """
import sys
from tests.faults.rank_cases import Ring
ring = Ring(comm, sys.argv[1].format(comm.rank), sys.argv[2])
for _ in range(3):  # launches, then graphs
    ring.step()
ring.add()
first = ring.s.value
{body}
sys.stdout.write(f"{{float(ring.u.read().sum())}}\\n")
"""
BODIES = {
    "a step less": "if not ring.odd: ring.step()",
    "a loop less": "if not ring.odd: ring.scatter()\nring.add()\nring.s.value",
    "another order": "(ring.step if ring.odd else ring.bump)()\n(ring.bump if ring.odd else ring.step)()",
}
"""The first is waited for by a GPU, rank 1 has ended; the second by a GPU and a host; the third by nobody."""


@pytest.fixture(autouse=True)
def _two() -> None:
    import cupy  # only where there is a GPU

    if int(cupy.cuda.runtime.getDeviceCount()) < 2:
        pytest.skip("needs two GPUs")


@pytest.mark.parametrize("transport", ["nccl", "peer"])
@pytest.mark.parametrize("name", list(BODIES))
def test_ranks_that_differ_end_with_an_error(name: str, transport: str) -> None:
    done = mpiexec(2, PROGRAM.format(body=BODIES[name]), "cuda:{}", transport, check=False, timeout=120,
                   environment={"FLUXLOOM_PATIENCE": "4"})  # fmt: skip
    assert done.returncode != 0
    assert "the ranks disagree: rank 0: " in done.stderr


@pytest.mark.parametrize("transport", ["nccl", "peer"])
def test_ranks_that_do_the_same(transport: str) -> None:
    done = mpiexec(2, PROGRAM.format(body="ring.step()"), "cuda:{}", transport, timeout=120)
    assert len(done.stdout.splitlines()) == 2
    assert "has waited" not in done.stderr
