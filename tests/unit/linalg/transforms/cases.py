"""Transforms there and back on a device, beside SciPy's."""

from __future__ import annotations

import numpy as np
import scipy.fft

from fluxloom.device.base import Device
from fluxloom.device.buffer import View
from fluxloom.device.transforms.dft import REAL_KINDS
from fluxloom.dsl.declare.arrays import DeviceArray
from fluxloom.dsl.run.primitive import Steps
from fluxloom.linalg.direct.transforms import Transforms


def dense(device: Device, x: np.ndarray) -> DeviceArray:
    found = DeviceArray.zeros(device, x.shape, x.dtype)
    found.assign(x)
    return found


def gapped(device: Device, x: np.ndarray) -> DeviceArray:
    """Return an array with ghosts around its values, as those of a dat on a grid."""
    full = DeviceArray.zeros(device, tuple(n + 2 for n in x.shape), x.dtype)
    found = DeviceArray(device, full.buffer, View(x.shape, x.dtype, full.view.strides, sum(full.view.strides)))
    found.assign(x)
    return found


def transposed(device: Device, x: np.ndarray) -> DeviceArray:
    """Return an array of which the first axis is the fastest."""
    full = DeviceArray.zeros(device, x.shape[::-1], x.dtype)
    found = DeviceArray(device, full.buffer, View(x.shape, x.dtype, full.view.strides[::-1], 0))
    found.assign(x)
    return found


def kinds_of(n: int) -> tuple[str, ...]:
    """Return the real kinds that have so many values."""
    return tuple(kind for kind in REAL_KINDS if n > 1 or kind != "dct1")


def scipy_of(kind: str, axes: tuple[int, ...], x: np.ndarray) -> np.ndarray:
    if kind == "dft":
        return scipy.fft.rfftn(x.astype(float), axes=axes)
    return getattr(scipy.fft, kind[:3])(x.astype(float), int(kind[3]), axis=axes[0])


def error(
    transforms: Transforms, kind: str, axes: tuple[int, ...], x: np.ndarray, make=dense, *, within=False
) -> float:
    """Return the largest error of a transform and of the way back, in units of the last digit of the largest value."""
    device, eps = transforms.device, float(np.finfo(x.dtype).eps)
    source = make(device, x)
    target = source if within else DeviceArray.zeros(device, *transforms.spectrum(kind, axes, x.shape, x.dtype))
    Steps(device, transforms.forward(kind, axes, source, target), [source.buffer], [target.buffer])()
    wanted = scipy_of(kind, axes, x)
    there = np.abs(target.host() - wanted).max() / np.abs(wanted).max()
    if not within:  # the source is still there
        np.testing.assert_array_equal(source.host(), x)
    back = source if within else make(device, np.zeros_like(x))
    items = transforms.backward(kind, axes, target, back)
    Steps(device, items, [target.buffer, back.buffer], [back.buffer, target.buffer])()
    scale = transforms.scale(kind, [x.shape[axis] for axis in axes])
    return float(max(there, np.abs(back.host() / scale - x).max() / np.abs(x).max()) / eps)


def sample(axis: int, n: int, dtype: str = "float64", shape: tuple[int, ...] = (3, 5, 34)) -> np.ndarray:
    """Return random values with so many of them along an axis."""
    lengths = tuple(n if k == axis else length for k, length in enumerate(shape))
    return np.random.default_rng(n).standard_normal(lengths).astype(dtype)
