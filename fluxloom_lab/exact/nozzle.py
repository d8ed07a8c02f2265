r"""Flow of a perfect gas through a nozzle, in one dimension: subsonic, with a shock, or supersonic behind the throat.

References
----------
J. D. Anderson: *Modern Compressible Flow*, 3rd ed., McGraw-Hill 2003, sec. 5.4.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from math import sqrt
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq

from fluxloom.core.errors import SolverError
from fluxloom.fv.compressible.gas import (
    Gas,
    area_ratio,
    check_positive,
    mach_of_area_ratio,
    mach_of_pressure_ratio,
    normal_shock,
    plane_states,
    total_pressure_ratio,
    total_temperature_ratio,
)

__all__ = ["Nozzle"]

Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Nozzle:
    """A nozzle along the first axis between a reservoir and a pressure at its end.

    The gas is isentropic before and behind the shock, if there is one: the area and the pressure at the end decide.

    Attributes
    ----------
    area
        Of places ``(n,)``, positive and smooth: falls to the throat, then rises.
    inlet, throat, outlet
        Places of the ends and of the least area; the throat may be the outlet.
    total_pressure, total_temperature
        Of the reservoir.
    pressure
        At the outlet, below ``total_pressure``; has no influence when it is lower than behind a shock there.
    gas
        Its ratio of specific heats and gas constant.

    Raises
    ------
    SolverError
        For places that are not in order, an area that is smaller elsewhere than in the throat, and other pressures.
    """

    area: Callable[[Array], Array]
    inlet: float
    throat: float
    outlet: float
    total_pressure: float
    total_temperature: float
    pressure: float
    gas: Gas = field(default_factory=Gas)

    def __post_init__(self) -> None:
        check_positive(total_temperature=self.total_temperature, pressure=self.pressure)
        if not self.inlet < self.throat <= self.outlet:
            raise SolverError(
                f"a nozzle has inlet < throat <= outlet, not {self.inlet:g}, {self.throat:g} and {self.outlet:g}"
            )
        if not self.total_pressure > self.pressure:
            what = f"{self.total_pressure:g} and {self.pressure:g}"
            raise SolverError(f"a nozzle needs a total pressure above that at its end, got {what}")
        areas = self._area(np.linspace(self.inlet, self.outlet, 201))
        if not (areas >= (1.0 - 1e-9) * self._narrow).all() or self._narrow <= 0.0:
            raise SolverError(f"area: positive and least in the throat, at {self.throat:g}, is wanted")

    def _area(self, x: Array) -> Array:
        return np.asarray(self.area(x), dtype=np.float64)

    def _at(self, x: float) -> float:
        return float(self._area(np.array([x]))[0])

    @cached_property
    def _narrow(self) -> float:
        return self._at(self.throat)

    @cached_property
    def _widening(self) -> float:
        """Area of the outlet over that of the throat, not below 1."""
        return max(self._at(self.outlet) / self._narrow, 1.0)

    @cached_property
    def choked(self) -> bool:
        """Whether the throat is sonic: the pressure at the end is too low for subsonic flow throughout."""
        subsonic = mach_of_area_ratio(np.array([self._widening]), False, self.gas.gamma)
        return self.pressure < self.total_pressure / float(total_pressure_ratio(subsonic, self.gas.gamma)[0])

    @cached_property
    def shock(self) -> float | None:
        """Place of the shock, or None. The pressure behind it and the area of the outlet decide it without iterating.

        Mass flow and ``T_0`` are the same on both sides, so ``p A / (p_0 A*)`` at the outlet is known with the ``p_0``
        and ``A*`` before the shock, that is a Mach number (Anderson, eq. 5.28); it gives the loss of ``p_0``.
        """
        if not self.choked or self._widening == 1.0:
            return None
        gamma = self.gas.gamma
        fastest = float(mach_of_area_ratio(np.array([self._widening]), True, gamma)[0])
        last = normal_shock(fastest, gamma)
        if self.pressure <= last.pressure * self.total_pressure / float(total_pressure_ratio(fastest, gamma)):
            return None
        product = self.pressure * self._widening / self.total_pressure
        power = (2.0 / (gamma + 1.0)) ** ((gamma + 1.0) / (gamma - 1.0))
        square = (sqrt(1.0 + 2.0 * (gamma - 1.0) * power / product**2) - 1.0) / (gamma - 1.0)
        loss = self.pressure * float(total_pressure_ratio(sqrt(square), gamma)) / self.total_pressure
        before: Any = brentq(lambda m: normal_shock(m, gamma).total_pressure - loss, 1.0, fastest, xtol=1e-14)
        wanted = float(area_ratio(float(before), gamma)) * self._narrow
        place: Any = brentq(lambda x: self._at(x) - wanted, self.throat, self.outlet, xtol=1e-14)
        return float(place)

    @cached_property
    def _loss(self) -> float:
        """Total pressure behind the shock over that before it; 1 without one."""
        if self.shock is None:
            return 1.0
        ratio = np.array([self._at(self.shock) / self._narrow])
        return normal_shock(float(mach_of_area_ratio(ratio, True, self.gas.gamma)[0]), self.gas.gamma).total_pressure

    def mach(self, x: Array) -> Array:
        """Return the Mach numbers at places ``(n,)``."""
        x, gamma = np.asarray(x, dtype=np.float64), self.gas.gamma
        if not self.choked:
            end = mach_of_pressure_ratio(self.total_pressure / self.pressure, gamma)
            sonic = self._at(self.outlet) / float(area_ratio(end, gamma))
            return mach_of_area_ratio(self._area(x) / sonic, False, gamma)
        before = self._before(x)
        sonic = self._narrow / np.where(before, 1.0, self._loss)
        ratio = np.maximum(self._area(x) / sonic, 1.0)
        return mach_of_area_ratio(ratio, before & (x > self.throat), gamma)

    def _before(self, x: Array) -> Mask:
        """Whether places are before the shock, or there is none."""
        return np.asarray(x <= (np.inf if self.shock is None else self.shock), dtype=np.bool_)

    def state(self, points: Array) -> Array:
        """Return primitive states ``(n, d + 2)`` at points ``(n, d)``, the velocity along the first axis."""
        points = np.asarray(points, dtype=np.float64)
        x, gamma = points[:, 0], self.gas.gamma
        mach = self.mach(x)
        pressure = self.total_pressure * np.where(self._before(x), 1.0, self._loss) / total_pressure_ratio(mach, gamma)
        temperature = self.total_temperature / total_temperature_ratio(mach, gamma)
        speed = mach * np.sqrt(gamma * self.gas.constant * temperature)
        return plane_states(points, pressure / (self.gas.constant * temperature), (speed, np.zeros_like(x)), pressure)
