"""Dats and arrays of NumPy and pyopencl over the same memory."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.core.dtypes import FLOAT64, Layout
from fluxloom.core.errors import DatError, ExportError
from fluxloom.device.buffer import capsule, dense, gapless, steps
from fluxloom.dsl.declare.dats import fitting_layout, view_of

READ_ONLY = np.lib.NumpyVersion(np.__version__) < "2.3.0"
"""Whether `numpy.from_dlpack` forbids writing."""


@pytest.fixture
def ctx() -> fl.Context:
    return fl.Context("reference")


def numbers(*shape: int) -> np.ndarray:
    return np.arange(np.prod(shape), dtype=np.float64).reshape(shape)


# ---------------------------------------------------------------------------------------------- forms


def test_steps_and_density() -> None:
    assert steps((3, 4, 5)) == (20, 5, 1)
    assert steps(()) == ()
    for array, is_dense, is_gapless in (
        (numbers(3, 4), True, True),
        (numbers(3, 4).T, False, True),
        (numbers(3, 4, 5).transpose(1, 0, 2), False, True),
        (numbers(3, 4)[:, ::2], False, False),
        (numbers(3, 4)[:, :3], False, False),
        (numbers(3, 4)[::-1], False, False),
        (numbers(3, 4)[1:2], True, True),
        (numbers(3, 4)[:, 1:2], False, False),
        (numbers(3, 0), True, True),
        (numbers(3, 1, 4).transpose(1, 2, 0), False, True),
        (np.float64(3.0), True, True),
        (np.broadcast_to(1.0, (3, 4)), False, False),
    ):
        assert dense(array.shape, array.strides, 8) is is_dense, array
        assert gapless(array.shape, array.strides, 8) is is_gapless, array


@pytest.mark.parametrize("shape", [(), (3,), (2, 3)])
def test_fitting_layout(ctx: fl.Context, shape: tuple[int, ...]) -> None:
    for over in (ctx.set(5, "s"), ctx.grid((4, 3))):
        whole = numbers(*over.shape, *shape)
        lead = len(over.shape)
        by_component = numbers(*shape, *over.shape).transpose([*range(len(shape), whole.ndim), *range(len(shape))])
        both = not shape
        for wanted in (None, fl.AoS(), fl.SoA()):
            found = [fitting_layout(over, FLOAT64, array, wanted)[0] for array in (whole, by_component)]
            aos, soa = wanted != fl.SoA() or both, wanted != fl.AoS() or both
            assert [f is not None for f in found] == [aos, soa], wanted
            assert found[0] in (None, wanted or fl.AoS())
            assert found[1] in (None, wanted or (fl.AoS() if both else fl.SoA()))
        assert whole.ndim == lead + len(shape)
        why = "it is of >f8, and the dat of float64"
        assert fitting_layout(over, FLOAT64, whole.astype(">f8"), None) == (None, why)


def test_one_element_fits_every_layout(ctx: fl.Context) -> None:
    for wanted in (fl.AoS(), fl.SoA()):
        assert fitting_layout(ctx.set(1, "s"), FLOAT64, numbers(1, 3), wanted) == (wanted, "")


def test_view_of(ctx: fl.Context) -> None:
    view = view_of(ctx.dat(ctx.grid((3, 4), ghost=(1, 2)), shape=(2,), dtype="float32", layout=fl.SoA()))
    assert (view.shape, view.strides, view.offset) == ((3, 4, 2), (32, 4, 4 * 64), 4 * (8 + 2))
    assert not view.dense
    assert view_of(ctx.dat(ctx.set(3, "s"), shape=(2,))).dense


class OldArray:
    """Knows DLPack 0 only."""

    def __dlpack__(self, *, stream=None):
        return "capsule", stream


def test_capsule_of_an_old_array() -> None:
    assert capsule(OldArray(), 3, max_version=(1, 0), dl_device=None, copy=None) == ("capsule", 3)
    with pytest.raises(TypeError):
        capsule(OldArray(), 3, max_version=(1, 0), copy=True)


# ----------------------------------------------------------------------------------------- host memory


@pytest.mark.parametrize("device", ["reference", "cpu"])
@pytest.mark.parametrize("layout", [fl.AoS(), fl.SoA()])
def test_array_and_dlpack(device: str, layout: Layout) -> None:
    ctx = fl.Context(device)
    dat = ctx.dat(ctx.grid((3, 4), ghost=1), numbers(3, 4, 2), layout=layout)
    for see in (lambda: dat.array, lambda: np.from_dlpack(dat)):
        version = dat.version
        array = see()
        assert dat.version > version
        np.testing.assert_array_equal(array, dat.read())
        assert np.shares_memory(array, dat.buffer.host())
        assert array.flags.writeable or READ_ONLY
        if array.flags.writeable:
            array[1, 2] = [7.0, 8.0]
            assert dat.read()[1, 2].tolist() == [7.0, 8.0]
        part = array[1:]
        del array
        assert dat.watched
        del part
        assert not dat.watched
    assert dat.__dlpack_device__() == (1, 0)
    assert not hasattr(dat, "__cuda_array_interface__")


def test_no_array_of_another_order(ctx: fl.Context) -> None:
    dat = ctx.dat(ctx.set(7, "s"), numbers(7), "u", layout=fl.Blocked(8))
    for see in (lambda: dat.array, dat.__dlpack__):
        with pytest.raises(ExportError, match="'u' is stored in another order"):
            see()
    assert np.asarray(dat).tolist() == list(range(7))  # a copy


def test_numpy_sees_a_dat(ctx: fl.Context) -> None:
    dat = ctx.dat(ctx.set(4, "s"), numbers(4, 2), layout=fl.SoA())
    seen = np.asarray(dat)
    assert np.shares_memory(seen, dat.buffer.host())
    assert not seen.flags.writeable
    assert not np.shares_memory(np.array(dat), seen)
    assert np.asarray(dat, dtype=np.int32).tolist() == numbers(4, 2).tolist()
    np.testing.assert_array_equal(np.sqrt(dat), np.sqrt(numbers(4, 2)))


def test_a_dat_of_a_dat(ctx: fl.Context) -> None:
    over = ctx.set(4, "s")
    first = ctx.dat(over, numbers(4, 2))
    second = ctx.dat(over, first, layout=fl.Blocked(4))
    third = ctx.dat(over, second)
    first.write(0.0)
    assert third.read().tolist() == numbers(4, 2).tolist()
    first.write(third)
    assert first.read().tolist() == numbers(4, 2).tolist()
    far = fl.Context("reference")
    assert far.dat(far.set(4, "s"), first).read().tolist() == numbers(4, 2).tolist()


@pytest.mark.parametrize("device", ["reference", "cpu"])
def test_memory_of_an_array(device: str) -> None:
    ctx = fl.Context(device)
    over = ctx.set(5, "s")
    theirs = numbers(5, 3)
    for values, layout in ((theirs, fl.AoS()), (numbers(3, 5).T, fl.SoA())):
        dat = ctx.dat(over, values, copy=False)
        assert (dat.layout, dat.stride) == (layout, 5)
        assert np.shares_memory(dat.data, values)
        np.testing.assert_array_equal(dat.read(), values)
        values[2] = -1.0
        assert (dat.read()[2] == -1.0).all()
        dat.write(3.0)
        assert (values == 3.0).all()
        assert dat.watched
    kept = weakref.ref(theirs)
    dat = ctx.dat(over, theirs, copy=False)
    del theirs, values
    gc.collect()
    assert kept() is not None
    assert not np.shares_memory(ctx.dat(over, kept()).buffer.host(), kept())  # by default it is copied
    assert not np.shares_memory(ctx.dat(over, kept(), copy=True).buffer.host(), kept())


def test_two_dats_never_share_memory(ctx: fl.Context) -> None:
    """Loops may assume that what they write through one dat is not in another."""
    over, array = ctx.set(5, "s"), numbers(6)
    first = ctx.dat(over, array[:5], "first", copy=False)
    for data in (array[:5], array[1:], first.array):
        with pytest.raises(ExportError, match="the dat 'first' has the same memory"):
            ctx.dat(over, data, copy=False)
    del first, data
    gc.collect()
    assert ctx.dat(over, array[1:], copy=False).read().tolist() == [1.0, 2.0, 3.0, 4.0, 5.0]


def test_an_empty_array_is_shared_with_nobody(ctx: fl.Context) -> None:
    dat = ctx.dat(ctx.set(0, "none"), np.zeros((0, 3)), copy=False)
    assert dat.read().shape == (0, 3)
    assert not dat.watched


def test_why_memory_is_not_shared(ctx: fl.Context) -> None:
    over, fixed = ctx.set(4, "s"), numbers(4)
    fixed.flags.writeable = False
    crooked = np.frombuffer(bytearray(33), dtype=np.uint8)[1:].view(np.float64)
    crooked = crooked if not crooked.flags.aligned else np.frombuffer(bytearray(34), np.uint8)[2:].view(np.float64)
    for data, more, why in (
        ([1, 2, 3, 4], {}, "a list is no NumPy array"),
        (None, {}, "nothing was given"),
        (ctx.dat(over), {}, "another dat was given"),
        (fixed, {}, "it is read-only"),
        (crooked, {}, "it is not aligned"),
        (numbers(4), {"dtype": "float32"}, "it is of float64, and the dat of float32"),
        (numbers(8)[::2], {}, "neither the components"),
        (numbers(4, 2), {"layout": fl.SoA()}, r"its values are not laid out as SoA\(\)"),
        (numbers(4, 2), {"layout": fl.Blocked(8)}, "arrays have no layout Blocked"),
    ):
        with pytest.raises(ExportError, match=f"'u': the values have to be copied: {why}"):
            ctx.dat(over, data, "u", copy=False, **more)
    with pytest.raises(ExportError, match="'box' has ghosts"):
        ctx.dat(ctx.grid((4,), "box", ghost=1), numbers(4), copy=False)


# --------------------------------------------------------------------------------------------- OpenCL


@pytest.mark.opencl
def test_opencl_array() -> None:
    ctx = fl.Context("opencl")
    dat = ctx.dat(ctx.set(5, "s"), np.arange(10, dtype=np.float32).reshape(5, 2), "u")
    version = dat.version
    array = dat.array
    assert dat.version > version
    assert type(array).__module__ == "pyopencl.array"
    assert array.shape == (5, 2)
    assert array.get().tolist() == dat.read().tolist()
    array += 1
    assert dat.read().tolist() == array.get().tolist()
    assert dat.read()[0].tolist() == [1.0, 2.0]
    array *= 2  # the host copy was current a moment ago
    assert dat.read()[0].tolist() == [2.0, 4.0]
    dat.write(7.0)
    assert (array.get() == 7.0).all()
    array.fill(8.0)
    part = array[1:]
    del array
    assert dat.watched
    del part
    assert not dat.watched
    assert (dat.read() == 8.0).all()
    kept = dat.array
    del dat
    gc.collect()
    assert (kept.get() == 8.0).all()


@pytest.mark.opencl
def test_opencl_grid_and_scalar_array() -> None:
    ctx = fl.Context("opencl")
    for layout in (fl.AoS(), fl.SoA()):
        dat = ctx.dat(ctx.grid((4, 5)), layout=layout, dtype="int32")
        array = dat.array
        array += 3
        assert (dat.read() == 3).all()
        assert array.shape == (4, 5)


@pytest.mark.opencl
def test_opencl_refuses() -> None:
    ctx = fl.Context("opencl")
    over = ctx.set(5, "s")
    parts = ctx.dat(over, shape=(2,), dtype="float32", layout=fl.SoA())
    for dat in (parts, ctx.dat(ctx.grid((3, 4), ghost=1), dtype="int32")):
        with pytest.raises(ExportError, match=r"do not lie one after the other.*use read\(\) and write\(\)"):
            _ = dat.array
        for see in (dat.__dlpack__, dat.__dlpack_device__):
            with pytest.raises(BufferError, match="no DLPack"):
                see()
        assert not hasattr(dat, "__cuda_array_interface__")
        assert np.asarray(dat).shape == dat.read().shape
    with pytest.raises(ExportError, match="the opencl device cannot use the memory of arrays"):
        ctx.dat(over, np.zeros(5, dtype=np.float32), copy=False)
    array = ctx.dat(over, dtype="float32").array
    with pytest.raises(DatError, match=r"values\.get\(\)"):
        ctx.dat(over, array)
