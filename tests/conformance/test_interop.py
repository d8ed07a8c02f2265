"""Loops on the memory of other people's arrays, and other people's arrays on the memory of dats."""

from __future__ import annotations

import ctypes
import gc
import mmap
from typing import Any

import numpy as np
import pytest

import fluxloom as fl
from fluxloom import RW, Inc, Loop, Read, Write
from fluxloom.core.errors import DatError, ExportError
from fluxloom.dsl.run.chain import Chain

from .harness import DEVICES, context, schedules

CELLS, EDGES = 1003, 1999
AREAS = [pytest.param("cpu"), pytest.param("cuda", marks=pytest.mark.cuda)]
"""Devices that can use the memory of arrays."""
CANARY = 64


@fl.kernel
def flux(u: Read, r: Inc):
    for k in range(4):
        f = 0.1 * (u[0][k] - u[1][k])
        r[0][k] += f
        r[1][k] -= f


@fl.kernel
def step(u: RW, r: RW):
    for k in range(4):
        u[k] = 0.9 * u[k] + 0.05 * r[k]
        r[k] = 0.0


@fl.kernel
def twice(u: Read, v: Write):
    for k in range(4):
        v[k] = 2.0 * u[k]


def cupy_of(ctx: fl.Context) -> Any:
    return ctx.device.cupy  # type: ignore[attr-defined]


def guarded(nbytes: int) -> np.ndarray:
    """Return zeroed host memory that ends where a page begins which nobody may touch."""
    page = mmap.PAGESIZE
    room = -(-nbytes // page) * page
    area = mmap.mmap(-1, room + page)
    flat = np.frombuffer(area, dtype=np.uint8)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mprotect(ctypes.c_void_p(flat.ctypes.data + room), ctypes.c_size_t(page), 0):
        pytest.skip("no mprotect")
    return flat[room - nbytes : room]


def theirs(ctx: fl.Context, values: np.ndarray, soa: bool) -> Any:
    """Return values in memory that is not ours, of the device; on the CPU every access behind it ends the process."""
    ordered = np.ascontiguousarray(values.T if soa else values)
    if ctx.device.shared:
        array = guarded(ordered.nbytes).view(values.dtype).reshape(ordered.shape)
        array[...] = ordered
    else:
        whole = cupy_of(ctx).full(ordered.size + CANARY, 7.0)
        array = whole[: ordered.size].reshape(ordered.shape)  # its base is the whole
        array[...] = cupy_of(ctx).asarray(ordered)
    return array.T if soa else array


def host(array: Any) -> np.ndarray:
    return array if isinstance(array, np.ndarray) else array.get()


def mesh(ctx: fl.Context) -> tuple[fl.Set, fl.Set, Any]:
    rng = np.random.default_rng(0)
    cells, edges = ctx.set(CELLS, "cells"), ctx.set(EDGES, "edges")
    return cells, edges, ctx.map(edges, cells, rng.integers(0, CELLS, (EDGES, 2)), "e2c")


def start() -> tuple[np.ndarray, np.ndarray]:
    return np.random.default_rng(1).random((CELLS, 4)), np.zeros((CELLS, 4))


def loops_of(ctx: fl.Context, u: fl.Dat, r: fl.Dat, v: fl.Dat, e2c: Any, schedule: fl.Schedule) -> list[Loop]:
    streaming = fl.Schedule(stream=True, deterministic="global") if ctx.device.shared else None
    return [
        Loop(flux, e2c.source, u[e2c], r[e2c], schedule=schedule),
        Loop(step, u.set, u, r, schedule=fl.Schedule(deterministic="global")),
        Loop(twice, u.set, u, v, schedule=streaming),
    ]


# ------------------------------------------------------------------------------------ arrays become dats


@pytest.mark.parametrize("device", AREAS)
@pytest.mark.parametrize("soa", [False, True])
def test_loops_run_on_the_memory_of_arrays(device: str, soa: bool) -> None:
    """In every schedule: the same bits as in our own memory, and nothing behind the arrays is touched."""
    ctx = context(device, threads=2)
    cells, _, e2c = mesh(ctx)
    layout = fl.SoA() if soa else fl.AoS()
    wanted = schedules(device, deterministic="plan", without=("atomic", "block_permute", "gather1"))
    runs: dict[tuple[str, bool], tuple[list[fl.Dat], list[Any]]] = {}
    loops: list[Loop] = []
    for name, schedule in wanted.items():
        for own in (True, False):
            arrays = [theirs(ctx, a, soa) for a in (*start(), np.ones((CELLS, 4)))]
            given = [ctx.dat(cells, host(a), layout=layout) if own else ctx.dat(cells, a, copy=False) for a in arrays]
            assert all(d.layout == layout and d.buffer.foreign is not own for d in given)
            loops += loops_of(ctx, *given, e2c, schedule)
            runs[name, own] = given, arrays
    chain = Chain(loops, fuse=False)
    for _ in range(2):
        chain()
    ctx.synchronize()
    for name in wanted:
        dats, arrays = runs[name, True][0], runs[name, False][1]
        for dat, array in zip(dats, arrays, strict=True):
            assert dat.read().tobytes() == host(array).tobytes(), name
            if device == "cuda":
                whole = array
                while whole.base is not None:
                    whole = whole.base
                assert whole.size == array.size + CANARY
                assert (whole[-CANARY:].get() == 7.0).all(), name


@pytest.mark.parametrize("device", AREAS)
def test_a_chain_on_the_memory_of_arrays_runs_loop_by_loop(device: str) -> None:
    results = []
    for own in (True, False):
        ctx = context(device, threads=2)
        cells, _, e2c = mesh(ctx)
        arrays = [theirs(ctx, a, False) for a in (*start(), np.ones((CELLS, 4)))]
        u, r, v = (
            ctx.dat(cells, host(a) if own else a, name, copy=own) for a, name in zip(arrays, "urv", strict=True)
        )
        chain = Chain(loops_of(ctx, u, r, v, e2c, fl.Schedule(strategy="gather", deterministic="global")))
        for _ in range(4):
            chain()
        assert chain.fused
        assert ("share the memory of u, r, v" in chain.describe()) is not own
        fused = [row for row in chain.reports() if "+" in row.name]
        assert sum(row.calls for row in fused) == (3 * len(fused) if own else 0)
        if not own:
            assert all(d.buffer.foreign for d in (u, r, v))
            ctx.synchronize()
        results.append([d.read() if own else host(a) for d, a in zip((u, r, v), arrays, strict=True)])
    for left, right in zip(*results, strict=True):
        assert left.tobytes() == right.tobytes()


def test_streaming_stores_stay_out_of_crooked_memory() -> None:
    """Stores that pass the caches need aligned rows; an array of NumPy is aligned to its type only."""
    ctx = context("cpu", threads=2)
    cells = ctx.set(CELLS, "cells")
    values = start()[0]
    for shift in range(0, 64, 8):
        crooked = np.zeros(CELLS * 32 + 128, dtype=np.uint8)
        crooked = crooked[-crooked.ctypes.data % 64 + shift :][: CELLS * 32].view(np.float64).reshape(CELLS, 4)
        u, v = ctx.dat(cells, values), ctx.dat(cells, crooked, copy=False)
        Loop(twice, cells, u, v, schedule=fl.Schedule(stream=True))()
        np.testing.assert_array_equal(crooked, 2.0 * values)


# ------------------------------------------------------------------------------------ dats become arrays


@pytest.mark.parametrize("device", DEVICES)
def test_a_chain_is_fused_again_when_the_array_is_gone(device: str) -> None:
    ctx = context(device, threads=2)
    cells, _, e2c = mesh(ctx)
    both = []
    for fuse in (True, False):
        u, r, v = (ctx.dat(cells, a, name) for a, name in zip((*start(), np.ones((CELLS, 4))), "urv", strict=True))
        loops = loops_of(ctx, u, r, v, e2c, fl.Schedule(strategy="gather", deterministic="global"))
        both.append((u, Chain(loops, fuse=fuse), v))

    def run(times: int) -> int:
        """Run both; returns how often the first ran fused."""
        before = sum(row.calls for row in both[0][1].reports() if "+" in row.name)
        for _, chain, _ in both:
            for _ in range(times):
                chain()
        for left, right in zip(both[0], both[1], strict=True):
            if isinstance(left, fl.Dat):
                assert left.read().tobytes() == right.read().tobytes()
        return sum(row.calls for row in both[0][1].reports() if "+" in row.name) - before

    assert run(4) > 0
    arrays = [u.array for u, _, _ in both]
    for array in arrays:
        array *= 1.5
    ctx.synchronize()
    assert run(3) == 0
    assert "share the memory of u" in both[0][1].describe()
    for (u, _, _), array in zip(both, arrays, strict=True):
        assert host(array).tobytes() == u.read().tobytes()
        array += 0.25
    ctx.synchronize()
    assert run(2) == 0
    del array, arrays
    gc.collect()
    assert run(4) > 0
    assert "share" not in both[0][1].describe()


# ------------------------------------------------------------------------------------------------- CuPy


@fl.kernel
def add(u: RW, *, a: float):
    for k in range(2):
        u[k] += a


@pytest.fixture
def gpu() -> fl.Context:
    return fl.Context("cuda", tuning=False)


@pytest.mark.cuda
@pytest.mark.parametrize("shape", ["set", "grid", "ghosts"])
@pytest.mark.parametrize("layout", [fl.AoS(), fl.SoA()])
def test_cupy_sees_a_dat(gpu: fl.Context, shape: str, layout: fl.AoS | fl.SoA) -> None:
    cupy = cupy_of(gpu)
    over = gpu.set(77, "s") if shape == "set" else gpu.grid((6, 9), ghost=2 if shape == "ghosts" else 0)
    values = np.random.default_rng(0).random((*over.shape, 2))
    dat = gpu.dat(over, values, layout=layout)
    plus = Loop(add, over, dat, a=1.0)
    plus()
    for see in (lambda: dat.array, lambda: cupy.from_dlpack(dat), lambda: cupy.asarray(dat)):
        before = dat.read()
        array = see()
        assert isinstance(array, cupy.ndarray)
        assert array.shape == values.shape
        assert dat.buffer.address <= array.data.ptr < dat.buffer.address + dat.buffer.nbytes
        np.testing.assert_array_equal(array.get(), before)
        with gpu.device.stream:  # type: ignore[attr-defined]
            array *= 2.0
            plus()
            array += 0.5
        np.testing.assert_array_equal(dat.read(), 2.0 * before + 1.0 + 0.5)
        array[...] = 4.0
        np.testing.assert_array_equal(dat.read(), np.full(values.shape, 4.0))  # reading waits for CuPy
        dat.write(before)
        np.testing.assert_array_equal(array.get(), before)
        del array
    assert dat.watched  # since cupy.asarray
    assert tuple(dat.__dlpack_device__()) == tuple(dat.array.__dlpack_device__())


@pytest.mark.cuda
def test_an_array_waits_for_loops_before_it(gpu: fl.Context) -> None:
    cupy = cupy_of(gpu)
    dat = gpu.dat(gpu.set(1 << 22, "many"), shape=(2,))
    plus = Loop(add, dat.set, dat, a=1.0)
    for see in (lambda: dat.array, lambda: cupy.from_dlpack(dat), lambda: cupy.asarray(dat)):
        dat.write(0.0)
        for _ in range(50):
            plus()
        assert float(see().min()) == 50.0
    with cupy.cuda.Stream(non_blocking=True):
        for see in (lambda: dat.array, lambda: cupy.from_dlpack(dat), lambda: cupy.asarray(dat)):
            dat.write(0.0)
            for _ in range(50):
                plus()
            assert float(see().min()) == 50.0


@pytest.mark.cuda
def test_a_dat_in_the_memory_of_cupy(gpu: fl.Context) -> None:
    cupy = cupy_of(gpu)
    over = gpu.set(77, "s")
    values = np.random.default_rng(0).random((77, 2))
    for make in (lambda: cupy.asarray(values), lambda: cupy.asarray(np.ascontiguousarray(values.T)).T):
        array = make()
        dat = gpu.dat(over, array)
        assert dat.buffer.address == array.data.ptr
        assert isinstance(dat.layout, fl.SoA) is not array.flags.c_contiguous
        plus = Loop(add, over, dat, a=1.0)
        plus()
        gpu.synchronize()
        np.testing.assert_array_equal(array.get(), values + 1.0)
        with gpu.device.stream:  # type: ignore[attr-defined]
            array *= 3.0
            plus()
        np.testing.assert_array_equal(dat.read(), 3.0 * (values + 1.0) + 1.0)
        dat.write(values)
        np.testing.assert_array_equal(array.get(), values)
        assert dat.array.data.ptr == array.data.ptr
        del array
        cupy.full((77, 2), 9.0)  # would get the memory if it had been given back
        np.testing.assert_array_equal(dat.read(), values)


@pytest.mark.cuda
def test_copies_of_cupy_arrays(gpu: fl.Context) -> None:
    cupy = cupy_of(gpu)
    over, box = gpu.set(54, "s"), gpu.grid((6, 9), ghost=1)
    values = cupy.asarray(np.random.default_rng(0).random((54, 2)))
    copies = [
        gpu.dat(over, values, copy=True),
        gpu.dat(over, values, layout=fl.SoA()),
        gpu.dat(over, values, layout=fl.Blocked(8)),
        gpu.dat(box, values.reshape(6, 9, 2), layout=fl.SoA()),
        gpu.dat(over, cupy.repeat(values, 2, axis=1)[:, ::2]),
    ]
    copies.append(gpu.dat(over, copies[1]))
    single = gpu.dat(over, values, dtype="float32")
    expected = values.get()
    values[...] = -1.0
    for dat in copies:
        assert not dat.watched
        np.testing.assert_array_equal(dat.read().reshape(54, 2), expected)
        Loop(add, dat.set, dat, a=1.0)()
        np.testing.assert_array_equal(dat.read().reshape(54, 2), expected + 1.0)
    np.testing.assert_array_equal(single.read(), expected.astype(np.float32))
    copies[3].write(cupy.arange(2.0))
    assert (copies[3].read() == [0.0, 1.0]).all()


@pytest.mark.cuda
def test_what_cupy_cannot_share(gpu: fl.Context) -> None:
    cupy = cupy_of(gpu)
    over = gpu.set(8, "s")
    for array, more in (
        (cupy.zeros(8, dtype="float32"), {"dtype": "float64"}),
        (cupy.zeros(16)[::2], {}),
        (cupy.zeros(9)[1:], {}),
        (cupy.zeros((8, 2)), {"layout": fl.SoA()}),
        (np.zeros(8), {}),
    ):
        with pytest.raises(ExportError, match="have to be copied"):
            gpu.dat(over, array, copy=False, **more)
    with pytest.raises(DatError, match="cannot be stored"):
        gpu.dat(over, cupy.zeros(8, dtype="complex64"))
    cpu = fl.Context("cpu")
    with pytest.raises(DatError, match=r"in the memory of a GPU, and the context runs on cpu.*values\.get\(\)"):
        cpu.dat(cpu.set(8, "s"), cupy.zeros(8))


@pytest.mark.cuda
def test_numpy_copies(gpu: fl.Context) -> None:
    dat = gpu.dat(gpu.set(5, "s"), np.arange(10.0).reshape(5, 2), layout=fl.SoA())
    Loop(add, dat.set, dat, a=1.0)()
    assert np.asarray(dat).tolist() == dat.read().tolist()
    if np.lib.NumpyVersion(np.__version__) >= "2.1.0":
        assert np.from_dlpack(dat, device="cpu").tolist() == dat.read().tolist()


# ---------------------------------------------------------------------------------------------- PyTorch


@pytest.mark.cuda
def test_torch(gpu: fl.Context) -> None:
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("PyTorch has no CUDA")
    over = gpu.set(77, "s")
    values = np.random.default_rng(0).random((77, 2))
    for layout in (fl.AoS(), fl.SoA()):
        dat = gpu.dat(over, values, layout=layout)
        plus = Loop(add, over, dat, a=1.0)
        plus()
        tensor = torch.from_dlpack(dat)
        assert tensor.data_ptr() == dat.buffer.address
        np.testing.assert_array_equal(tensor.cpu().numpy(), values + 1.0)
        tensor.mul_(2.0)
        torch.cuda.synchronize()
        plus()
        np.testing.assert_array_equal(dat.read(), 2.0 * (values + 1.0) + 1.0)
        assert dat.watched
        del tensor
        assert not dat.watched
    tensor = torch.zeros((77, 2), dtype=torch.float64, device="cuda")
    torch.cuda.synchronize()
    dat = gpu.dat(over, tensor, copy=False)
    Loop(add, over, dat, a=3.0)()
    gpu.synchronize()
    assert bool((tensor == 3.0).all())
