"""Many tridiagonal systems of one shape: the method, its working memory, its calls, and what went wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError
from fluxloom.device.base import Call, Device, RemoteBuffer
from fluxloom.dsl.context import Context
from fluxloom.dsl.declare.arrays import DeviceArray
from fluxloom.dsl.run.primitive import Operand, Primitive
from fluxloom.linalg.arguments import device_of, whole
from fluxloom.linalg.direct.tridiagonal.form import Form, Lines
from fluxloom.linalg.direct.tridiagonal.lost_row import lost_row
from fluxloom.linalg.direct.tridiagonal.matrices import Matrices, Values, check_type
from fluxloom.linalg.direct.tridiagonal.methods import method_of

__all__ = ["MOST_TOGETHER", "TridiagonalSolver"]

MOST_TOGETHER = 8
"""Right-hand sides that are eliminated together at most."""


class TridiagonalSolver:
    r"""Solves ``a_i u_{i-1} + b_i u_i + c_i u_{i+1} = y_i`` for many systems, as often as it is asked.

    Parameters
    ----------
    device
        Runs generated code: a device, its name, or a context; the processor for None.
    lines
        Where the values of ``y`` lie; those of ``x`` have the same steps.
    form
        Type, kind of matrices, whether periodic, right-hand sides.
    method
        ``"auto"``, or ``"thomas"``, ``"cr"``, ``"pcr"``, ``"cr_pcr"``; on devices of work items also
        ``"partition"`` and ``"chunks"``.
    threads
        That share the systems, on processors; 0: all that the device has.
    switch
        With ``"cr_pcr"``: rows of the reduced system where the parallel form takes over; 0: chosen.

    Attributes
    ----------
    method
        What ``auto`` has chosen, or what was asked for.

    Raises
    ------
    SolverError
        If the method is none of the device's, or cannot solve such systems; if a number is none.
    DeviceUnavailable
        If the device runs no generated code.
    """

    def __init__(
        self, device: Device | Context | str | None, lines: Lines, form: Form, method: str = "auto", *,
        threads: int = 1, switch: int = 0,
    ) -> None:  # fmt: skip
        threads = whole(threads, "tridiagonal: threads", 0, " (0: all that the device has)")
        switch = whole(switch, "tridiagonal: switch", 0, " (0: chosen)")
        device = device_of(device)
        threads = threads or int(getattr(device, "threads", 1))
        if lines.rows < 1 or lines.systems < 0:
            raise SolverError(f"tridiagonal: {lines.systems} systems of {lines.rows} rows: give one row at least")
        if not 1 <= form.rhs <= MOST_TOGETHER or form.rhs != lines.rhs:
            raise SolverError(
                f"tridiagonal: {lines.rhs} right-hand sides in lines and {form.rhs} in form: give the same number, up "
                f"to {MOST_TOGETHER}"
            )
        self.device, self.lines, self.form = device, lines, form
        self._method = method_of(device, form, lines, method, switch, threads)
        self.method, self._threads = self._method.name, threads
        self._code = code = self._method.code(form, lines)
        self._primitive = Primitive(device, code.functions, f"tridiagonal_{self.method}", code.helpers)
        self._work = DeviceArray.zeros(device, (max(1, code.words),), form.dtype)
        self._status = DeviceArray.zeros(device, (1,), np.int32)
        self._last: tuple[Matrices, int] | None = None

    @property
    def nbytes(self) -> int:
        """Bytes of working memory."""
        return self._work.buffer.nbytes

    def calls(
        self, *, y: DeviceArray, x: DeviceArray, matrices: Matrices, scale: float = 1.0, pinned: int = -1,
        y_first: int | None = None, x_first: int | None = None,
    ) -> list[Call]:  # fmt: skip
        """Return the calls that solve all systems once, for `Steps`.

        Parameters
        ----------
        y, x
            Right-hand sides and solutions; may be the same memory.
        matrices
            The diagonals.
        scale
            Factor of the right-hand sides.
        pinned
            Number of the system whose first diagonal value counts twice: settles the constant of a singular one.
        y_first, x_first
            Number of the first value in the memory; by default that of the lines, or of the array where that is zero.

        Raises
        ------
        SolverError
            If values have another type than the systems, or something that shifted matrices need is missing.
        """
        check_type("y", y, self.form)
        check_type("x", x, self.form)
        lines, steps = self.lines, matrices.distances(self.form, self.lines)
        values: dict[str, Operand] = {
            **matrices.arrays(self.form), "y": y, "x": x, "work": self._work, "status": self._status,
            "rows": lines.rows, "inner": lines.inner, "outer": lines.outer,
            "y_first": lines.first or y.first if y_first is None else y_first,
            "x_first": lines.first or x.first if x_first is None else x_first,
            "row_step": lines.row_step, "inner_step": lines.inner_step, "outer_step": lines.outer_step,
            "rhs_step": lines.rhs_step, "c_row": steps[0], "c_inner": steps[1], "c_outer": steps[2],
            "pinned": pinned, "scale": float(scale),
        }  # fmt: skip
        self._last = matrices, pinned
        if not lines.systems:
            return []
        name = f"tridiagonal {self.method}"
        return [
            self._primitive.call(function.symbol, values, count, name)
            for function, count in zip(self._code.functions, self._code.items, strict=True)
        ]

    def check(self) -> None:
        """Wait for the device, and complain of a system that could not be solved.

        Raises
        ------
        SolverError
            With the last such system, and the row whose pivot vanishes or is no finite number.
        """
        buffer = self._status.buffer
        self.device.synchronize()
        buffer.device(write=True)
        if isinstance(buffer, RemoteBuffer):
            buffer.written()
        found = int(self._status.host()[0])
        if not found:
            return
        self._status.assign(np.zeros(1, np.int32))
        raise SolverError(self._complaint(found - 1))

    def describe(self) -> str:
        """Return one line: systems, method, working memory."""
        lines, form = self.lines, self.form
        kind = "periodic " if form.periodic else ""
        sides = f", {form.rhs} right-hand sides each" if form.rhs > 1 else ""
        order = "interleaved" if lines.interleaved else "one after the other"
        return (
            f"{lines.systems} {kind}tridiagonal systems of {lines.rows} rows of {form.real}, {order}{sides}: method "
            f"{self.method}, {self.nbytes / 2**20:.1f} MiB of working memory"
        )

    def __str__(self) -> str:
        return self.describe()

    def _complaint(self, system: int) -> str:
        a, b, c = self._diagonals(system)
        row = lost_row(a, b, c, periodic=self.form.periodic, dtype=self.form.dtype)
        head = f"tridiagonal: method {self.method} cannot solve system {system} of {self.lines.systems}"
        if row >= 0:
            reached = "the matrix" if row + 1 == self.lines.rows else f"the part of the matrix up to row {row}"
            return (
                f"{head}: its pivot in row {row} vanishes or is no finite number. Look at a, b and c there; if "
                f"they are as they should be, {reached} is singular, and systems that need an exchange of rows are for "
                f"scipy.linalg.solve_banded"
            )
        advice = "" if self.method == "thomas" else "; or choose method 'thomas', which meets other pivots"
        return (
            f"{head}: no pivot of elimination from the first row on vanishes, so that its right-hand side has values "
            f"that are no finite numbers, or that a value grows beyond what {self.form.dtype} holds: look at y{advice}"
        )

    def _diagonals(self, system: int) -> tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any]]:
        """Return the diagonals of a system."""
        assert self._last is not None
        matrices, pinned = self._last
        outer, inner = divmod(system, self.lines.inner)
        row, across, far = matrices.distances(self.form, self.lines)
        at = outer * far + inner * across + np.arange(self.lines.rows) * row
        flat = {name: self._flat(values) for name, values in matrices.arrays(self.form).items()}
        a, b, c = (flat[name][at].astype(np.float64) for name in "abc")
        if self.form.coefficients == "shifted":
            shift = float(flat["inner_shift"][inner]) + float(flat["outer_shift"][outer])
            b += flat["mass"][: self.lines.rows] * shift
        if system == pinned:
            b[0] *= 2
        return a, b, c

    def _flat(self, values: Values) -> npt.NDArray[Any]:
        """Return the values of an operand as they lie in memory."""
        if isinstance(values, DeviceArray):
            return values.buffer.host().view(self.form.dtype)
        return np.ravel(values, order="K")
