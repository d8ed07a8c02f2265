"""The OpenCL device: buffers, sequences, timing. Every test needs a platform; PoCL is one."""

from __future__ import annotations

import gc
import sys

import numpy as np
import pytest

from fluxloom.core.errors import OutOfMemory
from fluxloom.device.base import Call, Launch, Where
from fluxloom.device.opencl.device import OpenClDevice

pytestmark = pytest.mark.opencl

TEXT = """
__kernel void scale(__global const float *a, __global float *b, long factor, long n, long shift)
{
    const long i = get_global_id(0);
    if (i < n) b[i] = (float)factor * a[i] + (float)shift;
}

__kernel void add(__global float *a, __global const float *b, long factor, long n, long shift)
{
    const long i = get_global_id(0);
    if (i < n) a[i] += b[i] + (float)shift;
}
"""
N = 1000


@pytest.fixture(scope="module")
def device() -> OpenClDevice:
    return OpenClDevice()


class Pair:
    """Two dats and a call of two kernels: ``b = factor a + 3``, then ``a += b + 1``."""

    def __init__(self, device: OpenClDevice, factor: int = 2) -> None:
        self.a, self.b = device.allocate(4 * N), device.allocate(4 * N)
        self.a.host(write=True).view(np.float32)[:] = np.arange(N)
        self.a.device()
        words = np.array([self.a.address, self.b.address, factor, N], dtype=np.int64)
        program = device.compile(TEXT, ["scale", "add"], "pair")
        launches = (Launch("scale", N, 64, (3,)), Launch("add", N, 32, (1,)))
        self.call = Call("pair", program, words, launches, [self.a, self.b])

    def values(self) -> tuple[np.ndarray, np.ndarray]:
        self.a.written()
        self.b.written()
        return self.a.host().view(np.float32).copy(), self.b.host().view(np.float32).copy()


# --------------------------------------------------------------------------------------------- buffers


def test_buffer_is_zero_and_travels(device: OpenClDevice) -> None:
    buffer = device.allocate(1000)
    assert buffer.where is Where.DEVICE
    assert not buffer.host().any()
    assert buffer.where is Where.BOTH  # known to be zero: nothing was fetched
    buffer.host(write=True)[:] = 7
    assert buffer.where is Where.HOST
    assert buffer.device(write=True) == buffer.address != 0
    buffer.host()[:] = 0  # fetched before it is given out: the zeros are written after that
    buffer.written()
    assert (buffer.host() == 7).all()
    assert buffer.nbytes == buffer.host().size == 1000


def test_device_memory_is_zero(device: OpenClDevice) -> None:
    for nbytes in (1, 63, 64, 4096, 100_001):
        buffer = device.allocate(nbytes)
        buffer.written()  # forget that it is known to be zero
        assert not buffer.host().any()


def test_empty_buffer(device: OpenClDevice) -> None:
    buffer = device.allocate(0)
    assert buffer.host(write=True).size == 0
    buffer.device(write=True)
    assert buffer.host().size == 0


def test_exported(device: OpenClDevice) -> None:
    buffer = device.allocate(80)
    assert not buffer.exported
    view = buffer.host().view(np.float64)
    assert buffer.exported
    del view
    assert not buffer.exported


def test_out_of_memory(device: OpenClDevice) -> None:
    with pytest.raises(OutOfMemory) as caught:
        device.allocate(1 << 60)
    text = str(caught.value)
    assert str(1 << 60) in text
    assert "MiB in all" in text
    assert "MiB a buffer" in text
    assert device.allocate(64).host().size == 64  # the device goes on


def test_resident_table(device: OpenClDevice) -> None:
    table = np.arange(2 * N, dtype=np.float32)[::2]
    pair = Pair(device, factor=1)
    pair.call.words[0], kept = device.resident(table)
    table[:] = -1.0  # a copy was made
    device.sequencer([Call("pair", pair.call.program, pair.call.words, pair.call.launches[:1], [kept])])()
    assert (pair.values()[1] == 2 * np.arange(N) + 3).all()


def test_resident_empty_table(device: OpenClDevice) -> None:
    word, _ = device.resident(np.zeros((0, 2), dtype=np.int32))
    assert word


# -------------------------------------------------------------------------------------------- sequences


def test_two_kernels_in_order(device: OpenClDevice) -> None:
    pair = Pair(device)
    run = device.sequencer([pair.call])
    run()
    a, b = pair.values()
    assert (b == 2 * np.arange(N) + 3).all()
    assert (a == 3 * np.arange(N) + 4).all()
    assert run.counts.tolist() == [1]


def test_refresh(device: OpenClDevice) -> None:
    pair = Pair(device)
    run = device.sequencer([pair.call])
    pair.call.words[2] = 5
    run.refresh()
    run()
    assert (pair.values()[1] == 5 * np.arange(N) + 3).all()
    other = device.allocate(4 * N)  # the same words could now mean another buffer
    pair.call.words[1] = other.address
    run.refresh()
    run()
    other.written()
    expected = 5 * (6 * np.arange(N) + 4) + 3
    assert (other.host().view(np.float32) == expected).all()


def test_words_are_taken_at_refresh_only(device: OpenClDevice) -> None:
    pair = Pair(device)
    run = device.sequencer([pair.call])
    pair.call.words[2] = 5
    run()
    assert (pair.values()[1] == 2 * np.arange(N) + 3).all()


def test_double_words() -> None:
    device = OpenClDevice()
    if not device.fp64:
        pytest.skip("the device has no double precision")
    text = "__kernel void f(__global double *a, double s) { a[get_global_id(0)] += s; }"
    buffer = device.allocate(64)
    words = np.array([buffer.address, 0], dtype=np.int64)
    words[1:].view(np.float64)[0] = 0.1
    run = device.sequencer([Call("f", device.compile(text, ["f"], "f"), words, (Launch("f", 8, 8),))])
    run()
    run()
    buffer.written()
    assert (buffer.host().view(np.float64) == 0.2).all()


def test_no_items_and_no_calls(device: OpenClDevice) -> None:
    pair = Pair(device)
    idle = Call("idle", pair.call.program, pair.call.words, (Launch("scale", 0, 64, (3,)),))
    run = device.sequencer([idle])
    run()
    run.refresh()
    assert run.counts.tolist() == [1]
    assert not pair.values()[1].any()
    nothing = device.sequencer([])
    nothing()
    nothing.settle()
    assert nothing.counts.size == 0


def test_reset_of_a_global(device: OpenClDevice) -> None:
    for value, count in ((np.float32(1.5), 3), (np.int32(-7), 1), (np.int64(-(2**40)), 200), (np.float64(np.inf), 2)):
        buffer = device.allocate(max(64, count * value.itemsize) + 8)
        bits = int.from_bytes(value.tobytes().ljust(8, b"\0"), sys.byteorder, signed=True)
        words = np.array([buffer.address, count, value.itemsize, bits], dtype=np.int64)
        device.sequencer([device.reset_call(words)])()
        buffer.written()
        stored = buffer.host()
        assert (stored[: count * value.itemsize].view(value.dtype) == value).all()
        assert not stored[count * value.itemsize :].any()


def test_long_runs_are_throttled(device: OpenClDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fluxloom.device.opencl.queue._WINDOW", 8)
    pair = Pair(device, factor=0)
    run = device.sequencer([Call("scale", pair.call.program, pair.call.words, pair.call.launches[:1])])
    for _ in range(100):
        run()
    device.synchronize()
    assert run.counts.tolist() == [100]
    assert (pair.values()[1] == 3).all()


# ---------------------------------------------------------------------------------------------- timing


def test_profile() -> None:
    device = OpenClDevice()
    pair = Pair(device, factor=0)
    run = device.sequencer([pair.call, Call("idle", pair.call.program, pair.call.words, ())])
    run()
    run.settle()
    assert not run.seconds.any()
    device.profile = True
    for _ in range(3):
        run()
    run.settle()
    assert run.seconds[0] > 0
    assert run.seconds[1] == 0
    assert run.counts.tolist() == [4, 4]
    device.profile = False
    before = run.seconds.copy()
    run()
    run.settle()
    assert (run.seconds == before).all()
    a, b = pair.values()
    assert (b == 3).all()
    assert (a == np.arange(N) + 5 * 4).all()  # queues of both kinds kept their order
    run.reset()
    assert not run.seconds.any()
    assert not run.counts.any()


def test_pending_events_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fluxloom.device.opencl.sequencer._PENDING", 10)
    device = OpenClDevice()
    device.profile = True
    run = device.sequencer([Pair(device).call])
    for _ in range(50):
        run()
    assert run.seconds[0] > 0
    assert len(run._pending) <= 12


def test_elapsed(device: OpenClDevice) -> None:
    run = device.sequencer([Pair(device).call])
    assert 0 < device.elapsed(run) < 10
    assert run.counts.tolist() == [1]


def test_bandwidth(device: OpenClDevice) -> None:
    found = device.meter(8 << 20).measure(repeats=2)
    assert found.bytes == 8 << 20
    assert found.threads == device.compute_units
    assert found.copy_gbs >= found.copy_plain_gbs > 0.01
    assert found.triad_gbs > 0.01
    single = OpenClDevice(without=("cl_khr_fp64",)).meter(1 << 20).measure(repeats=1)
    assert single.copy_gbs > 0.01


def test_devices_go_away() -> None:
    """A device can be dropped while buffers and sequences made by it live on."""
    device = OpenClDevice()
    pair = Pair(device)
    run = device.sequencer([pair.call])
    del device
    gc.collect()
    run()
    assert (pair.values()[1] == 2 * np.arange(N) + 3).all()
