"""How a compressible flow is computed: flux, gradients, limiter and the stages of a step."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from typing import Any, Literal

from fluxloom.core.errors import SolverError, did_you_mean
from fluxloom.core.strategies import Strategy, is_ours, require_strategy
from fluxloom.dsl.declare.dats import Dat
from fluxloom.dsl.run.loop import Loop
from fluxloom.fv.compressible.fluxes import Flux, Roe
from fluxloom.fv.compressible.viscous_flux import TurbulenceModel
from fluxloom.fv.gradients.limiters import Limiter, Venkatakrishnan
from fluxloom.fv.time_schemes import SSPRK3, TimeScheme

__all__ = ["CompressibleScheme", "FluxLoops", "OverFaces"]

STORAGE = ("float64", "float32")
GRADIENTS = ("faces", "green-gauss", "least-squares")


class FluxLoops(Strategy, what="loop of fluxes", group="fluxloom.flux_loops"):
    """What the fluxes of a compressible flow are looped over."""

    def loops(self, balance: Any, w: Dat) -> list[Loop]:
        """Return the loops that set residuals and speeds of the cells, from states, gradients and their shares.

        Parameters
        ----------
        balance
            The `fluxloom.solvers.compressible.residual.ResidualLoops` that they are part of: its ``flow`` has all
            values.
        w
            The states.
        """
        raise NotImplementedError(f"{type(self).__name__} has to define loops(balance, w)")


@dataclass(frozen=True)
class OverFaces(FluxLoops, name="faces"):
    """A face stores its flux, and cells add up those around them: half the arithmetic of finding it on both sides."""

    def loops(self, balance: Any, w: Dat) -> list[Loop]:
        """Return the loop over faces and that over cells."""
        return balance.over_faces(w)


@dataclass(frozen=True)
class CompressibleScheme:
    """How a compressible flow is computed.

    Attributes
    ----------
    flux
        Numerical flux; see `fluxloom.fv.compressible.fluxes`.
    order
        1: states are constant in a cell; 2: linear, by least squares.
    limiter
        Of the gradients; see `fluxloom.fv.gradients.limiters`. None: they are not limited. Without effect for order 1.
    time
        Explicit scheme; see `fluxloom.fv.time_schemes`.
    cfl
        ``dt = 2 cfl V / sum A (|u_n| + c)`` with the sum over the faces of a cell.
    low_mach
        Whether jumps of the normal velocity are damped less where flow is slow, below about Mach 0.3.
    turbulence
        A model, which needs a gas with a viscosity and the distances from the wall; None: none.
    loops
        What fluxes are looped over: `OverFaces`, where a face stores its flux and cells add up, or the `FluxLoops` of
        another package.
    storage
        Of gradients, their weights and the ways to faces: ``"float64"`` or ``"float32"``, which moves less. States,
        fluxes and all sums are float64, and so are normals and areas: the faces of a cell stay closed.
    gradients
        ``"faces"``: by least squares of the elements across the faces of a cell; of all that share a node with it
        ``"least-squares"``, or by the means at its nodes ``"green-gauss"``; see `fluxloom.fv.gradients.node_gradients`.

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
    turbulence: TurbulenceModel | None = None
    loops: FluxLoops = OverFaces()
    storage: str = "float64"
    gradients: Literal["faces", "green-gauss", "least-squares"] = "faces"

    def __post_init__(self) -> None:
        require_strategy("flux", self.flux, Flux)
        require_strategy("limiter", self.limiter, Limiter, optional=True)
        require_strategy("time", self.time, TimeScheme)
        require_strategy("turbulence", self.turbulence, TurbulenceModel, optional=True)
        self._try_formulas()
        require_strategy("loops", self.loops, FluxLoops)
        if self.storage not in STORAGE:
            hint = did_you_mean(self.storage, STORAGE)
            raise SolverError(f"storage: {self.storage!r} is unknown{hint} ({', '.join(STORAGE)})")
        if self.gradients not in GRADIENTS:
            hint = did_you_mean(str(self.gradients), GRADIENTS)
            raise SolverError(f"gradients: {self.gradients!r} is unknown{hint} ({', '.join(GRADIENTS)})")
        if self.order not in (1, 2):
            raise SolverError(f"order: 1 or 2 is wanted, not {self.order!r}")
        if not (isfinite(self.cfl) and self.cfl > 0.0):
            raise SolverError(f"cfl: a number above 0 is wanted, not {self.cfl!r}")

    def _try_formulas(self) -> None:
        """Try formulas of others before they are compiled."""
        trials: tuple[tuple[Any, str], ...] = (
            (self.flux, "try_flux"), (self.limiter, "try_limiter"), (self.turbulence, "try_turbulence"),
        )  # fmt: skip
        for value, trial in trials:
            if value is not None and not is_ours(value):
                from fluxloom.fv.compressible import formula_trials

                getattr(formula_trials, trial)(value)
