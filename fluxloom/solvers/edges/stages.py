"""The classical method of Runge and Kutta, as flow and transport on edges step by it."""

from __future__ import annotations

from numbers import Real

from fluxloom.core.errors import SolverError

__all__ = ["REACH", "STAGES", "stable_step"]

REACH = 2.78
"""Of the method along the negative axis; 2.82 along the imaginary one."""

STAGES = ((0, 0.5, 1.0 / 6.0), (1, 0.5, 1.0 / 3.0), (1, 1.0, 1.0 / 3.0), (2, 0.0, 1.0 / 6.0))
"""Of each stage its place, 0 of the first and 2 of the last, how far ahead the next one is, and its weight."""


def stable_step(rate: float, courant: float) -> float:
    """Return ``courant`` of the reach of the method over a bound of the eigenvalues, s; infinite without one.

    Parameters
    ----------
    rate
        The bound, 1/s.
    courant
        Part of the largest stable step.

    Raises
    ------
    SolverError
        If ``courant`` is not positive.
    """
    if not isinstance(courant, Real) or not courant > 0.0:
        raise SolverError(f"courant: a positive number is wanted, not {courant!r}")
    return courant * REACH / rate if rate > 0.0 else float("inf")
