"""The cuda device on a real GPU: buffers, coherence, sequences, graphs, profile, interchange with CuPy, errors."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fluxloom.core.dtypes import SCALARS
from fluxloom.core.errors import CompileError, DatError, DeviceUnavailable, OutOfMemory, PlanError
from fluxloom.device.base import Call, Launch, Where
from fluxloom.device.cuda.device import CudaDevice

pytestmark = pytest.mark.cuda

ROOT = Path(__file__).resolve().parents[3]
BIG = 8 << 20

TEXT = r"""
typedef long long int64_t;
#define FL_ITEM ((int64_t)blockIdx.x * blockDim.x + threadIdx.x)

extern "C" __global__ void __launch_bounds__(256) fl_add(double *a, int64_t n, double v, int64_t begin)
{
    const int64_t i = FL_ITEM;
    if (i >= begin && i < n) a[i] += v;
}

extern "C" __global__ void __launch_bounds__(256) fl_twice(double *a, int64_t n, double v)
{
    const int64_t i = FL_ITEM;
    if (i < n) a[i] *= 2.0;
}

extern "C" __global__ void __launch_bounds__(256) fl_late(double *a, int64_t n, double v)
{
    const int64_t end = clock64() + 30000000; /* some 20 ms */
    while (clock64() < end) { }
    const int64_t i = FL_ITEM;
    if (i < n) a[i] = v;
}

extern "C" __global__ void fl_fma(double *a, int64_t n, double v) { a[0] = a[1] * a[2] + a[3]; }

extern "C" __global__ void fl_tiny(float *a, int64_t n, double v) { a[0] = a[1] * 0.5f; }

extern "C" __global__ void __launch_bounds__(128) fl_small(double *a, int64_t n, double v)
{
    __shared__ double s[128];
    s[threadIdx.x] = a[threadIdx.x];
    __syncthreads();
    a[threadIdx.x] = s[127 - threadIdx.x];
}
"""
SYMBOLS = ["fl_add", "fl_twice", "fl_late", "fl_fma", "fl_tiny", "fl_small"]


@pytest.fixture(scope="module")
def device() -> CudaDevice:
    return CudaDevice()


@pytest.fixture(scope="module")
def program(device: CudaDevice):
    return device.compile(TEXT, SYMBOLS, "gpu_tests")


@pytest.fixture
def make(program) -> Callable[..., Call]:
    """Return what makes the call of kernels on a buffer of doubles."""

    def call(buffer, value: float, *launches: Launch, name: str = "loop") -> Call:
        words = np.array([buffer.device(write=True), buffer.nbytes // 8, 0], dtype=np.int64)
        words[2:].view(np.float64)[0] = value
        return Call(name, program, words, launches, [buffer])

    return call


def add(count: int, begin: int = 0) -> Launch:
    """Return the launch that adds a number to elements."""
    return Launch("fl_add", count, 256, (begin,))


def values(buffer) -> np.ndarray:
    """Return the doubles of a buffer, fetched."""
    buffer.where = Where.DEVICE
    return buffer.host().view(np.float64).copy()


# ------------------------------------------------------------------------------------------- buffers


def test_description(device: CudaDevice) -> None:
    text = device.describe()
    assert "compute capability" in text
    assert "CuPy" in text
    free, total = device.memory()
    assert 0 < free <= total
    assert (device.name, device.native, device.dialect, device.shared) == ("cuda", True, "cuda", False)


@pytest.mark.parametrize("nbytes", [0, 8, 1000, BIG])
def test_new_buffer_is_zero(device: CudaDevice, nbytes: int) -> None:
    buffer = device.allocate(nbytes)
    assert not buffer.host().any()
    other = device.allocate(nbytes)
    other.device(write=True)
    assert not other.host().any()
    assert other.host().nbytes == nbytes


@pytest.mark.parametrize("nbytes", [64, 65536, 65544, BIG])
def test_host_copy_may_change_at_once(device: CudaDevice, make, nbytes: int) -> None:
    """What is sent is what was there when it was sent, also behind a kernel that still runs."""
    buffer = device.allocate(nbytes)
    busy = device.allocate(64)
    device.sequencer([make(busy, 1.0, Launch("fl_late", 8, 256))])()
    buffer.host(write=True)[:] = 3
    buffer.device()
    buffer.host(write=True)[:] = 4
    buffer.where = Where.DEVICE
    assert (buffer.host() == 3).all()


def test_many_small_uploads(device: CudaDevice) -> None:
    buffer = device.allocate(1024)
    for k in range(1000):
        buffer.host(write=True)[:] = k % 200
        buffer.device()
    buffer.where = Where.DEVICE
    assert (buffer.host() == 999 % 200).all()


def test_reading_waits(device: CudaDevice, make) -> None:
    buffer = device.allocate(BIG)
    device.sequencer([make(buffer, 7.0, Launch("fl_late", BIG // 8, 256))])()
    assert (buffer.host().view(np.float64) == 7.0).all()
    assert buffer.where is Where.BOTH


def test_memory_is_used_again_in_order(device: CudaDevice, make) -> None:
    """A buffer that is dropped while a kernel writes to it comes back zeroed, after that kernel."""
    buffer = device.allocate(BIG)
    device.sequencer([make(buffer, 7.0, Launch("fl_late", BIG // 8, 256))])()
    del buffer
    gc.collect()
    again = device.allocate(BIG)
    again.device(write=True)
    assert not again.host().any()


def test_exported(device: CudaDevice) -> None:
    buffer = device.allocate(800)
    assert not buffer.exported
    view = buffer.host()[8:]
    part = view.view(np.float64)
    del view
    assert buffer.exported
    del part
    assert not buffer.exported
    array = buffer.array()
    tail = array.view(np.float64)[5:]
    del array
    assert buffer.exported
    del tail
    assert not buffer.exported


def test_resident_table(device: CudaDevice) -> None:
    for table in (np.arange(12, dtype=np.int32), np.arange(100000.0), np.zeros(0), np.arange(6.0).reshape(2, 3).T):
        address, kept = device.resident(table)
        back = np.empty(table.nbytes, dtype=np.uint8)
        device.fetch(back, address)
        assert np.array_equal(back.view(table.dtype), table.ravel())
        del kept


def test_out_of_memory(device: CudaDevice) -> None:
    device.cupy.get_default_memory_pool().free_all_blocks()
    free, total = device.memory()
    with pytest.raises(OutOfMemory, match=r"GPU 0: .* asked for, .* free; this process holds") as caught:
        device.allocate(2 * total)
    assert caught.value.asked == 2 * total
    assert caught.value.total == total
    assert 0 < caught.value.free <= total
    kept = [device.allocate(free // 5)]
    with pytest.raises(OutOfMemory):
        kept += [device.allocate(free // 5) for _ in range(6)]
    del kept, caught  # the error knows its frames, and they what was allocated
    gc.collect()
    assert device.allocate(free // 2).nbytes == free // 2  # the pool gives back what it holds in other sizes
    gc.collect()
    device.cupy.get_default_memory_pool().free_all_blocks()


# ------------------------------------------------------------------------------------------ programs


def test_program(device: CudaDevice, program) -> None:
    needs = program.resources("fl_small")
    assert needs.registers > 0
    assert needs.shared == 1024
    assert program.most_threads("fl_small") == 128
    assert not device.compile(TEXT, SYMBOLS, "gpu_tests").compiled
    assert list(Path(os.environ["FLUXLOOM_CACHE"]).glob("gpu_tests-*.cubin"))


def test_contraction(device: CudaDevice) -> None:
    a = np.array([0.0, 1.0 + 2.0**-30, 1.0 - 2.0**-30, -1.0])
    for contract, expected in ((True, -(2.0**-60)), (False, 0.0)):
        program = device.compile(TEXT, ["fl_fma"], "contract", contract=contract)
        buffer = device.allocate(32)
        buffer.host(write=True).view(np.float64)[:] = a
        words = np.array([buffer.device(write=True), 4, 0], dtype=np.int64)
        device.sequencer([Call("fma", program, words, (Launch("fl_fma"),))])()
        assert values(buffer)[0] == expected


def test_subnormal_numbers_are_kept(device: CudaDevice, make) -> None:
    buffer = device.allocate(8)
    buffer.host(write=True).view(np.float32)[1] = np.float32(1.2e-38)
    device.sequencer([make(buffer, 0.0, Launch("fl_tiny"))])()
    assert buffer.host().view(np.float32)[0] == np.float32(1.2e-38) * np.float32(0.5) > 0


def test_refused_text(device: CudaDevice) -> None:
    with pytest.raises(CompileError, match=r"NVRTC .* cannot compile 'bad', in kernel fl_late") as caught:
        device.compile(TEXT.replace("a[i] = v", "a[i] = w"), SYMBOLS, "bad")
    message = str(caught.value)
    assert Path(caught.value.source_path).is_file()
    assert 'identifier "w" is undefined' in message
    assert "if (i < n) a[i] = w;" in message
    with pytest.raises(CompileError, match="fl_absent is no kernel"):
        device.compile(TEXT, ["fl_absent"], "absent")


def test_float16(device: CudaDevice) -> None:
    text = '#include <cuda_fp16.h>\nextern "C" __global__ void fl_half(__half *a) { a[1] = __hadd(a[0], a[0]); }\n'
    try:
        program = device.compile(text, ["fl_half"], "half")
    except CompileError as error:
        if "float16 needs cuda_fp16.h" in str(error):
            pytest.skip("no headers of the CUDA toolkit")
        raise
    buffer = device.allocate(4)
    buffer.host(write=True).view(np.float16)[0] = 1.5
    words = np.array([buffer.device(write=True)], dtype=np.int64)
    device.sequencer([Call("half", program, words, (Launch("fl_half"),))])()
    assert buffer.host().view(np.float16).tolist() == [1.5, 3.0]


# ----------------------------------------------------------------------------------------- sequences


def test_graph(device: CudaDevice, make) -> None:
    count = 1000
    buffer = device.allocate(8 * count)
    calls = [
        make(buffer, 1.0, add(count)),
        make(buffer, 0.0, Launch("fl_twice", count, 128), Launch("fl_twice", count, 128), name="double"),
        make(buffer, 3.0, add(0), add(count, 500), name="tail"),
    ]
    sequence = device.sequencer(calls)
    expected = np.zeros(count)
    for run in range(20):
        sequence()
        expected = 4.0 * (expected + 1.0)
        expected[500:] += 3.0
        assert sequence.graphs == (run > 0)
        assert np.array_equal(values(buffer), expected), run
    assert sequence.counts.tolist() == [20] * 3
    for _ in range(1000):
        sequence()
    device.synchronize()
    assert sequence.counts.tolist() == [1020] * 3


def test_refresh(device: CudaDevice, make) -> None:
    buffer, other = device.allocate(80), device.allocate(80)
    call = make(buffer, 1.0, add(10), add(10, 5))
    sequence = device.sequencer([call])
    for _ in range(3):
        sequence()
    call.words[0] = other.device(write=True)
    call.words[2:].view(np.float64)[0] = 100.0
    sequence()
    assert values(buffer).tolist() == [4.0] * 5 + [8.0] * 5
    sequence.refresh()
    for _ in range(3):
        sequence()
    assert values(other).tolist() == [300.0] * 5 + [600.0] * 5
    assert values(buffer).tolist() == [4.0] * 5 + [8.0] * 5


def test_single_launch(device: CudaDevice, make) -> None:
    buffer = device.allocate(80)
    call = make(buffer, 1.0, add(10))
    sequence = device.sequencer([call])
    for value in (1.0, 2.0, 3.0):
        call.words[2:].view(np.float64)[0] = value
        sequence()
    assert sequence.graphs == 0
    assert values(buffer).tolist() == [6.0] * 10


def test_nothing_to_do(device: CudaDevice, make) -> None:
    buffer = device.allocate(80)
    for calls in ([], [make(buffer, 1.0, add(0))]):
        sequence = device.sequencer(calls)
        for _ in range(3):
            sequence()
        sequence.settle()
    assert not values(buffer).any()


def test_long_sequence(device: CudaDevice, make) -> None:
    buffer = device.allocate(80)
    sequence = device.sequencer([make(buffer, 1.0, add(10)) for _ in range(500)])
    for _ in range(10):
        sequence()
    assert values(buffer).tolist() == [5000.0] * 10


def test_profile(device: CudaDevice, make) -> None:
    buffer = device.allocate(80)
    sequence = device.sequencer(
        [make(buffer, 1.0, add(10), name="short"), make(buffer, 2.0, Launch("fl_late", 10, 32), name="long")]
    )
    sequence()
    sequence()
    sequence.settle()
    assert not sequence.seconds.any()
    device.profile = True
    try:
        for _ in range(3):
            sequence()
        sequence.settle()
        short, long = sequence.seconds
        assert 0.0 < short < 0.005
        assert 0.02 < long < 1.0
        sequence.reset()
        assert not sequence.seconds.any()
        many = device.sequencer([make(buffer, 1.0, add(10))] * 99)
        for _ in range(100):
            many()
            assert 100 * len(many._pending) <= 4200
        many.settle()
        assert (many.seconds > 0.0).all()
    finally:
        device.profile = False
    assert values(buffer).tolist() == [2.0 + 9900.0] * 10


@pytest.mark.parametrize("kind", sorted(SCALARS))
def test_reset(device: CudaDevice, make, kind: str) -> None:
    scalar = SCALARS[kind]
    buffer = device.allocate(1024)
    words = np.array([buffer.device(write=True), 100, scalar.size, 0], dtype=np.int64)
    words[3:].view(np.uint8)[: scalar.size] = np.array([7], dtype=scalar.numpy).view(np.uint8)
    sequence = device.sequencer([device.reset_call(words)])
    sequence()
    assert buffer.host()[: 100 * scalar.size].view(scalar.numpy).tolist() == [7] * 100
    assert not buffer.host()[100 * scalar.size :].any()


def test_other_threads(device: CudaDevice, make) -> None:
    """A thread that never touched the GPU may run sequences, graphs and copies."""
    buffer = device.allocate(80)
    sequence = device.sequencer([make(buffer, 1.0, add(10)), make(buffer, 1.0, add(10))])
    found: list[Any] = []

    def work() -> None:
        for _ in range(4):
            sequence()
        found.append(values(buffer).tolist())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [[8.0] * 10]


def test_elapsed(device: CudaDevice, make) -> None:
    buffer = device.allocate(80)
    sequence = device.sequencer([make(buffer, 2.0, Launch("fl_late", 10, 32))])
    sequence()
    one = device.elapsed(sequence)
    assert 0.005 < one < 1.0
    assert device.elapsed(lambda: None) < 0.005


def test_bandwidth(device: CudaDevice) -> None:
    meter = device.meter()
    found = meter.measure(3)
    assert found.threads == 0
    assert found.bytes == meter.bytes > 1 << 20
    assert 20.0 < found.copy_plain_gbs <= found.copy_gbs < 20000.0
    assert 0.5 < found.triad_gbs / found.copy_gbs < 1.5
    del meter
    device.cupy.get_default_memory_pool().free_all_blocks()


# ----------------------------------------------------------------------------------- arrays of CuPy


def test_array_is_the_memory(device: CudaDevice, make) -> None:
    cupy = device.cupy
    buffer = device.allocate(80)
    buffer.host(write=True).view(np.float64)[:] = 2.0
    array = buffer.array().view(np.float64)
    assert isinstance(array, cupy.ndarray)
    assert array.data.ptr == buffer.address
    assert float(array.sum()) == 20.0
    array *= 4.0
    device.synchronize()
    assert (buffer.host().view(np.float64) == 8.0).all()
    with device.stream:
        inside = buffer.array().view(np.float64)
        inside += 1.0
        device.sequencer([make(buffer, 5.0, add(10))])()
        inside *= 2.0
    assert values(buffer).tolist() == [28.0] * 10
    del buffer, inside
    gc.collect()
    assert array.get().tolist() == [28.0] * 10


def test_array_waits_for_loops(device: CudaDevice, make) -> None:
    buffer = device.allocate(80)
    device.sequencer([make(buffer, 7.0, Launch("fl_late", 10, 256))])()
    assert buffer.array().view(np.float64).get().tolist() == [7.0] * 10


class Foreign:
    """An array of another package."""

    def __init__(self, array: Any) -> None:
        self.__cuda_array_interface__ = array.__cuda_array_interface__


def test_wrap(device: CudaDevice, make) -> None:
    cupy = device.cupy
    theirs = cupy.full(10, 2.0)
    buffer = device.wrap(theirs)
    assert buffer.foreign
    assert buffer.exported
    assert buffer.address == theirs.data.ptr
    assert buffer.where is Where.DEVICE
    assert buffer.host().view(np.float64).tolist() == [2.0] * 10
    sequence = device.sequencer([make(buffer, 5.0, add(10))])
    sequence()
    device.synchronize()
    assert theirs.get().tolist() == [7.0] * 10
    buffer.host(write=True).view(np.float64)[:] = 1.0
    buffer.device()
    device.synchronize()
    assert theirs.get().tolist() == [1.0] * 10
    assert device.wrap(Foreign(theirs)).address == buffer.address
    del theirs
    gc.collect()
    cupy.full(10, 9.0)  # would get the memory if it had been given back
    assert buffer.array().view(np.float64).get().tolist() == [1.0] * 10


def test_wrap_waits_for_cupy(device: CudaDevice, make) -> None:
    cupy = device.cupy
    late = cupy.RawKernel(
        'extern "C" __global__ void late(double *a) { long long e = clock64() + 30000000; while (clock64() < e) {} '
        "a[threadIdx.x] = 3.0; }",
        "late",
    )
    theirs = cupy.zeros(10)
    late((1,), (10,), (theirs,))
    buffer = device.wrap(theirs)
    device.sequencer([make(buffer, 1.0, add(10))])()
    assert values(buffer).tolist() == [4.0] * 10


def test_wrap_refuses(device: CudaDevice) -> None:
    cupy = device.cupy
    with pytest.raises(DatError, match="no array in the memory of a GPU"):
        device.wrap(np.zeros(3))
    with pytest.raises(DatError, match="not contiguous"):
        device.wrap(cupy.zeros((4, 4))[:, 1])
    device.wrap(cupy.zeros((4, 4)).T)
    if cupy.cuda.runtime.getDeviceCount() > 1:
        with cupy.cuda.Device(1):
            far = cupy.zeros(4)
        with pytest.raises(DatError, match="on GPU 1"):
            device.wrap(far)


def test_second_gpu(device: CudaDevice) -> None:
    cupy = device.cupy
    if cupy.cuda.runtime.getDeviceCount() < 2:
        pytest.skip("one GPU only")
    other = CudaDevice(1)
    program = other.compile(TEXT, SYMBOLS, "gpu_tests")
    buffer = other.allocate(80)
    words = np.array([buffer.device(write=True), 10, 0], dtype=np.int64)
    words[2:].view(np.float64)[0] = 1.0
    sequence = other.sequencer([Call("far", program, words, (add(10), add(10)))])
    for _ in range(3):
        sequence()
        assert cupy.cuda.runtime.getDevice() == 0
    assert values(buffer).tolist() == [6.0] * 10


# -------------------------------------------------------------------------------------------- errors


def test_wrong_number() -> None:
    with pytest.raises(DeviceUnavailable, match="there is no GPU 99: this process sees 0 "):
        CudaDevice(99)


def test_groups_that_do_not_fit(device: CudaDevice, make) -> None:
    buffer = device.allocate(8000)
    with pytest.raises(PlanError, match=r"fl_small cannot run with 512 work items a group: at most 128 fit"):
        device.sequencer([make(buffer, 1.0, Launch("fl_small", 512, 512))])
    with pytest.raises(PlanError, match=r"use Schedule\(block=256\)"):
        device.sequencer([make(buffer, 1.0, Launch("fl_add", 4096, 4096, (0,)))])


LOST = """
import numpy as np
from fluxloom.core.errors import SolverError
from fluxloom.device.base import Call, Launch
from fluxloom.device.cuda.device import CudaDevice
device = CudaDevice()
text = 'extern "C" __global__ void fl_bad(double *a, long long n) { a[n] = 1.0; }'
program = device.compile(text, ["fl_bad"], "bad")
buffer = device.allocate(64)
words = np.array([buffer.device(write=True), 0], dtype=np.int64)
launches = (Launch("fl_bad"),) * 2
sequence = device.sequencer([Call("first_loop", program, words, launches), Call("bad_loop", program, words, launches)])
sequence()
sequence()
device.synchronize()
words[1] = 1 << 40
sequence.refresh()
for run in (sequence, sequence, device.synchronize, buffer.host):
    try:
        run()
    except SolverError as error:
        print("caught", error)
"""

HIDDEN = """
from fluxloom.core.errors import DeviceUnavailable
from fluxloom.device.cuda.device import CudaDevice
try:
    CudaDevice()
except DeviceUnavailable as error:
    print("caught", error)
"""


def run_alone(script: str, **environment: str) -> str:
    """Run a script in a process of its own and return what it says."""
    found = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, env=os.environ | environment, capture_output=True, text=True,
        timeout=300,
    )  # fmt: skip
    return found.stdout + found.stderr


def test_lost_gpu() -> None:
    """A loop that writes beyond its memory: the error names the chain and says that the results are lost."""
    said = run_alone(LOST)
    lines = [line for line in said.splitlines() if line.startswith("caught")]
    assert lines, said
    assert "ILLEGAL" in lines[0].upper(), said
    assert "first_loop, bad_loop" in lines[0]
    assert "results on the device are lost" in lines[0]
    assert "CUDA_LAUNCH_BLOCKING=1" in lines[0]


def test_no_gpu() -> None:
    said = run_alone(HIDDEN, CUDA_VISIBLE_DEVICES="")
    assert "caught the NVIDIA driver sees no GPU (CUDA_VISIBLE_DEVICES is ''): see what nvidia-smi lists" in said
