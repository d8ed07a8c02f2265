"""Functions of the host among the calls of a sequence: on processors, and in CUDA graphs on a stand-in for CuPy."""

from __future__ import annotations

import ctypes
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fluxloom.core.errors import CommError, SolverError
from fluxloom.device.base import Call, Enqueued, Launch
from fluxloom.device.cpu import CpuDevice
from fluxloom.device.cuda.buffer import CudaBuffer
from fluxloom.device.cuda.device import CudaDevice
from fluxloom.device.cuda.gpu import SideStream
from tests.unit.device.courier_fake import LateCupy
from tests.unit.device.cuda_fake import CUDADriverError, CUDARuntimeError

SOURCE = """
#include <stdint.h>
void fl_append(const int64_t *block) { int64_t *list = (int64_t *)block[0]; list[++list[0]] = block[1]; }
"""


# ------------------------------------------------------------------------------------------ processor


def append_calls(device: CpuDevice, trace: np.ndarray, numbers: range) -> list[Call]:
    """Return calls that write their number to the end of a list, whose length comes first."""
    unit = device.compile(SOURCE, ["fl_append"], "append")
    return [
        Call(f"call {k}", unit, np.array([trace.ctypes.data, k], dtype=np.int64), (Launch("fl_append"),), [trace])
        for k in numbers
    ]


@pytest.mark.parametrize("places", [(0,), (3,), (1, 2), (0, 0, 3, 3), (0, 1, 2, 3)])
def test_processor_keeps_the_order(places: tuple[int, ...]) -> None:
    device, trace = CpuDevice(1), np.zeros(100, dtype=np.int64)

    def host(number: int) -> Enqueued:
        def run() -> None:
            trace[0] += 1
            trace[trace[0]] = number

        return Enqueued(f"host {number}", run)

    items: list[Call | Enqueued] = list(append_calls(device, trace, range(3)))
    expected = [0, 1, 2]
    for number, place in reversed(list(enumerate(places, start=10))):
        items.insert(place, host(number))
        expected.insert(place, number)
    sequence = device.sequencer(items)
    sequence()
    sequence()
    assert trace[1 : trace[0] + 1].tolist() == expected * 2
    assert sequence.counts.tolist() == [2] * len(items)
    assert (sequence.seconds > 0.0).all()
    sequence.reset()
    assert not sequence.counts.any()


def test_processor_without_functions_of_the_host() -> None:
    device, trace = CpuDevice(1), np.zeros(100, dtype=np.int64)
    sequence = device.sequencer(append_calls(device, trace, range(4)))
    sequence()
    assert trace[:5].tolist() == [4, 0, 1, 2, 3]
    assert sequence.counts.tolist() == [1] * 4
    device.sequencer([])()


def test_processor_stops_at_an_error() -> None:
    device, trace = CpuDevice(1), np.zeros(100, dtype=np.int64)

    def fail() -> None:
        raise CommError("gone")

    first, second = append_calls(device, trace, range(2))
    sequence = device.sequencer([first, Enqueued("fail", fail), second])
    with pytest.raises(CommError, match="gone"):
        sequence()
    assert trace[:2].tolist() == [1, 0]
    assert sequence.counts.tolist() == [1, 0, 0]


# ------------------------------------------------------------------------------------------------ GPU


def multiply(_threads: int, target: int, source: int, factor: int) -> None:
    """Multiply the number of another buffer, and add one: order matters."""
    numbers = (ctypes.c_int64 * 1).from_address(target), (ctypes.c_int64 * 1).from_address(source)
    numbers[0][0] = factor * numbers[1][0] % 1_000_003 + 1


@pytest.fixture
def cupy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> LateCupy:
    fake = LateCupy({"fl_multiply": multiply})
    monkeypatch.setitem(sys.modules, "cupy", fake)
    monkeypatch.setenv("FLUXLOOM_CACHE", str(tmp_path / "cache"))
    return fake


@pytest.fixture
def device(cupy: LateCupy) -> CudaDevice:
    return CudaDevice()


class Step:
    """A step with work on a side stream: b = f(a); fork, c = f(b) beside a = f(a), join; a = f(a, after c)."""

    def __init__(self, device: CudaDevice, *, capturable: bool = True, joined: bool = True) -> None:
        self.device, self.side, self.joined = device, SideStream(device), joined
        self.a, self.b, self.c = (device.allocate(8) for _ in range(3))
        self.calls = dict.fromkeys(("start", "finish", "captured"), 0)
        self.items = [
            self.kernel(self.b, self.a, 3),
            Enqueued("start", self.start, capturable, self.captured),
            self.kernel(self.a, self.a, 5),
            self.kernel(self.a, self.a, 7),
            Enqueued("finish", self.finish, capturable, self.captured),
            self.kernel(self.a, self.c, 11),
            self.kernel(self.b, self.b, 13),
        ]
        self.sequence = device.sequencer(self.items)

    def kernel(self, target: CudaBuffer, source: CudaBuffer, factor: int) -> Call:
        """Return the call of one kernel."""
        program = self.device.compile("fl_multiply", ["fl_multiply"], "multiply")
        words = np.array([target.device(write=True), source.device(), factor], dtype=np.int64)
        return Call(f"times {factor}", program, words, (Launch("fl_multiply", 1, 32),))

    def start(self) -> None:
        """Copy b to c on the side stream."""
        self.calls["start"] += 1
        self.side.fork()
        runtime, stream = self.device.cupy.cuda.runtime, self.side.stream.ptr
        runtime.memcpyAsync(self.c.address, self.b.address, 8, runtime.memcpyDeviceToDevice, stream)

    def finish(self) -> None:
        """Let the main stream wait."""
        self.calls["finish"] += 1
        if self.joined:
            self.side.join()

    def captured(self, sequencer: object) -> None:
        """Count the graphs."""
        assert sequencer is self.sequence
        self.calls["captured"] += 1

    def values(self) -> list[int]:
        """Return what the device has."""
        for buffer in (self.a, self.b, self.c):
            buffer.written()
        return [int(buffer.host().view(np.int64)[0]) for buffer in (self.a, self.b, self.c)]


def expected(steps: int) -> list[int]:
    """Return the values after some steps."""
    a = b = c = 0
    for _ in range(steps):
        b = 3 * a % 1_000_003 + 1
        c = b
        a = 11 * c % 1_000_003 + 1
        b = 13 * b % 1_000_003 + 1
    return [a, b, c]


def test_all_becomes_one_graph(device: CudaDevice, cupy: LateCupy) -> None:
    step = Step(device)
    for _ in range(7):
        step.sequence()
    assert step.values() == expected(7)
    assert len(cupy.graphs) == step.sequence.graphs == 1
    assert cupy.graphs[0].launched == 6
    assert step.calls == {"start": 2, "finish": 2, "captured": 2}
    assert step.sequence.counts.tolist() == [7] * 7
    assert step.side.stream.priority < 0


def test_refresh_captures_anew(device: CudaDevice, cupy: LateCupy) -> None:
    step = Step(device)
    for _ in range(3):
        step.sequence()
    step.sequence.refresh()
    assert step.sequence.graphs == 0
    for _ in range(3):
        step.sequence()
    assert step.values() == expected(6)
    assert [graph.launched for graph in cupy.graphs] == [2, 2]


def test_functions_that_cannot_be_captured_stand_between_graphs(device: CudaDevice, cupy: LateCupy) -> None:
    step = Step(device, capturable=False)
    for _ in range(7):
        step.sequence()
    assert step.values() == expected(7)
    assert step.calls == {"start": 7, "finish": 7, "captured": 0}
    assert [graph.launched for graph in cupy.graphs] == [6, 6]  # a single kernel needs none
    assert step.sequence.graphs == 2


def test_one_that_cannot_be_captured_is_enough(device: CudaDevice, cupy: LateCupy) -> None:
    """What stands on either side of it is captured, a fork with its join in one graph."""
    step = Step(device)
    waited = []
    step.items.append(Enqueued("wait", lambda: waited.append(len(waited))))
    step.sequence = device.sequencer(step.items)
    for _ in range(4):
        step.sequence()
    assert step.values() == expected(4)
    assert step.calls == {"start": 2, "finish": 2, "captured": 2}
    assert step.sequence.graphs == 1
    assert waited == [0, 1, 2, 3]


def test_kernels_beside_the_main_queue_without_a_graph(device: CudaDevice, cupy: LateCupy) -> None:
    """Kernels of the side stream whose fork is no part of the graph are launched anew at every run."""
    step = Step(device, capturable=False)
    aside = [replace(call, aside=True) for call in (step.kernel(step.c, step.b, 17), step.kernel(step.c, step.c, 19))]
    side = device.side
    fork = Enqueued("fork", side.fork_now)
    join = Enqueued("join", side.join_now)
    sequence = device.sequencer([step.kernel(step.b, step.b, 3), fork, *aside, join, step.kernel(step.a, step.c, 5)])
    for _ in range(5):
        sequence()
    b = c = 0
    for _ in range(5):
        b = 3 * b % 1_000_003 + 1
        c = 19 * (17 * b % 1_000_003 + 1) % 1_000_003 + 1
    assert step.values() == [5 * c % 1_000_003 + 1, b, c]
    assert sequence.graphs == 0


def test_a_fork_that_is_not_joined(device: CudaDevice, cupy: LateCupy, caplog: pytest.LogCaptureFixture) -> None:
    step = Step(device, joined=False)
    for _ in range(5):
        step.sequence()
    assert [record.message for record in caplog.records] == [
        "GPU 0: no CUDA graph of times 3, start, times 5, times 7, finish, times 11, times 13: "
        "cudaErrorStreamCaptureUnjoined: a fork was not joined"
    ]
    assert step.calls == {"start": 6, "finish": 6, "captured": 0}
    assert step.sequence.graphs == 2
    assert step.sequence.counts.tolist() == [5] * 7


def test_a_library_that_refuses_to_be_captured(
    device: CudaDevice, cupy: LateCupy, caplog: pytest.LogCaptureFixture
) -> None:
    step = Step(device)
    start = step.start

    def picky() -> None:
        if device.stream.capture is not None:
            raise CommError("not while a graph is captured")
        start()

    step.items[1] = Enqueued("start", picky, True)
    step.sequence = device.sequencer(step.items)
    for _ in range(5):
        step.sequence()
    assert step.values() == expected(5)
    assert len(caplog.records) == 1
    assert step.sequence.graphs == 2
    step.sequence.refresh()
    for _ in range(3):
        step.sequence()
    assert step.values() == expected(8)
    assert len(caplog.records) == 1


def test_errors_pass(device: CudaDevice, cupy: LateCupy) -> None:
    step = Step(device)

    def fail() -> None:
        raise CommError("gone")

    sequence = device.sequencer([step.items[0], Enqueued("fail", fail), *step.items[5:]])
    with pytest.raises(CommError, match="gone"):
        sequence()
    assert sequence.counts.tolist() == [0] * 4

    def lost() -> None:
        raise CUDADriverError("CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access was encountered")

    with pytest.raises(SolverError, match="while running lost"):
        device.sequencer([Enqueued("lost", lost)])()

    def odd() -> None:
        raise CUDARuntimeError("cudaErrorNotReady: not yet")

    with pytest.raises(SolverError, match="GPU 0: cudaErrorNotReady"):
        device.sequencer([Enqueued("odd", odd)])()


def test_profile(device: CudaDevice, cupy: LateCupy) -> None:
    step = Step(device)
    step.sequence()
    device.profile = True
    for _ in range(4):
        step.sequence()
    step.sequence.settle()
    assert cupy.ranges[::2][:7] == ["times 3", "start", "times 5", "times 7", "finish", "times 11", "times 13"]
    # a kernel takes 2 ms of the fake clock, and a copy 1 ms, somewhere between its start and its finish
    assert step.sequence.seconds[[0, 2, 3, 5, 6]] == pytest.approx([0.008] * 5)
    assert step.sequence.seconds[[1, 4]].sum() == pytest.approx(0.004)
    assert step.sequence.counts.tolist() == [5] * 7
    device.profile = False
    step.sequence()
    assert step.sequence.graphs == 1
    assert step.values() == expected(6)


def test_only_functions_of_the_host(device: CudaDevice) -> None:
    seen = []
    sequence = device.sequencer([Enqueued("a", lambda: seen.append("a")), Enqueued("b", lambda: seen.append("b"))])
    for _ in range(3):
        sequence()
    assert seen == ["a", "b"] * 3
    assert sequence.graphs == 0
