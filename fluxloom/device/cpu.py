"""The CPU device: generated C, compiled by the system compiler, called through ctypes."""

from __future__ import annotations

import ctypes
import functools
import os
import platform
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.processors import default_threads
from fluxloom.device.base import Buffer, Call, Device, Enqueued, Launch, Program, Sequencer
from fluxloom.toolchain import compile_flags, find_compiler, level_flags, load_library, vectorised_lines

__all__ = ["CpuDevice", "NativeSequencer", "NativeUnit"]

_NAME_LENGTH = 60

_WITHOUT_FMA = {("gcc", "x86_64"): ("-mno-fma", "-mno-avx512f")}
"""GCC forms ``fmaddsub`` from neighbouring ``a * b + c`` and ``a * b - c`` even with ``-ffp-contract=off``."""


@dataclass(frozen=True, eq=False)
class NativeUnit(Program):
    """A loaded shared library.

    Attributes
    ----------
    addresses
        Address of each function, by symbol.
    """

    library: Any
    addresses: dict[str, int]
    vectorised: Mapping[int, str]
    compiled: bool
    seconds: float


class NativeSequencer(Sequencer):
    """A fixed sequence of native calls, replayed by one call into C, or one for each stretch between `Enqueued`.

    Parameters
    ----------
    device
        Gives the native runtime.
    calls
        Each is one native function, called with the address of its argument words, or a function of the host.
    """

    def __init__(self, device: CpuDevice, calls: Sequence[Call | Enqueued]) -> None:
        self._calls = tuple(calls)
        self._table = np.zeros((max(1, len(calls)), 4), dtype=np.int64)
        for k, call in enumerate(calls):
            if isinstance(call, Enqueued):
                continue
            assert isinstance(call.program, NativeUnit)
            self._table[k, :2] = call.program.addresses[call.launches[0].symbol], call.words.ctypes.data
        self.seconds: npt.NDArray[np.float64] = self._table[:, 2].view(np.float64)
        self.counts: npt.NDArray[np.int64] = self._table[:, 3]
        self._function = device.runtime
        hosts = [(k, call.run) for k, call in enumerate(calls) if isinstance(call, Enqueued)]
        ends = [k for k, _ in hosts[1:]] + [len(calls)]
        self._first = self._stretch(0, hosts[0][0] if hosts else len(calls))
        self._rest = [(k, run, self._stretch(k + 1, end)) for (k, run), end in zip(hosts, ends, strict=False)]

    def _stretch(self, begin: int, end: int) -> tuple[ctypes.c_int64, ctypes.c_void_p]:
        """Return number and first row of consecutive native calls."""
        return ctypes.c_int64(end - begin), ctypes.c_void_p(self._table.ctypes.data + self._table.strides[0] * begin)

    def __call__(self) -> None:
        """Run the sequence once."""
        self._function(*self._first)
        for place, run, stretch in self._rest:
            start = time.perf_counter()
            run()
            self.seconds[place] += time.perf_counter() - start
            self.counts[place] += 1
            self._function(*stretch)


class CpuDevice(Device):
    """Threads and vector units of this machine.

    Parameters
    ----------
    threads
        Threads of a loop; 0: see `fluxloom.core.processors.default_threads`.
    """

    name = "cpu"
    native = True
    dialect = "c"

    def __init__(self, threads: int = 0) -> None:
        self.compiler = find_compiler()
        self.threads = (threads or default_threads()) if self.compiler.openmp else 1
        source = resources.files("fluxloom.device").joinpath("runtime.c").read_text()
        library = load_library(source, name="runtime", flags=compile_flags(self.compiler))
        _watch_forks(_address(library, "fl_end_threads"))
        function = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_void_p)
        self.runtime = function(_address(library, "fl_sequence"))
        self._helpers = NativeUnit(library, {"fl_reset": _address(library, "fl_reset")}, {}, False, 0.0)

    def allocate(self, nbytes: int, stagger: int = 0) -> Buffer:
        """Return a zeroed buffer in host memory."""
        return Buffer(nbytes, stagger=stagger)

    def compile(self, text: str, symbols: Sequence[str], name: str, *, contract: bool = True) -> NativeUnit:
        """Compile a translation unit and look up its functions.

        Raises
        ------
        CompileError
            With the path of the source and what the compiler said.
        """
        extra = () if contract else _WITHOUT_FMA.get((self.compiler.family, platform.machine()), ())
        flags = compile_flags(self.compiler, contract=contract, extra=(*extra, *level_flags(text)))
        library = load_library(text, name=name[:_NAME_LENGTH], flags=flags, report=True)
        addresses = {s: _address(library, s) for s in symbols}
        lines = vectorised_lines(library.report)
        return NativeUnit(library, addresses, lines, library.compiled, library.seconds)

    def sequencer(self, calls: Sequence[Call | Enqueued]) -> NativeSequencer:
        """Return a sequence of calls, replayed by one call into C where no function of the host is among them."""
        return NativeSequencer(self, calls)

    def reset_call(self, words: npt.NDArray[np.int64]) -> Call:
        """Return the call that sets every component of a global."""
        return Call("reset", self._helpers, words, (Launch("fl_reset"),))

    def describe(self) -> str:
        """Return architecture, threads and compiler."""
        return f"{platform.machine()}, {self.threads} threads, {self.compiler.name} {self.compiler.version}"


@functools.cache
def _watch_forks(address: int) -> None:
    """Let the function at an address end the threads of OpenMP before this process forks."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=ctypes.CFUNCTYPE(None)(address))


def _address(library: Any, symbol: str) -> int:
    value = ctypes.cast(getattr(library, symbol), ctypes.c_void_p).value
    assert value is not None
    return value
