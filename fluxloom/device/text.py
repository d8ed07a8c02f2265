"""A device without hardware: loops on it have generated source, which can be read anywhere, and nothing runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import DeviceUnavailable
from fluxloom.device.bandwidth import available_threads
from fluxloom.device.base import Buffer, Call, Device, Enqueued, Launch, Program, Sequencer

__all__ = ["TextDevice"]


class _TextProgram(Program):
    """A translation unit that nobody has compiled."""

    vectorised: Mapping[int, str] = MappingProxyType({})
    compiled = False
    seconds = 0.0


class _TextSequencer(Sequencer):
    """Calls that cannot be made, or are passed over."""

    def __init__(self, dialect: str, count: int, passing: bool) -> None:
        self._dialect, self._passing = dialect, passing
        self.seconds: npt.NDArray[np.float64] = np.zeros(count)
        self.counts: npt.NDArray[np.int64] = np.zeros(count, dtype=np.int64)

    def __call__(self) -> None:
        """Refuse, or do nothing.

        Raises
        ------
        DeviceUnavailable
            Unless calls are passed over.
        """
        if self._passing:
            return
        raise DeviceUnavailable(
            f"loops of the dialect {self._dialect!r} have source here and no device to run on: "
            "give the context a device, as in Context('cpu')"
        )


class TextDevice(Device):
    """Shows what is generated in a language, without driver, compiler or hardware.

    Parameters
    ----------
    dialect
        The language: ``"c"``, ``"cuda"`` or ``"opencl"``. It is the name of the device too.
    threads
        For how many threads plain functions are meant; 0: as many as this process may use.
    passing
        Whether what is asked to run is passed over: for a solver that sets values while it is built, of which only the
        loops are looked at. By default it is an error.
    """

    native = True

    def __init__(self, dialect: str, threads: int = 0, *, passing: bool = False) -> None:
        self.name = self.dialect = dialect
        self._passing = passing
        self.items = dialect != "c"
        self.threads = 1 if self.items else threads or available_threads()

    def allocate(self, nbytes: int, stagger: int = 0) -> Buffer:
        """Return a zeroed buffer in host memory."""
        return Buffer(nbytes, stagger=stagger)

    def describe(self) -> str:
        """Return the language."""
        return f"source in {self.dialect}, nothing to run it on"

    def compile(self, text: str, symbols: Sequence[str], name: str, *, contract: bool = True) -> Program:
        """Return a program that does not run."""
        return _TextProgram()

    def sequencer(self, calls: Sequence[Call | Enqueued]) -> Sequencer:
        """Return a sequence that raises when it is called, or does nothing."""
        return _TextSequencer(self.dialect, len(calls), self._passing)

    def reset_call(self, words: npt.NDArray[np.int64]) -> Call:
        """Return the call that would set a global."""
        return Call("reset", _TextProgram(), words, (Launch("fl_reset"),))
