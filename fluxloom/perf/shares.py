"""Parts of the work of unlike processes: from weights, from rates, and from runs with other parts."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite

from fluxloom.core.errors import FluxloomError

__all__ = ["shares_from_weights", "weights_from_rates", "weights_from_run"]


def shares_from_weights(weights: Sequence[float]) -> tuple[float, ...]:
    """Return the part of the elements that each process gets: ``w / Σ w``.

    Raises
    ------
    FluxloomError
        If a weight is negative or not finite, or none is positive.
    """
    if not all(isfinite(w) and w >= 0 for w in weights) or not any(weights):
        raise FluxloomError(f"weights {list(weights)}: they must be at least 0, and one positive")
    total = sum(weights)
    return tuple(w / total for w in weights)


def weights_from_rates(rates: Sequence[float]) -> tuple[float, ...]:
    """Return weights that give each process as much as it can do, the slowest 1.

    Parameters
    ----------
    rates
        Work a second of each process.

    Raises
    ------
    FluxloomError
        If a rate is not positive.
    """
    if not rates or not all(isfinite(rate) and rate > 0 for rate in rates):
        raise FluxloomError(f"rates {list(rates)}: they must be positive; measure each process first")
    return tuple(rate / min(rates) for rate in rates)


def weights_from_run(weights: Sequence[float], seconds: Sequence[float]) -> tuple[float, ...]:
    """Return the weights that one run with other weights suggests, the slowest process 1.

    Parameters
    ----------
    weights
        Those of the run.
    seconds
        Time that each process computed in it, waiting not counted. It is taken to be proportional to the share.

    Raises
    ------
    FluxloomError
        If there is not a positive weight and a positive time for each process.
    """
    if len(weights) != len(seconds) or not all(isfinite(s) and s > 0 for s in seconds):
        raise FluxloomError(f"{len(weights)} weights and the times {list(seconds)}: give a positive time for each")
    return weights_from_rates([share / s for share, s in zip(shares_from_weights(weights), seconds, strict=True)])
