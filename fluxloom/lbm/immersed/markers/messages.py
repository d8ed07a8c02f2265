"""Values of some cells, between fields of a grid and a dense message: all of one component, then all of the next."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from fluxloom.codegen.bodies import over
from fluxloom.codegen.primitive import Function, Parameter
from fluxloom.device.base import Buffer
from fluxloom.dsl.context import Context
from fluxloom.dsl.declare.dats import Dat
from fluxloom.dsl.run.primitive import Operand, Primitive, Steps

__all__ = ["Copies", "copy_functions"]

_BLOCK = 128


def copy_functions(real: str, fields: int, *, items: bool) -> tuple[Function, Function]:
    """Return the functions ``collect``, from fields into a message, and ``distribute``, back.

    Parameters
    ----------
    real
        C type of values.
    fields
        How many there are; each has components ``parts`` and the distance ``step`` between two of them.
    items
        Whether functions are kernels of work items.
    """
    each = range(fields)
    numbers = ("count", "threads", *(f"{name}{k}" for k in each for name in ("parts", "step")))
    first = tuple(Parameter("int64_t", n) for n in numbers)

    def function(symbol: str, back: bool) -> Function:
        lines = ["const int64_t cell = cells[i];"]
        for k in each:
            begin = "".join(f"parts{j} * count + " for j in range(k))
            field, message = f"field{k}[a * step{k} + cell]", f"message[{begin}a * count + i]"
            copy = f"{field} = {message}" if back else f"{message} = {field}"
            lines.append(f"        for (int64_t a = 0; a < parts{k}; a++) {copy};")
        values = [Parameter(f"{real} *", f"field{k}", written=back) for k in each]
        values.append(Parameter(f"{real} *", "message", written=not back))
        cells = Parameter("int32_t *", "cells")
        body = over({"i": "count"}, "\n".join(lines), items=items, shared="count > 1")
        return Function(symbol, (*first, cells, *values), body, _BLOCK)

    return function("collect", False), function("distribute", True)


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
        functions = copy_functions(real, len(fields), items=context.device.items)
        self._primitive = Primitive(context.device, functions, f"immersed_messages_{len(fields)}_{real}")
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
        """Return the call."""
        values: dict[str, Operand] = {"count": count, "threads": self._context.threads, "cells": cells}
        values["message"] = message
        for k, field in enumerate(self._fields):
            values |= {f"parts{k}": field.dim, f"step{k}": field.stride, f"field{k}": field.buffer}
        symbol = "distribute" if self._back else "collect"
        call = self._primitive.call(symbol, values, count, f"immersed {symbol}")
        buffers = [field.buffer for field in self._fields]
        listed = [cells] if isinstance(cells, Buffer) else []
        # Both are written in part, so that the other values have to be there as well.
        reads = [*listed, *buffers, message]
        return Steps(self._primitive.device, [call], reads, buffers if self._back else [message])
