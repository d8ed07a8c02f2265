"""How a compressible flow is computed: flux, slopes, limiter and the stages of a step."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite

from fluxloom.core.errors import SolverError, did_you_mean
from fluxloom.fv.compressible_kernels import AUSM, HLLC, ROE, RUSANOV
from fluxloom.fv.compressible_slopes import BARTH, NOT_LIMITED, VENKATAKRISHNAN

__all__ = ["FLUXES", "LIMITERS", "LOOPS", "STAGES", "STORAGE", "TURBULENCE", "CompressibleScheme"]

FLUXES = {"rusanov": RUSANOV, "roe": ROE, "hllc": HLLC, "ausm+-up": AUSM}
LIMITERS = {"none": NOT_LIMITED, "barth-jespersen": BARTH, "venkatakrishnan": VENKATAKRISHNAN}

TURBULENCE = ("none", "spalart-allmaras")
LOOPS = ("faces", "cells")
STORAGE = ("float64", "float32")

_OPTIMISED = (0.0695, 0.1602, 0.2898, 0.5060, 1.0)
STAGES: dict[str, tuple[tuple[float, float, float], ...]] = {
    "rk2": ((1.0, 0.0, 0.5), (1.0, 0.0, 1.0)),
    "ssp-rk3": ((1.0, 0.0, 1.0), (0.75, 0.25, 0.25), (1.0 / 3.0, 2.0 / 3.0, 2.0 / 3.0)),
    "rk5-first": tuple((1.0, 0.0, c) for c in (0.0533, 0.1263, 0.2375, 0.4414, 1.0)),
    "rk5": tuple((1.0, 0.0, c) for c in _OPTIMISED),
}
"""Stages ``U = a U_start + b U + c dt R / V``.

``rk2`` is the midpoint rule, ``ssp-rk3`` that of C.-W. Shu and S. Osher (J. Comput. Phys. 77, 1988), ``rk5`` five
stages for steady flow with upwind fluxes of second order (B. van Leer, C.-H. Tai, K. G. Powell, AIAA 89-1933).
"""


@dataclass(frozen=True)
class CompressibleScheme:
    """How a compressible flow is computed.

    Attributes
    ----------
    flux
        ``"roe"``, ``"hllc"``, ``"ausm+-up"`` or ``"rusanov"``.
    order
        1: states are constant in a cell; 2: linear, by least squares.
    limiter
        ``"venkatakrishnan"``, ``"barth-jespersen"`` or ``"none"``; without effect for order 1.
    smoothness, length
        ``K`` and the unit of length of Venkatakrishnan's limiter: changes below ``(K h / length)^(3/2)`` of the flow's
        own size are not limited, where ``h`` is twice the way to the face. A length of 0 is that of the walls
        (`fluxloom.fv.symmetry_planes.reference_length`).
    unlimited
        Changes above this part of the flow's own size are limited in any case: cells far away are large.
    time
        ``"ssp-rk3"``, ``"rk2"`` or ``"rk5"``.
    cfl
        ``dt = 2 cfl V / sum A (|u_n| + c)`` with the sum over the faces of a cell.
    entropy_fix
        Of Roe's flux: sound waves slower than this part of the fastest one are rounded (Harten).
    cutoff
        Mach number below which AUSM+-up damps no less.
    low_mach
        Whether jumps of the normal velocity are damped less where flow is slow, below about Mach 0.3.
    turbulence
        ``"none"``, or ``"spalart-allmaras"``, which needs a gas with a viscosity and the distances from the wall.
    loops
        What fluxes are looped over: ``"faces"``, where a face stores its flux and cells add up, or ``"cells"``, where
        both cells of a face find it, which is slower wherever it was measured. Results agree to round-off.
    storage
        Of slopes, their weights and the ways to faces: ``"float64"`` or ``"float32"``, which moves less. States, fluxes
        and all sums are float64, and so are normals and areas: the faces of a cell stay closed.

    Raises
    ------
    SolverError
        If a name is unknown or a number out of range.
    """

    flux: str = "roe"
    order: int = 2
    limiter: str = "venkatakrishnan"
    smoothness: float = 5.0
    length: float = 0.0
    unlimited: float = 0.03
    time: str = "ssp-rk3"
    cfl: float = 0.8
    entropy_fix: float = 0.05
    cutoff: float = 0.1
    low_mach: bool = False
    turbulence: str = "none"
    loops: str = "faces"
    storage: str = "float64"

    def __post_init__(self) -> None:
        for what, given, known in (
            ("flux", self.flux, FLUXES),
            ("limiter", self.limiter, LIMITERS),
            ("time", self.time, STAGES),
            ("turbulence", self.turbulence, TURBULENCE),
            ("loops", self.loops, LOOPS),
            ("storage", self.storage, STORAGE),
        ):
            if given not in known:
                raise SolverError(f"{what}: {given!r} is unknown{did_you_mean(given, known)} ({', '.join(known)})")
        if self.order not in (1, 2):
            raise SolverError(f"order: 1 or 2 is wanted, not {self.order!r}")
        for name, least in (("smoothness", 0.0), ("unlimited", 0.0), ("cfl", 0.0), ("cutoff", 0.0)):
            value = getattr(self, name)
            if not (isfinite(value) and value > least):
                raise SolverError(f"{name}: a number above {least:g} is wanted, not {value!r}")
        if not (isfinite(self.length) and self.length >= 0.0):
            raise SolverError(f"length: a number of at least 0 is wanted, not {self.length!r}")
        if not 0.0 <= self.entropy_fix < 1.0:
            raise SolverError(f"entropy_fix: at least 0 and less than 1 is wanted, not {self.entropy_fix!r}")

    @property
    def tuning(self) -> float:
        """The number that the flux takes."""
        return self.cutoff if self.flux == "ausm+-up" else self.entropy_fix
