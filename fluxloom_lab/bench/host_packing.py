"""An exchange packed by the host, to compare with: whole arrays come down, messages are cut out of them and put in."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fluxloom.core.dtypes import AoS, SoA
from fluxloom.dsl.declare.dats import Dat
from fluxloom.dsl.ranks.exchange import Exchange

__all__ = ["HostPacking"]


class HostPacking:
    """Does what an `Exchange` does in the way of programs whose packing stayed on the processor.

    Every dat is copied to the host as a whole, the messages are made there, sent through host memory and put into the
    halo there, and every dat is copied back as a whole. A call takes the current values from the device, as the
    exchange between two loops does.

    Parameters
    ----------
    exchange
        Whose dats and neighbours.
    """

    def __init__(self, exchange: Exchange) -> None:
        self.exchange, self.comm = exchange, exchange.context.comm

    def __call__(self) -> None:
        """Bring the halo up to date. Collective."""
        context = self.exchange.context
        context.synchronize()
        for dat in self.exchange.dats:
            dat.buffer.download()
        found = self.comm.exchange([self._packed(rank) for rank in range(self.comm.size)])
        for rank, message in enumerate(found):
            self._unpack(rank, message)
        for dat in self.exchange.dats:
            dat.buffer.upload()
        context.synchronize()

    def _packed(self, rank: int) -> npt.NDArray[np.uint8]:
        """Return the message to a rank."""
        pieces = [np.zeros(0, dtype=np.uint8)]
        for dat in self.exchange.dats:
            part = dat.set.part
            if part is not None and rank in part.neighbours:
                rows = _rows(dat)[part.send[part.neighbours.index(rank)]]
                pieces.append(np.ascontiguousarray(rows).view(np.uint8).ravel())
        return np.concatenate(pieces)

    def _unpack(self, rank: int, message: npt.NDArray[np.uint8]) -> None:
        """Put a message of a rank into the halo."""
        first = 0
        for dat in self.exchange.dats:
            part = dat.set.part
            if part is None or rank not in part.neighbours:
                continue
            places = part.receive[part.neighbours.index(rank)]
            count = len(places) * dat.dim * dat.scalar.size
            values = message[first : first + count].view(dat.scalar.numpy)
            _rows(dat)[places] = values.reshape(len(places), dat.dim)
            first += count


def _rows(dat: Dat) -> npt.NDArray[np.generic]:
    """Return the host copy of a dat as ``(places, dim)``, as it is in memory."""
    raw = dat.buffer.host().view(dat.scalar.numpy)
    if isinstance(dat.layout, AoS):
        return raw.reshape(dat.stride, dat.dim)
    if isinstance(dat.layout, SoA):
        return raw.reshape(dat.dim, dat.stride).T
    raise TypeError(dat.layout)
