"""Numbers that choose a shallow-water scheme, and those that sum up its state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fluxloom.core.errors import SolverError
from fluxloom.values.value import Value, value_of, vector_of

__all__ = ["FOREVER", "ShallowScheme", "Survey"]

FOREVER = 1.0e30
"""A time that never comes, seconds."""


@dataclass(frozen=True)
class ShallowScheme:
    """Numbers of the scheme.

    Attributes
    ----------
    order
        2: surface and velocity linear in the cells, limited; 1: constant.
    cfl
        Part of ``2 A / (P (|v| + c))``, the least over all cells (area, perimeter, velocity, wave speed), that a
        step takes. Waves are right up to 1 (first order) or 1/2 (second); no depth gets negative for any, see
        `fluxloom.fv.shallow.kernels.most_out`.
    gravity
        Metres per second squared.
    manning
        Manning's coefficient of friction, seconds per metre to the 1/3; 0: none.
    rain
        Rain, metres of water a second, at least 0: a value in x, y and t (docs/guide/values.md). It falls without
        momentum, on dry ground too; 3.6 mm an hour are 1e-6.
    wind_stress
        Stress of the wind on the water along x and y, N/m^2: values in x, y and t; of a wind ``W``, m/s, about ``1.2 C
        |W| W`` with ``C`` from 1e-3 to 3e-3. Empty: none. On water of less than a hundred times the depth of thin
        water it falls with the depth.
    density
        Of the water, kg/m^3, for the stress of the wind.
    dry
        Depth of thin water, as a part of the largest depth at the start: cells below it carry no waves, and
        their velocity is damped.
    longest
        Longest time step, seconds.
    dt
        Length of all steps, seconds; 0: they are chosen by `cfl`. The way to each time that has to be met (reports,
        gauges, events) has equal steps, no longer than this. One that is longer than `cfl` allows is refused, and ends
        the run where it comes to be so.

    Raises
    ------
    SolverError
        For numbers that make no scheme.
    """

    order: int = 2
    cfl: float = 0.5
    gravity: float = 9.81
    manning: float = 0.0
    rain: Any = 0.0
    wind_stress: tuple[Any, ...] = ()
    density: float = 1000.0
    dry: float = 1e-6
    longest: float = FOREVER
    dt: float = 0.0

    def __post_init__(self) -> None:
        if self.order not in (1, 2):
            raise SolverError(f"order must be 1 or 2, not {self.order}")
        for name in ("cfl", "gravity", "density", "dry", "longest"):
            if not getattr(self, name) > 0.0:
                raise SolverError(f"{name} must be positive, not {getattr(self, name)}")
        for name in ("manning", "dt"):
            if not 0.0 <= getattr(self, name) < FOREVER:
                raise SolverError(f"{name} must be a number of at least 0, not {getattr(self, name)}")
        if self.dt and self.longest < FOREVER:
            raise SolverError("give only one of dt and longest: with dt all steps have one length")
        _ = self.sources

    @property
    def sources(self) -> dict[str, Value]:
        """Rain, m/s, and the parts of the wind's stress, N/m^2; nothing where there is neither."""
        if self.rain == 0.0 and not self.wind_stress:
            return {}
        stress = vector_of(self.wind_stress, 2, "wind_stress")
        return {"rain": value_of(self.rain, "rain")} | {f"wind_stress.{k}": one for k, one in enumerate(stress)}


@dataclass(frozen=True)
class Survey:
    """The state of the water in a few numbers.

    Attributes
    ----------
    volume
        Cubic metres.
    inflow
        What has come in through the boundary since the start, less what has left.
    defect
        Volume less that of the start less ``inflow``, as a part of the volume at the start; round-off of a
        conservative scheme.
    change
        Root mean square of the change of depth since the last survey.
    surface
        Highest surface of wet cells, or None.
    speed
        Largest speed.
    """

    volume: float
    inflow: float
    defect: float
    change: float
    surface: float | None
    speed: float
