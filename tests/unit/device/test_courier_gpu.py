"""Couriers, functions of the host in graphs, and a link of NCCL with itself, on a real GPU."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from fluxloom.core.errors import CommError, DeviceUnavailable
from fluxloom.device.base import Call, Enqueued, Launch
from fluxloom.device.cuda.buffer import CudaBuffer
from fluxloom.device.cuda.device import CudaDevice
from fluxloom.device.cuda.gpu import SideStream
from fluxloom.device.cuda.nccl import NcclLink
from fluxloom.device.cuda.transfer_queue import CudaTransferQueue, array_of, settle_main
from fluxloom.device.transfer_queue import landing

pytestmark = pytest.mark.cuda

N = 100_000

TEXT = r"""
typedef long long int64_t;
#define FL_ITEM ((int64_t)blockIdx.x * blockDim.x + threadIdx.x)

extern "C" __global__ void __launch_bounds__(256) fl_put(int *to, const int *from, int64_t factor, int64_t value, int64_t n)
{
    const int64_t i = FL_ITEM;
    if (i < n) to[i] = (int)factor * from[i] + (int)value;
}

extern "C" __global__ void __launch_bounds__(256) fl_late(int *to, const int *from, int64_t factor, int64_t value, int64_t n)
{
    const int64_t end = clock64() + 2000000; /* about a millisecond */
    while (clock64() < end) { }
    const int64_t i = FL_ITEM;
    if (i < n) to[i] = (int)factor * from[i] + (int)value;
}
"""  # noqa: E501


@pytest.fixture(scope="module")
def device() -> CudaDevice:
    return CudaDevice()


@pytest.fixture(scope="module")
def link(device: CudaDevice) -> Iterator[NcclLink]:
    try:
        found = NcclLink(device, 0, 1, NcclLink.unique_id())
    except DeviceUnavailable as error:
        pytest.skip(str(error))
    yield found
    found.close()


def make(device: CudaDevice, symbol: str, to: CudaBuffer, source: CudaBuffer, factor: int, value: int) -> Call:
    """Return the call of one kernel: ``to = factor * source + value``."""
    program = device.compile(TEXT, ["fl_put", "fl_late"], "courier_gpu")
    words = np.array([to.device(write=True), source.device(), factor, value, N], dtype=np.int64)
    return Call(symbol, program, words, (Launch(symbol, N, 256),), [to, source])


def buffers(device: CudaDevice, count: int) -> list[CudaBuffer]:
    """Return zeroed buffers."""
    return [device.allocate(4 * N) for _ in range(count)]


def fetched(buffer: CudaBuffer) -> np.ndarray:
    """Return what the device has."""
    buffer.written()
    return buffer.host().view(np.int32).copy()


def test_copies_run_beside_kernels(device: CudaDevice) -> None:
    transfer_queue = CudaTransferQueue(device)
    zero, out, into, busy, seen = buffers(device, 5)
    for step in range(1, 60):
        device.sequencer([make(device, "fl_put", out, zero, 1, step)])()
        transfer_queue.down(out)
        device.sequencer([make(device, "fl_late", busy, out, 1, 1)])()
        transfer_queue.wait()
        assert (out.host().view(np.int32) == step).all()
        landing(into).view(np.int32)[:] = 1000 + step
        transfer_queue.up(into)
        transfer_queue.join()
        device.sequencer([make(device, "fl_put", seen, into, 1, 1)])()
        if step % 20 == 0:
            assert (fetched(seen) == 1001 + step).all()
            assert (fetched(busy) == 1 + step).all()
    transfer_queue.close()


def test_exchanges_between_graphs(device: CudaDevice) -> None:
    transfer_queue = CudaTransferQueue(device)
    field, out, into, busy, more = buffers(device, 5)

    def receive() -> None:
        transfer_queue.wait()
        landing(into)[:] = out.host()
        transfer_queue.up(into)
        transfer_queue.join()

    step = device.sequencer(
        [
            make(device, "fl_put", field, field, 1, 1),
            make(device, "fl_put", out, field, 1, 100),
            Enqueued("send", lambda: transfer_queue.down(out)),
            make(device, "fl_late", busy, busy, 1, 1),
            make(device, "fl_put", more, busy, 1, 1),
            Enqueued("receive", receive),
            make(device, "fl_put", field, into, 1, -100),
            make(device, "fl_put", more, field, 2, 0),
        ]
    )
    for _ in range(100):
        step()
    assert (fetched(field) == 100).all()
    assert (fetched(more) == 200).all()
    assert step.graphs == 3


@pytest.mark.parametrize("profile", [False, True])
def test_side_stream_in_a_graph(device: CudaDevice, profile: bool) -> None:
    side, runtime = SideStream(device), device.cupy.cuda.runtime
    field, out, into, busy = buffers(device, 4)

    def start() -> None:
        side.fork()
        runtime.memcpyAsync(into.address, out.address, 4 * N, runtime.memcpyDeviceToDevice, side.stream.ptr)

    step = device.sequencer(
        [
            make(device, "fl_late", out, field, 3, 1),
            Enqueued("start", start, capturable=True),
            make(device, "fl_late", busy, busy, 1, 1),
            Enqueued("finish", side.join, capturable=True),
            make(device, "fl_put", field, into, 5, 2),
        ]
    )
    device.profile = profile
    for _ in range(50):
        step()
    step.settle()
    device.profile = False
    expected = np.zeros(1, dtype=np.int32)
    for _ in range(50):
        expected = 5 * (3 * expected + 1) + 2
    assert (fetched(field) == expected[0]).all()
    assert (fetched(busy) == 50).all()
    assert step.graphs == (0 if profile else 1)
    assert (step.seconds[::2] > 0.0).tolist() == [profile] * 3
    assert (step.seconds >= 0.0).all()


def test_a_fork_that_is_not_joined(device: CudaDevice, caplog: pytest.LogCaptureFixture) -> None:
    """The same values, whether CUDA makes a graph of it or not; and the streams can be used afterwards."""
    side = SideStream(device)
    field, out = buffers(device, 2)
    items = [
        make(device, "fl_put", field, field, 1, 1),
        Enqueued("fork", side.fork, capturable=True),
        make(device, "fl_put", out, field, 1, 1),
    ]
    step = device.sequencer(items)
    for _ in range(5):
        step()
    assert (fetched(out) == 6).all()
    assert len(caplog.records) == 1 - step.graphs
    joined = device.sequencer([*items, Enqueued("join", side.join, capturable=True)])
    for _ in range(5):
        joined()
    assert joined.graphs == 1
    assert (fetched(out) == 11).all()


def test_messages_to_itself(device: CudaDevice, link: NcclLink) -> None:
    field, out, into, busy = buffers(device, 4)
    start, finish = link.items("halo", [(0, out.address, 4 * N)], [(0, into.address, 4 * N)])
    step = device.sequencer(
        [
            make(device, "fl_late", out, field, 3, 1),
            start,
            make(device, "fl_late", busy, busy, 1, 1),
            finish,
            make(device, "fl_put", field, into, 5, 2),
        ]
    )
    for _ in range(100):
        step()
    expected = np.zeros(1, dtype=np.int32)
    for _ in range(100):
        expected = 5 * (3 * expected + 1) + 2
    assert (fetched(field) == expected[0]).all()
    assert step.graphs == 1
    link.exchange([(0, busy.address, 400)], [(0, out.address + 400, 400)])
    found = fetched(out)
    assert (found[100:200] == 100).all()
    link.check()


def test_reduce_alone(device: CudaDevice, link: NcclLink) -> None:
    field = device.allocate(80)
    field.host(write=True).view(np.float64)[:] = np.arange(10)
    for operation in ("sum", "min", "max"):
        link.all_reduce(field.device(), 10, np.float64, operation)
    field.written()
    assert (field.host().view(np.float64) == np.arange(10)).all()


def test_close_with_a_graph(device: CudaDevice) -> None:
    """NCCL waits for graphs that use it: they are dropped before."""
    try:
        link = NcclLink(device, 0, 1, NcclLink.unique_id())
    except DeviceUnavailable as error:
        pytest.skip(str(error))
    out, into = buffers(device, 2)
    step = device.sequencer(link.items("halo", [(0, out.address, 4 * N)], [(0, into.address, 4 * N)]))
    for _ in range(3):
        step()
    assert step.graphs == 1
    link.close()
    assert step.graphs == 0
    with pytest.raises(CommError, match="closed"):
        step()


def test_memory_for_a_library(device: CudaDevice) -> None:
    zero, out = buffers(device, 2)
    device.sequencer([make(device, "fl_late", out, zero, 1, 7)])()
    array = array_of(device, out)
    settle_main(device)
    assert array.__cuda_array_interface__["data"][0] == out.address
    assert (array.get().view(np.int32) == 7).all()
    assert not out.lent
