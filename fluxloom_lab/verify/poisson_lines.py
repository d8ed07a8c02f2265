"""Tridiagonal systems: every method against the residual that backward stability allows."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np

from fluxloom.core.errors import FluxloomError
from fluxloom.dsl.context import Context
from fluxloom.dsl.declare.arrays import DeviceArray
from fluxloom.dsl.run.primitive import Steps
from fluxloom.linalg.direct.tridiagonal import Form, Lines, Matrices, TridiagonalSolver
from fluxloom_lab.verify.base import Check, Tell

__all__ = ["METHODS", "line_checks"]

METHODS = ("thomas", "partition", "pcr", "cr", "cr_pcr")
ROWS = (1, 2, 3, 17, 64, 257)
ROWS_FULL = (1, 2, 3, 8, 17, 64, 100, 257, 512, 1000, 1024, 4096, 10007)
_SYSTEMS = 37
_UNITS = 64.0
_SOURCE = "residual of random dominant systems"


def line_checks(context: Context, full: bool, tell: Tell) -> Iterator[Check]:
    """Yield a check for each method, precision, and open or periodic systems: the worst over sizes and layouts.

    Sizes and layouts are part of the text that is compiled: unless ``full``, half of the sizes are laid out in each
    way, the others in periodic systems.
    """
    for method, precision, periodic in product(METHODS, ("float64", "float32"), (False, True)):
        errors, refused = [], 0
        for rows, interleaved in _cases(full, periodic):
            try:
                errors.append(_residual(context, method, precision, periodic, rows, interleaved))
            except FluxloomError:
                refused += 1
        if not errors:
            continue  # the device has no such method
        name = f"{method}, {precision}{', periodic' if periodic else ''}"
        note = f", {refused} refused" if refused else ""
        tell(f"lines, {name}: residual in units of round-off {max(errors):.2g}, {len(errors)} cases{note}")
        yield Check(f"lines, {name}: residual over eps", max(errors), 0.0, _UNITS, _SOURCE)


def _cases(full: bool, periodic: bool) -> list[tuple[int, bool]]:
    """Return rows, and whether those of different systems alternate in memory."""
    if full:
        return list(product(ROWS_FULL, (True, False)))
    return [(rows, (place % 2 == 0) != periodic) for place, rows in enumerate(ROWS)]


def _residual(context: Context, method: str, precision: str, periodic: bool, rows: int, interleaved: bool) -> float:
    """Return the largest residual of random systems, in units of eps times ``|A| |x|``."""
    rng = np.random.default_rng(rows)
    shape = (rows, _SYSTEMS) if interleaved else (_SYSTEMS, rows)
    a, b, c, y = (rng.uniform(-1.0, 1.0, shape).astype(precision) for _ in range(4))
    b += np.where(b > 0, 3, -3).astype(precision)
    lines = Lines(rows, _SYSTEMS, row_step=_SYSTEMS if interleaved else 1, inner_step=1 if interleaved else rows)
    form = Form("double" if precision == "float64" else "float", periodic=periodic)
    solver = TridiagonalSolver(context.device, lines, form, method, threads=context.threads)
    arrays = [DeviceArray.of(context.device, values) for values in (a, b, c, y)]
    x = DeviceArray.zeros(context.device, shape, precision)
    calls = solver.calls(y=arrays[3], x=x, matrices=Matrices(*arrays[:3]))
    Steps(context.device, calls, [array.buffer for array in arrays], [x.buffer])()
    solver.check()
    axis = 0 if interleaved else 1
    a, b, c, y, u = (np.moveaxis(values.astype(np.float64), axis, 0) for values in (a, b, c, y, x.host()))
    before, after = np.roll(u, 1, axis=0), np.roll(u, -1, axis=0)
    if not periodic:
        before[0] = after[-1] = 0.0
    residual = np.abs(a * before + b * u + c * after - y).max()
    size = (np.abs(a * before) + np.abs(b * u) + np.abs(c * after) + np.abs(y)).max()
    return float(residual / (size * np.finfo(precision).eps))
