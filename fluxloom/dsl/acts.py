"""What ranks tell each other of what they run: loops, chains and exchanges, in words that are the same on all ranks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from zlib import crc32

import numpy.typing as npt

__all__ = ["exchange_act", "kind_of", "loop_act", "reset_act", "value_act"]

_SHOWN = 4
"""Components of a value that are shown."""


def loop_act(bound: Any) -> bytes:
    """Return a loop in words: its set, its arguments with types and shapes, its constants, its kernel."""
    pairs = zip(bound.kernel.parameters, bound.arguments, strict=True)
    arguments = ", ".join(f"{parameter.access.name} {_argument(arg)}" for parameter, arg in pairs)
    constants = "".join(f", {name}={value!r}" for name, value in bound.constants.items())
    kernel = f"{bound.kernel.name} {bound.lowered.digest[:8]}"
    return f"loop {bound.name} over {bound.over.name} ({arguments}{constants}; kernel {kernel})".encode()


def kind_of(data: Any) -> str:
    """Return name, type and components of values."""
    return f"{data.name} {data.scalar.name}{list(data.shape) if data.shape else ''}"


def _argument(argument: Any) -> str:
    if argument.map is None:
        return kind_of(argument.data)
    leg = f"[{argument.leg}]" if argument.leg >= 0 else f" of {argument.map.legs} legs"
    return f"{kind_of(argument.data)} through {argument.map.name}{leg}"


def reset_act(target: Any, value: float) -> bytes:
    """Return a reset in words."""
    return f"reset of {kind_of(target)} to {value!r}".encode()


def value_act(array: npt.NDArray[Any]) -> bytes:
    """Return a value in words, a long one by its digest."""
    return repr(array.tolist()).encode() if array.size <= _SHOWN else b"%08x" % crc32(array.tobytes())


def exchange_act(dats: Iterable[Any], masked: Iterable[Any], back: Iterable[Any]) -> bytes:
    """Return an exchange in words: dats of which all, some numbers, or some numbers back travel."""
    parts = [*map(kind_of, dats), *(f"numbers of {kind_of(d)}" for d in masked), *(f"{kind_of(d)} back" for d in back)]
    return f"the first exchange of {', '.join(parts)}".encode()
