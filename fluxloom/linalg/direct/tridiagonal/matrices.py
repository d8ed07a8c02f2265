"""The matrices of many tridiagonal systems, as solvers are given them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError
from fluxloom.device.base import Buffer
from fluxloom.dsl.declare.arrays import DeviceArray
from fluxloom.linalg.direct.tridiagonal.form import Form, Lines

__all__ = ["Matrices", "Values", "check_type"]

Values = DeviceArray | npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class Matrices:
    """Diagonals of many systems, from the first value of their memory on. Tables of NumPy are sent to the device.

    Attributes
    ----------
    a, b, c
        The diagonals.
    mass, inner_shift, outer_shift
        With ``"shifted"``: the main diagonal is ``b[i] + mass[i] (inner_shift[s] + outer_shift[o])``.
    steps
        Distances between rows, neighbours along the inner and along the outer axis of systems, in the diagonals; by
        default those of the lines with ``"each"``, else ``(1, 0, 0)``.
    """

    a: Values
    b: Values
    c: Values
    mass: Values | None = None
    inner_shift: Values | None = None
    outer_shift: Values | None = None
    steps: tuple[int, int, int] | None = field(default=None, kw_only=True)

    def arrays(self, form: Form) -> dict[str, Values]:
        """Return all that functions are given, by name; those that the form does not read are a zero.

        Raises
        ------
        SolverError
            If values have another type than the systems, or something that shifted matrices need is missing.
        """
        shifts = {"mass": self.mass, "inner_shift": self.inner_shift, "outer_shift": self.outer_shift}
        found: dict[str, Values] = {"a": self.a, "b": self.b, "c": self.c}
        if form.coefficients == "shifted":
            found |= {name: values for name, values in shifts.items() if values is not None}
            missing = [name for name in shifts if name not in found]
            if missing:
                raise SolverError(f"tridiagonal: shifted matrices need {', '.join(missing)} as well")
        for name, values in found.items():
            check_type(name, values, form)
        unread: Values = np.zeros(1, form.dtype)
        return {name: found.get(name, unread) for name in (*"abc", *shifts)}

    def distances(self, form: Form, lines: Lines) -> tuple[int, int, int]:
        """Return the steps."""
        own = (lines.row_step, lines.inner_step, lines.outer_step) if form.coefficients == "each" else (1, 0, 0)
        return own if self.steps is None else self.steps

    @property
    def buffers(self) -> list[Buffer]:
        """Memory of the diagonals that are on the device."""
        arrays = (self.a, self.b, self.c, self.mass, self.inner_shift, self.outer_shift)
        return [values.buffer for values in arrays if isinstance(values, DeviceArray)]


def check_type(name: str, values: Values, form: Form) -> None:
    """Raise `SolverError` where values have another type than the systems."""
    if values.dtype != form.dtype:
        raise SolverError(
            f"tridiagonal: {name} is of {values.dtype}, and the systems are of {form.dtype}: give it as that"
        )
