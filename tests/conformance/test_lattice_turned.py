"""Flows in which rows turn round at walls at rest: the numbers of flows with a layer of cells and links there."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.comm.base import Comm
from fluxloom.comm.threads import run_threads
from fluxloom.lbm.boundaries import Body, Outflow, Pressure, Slip, Velocity, Wall, rows_turn
from fluxloom.lbm.immersed import ImmersedBody, ImmersedBoundary, circle
from fluxloom.lbm.lattices import D2Q9, D3Q19, D3Q27, Lattice
from fluxloom.lbm.shapes.shapes import Circle, Sphere
from tests.lattice_names import lattice_flow

from .harness import Values, context, everywhere, rest_is_long, same

REST = {"xmin": Wall(), "xmax": Wall()}
SIDES: dict[str, Any] = {
    "periodic": {},
    "slip": {"ymin": Slip(), "ymax": Slip()},
    "out": {"ymin": Wall(), "ymax": Outflow()},
}


def lid(dimensions: int) -> Wall:
    return Wall(velocity=(*(0.0,) * (dimensions - 1), 0.05))


def sides(name: str, dimensions: int) -> dict[str, Any]:
    return SIDES[name] if name != "lid" else {"ymin": Wall(), "ymax": lid(dimensions)}


def stepped(
    ctx: fl.Context, lattice: Lattice, shape: tuple[int, ...], streaming: str, dtype: str, name: str, *, turned: bool
) -> Values:
    """Return what five steps leave; walls whose force is measured have links, and so rows have a layer beyond."""
    d = len(shape)
    ends = REST if turned else {end: Wall(measure=True) for end in REST}
    body = Body("body", (Circle if d == 2 else Sphere)((4.0,) * d, 2.2), Wall(interpolated=True, measure=True))
    flow = lattice_flow(
        ctx, shape, viscosity=0.03, lattice=lattice, streaming=streaming, dtype=dtype,
        boundaries=ends | sides(name, d), bodies=[body],
    )  # fmt: skip
    assert flow.box.turned == turned
    assert flow.grid.shape[-1] == shape[-1] if turned else flow.grid.shape[-1] > shape[-1]
    rng = np.random.default_rng(0)
    flow.initialise(1 + 0.02 * rng.random(shape), 0.05 * rng.standard_normal((*shape, d)))
    flow.step(5)
    return {"density": flow.density(), "velocity": flow.velocity(), "force": flow.force_on("body"),
            "mass": np.array(flow.mass())}  # fmt: skip


@functools.cache
def with_links(lattice: Lattice, shape: tuple[int, ...], streaming: str, dtype: str, name: str) -> Values:
    ctx = fl.Context("cpu", threads=1, tuning=False)
    return stepped(ctx, lattice, shape, streaming, dtype, name, turned=False)


PLANE, SPACE = (12, 37), (8, 9, 14)
FLOWS = [
    (D2Q9, PLANE, "pull", "float64", "lid"), (D2Q9, PLANE, "in-place", "float32", "out"),
    (D2Q9, PLANE, "push", "float32", "slip"), (D2Q9, PLANE, "three-phase", "float64", "periodic"),
    (D3Q19, SPACE, "pull", "float32", "lid"), (D3Q19, SPACE, "in-place", "float16", "periodic"),
    (D2Q9, PLANE, "pull", "float64", "out"), (D2Q9, PLANE, "in-place", "float64", "slip"),
    (D2Q9, PLANE, "push", "float64", "lid"), (D2Q9, PLANE, "pull", "float32", "slip"),
    (D3Q19, SPACE, "in-place", "float32", "slip"), (D3Q19, SPACE, "push", "float32", "out"),
    (D3Q27, SPACE, "pull", "float64", "slip"), (D3Q27, SPACE, "in-place", "float64", "lid"),
]  # fmt: skip


@pytest.mark.parametrize(("lattice", "shape", "streaming", "dtype", "name"), rest_is_long(FLOWS, keep=2))
def test_bits(lattice: Lattice, shape: tuple[int, ...], streaming: str, dtype: str, name: str) -> None:
    ctx = fl.Context("cpu", threads=1, tuning=False)
    got = stepped(ctx, lattice, shape, streaming, dtype, name, turned=True)
    want = with_links(lattice, shape, streaming, dtype, name)
    same({k: v for k, v in got.items() if k != "mass"}, {k: v for k, v in want.items() if k != "mass"})
    np.testing.assert_allclose(got["mass"], want["mass"], rtol=1e-12)


@pytest.mark.parametrize(
    ("device", "lattice", "shape", "streaming", "dtype", "name"),
    everywhere([], FLOWS, keep_items=1),
)
def test_devices(device: str, lattice: Lattice, shape: tuple[int, ...], streaming: str, dtype: str, name: str) -> None:
    got = stepped(context(device, dtype=dtype), lattice, shape, streaming, dtype, name, turned=True)
    want, eps = with_links(lattice, shape, streaming, dtype, name), {"float64": 1e-13, "float32": 1e-5, "float16": 2e-3}
    for key, right in want.items():
        np.testing.assert_allclose(got[key], right, rtol=eps[dtype], atol=eps[dtype] * np.abs(right).max(), err_msg=key)


def test_which_rows_turn() -> None:
    """Both ends are walls at rest that nobody asks, and no other condition has links through their edges."""
    fast = {"ymin": Wall(), "ymax": Wall(velocity=(0.0, 0.1))}
    assert rows_turn(REST)
    assert rows_turn(REST | fast)
    assert rows_turn(REST | {"ymin": Slip(), "ymax": Outflow()})
    assert not rows_turn(fast | REST)  # the lid was named first: the edge is its own
    assert not rows_turn(REST | {"ymin": Velocity((0.0, 0.0)), "ymax": Pressure(1.0)})
    assert not rows_turn(REST | {"ymin": Wall(), "ymax": Pressure(1.0)})
    assert not rows_turn({})
    for other in (Wall(measure=True), Wall(velocity=(0.0, 0.0)), Wall(interpolated=True), Slip()):
        assert not rows_turn({"xmin": Wall(), "xmax": other})


@pytest.mark.parametrize("streaming", rest_is_long(["pull", "push"], keep=1))
def test_immersed(streaming: str) -> None:
    """The step again around markers that are near the wall sees what comes back."""

    def run(measure: bool) -> Values:
        ends = {name: Wall(measure=measure) for name in REST}
        flow = lattice_flow(
            fl.Context("cpu", threads=1, tuning=False), (24, 24), viscosity=0.05, lattice=D2Q9, dtype="float64",
            streaming=streaming, force=(1e-5, 0.0), boundaries=ends,
        )  # fmt: skip
        flow.immerse(ImmersedBoundary([ImmersedBody("disc", circle((12.0, 5.0), 3.0))]))
        flow.step(20)
        return {"velocity": flow.velocity(), "force": flow.force_on("disc")}

    same(run(False), run(True))


CUTS = [(D2Q9, (12, 19), "in-place", (2, 2)), (D2Q9, (12, 19), "pull", (1, 3)), (D3Q19, (9, 9, 12), "push", (2, 1, 2)),
        (D3Q19, (9, 9, 12), "in-place", (1, 1, 3)), (D2Q9, (12, 19), "three-phase", (1, 3))]  # fmt: skip


@pytest.mark.parametrize(("lattice", "shape", "streaming", "cut"), rest_is_long(CUTS, keep=1))
def test_ranks(lattice: Lattice, shape: tuple[int, ...], streaming: str, cut: tuple[int, ...]) -> None:
    """Also where rows are cut: only ranks at their ends turn."""

    def case(comm: Comm) -> tuple[Any, Values]:
        ctx = fl.Context("cpu", comm=comm, threads=1, tuning=False)
        flow = lattice_flow(
            ctx, shape, viscosity=0.03, lattice=lattice, dtype="float64", streaming=streaming,
            cut=cut if comm.size > 1 else None,
            boundaries=REST | {"ymin": Slip(), "ymax": Outflow()},
        )  # fmt: skip
        rng = np.random.default_rng(0)
        flow.initialise(1 + 0.02 * rng.random(shape), 0.05 * rng.standard_normal((*shape, len(shape))))
        flow.step(5)
        return flow.grid.window, {"density": flow.density(), "velocity": flow.velocity()}

    ((_, want),) = run_threads(1, case)
    for window, got in run_threads(int(np.prod(cut)), case):
        for name, values in got.items():
            part = want[name][window][tuple(slice(0, n) for n in values.shape[: len(shape)])]
            np.testing.assert_allclose(values, part, rtol=1e-12, atol=1e-15)
