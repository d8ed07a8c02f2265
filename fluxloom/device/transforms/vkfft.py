"""Transforms of arrays in the memory of an OpenCL device by VkFFT, through pyvkfft."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from fluxloom.core.errors import DeviceUnavailable
from fluxloom.core.packages import require
from fluxloom.device.opencl.buffer import OpenClBuffer
from fluxloom.device.transforms.dft import INVERSE, REAL_KINDS, Library, Values

if TYPE_CHECKING:
    from fluxloom.device.opencl.device import OpenClDevice

__all__ = ["VkfftTransforms"]


class VkfftTransforms(Library):
    """VkFFT's transforms, on the queue of the device. Arrays have to be dense and to begin with their buffer.

    Parameters
    ----------
    device
        Of OpenCL.
    """

    kinds = frozenset({*REAL_KINDS, "dft", "complex"})

    def __init__(self, device: OpenClDevice) -> None:
        self._device = device
        try:
            self._vkfft: Any = require("pyvkfft.opencl", "vkfft", "VkFFT")
        except OSError as error:
            raise DeviceUnavailable(
                f"pyvkfft was built without OpenCL ({error}): install the headers of OpenCL, then build it anew with "
                "pip install --force-reinstall --no-binary pyvkfft pyvkfft"
            ) from error
        self.title = (
            f"VkFFT {self._vkfft.vkfft_version()} (pyvkfft {require('pyvkfft.version', 'vkfft', 'VkFFT').__version__})"
        )

    def accepts(self, kind: str, axes: Sequence[int], source: Values, target: Values) -> bool:
        """Whether arrays that lie like these can be transformed where they are."""
        dense = all(values.view.dense and not values.view.offset for values in (source, target))
        halved = kind != "dft" or axes[-1] == len(source.view.shape) - 1
        return kind in self.kinds and dense and halved

    def plan(
        self, kind: str, axes: Sequence[int], source: Values, target: Values, *, backward: bool = False
    ) -> Callable[[], None]:
        """Return the function that does a transform."""
        real = target if backward and kind == "dft" else source
        what: dict[str, Any] = {"r2c": kind == "dft"}
        forward = not backward
        if kind in REAL_KINDS:
            kind, forward = INVERSE[kind] if backward else kind, True
            what[kind[:3]] = int(kind[3])
        within = source.same(target)
        application = self._application(real, axes, within, what)
        device, x, y = self._device, _Array(source), None if within else _Array(target)
        transform = application.fft if forward else application.ifft

        def run() -> None:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # the queue that measures time is another one
                transform(x, y, queue=device.select(timed=device.profile))

        return run

    def _application(self, real: Values, axes: Sequence[int], within: bool, what: dict[str, Any]) -> Any:
        shape, dtype, queue = real.view.shape, real.view.dtype, self._device.select(timed=self._device.profile)
        return self._vkfft.VkFFTApp(shape, dtype, queue, inplace=within, norm=0, axes=tuple(axes), **what)


class _Array:
    """What pyvkfft asks of an array: its memory and its form."""

    def __init__(self, values: Values) -> None:
        assert isinstance(values.buffer, OpenClBuffer)
        self.data = values.buffer.memory
        self.shape, self.dtype = values.view.shape, values.view.dtype
        self.size = 1
        for length in self.shape:
            self.size *= length
