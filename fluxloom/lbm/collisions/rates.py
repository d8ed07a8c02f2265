"""Rates of relaxation, and the record of them that kernels take."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import sqrt

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError
from fluxloom.lbm.lattices import SOUND_SPEED_SQUARED, Lattice
from fluxloom.lbm.units import storage_unit

__all__ = ["Rates", "Relaxation", "check_rates", "check_smagorinsky", "relaxation", "shear_rate"]


@dataclass(frozen=True)
class Rates:
    """Parts of the distance to equilibrium that one collision removes, between 0 and 2.

    Attributes
    ----------
    shear
        Of the stresses without their trace: the viscosity.
    bulk
        Of the trace.
    odd
        Of moments of odd orders, 3 and up.
    even
        Of moments of even orders, 4 and up.
    smagorinsky
        Constant of the subgrid model; 0: none.
    """

    shear: float
    bulk: float
    odd: float
    even: float
    smagorinsky: float = 0.0


@dataclass(frozen=True)
class Relaxation:
    """What kernels know of the rates: numbers that change at run time, rounded such that nothing is lost.

    Attributes
    ----------
    unit
        What populations in memory are multiplied by.
    even_gain, odd_gain
        ``w rate_even`` and ``3 w rate_odd``, with the least weight ``w``: what equilibrium gives to both parts.
    rest_gain
        What the rounding of ``even_gain`` would take from the mass.
    curvature
        ``1.5 even_gain / odd_gain^2``.
    half_odd, half_even
        Half of what is kept of the odd and the even part: ``(1 - rate) / 2``.
    shear_kept, bulk_kept
        What is kept of the stresses and of their trace: ``1 - rate``.
    eddy
        ``18 sqrt(2) C^2``, see `fluxloom.lbm.collisions.orders`.
    """

    unit: float
    even_gain: float
    odd_gain: float
    rest_gain: float
    curvature: float
    half_odd: float
    half_even: float
    shear_kept: float
    bulk_kept: float
    eddy: float


def check_rates(name: str, rates: Mapping[str, float | None]) -> None:
    """Raise `SolverError` if a rate that was set is out of range."""
    for which, rate in rates.items():
        if rate is not None and not 0 < rate < 2:
            raise SolverError(f"{name}: the rate {which} is between 0 and 2, not {rate!r}")


def check_smagorinsky(name: str, constant: float) -> None:
    """Raise `SolverError` if the constant of the subgrid model is out of range."""
    if not 0 <= constant < 1:
        raise SolverError(f"{name}: the Smagorinsky constant is in [0, 1), not {constant!r} (0.1 to 0.2 is usual)")


def shear_rate(viscosity: float) -> float:
    """Return ``omega_s = 1 / (nu / c_s^2 + 1/2)``, ``c_s^2 = 1/3``.

    Raises
    ------
    SolverError
        If the viscosity is not positive and finite.
    """
    if not 0 < viscosity < float("inf"):
        raise SolverError(f"the viscosity must be positive, not {viscosity!r} (lattice units: cells^2 a step)")
    return 1.0 / (viscosity / SOUND_SPEED_SQUARED + 0.5)


def relaxation(lattice: Lattice, rates: Rates, dtype: npt.DTypeLike) -> Relaxation:
    """Return what kernels take, rounded to the arithmetic of populations that are stored as ``dtype``.

    With ``n = 1 / w``, ``2 half_odd + (n / 3) odd_gain`` and ``2 half_even + n even_gain + rest_gain`` are one, the
    former exactly, the latter but for the rounding of ``rest_gain``, which is small itself: sums of populations have
    no trend, in single precision neither. For that the odd rate is rounded to a multiple of ``n / 3`` places of the
    last bit.
    """
    real = np.float32 if np.dtype(dtype).itemsize < 8 else np.float64
    digits, count = (24 if real is np.float32 else 53), round(1 / lattice.least)
    third = count // 3
    one = 1 << (digits + (third & -third).bit_length() - 1)
    pieces = round(rates.odd * one / third)
    odd_gain, odd = pieces / one, (one - third * pieces) / one
    even = float(real(1.0 - rates.even))
    even_gain = float(real((1.0 - even) / count))
    rest_gain = 1 - Fraction(even) - count * Fraction(even_gain)
    return Relaxation(
        unit=storage_unit(dtype),
        even_gain=even_gain,
        odd_gain=odd_gain,
        rest_gain=float(real(float(rest_gain))),
        curvature=float(real(1.5 * even_gain / odd_gain**2)),
        half_odd=0.5 * odd,
        half_even=0.5 * even,
        shear_kept=float(real(1.0 - rates.shear)),
        bulk_kept=float(real(1.0 - rates.bulk)),
        eddy=float(real(18.0 * sqrt(2.0) * rates.smagorinsky**2)),
    )
