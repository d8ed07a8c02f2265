"""What flows of a gas have in common: quantities of their state, and what is watched of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from fluxloom.dsl.run.loop import Loop
from fluxloom.fv.compressible.free_stream import FreeStream
from fluxloom.fv.compressible.gas import Gas, total_pressure_ratio, total_temperature_ratio
from fluxloom.fv.guard_kernels import all_that_passed, look_at_conserved, look_at_gas
from fluxloom.run.fields import Quantity
from fluxloom.run.watch import (
    LOST,
    AtLeast,
    AtMost,
    Balance,
    Clipped,
    Finite,
    Growth,
    GuardLimits,
    Reduction,
    Rule,
    Watch,
)

if TYPE_CHECKING:
    from fluxloom.solvers.airfoil.flow import Airfoil
    from fluxloom.solvers.compressible.flow import CompressibleFlow

__all__ = ["airfoil_watch", "compressible_watch", "gas_quantities"]

Array = npt.NDArray[np.float64]


def gas_quantities(states: Callable[[], Array], gas: Gas, stream: FreeStream | None) -> dict[str, Quantity]:
    r"""Return ``T``, ``mach``, ``total_pressure``, ``total_temperature``, ``entropy``, and ``cp`` over a free stream.

    Total values are those of a gas that is brought to rest without losses. The entropy is
    :math:`s = R / (\gamma - 1) \ln(p / \rho^\gamma)`, less that of the free stream where there is one, and
    :math:`c_p = (p - p_\infty) / (\rho_\infty u_\infty^2 / 2)`.

    Parameters
    ----------
    states
        Finds primitive states ``(rho, u, p)``, ``(n, d + 2)``.
    gas
        What flows.
    stream
        What it is far away; None, or at rest: there is no coefficient.
    """

    def mach() -> Array:
        """Return the Mach number, ``M = |u| / c``."""
        w = states()
        return np.linalg.norm(w[:, 1:-1], axis=1) / gas.sound(w)

    def entropy(w: Array) -> Array:
        """Return the entropy of states, ``s = R_g / (gamma - 1) ln(p / rho^gamma)``."""
        return gas.constant / (gas.gamma - 1.0) * np.log(w[:, -1] / w[:, 0] ** gas.gamma)

    def above() -> Array:
        """Return the entropy over that of the free stream."""
        far = 0.0
        if stream is not None:
            far = entropy(np.array([[stream.density(gas), 0.0, stream.pressure]]))[0]
        return entropy(states()) - far

    found = {
        "T": Quantity("K", "temperature", lambda: gas.temperature(states())),
        "mach": Quantity("", "Mach number", mach),
        "total_pressure": Quantity(
            "Pa", "pressure of the gas at rest", lambda: states()[:, -1] * total_pressure_ratio(mach(), gas.gamma)
        ),
        "total_temperature": Quantity(
            "K", "temperature of the gas at rest",
            lambda: gas.temperature(states()) * total_temperature_ratio(mach(), gas.gamma),
        ),
        "entropy": Quantity("J/(kg K)", "entropy, over that of the free stream where there is one", above),
    }  # fmt: skip
    dynamic = 0.0 if stream is None else stream.dynamic_pressure(gas)
    if stream is not None and dynamic > 0.0:
        far = stream.pressure
        found["cp"] = Quantity("", "pressure coefficient", lambda: (states()[:, -1] - far) / dynamic)
    return found


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
