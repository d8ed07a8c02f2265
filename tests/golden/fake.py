"""Devices that generate code and run none."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from fluxloom.core.dtypes import Scalar
from fluxloom.device.base import Buffer, Call, Device, Launch, Program, Sequencer

__all__ = ["FakeItems", "FakeProgram"]


class FakeProgram(Program):
    """A source that nobody has compiled."""

    vectorised: Mapping[int, str] = MappingProxyType({})
    compiled = False
    seconds = 0.0

    def __init__(self, text: str, symbols: Sequence[str]) -> None:
        self.text, self.symbols = text, tuple(symbols)


class FakeSequencer(Sequencer):
    """Counts how often it was called."""

    def __init__(self, calls: Sequence[Call]) -> None:
        self.calls = tuple(calls)
        self.seconds = np.zeros(len(calls))
        self.counts = np.zeros(len(calls), dtype=np.int64)

    def __call__(self) -> None:
        self.counts += 1


class FakeItems(Device):
    """A device of work items without hardware.

    Parameters
    ----------
    dialect
        Language of its code: also its name.
    refused
        Names of types that it does not have.
    unadded
        Names of types that it cannot add atomically.
    """

    native = True
    shared = False
    items = True

    def __init__(self, dialect: str, *, refused: Collection[str] = (), unadded: Collection[str] = ()) -> None:
        self.name = self.dialect = dialect
        self._refused, self._unadded = frozenset(refused), frozenset(unadded)

    def allocate(self, nbytes: int, stagger: int = 0) -> Buffer:
        return Buffer(nbytes)

    def describe(self) -> str:
        return f"a thing that speaks {self.dialect}"

    def compile(self, text: str, symbols: Sequence[str], name: str, *, contract: bool = True) -> FakeProgram:
        return FakeProgram(text, symbols)

    def sequencer(self, calls: Sequence[Call]) -> FakeSequencer:
        return FakeSequencer(calls)

    def reset_call(self, words: npt.NDArray[np.int64]) -> Call:
        return Call("reset", FakeProgram("", ["fl_reset"]), words, (Launch("fl_reset"),))

    def refuses(self, scalar: Scalar) -> str:
        return f"no {scalar.name} here: use dtype='float32'" if scalar.name in self._refused else ""

    def atomic_add(self, scalar: Scalar) -> bool:
        return scalar.name not in self._unadded
