"""Dats of the cuda device and arrays of CuPy over the same memory, with a stand-in for CuPy (see `cuda_fake`)."""

from __future__ import annotations

import gc
import sys
import weakref
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.core.errors import DatError, ExportError
from fluxloom.device.base import Where
from fluxloom.device.cuda.device import CudaDevice
from tests.unit.device.cuda_fake import FakeCupy


@pytest.fixture
def cupy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> FakeCupy:
    fake = FakeCupy()
    monkeypatch.setitem(sys.modules, "cupy", fake)
    monkeypatch.setenv("FLUXLOOM_CACHE", str(tmp_path / "cache"))
    return fake


@pytest.fixture
def ctx(cupy: FakeCupy) -> fl.Context:
    return fl.Context(CudaDevice())


def filled(cupy: FakeCupy, values: np.ndarray):
    """Return an array of the fake CuPy with some values and the same strides."""
    out = cupy.ndarray(values.shape, values.dtype, strides=values.strides)
    out.values[...] = values
    return out


def numbers(*shape: int) -> np.ndarray:
    return np.arange(np.prod(shape), dtype=np.float64).reshape(shape)


# ------------------------------------------------------------------------------------- from dats to arrays


@pytest.mark.parametrize("layout", [fl.AoS(), fl.SoA()])
@pytest.mark.parametrize("shape", [(), (3,), (2, 3)])
@pytest.mark.parametrize("ghost", [None, 0, (1, 2)])
def test_array_shows_the_values(ctx: fl.Context, cupy: FakeCupy, layout, shape, ghost) -> None:
    over = ctx.set(7, "s") if ghost is None else ctx.grid((4, 5), ghost=ghost)
    values = numbers(*over.shape, *shape)
    dat = ctx.dat(over, values, layout=layout)
    array = dat.array
    assert isinstance(array, cupy.ndarray)
    assert array.shape == values.shape
    assert dat.buffer.where is Where.DEVICE
    ctx.synchronize()
    np.testing.assert_array_equal(array.values, values)
    array.values[1] = 9.0
    assert (dat.read()[1] == 9.0).all()
    np.testing.assert_array_equal(dat.read()[2:], values[2:])


def test_array_of_another_order(ctx: fl.Context) -> None:
    dat = ctx.dat(ctx.set(7, "s"), name="u", layout=fl.Blocked(8))
    with pytest.raises(ExportError, match=r"'u' is stored in another order.*read\(\) and write\(\)"):
        _ = dat.array
    assert not hasattr(dat, "__cuda_array_interface__")
    with pytest.raises(BufferError, match="another order"):
        dat.__dlpack__()


def test_a_live_array_is_watched_and_read_anew(ctx: fl.Context, cupy: FakeCupy) -> None:
    dat = ctx.dat(ctx.set(4, "s"), np.ones(4))
    version = dat.version
    array = dat.array
    assert dat.version > version
    ctx.synchronize()
    array.values[:] = 2.0
    assert (dat.read() == 2.0).all()
    array.values[:] = 3.0  # the host copy was current a moment ago
    assert (dat.read() == 3.0).all()
    array.values[:] = 4.0
    part = array[1:]
    del array
    assert dat.watched
    del part
    assert not dat.watched
    assert (dat.read() == 4.0).all()
    assert dat.buffer.where is Where.BOTH


def test_writing_reaches_a_live_array(ctx: fl.Context, cupy: FakeCupy) -> None:
    dat = ctx.dat(ctx.set(4, "s"), np.ones(4))
    array = dat.array
    cupy.orders.clear()
    dat.write(5.0)
    assert cupy.orders[-1] == (ctx.device.stream.ptr, 0)  # CuPy's stream waits for the values
    cupy.streams[0].synchronize()
    assert (array.values == 5.0).all()


def test_reading_waits_for_what_cupy_does(ctx: fl.Context, cupy: FakeCupy) -> None:
    dat = ctx.dat(ctx.set(4, "s"), np.ones(4))
    array = dat.array
    ctx.synchronize()
    cupy.streams[0].ask(lambda: array.values.fill(6.0))
    assert (dat.read() == 6.0).all()


def test_dlpack(ctx: fl.Context, cupy: FakeCupy) -> None:
    dat = ctx.dat(ctx.set(4, "s"), numbers(4, 2), layout=fl.SoA())
    assert dat.__dlpack_device__() == (2, 0)
    version = dat.version
    array, current, stream, wanted = dat.__dlpack__(stream=77, max_version=(1, 0), copy=False)
    assert dat.version > version
    assert (current, stream) == (ctx.device.stream.ptr, 77)  # so CuPy lets 77 wait for ours
    assert wanted == {"max_version": (1, 0), "copy": False}
    assert array.shape == (4, 2)
    assert array.strides == (8, 8 * dat.stride)
    assert dat.watched
    del array
    assert not dat.watched


def test_cuda_array_interface(ctx: fl.Context) -> None:
    grid = ctx.grid((3, 4), ghost=1)
    dat = ctx.dat(grid, numbers(3, 4))
    told = dat.__cuda_array_interface__
    assert told == {
        "shape": (3, 4), "typestr": "<f8", "data": (dat.buffer.address + 8 * 7, False), "strides": (48, 8),
        "stream": ctx.device.stream.ptr, "version": 3,
    }  # fmt: skip
    assert dat.buffer.where is Where.DEVICE
    assert dat.watched  # for good
    plain = ctx.dat(ctx.set(3, "s"), np.zeros(3, dtype="int32"))
    assert (plain.__cuda_array_interface__["strides"], plain.__cuda_array_interface__["typestr"]) == (None, "<i4")
    assert ctx.dat(ctx.set(0, "none")).__cuda_array_interface__["data"] == (0, False)


def test_numpy_gets_a_copy(ctx: fl.Context) -> None:
    dat = ctx.dat(ctx.set(4, "s"), numbers(4, 2), name="u")
    np.testing.assert_array_equal(np.asarray(dat), numbers(4, 2))
    assert np.asarray(dat, dtype="float32").dtype == np.float32
    assert not dat.watched
    with pytest.raises(ExportError, match="'u': its values are not in host memory"):
        dat.__array__(copy=False)


# ------------------------------------------------------------------------------------- from arrays to dats


@pytest.mark.parametrize("shape", [(), (3,), (2, 3)])
@pytest.mark.parametrize("layout", [None, fl.AoS()])
def test_memory_is_shared(ctx: fl.Context, cupy: FakeCupy, shape, layout) -> None:
    theirs = filled(cupy, numbers(5, *shape))
    dat = ctx.dat(ctx.set(5, "s"), theirs, layout=layout)
    assert dat.buffer.address == theirs.data.ptr
    assert (dat.layout, dat.stride, dat.buffer.nbytes) == (fl.AoS(), 5, theirs.nbytes)
    assert dat.watched
    ctx.synchronize()
    np.testing.assert_array_equal(dat.read(), numbers(5, *shape))
    theirs.values[2] = -1.0
    assert (dat.read()[2] == -1.0).all()
    dat.write(8.0)
    ctx.synchronize()
    assert (theirs.values == 8.0).all()
    dat.array[...] = 9.0
    assert (theirs.values == 9.0).all()
    kept = weakref.ref(theirs)
    del theirs
    gc.collect()
    assert kept() is not None


@pytest.mark.parametrize("layout", [None, fl.SoA()])
def test_memory_by_component_is_shared(ctx: fl.Context, cupy: FakeCupy, layout) -> None:
    for over, lead in ((ctx.set(5, "s"), 1), (ctx.grid((4, 5)), 2)):
        for tail in ((3,), (2, 3)):
            axes = [*range(len(tail), len(tail) + lead), *range(len(tail))]
            values = numbers(*tail, *over.shape).transpose(axes)
            theirs = filled(cupy, values)
            dat = ctx.dat(over, theirs, layout=layout, copy=False)
            assert (dat.layout, dat.stride) == (fl.SoA(), over.size)
            assert dat.buffer.address == theirs.data.ptr
            np.testing.assert_array_equal(dat.read(), values)
            assert dat.array.strides == theirs.strides


def test_arrays_of_other_packages(ctx: fl.Context, cupy: FakeCupy) -> None:
    array = filled(cupy, numbers(5))
    for readonly in (False, True):
        told = {"data": (array.data.ptr, readonly)}
        theirs = SimpleNamespace(__cuda_array_interface__=told, array=array)
        dat = ctx.dat(ctx.set(5, "s"), theirs)
        assert (dat.buffer.address == array.data.ptr) is not readonly
        np.testing.assert_array_equal(dat.read(), numbers(5))
    with pytest.raises(ExportError, match="it is read-only"):
        ctx.dat(ctx.set(5, "s"), theirs, copy=False)


def test_memory_that_a_dat_has_is_copied(ctx: fl.Context, cupy: FakeCupy) -> None:
    over, theirs = ctx.set(5, "s"), filled(cupy, numbers(5))
    first = ctx.dat(over, theirs, "first")
    for array in (theirs, first.array):
        second = ctx.dat(over, array)
        assert second.buffer.address != first.buffer.address
        np.testing.assert_array_equal(second.read(), numbers(5))
        with pytest.raises(ExportError, match="the dat 'first' has the same memory"):
            ctx.dat(over, array, copy=False)


def test_copies_on_the_device(ctx: fl.Context, cupy: FakeCupy) -> None:
    """What cannot be shared, or shall not, is copied without a detour over the host."""
    values = numbers(5, 4)
    theirs = filled(cupy, values)
    over, ghosts = ctx.set(5, "s"), ctx.grid((5,), ghost=1)
    copies = [
        ctx.dat(over, theirs, copy=True),
        ctx.dat(over, theirs, layout=fl.SoA()),
        ctx.dat(over, theirs, dtype="float32"),
        ctx.dat(over, filled(cupy, numbers(5, 8))[:, ::2]),
        ctx.dat(ghosts, theirs),
        ctx.dat(ghosts, theirs, layout=fl.SoA()),
    ]
    for number, dat in enumerate(copies):
        assert not dat.buffer.foreign
        assert dat.buffer.where is Where.DEVICE
        assert not dat.buffer._raw.size  # nothing of it has ever been on the host
        np.testing.assert_array_equal(dat.read(), numbers(5, 8)[:, ::2] if number == 3 else values)
        assert not dat.watched
    blocked = ctx.dat(over, theirs, layout=fl.Blocked(4))
    np.testing.assert_array_equal(blocked.read(), values)


def test_a_copy_is_in_order_with_cupy(ctx: fl.Context, cupy: FakeCupy) -> None:
    theirs = filled(cupy, numbers(5))
    dat = ctx.dat(ctx.set(5, "s"), np.zeros(5))
    cupy.orders.clear()
    dat.write(theirs)
    ours = ctx.device.stream.ptr
    assert cupy.orders[-2:] == [(0, ours), (ours, 0)]
    np.testing.assert_array_equal(dat.read(), numbers(5))


def test_broadcast_and_other_dats(ctx: fl.Context, cupy: FakeCupy) -> None:
    over = ctx.set(5, "s")
    dat = ctx.dat(over, shape=(2,), layout=fl.SoA())
    dat.write(filled(cupy, numbers(2)))
    assert dat.read().tolist() == [[0.0, 1.0]] * 5
    with pytest.raises(DatError, match=r"values of shape \(3,\) do not fit \(5, 2\)"):
        dat.write(filled(cupy, numbers(3)))
    other = ctx.dat(over, dat)
    assert other.buffer is not dat.buffer
    assert not dat.watched
    assert not other.buffer.foreign
    assert other.read().tolist() == dat.read().tolist()
    with pytest.raises(ExportError, match="another dat"):
        ctx.dat(over, dat, copy=False)


def test_why_memory_is_not_shared(ctx: fl.Context, cupy: FakeCupy) -> None:
    over, theirs = ctx.set(4, "cells"), filled(cupy, numbers(4, 2))
    entries = ctx.ragged(over, over, [0, 1, 2, 3, 4], [0, 1, 2, 3], "r", fl.ELL()).entries
    longer = filled(cupy, numbers(5))
    cases = [
        (over, np.zeros((4, 2)), {}, "a ndarray is in the memory of the host"),
        (over, [1.0, 2.0, 3.0, 4.0], {}, "a list is in the memory of the host"),
        (over, None, {}, "nothing was given"),
        (ctx.grid((4,), "g", ghost=1), theirs, {}, "'g' has ghosts"),
        (entries, theirs, {}, "stored in another order"),
        (over, theirs, {"dtype": "float32"}, "it is of float64, and the dat of float32"),
        (over, theirs, {"layout": fl.Blocked(4)}, r"arrays have no layout Blocked\(size=4\)"),
        (over, theirs, {"layout": fl.SoA()}, r"not laid out as SoA\(\)"),
        (over, filled(cupy, numbers(4, 4))[:, ::2], {}, "neither the components"),
        (over, longer[1:], {}, "a multiple of 16 bytes"),
    ]
    for at, data, more, why in cases:
        with pytest.raises(ExportError, match=f"'u': the values have to be copied: .*{why}"):
            ctx.dat(at, data, "u", copy=False, **more)
    theirs.number = 1
    with pytest.raises(DatError, match="on GPU 1, not on GPU 0"):
        ctx.dat(over, theirs)


def test_other_devices_refuse_arrays_of_a_gpu(cupy: FakeCupy) -> None:
    ctx = fl.Context("reference")
    theirs = SimpleNamespace(__cuda_array_interface__={})
    for give in (lambda: ctx.dat(ctx.set(5, "s"), theirs), lambda: ctx.dat(ctx.set(5, "s")).write(theirs)):
        with pytest.raises(DatError, match=r"in the memory of a GPU, and the context runs on reference.*\.get\(\)"):
            give()
