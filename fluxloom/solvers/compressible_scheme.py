"""How a compressible flow is computed: flux, gradients, limiter and the stages of a step."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite

from fluxloom.core.errors import SolverError, did_you_mean
from fluxloom.core.strategies import Strategy, require_strategy
from fluxloom.fv.compressible_fluxes import Flux, Roe
from fluxloom.fv.limiters import Limiter, Venkatakrishnan
from fluxloom.fv.time_schemes import SSPRK3, TimeScheme

__all__ = ["CompressibleScheme", "SpalartAllmaras", "Turbulence"]

LOOPS = ("faces", "cells")
STORAGE = ("float64", "float32")


class Turbulence(Strategy, what="turbulence model"):
    """A turbulence model."""


@dataclass(frozen=True)
class SpalartAllmaras(Turbulence, name="spalart-allmaras"):
    """Spalart and Allmaras: one equation; see `fluxloom.fv.spalart_allmaras`."""


@dataclass(frozen=True)
class CompressibleScheme:
    """How a compressible flow is computed.

    Attributes
    ----------
    flux
        Numerical flux; see `fluxloom.fv.compressible_fluxes`.
    order
        1: states are constant in a cell; 2: linear, by least squares.
    limiter
        Of the gradients; see `fluxloom.fv.limiters`. None: they are not limited. Without effect for order 1.
    time
        Explicit scheme; see `fluxloom.fv.time_schemes`.
    cfl
        ``dt = 2 cfl V / sum A (|u_n| + c)`` with the sum over the faces of a cell.
    low_mach
        Whether jumps of the normal velocity are damped less where flow is slow, below about Mach 0.3.
    turbulence
        A model, which needs a gas with a viscosity and the distances from the wall; None: none.
    loops
        What fluxes are looped over: ``"faces"``, where a face stores its flux and cells add up, or ``"cells"``, where
        both cells of a face find it, which is slower wherever it was measured. Results agree to round-off.
    storage
        Of slopes, their weights and the ways to faces: ``"float64"`` or ``"float32"``, which moves less. States, fluxes
        and all sums are float64, and so are normals and areas: the faces of a cell stay closed.

    Raises
    ------
    SolverError
        If a value is of another kind, a name is unknown or a number out of range.
    """

    flux: Flux = Roe()
    order: int = 2
    limiter: Limiter | None = Venkatakrishnan()
    time: TimeScheme = SSPRK3()
    cfl: float = 0.8
    low_mach: bool = False
    turbulence: Turbulence | None = None
    loops: str = "faces"
    storage: str = "float64"

    def __post_init__(self) -> None:
        require_strategy("flux", self.flux, Flux)
        require_strategy("limiter", self.limiter, Limiter, optional=True)
        require_strategy("time", self.time, TimeScheme)
        require_strategy("turbulence", self.turbulence, Turbulence, optional=True)
        for what, given, known in ("loops", self.loops, LOOPS), ("storage", self.storage, STORAGE):
            if given not in known:
                raise SolverError(f"{what}: {given!r} is unknown{did_you_mean(given, known)} ({', '.join(known)})")
        if self.order not in (1, 2):
            raise SolverError(f"order: 1 or 2 is wanted, not {self.order!r}")
        if not (isfinite(self.cfl) and self.cfl > 0.0):
            raise SolverError(f"cfl: a number above 0 is wanted, not {self.cfl!r}")
