"""Primitives: their text in every language, calls, and memory of several owners."""

from __future__ import annotations

import numpy as np
import pytest

from fluxloom.codegen.primitive import Function, Parameter, primitive_unit
from fluxloom.core.errors import DeviceUnavailable, FluxloomError
from fluxloom.device.cpu import CpuDevice
from fluxloom.device.reference import ReferenceDevice
from fluxloom.dsl.context import Context
from fluxloom.dsl.declare.arrays import DeviceArray
from fluxloom.dsl.run.primitive import Primitive, Steps

PARAMETERS = (
    Parameter("double *", "x"), Parameter("double *", "y", written=True), Parameter("int64_t", "first"),
    Parameter("int64_t", "n"), Parameter("double", "factor"),
)  # fmt: skip
SCALE = Function("scale", PARAMETERS, "    for (int64_t k = 0; k < n; k++) y[k] = factor * x[first + k];")
KERNEL = Function("scale", PARAMETERS, "    if (FL_ITEM < n) y[FL_ITEM] = factor * x[first + FL_ITEM];", 64)


def steps(device, x: DeviceArray, y: DeviceArray, factor: float) -> Steps:
    function = KERNEL if device.items else SCALE
    primitive = Primitive(device, [function], "scale")
    call = primitive.call("scale", {"x": x, "y": y, "first": x.first, "n": x.shape[0], "factor": factor}, x.shape[0])
    return Steps(device, [call], [x.buffer], [y.buffer])


@pytest.mark.parametrize("dialect", ["cuda", "opencl"])
def test_kernel_text(dialect):
    unit = primitive_unit([KERNEL], dialect)
    assert unit.symbols == ["scale"]
    assert "const int64_t first" in unit.text
    assert unit.text.count("scale(") == 1


def test_arrays_of_numpy_are_used_where_they_are():
    device = CpuDevice(1)
    x, y = np.arange(5.0), np.zeros(5)
    steps(device, DeviceArray.of(device, x), DeviceArray.of(device, y), 2.5)()
    np.testing.assert_array_equal(y, 2.5 * x)


def test_arrays_with_gaps_are_copied():
    device = CpuDevice(1)
    x = np.arange(10.0)[::2]
    found = DeviceArray.of(device, x)
    assert found.copied
    assert found.dense
    np.testing.assert_array_equal(found.host(), x)


def test_transposed_arrays_are_not_copied():
    device = CpuDevice(1)
    x = np.zeros((3, 4)).T
    found = DeviceArray.of(device, x)
    assert not found.copied
    assert found.strides == (1, 4)


def test_dats_are_used_where_they_are():
    context = Context("cpu", threads=1)
    grid = context.grid((2, 3), ghost=1)
    dat = context.dat(grid, np.arange(6.0).reshape(2, 3))
    found = DeviceArray.of(context.device, dat)
    assert found.first == 6
    assert found.strides == (5, 1)
    found.host(write=True)[1, 2] = 7.0
    assert dat.data_ro[1, 2] == 7.0


def test_dat_of_another_device_is_refused():
    context = Context("cpu", threads=1)
    dat = context.dat(context.set(3, "s"))
    with pytest.raises(FluxloomError, match="another device"):
        DeviceArray.of(CpuDevice(1), dat)


def test_wrong_names_are_refused():
    primitive = Primitive(CpuDevice(1), [SCALE], "scale")
    with pytest.raises(FluxloomError, match="factor"):
        primitive.call("scale", {"x": np.zeros(1), "y": np.zeros(1), "first": 0, "n": 1})


def test_device_without_code_is_refused():
    with pytest.raises(DeviceUnavailable, match="generated code"):
        Primitive(ReferenceDevice(), [SCALE], "scale")


@pytest.mark.opencl
def test_kernels_run():
    context = Context("opencl")
    device = context.device
    x = DeviceArray.of(device, np.arange(200.0))
    y = DeviceArray.zeros(device, (200,))
    run = steps(device, x, y, -1.5)
    run()
    np.testing.assert_array_equal(y.host(), -1.5 * np.arange(200.0))
    assert run.seconds.keys() == {"scale"}
