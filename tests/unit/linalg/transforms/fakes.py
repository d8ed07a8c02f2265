"""A library of Fourier transforms of rows alone, by NumPy on copies in host memory, for devices of work items."""

from __future__ import annotations

import numpy as np

from fluxloom.device.base import RemoteBuffer
from fluxloom.device.transforms.dft import Library, Values


def host_array(values: Values, *, write: bool = False) -> np.ndarray:
    view = values.view
    return np.ndarray(view.shape, view.dtype, values.buffer.host(write=write), view.offset, view.strides)


class RowTransforms(Library):
    """What cuFFT offers, and no more than what is asked of it around rows."""

    title = "NumPy in the place of a library"
    kinds = frozenset({"dft", "complex"})

    def __init__(self, *, accepting: bool = True) -> None:
        self.accepting, self.plans = accepting, []

    def accepts(self, kind, axes, source, target):
        rows = len(source.view.shape) - 1 in axes and source.view.dense and target.view.dense
        return super().accepts(kind, axes, source, target) and (self.accepting or rows)

    def plan(self, kind, axes, source, target, *, backward=False):
        self.plans.append((kind, tuple(axes), backward))

        def run() -> None:
            if isinstance(source.buffer, RemoteBuffer):
                source.buffer.written()  # by kernels
            x = host_array(source).copy()
            if kind == "complex":
                done = np.fft.ifftn(x, axes=axes, norm="forward") if backward else np.fft.fftn(x, axes=axes)
            elif backward:
                lengths = [target.view.shape[a] for a in axes]
                done = np.fft.irfftn(x, lengths, axes=axes, norm="forward")
            else:
                done = np.fft.rfftn(x, axes=axes)
            if isinstance(target.buffer, RemoteBuffer):
                target.buffer.written()
            host_array(target, write=True)[...] = done
            target.buffer.device()

        return run
