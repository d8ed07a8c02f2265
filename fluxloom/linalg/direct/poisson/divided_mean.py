"""The mean of the constant mode of a singular problem, along lines that are divided over ranks.

Its systems have a solution when the weighted mean of the right-hand side is zero, which is determined up to
a constant: the mean is taken from both, before and behind the solve. Each time every rank sends one sum to the others.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.codegen.bodies import group_sum, over
from fluxloom.codegen.primitive import Function, Parameter
from fluxloom.device.base import Call, Enqueued
from fluxloom.dsl.context import Context
from fluxloom.dsl.declare.arrays import DeviceArray
from fluxloom.dsl.declare.transports import Transport
from fluxloom.dsl.run.primitive import Primitive
from fluxloom.linalg.direct.transforms.ranks import gathered

__all__ = ["DividedMean"]

_BLOCK = 256
_SLOT = 2
"""Values that a message has room for: 8 bytes at least."""

_TAKE = f"""REAL total = 0;
        for (int64_t k = 0; k < ranks; k++) total += sums[{_SLOT} * k];
        values[i * step] -= total;
        if (i == 0) mean[0] = total * (REAL)gain;"""


class DividedMean:
    """Takes the weighted mean from the constant mode's right-hand side, and from its solution. Collective to make.

    Parameters
    ----------
    context
        The ranks; each has a part of the line.
    values
        This rank's part of the line, ``(rows,)``: right-hand side before, solution behind the solve.
    weights
        Of its rows; those of all ranks sum up to one.
    gain
        Mean of all values of the problem for a mean of one along the line.

    Attributes
    ----------
    mean
        What was taken from the right-hand side at the last solve, ``(1,)``.
    before, after
        Items of a sequence, before and behind the solve.
    bytes_sent, messages
        That this rank sends each time.
    """

    def __init__(self, context: Context, values: DeviceArray, weights: npt.NDArray[Any], gain: float) -> None:
        self._context, self._values = context, values
        self._weights = np.ascontiguousarray(weights, dtype=values.dtype)
        self._primitive = Primitive(
            context.device, _functions(values.scalar.c, context.device.items), "poisson mean on ranks"
        )
        self.mean, unread = (DeviceArray.zeros(context.device, (1,), values.dtype) for _ in range(2))
        self._transports: list[Transport] = []
        self.before = self._taken(self.mean, gain, "poisson mean")
        self.after = self._taken(unread, 1.0, "poisson centre")
        self.messages = 2 * (context.comm.size - 1)
        self.bytes_sent = self.messages * _SLOT * values.dtype.itemsize

    def _taken(self, mean: DeviceArray, gain: float, name: str) -> list[Call | Enqueued]:
        """Return the items that sum up, tell the other ranks, and subtract."""
        context, values = self._context, self._values
        rank, ranks, piece = context.comm.rank, context.comm.size, _SLOT * values.dtype.itemsize
        sums = DeviceArray.zeros(context.device, (ranks, _SLOT), values.dtype)
        transport = gathered(context, range(ranks), sums.buffer, 0, piece)
        self._transports.append(transport)
        line: dict[str, Any] = {"values": values, "sums": sums, "n": values.shape[0], "step": values.strides[0]}
        total = {**line, "weights": self._weights, "place": _SLOT * rank}
        taken = {**line, "mean": mean, "ranks": ranks, "gain": float(gain)}
        return [
            self._primitive.call("fl_line_sum", total, 1, name), *transport.items(name),
            self._primitive.call("fl_line_take", taken, values.shape[0], name),
        ]  # fmt: skip

    def close(self) -> None:
        """Give back what carries the messages."""
        for transport in self._transports:
            transport.close()


def _functions(real: str, items: bool) -> list[Function]:
    def values(name: str, written: bool = False) -> Parameter:
        return Parameter(f"{real} *", name, written)

    line = [Parameter("int64_t", name) for name in ("n", "step")]
    total = (values("values"), values("weights"), values("sums", True), *line, Parameter("int64_t", "place"))
    take = (
        values("values", True), values("sums"), values("mean", True), *line, Parameter("int64_t", "ranks"),
        Parameter("double", "gain"),
    )  # fmt: skip
    block = _BLOCK if items else 1
    text = group_sum("weights[i] * values[i * step]", "n", block, real)
    return [
        Function("fl_line_sum", total, text + "    if (FL_MEMBER == 0) sums[place] = part[0];", block),
        Function("fl_line_take", take, over({"i": "n"}, _TAKE, items=items).replace("REAL", real), block),
    ]
