"""The cuda device: an NVIDIA GPU through CuPy (13 or later, CUDA 12 or 13)."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.dtypes import Scalar
from fluxloom.core.errors import DatError
from fluxloom.device.bandwidth import Meter
from fluxloom.device.base import Buffer, Call, Enqueued, Launch
from fluxloom.device.buffer import gapless
from fluxloom.device.cuda.bandwidth import cuda_meter
from fluxloom.device.cuda.buffer import CudaBuffer
from fluxloom.device.cuda.exchange import assign, import_array, why_not_shared
from fluxloom.device.cuda.gpu import CudaGpu
from fluxloom.device.cuda.program import CudaProgram, load_program
from fluxloom.device.cuda.sequencer import CudaSequencer
from fluxloom.device.cuda.transfer_queue import CudaTransferQueue

__all__ = ["CudaDevice"]

_RESET_BLOCK = 64
_ATOMIC = frozenset({"float64", "float32", "int64", "int32"})
"""Not float16: sums would be rounded to 11 bits after every addition, in an order that changes from run to run."""


class CudaDevice(CudaGpu):
    """An NVIDIA GPU.

    Everything that is asked of the device runs in order on one stream of its own, `stream`; calls return before
    it is done. Reading values on the host waits.

    Parameters
    ----------
    number
        Of the GPU, as CUDA counts the visible ones.

    Attributes
    ----------
    number, stream
        The GPU, and the CuPy stream on which everything runs: inside ``with device.stream:`` what CuPy does is
        in order with the loops.

    Raises
    ------
    DeviceUnavailable
        When CuPy, the driver, the GPU or the run-time compiler is missing, or they do not fit together.
    """

    name = "cuda"
    native = True
    dialect = "cuda"
    shared = False
    items = True

    def __init__(self, number: int = 0) -> None:
        super().__init__(number)
        self._helpers: CudaProgram | None = None

    # --------------------------------------------------------------------------------------- memory
    def allocate(self, nbytes: int, stagger: int = 0) -> CudaBuffer:
        """Return a zeroed buffer.

        Raises
        ------
        OutOfMemory
            With the bytes asked for, and what is free.
        """
        with self.active():
            memory = self._take(nbytes)
            if nbytes:
                self._runtime.memsetAsync(memory.ptr, 0, nbytes, self.stream.ptr)
        return CudaBuffer(self, memory, nbytes)

    def bring(self, buffers: Sequence[Buffer]) -> None:
        """Make the host copies of some buffers current, with one wait for all."""
        landing = [(buffer, buffer.landing()) for buffer in buffers if isinstance(buffer, CudaBuffer)]
        coming = [(buffer, target) for buffer, target in landing if target is not None]
        if not coming:
            return
        with self.active():
            for buffer, target in coming:
                self._copy(target.ctypes.data, buffer.address, target.nbytes, self._runtime.memcpyDeviceToHost)
            self._wait()
        for buffer, _ in coming:
            buffer.landed()

    def copy(self, target: Buffer, source: Buffer) -> None:
        """Copy one buffer to another of the same size, on the device."""
        begin, end = source.device(), target.device(write=True)
        with self.active():
            self._copy(end, begin, source.nbytes, self._runtime.memcpyDeviceToDevice)

    # -------------------------------------------------------------------------- arrays of other people
    def wrap(self, array: Any) -> CudaBuffer:
        """Return a buffer over the memory of a CuPy array, without a copy.

        Parameters
        ----------
        array
            An array on this GPU, of CuPy or with ``__cuda_array_interface__``, that fills its memory. It is kept alive.

        Raises
        ------
        DatError
            When the array has gaps, is on another GPU, or no array of a GPU at all.

        Notes
        -----
        The device waits for what CuPy's current stream was asked for before. What is done with the array *later*
        is not ordered with loops: use it inside ``with device.stream:``, or call ``Context.synchronize`` between.
        """
        array = import_array(self, array)
        if not isinstance(array, self.cupy.ndarray):
            raise DatError(f"{type(array).__name__} is no array in the memory of a GPU")
        if not gapless(array.shape, array.strides, array.itemsize):
            raise DatError("the array is not contiguous: make a copy with cupy.ascontiguousarray")
        with self.active():
            self.order(self.current_stream(), self.stream)
        return CudaBuffer(self, array.data, int(array.nbytes), zeroed=False, kept=array)

    def as_array(self, values: Any) -> Any:
        """Return an array of the GPU as one of CuPy, without a copy, and anything else as one of NumPy."""
        return import_array(self, values)

    def why_not_shared(self, values: Any, array: Any) -> str:
        """Return why the memory of values, which are an array now, cannot be a buffer; empty if it can."""
        return why_not_shared(self, values, array)

    def assign(self, target: Any, source: Any) -> None:
        """Set an array on the GPU from another one, after what CuPy's current stream was asked for before."""
        assign(self, target, source)

    def to_numpy(self, array: Any) -> npt.NDArray[Any]:
        """Return a copy of an array of CuPy in host memory."""
        with self.active():
            return array.get()

    # ------------------------------------------------------------------------------------- programs
    def compile(self, text: str, symbols: Sequence[str], name: str, *, contract: bool = True) -> CudaProgram:
        """Compile a translation unit.

        Raises
        ------
        CompileError
            With the path of the source and what the compiler said.
        """
        with self.active():
            return load_program(self.cupy, self._architecture, text, symbols, name, contract=contract)

    def sequencer(self, calls: Sequence[Call | Enqueued]) -> CudaSequencer:
        """Return a sequence of calls, replayed as one CUDA graph."""
        with self.active():
            return CudaSequencer(self, calls)

    def transfer_queue(self) -> CudaTransferQueue:
        """Return a new queue of transfers for messages."""
        return CudaTransferQueue(self)

    def reset_call(self, words: npt.NDArray[np.int64]) -> Call:
        """Return the call that sets every component of a global."""
        if self._helpers is None:
            source = resources.files("fluxloom.device.cuda").joinpath("runtime.cu").read_text()
            self._helpers = self.compile(source, ["fl_reset"], "runtime")
        return Call("reset", self._helpers, words, (Launch("fl_reset", int(words[1]), _RESET_BLOCK),))

    def atomic_add(self, scalar: Scalar) -> bool:
        """Whether indirect increments of a type can be added atomically."""
        return scalar.name in _ATOMIC

    def meter(self, nbytes: int = 0) -> Meter:
        """Return what measures the memory bandwidth: arrays of 1 GiB, or an eighth of the free memory."""
        return cuda_meter(self, self.copy, nbytes)
