"""What is repeatable to the last bit."""

from __future__ import annotations

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.mesh.airfoil import airfoil_mesh
from fluxloom.solvers.airfoil import Airfoil

from .harness import STRATEGIES, Values, native, rest_is_long, together
from .test_direct import sums
from .test_grid import sums as grid_sums
from .test_races import edge_flux, flux_with_sums, two_maps, uneven_flux


def same(left: Values, right: Values, what: str = "") -> None:
    for name in right:
        assert left[name].tobytes() == right[name].tobytes(), f"{what}: {name} differs"


@pytest.mark.parametrize("strategy", [s for s in STRATEGIES if s != "atomic"])
def test_a_plan_is_repeatable(strategy: str) -> None:
    """The same plan gives the same bits, call after call."""
    case = edge_flux if strategy.startswith("gather") else flux_with_sums
    runs = [native(case, schedule=STRATEGIES[strategy], threads=3) for _ in range(4)]
    for run in runs[1:]:
        same(run, runs[0], strategy)


def choices(gather: bool = True) -> dict[str, fl.Schedule]:
    """Every schedule that the grade ``global`` allows."""
    out = {}
    for lanes in (1, 4, 8):
        for strategy, block in [("serial", 0), ("two_pass", 0), ("gather", 1024), ("gather", 2048), ("gather", 1)]:
            if gather or strategy != "gather":
                schedule = fl.Schedule(strategy=strategy, block=block, lanes=lanes, deterministic="global")
                out[f"{strategy} {block} lanes {lanes}"] = schedule
    return out


@pytest.mark.parametrize("case", [edge_flux, uneven_flux, two_maps, flux_with_sums], ids=lambda c: c.__name__)
@pytest.mark.parametrize("dtype", rest_is_long(["float64", "float32"], keep=1))
def test_global_grade(case, dtype: str) -> None:
    """Strategies, blocks, lanes and threads leave no trace in the bits."""
    schedules = choices(gather=case is not flux_with_sums)
    if case is two_maps:
        schedules = {n: s for n, s in schedules.items() if s.block != 1}
    first = None
    for threads in (1, 2, 3):
        found = together(case, schedules, threads=threads, dtype=dtype)
        assert set(found) == set(schedules)
        for name, got in found.items():
            first = first or got
            same(got, first, f"{name} threads {threads}")


@pytest.mark.parametrize("dtype", rest_is_long(["float64", "float32", "float16"], keep=1))
def test_sums_of_direct_loops(dtype: str) -> None:
    first = None
    for lanes in (1, 4, 8, 16):
        for threads in (1, 2, 3):
            schedule = fl.Schedule(lanes=lanes, deterministic="global")
            got = native(sums, schedule=schedule, threads=threads, dtype=dtype)
            first = first or got
            same(got, first, f"lanes {lanes} threads {threads}")


@pytest.mark.parametrize("shape", [(71, 65), (4, 5, 250), (4500,)])
def test_sums_over_grids(shape) -> None:
    first = None
    for lanes in (1, 4, 8):
        for threads in (1, 3):
            schedule = fl.Schedule(lanes=lanes, deterministic="global")
            got = native(grid_sums, schedule=schedule, threads=threads, shape=shape)
            first = first or got
            same(got, first, f"lanes {lanes} threads {threads}")


# ------------------------------------------------------------------------------------------- airfoil


def airfoil(schedule: fl.Schedule, *, fused: bool, threads: int, iterations: int = 3) -> tuple[np.ndarray, float]:
    flow = Airfoil(fl.Context("cpu", threads=threads, tuning=False), MESH, schedule=schedule, fused=fused)
    for _ in range(iterations):
        flow.iterate()
    return flow.q.read(), flow.rms()


MESH = airfoil_mesh(40, 40)  # more cells than a serial loop has


@pytest.mark.parametrize("lanes", rest_is_long([4, 1, 8], keep=1))
def test_airfoil_is_the_same_everywhere(lanes: int) -> None:
    """Fused and unfused, every strategy, every number of threads."""
    want = airfoil(fl.Schedule(strategy="serial", lanes=8, deterministic="global"), fused=False, threads=1)
    for fused, strategy, block, threads in [
        (False, "gather", 1, 3), (False, "two_pass", 0, 2), (True, "gather", 1024, 1), (True, None, 0, 3),
    ]:  # fmt: skip
        schedule = fl.Schedule(strategy=strategy, block=block, lanes=lanes, deterministic="global")
        got = airfoil(schedule, fused=fused, threads=threads)
        assert got[0].tobytes() == want[0].tobytes(), (fused, strategy, block, threads)
        assert got[1] == want[1], (fused, strategy, block, threads)
