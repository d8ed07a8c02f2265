"""What is repeatable to the last bit."""

from __future__ import annotations

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.mesh.generate.airfoil import airfoil_mesh
from fluxloom.solvers.airfoil.flow import Airfoil

from .harness import (
    DEVICES,
    context,
    everywhere,
    native,
    rest_is_long,
    same,
    schedules,
    threads_of,
    together,
    variants,
)
from .test_direct import sums
from .test_grid import sums as grid_sums
from .test_races import edge_flux, flux_with_sums, two_maps, uneven_flux


@pytest.mark.parametrize("device", DEVICES)
def test_a_plan_is_repeatable(device: str) -> None:
    """The same plan gives the same bits, call after call."""
    for case, without in ((edge_flux, ("atomic",)), (flux_with_sums, ("atomic", "gather"))):
        wanted = schedules(device, without=without)
        found = together(case, {f"{n}:{k}": s for k in range(4) for n, s in wanted.items()}, device, threads=3)
        assert len(found) == 4 * len(wanted)
        for name, got in found.items():
            same(got, found[f"{name.partition(':')[0]}:0"], name)


@pytest.mark.parametrize(("device", "strategy"), everywhere(["block_colour"], ["gather", "block_colour"]))
def test_a_plan_is_repeatable_anew(device: str, strategy: str) -> None:
    """Another context, another plan of the same tables: the same bits."""
    first, second = (native(edge_flux, device, schedule=schedules(device)[strategy]) for _ in range(2))
    same(second, first)


def choices(device: str, gather: bool = True) -> dict[str, fl.Schedule]:
    """Every schedule that the grade ``global`` allows."""
    forms = [("serial", 0), ("two_pass", 0), ("gather", 1024), ("gather", 2048), ("gather", 1)]
    lanes: tuple[int, ...] = (1, 4, 8)
    if device != "cpu":
        forms, lanes = [("two_pass", 64), ("two_pass", 256), ("gather", 64), ("gather", 256)], (0,)
    out = {}
    for width in lanes:
        for strategy, block in forms:
            if gather or strategy != "gather":
                schedule = fl.Schedule(strategy=strategy, block=block, lanes=width, deterministic="global")
                out[f"{strategy} {block} lanes {width}"] = schedule
    return out


@pytest.mark.parametrize("case", [edge_flux, uneven_flux, two_maps, flux_with_sums], ids=lambda c: c.__name__)
@pytest.mark.parametrize(
    ("device", "dtype"),
    everywhere(["float64", "float32"], ["float64", "float32"], keep=1, keep_items=1),
)
def test_global_grade(case, device: str, dtype: str) -> None:
    """Strategies, blocks, lanes and threads leave no trace in the bits."""
    wanted = choices(device, gather=case is not flux_with_sums and (case is not two_maps or device == "cpu"))
    if case is two_maps:
        wanted = {n: s for n, s in wanted.items() if s.block != 1}
    first = None
    for threads in threads_of(device, 1, 2, 3):
        found = together(case, wanted, device, threads=threads, dtype=dtype)
        assert set(found) == set(wanted)
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


@pytest.mark.parametrize(("device", "case"), everywhere([], [grid_sums, sums], keep_items=1))
def test_sums_in_groups_of_any_size(device: str, case) -> None:
    """Neither the size of a group nor the run changes a sum."""
    blocks = {(n, k): {"schedule": fl.Schedule(block=n, deterministic="global")} for n in (128, 1024) for k in range(3)}
    found = variants(case, device, blocks)
    for name, got in found.items():
        same(got, found[128, 0], str(name))


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


def airfoil(
    schedule: fl.Schedule, device: str = "cpu", *, fused: bool, threads: int = 2, iterations: int = 3
) -> tuple[np.ndarray, float]:
    flow = Airfoil(context(device, threads=threads), MESH, schedule=schedule, fused=fused)
    for _ in range(iterations):
        flow.iterate()
    assert flow.chain.fused == fused
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


@pytest.mark.parametrize("device", everywhere([]))
def test_airfoil_is_the_same_on_a_device(device: str) -> None:
    """Fused and unfused, every strategy, every size of groups."""
    want = airfoil(fl.Schedule(strategy="gather", deterministic="global"), device, fused=False)
    for fused, strategy, block in [(False, "two_pass", 64), (True, None, 0), *((True, "gather", n) for n in (64, 256))]:
        got = airfoil(fl.Schedule(strategy=strategy, block=block, deterministic="global"), device, fused=fused)
        assert got[0].tobytes() == want[0].tobytes(), (fused, strategy, block)
        assert got[1] == want[1], (fused, strategy, block)
