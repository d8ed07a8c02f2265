"""Couriers and functions of the host on an OpenCL device. Every test needs a platform; PoCL is one."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

from fluxloom.core.errors import CommError
from fluxloom.device.base import Call, Enqueued, Launch, Where
from fluxloom.device.opencl.buffer import OpenClBuffer
from fluxloom.device.opencl.device import OpenClDevice
from fluxloom.device.opencl.transfer_queue import OpenClTransferQueue
from fluxloom.device.transfer_queue import landing

pytestmark = pytest.mark.opencl

TEXT = """
__kernel void fl_put(__global int *target, __global const int *source, long value, long n)
{
    const long i = get_global_id(0);
    if (i < n) target[i] = source[i] + (int)value;
}

__kernel void fl_late(__global int *target, __global const int *source, long rounds, long n)
{
    const long i = get_global_id(0);
    if (i >= n) return;
    unsigned x = target[i];
    for (long k = 0; k < rounds; k++) x = x * 1664525u + 1013904223u;
    target[i] = (int)x;
}
"""
N = 5000


@pytest.fixture
def device() -> OpenClDevice:
    return OpenClDevice()


def make(device: OpenClDevice, symbol: str, target: OpenClBuffer, source: OpenClBuffer, value: int = 0) -> Call:
    """Return the call of one kernel."""
    program = device.compile(TEXT, ["fl_put", "fl_late"], "transfer_queue")
    words = np.array([target.device(write=True), source.device(), value, N], dtype=np.int64)
    return Call(symbol, program, words, (Launch(symbol, N, 64),), [target, source])


def buffers(device: OpenClDevice, count: int) -> list[OpenClBuffer]:
    """Return zeroed buffers."""
    return [device.allocate(4 * N) for _ in range(count)]


def fetched(buffer: OpenClBuffer) -> np.ndarray:
    """Return what the device has."""
    buffer.written()
    return buffer.host().view(np.int32).copy()


def test_down_and_up(device: OpenClDevice) -> None:
    transfer_queue = OpenClTransferQueue(device)
    zero, out, into, seen = buffers(device, 4)
    for step in range(1, 30):
        device.sequencer([make(device, "fl_put", out, zero, step)])()
        transfer_queue.down(out)
        assert out.where is Where.DEVICE
        transfer_queue.wait()
        assert out.where is Where.BOTH
        assert (out.host().view(np.int32) == step).all()
        landing(into).view(np.int32)[:] = 1000 + step + np.arange(N)
        transfer_queue.up(into)
        assert into.where is Where.HOST
        transfer_queue.join()
        assert into.where is Where.BOTH
        device.sequencer([make(device, "fl_put", seen, into, 1)])()
        if step % 7 == 0:
            assert (fetched(seen) == 1001 + step + np.arange(N)).all()


@pytest.mark.parametrize("profile", [False, True])
def test_exchanges_in_a_sequence(device: OpenClDevice, profile: bool) -> None:
    """A rank that is its own neighbour, with interior work that takes longer than the copies."""
    transfer_queue = OpenClTransferQueue(device)
    field, out, into, busy = buffers(device, 4)
    device.profile = profile
    seen = []

    def receive() -> None:
        transfer_queue.wait()
        seen.append(int(out.host().view(np.int32)[N - 1]))
        landing(into)[:] = out.host()
        transfer_queue.up(into)
        transfer_queue.join()

    step = device.sequencer(
        [
            make(device, "fl_put", out, field, 100),
            Enqueued("send", lambda: transfer_queue.down(out)),
            make(device, "fl_late", busy, busy, 2000),
            Enqueued("receive", receive),
            make(device, "fl_put", field, into, 1),
        ]
    )
    for _ in range(20):
        step()
    assert (fetched(field) == 20 * 101).all()
    assert seen == [101 * k + 100 for k in range(20)]
    assert step.counts.tolist() == [20] * 5
    step.settle()
    assert (step.seconds > 0.0).tolist() == [profile] * 5
    transfer_queue.close()


def test_waiting_for_a_message_is_not_waiting_for_the_interior(device: OpenClDevice) -> None:
    """The interior does not begin before the message has been waited for."""
    cl, transfer_queue = device.cl, OpenClTransferQueue(device)
    zero, out, seen = buffers(device, 3)
    device.sequencer([make(device, "fl_put", out, zero, 7)])()
    transfer_queue.down(out)
    gate = cl.UserEvent(device.context)
    opened = threading.Timer(20.0, lambda: gate.set_status(cl.command_execution_status.COMPLETE))
    opened.start()
    cl.enqueue_barrier(device.select(timed=False), wait_for=[gate])
    device.sequencer([make(device, "fl_put", seen, out, 1)])()
    transfer_queue.wait()
    assert (out.host().view(np.int32) == 7).all()
    assert gate.command_execution_status != cl.command_execution_status.COMPLETE
    opened.cancel()
    gate.set_status(cl.command_execution_status.COMPLETE)
    assert (fetched(seen) == 8).all()


def test_up_waits_for_who_reads_the_last_message(device: OpenClDevice) -> None:
    transfer_queue = OpenClTransferQueue(device)
    into, first, busy = buffers(device, 3)
    late, read = make(device, "fl_late", busy, busy, 20_000), make(device, "fl_put", first, into, 1)
    device.sequencer([late, read])()
    landing(into).view(np.int32)[:] = 7
    transfer_queue.up(into)
    transfer_queue.join()
    assert (fetched(first) == 1).all()
    assert (fetched(into) == 7).all()


def test_kernels_after_the_join_wait(device: OpenClDevice) -> None:
    """The copy is held up, the kernel has time to run too early."""
    cl, transfer_queue = device.cl, OpenClTransferQueue(device)
    into, seen = buffers(device, 2)
    gate = cl.UserEvent(device.context)
    cl.enqueue_barrier(transfer_queue._queue, wait_for=[gate])
    landing(into).view(np.int32)[:] = 7
    transfer_queue.up(into)
    transfer_queue.join()
    device.sequencer([make(device, "fl_put", seen, into, 1)])()
    time.sleep(0.2)
    gate.set_status(cl.command_execution_status.COMPLETE)
    assert (fetched(seen) == 8).all()


def test_pieces(device: OpenClDevice) -> None:
    transfer_queue = OpenClTransferQueue(device)
    zero, buffer = buffers(device, 2)
    device.sequencer([make(device, "fl_put", buffer, zero, 3)])()
    transfer_queue.down((buffer, 400, 80))
    transfer_queue.wait()
    memory = landing(buffer).view(np.int32)
    expected = np.zeros(N)
    expected[100:120] = 3
    assert (memory == expected).all()
    memory[:] = 9
    transfer_queue.up((buffer, 4, 4), (buffer, 4 * N - 8, 8))
    transfer_queue.join()
    expected[:] = 3
    expected[[1, -2, -1]] = 9
    assert (fetched(buffer) == expected).all()


def test_many_copies_without_waiting(device: OpenClDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fluxloom.device.opencl.transfer_queue._MOST_EVENTS", 8)
    transfer_queue = OpenClTransferQueue(device)
    into, seen, empty = *buffers(device, 2), device.allocate(0)
    landing(into).view(np.int32)[:] = 3
    for _ in range(50):
        transfer_queue.up(into, empty)
        transfer_queue.join()
        assert len(transfer_queue._events) <= 8
    device.sequencer([make(device, "fl_put", seen, into, 1)])()
    assert (fetched(seen) == 4).all()


def test_refresh_and_errors(device: OpenClDevice) -> None:
    zero, out = buffers(device, 2)
    call = make(device, "fl_put", out, zero, 1)
    seen = []

    def host() -> None:
        if seen:
            raise CommError("gone")
        seen.append(int(fetched(out)[0]))

    step = device.sequencer([call, Enqueued("host", host), make(device, "fl_put", out, out, 10)])
    call.words[2] = 5
    step.refresh()
    step()
    assert seen == [5]
    assert (fetched(out) == 15).all()
    with pytest.raises(CommError, match="gone"):
        step()
    assert step.counts.tolist() == [1, 1, 1]
    assert (fetched(out) == 5).all()
