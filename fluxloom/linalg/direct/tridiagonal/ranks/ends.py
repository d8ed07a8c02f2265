"""Calls on both sides of the exchange of divided lines: what condenses a rank's rows, and what joins the ends again."""

from __future__ import annotations

from fluxloom.device.base import Call
from fluxloom.dsl.context import Context
from fluxloom.dsl.declare.arrays import DeviceArray
from fluxloom.dsl.run.primitive import Operand, Primitive
from fluxloom.linalg.direct.tridiagonal.form import Form, Lines
from fluxloom.linalg.direct.tridiagonal.matrices import Matrices
from fluxloom.linalg.direct.tridiagonal.ranks.messages import Near, Where
from fluxloom.linalg.direct.tridiagonal.ranks.text import condense, join_ends

__all__ = ["Ends"]


class Ends:
    """Makes the calls for the rows of a rank.

    Parameters
    ----------
    context
        Whose device runs them.
    lines, form
        This rank's rows.
    name
        For profilers.
    """

    def __init__(self, context: Context, lines: Lines, form: Form, name: str) -> None:
        self._context, self._lines, self._form, self._name = context, lines, form, name

    def condense(
        self, matrices: Matrices, y: tuple[DeviceArray, int] | None, where: Where, systems: tuple[int, int],
        pinned: int, scale: float,
    ) -> Call:  # fmt: skip
        """Return the call that writes the two equations of some systems.

        Parameters
        ----------
        matrices
            Coefficients.
        y
            Right-hand sides and the first of them; None: the coefficients of the equations alone are written.
        where
            Target.
        systems
            The first one, and how many.
        pinned, scale
            See `fluxloom.linalg.direct.tridiagonal.form.parameters`.
        """
        lines, device, rhs = self._lines, self._context.device, 0 if y is None else self._form.rhs
        coefficients = y is None or self._form.coefficients == "each"
        function = condense(
            self._form, lines, rhs, coefficients=coefficients, items=device.items,
            c_inner=matrices.distances(self._form, lines)[1],
        )
        memory, first = (where.memory, 0) if y is None else y
        values: dict[str, Operand] = {
            "y": memory, **matrices.arrays(self._form), "ends": where.memory, **self._sizes(matrices), "y_first": first,
            "begin": systems[0], "count": systems[1], "pinned": pinned,
            "ends_first": where.first, "share": where.share, "block_step": where.block_step, "scale": scale,
        }  # fmt: skip
        name = f"{self._name} condense"
        return Primitive(device, [function], name).call("fl_condense", values, systems[1], name)

    def join(
        self, matrices: Matrices, y: tuple[DeviceArray, int], near: Near, share: int, sides: tuple[bool, bool],
        inverse: float,
    ) -> Call:  # fmt: skip
        """Return the call that takes the rows beside this rank's to the right-hand side.

        Parameters
        ----------
        matrices, y
            As for `condense`.
        near, share
            Where the solutions of those rows are; systems of a block.
        sides
            Whether there are any before and after this rank's rows.
        inverse
            One over the scale of the right-hand side.
        """
        device, name = self._context.device, f"{self._name} join"
        memory, left, right, block_step = near
        values: dict[str, Operand] = {
            "y": y[0], "a": matrices.a, "c": matrices.c, "near": memory, **self._sizes(matrices), "y_first": y[1],
            "systems": self._lines.systems, "left": int(sides[0]), "right": int(sides[1]),
            "left_first": left, "right_first": right, "share": share, "block_step": block_step, "inverse": inverse,
        }  # fmt: skip
        function = join_ends(self._form, items=device.items)
        return Primitive(device, [function], name).call("fl_join_ends", values, self._lines.systems, name)

    def _sizes(self, matrices: Matrices) -> dict[str, Operand]:
        lines = self._lines
        steps = dict(zip(("c_row", "c_inner", "c_outer"), matrices.distances(self._form, lines), strict=True))
        return {
            "rows": lines.rows, "inner": lines.inner, "row_step": lines.row_step, "inner_step": lines.inner_step,
            "outer_step": lines.outer_step, "rhs_step": lines.rhs_step, "threads": self._context.threads, **steps,
        }  # fmt: skip
