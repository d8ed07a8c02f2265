"""The OpenCL device: what it refuses, what it says about errors and about itself."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fluxloom.core.dtypes import FLOAT16, FLOAT32, FLOAT64, INT32, INT64, UINT8
from fluxloom.core.errors import CompileError, DeviceUnavailable, OutOfMemory, SolverError
from fluxloom.device.base import Call, Launch
from fluxloom.device.opencl.device import OpenClDevice

pytestmark = pytest.mark.opencl

N = 1000


@pytest.fixture(scope="module")
def device() -> OpenClDevice:
    return OpenClDevice()


# ---------------------------------------------------------------------------------------------- errors


def compile_error(device: OpenClDevice, text: str, symbols: tuple[str, ...] = ("f",)) -> str:
    with pytest.raises(CompileError) as caught:
        device.compile(text, symbols, "broken loop")
    error = caught.value
    assert "'broken loop'" in str(error)
    assert Path(error.source_path).read_text().endswith(text)
    return str(error)


def test_compile_error(device: OpenClDevice) -> None:
    text = "__kernel void f(__global float *x)\n{\n    x[0] = undeclared_thing;\n}\n"
    said = compile_error(device, text)
    assert "undeclared_thing" in said
    assert "    x[0] = undeclared_thing;" in said
    assert device.platform in said


def test_missing_kernel(device: OpenClDevice) -> None:
    assert "'g'" in compile_error(device, "__kernel void f(__global float *x) { x[0] = 1; }", ("f", "g"))


def test_unknown_function(device: OpenClDevice) -> None:
    assert "nowhere" in compile_error(
        device, "float nowhere(float);\n__kernel void f(__global float *x) { x[0] = nowhere(1); }"
    )


def test_contraction(device: OpenClDevice) -> None:
    """Without contraction every operation is rounded as NumPy rounds it."""
    text = """
    __kernel void f(__global const float *a, __global const float *b, __global const float *c, __global float *r)
    {
        const long i = get_global_id(0);
        r[i] = a[i] * b[i] + c[i];
    }"""
    rng = np.random.default_rng(1)
    a, b = rng.random((2, N), dtype=np.float32)
    c = -a * b * np.float32(1 + 1e-6)
    tables = [device.resident(array) for array in (a, b, c)]
    result = device.allocate(4 * N)
    words = np.array([*(word for word, _ in tables), result.address], dtype=np.int64)
    program = device.compile(text, ["f"], "exact", contract=False)
    device.sequencer([Call("f", program, words, (Launch("f", N, 8),))])()
    result.written()
    assert (result.host().view(np.float32) == a * b + c).all()


def bad_call(device: OpenClDevice, text: str, block: int = 8, words: int = 1) -> Call:
    program = device.compile(text, ["f"], "bad")
    buffer = device.allocate(64)
    return Call("bad", program, np.full(words, buffer.address), (Launch("f", 8, block),), [buffer])


def test_wrong_number_of_arguments(device: OpenClDevice) -> None:
    call = bad_call(device, "__kernel void f(__global float *x) { x[0] = 1; }", words=2)
    with pytest.raises(CompileError, match=r"'f' of 'bad' takes 1 arguments and is given 2 words") as caught:
        device.sequencer([call])
    assert Path(caught.value.source_path).exists()


def test_groups_too_large(device: OpenClDevice) -> None:
    call = bad_call(device, "__kernel void f(__global float *x) { x[0] = 1; }", block=8 * device.max_block)
    with pytest.raises(CompileError, match=rf"at most {device.max_block} items .*Schedule\(block="):
        device.sequencer([call])


def test_too_much_local_memory(device: OpenClDevice) -> None:
    """PoCL would end the process."""
    count = device.local_memory // 4 + 64
    text = f"""__kernel void f(__global float *x)
    {{
        __local float s[{count}];
        s[get_local_id(0)] = x[get_local_id(0)];
        barrier(CLK_LOCAL_MEM_FENCE);
        x[0] = s[3];
    }}"""
    try:
        call = bad_call(device, text)
    except CompileError:
        return  # some compilers refuse it themselves
    with pytest.raises(CompileError, match="bytes of local memory"):
        device.sequencer([call])


def test_failure_of_a_launch(device: OpenClDevice) -> None:
    """What a driver finds only when a kernel is enqueued names the kernel and its source."""
    text = "__kernel __attribute__((reqd_work_group_size(8, 1, 1))) void f(__global float *x) { x[0] = 1; }"
    run = device.sequencer([bad_call(device, text, block=4)])
    with pytest.raises(CompileError, match="cannot run the kernel 'f'") as caught:
        run()
    assert Path(caught.value.source_path).read_text() == text
    device.profile = True
    with pytest.raises(CompileError, match="INVALID_WORK_GROUP_SIZE"):
        run()
    device.profile = False


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("MEM_OBJECT_ALLOCATION_FAILURE", OutOfMemory),
        ("BUILD_PROGRAM_FAILURE", CompileError),
        ("INVALID_COMMAND_QUEUE", SolverError),
    ],
)
def test_kinds_of_failure(device: OpenClDevice, code: str, expected: type[Exception]) -> None:
    class Failure(Exception):
        pass

    error: Any = Failure(f"clSomething failed: {code}")
    error.code = getattr(device.cl.status_code, code)
    found = device.launch_failure(error)
    assert type(found) is expected
    assert code in str(found)
    error.code = -99999  # of a vendor
    assert type(device.launch_failure(error)) is SolverError


# ------------------------------------------------------------------------------------------ properties


def test_without_double_precision() -> None:
    device = OpenClDevice(without=("cl_khr_fp64", "cl_khr_int64_base_atomics", "cl_khr_fp16"))
    assert not device.fp64
    assert "use dtype='float32'" in device.refuses(FLOAT64)
    assert device.refuses_double
    assert "cl_khr_fp16" in device.refuses(FLOAT16)
    assert not any(device.refuses(scalar) for scalar in (FLOAT32, INT64, INT32, UINT8))
    assert [device.atomic_add(scalar) for scalar in (FLOAT32, INT32)] == [True, True]
    assert not any(device.atomic_add(scalar) for scalar in (FLOAT64, INT64, UINT8, FLOAT16))
    assert "no FP64" in device.describe()


def test_capabilities(device: OpenClDevice) -> None:
    assert device.refuses_double is not device.fp64
    assert device.atomic_add(INT64) is device.int64_atomics
    assert device.atomic_add(FLOAT64) is (device.int64_atomics and device.fp64)
    assert (device.name, device.native, device.dialect) == ("opencl", True, "opencl")
    assert (device.shared, device.items) == (False, True)
    assert device.max_block >= 64
    assert device.local_memory > 0
    assert device.vendor
    free, total = device.memory()
    assert 0 <= free <= total
    words = device.describe()
    assert device.hardware in words
    assert f"{device.compute_units} units" in words


def test_choice(device: OpenClDevice) -> None:
    from fluxloom.device.opencl.platform import candidates, import_pyopencl

    for candidate in candidates(import_pyopencl()):
        assert OpenClDevice(str(candidate.number)).handle == candidate.handle
    assert OpenClDevice(device.hardware[:6].upper()).hardware.startswith(device.hardware[:6])
    with pytest.raises(DeviceUnavailable, match="no OpenCL device matches 'no such thing'"):
        OpenClDevice("no such thing")


def test_registers(device: OpenClDevice) -> None:
    program = device.compile("__kernel void f(__global float *x) { x[0] = 1; }", ["f"], "one")
    assert (program.resources("f") is None) is device.is_cpu


def test_home_that_cannot_be_written(tmp_path: Path) -> None:
    """PoCL, which compiles into a folder, is given one."""
    (tmp_path / "file").write_text("no folder")
    program = (
        "import os; os.environ.pop('POCL_CACHE_DIR', None); os.environ.pop('XDG_CACHE_HOME', None);"
        f"os.environ.update(HOME={str(tmp_path / 'file')!r}, FLUXLOOM_CACHE={str(tmp_path / 'ours')!r});"
        "from fluxloom.device.opencl.device import OpenClDevice;"
        "OpenClDevice().compile('__kernel void f(__global int *x) { x[0] = 1; }', ['f'], 'f'); print('fine')"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300)
    assert done.stdout == "fine\n", done.stderr
