"""Messages on their way between a device and the host, beside the kernels."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import CommError
from fluxloom.device.buffer import RemoteBuffer, Where

__all__ = ["Piece", "TransferQueue", "landing"]

Piece = tuple[RemoteBuffer, int, int]
"""Some bytes of a message buffer: the buffer, the first byte, how many."""


class TransferQueue(ABC):
    """Copies message buffers on a queue of its own, so that kernels of the main queue run meanwhile.

    One exchange is::

        pack kernels                  main queue
        down(*outgoing)               copies them to the host, after the pack kernels
        interior kernels              main queue, at the same time
        wait()                        the host waits for the copies, not for the kernels
        send buffer.host(), receive into buffer.host()
        up(*incoming)                 copies them to the device
        join()                        what the main queue is asked for from now on comes after the copies
        unpack kernels                main queue

    An outgoing buffer must not be written on the device between `down` and `wait`, nor the host copy of an incoming
    one on the host between `up` and the next `wait`.

    Where other messages of a buffer take another way, pieces of it are copied. Then the device is where its values
    are; the host copy is seen through `landing` only.
    """

    def __init__(self) -> None:
        self._coming: list[Piece] = []
        self._going: list[Piece] = []
        self._forked = False

    def down(self, *buffers: RemoteBuffer | Piece) -> None:
        """Start to copy buffers to the host, after everything that the main queue was asked for so far.

        Without buffers it only marks the place behind which copies, those of `up` too, begin. A rank that has
        nothing to send says so with ``down()`` before its interior kernels: otherwise `up` waits for them.

        Parameters
        ----------
        buffers
            The device holds their newest values.

        Raises
        ------
        CommError
            If a piece is not within its buffer.
        """
        pieces = [_piece(what) for what in buffers]
        self._fork()
        self._forked = True
        for buffer, begin, count in pieces:
            target = landing(buffer)
            buffer.written()
            if count:
                self._fetch(target[begin : begin + count], buffer, begin)
        self._coming += pieces
        self._flush()

    def wait(self) -> None:
        """Wait until all copies are done: host copies that went down are current, those that went up may change."""
        self._finish()
        for buffer, _, count in self._coming:
            if buffer.where is Where.DEVICE and count == buffer.nbytes:
                buffer.where = Where.BOTH
        self._coming.clear()

    def up(self, *buffers: RemoteBuffer | Piece) -> None:
        """Start to copy buffers to the device.

        The copies begin after everything that the main queue had been asked for when `down` was called, or, if it
        was not called since the last `join`, until now: kernels that still read the values of the last exchange
        have done so.

        Parameters
        ----------
        buffers
            Their host copies hold the newest values.

        Raises
        ------
        CommError
            If a piece is not within its buffer.
        """
        pieces = [_piece(what) for what in buffers]
        if not self._forked:
            self._fork()
            self._forked = True
        for buffer, begin, count in pieces:
            source = landing(buffer)
            if count == buffer.nbytes:
                buffer.where = Where.HOST
            else:
                buffer.written()
            if count:
                self._send(buffer, begin, source[begin : begin + count])
        self._going += pieces
        self._flush()

    def join(self) -> None:
        """Let everything that the main queue is asked for from now on wait for the copies; the host goes on."""
        self._join()
        for buffer, _, count in self._going:
            if buffer.where is Where.HOST and count == buffer.nbytes:
                buffer.where = Where.DEVICE if buffer.lent else Where.BOTH
        self._going.clear()
        self._forked = False

    def close(self) -> None:
        """Wait for what is on its way; the queue is not used any more."""
        self.wait()
        self.join()

    # ------------------------------------------------------------------------- what devices provide
    @abstractmethod
    def _fork(self) -> None:
        """Let the own queue wait for what the main queue was asked for so far."""

    @abstractmethod
    def _fetch(self, target: npt.NDArray[np.uint8], source: Any, begin: int) -> None:
        """Enqueue the copy of bytes of a buffer from ``begin`` on to the host, on the own queue."""

    @abstractmethod
    def _send(self, target: Any, begin: int, source: npt.NDArray[np.uint8]) -> None:
        """Enqueue the copy of bytes of the host to a buffer from ``begin`` on, on the own queue."""

    @abstractmethod
    def _join(self) -> None:
        """Let the main queue wait for what the own queue was asked for so far."""

    @abstractmethod
    def _finish(self) -> None:
        """Let the host wait for the own queue."""

    def _flush(self) -> None:  # noqa: B027 - most queues begin by themselves
        """Let the own queue begin with what it was asked for."""


def _piece(what: RemoteBuffer | Piece) -> Piece:
    buffer, begin, count = (what, 0, what.nbytes) if isinstance(what, RemoteBuffer) else what
    if begin < 0 or count < 0 or begin + count > buffer.nbytes:
        raise CommError(f"a message has bytes {begin} ... {begin + count} of a buffer of {buffer.nbytes}")
    return buffer, begin, count


def landing(buffer: RemoteBuffer) -> npt.NDArray[np.uint8]:
    """Return the memory of the host copy of a buffer as it is, without bringing its values up to date."""
    before, buffer.where = buffer.where, Where.HOST
    try:
        return buffer.host()
    finally:
        buffer.where = before
