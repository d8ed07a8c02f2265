"""The function for arrays: whose memory it is, how systems lie in it, and the solver that fits."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from fluxloom.core.errors import SolverError
from fluxloom.device.base import Device
from fluxloom.dsl.declare.arrays import DeviceArray
from fluxloom.dsl.declare.dats import Dat
from fluxloom.dsl.declare.named_device import open_device_of
from fluxloom.dsl.run.primitive import Steps
from fluxloom.linalg.direct.tridiagonal.form import Form, Lines
from fluxloom.linalg.direct.tridiagonal.layout import Layout, layout_of
from fluxloom.linalg.direct.tridiagonal.matrices import Matrices
from fluxloom.linalg.direct.tridiagonal.solver import MOST_TOGETHER, TridiagonalSolver

__all__ = ["solve"]

_REALS = {np.dtype(np.float64): "double", np.dtype(np.float32): "float"}


def solve(
    a: Any,
    b: Any,
    c: Any,
    y: Any,
    *,
    axis: int = -1,
    periodic: bool = False,
    method: str = "auto",
    out: Any = None,
    check: bool = True,
) -> Any:
    r"""Solve many tridiagonal systems ``a_i u_{i-1} + b_i u_i + c_i u_{i+1} = y_i``.

    Parameters
    ----------
    a, b, c
        The diagonals, all of one shape: that of ``y``; or ``(n,)``, which all systems share; or that of ``y`` without
        some of its first axes, along which the right-hand sides of the same systems stand. ``a`` of the first row and
        ``c`` of the last are read in periodic systems only, but they are there in all: off-diagonals of ``n - 1``
        values are refused, since ``(n - 1,)`` may as well be a mistake in ``n`` (put a zero before ``a`` and behind
        ``c``). Periodic systems of two rows have both couplings to the other row, one row is the number ``a + b + c``.
    y
        Right-hand sides: float32 or float64, as the diagonals are. Whole numbers are refused: they say neither in which
        precision to solve nor could ``out=y`` hold the solution. NumPy arrays are solved on the processors (also where
        a program uses the ``reference`` device, which runs no compiled code), arrays of CuPy on their GPU, dats on the
        device of their context.
    axis
        Of ``y``, along which the rows of a system stand.
    periodic
        Whether the last row is a neighbour of the first.
    method
        ``"auto"``, ``"thomas"``, ``"cr"``, ``"pcr"``, ``"cr_pcr"``; on GPUs also ``"partition"`` and ``"chunks"``.
    out
        An array or dat of the shape, type and device of ``y``; may be ``y``.
    check
        Whether to wait and to complain of systems that cannot be solved.

    Returns
    -------
    array
        ``out``, or a new array of the device's library.

    Raises
    ------
    SolverError
        For other types and shapes; when a system has no pivot in some row, or its values are no numbers.
    DatError
        If arrays are in memory of different devices.

    Notes
    -----
    There is no exchange of rows: diagonally dominant systems are safe. Arrays whose axes are in different orders, or
    with gaps, are copied first. For the same shape again and again, `TridiagonalSolver` keeps code and memory.

    Source: R. W. Hockney, C. R. Jesshope, "Parallel computers 2", Hilger (1988), section 5.4.
    """
    for name, values in zip("abcy", (a, b, c, y), strict=True):
        if isinstance(values, np.ma.MaskedArray):
            raise SolverError(f"tridiagonal: {name} is a masked array: fill the masked values, {name}.filled(value)")
    device = y.context.device if isinstance(y, Dat) else open_device_of(y)
    right = DeviceArray.of(device, y)
    axis = _checked_axis(axis, right.shape)
    target = _target(device, y, right, out)
    diagonals = tuple(
        _diagonal(device, name, values, right, axis) for name, values in zip("abc", (a, b, c), strict=True)
    )
    _same_shape(diagonals)
    layout = layout_of(device, right, target, diagonals, axis)
    _run(device, layout, periodic, method, check)
    if layout.x is not target:
        device.assign(target.array(), layout.x.array(write=False))
    if out is None:
        return target.array()
    if target.copied:
        device.assign(out, target.array(write=False))
    return out


def _run(device: Device, layout: Layout, periodic: bool, method: str, check: bool) -> None:
    """Solve with as many right-hand sides together as the methods take."""
    real = _REALS[layout.y.dtype]
    solvers: list[TridiagonalSolver] = []
    for begin in range(0, layout.rhs, MOST_TOGETHER):
        count = min(MOST_TOGETHER, layout.rhs - begin)
        rows, inner, outer = layout.steps
        lines = Lines(
            layout.rows, layout.inner, layout.outer, count, rows, inner, outer, layout.rhs_step if count > 1 else 0
        )
        form = Form(real, "shared" if layout.shared else "each", periodic, count)
        solver = TridiagonalSolver(device, lines, form, method, threads=getattr(device, "threads", 1))
        matrices = Matrices(*layout.diagonals, steps=layout.coefficient_steps)
        calls = solver.calls(
            y=layout.y, x=layout.x, matrices=matrices,
            y_first=layout.y.first + begin * layout.rhs_step, x_first=layout.x.first + begin * layout.rhs_step,
        )  # fmt: skip
        Steps(device, calls, [layout.y.buffer, layout.x.buffer, *matrices.buffers], [layout.x.buffer])()
        solvers.append(solver)
    if check:
        for solver in solvers:
            solver.check()


def _checked_axis(axis: int, shape: tuple[int, ...]) -> int:
    if isinstance(axis, bool) or not isinstance(axis, int | np.integer):
        raise SolverError(f"tridiagonal: axis={axis!r}: give the number of one axis of y")
    if not shape or not -len(shape) <= axis < len(shape):
        raise SolverError(f"tridiagonal: axis={axis}, and y has the shape {shape}: give one of its axes")
    if not prod(shape):
        raise SolverError(f"tridiagonal: y has the shape {shape}: it has no values; give one system at least")
    return int(axis) % len(shape)


def _check_type(name: str, array: DeviceArray, wanted: np.dtype[Any] | None = None) -> None:
    if wanted is None and array.dtype not in _REALS:
        raise SolverError(f"tridiagonal: {name} is of {array.dtype}: give it as float64 or float32")
    if wanted is not None and array.dtype != wanted:
        raise SolverError(f"tridiagonal: {name} is of {array.dtype}, and y of {wanted}: give both as one type")


def _target(device: Device, y: Any, right: DeviceArray, out: Any) -> DeviceArray:
    """Return where the solutions go."""
    _check_type("y", right)
    if out is None:
        return DeviceArray.zeros(device, right.shape, right.dtype)
    if out is y:
        return right
    if not isinstance(out, Dat | DeviceArray) and not hasattr(out, "shape"):
        raise SolverError(f"tridiagonal: out is a {type(out).__name__}: give an array of the shape of y, {right.shape}")
    found = DeviceArray.of(device, out)
    _check_type("out", found, right.dtype)
    if found.shape != right.shape:
        raise SolverError(f"tridiagonal: out has the shape {found.shape}, and y {right.shape}: give both the same")
    if isinstance(out, np.ndarray) and not out.flags.writeable:
        raise SolverError("tridiagonal: out is read-only: give an array that can be written")
    return found


def _diagonal(device: Device, name: str, values: Any, y: DeviceArray, axis: int) -> DeviceArray:
    """Return a diagonal in the memory of the device; its shape fits y."""
    found = DeviceArray.of(device, values)
    _check_type(name, found, y.dtype)
    n, leading = y.shape[axis], len(y.shape) - len(found.shape)
    fits = found.shape == (n,) or (0 <= leading <= axis and found.shape == y.shape[leading:])
    if not fits:
        raise SolverError(
            f"tridiagonal: {name} has the shape {found.shape}, and y {y.shape} with {n} rows along axis {axis}: give "
            f"{name} the shape ({n},), which all systems share, or that of y with or without its first axes"
        )
    return found


def _same_shape(diagonals: tuple[DeviceArray, ...]) -> None:
    shapes = [array.shape for array in diagonals]
    if len(set(shapes)) != 1:
        told = ", ".join(f"{name} {shape}" for name, shape in zip("abc", shapes, strict=True))
        raise SolverError(f"tridiagonal: the diagonals have different shapes ({told}): give all three the same")
