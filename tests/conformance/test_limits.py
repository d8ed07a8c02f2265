"""What a device cannot do: what the messages say, and what is done instead."""

from __future__ import annotations

import re

import numpy as np
import pytest

import fluxloom as fl
from fluxloom import Const, Inc, Loop, Min, Read, Write
from fluxloom.core.dtypes import SCALARS
from fluxloom.core.errors import DatError, PlanError
from fluxloom.device.base import Device
from fluxloom.dsl.ranks.task import Reset
from fluxloom.dsl.run.chain import Chain
from tests.golden.fake import FakeItems

from .harness import compare, expected
from .kernels import each_side, extremes, flux, flux_and_sums
from .test_direct import modes
from .test_races import Mesh, edge_flux, flux_with_sums, integers


def without(*extensions: str) -> Device:
    """Return the OpenCL device as if it lacked some extensions."""
    from fluxloom.device.opencl.device import OpenClDevice

    return OpenClDevice(without=extensions)


# ------------------------------------------------------------------------------------------ strategies


@pytest.mark.parametrize("dialect", ["cuda", "opencl"])
@pytest.mark.parametrize("strategy", ["serial", "block_permute"])
def test_strategies_of_processors(dialect: str, strategy: str) -> None:
    ctx = fl.Context(FakeItems(dialect))
    mesh = Mesh(ctx, None, "float64")
    u, r = mesh.dat(mesh.nodes, 2), mesh.dat(mesh.nodes, 2)
    schedule = fl.Schedule(strategy=strategy)
    with pytest.raises(PlanError, match=f"flux: strategy '{strategy}' is not possible.*side by side.*possible are"):
        Loop(flux, mesh.edges, mesh.w, u[mesh.e2n], r[mesh.e2n], n=2, schedule=schedule)
    relaxed = fl.Context(FakeItems(dialect), schedule=schedule)  # a wish for every loop that this one cannot follow
    assert edge_flux(relaxed)[0][0].strategy == "gather"


def two_legs(ctx: fl.Context, strategy: str) -> Loop:
    mesh = Mesh(ctx, None, "float64")
    r = mesh.dat(mesh.nodes, 2)
    return Loop(
        each_side, mesh.edges, mesh.w, r[mesh.e2n[1]], r[mesh.e2n[0]], schedule=fl.Schedule(strategy=strategy)
    )  # fmt: skip


def minima(ctx: fl.Context, strategy: str) -> Loop:
    mesh = Mesh(ctx, None, "float64")
    u, low, high = (mesh.dat(mesh.nodes, 2)[mesh.e2n] for _ in range(3))
    return Loop(extremes, mesh.edges, mesh.w, u, low, high, schedule=fl.Schedule(strategy=strategy))


def with_total(ctx: fl.Context, strategy: str) -> Loop:
    mesh = Mesh(ctx, None, "float64")
    u, r = (mesh.dat(mesh.nodes, 2)[mesh.e2n] for _ in range(2))
    results = [ctx.scalar([0.0, 0.0]), ctx.scalar(0.0), ctx.scalar(0.0), ctx.scalar(0)]
    return Loop(flux_and_sums, mesh.edges, mesh.w, u, r, *results, schedule=fl.Schedule(strategy=strategy))


@fl.kernel
def add_to_row(w: Read, x: Inc):
    for j in range(len(x)):
        x[j] += w[0]


def through_rows(ctx: fl.Context, strategy: str) -> Loop:
    rows, columns = ctx.set(3, "rows"), ctx.set(5, "columns")
    m = ctx.ragged(rows, columns, [0, 2, 3, 5], [0, 1, 1, 3, 4], "m")
    return Loop(add_to_row, rows, ctx.dat(rows), ctx.dat(columns)[m], schedule=fl.Schedule(strategy=strategy))


@pytest.mark.parametrize(
    ("make", "strategy", "why"),
    [
        (two_legs, "gather", "more than one map or leg"),
        (minima, "atomic", "Min or Max increments"),
        (with_total, "gather", "would be repeated"),
        (through_rows, "gather", "ragged map"),
        (through_rows, "two_pass", "ragged map"),
        (through_rows, "block_colour", "ragged map"),
    ],
)
def test_why_a_strategy_is_not_possible(make, strategy: str, why: str) -> None:
    with pytest.raises(PlanError, match=f"strategy '{strategy}' is not possible: .*{why}.*; possible are "):
        make(fl.Context(FakeItems("cuda")), strategy)


@pytest.mark.parametrize("strategy", ["atomic", "element_colour", "block_colour"])
def test_grades_forbid_strategies(strategy: str) -> None:
    with pytest.raises(PlanError, match=strategy if strategy != "atomic" else "atomic additions are not repeatable"):
        fl.Schedule(strategy=strategy, deterministic="global")


# ------------------------------------------------------------------------------------------- no atomics


def test_without_atomic_additions() -> None:
    """Without them the strategy is impossible, and every other one repeats run to run."""
    ctx = fl.Context(FakeItems("opencl", unadded=["float64"]))
    mesh = Mesh(ctx, None, "float64")
    u, r = mesh.dat(mesh.nodes, 2), mesh.dat(mesh.nodes, 2)
    with pytest.raises(PlanError, match="a thing that speaks opencl has no atomic additions of float64"):
        Loop(flux, mesh.edges, mesh.w, u[mesh.e2n], r[mesh.e2n], n=2, schedule=fl.Schedule(strategy="atomic"))
    # where gathering is not possible either
    assert flux_with_sums(fl.Context(FakeItems("opencl")))[0][0].strategy == "atomic"
    assert flux_with_sums(ctx)[0][0].strategy == "two_pass"
    assert flux_with_sums(ctx, dtype="float32")[0][0].strategy == "atomic"
    assert flux_with_sums(ctx, fl.Schedule(deterministic="plan"), dtype="float32")[0][0].strategy == "two_pass"


@pytest.mark.opencl
def test_opencl_without_atomics_of_64_bits() -> None:
    device = without("cl_khr_int64_base_atomics")
    assert not device.atomic_add(SCALARS["float64"])
    assert not device.atomic_add(SCALARS["int64"])
    assert device.atomic_add(SCALARS["float32"])
    for case in (flux_with_sums, integers):
        steps, outputs = case(fl.Context(device, tuning=False))
        assert "atomic" not in steps[0].races.allowed
        assert steps[0].strategy != "atomic"
        steps[0]()
        got = {n: np.array(d.value) if isinstance(d, fl.Global) else d.read() for n, d in outputs.items()}
        compare(got, expected(case))


# ----------------------------------------------------------------------------------- no double precision


def test_types_that_a_device_does_not_have() -> None:
    ctx = fl.Context(FakeItems("opencl", refused=["float64", "float16"]))
    over = ctx.set(5, "over")
    for make, what in [
        (lambda: ctx.dat(over, name="u"), "dat 'u' is of float64"),
        (lambda: ctx.dat(over, np.zeros(5), "v"), "dat 'v' is of float64"),
        (lambda: ctx.dat(over, np.zeros(5, np.float32), "h", dtype="float16"), "dat 'h' is of float16"),
        (lambda: ctx.scalar(0.0, "total"), "global 'total' is of float64"),
    ]:
        with pytest.raises(DatError, match=rf"{what}: no float.* here: use dtype='float32'"):
            make()
    assert ctx.dat(over, np.zeros(5), dtype="float32").scalar.name == "float32"
    assert ctx.scalar(3).scalar.name == "int64"


@fl.kernel
def of_integers(k: Read, n: Write, *, share: float, weights: Const[list[float]]):
    """Real arithmetic in a loop without real dats."""
    n[0] = int(k[0] * share + weights[1]) + k[0] // 3


def integer_loop(ctx):
    over = ctx.set(1000, "over")
    k, n = ctx.dat(over, np.arange(1000) % 50, dtype="int32"), ctx.dat(over, dtype="int32")
    return [Loop(of_integers, over, k, n, share=0.5, weights=[0.25, 0.125])], {"n": n}


@fl.kernel
def residual(x: Read, q: Read, res: Inc, far: Read, worst: Min, *, eps: float):
    """A flux with a division, a square root, an array global, and a reduction of what it reads."""
    dx = x[0][0] - x[1][0]
    f = eps * (q[0][0] - q[1][0]) / fl.sqrt(1.0 + dx * dx) + 0.001 * far[1]
    res[0][0] += f
    res[1][0] -= f
    worst[0] = min(worst[0], f)


@fl.kernel
def advance(q: fl.RW, res: fl.RW, rms: Inc):
    q[0] -= 0.1 * res[0]
    rms[0] += res[0] * res[0]
    res[0] = 0.0


def march(ctx, fuse=True, dtype="float32"):
    mesh = Mesh(ctx, None, dtype)
    x, q, res = mesh.dat(mesh.nodes, 2), mesh.dat(mesh.nodes, 1), mesh.dat(mesh.nodes, 1)
    far, worst = ctx.scalar([0.5, 1.5], "far", dtype=dtype), ctx.scalar(1.0, "worst", dtype=dtype)
    rms = ctx.scalar(0.0, "rms", dtype=dtype)
    steps = [
        Reset(rms),
        Loop(residual, mesh.edges, x[mesh.e2n], q[mesh.e2n], res[mesh.e2n], far, worst, eps=0.3),
        Loop(advance, mesh.nodes, q, res, rms),
    ]
    chain = Chain(steps, fuse=fuse)
    return [chain, chain, chain], {"q": q, "rms": rms, "worst": worst}


@pytest.mark.opencl
def test_opencl_without_double_precision() -> None:
    """Storage, arithmetic and reductions in float32: the code has no double at all."""
    device = without("cl_khr_fp64")
    with pytest.raises(DatError, match="has no double precision: use dtype='float32'"):
        fl.Context(device).scalar(0.0)
    for case, options in [
        (march, {"dtype": "float32"}),
        (modes, {"dtype": "float32"}),
        (edge_flux, {"dtype": "float32"}),
        (integers, {"dtype": "int32"}),
        (integer_loop, {}),
    ]:
        ctx = fl.Context(device, tuning=False)
        steps, outputs = case(ctx, **options)
        for step in steps:
            step()
        got = {n: np.array(d.value) if isinstance(d, fl.Global) else d.read() for n, d in outputs.items()}
        compare(got, expected(case, **options), "float32", case.__name__)
        check_no_double(device, steps[0].source)


def check_no_double(device: Device, text: str) -> None:
    """Compile a source as a device without double precision would."""
    poisoned = "#undef cl_khr_fp64\n#define double fl_this_device_has_no_double\n" + text
    symbols = re.findall(r"__kernel .*? void (\w+)\(", text)
    assert symbols
    device.compile(poisoned, symbols, "no double")
