"""The text of the passes compiles for every device."""

from __future__ import annotations

import shutil
import subprocess

import numpy as np
import pytest

from fluxloom.codegen.primitive import primitive_unit
from fluxloom.device.cpu import CpuDevice
from fluxloom.dsl.context import Context
from fluxloom.dsl.declare.arrays import DeviceArray
from fluxloom.dsl.run.primitive import Steps
from fluxloom.linalg.direct.poisson.passes import Passes, pass_functions


@pytest.mark.nvcc
@pytest.mark.parametrize("real", ["double", pytest.param("float", marks=pytest.mark.long)])
def test_nvcc_compiles(tmp_path, real):
    compiler = shutil.which("nvcc")
    if compiler is None:
        pytest.skip("nvcc is not on the path")
    source = tmp_path / "passes.cu"
    unit = primitive_unit(pass_functions(real, items=True), "cuda", f"typedef {real} real;")
    assert unit.symbols == ["side", "divide", "fit"]
    source.write_text(unit.text)
    command = [compiler, "-arch=sm_90", "-cubin", "-o", str(tmp_path / "passes.cubin"), str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]


def divided(device, shape: tuple[int, ...], dtype: type) -> tuple[np.ndarray, np.ndarray, float]:
    """Return values, and what the division makes of them, twice as many reals where they are complex."""
    rng = np.random.default_rng(0)
    values = rng.standard_normal(shape).astype(dtype)
    if np.dtype(dtype).kind == "c":
        values.imag = rng.standard_normal(shape)
        values.imag.flat[0] = 0.0
    lists = [-np.arange(n, dtype=float) for n in shape]
    source, target = DeviceArray.zeros(device, shape, dtype), DeviceArray.zeros(device, shape, dtype)
    source.assign(values)
    mean = DeviceArray.zeros(device, (1,), np.float64)
    passes = Passes(device, np.float64, 2)
    call = passes.divide(source, target, lists, mean, scale=2.0, singular=True, gain=0.5)
    Steps(device, [call], [source.buffer], [target.buffer, mean.buffer])()
    return values, target.host().copy(), float(mean.host()[0])


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
@pytest.mark.parametrize("shape", [(5,), (4, 3), (3, 40, 150)])
@pytest.mark.parametrize("name", ["cpu", pytest.param("opencl", marks=pytest.mark.opencl)])
def test_division(name, shape, dtype):
    device = CpuDevice(2) if name == "cpu" else Context(name).device
    values, found, mean = divided(device, shape, dtype)
    sums = -np.indices(shape).sum(axis=0).astype(float)
    sums.flat[0] = 1.0
    wanted = 2.0 * values / sums
    wanted.flat[0] = 0.0
    np.testing.assert_allclose(found, wanted, rtol=1e-14)
    assert mean == 0.5 * values.flat[0].real
