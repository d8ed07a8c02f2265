"""The Airfoil benchmark on a small mesh: every strategy against the reference device."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.mesh.generate.airfoil import airfoil_mesh
from fluxloom.solvers.airfoil.flow import Airfoil

from .harness import DEVICES, ITEM_STRATEGIES, LAYOUTS, STRATEGIES, context, everywhere, schedules

MESH = airfoil_mesh(8, 12)
ITERATIONS = 5


def bump(flow: Airfoil) -> Airfoil:
    """Perturb the free stream, which the scheme would keep in the far field."""
    rng = np.random.default_rng(0)
    flow.q.write(flow.q.read() * (1 + 0.05 * rng.random((flow.cells.size, 4))))
    return flow


@functools.cache
def reference() -> tuple[np.ndarray, tuple[float, ...]]:
    flow = bump(Airfoil(fl.Context("reference"), MESH))
    rms = []
    for _ in range(ITERATIONS):
        flow.iterate()
        rms.append(flow.rms())
    return flow.q.read(), tuple(rms)


def check(flow: Airfoil, tolerance: float = 1e-12) -> None:
    want, rms = reference()
    for k in range(ITERATIONS):
        flow.iterate()
        assert flow.rms() == pytest.approx(rms[k], rel=tolerance * 10)
    np.testing.assert_allclose(flow.q.read(), want, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(
    ("device", "strategy", "fused", "lanes"),
    everywhere(
        [(s, *rest) for rest in [(False, 4), (True, 1), (True, 8), (False, 1)] for s in STRATEGIES],
        [("gather", True, 0), *((s, False, 0) for s in ITEM_STRATEGIES)],
        keep=len(STRATEGIES),
        keep_items=2,
    ),
)
def test_strategies(device: str, strategy: str, fused: bool, lanes: int) -> None:
    ctx = context(device, threads=2)
    check(bump(Airfoil(ctx, MESH, schedule=schedules(device, lanes=lanes)[strategy], fused=fused)))


@pytest.mark.parametrize(
    ("device", "layout", "dtype", "fused"),
    everywhere(
        [
            ("soa", "float64", True), ("aos", "float32", True), ("blocked", "float64", False),
            ("soa", "float32", False),
            ("blocked", "float64", True), ("blocked", "float32", True), ("soa", "float32", True),
        ],
        [("soa", "float64", True), ("aos", "float32", True), ("blocked", "float32", False)],
        keep=2,
        keep_items=1,
    ),
)  # fmt: skip
def test_layouts(device: str, layout: str, dtype: str, fused: bool) -> None:
    tolerance = 1e-12 if dtype == "float64" else 1e-5
    ctx = context(device, threads=2)
    check(bump(Airfoil(ctx, MESH, fused=fused, layout=LAYOUTS[layout], dtype=dtype)), tolerance)


@pytest.mark.parametrize("device", DEVICES)
def test_loops_without_the_chain(device: str) -> None:
    """The loops called one by one."""
    want, _ = reference()
    flow = bump(Airfoil(context(device, threads=2), MESH))
    for _ in range(ITERATIONS):
        flow.save_soln()
        for update in (flow._first_update, flow.update):
            flow.adt_calc()
            flow.res_calc()
            flow.bres_calc()
            update()
    np.testing.assert_allclose(flow.q.read(), want, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("device", DEVICES)
def test_fused_and_unfused_reports(device: str) -> None:
    block = 1024 if device == "cpu" else 128
    flow = Airfoil(context(device, threads=1), MESH, schedule=fl.Schedule(strategy="gather", block=block))
    for _ in range(4):
        flow.iterate()
    assert flow.chain.fused
    assert flow.chain.bytes_fused < flow.chain.bytes_unfused
    names = {r.name for r in flow.reports()}
    assert any("+" in n for n in names)
    fused = [r for r in flow.reports() if "+" in r.name]
    assert all(r.calls == 3 for r in fused)  # the first call runs loop by loop
    flow.chain.reset_counters()
    assert all(r.calls == 0 for r in flow.reports())
