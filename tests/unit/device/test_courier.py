"""Couriers of a GPU on a stand-in for CuPy: copies come when and only when they may, and both sides know."""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path

import numpy as np
import pytest

from fluxloom.core.errors import CommError, SolverError
from fluxloom.device.base import Call, Enqueued, Launch, Where
from fluxloom.device.cpu import CpuDevice
from fluxloom.device.cuda.buffer import CudaBuffer
from fluxloom.device.cuda.device import CudaDevice
from fluxloom.device.cuda.transfer_queue import CudaTransferQueue, array_of, mark_main, settle_main
from fluxloom.device.transfer_queue import landing
from tests.unit.device.courier_fake import LateCupy
from tests.unit.device.cuda_fake import CUDARuntimeError

N = 10


def doubles(address: int) -> np.ndarray:
    """Return memory that a kernel got the address of."""
    return np.ctypeslib.as_array((ctypes.c_double * N).from_address(address))


def add(_threads: int, target: int, source: int, value: int) -> None:
    """Add the elements of another buffer and a number."""
    doubles(target)[:] += doubles(source) + value


def put(_threads: int, target: int, source: int, value: int) -> None:
    """Set elements to those of another buffer and a number."""
    doubles(target)[:] = doubles(source) + value


@pytest.fixture
def cupy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> LateCupy:
    fake = LateCupy({"fl_add": add, "fl_put": put})
    monkeypatch.setitem(sys.modules, "cupy", fake)
    monkeypatch.setenv("FLUXLOOM_CACHE", str(tmp_path / "cache"))
    return fake


@pytest.fixture
def device(cupy: LateCupy) -> CudaDevice:
    return CudaDevice()


def make(device: CudaDevice, symbol: str, target: CudaBuffer, source: CudaBuffer, value: int = 0) -> Call:
    """Return the call of one kernel."""
    program = device.compile("fl_add fl_put", ["fl_add", "fl_put"], "transfer_queue")
    words = np.array([target.device(write=True), source.device(), value], dtype=np.int64)
    return Call(symbol, program, words, (Launch(symbol, N, 32),), [target, source])


def run(device: CudaDevice, *arguments, value: int = 0) -> None:
    """Run one kernel."""
    device.sequencer([make(device, *arguments, value)])()


def fetched(buffer: CudaBuffer) -> list[float]:
    """Return what the device has."""
    buffer.where = Where.DEVICE
    return buffer.host().view(np.float64).tolist()


def test_down_waits_for_its_kernels_and_not_for_later_ones(device: CudaDevice, cupy: LateCupy) -> None:
    transfer_queue, message, field = CudaTransferQueue(device), device.allocate(8 * N), device.allocate(8 * N)
    zero = device.allocate(8 * N)
    for step in (1, 2, 3):
        run(device, "fl_put", message, zero, value=step)
        transfer_queue.down(message)
        assert message.where is Where.DEVICE
        run(device, "fl_add", field, message)
        waits, clock = cupy.waits, cupy.clock
        transfer_queue.wait()
        assert cupy.waits == waits + 1
        assert cupy.clock == clock + (3.0 if step == 1 else 5.0)  # a copy and its kernel, before it the last interior
        assert message.where is Where.BOTH
        assert message.host().view(np.float64).tolist() == [step] * N
        transfer_queue.join()
        transfer_queue.down()  # what is in flight now holds nothing of the last exchange
        transfer_queue.join()
    assert fetched(field) == [6.0] * N


def test_up_comes_before_what_follows_the_join(device: CudaDevice) -> None:
    transfer_queue, message, field = CudaTransferQueue(device), device.allocate(8 * N), device.allocate(8 * N)
    total = 0
    for step in (1, 2, 3):
        transfer_queue.down()
        transfer_queue.wait()
        landing(message).view(np.float64)[:] = step
        transfer_queue.up(message)
        assert message.where is Where.HOST
        transfer_queue.join()
        assert message.where is Where.BOTH
        run(device, "fl_add", field, message)  # not done before the next step begins
        total += step
    assert fetched(field) == [total] * N


def test_up_waits_for_who_reads_the_last_message(device: CudaDevice, cupy: LateCupy) -> None:
    """Without `down` it waits for everything, with it for what was asked for before."""
    transfer_queue, message, field = CudaTransferQueue(device), device.allocate(8 * N), device.allocate(8 * N)
    busy = device.allocate(8 * N)
    for early in (False, True):
        run(device, "fl_add", field, message)
        if early:
            transfer_queue.down()
        run(device, "fl_add", busy, field)  # the interior
        clock = cupy.clock
        landing(message).view(np.float64)[:] = 7
        transfer_queue.up(message)
        transfer_queue.wait()
        kernels = 1 if early else 2
        assert cupy.clock == clock + 2.0 * kernels + 1.0
        transfer_queue.join()
    run(device, "fl_add", field, message)
    assert fetched(field) == [0 + 7 + 7.0] * N


def test_one_exchange_after_the_other_between_graphs(device: CudaDevice, cupy: LateCupy) -> None:
    """A rank that is its own neighbour: what it receives is what it packed, at each of many steps."""
    transfer_queue = CudaTransferQueue(device)
    out, into, field, inner = (device.allocate(8 * N) for _ in range(4))
    one = device.allocate(8 * N)
    one.host(write=True).view(np.float64)[:] = 1
    seen = []

    def receive() -> None:
        transfer_queue.wait()
        seen.append(float(out.host().view(np.float64)[0]))
        landing(into)[:] = out.host()
        transfer_queue.up(into)
        transfer_queue.join()

    step = device.sequencer(
        [
            make(device, "fl_add", field, one),
            make(device, "fl_put", out, field, 100),
            Enqueued("send", lambda: transfer_queue.down(out)),
            make(device, "fl_add", inner, field),
            make(device, "fl_add", inner, one),
            Enqueued("receive", receive),
            make(device, "fl_add", inner, into),
            make(device, "fl_put", field, field),
        ]
    )
    for _ in range(20):
        step()
    device.synchronize()
    assert seen == [100.0 + k for k in range(1, 21)]
    expected = sum(k + 1 + 100 + k for k in range(1, 21))
    assert fetched(inner) == [expected] * N
    assert step.graphs == 3
    assert [graph.launched for graph in cupy.graphs] == [19] * 3
    assert step.counts.tolist() == [20] * 8
    transfer_queue.close()


def test_many_buffers_and_empty_ones(device: CudaDevice) -> None:
    transfer_queue, zero = CudaTransferQueue(device), device.allocate(8 * N)
    buffers = [device.allocate(8 * N) for _ in range(4)]
    empty = device.allocate(0)
    for k, buffer in enumerate(buffers):
        run(device, "fl_put", buffer, zero, value=k + 1)
    transfer_queue.down(*buffers, empty)
    transfer_queue.wait()
    assert [b.host().view(np.float64)[3] for b in buffers] == [1, 2, 3, 4]
    assert empty.where is Where.BOTH
    transfer_queue.up(empty, *buffers[::-1])
    transfer_queue.join()
    assert fetched(buffers[2]) == [3.0] * N


def test_pieces_leave_the_rest_alone(device: CudaDevice) -> None:
    """Other bytes of the buffer may have come another way."""
    transfer_queue, zero, buffer = CudaTransferQueue(device), device.allocate(8 * N), device.allocate(8 * N)
    run(device, "fl_put", buffer, zero, value=3)
    transfer_queue.down((buffer, 16, 24), (buffer, 72, 8), (buffer, 80, 0))
    transfer_queue.wait()
    assert buffer.where is Where.DEVICE
    memory = landing(buffer).view(np.float64)
    assert memory.tolist() == [0, 0, 3, 3, 3, 0, 0, 0, 0, 3]
    memory[:] = 9
    transfer_queue.up((buffer, 8, 16))
    assert buffer.where is Where.DEVICE
    transfer_queue.join()
    assert buffer.where is Where.DEVICE
    assert buffer.host().view(np.float64).tolist() == [3, 9, 9, 3, 3, 3, 3, 3, 3, 3]
    for begin, count in ((-1, 2), (0, -1), (80, 1), (8, 80)):
        with pytest.raises(CommError, match=f"bytes {begin} .* of a buffer of 80"):
            transfer_queue.up((buffer, begin, count))
        with pytest.raises(CommError, match="of a buffer of 80"):
            transfer_queue.down((buffer, begin, count))


def test_landing_brings_nothing_up_to_date(device: CudaDevice, cupy: LateCupy) -> None:
    buffer, zero = device.allocate(8 * N), device.allocate(8 * N)
    run(device, "fl_put", buffer, zero, value=5)
    waits = cupy.waits
    memory = landing(buffer)
    assert cupy.waits == waits
    assert buffer.where is Where.DEVICE
    assert not memory.any()
    assert memory.ctypes.data == buffer.host().ctypes.data
    assert memory.view(np.float64).tolist() == [5.0] * N


def test_a_written_host_copy_is_not_forgotten(device: CudaDevice) -> None:
    """What the host writes after `wait` stays its own; an array over the memory makes the host copy doubtful."""
    transfer_queue, buffer = CudaTransferQueue(device), device.allocate(8 * N)
    transfer_queue.down(buffer)
    buffer.host(write=True)[:] = 1
    transfer_queue.wait()
    assert buffer.where is Where.HOST
    lent = device.allocate(8 * N)
    array = lent.array()
    transfer_queue.up(lent)
    transfer_queue.join()
    assert lent.where is Where.DEVICE
    del array


def test_errors_of_the_gpu(device: CudaDevice, cupy: LateCupy) -> None:
    transfer_queue, buffer = CudaTransferQueue(device), device.allocate(8 * N)

    def broken() -> None:
        raise CUDARuntimeError("cudaErrorIllegalAddress: an illegal memory access was encountered")

    device.stream.ask(broken)
    transfer_queue.down(buffer)
    with pytest.raises(SolverError, match=r"illegal memory access.*the results on the device are lost"):
        transfer_queue.wait()


def test_memory_for_a_library(device: CudaDevice, cupy: LateCupy) -> None:
    buffer, zero = device.allocate(8 * N), device.allocate(8 * N)
    run(device, "fl_put", buffer, zero, value=5)
    array = array_of(device, buffer)
    assert (array.data.ptr, array.shape, array.nbytes) == (buffer.address, (8 * N,), 8 * N)
    assert not buffer.lent
    assert not device.mixed
    assert cupy.launches == 1
    clock = cupy.clock
    side = CudaTransferQueue(device)
    side.down(zero)
    settle_main(device)
    assert cupy.clock == clock + 2.0  # the kernel, and not the copy
    assert array.values.view(np.float64).tolist() == [5.0] * N
    events = len(device.events)
    settle_main(device)
    assert len(device.events) == events
    run(device, "fl_put", buffer, zero, value=6)
    mark = mark_main(device)
    run(device, "fl_put", zero, buffer, value=1)
    clock = cupy.clock
    settle_main(device, mark)
    assert cupy.clock == clock + 2.0  # one kernel of the two
    assert len(device.events) == events


def test_other_gpu_stays_current(cupy: LateCupy) -> None:
    device = CudaDevice(1)
    transfer_queue, buffer = CudaTransferQueue(device), device.allocate(80)
    transfer_queue.down(buffer)
    transfer_queue.wait()
    transfer_queue.up(buffer)
    transfer_queue.join()
    assert cupy.current == 0


def test_no_courier_in_host_memory() -> None:
    assert CpuDevice(1).transfer_queue() is None
