"""Messages on their way between an OpenCL device and the host."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.device.opencl.buffer import OpenClBuffer
from fluxloom.device.opencl.queue import OpenClQueue
from fluxloom.device.transfer_queue import TransferQueue

__all__ = ["OpenClTransferQueue"]

_MOST_EVENTS = 256


class OpenClTransferQueue(TransferQueue):
    """Copies on a second in-order queue, ordered with the main one by events.

    Parameters
    ----------
    device
        Where the buffers are.
    """

    def __init__(self, device: OpenClQueue) -> None:
        super().__init__()
        self._device = device
        self._queue: Any = device.new_queue(timed=False)
        self._events: list[Any] = []
        """Of copies that may be under way: pyopencl waits for a copy when its event is forgotten."""

    def _main(self) -> Any:
        """Return the queue into which sequences enqueue now."""
        return self._device.select(timed=self._device.profile)

    def _order(self, first: Any, then: Any) -> None:
        """Let one queue wait for what another was asked for."""
        cl = self._device.cl
        try:
            event = cl.enqueue_marker(first)
            first.flush()
            cl.enqueue_barrier(then, wait_for=[event])
        except cl.Error as error:
            raise self._device.launch_failure(error) from error

    def _fork(self) -> None:
        self._order(self._main(), self._queue)

    def _join(self) -> None:
        self._order(self._queue, self._main())

    def _fetch(self, target: npt.NDArray[np.uint8], source: OpenClBuffer, begin: int) -> None:
        self._copy(target, source.memory, src_offset=begin)

    def _send(self, target: OpenClBuffer, begin: int, source: npt.NDArray[np.uint8]) -> None:
        self._copy(target.memory, source, dst_offset=begin)

    def _copy(self, target: Any, source: Any, **offset: int) -> None:
        cl = self._device.cl
        try:
            if len(self._events) >= _MOST_EVENTS:
                self._finish()
            self._events.append(cl.enqueue_copy(self._queue, target, source, is_blocking=False, **offset))
        except cl.Error as error:
            raise self._device.launch_failure(error) from error

    def _flush(self) -> None:
        self._queue.flush()

    def _finish(self) -> None:
        try:
            self._queue.finish()
        except self._device.cl.Error as error:
            raise self._device.launch_failure(error) from error
        self._events.clear()
