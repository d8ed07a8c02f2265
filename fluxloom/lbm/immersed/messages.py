"""Values of some cells, between fields of a grid and a dense message: all of one component, then all of the next."""

from __future__ import annotations

from collections.abc import Sequence
from string import Template

import numpy as np
import numpy.typing as npt

from fluxloom.codegen.primitive import Function, Parameter
from fluxloom.device.base import Buffer
from fluxloom.dsl.context import Context
from fluxloom.dsl.dats import Dat
from fluxloom.dsl.primitive import Operand, Primitive, Steps

__all__ = ["Copies", "copy_functions"]

_BLOCK = 128

_ITEM = Template("""
    const int64_t i = FL_ITEM;
    if (i < count) {
        const int64_t cell = cells[i];
        for (int64_t a = 0; a < components; a++) $copy
    }
""")

_PARALLEL = Template("""
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int64_t i = 0; i < count; i++) {
        const int64_t cell = cells[i];
        for (int64_t a = 0; a < components; a++) $copy
    }
""")

_FIELD, _MESSAGE = "field[a * step + cell]", "message[begin + a * count + i]"


def copy_functions(real: str, *, items: bool) -> tuple[Function, Function]:
    """Return the functions ``collect``, from a field into a message, and ``distribute``, back.

    Parameters
    ----------
    real
        C type of values.
    items
        Whether functions are kernels of work items.
    """
    numbers = tuple(Parameter("int64_t", n) for n in ("count", "components", "step", "begin", "threads"))
    cells, body = Parameter("int32_t *", "cells"), _ITEM if items else _PARALLEL

    def function(symbol: str, source: str, target: str, text: str) -> Function:
        values = Parameter(f"{real} *", source), Parameter(f"{real} *", target, written=True)
        return Function(symbol, (*numbers, cells, *values), body.substitute(copy=text), _BLOCK)

    return (
        function("collect", "field", "message", f"{_MESSAGE} = {_FIELD};"),
        function("distribute", "message", "field", f"{_FIELD} = {_MESSAGE};"),
    )


class Copies:
    """Copies between fields and a message.

    Parameters
    ----------
    context
        Of the fields.
    fields
        One array a component each; in a message one behind the other.
    back
        Whether values go from the message to the fields.
    """

    def __init__(self, context: Context, fields: Sequence[Dat], *, back: bool) -> None:
        self._context, self._fields, self._back = context, tuple(fields), back
        real = fields[0].scalar.c
        functions = copy_functions(real, items=context.device.items)
        self._primitive = Primitive(context.device, functions, f"immersed_messages_{real}")
        self._held: tuple[object, ...] = ()
        self._count = 0
        self._steps: Steps | None = None

    def __call__(self, cells: Buffer | npt.NDArray[np.int32], count: int, message: Buffer) -> None:
        """Ask the device to copy the values of some cells.

        Parameters
        ----------
        cells
            Elements of the set of the fields, at least ``count``.
        message
            Of the same device, long enough.
        """
        if not count:
            return
        held = (cells, message, *(field.buffer for field in self._fields))
        same = self._held and count == self._count and all(a is b for a, b in zip(held, self._held, strict=True))
        if self._steps is None or not same:
            self._steps, self._count, self._held = self._made(cells, count, message), count, held
        self._context.settle()
        self._steps()
        if self._back:
            for field in self._fields:
                field.version += 1

    def _made(self, cells: Buffer | npt.NDArray[np.int32], count: int, message: Buffer) -> Steps:
        """Return a call for each field."""
        calls, begin = [], 0
        for field in self._fields:
            values: dict[str, Operand] = {
                "count": count, "components": field.dim, "step": field.stride, "begin": begin,
                "threads": self._context.threads, "cells": cells, "field": field.buffer, "message": message,
            }  # fmt: skip
            symbol = "distribute" if self._back else "collect"
            calls.append(self._primitive.call(symbol, values, count, f"immersed {symbol}"))
            begin += count * field.dim
        buffers = [field.buffer for field in self._fields]
        listed = [cells] if isinstance(cells, Buffer) else []
        # Both are written in part, so that the other values have to be there as well.
        reads = [*listed, *buffers, message]
        return Steps(self._primitive.device, calls, reads, buffers if self._back else [message])
