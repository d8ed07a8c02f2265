"""Primitives: generated functions that are no loops, compiled for a device, and sequences of their calls."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.codegen.primitive import Function, primitive_unit
from fluxloom.core.errors import DeviceUnavailable, FluxloomError
from fluxloom.device.base import Buffer, Call, Device, Enqueued, Launch, RemoteBuffer
from fluxloom.dsl.declare.arrays import DeviceArray

__all__ = ["Operand", "Primitive", "Steps"]

Operand = DeviceArray | Buffer | npt.NDArray[Any] | int | float
"""What a parameter is given: memory of the device, a read-only table, or a number."""


class Primitive:
    """Functions compiled for one device.

    Parameters
    ----------
    device
        Runs generated code.
    functions
        What is compiled, as one unit.
    name
        For messages, profilers and files.
    helpers, contract
        See `primitive_unit`.

    Raises
    ------
    DeviceUnavailable
        If the device runs no generated code.
    CompileError
        With the path of the source and what the compiler said.
    """

    def __init__(
        self, device: Device, functions: Sequence[Function], name: str, helpers: str = "", *, contract: bool = True
    ) -> None:
        if not device.native:
            raise DeviceUnavailable(f"{name} is generated code, which the {device.name} device does not run")
        self.device, self.name = device, name
        unit = primitive_unit(functions, device.dialect, helpers, contract=contract)
        self.text = unit.text
        self.program = device.compile(unit.text, unit.symbols, name, contract=contract)
        self._functions = {function.symbol: function for function in functions}

    def call(self, symbol: str, values: Mapping[str, Operand], items: int = 1, name: str = "") -> Call:
        """Return the call of a function.

        Parameters
        ----------
        symbol
            Its name.
        values
            What each parameter is given, by name. Tables are sent to the device now; they and all memory are kept.
        items
            Work items wanted, on a device that runs kernels.
        name
            For profilers; by default that of the function.

        Raises
        ------
        FluxloomError
            When a parameter is given nothing, or a name is none of a parameter.
        """
        function = self._functions[symbol]
        names = [p.name for p in function.parameters]
        if set(names) != set(values):
            wrong = ", ".join(sorted(set(names) ^ set(values)))
            raise FluxloomError(f"{self.name}: {symbol} takes {', '.join(names)}; not as given: {wrong}")
        kept: list[Any] = []
        words = np.array([self._word(values[n], kept) for n in names], dtype=np.int64)
        call = Call(name or symbol, self.program, words, (Launch(symbol, items, function.block),), kept)
        kept.append(self)
        return call

    def place(self, symbol: str, parameter: str) -> int:
        """Return which word of a call of a function is that of a parameter."""
        return [p.name for p in self._functions[symbol].parameters].index(parameter)

    def _word(self, value: Operand, kept: list[Any]) -> int:
        if isinstance(value, DeviceArray):
            value = value.buffer
        if isinstance(value, Buffer):
            kept.append(value)
            return value.address
        if isinstance(value, np.ndarray):
            word, held = self.device.resident(value if value.size else np.zeros(1, value.dtype))
            kept += [value, held]
            return word
        if isinstance(value, float | np.floating):
            return int(struct.unpack("<q", struct.pack("<d", float(value)))[0])
        return int(value)


class Steps:
    """Calls in a fixed order, replayed as one; what they read is brought to the device before.

    Parameters
    ----------
    device
        Where they run.
    items
        The calls.
    reads, writes
        Memory whose values are read, and memory that is written. What is written in part has to be read too.
    """

    def __init__(
        self,
        device: Device,
        items: Sequence[Call | Enqueued],
        reads: Sequence[Buffer] = (),
        writes: Sequence[Buffer] = (),
    ) -> None:
        self.device, self.items = device, tuple(items)
        self.reads, self.writes = list(reads), list(writes)
        self._sequencer = device.sequencer(self.items)

    def __call__(self) -> None:
        """Run all of them once; returns when the device has been asked."""
        for buffer in self.reads:
            buffer.device()
        for buffer in self.writes:
            buffer.device(write=True)
            if isinstance(buffer, RemoteBuffer):
                buffer.written()
        self._sequencer()

    def refresh(self) -> None:
        """Take notice of changed words."""
        self._sequencer.refresh()

    @property
    def seconds(self) -> dict[str, float]:
        """Seconds spent so far in the calls of each name, where ``device.profile`` is set or time costs nothing."""
        self._sequencer.settle()
        found: dict[str, float] = {}
        for item, seconds in zip(self.items, self._sequencer.seconds.tolist(), strict=True):
            found[item.name] = found.get(item.name, 0.0) + seconds
        return found

    def reset(self) -> None:
        """Set the times to zero."""
        self._sequencer.reset()
