"""What guards look at in a gas: density and pressure, mass and energy, clipped states, CFL numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from fluxloom.dsl.loop import Loop
from fluxloom.fv.guard_kernels import all_that_passed, look_at_conserved, look_at_gas
from fluxloom.run.guard_limits import GuardLimits
from fluxloom.run.guard_rules import AtLeast, AtMost, Balance, Clipped, Finite, Growth
from fluxloom.run.watch import LOST, Reduction, Rule, Watch

if TYPE_CHECKING:  # a case imports its own solver alone
    from fluxloom.solvers.airfoil import Airfoil
    from fluxloom.solvers.compressible import CompressibleFlow

__all__ = ["airfoil_watch", "compressible_watch"]

_EVERY = 50
_AIRFOIL = 2.0
"""The same of the two sub-steps of Airfoil, ``g = 1 + z + z^2``: ``|g| <= 1`` on the imaginary axis up to 1.

A cell's ``dt / V`` is ``cfl / sum (|u_n| + c) A``, and a central flux has eigenvalues up to half of that sum.
"""


def compressible_watch(
    flow: CompressibleFlow, table: GuardLimits, clipped: Callable[[], tuple[float, float]], *, end: float,
    explicit: bool,
) -> Watch:  # fmt: skip
    """Return what guards look at in compressible flow.

    Parameters
    ----------
    flow, table
        The flow, and what guards are set to.
    clipped
        Returns states clipped so far, and all of these.
    end
        Time of the end; 0: towards a steady flow.
    explicit
        Whether steps are.
    """
    d, nv = flow.dimension, flow.components
    in_time = end > 0.0 and flow.source is None and flow.balance is None
    kept = in_time and table.balance > 0.0
    if kept and flow.open:
        flow.keep_balance()
    most = ["nu_tilde"] if flow.turbulent else ["none"]
    look = Reduction(
        flow.context,
        lambda sums, least, most: Loop(look_at_gas, flow.elements, flow.w, flow.volume, sums, least, most,
                                       gamma=flow.gas.gamma, nv=nv, d=d),
        [LOST, "mass", "energy"], ["density", "pressure"], most,
    )  # fmt: skip
    passed = flow.passed
    left = [] if passed is None else [
        Reduction(flow.context, lambda sums: Loop(all_that_passed, flow.boundary, passed, sums),
                  [LOST, "mass left", "energy left"])
    ]  # fmt: skip
    rules: list[Rule] = [Finite()] if table.finite else []
    if table.positive:
        rules += [AtLeast("density", "density", "rho"), AtLeast("pressure", "pressure", "p")]
    rules += [Balance("mass", "mass", table.balance, left="mass left")] if kept else []
    if table.growth:
        rules.append(Growth("energy", "total energy", "p", table.growth, lambda _: 0.0))
    if table.viscosity and flow.turbulent:
        limit = table.viscosity * _viscosity(flow)
        rules.append(AtMost("viscosity", "nu_tilde", "|nu_tilde|", "nu_tilde", limit,
                            f"{table.viscosity:g} times the viscosity"))  # fmt: skip
    if table.clipped and explicit:
        rules.append(Clipped(table.clipped, table.clipped_steps, clipped))
    if table.courant and explicit:
        rules.append(AtMost("courant", "courant", "CFL number over the largest stable one", "", table.courant,
                            f"time.cfl is {flow.cfl:g}"))  # fmt: skip

    def host() -> Mapping[str, float]:
        """Return what the host knows."""
        return {"courant": flow.cfl / flow.scheme.time.largest_cfl} if explicit else {}

    bound = flow.scheme.time.largest_cfl
    return Watch(_EVERY, [look, *left], rules, [host], end == 0.0, clipped if explicit else None, bound)


def _viscosity(flow: CompressibleFlow) -> float:
    """Return the least kinematic viscosity of the start, or 1 where there is none. Collective."""
    if flow.gas.viscosity is None:
        return 1.0
    states = flow.states()[:, : flow.dimension + 2]
    nu = flow.gas.viscosity.at(flow.gas.temperature(states)) / states[:, 0]
    return float(flow.context.comm.reduce(np.array([np.min(nu, initial=np.inf)]), "min")[0])


def airfoil_watch(solver: Airfoil, gamma: float, table: GuardLimits) -> Watch:
    """Return what guards look at in the Airfoil benchmark."""
    gm1 = gamma - 1.0
    look = Reduction(
        solver.context,
        lambda sums, least: Loop(look_at_conserved, solver.cells, solver.q, sums, least, gm1=gm1),
        [LOST, "energy"], ["density", "pressure"],
    )  # fmt: skip
    rules: list[Rule] = [Finite()] if table.finite else []
    if table.positive:
        rules += [AtLeast("density", "density", "density"), AtLeast("pressure", "pressure", "pressure")]
    if table.growth:
        rules.append(Growth("energy", "sum of the energy", "pressure", table.growth, lambda _: 0.0))
    reached = solver.constants.cfl / _AIRFOIL
    return Watch(2 * _EVERY, [look], rules, [lambda: {"courant": reached}], steady=True, bound=_AIRFOIL)
