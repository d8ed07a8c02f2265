"""What guards look at in incompressible flow, and in what it carries: energy, eddy viscosity, scalars, steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import inf, isfinite
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from fluxloom.comm.base import Comm
from fluxloom.dsl.declare.dats import Dat, Global
from fluxloom.dsl.run.loop import Loop
from fluxloom.flows.flow_plan import StepLengths
from fluxloom.fv.guard_kernels import look_at_scalar, look_at_velocity, look_at_viscosity
from fluxloom.fv.incompressible.scalar_boundary import FixedFlux
from fluxloom.run.flow import Until
from fluxloom.run.watch import LOST, AtMost, Finite, Growth, GuardLimits, Numbers, Reduction, Rule, Watch

if TYPE_CHECKING:  # a case imports its own solver alone
    from fluxloom.solvers.edges.diffusion import Diffusion
    from fluxloom.solvers.edges.flow import EdgeFlow
    from fluxloom.solvers.edges.transport import EdgeTransport
    from fluxloom.solvers.incompressible.flow import Incompressible
    from fluxloom.solvers.staggered.flow import Staggered

__all__ = ["diffusion_watch", "edge_flow_watch", "edge_transport_watch", "incompressible_watch", "staggered_watch"]

_EVERY = 20
_STAGGERED, _TRANSPORT = 200, 50

_BORNE, _STAGGERED_BORNE = 4.0, 2.0
"""Times the limits of `time.courant` and `time.diffusion` that steps may have; the error is still the scheme's."""

Host = Callable[[], Mapping[str, float]]


def _largest(comm: Comm, values: npt.ArrayLike) -> float:
    """Return the largest length of vectors ``(n, d)``, or magnitude of numbers, of all ranks. Collective."""
    found = np.asarray(values, dtype=np.float64)
    sizes = np.abs(found) if found.ndim < 2 else np.linalg.norm(found, axis=1)
    return float(comm.reduce(np.array([sizes.max(initial=0.0)]), "max")[0])


def _energy_look(u: Dat, weight: Dat) -> Reduction:
    return Reduction(
        u.set.context,
        lambda sums, most: Loop(look_at_velocity, u.set, u, weight, sums, most, d=u.dim), [LOST, "energy"],
        most=["speed2"],
    )  # fmt: skip


def _energy(
    table: GuardLimits, volume: float, speed: Callable[[], float], pull: Callable[[Numbers], float]
) -> list[Rule]:
    """Return the rule of the kinetic energy: of all fluid at a speed, and at that to which a pull brings it in time."""

    def scale(numbers: Numbers) -> float:
        """Return the energy that may be there, ``V (u^2 + (a t)^2) / 2``, at the speed ``u`` and acceleration ``a``."""
        return 0.5 * volume * (speed() ** 2 + (pull(numbers) * (numbers.time or 0.0)) ** 2)

    return [Growth("energy", "kinetic energy", "speed", table.growth, scale)] if table.growth else []


def _steps(
    table: GuardLimits, lengths: StepLengths, stable: Callable[[], float], limits: tuple[float, float] = (1.0, inf),
    borne: float = 1.0,
) -> tuple[list[Rule], list[Host]]:
    """Return the rule of steps of a given length, and what finds how many times the largest stable one steps are.

    ``limits`` are the bounds of ``time.courant`` and ``time.diffusion`` with which steps are chosen; so many times as
    long as that they are borne.
    """

    def host() -> Mapping[str, float]:
        """Return what the host knows."""
        if lengths.dt:
            longest = stable()
            times = lengths.dt / longest if 0.0 < longest < inf else 0.0
        else:
            times = max(lengths.courant / limits[0], lengths.diffusion / limits[1])
        return {"courant": times / borne, "times": times}

    if not (lengths.dt and table.courant):
        return [], [host]

    rule = AtMost("courant", "times", "time.dt over the largest stable step", "", table.courant,
                  f"time.dt is {lengths.dt:g}")  # fmt: skip
    return [rule], [host]


def incompressible_watch(
    flow: Incompressible, lengths: StepLengths, until: Until, table: GuardLimits,
    mean_velocity: Sequence[float],
) -> Watch:  # fmt: skip
    """Return what guards look at in flow on finite volumes."""
    comm, cv = flow.context.comm, flow.volumes
    volume = float(comm.reduce(np.array([cv.volumes[: cv.owned].sum()]), "sum")[0])
    given, start = flow.given.read(), flow.velocity()
    speed = max(_largest(comm, given), _largest(comm, start), _largest(comm, [list(mean_velocity) or [0.0]]))
    heavy = [one for one in flow.scalars.all.values() if one.scalar.buoyancy is not None]
    looks, rules, hosts = [_energy_look(flow.u, flow.weight)], [Finite()] if table.finite else [], []
    force = float(np.linalg.norm(flow.force))

    def pull(numbers: Numbers) -> float:
        """Return the largest acceleration, ``|f| + sum |g| |beta| (max |theta| + |theta_0|)``."""
        lift = 0.0
        for one in heavy:
            buoyancy = one.scalar.buoyancy
            assert buoyancy is not None
            span = numbers.values[f"most {one.scalar.name}"] + abs(buoyancy.reference)
            lift += float(np.linalg.norm(buoyancy.gravity)) * abs(buoyancy.expansion) * span
        return force + (0.0 if flow.given_forces is None else _largest(comm, [flow.given_forces.largest()])) + lift

    def fastest() -> float:
        """Return the largest speed that was given so far, or to which a pressure brings a fluid, ``u = sqrt(2 p)``."""
        pressure = 0.0 if flow.given_forces is None else _largest(comm, [flow.given_forces.largest_pressure()])
        return max(speed, float(flow.given_velocities.fastest.value), (2.0 * pressure) ** 0.5)

    for one in flow.scalars.all.values():
        looks.append(_scalar_look(one.theta, flow.weight, one.scalar.name))
        if not any(isinstance(side, FixedFlux) for side in one.scalar.boundaries.values()):
            most, moving = _Most(comm, [one.theta, one.given], one.moving[:1]), one.moving[1:]
            rules += _bounded(table, one.scalar.name, most, _Most(comm, [one.source], moving))
    rules += _energy(table, volume, fastest, pull)
    if flow.model is not None and table.viscosity and flow.viscosity:
        looks.append(_eddy_look(flow.nut, None))
        rules.append(_eddy_rule(table, flow.viscosity, ""))
    limits = (0.35 * flow.scheme.longer, 0.2 * flow.scheme.longer)
    more, host = _steps(table, lengths, lambda: flow.stable_step(*limits), limits, _BORNE)
    return Watch(_EVERY, looks, [*rules, *more], [*hosts, *host], until.steady > 0.0, bound=_BORNE)


def _scalar_look(c: Dat, weight: Dat, name: str) -> Reduction:
    return Reduction(
        c.set.context, lambda sums, most: Loop(look_at_scalar, c.set, c, weight, sums, most),
        [LOST, f"total {name}"], most=[f"most {name}"],
    )  # fmt: skip


class _Most:
    """The largest number that some dats had at the start, and those that move at each look. Collective."""

    def __init__(self, comm: Comm, dats: Sequence[Dat], moving: Sequence[Dat]) -> None:
        self._comm, self._moving = comm, moving
        self._most = max(_largest(comm, dat.read()) for dat in dats)

    def __call__(self) -> float:
        """Return it."""
        self._most = max([self._most, *(_largest(self._comm, dat.read()) for dat in self._moving)])
        return self._most


def _bounded(
    table: GuardLimits, name: str, given: Callable[[], float], source: Callable[[], float]
) -> list[Rule]:  # fmt: skip
    """Return the rule of a scalar whose largest value is given, but for a source."""
    if not table.scalar:
        return []
    rule = Growth(f"most {name}", f"|{name}|", name, table.scalar,
                  lambda numbers: given() + source() * (numbers.time or 0.0), "scalar")  # fmt: skip
    return [rule]


def _eddy_look(nu: Dat, laminar: Dat | None) -> Reduction:
    context = nu.set.context
    known = Global(context, 0.0, name="laminar") if laminar is None else laminar
    return Reduction(
        context, lambda sums, most: Loop(look_at_viscosity, nu.set, nu, known, sums, most), most=["nu_t"]
    )  # fmt: skip


def _eddy_rule(table: GuardLimits, viscosity: float, field: str) -> Rule:
    return AtMost("viscosity", "nu_t", "eddy viscosity", field, table.viscosity * viscosity,
                  f"{table.viscosity:g} times the viscosity")  # fmt: skip


def edge_flow_watch(flow: EdgeFlow, lengths: StepLengths, until: Until, table: GuardLimits) -> Watch:
    """Return what guards look at in flow on edges."""
    comm, loops = flow.context.comm, flow.loops
    mass = flow.operators.mass
    volume = float(comm.reduce(np.array([mass.read().sum()]), "sum")[0])
    speed = max(_largest(comm, loops.boundary.given), _largest(comm, flow.velocity()))
    force = _Most(comm, [loops.body], [loops.body] if loops.moves else [])
    fastest = loops.velocities.fastest
    looks = [_energy_look(flow.u, mass)]
    rules: list[Rule] = [Finite()] if table.finite else []

    def fast() -> float:
        """Return the largest speed that was given so far, or to which a pressure brings a fluid, ``u = sqrt(2 p)``."""
        pressure = 0.0 if loops.pressures is None else _largest(comm, [loops.pressures.largest()])
        return max(speed, float(fastest.value), (2.0 * pressure) ** 0.5)

    rules += _energy(table, volume, fast, lambda _: force())
    least = -float(comm.reduce(np.array([-loops.laminar.read().min(initial=inf)]), "max")[0])
    if loops.model is not None and table.viscosity and least > 0.0 and isfinite(least):
        looks.append(_eddy_look(loops.nu, loops.laminar))
        rules.append(_eddy_rule(table, least, "nu_t"))
    more, host = _steps(table, lengths, lambda: flow.stable_step(1.0))
    return Watch(_EVERY, looks, [*rules, *more], host, until.steady > 0.0)


def edge_transport_watch(flow: EdgeTransport, lengths: StepLengths, until: Until, table: GuardLimits) -> Watch:
    """Return what guards look at in transport on edges."""
    comm = flow.context.comm
    given = _Most(comm, [flow.c, flow.given], [flow.given] if flow.values.moves else [])
    source = _Most(comm, [flow.source], [flow.source] if flow.sources.moves else [])
    rules: list[Rule] = [Finite()] if table.finite else []
    rules += _bounded(table, "scalar", given, source)
    more, host = _steps(table, lengths, lambda: flow.stable_step(1.0))
    looks = [_scalar_look(flow.c, flow.operators.mass, "scalar")]
    return Watch(_TRANSPORT, looks, [*rules, *more], host, until.steady > 0.0)


def diffusion_watch(flow: Diffusion, until: Until, table: GuardLimits) -> Watch:
    """Return what guards look at in diffusion, whose steps may have any length."""
    rules: list[Rule] = [Finite()] if table.finite else []
    return Watch(_EVERY, [_scalar_look(flow.c, flow.volume, "scalar")], rules, [], until.steady > 0.0)


def staggered_watch(flow: Staggered, lengths: StepLengths, until: Until, table: GuardLimits) -> Watch:
    """Return what guards look at in flow on a staggered grid."""
    comm, fields = flow.context.comm, flow.fields
    volume, start = flow.grid.volume, flow.velocity()
    speed = max(_largest(comm, start), float(np.abs(flow.mean_velocity).max(initial=0.0)))
    most = [float(np.linalg.norm(flow.force))]

    def fastest() -> float:
        """Return the largest speed that was given so far, through sides that of now."""
        through = float(fields.sides.inflow.value[1]) / fields.sides.area
        return max(speed, _largest(comm, [fields.fastest.tolist()]), through)

    def pull(_: Numbers) -> float:
        """Return the largest force so far, of one that differs from place to place that of now."""
        if flow.moving is not None:
            field = _largest(comm, flow.moving.dat.read().reshape(-1, flow.dimension)) if flow.moving.in_space else 0.0
            most[0] = max(most[0], float(np.linalg.norm(flow.force)), field)
        return most[0]

    rules: list[Rule] = [Finite()] if table.finite else []
    rules += _energy(table, volume, fastest, pull)
    more, host = _steps(table, lengths, flow.stable_step, flow.scheme.limits, _STAGGERED_BORNE)
    looks = [_energy_look(fields.u, fields.fluid)]
    return Watch(_STAGGERED, looks, [*rules, *more], host, until.steady > 0.0, bound=_STAGGERED_BORNE)
