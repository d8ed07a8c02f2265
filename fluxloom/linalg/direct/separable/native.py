"""A program on a device: its functions compiled, its tables sent, its stages as calls."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.dtypes import scalar
from fluxloom.core.errors import DeviceUnavailable
from fluxloom.device.base import Call, Device
from fluxloom.dsl.declare.arrays import DeviceArray
from fluxloom.dsl.run.primitive import Operand, Primitive
from fluxloom.linalg.direct.separable.coefficients import null_weights
from fluxloom.linalg.direct.separable.jobs import Chains, Stage, Sums
from fluxloom.linalg.direct.separable.program import Program
from fluxloom.linalg.direct.separable.text import SLICES, WIDTH, Shape, choose_shape, functions, helpers

__all__ = ["Machine"]

_FEW = 8
"""Sums of so few columns are one item each; longer ones are shared by items."""


class Machine:
    """Runs stages of a program for a batch of planes.

    Parameters
    ----------
    device
        Where.
    program
        Of what the stages are.
    mapping
        Who solves a system, see `Shape`.
    dtype
        Of values: float64 or float32.
    shifts : (planes,)
        What is added to the diagonal in each plane.
    threads
        Where there are no items; 0: as many as the device has.
    chunk
        See `choose_shape`.

    Attributes
    ----------
    u : (planes, columns, rows)
        The memory.
    shape
        How systems lie on work items.

    Raises
    ------
    DeviceUnavailable
        If the device runs no generated code or has no such values.
    SolverError
        If the mapping cannot solve the systems.
    """

    def __init__(
        self, device: Device, program: Program, mapping: str, dtype: npt.DTypeLike, shifts: npt.NDArray[Any],
        threads: int = 0, chunk: int = 0,
    ) -> None:  # fmt: skip
        kind = scalar(dtype)
        if why := device.refuses(kind):
            raise DeviceUnavailable(f"{device.name}: {why}")
        self.device, self.problem, self.dtype, self.planes = device, program.problem, np.dtype(dtype), shifts.size
        problem, columns = program.problem, program.columns
        self.shape: Shape = choose_shape(problem.x.length, problem.x.periodic, kind.c, mapping, chunk)
        self._threads = 1 if device.items else int(threads or getattr(device, "threads", 1))
        text = functions(self.shape, device.items), "separable", helpers(self.shape, device.items)
        self._primitive = Primitive(device, *text)
        self._step = columns * self.shape.rows
        jobs = max((stage.size for stage in program.stages if not isinstance(stage, Sums)), default=1)
        words = self.shape.words(jobs * self.planes, self._threads, device.items)
        self._work = DeviceArray.zeros(device, (words,), self.dtype)
        self.u = DeviceArray.zeros(device, (self.planes, columns, self.shape.rows), self.dtype)
        rows = problem.x
        self._rows = {name: self.real(getattr(rows, name)) for name in "abc"}
        self._shift = self.real(shifts)
        self._places: dict[int, DeviceArray] = {}

    def real(self, values: npt.ArrayLike) -> DeviceArray:
        """Return values on the device, in its precision."""
        array = np.array(values, dtype=self.dtype)
        found = DeviceArray.of(self.device, array if array.size else np.zeros(1, self.dtype))
        found.buffer.device()  # sent now: sequences look after the memory of users alone
        return found

    def stage(self, stage: Stage, pinned_plane: int) -> Call:
        """Return the call of a stage; in ``pinned_plane`` the problem is singular (-1: in none)."""
        if isinstance(stage, Sums):
            return self._sums(stage)
        return self._chains(stage, pinned_plane)

    def _call(self, symbol: str, values: Mapping[str, Operand], items: int, name: str = "") -> Call:
        given: dict[str, Operand] = {"u": self.u, "planes": self.planes, "plane_step": self._step, **values}
        if not self.device.items:
            given["threads"] = self._threads
        return self._primitive.call(symbol, given, items, name)

    def _table(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        kind = np.int32 if values.dtype.kind == "i" else self.dtype
        found = np.ascontiguousarray(values.reshape(-1), dtype=kind)
        return found if found.size else np.zeros(1, kind)

    def _chains(self, stage: Chains, pinned_plane: int) -> Call:
        tables = ("columns", "weights", "targets", "begin", "roots", "gains", "kept")
        values: dict[str, Operand] = {name: self._table(getattr(stage, name)) for name in tables}
        values |= {**self._rows, "shift": self._shift, "work": self._work}
        values |= {
            "jobs": stage.size, "longest": stage.longest,
            "pinned": stage.pinned if pinned_plane >= 0 else -1, "pinned_plane": pinned_plane,
        }  # fmt: skip
        return self._call("chain", values, self.shape.launch(stage.size * self.planes), stage.name)

    def _sums(self, stage: Sums) -> Call:
        values: dict[str, Operand] = {
            name: self._table(getattr(stage, name)) for name in ("columns", "weights", "targets", "begin")
        }
        values |= {"sums": stage.size, "keep": int(stage.keep)}
        rows, count = self.shape.rows, stage.size * self.planes
        if self.device.items and stage.longest > _FEW:
            return self._call("deep_sums", values, -(-rows // WIDTH) * count * SLICES * WIDTH, stage.name)
        return self._call("sums", values, count * rows, stage.name)

    # ---------------------------------------------------------------------------------- in and out
    def load(self, f: DeviceArray, plane: int = 0, scale: float = 1.0) -> Call:
        """Return the call that copies ``scale * f``, shape ``(planes, columns, rows)`` or ``(columns, rows)``, in.

        Its first plane becomes that of number ``plane``.
        """
        return self._outside("load", f, plane, {"scale": scale})

    def store(self, f: DeviceArray, plane: int = 0) -> Call:
        """Return the call that copies the solution in as many planes out."""
        return self._outside("store", f, plane, {})

    def _outside(self, symbol: str, f: DeviceArray, first: int, more: Mapping[str, Operand]) -> Call:
        count = self.problem.y.length
        planes = f.shape[0] if len(f.shape) == 3 else 1
        plane, column, row = f.strides if len(f.shape) == 3 else (0, *f.strides)
        values: dict[str, Operand] = {
            "planes": planes, "f": f, "start": first * self._step, "first": f.first, "f_plane": plane,
            "f_column": column, "f_row": row, "count": count, **more,
        }  # fmt: skip
        return self._call(symbol, values, planes * count * self.shape.rows)

    def settle(self, mean: DeviceArray, plane: int) -> list[Call]:
        """Return the calls that take the weighted mean of a plane away from it, and leave it in ``mean[0]``."""
        count = self.problem.y.length
        common: dict[str, Operand] = {"mean": mean, "count": count, "plane": plane}
        given: dict[str, Operand] = {
            **common, "row_weights": self.real(null_weights(self.problem.x)),
            "column_weights": self.real(null_weights(self.problem.y)),
            "partial": DeviceArray.zeros(self.device, (count,), self.dtype),
        }  # fmt: skip
        group = next(f.block for f in functions(self.shape, True) if f.symbol == "mean")
        first = [self._call("column_sums", given, count * group)] if self.device.items else []
        return [*first, self._call("mean", given, group), self._call("subtract", common, count * self.shape.rows)]

    def move(self, columns: npt.NDArray[Any], box: DeviceArray, *, back: bool) -> Call:
        """Return the call that copies some columns to ``box``, shape ``(planes, columns, rows)``, or back from it."""
        values: dict[str, Operand] = {
            "box": box, "columns": self._table(columns), "count": columns.size, "back": int(back),
        }  # fmt: skip
        return self._call("move", values, self.planes * columns.size * self.shape.rows, "unpack" if back else "pack")
