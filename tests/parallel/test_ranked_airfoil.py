"""Airfoil on several ranks: the residual of one rank, on threads, on real ranks, and on unlike devices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.comm.base import Comm
from fluxloom.comm.threads import run_threads
from fluxloom.mesh.generate.airfoil import airfoil_mesh, airfoil_slice
from fluxloom.mesh.ranks.distribute import distribute
from fluxloom.solvers.airfoil.flow import Airfoil
from tests.parallel.launch import mpiexec

SMALL, NORMAL, LARGE = (40, 60), (120, 200), (400, 600)
"""Cells are three times the product; the last mesh has 720 000."""

PUBLISHED = 1.060114637578e-4
"""Residual of the 720 000 cells after 1000 iterations."""

GLOBAL = fl.Schedule(deterministic="global")


def residuals(flow: Airfoil, iterations: int) -> list[float]:
    """Return the residual after each tenth of the iterations."""
    out = []
    for k in range(iterations):
        flow.iterate()
        if (k + 1) % (iterations // 10) == 0:
            out.append(float(flow.rms()))
    return out


def alone(shape: tuple[int, int], iterations: int, **choices: Any) -> tuple[list[float], np.ndarray]:
    flow = Airfoil(fl.Context("cpu", threads=1, tuning=False), airfoil_mesh(*shape), **choices)
    return residuals(flow, iterations), flow.q.read()


def on_ranks(
    shape: tuple[int, int], iterations: int, devices: list[tuple[str, int]], **choices: Any
) -> tuple[list[float], np.ndarray]:
    """Return the residuals, the same on every rank, and the whole of ``q``; a device and its threads each rank."""

    def rank(comm: Comm) -> tuple[list[float], np.ndarray, np.ndarray]:
        name, threads = devices[comm.rank]
        ctx = fl.Context(name, threads=threads, tuning=False, comm=comm)
        flow = Airfoil(ctx, distribute(airfoil_slice(*shape, comm.rank, comm.size), comm), **choices)
        found = residuals(flow, iterations)
        part = flow.cells.part
        numbers = np.arange(flow.cells.size) if part is None else part.numbers[: part.owned]
        return found, numbers, flow.q.read()

    found = run_threads(len(devices), rank)
    assert all(rms == found[0][0] for rms, _, _ in found)
    q = np.empty((3 * shape[0] * shape[1], 4))
    for _, numbers, values in found:
        q[numbers] = values
    return found[0][0], q


@pytest.mark.parametrize("devices", [
    pytest.param([("cpu", 1)] * 3, id="3"), pytest.param([("cpu", 1)] * 7, id="7"),
    pytest.param([("cpu", 1), ("opencl", 0), ("cpu", 2)], id="mixed", marks=pytest.mark.opencl),
    pytest.param([("opencl", 0)] * 2, id="opencl", marks=[pytest.mark.opencl, pytest.mark.long]),
])  # fmt: skip
@pytest.mark.parametrize("fused", [True, pytest.param(False, marks=pytest.mark.long)])
def test_the_flow_is_that_of_one_rank(devices: list[tuple[str, int]], fused: bool) -> None:
    want, q = alone(SMALL, 20, schedule=GLOBAL, fused=False)
    rms, got = on_ranks(SMALL, 20, devices, schedule=GLOBAL, fused=fused)
    assert got.tobytes() == q.tobytes()
    assert np.allclose(rms, want, rtol=1e-13, atol=0.0)


@pytest.mark.parametrize("devices", [
    pytest.param([("cpu", 1)] * 7, id="7"),
    pytest.param([("cpu", 1), ("cpu", 1), ("opencl", 0)], id="mixed",
                 marks=[pytest.mark.opencl, pytest.mark.long]),
])  # fmt: skip
def test_residuals_of_72000_cells(devices: list[tuple[str, int]]) -> None:
    want, q = alone(NORMAL, 20)
    rms, got = on_ranks(NORMAL, 20, devices)
    assert np.allclose(rms, want, rtol=1e-13, atol=0.0)
    assert np.abs(got - q).max() <= 1e-13 * np.abs(q).max()


PROGRAM = """
import sys
import fluxloom as fl
from fluxloom.mesh.generate.airfoil import airfoil_slice
from fluxloom.mesh.ranks.distribute import distribute
from fluxloom.solvers.airfoil.flow import Airfoil

rows, columns, iterations, last = map(int, sys.argv[1:])
device = "opencl" if last and comm.rank == comm.size - 1 else "cpu"
ctx = fl.Context(device, threads=1, tuning=False, comm=comm)
flow = Airfoil(ctx, distribute(airfoil_slice(rows, columns, comm.rank, comm.size), comm))
found = []
for k in range(iterations):
    flow.iterate()
    if (k + 1) % (iterations // 10) == 0:
        found.append(float(flow.rms()))
assert len({tuple(f) for f in comm.allgather(found)}) == 1
if comm.rank == 0:
    print(*map(repr, found))
"""


def real(ranks: int, shape: tuple[int, int], iterations: int, opencl: bool = False, timeout: float = 90) -> list[float]:
    """Return the residuals of ranks that are processes; with ``opencl`` the last one runs on that device."""
    done = mpiexec(ranks, PROGRAM, *shape, iterations, int(opencl), timeout=timeout)
    return [float(word) for word in done.stdout.split()]


@pytest.mark.mpi
@pytest.mark.parametrize("ranks", [pytest.param(2, marks=pytest.mark.long), 3])
def test_residuals_on_real_ranks(ranks: int) -> None:
    want, _ = alone(NORMAL, 10)
    assert np.allclose(real(ranks, NORMAL, 10), want, rtol=1e-13, atol=0.0)


@pytest.mark.mpi
@pytest.mark.opencl
@pytest.mark.long
def test_real_ranks_on_unlike_devices() -> None:
    want, _ = alone(NORMAL, 10)
    assert np.allclose(real(3, NORMAL, 10, opencl=True), want, rtol=1e-13, atol=0.0)


@pytest.mark.mpi
@pytest.mark.long
@pytest.mark.parametrize(("ranks", "opencl"), [
    (1, False), (2, False), (3, False), (7, False), pytest.param(2, True, marks=pytest.mark.opencl),
])  # fmt: skip
def test_the_published_residual(ranks: int, opencl: bool) -> None:
    found = real(ranks, LARGE, 1000, opencl, timeout=1800)
    assert found[-1] == pytest.approx(PUBLISHED, rel=1e-11)
