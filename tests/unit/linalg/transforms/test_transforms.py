"""Transforms on the host against SciPy, by libraries and by matrices; what is refused."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import scipy.linalg

from fluxloom.core.errors import DeviceUnavailable, PlanError, SolverError
from fluxloom.device.cpu import CpuDevice
from fluxloom.device.reference import ReferenceDevice
from fluxloom.dsl.context import Context
from fluxloom.dsl.declare.arrays import DeviceArray
from fluxloom.dsl.run.primitive import Steps
from fluxloom.linalg.direct.transforms import Transforms

from .cases import dense, error, gapped, kinds_of, sample, transposed

LIBRARIES = ("scipy", "matrix", "pyfftw")


@pytest.fixture(params=LIBRARIES)
def transforms(request):
    if request.param == "pyfftw":
        pytest.importorskip("pyfftw")
    return Transforms(CpuDevice(1), library=request.param)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("n", [1, 2, 3, 8, 17])
def test_every_kind(transforms, n, dtype):
    for axis in (0, 1, 2):
        x = sample(axis, n, dtype)
        for kind in kinds_of(n):
            for make in (dense, gapped, transposed):
                assert error(transforms, kind, (axis,), x, make) < 12
            assert error(transforms, kind, (axis,), x, within=True) < 12


@pytest.mark.parametrize("axes", [(0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)])
def test_fourier(transforms, axes):
    for n in (1, 2, 7, 8):
        for dtype in ("float64", "float32"):
            for make in (dense, gapped, transposed):
                assert error(transforms, "dft", axes, sample(axes[-1], n, dtype, (4, 3, 5)), make) < 12


def test_one_axis_alone(transforms):
    x = sample(0, 10, shape=(10,))
    assert all(error(transforms, kind, (0,), x) < 12 for kind in (*kinds_of(10), "dft"))


def test_threads_and_pieces_change_nothing():
    """Larger than a piece, so that several pieces are transformed."""
    x = np.random.default_rng(0).standard_normal((40, 90, 70))
    for threads in (1, 2):
        transforms = Transforms(CpuDevice(threads), threads=threads, library="scipy")
        for axes in ((0,), (1,), (2,), (0, 2), (1, 2)):
            assert error(transforms, "dft", axes, x) < 12
        assert all(error(transforms, "dct2", (axis,), x) < 12 for axis in (0, 1, 2))


def test_dats():
    context = Context("cpu", threads=1)
    grid = context.grid((6, 8), ghost=2)
    x = sample(0, 6, shape=(6, 8))
    values = DeviceArray.of(context.device, context.dat(grid, x))
    transforms = Transforms(context.device)
    Steps(context.device, transforms.forward("dst1", (1,), values, values))()
    Steps(context.device, transforms.backward("dst1", (1,), values, values))()
    np.testing.assert_allclose(values.host(), transforms.scale("dst1", (8,)) * x, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_basis(axis):
    """Eigenvectors of a stretched difference that is not symmetric take it to its eigenvalues."""
    n = 11
    x = sample(axis, n)
    rows = (
        np.diag(np.linspace(-3, -2, n)) + np.diag(np.linspace(1, 2, n - 1), 1) + np.diag(np.linspace(2, 1, n - 1), -1)
    )
    values, vectors = scipy.linalg.eig(rows)
    assert np.abs(np.imag(values)).max() == 0.0
    basis = SimpleNamespace(forward=np.linalg.inv(vectors), backward=vectors)
    transforms = Transforms(CpuDevice(1))
    source, target = dense(transforms.device, x), dense(transforms.device, x)
    Steps(transforms.device, transforms.forward("matrix", (axis,), source, target, basis=basis))()
    target.assign(np.moveaxis(np.moveaxis(target.host(), axis, -1) * values.real, -1, axis))
    Steps(transforms.device, transforms.backward("matrix", (axis,), target, target, basis=basis))()
    wanted = np.moveaxis(np.tensordot(rows, x, (1, axis)), 0, axis)
    np.testing.assert_allclose(target.host(), wanted, rtol=0, atol=1e-11)
    assert transforms.scale("matrix", (n,)) == 1.0


def test_what_transforms_is_told():
    device = CpuDevice(1)
    assert "SciPy" in Transforms(device, library="scipy").describe()
    assert "matrices" in Transforms(device, library="matrix").describe()
    assert Transforms(device).native("dct3")
    assert not Transforms(device, library="matrix").native("dft")
    assert "SciPy" in Transforms(ReferenceDevice(), library="scipy").describe()


@pytest.mark.parametrize(
    ("kind", "axes", "shapes", "words"),
    [
        ("dct5", (0,), ((4,), (4,)), "dct4"),
        ("dct2", (0, 1), ((4, 4), (4, 4)), "one axis"),
        ("dct2", (1,), ((4,), (4,)), "ascending"),
        ("dft", (1, 0), ((4, 4), (4, 3)), "ascending"),
        ("dft", (1,), ((4, 4), (4, 4)), r"spectrum \(4, 3\)"),
        ("dct1", (0,), ((1, 4), (1, 4)), "below 2"),
        ("matrix", (0,), ((4,), (4,)), "basis"),
    ],
)
def test_what_does_not_fit_is_refused(kind, axes, shapes, words):
    device = CpuDevice(1)
    arrays = [
        DeviceArray.zeros(device, shape, complex if kind == "dft" and k else float) for k, shape in enumerate(shapes)
    ]
    with pytest.raises(PlanError, match=words):
        Transforms(device).forward(kind, axes, *arrays)


def test_basis_of_another_size_is_refused():
    device = CpuDevice(1)
    x = DeviceArray.zeros(device, (4, 5))
    basis = SimpleNamespace(forward=np.eye(4), backward=np.eye(4))
    with pytest.raises(PlanError, match="axis 1 has 5 values"):
        Transforms(device).forward("matrix", (1,), x, x, basis=basis)


def test_whole_numbers_are_refused():
    device = CpuDevice(1)
    x = DeviceArray.zeros(device, (4,), np.int64)
    with pytest.raises(PlanError, match="float64 or float32"):
        Transforms(device).forward("dct2", (0,), x, x)


def test_libraries_of_other_devices_are_refused():
    with pytest.raises(SolverError, match="'scipy'"):
        Transforms(CpuDevice(1), library="cufft")
    with pytest.raises(SolverError, match="did you mean 'scipy'"):
        Transforms(CpuDevice(1), library="scipi")


def test_missing_library_names_the_extra(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyfftw", None)
    with pytest.raises(DeviceUnavailable, match=r"fluxloom\[fft\]"):
        Transforms(CpuDevice(1), library="pyfftw")
