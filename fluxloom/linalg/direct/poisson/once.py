"""One solve of Poisson's equation in one call."""

from __future__ import annotations

from typing import Any

import numpy as np

from fluxloom.core.errors import DatError, SolverError
from fluxloom.device.base import Device
from fluxloom.dsl.declare.arrays import DeviceArray
from fluxloom.dsl.declare.dats import Dat
from fluxloom.dsl.declare.named_device import open_device_of
from fluxloom.dsl.declare.sets import Grid
from fluxloom.linalg.direct.poisson.plan import Plan

__all__ = ["solve"]


def solve(
    f: Any,
    spacing: Any,
    bc: Any = "periodic",
    *,
    centring: Any = "cell",
    shift: float = 0.0,
    out: Any = None,
    check: bool = True,
) -> Any:
    r"""Return the solution of :math:`(L + \sigma) u = f` on a box: `Plan` for one right-hand side.

    Parameters
    ----------
    f
        An array of NumPy or CuPy, or a dat: it decides shape, type (whole numbers become float64) and device.
    spacing, bc, centring, shift
        See `Plan`.
    out
        Where the solution goes; None: a new array, or dat, like ``f``.
    check
        Wait for the solution, and look at it: it takes a pass over ``f`` and one over the solution, in host memory.
        Where ``f`` is not finite, the solution is not either, and is returned as it is.

    Raises
    ------
    SolverError, DatError
        As `Plan` does; and SolverError with ``check``, if a pivot vanished, or the solution is not finite though
        ``f`` is. DatError if ``f`` is no array and no dat of a grid.

    Examples
    --------
    >>> u = fl.poisson.solve(f, 1 / 64, bc="dirichlet")
    """
    f = _right_hand_side(f)
    shape = f.set.shape + f.shape if isinstance(f, Dat) else tuple(f.shape)
    dtype = f.scalar.numpy if isinstance(f, Dat) else f.dtype
    device = f.context.device if isinstance(f, Dat) else open_device_of(f)
    plan = Plan(shape, spacing, bc, centring=centring, shift=shift, dtype=dtype, device=device)
    if not check:
        return plan(f, out)
    if not _finite(plan.device, f):
        return plan(f, out)
    found = plan(f, out)
    plan.check()
    if not _finite(plan.device, found):
        raise SolverError(
            f"poisson: the solution is not finite, though f is: it is beyond {plan.dtype}, or the problem is nearly "
            f"singular; scale f, or change the shift {shift!r}"
        )
    return found


def _right_hand_side(f: Any) -> Any:
    """Return a right-hand side as an array or dat; lists and whole numbers as float64."""
    if isinstance(f, Dat):
        if not isinstance(f.set, Grid):
            raise DatError(
                f"poisson: dat {f.name!r} is on the set {f.set.name!r}: give a dat of a grid, or make a Plan"
            )
        if f.context.distributed:
            raise DatError(f"poisson: dat {f.name!r} is divided over ranks: make a Plan(..., device=context)")
        return f
    if isinstance(f, np.ma.MaskedArray):
        raise DatError("poisson: f is a masked array: fill the masked values, f.filled(value)")
    if isinstance(f, list | tuple | int | float) or (isinstance(f, np.ndarray) and f.dtype.kind in "iub"):
        try:
            return np.array(f, dtype=np.float64)
        except (TypeError, ValueError):
            raise DatError("poisson: f is a list that is no array of numbers: give rows of one length") from None
    if not hasattr(f, "shape") or not hasattr(f, "dtype"):
        raise DatError(f"poisson: f is an array or a dat of a grid, not {f!r}")
    return f


def _finite(device: Device, values: Any) -> bool:
    """Whether values are finite; waits for the device."""
    return bool(np.isfinite(DeviceArray.of(device, values).host()).all())
