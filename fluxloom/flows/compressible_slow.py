"""Flow so slow that upwind fluxes damp it as sound: how fast it is, from its start and its boundaries."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fluxloom.comm.base import Comm
from fluxloom.core.advice import warn
from fluxloom.core.strategies import strategy_name
from fluxloom.fv.compressible_boundary import boundary_table
from fluxloom.fv.compressible_outside import (
    DensityState,
    FaceState,
    FarFieldState,
    GivenState,
    HeatFluxState,
    IsothermalState,
    MassFlowState,
    NoSlipState,
    OutletState,
    ReservoirState,
    SlipState,
    TemperatureState,
)
from fluxloom.fv.gas_dynamics import mach_of_pressure_ratio
from fluxloom.solvers.compressible import CompressibleFlow

__all__ = ["warn_of_slow_flow"]

Array = npt.NDArray[np.float64]

_SLOW = 0.15
"""Mach number below which jumps of the velocity are damped too much."""


def warn_of_slow_flow(flow: CompressibleFlow, states: Array, mach: float) -> None:
    """Warn of a flow that upwind fluxes damp too much, as nothing that is given makes it faster. Collective.

    Of what depends on the time it is not known how fast it makes the flow: there is no warning then.

    Parameters
    ----------
    flow
        Its solver.
    states
        Of the owned cells, at the start.
    mach
        Of the free stream.
    """
    if flow.given.given:
        return
    scheme, fastest = flow.scheme, _fastest(flow, states, mach)
    cure = "low_mach = true, with which it does not"
    if not scheme.flux.resolves_contacts:  # what it damps is no jump of the normal velocity
        cure = 'flux = "roe" and ' + cure
    elif scheme.low_mach:
        return
    if 0.0 < fastest < _SLOW and scheme.order == 2:
        name = strategy_name(scheme.flux)
        text = f'scheme: the flow is slow, Mach {fastest:.3g} at most: flux = "{name}" damps it as sound'
        warn(f"{text}; set {cure}")


def _fastest(flow: CompressibleFlow, states: Array, mach: float) -> float:
    """Return the largest Mach number that start, boundaries, free stream and differences of pressure lead to."""
    d, gas, comm = flow.dimension, flow.gas, flow.context.comm
    w = states[:, : d + 2]
    density, sound = _largest(comm, w[:, 0]), _largest(comm, gas.sound(w))
    kinds, rows, formulas, _ = boundary_table(flow.volumes, flow.boundaries, gas)
    speed, heat = np.linalg.norm(rows[:, 1 : 1 + d], axis=1), rows[:, 0]

    def of(*which: type[FaceState]) -> npt.NDArray[np.bool_]:
        return np.isin(kinds, [k for k, formula in enumerate(formulas) if isinstance(formula, which)])

    free, warm, mass = of(FarFieldState, GivenState), of(TemperatureState), of(MassFlowState)
    given = np.column_stack([rows[free, : d + 1], rows[free, 1 + d]])
    found = [
        np.linalg.norm(w[:, 1:-1], axis=1) / gas.sound(w),
        speed[free] / gas.sound(given),
        speed[warm] / np.sqrt(gas.gamma * heat[warm]),
        speed[mass] / (density * sound),
        speed[of(SlipState, NoSlipState, IsothermalState, HeatFluxState, DensityState)] / sound,
    ]
    pressures = np.concatenate([w[:, -1], rows[free | of(ReservoirState, OutletState), 1 + d]])
    ratio = _largest(comm, pressures) * _largest(comm, 1.0 / pressures)
    driven = float(mach_of_pressure_ratio(max(ratio, 1.0), gas.gamma))
    return max(_largest(comm, np.concatenate(found)), driven, mach)


def _largest(comm: Comm, values: Array) -> float:
    """Return the largest of the values of all ranks, at least 0."""
    return float(comm.reduce(np.array([values.max(initial=0.0)]), "max")[0])
