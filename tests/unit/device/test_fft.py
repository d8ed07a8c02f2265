"""Real transforms: the same numbers on the host and with the library of a GPU, whose calls NumPy answers here."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy.fft

from fluxloom.device.cpu import CpuDevice
from fluxloom.device.transforms.fft import DeviceTransform, HostTransform, real_transform


class OnDevice(np.ndarray):
    """An array with the method of CuPy's that brings it to the host."""

    def get(self) -> np.ndarray:
        return np.array(self)


class Gpu:
    """A device whose library is NumPy, with transforms that keep the precision, as those of CuPy do."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.stream = nullcontext()
        self.cupy = SimpleNamespace(
            fft=scipy.fft, zeros=np.zeros, dot=np.dot, asarray=lambda a: np.array(a).view(OnDevice)
        )

    @contextmanager
    def active(self) -> Iterator[None]:
        self.log.append("enter")
        yield
        self.log.append("leave")


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("length", [1, 2, 3, 8, 15])
def test_there_and_back(length: int, dtype: Any) -> None:
    values = np.random.default_rng(0).standard_normal((7, length)).astype(dtype)
    gpu, close = Gpu(), 1e-5 if dtype is np.float32 else 1e-13
    found = []
    for transform in (real_transform(CpuDevice(1), 1), real_transform(gpu)):  # type: ignore[arg-type]
        with transform.session():
            spectra = transform.forward(transform.from_host(values))
            assert spectra.shape == (7, 2 * (length // 2 + 1))
            assert spectra.dtype == dtype
            back = transform.to_host(transform.backward(transform.from_host(spectra), length).view(OnDevice))
            assert back.dtype == dtype
            np.testing.assert_allclose(back, values, atol=close)
            assert transform.square(values) == pytest.approx(float((values.astype(float) ** 2).sum()), rel=1e-5)
            assert not transform.zeros((2, 3), dtype).any()
        found.append(np.asarray(spectra))
    np.testing.assert_allclose(found[0], found[1], atol=close)
    assert gpu.log == ["enter", "leave"]


def test_which_one() -> None:
    host, device = real_transform(CpuDevice(1), 2), real_transform(Gpu())  # type: ignore[arg-type]
    assert isinstance(host, HostTransform)
    assert isinstance(device, DeviceTransform)
    assert (host.on_device, device.on_device) == (False, True)
    assert host.rows(64) == 1024
    assert host.rows(10**9) == 1
    assert device.rows(64) == 0


@pytest.mark.cuda
def test_on_a_gpu() -> None:
    import fluxloom as fl

    context = fl.Context("cuda")
    rows = context.set(1000, "rows")
    values = np.random.default_rng(0).standard_normal((1000, 30))
    dat, transform = context.dat(rows, values), real_transform(context.device)
    with transform.session():
        spectra = transform.forward(dat.array)
        dat.array[...] = 2.0 * transform.backward(spectra, 30)
        host = transform.to_host(spectra)
    np.testing.assert_allclose(host, HostTransform().forward(values), atol=1e-12)
    np.testing.assert_allclose(dat.read(), 2.0 * values, atol=1e-12)
