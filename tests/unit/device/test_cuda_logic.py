"""The logic of the cuda device, on a stand-in for CuPy: what is asked of the driver, when, and in which order."""

from __future__ import annotations

import ctypes
import os
import sys
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from fluxloom.core.dtypes import SCALARS
from fluxloom.core.errors import CompileError, DatError, OutOfMemory, PlanError, SolverError
from fluxloom.device.bandwidth import Bandwidth
from fluxloom.device.base import Call, Launch, Where
from fluxloom.device.cuda.bandwidth import array_bytes
from fluxloom.device.cuda.device import CudaDevice
from fluxloom.device.cuda.program import failing_kernel
from fluxloom.device.cuda.transfer_queue import settle_main
from tests.unit.device.cuda_fake import CUDADriverError, FakeCupy

ILLEGAL = CUDADriverError("CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access was encountered")


def doubles(address: int, count: int) -> np.ndarray:
    """Return memory that a kernel got the address of."""
    return np.ctypeslib.as_array((ctypes.c_double * count).from_address(address))


def add(_threads: int, target: int, count: int, bits: int, begin: int) -> None:
    """Add a number to the elements from ``begin`` on."""
    doubles(target, count)[begin:] += np.int64(bits).view(np.float64)


def twice(_threads: int, target: int, count: int, bits: int) -> None:
    """Double the elements."""
    doubles(target, count)[:] *= 2.0


def reset(threads: int, target: int, count: int, size: int, bits: int) -> None:
    """Do what runtime.cu does."""
    assert threads >= count
    for k in range(count):
        ctypes.memmove(target + k * size, np.int64(bits).tobytes(), size)


def nothing(_threads: int, _a: int, _c: int, _n: int) -> None:
    """Take time only."""


def three(_threads: int, _a: int, _b: int, _c: int, _n: int) -> None:
    """Take time only."""


KERNELS = {
    "fl_add": add, "fl_twice": twice, "fl_reset": reset, "fl_copy_plain": nothing, "fl_copy_wide": nothing,
    "fl_triad": three, "fl_fill": lambda _threads, _a, _n: None,
}  # fmt: skip


@pytest.fixture
def cupy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> FakeCupy:
    fake = FakeCupy(dict(KERNELS))
    monkeypatch.setitem(sys.modules, "cupy", fake)
    monkeypatch.setenv("FLUXLOOM_CACHE", str(tmp_path / "cache"))
    return fake


@pytest.fixture
def device(cupy: FakeCupy) -> CudaDevice:
    return CudaDevice()


def make_call(device: CudaDevice, buffer, value: float, *launches: Launch, name: str = "add") -> Call:
    program = device.compile("fl_add fl_twice", ["fl_add", "fl_twice"], name)
    words = np.array([buffer.device(write=True), buffer.nbytes // 8, 0], dtype=np.int64)
    words[2:].view(np.float64)[0] = value
    return Call(name, program, words, launches or (Launch("fl_add", 100, 32, (0,)),))


# ------------------------------------------------------------------------------------------- buffers


def test_new_buffer_is_zero_on_both_sides(device: CudaDevice) -> None:
    buffer = device.allocate(1000)
    assert (buffer.nbytes, buffer.where) == (1000, Where.DEVICE)
    assert not buffer.host().any()
    assert buffer.where is Where.BOTH
    other = device.allocate(1000)
    other.device(write=True)  # a kernel writes, so that the memory has to be fetched
    assert not other.host().any()
    assert device.allocate(0).host().size == 0


@pytest.mark.parametrize("nbytes", [80, 65536, 65537, 1 << 20])
def test_host_copy_may_change_while_it_travels(device: CudaDevice, nbytes: int) -> None:
    buffer = device.allocate(nbytes)
    buffer.host(write=True)[:] = 3
    buffer.device()
    buffer.host(write=True)[:] = 4  # the first copy may be under way still
    buffer.where = Where.DEVICE
    assert (buffer.host() == 3).all()


def test_many_small_uploads_keep_little(device: CudaDevice, cupy: FakeCupy) -> None:
    buffer = device.allocate(64)
    for k in range(1000):
        buffer.host(write=True)[:] = k % 200
        buffer.device()
    assert len(device._staged) <= 64
    assert 5 < cupy.waits < 50
    buffer.where = Where.DEVICE
    assert (buffer.host() == 999 % 200).all()
    assert not device._staged


def test_exported(device: CudaDevice) -> None:
    buffer = device.allocate(800)
    assert not buffer.exported
    view = buffer.host()[8:]
    assert buffer.exported
    part = view.view(np.int8)
    del view
    assert buffer.exported
    del part
    assert not buffer.exported
    buffer.host(write=True)
    buffer.device()
    assert not buffer.exported
    array, again = buffer.array(), buffer.array()
    del array
    assert buffer.exported
    del again
    assert not buffer.exported


def test_array_shares_memory_and_outlives_its_buffer(device: CudaDevice, cupy: FakeCupy) -> None:
    buffer = device.allocate(80)
    buffer.host(write=True)[:] = 1
    read = buffer.array(write=False)
    assert buffer.where is Where.BOTH
    array = buffer.array()
    assert buffer.where is Where.DEVICE
    assert array.data.ptr == read.data.ptr == buffer.address
    assert cupy.orders == [(device.stream.ptr, 0)] * 2  # CuPy's stream waits for ours
    array.values[:] = 9
    device.stream.asked.clear()
    assert (buffer.host() == 9).all()
    gone, used = weakref.ref(buffer), cupy.used
    del buffer, read
    assert gone() is None
    assert cupy.used == used
    del array
    assert cupy.used < used


def test_synchronize_waits_for_all_streams_after_an_exchange(device: CudaDevice, cupy: FakeCupy) -> None:
    device.synchronize()
    assert cupy.everything == 0
    with device.stream:
        device.allocate(8).array()
    assert not cupy.orders  # both are one stream
    device.synchronize()
    assert cupy.everything == 1


def test_waits_of_ranks_are_watched(device: CudaDevice, cupy: FakeCupy) -> None:
    """Every wait of the host is asked for; it goes on where the GPU is done, or has failed, and not before."""
    asked: list[int] = []

    def waits(done: Callable[[], bool]) -> None:
        turn = 0
        while not done():
            turn += 1
            if turn == 3:
                device.stream.synchronize()
        asked.append(turn)

    large = np.zeros(1 << 17, np.uint8)
    buffer = device.allocate(large.nbytes)
    device.synchronize()
    device.waits = waits
    for what in (
        lambda: device.fetch(large, buffer.address),
        lambda: device.send(buffer.address, large),
        lambda: (device.send(buffer.address, large[:80]), device.synchronize()),
        lambda: (device.send(buffer.address, large[:80]), settle_main(device)),
        lambda: device.elapsed(lambda: device.send(buffer.address, large[:80])),
    ):
        asked.clear()
        what()
        assert asked == [3]
    cupy.cuda.runtime.streamQuery = lambda ptr: 700
    device.synchronize()
    assert asked[-1] == 0


def test_wrap(device: CudaDevice, cupy: FakeCupy) -> None:
    theirs = cupy.ndarray((10,), np.float64, cupy.cuda.MemoryPointer(device.allocate(80)._memory.mem))
    buffer = device.wrap(theirs)
    assert cupy.orders == [(0, device.stream.ptr)]  # our stream waits for CuPy's
    assert (buffer.address, buffer.nbytes, buffer.where) == (theirs.data.ptr, 80, Where.DEVICE)
    assert buffer.foreign
    assert buffer.exported
    device.synchronize()
    theirs.values[:] = 2.5
    assert (buffer.host().view(np.float64) == 2.5).all()
    buffer.host(write=True).view(np.float64)[:] = 3.5
    buffer.device()
    device.synchronize()
    assert (theirs.values == 3.5).all()
    kept = weakref.ref(theirs)
    del theirs
    assert kept() is not None
    other = device.wrap(SimpleNamespace(__cuda_array_interface__={}, array=kept()))
    assert other.address == buffer.address


def test_wrap_refuses(device: CudaDevice, cupy: FakeCupy) -> None:
    with pytest.raises(DatError, match="ndarray is no array in the memory of a GPU"):
        device.wrap(np.zeros(3))
    array = device.allocate(80).array()
    with pytest.raises(DatError, match="not contiguous"):
        device.wrap(array[::2])
    array.number = 1
    with pytest.raises(DatError, match="on GPU 1, not on GPU 0"):
        device.wrap(array)


def test_without_pinned_memory(device: CudaDevice, cupy: FakeCupy) -> None:
    cupy.no_pinned = True
    buffer = device.allocate(1 << 17)
    buffer.host(write=True)[:] = 5
    buffer.device(write=True)
    assert (buffer.host() == 5).all()


def test_out_of_memory(device: CudaDevice, cupy: FakeCupy) -> None:
    kept = device.allocate(256 << 20)
    with pytest.raises(OutOfMemory, match=r"GPU 0: 1\.00 GiB asked for, .* of 1\.00 GiB free; .* holds") as caught:
        device.allocate(1 << 30)
    error = caught.value
    assert (error.asked, error.total, error.held) == (1 << 30, 1 << 30, 256 << 20)
    assert error.free == error.total - error.held
    assert cupy.freed == 1
    del kept
    device.allocate(512 << 20)
    free, total = device.memory()
    assert free == (1 << 30) + (1 << 20)
    assert total == 1 << 30


def test_resident_table(device: CudaDevice) -> None:
    for table in (np.arange(12, dtype=np.int32).reshape(3, 4).T, np.arange(100000.0), np.zeros(0)):
        address, kept = device.resident(table)
        back = np.empty(table.nbytes, dtype=np.uint8)
        device.fetch(back, address)
        assert np.array_equal(back.view(table.dtype), table.ravel())
        assert address
        del kept


# ----------------------------------------------------------------------------------------- sequences


def test_first_run_launches_then_a_graph_runs(device: CudaDevice, cupy: FakeCupy) -> None:
    buffer = device.allocate(80)
    calls = [
        make_call(device, buffer, 1.0),
        make_call(device, buffer, 0.0, Launch("fl_twice", 10, 32), Launch("fl_twice", 10, 32), name="double"),
    ]
    sequence = device.sequencer(calls)
    values = buffer.host().view(np.float64)
    expected = 0.0
    for run in range(5):
        sequence()
        expected = 4.0 * (expected + 1.0)
        buffer.where = Where.DEVICE
        assert (buffer.host().view(np.float64) == expected).all(), run
        assert cupy.launches == (3 if run == 0 else 6)
    assert len(cupy.graphs) == 1
    assert cupy.graphs[0].launched == 4
    assert sequence.counts.tolist() == [5, 5]
    assert sequence.name == "add, double"
    del values


def test_refresh_takes_new_arguments(device: CudaDevice, cupy: FakeCupy) -> None:
    buffer = device.allocate(80)
    call = make_call(device, buffer, 1.0, Launch("fl_add", 10, 32, (0,)), Launch("fl_add", 10, 32, (5,)))
    sequence = device.sequencer([call])
    for _ in range(3):
        sequence()
    call.words[2:].view(np.float64)[0] = 100.0
    sequence()  # the graph keeps what it was made with
    sequence.refresh()
    sequence()
    values = buffer.host().view(np.float64)
    assert values.tolist() == [104.0] * 5 + [208.0] * 5
    assert len(cupy.graphs) == 1
    sequence()
    assert len(cupy.graphs) == 2


def test_single_launch_needs_no_graph(device: CudaDevice, cupy: FakeCupy) -> None:
    buffer = device.allocate(80)
    call = make_call(device, buffer, 1.0, Launch("fl_add", 0, 32, (0,)), Launch("fl_add", 10, 32, (0,)))
    sequence = device.sequencer([call])
    for value in (1.0, 2.0, 3.0):
        call.words[2:].view(np.float64)[0] = value  # seen at once
        sequence()
    assert (buffer.host().view(np.float64) == 6.0).all()
    assert cupy.launches == 3
    assert not cupy.graphs


def test_empty_sequences(device: CudaDevice, cupy: FakeCupy) -> None:
    buffer = device.allocate(80)
    for calls in ([], [make_call(device, buffer, 1.0, Launch("fl_add", 0, 32, (0,)))]):
        sequence = device.sequencer(calls)
        for _ in range(3):
            sequence()
        sequence.settle()
    assert sequence.counts.tolist() == [3]
    assert not cupy.launches


def test_without_graphs(device: CudaDevice, cupy: FakeCupy, caplog: pytest.LogCaptureFixture) -> None:
    cupy.no_graphs = True
    buffer = device.allocate(80)
    sequence = device.sequencer([make_call(device, buffer, 1.0), make_call(device, buffer, 2.0)])
    for _ in range(4):
        sequence()
    assert (buffer.host().view(np.float64) == 12.0).all()
    assert [record.message for record in caplog.records] == [
        "GPU 0: no CUDA graph of add: cudaErrorStreamCaptureUnsupported: not here"
    ]


def test_profile(device: CudaDevice, cupy: FakeCupy) -> None:
    buffer = device.allocate(80)
    sequence = device.sequencer(
        [
            make_call(device, buffer, 1.0),
            make_call(device, buffer, 0.0, Launch("fl_twice", 9, 9), Launch("fl_twice", 9, 9), name="b"),
        ]
    )
    sequence()
    device.profile = True
    for _ in range(10):
        sequence()
    assert cupy.ranges == ["add", "pop", "b", "pop"] * 10
    assert not sequence.seconds.any()
    sequence.settle()
    assert sequence.seconds == pytest.approx([0.02, 0.04])
    events = len(device.events)
    sequence()
    sequence.settle()
    assert len(device.events) == events  # used again
    assert sequence.counts.tolist() == [12, 12]
    sequence()
    sequence.reset()
    assert not sequence.seconds.any()
    assert not sequence.counts.any()
    device.profile = False
    sequence()
    sequence()
    assert len(cupy.graphs) == 1
    sequence.settle()
    assert not sequence.seconds.any()


def test_profile_settles_by_itself(device: CudaDevice) -> None:
    buffer = device.allocate(80)
    sequence = device.sequencer([make_call(device, buffer, 1.0)] * 9)
    device.profile = True
    for _ in range(1000):
        sequence()
        assert len(sequence._pending) <= 411
    sequence.settle()
    assert sequence.seconds == pytest.approx([2.0] * 9)


@pytest.mark.parametrize("kind", sorted(SCALARS))
def test_reset(device: CudaDevice, cupy: FakeCupy, kind: str) -> None:
    scalar = SCALARS[kind]
    buffer = device.allocate(64)
    value = np.array([3], dtype=scalar.numpy)
    words = np.array([buffer.device(write=True), 5, scalar.size, 0], dtype=np.int64)
    words[3:].view(np.uint8)[: scalar.size] = value.view(np.uint8)
    compiled = cupy.compilations
    sequence = device.sequencer([device.reset_call(words), device.reset_call(words)])
    sequence()
    assert cupy.compilations <= compiled + 1
    assert buffer.host()[: 5 * scalar.size].view(scalar.numpy).tolist() == [3] * 5
    assert not buffer.host()[5 * scalar.size :].any()


def test_other_gpu_stays_current(cupy: FakeCupy) -> None:
    device = CudaDevice(1)
    buffer = device.allocate(80)
    sequence = device.sequencer([make_call(device, buffer, 1.0)])
    sequence()
    buffer.host()
    device.synchronize()
    assert cupy.current == 0
    device.events.clear()
    device.enter()
    assert cupy.current == 1


def test_other_threads(device: CudaDevice) -> None:
    buffer = device.allocate(80)
    sequence = device.sequencer([make_call(device, buffer, 1.0)])
    thread = threading.Thread(target=sequence)
    thread.start()
    thread.join()
    assert (buffer.host().view(np.float64) == 1.0).all()


def test_elapsed_and_meter(device: CudaDevice) -> None:
    buffer = device.allocate(80)
    sequence = device.sequencer([make_call(device, buffer, 1.0)])

    def both() -> None:
        sequence()
        sequence()

    assert device.elapsed(both) == pytest.approx(0.004)
    found = device.meter(1 << 20).measure(2)
    assert isinstance(found, Bandwidth)
    assert (found.bytes, found.threads) == (1 << 20, 0)
    assert found.copy_plain_gbs == pytest.approx(2e-9 * 2**20 / 0.002)
    assert found.triad_gbs == pytest.approx(3e-9 * 2**20 / 0.002)
    assert found.copy_gbs == pytest.approx(2e-9 * 2**20 / 0.001)
    free = device.memory()[0]
    assert device.meter().bytes == array_bytes(free)
    assert array_bytes(1 << 40) == 1 << 30
    assert array_bytes(0) == 1 << 20


# -------------------------------------------------------------------------------------------- errors


def test_groups_that_do_not_fit(device: CudaDevice, cupy: FakeCupy) -> None:
    cupy.threads, cupy.registers = 320, 200
    buffer = device.allocate(80)
    call = make_call(device, buffer, 1.0, Launch("fl_add", 10, 512, (0,)))
    with pytest.raises(PlanError, match=r"fl_add cannot run with 512 .* at most 320 fit .*200 reg.*\(block=320\)"):
        device.sequencer([call])
    call = make_call(device, buffer, 1.0, Launch("fl_add", 2**40, 32, (0,)))
    with pytest.raises(PlanError, match="34359738368 groups of 32 work items"):
        device.sequencer([call])


def test_refused_launch(device: CudaDevice, cupy: FakeCupy) -> None:
    buffer = device.allocate(80)
    sequence = device.sequencer([make_call(device, buffer, 1.0)])
    cupy.refuse = CUDADriverError("CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES: too many resources requested for launch")
    with pytest.raises(PlanError, match=r"fl_add of add \(40 registers .* 32 work items a group\).*Schedule\(block"):
        sequence()
    assert sequence.counts.tolist() == [0]
    cupy.refuse = None
    sequence()


def test_lost_gpu(device: CudaDevice, cupy: FakeCupy) -> None:
    buffer = device.allocate(80)
    sequence = device.sequencer([make_call(device, buffer, 1.0)] * 2)
    sequence()
    cupy.refuse = ILLEGAL
    with pytest.raises(SolverError, match=r"ILLEGAL_ADDRESS.* while running add, or .* results .* are lost"):
        sequence()

    def broken() -> None:
        raise ILLEGAL

    device.stream.asked = [broken]
    with pytest.raises(SolverError, match=r"while running add.*CUDA_LAUNCH_BLOCKING=1"):
        device.synchronize()
    device.stream.asked = [broken]
    with pytest.raises(SolverError, match="while running add"):
        buffer.host()


def test_errors_of_others_pass(device: CudaDevice) -> None:
    def wrong() -> None:
        raise RuntimeError("mine")

    with pytest.raises(RuntimeError, match="mine"):
        device.elapsed(wrong)


# ------------------------------------------------------------------------------------------ programs


def test_programs_are_kept(device: CudaDevice, cupy: FakeCupy, tmp_path: Path) -> None:
    first = device.compile("fl_add", ["fl_add"], "a chain")
    assert first.compiled
    assert first.seconds > 0.0
    assert cupy.options == (
        "--std=c++17",
        "--gpu-architecture=sm_90",
        "--fmad=true",
        "--device-as-default-execution-space",
    )
    again = device.compile("fl_add", ["fl_add"], "a chain")
    assert not again.compiled
    other = device.compile("fl_add", ["fl_add"], "a chain", contract=False)
    assert other.compiled
    assert "--fmad=false" in cupy.options
    files = sorted((tmp_path / "cache").glob("a_chain-*.cubin"))
    assert len(files) == 2
    assert len(list((tmp_path / "cache").glob("a_chain-*.cu"))) == 2
    files[0].write_bytes(files[0].read_bytes()[:-1])
    files[1].write_bytes(b"")
    assert device.compile("fl_add", ["fl_add"], "a chain").compiled
    assert not first.vectorised
    needs = first.resources("fl_add")
    assert (needs.registers, needs.local, needs.shared) == (40, 16, 256)
    with pytest.raises(CompileError, match="no kernel 'fl_b'"):
        first.function("fl_b")
    with pytest.raises(CompileError, match="fl_gone is no kernel"):
        device.compile("fl_add", ["fl_gone"], "x")


def test_refused_text(device: CudaDevice, cupy: FakeCupy) -> None:
    text = 'extern "C" __global__ void fl_a(int n) {}\nextern "C" __global__ void fl_b(int n) {\n  n = x;\n}\n'
    device.compile(text, ["fl_a", "fl_b"], "pair")
    source = next(Path(os.environ["FLUXLOOM_CACHE"]).glob("pair-*.cu"))
    next(source.parent.glob("pair-*.cubin")).unlink()
    cupy.log = f'{source.name}(3): error: identifier "x" is undefined\n    n = x;\n        ^'
    with pytest.raises(CompileError, match=r"cannot compile 'pair', in kernel fl_b") as caught:
        device.compile(text, ["fl_a", "fl_b"], "pair")
    assert Path(caught.value.source_path).read_text() == text
    assert "n = x;" in str(caught.value)


def test_failing_kernel() -> None:
    text = "__global__ void a(\n int n) {}\n__device__ int h();\n__global__ void __launch_bounds__(128, 2) b(int n)\n"
    for line, name in ((1, ""), (2, "a"), (3, "a"), (4, "b")):
        assert failing_kernel(text, f"x.cu({line}): error: y", "x.cu", ["a", "b"]) == (name or "a")
    assert failing_kernel(text, "x.cu(1): warning: y", "x.cu", ["a"]) == ""
    assert failing_kernel("int x;\n" + text, "x.cu(1): error: y", "x.cu", ["a"]) == ""


def test_float16_headers(device: CudaDevice, cupy: FakeCupy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "toolkit" / "include"
    folder.mkdir(parents=True)
    (folder / "cuda_fp16.h").touch()
    cupy.cuda.get_cuda_path = lambda: str(tmp_path / "toolkit")
    monkeypatch.setattr("fluxloom.device.cuda.program.find_spec", lambda _name: None)
    device.compile("#include <cuda_fp16.h>\nfl_add", ["fl_add"], "half")
    assert cupy.options[-1] == f"--include-path={folder}"
    cupy.log = 'x.cu(1): catastrophic error: could not open source file "cuda_fp16.h"'
    with pytest.raises(CompileError, match=r"float16 needs cuda_fp16\.h: pip install nvidia-cuda-runtime"):
        device.compile("#include <cuda_fp16.h>\nfl_add!", ["fl_add"], "half")


def test_description(device: CudaDevice) -> None:
    assert device.describe() == (
        "Fake 0, 1.00 GiB, compute capability 9.0, driver for CUDA 13.0, CuPy 14.2.0 with CUDA 13.2"
    )
    assert (device.name, device.native, device.dialect, device.shared) == ("cuda", True, "cuda", False)
    assert [s for s in SCALARS if not device.atomic_add(SCALARS[s])] == ["float16", "uint8"]
