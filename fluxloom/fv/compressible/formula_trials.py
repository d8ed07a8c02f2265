"""Trials of formulas before they are compiled: what is forgotten or inconsistent is told when a flow is built.

A formula runs as Python with a few states. That takes a millisecond, and finds what no check of the text can: a
component that is not written, an argument that is, a flux that is not consistent.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isfinite, isnan, nan
from typing import Any

import numpy as np

from fluxloom.core.errors import KernelError, SolverError
from fluxloom.core.strategies import Strategy, strategy_name
from fluxloom.fv.compressible.boundary_states import FaceState
from fluxloom.fv.compressible.fluxes import Flux, euler
from fluxloom.fv.compressible.gas import ViscosityLaw
from fluxloom.fv.compressible.viscous_flux import TurbulenceModel
from fluxloom.fv.gradients.limiters import Limiter
from fluxloom.kernel.record_fields import RecordProblem, check_strategy

__all__ = [
    "try_collision", "try_condition", "try_eddy_viscosity", "try_flux", "try_limiter", "try_turbulence",
    "try_viscosity",
]  # fmt: skip

_GAMMA = 1.4
_TOLERANCE = 1e-8
"""Relative; Newton's iterations in a formula need not end at round-off."""


def try_flux(flux: Flux) -> None:
    """Raise `SolverError` where a flux leaves a component, changes its arguments, or is not that of equal states."""
    about = _about(flux)
    for d in (2, 3):
        rng = np.random.default_rng(d)
        for mach in (0.0, 0.1, 0.7, -0.7, 3.0, -3.0):
            n = _unit(rng, d)
            left, right = _state(rng, n, mach), _state(rng, n, mach)
            for one, other, equal in (left, right, False), (left, left, True), (right, right, True):
                f = _run(about, _flux_of(flux, d), (one, other, n), d + 2, "f")
                want = [0.0] * (d + 2)
                euler(one, n, want, _GAMMA, d)
                size = max(map(abs, want)) + one[1 + d]
                if equal and max(abs(a - b) for a, b in zip(f, want, strict=True)) > _TOLERANCE * size:
                    raise SolverError(
                        f"{about}: it is not consistent: between two equal states {_shown(one)} and the normal "
                        f"{_shown(n)} it is {_shown(f)}, and Euler's flux is {_shown(want)}"
                    )


def try_limiter(limiter: Limiter) -> None:
    """Raise `SolverError` where a limiter is no fraction, or round-off decides about changes below its threshold."""
    about = _about(limiter)
    for change in (-2.0, -0.5, -1e-16, 0.0, 1e-16, 0.3, 1.0, 4.0):
        for low, high in (-1.0, 1.0), (-1.0, 0.0), (0.0, 1.0), (0.0, 0.0):
            for eps2 in (0.0, 1e-2):
                above, below = _fraction(about, limiter, change, low, high, eps2)
                if not (above >= 0.0 and below >= 0.0 and isfinite(above) and isfinite(below)):
                    raise SolverError(
                        f"{about}: for change = {change:g}, low = {low:g}, high = {high:g}, eps2 = {eps2:g} it returns "
                        f"{above:g} and {below:g}: a numerator and a denominator of at least 0 are wanted"
                    )
                if change * change < 1e-20 and eps2 and above < 0.999 * below:
                    raise SolverError(
                        f"{about}: it limits changes whose squares are below eps2 (change = {change:g}, low = {low:g}, "
                        f"high = {high:g}, eps2 = {eps2:g}: {above:g} over {below:g}), so that round-off decides; add "
                        "eps2 to numerator and denominator"
                    )


def try_viscosity(law: ViscosityLaw) -> None:
    """Raise `SolverError` where a law gives no viscosity."""
    about = _about(law)
    for temperature in (1.0, 300.0, 1000.0):
        found = _called(about, lambda t: law(t), (temperature,))
        if not (isinstance(found, (int, float)) and isfinite(found) and found > 0.0):
            raise SolverError(f"{about}: a number above 0 is wanted, at {temperature:g} K it is {found!r}")


def try_turbulence(model: TurbulenceModel) -> None:
    """Raise `SolverError` where a turbulence model gives no numbers, or what is not possible."""
    about = _about(model)
    for name, positive in ("sigma", True), ("cb2", False):
        number = _called(about, lambda name=name: getattr(model, name), ())
        if not (isinstance(number, (int, float)) and isfinite(number) and (number > 0.0 or not positive)):
            wanted = "a number above 0" if positive else "a number"
            raise SolverError(f"{about}: {name} is {wanted}, not {number!r}")
    for nut in (0.0, 1e-5, 1e-3):
        for what, formula, least in (
            ("eddy_viscosity", lambda x: model.eddy_viscosity(x, 1e-5), 0.0),
            ("diffusivity", lambda x: model.diffusivity(x, 1e-5), 1e-12),
            ("source", lambda x: model.source(x, 1e-5, 10.0, 0.01), -1e300),
        ):
            found = _called(f"{about}: {what}", formula, (nut,))
            if not (isinstance(found, (int, float)) and isfinite(found) and found >= least):
                raise SolverError(f"{about}: {what} is {found!r} for nut = {nut:g}, nu = 1e-05")


def try_eddy_viscosity(model: Strategy, formula: Callable[..., Any]) -> None:
    """Raise `SolverError` where a model of eddies, called with gradient and area, gives no viscosity."""
    about = _about(model, called=True)
    rng = np.random.default_rng(1)
    shear, rotation = np.zeros(9), np.zeros(9)
    shear[1], rotation[1], rotation[3] = 1.0, 1.0, -1.0
    for g in (np.zeros(9), shear, rotation, -np.eye(3).ravel(), *(rng.standard_normal(9) for _ in range(4))):
        for size in (1e-3, 1.0, 1e3):
            gradient = [float(size * value) for value in g]
            given = list(gradient)
            found = _called(about, formula, (given, 1e-2))
            shown = f"for g = {_shown(gradient)}, area = 0.01"
            if not isinstance(found, (int, float)):
                raise SolverError(f"{about}: one number is wanted, it returns {found!r} {shown}")
            if not (isfinite(found) and found >= -1e-12 * size):
                raise SolverError(f"{about}: a viscosity of at least 0 is wanted, it is {found:g} {shown}")
            if given != gradient:
                raise SolverError(f"{about}: it changes the gradient that it is given, {shown}")


def try_collision(collision: Strategy, collide: Callable[..., Any], lattice: Any) -> None:
    """Raise `SolverError` where a collision loses mass or momentum, gains another one than the force, or does nothing.

    ``collide(g, force)`` changes the populations ``g``, stored less their weights with a unit of 1.
    """
    about, velocities = _about(collision, called=True), np.asarray(lattice.velocities, dtype=float)
    weights, rng = np.asarray(lattice.weights, dtype=float), np.random.default_rng(1)
    for forced in (False, True):
        for size in (1e-3, 1e-2):
            g = weights * size * rng.standard_normal(lattice.q)
            force = [1e-4 * (a + 1) for a in range(lattice.dimensions)] if forced else None
            after = [float(value) for value in g]
            _called(about, collide, (after, force))
            if not np.isfinite(after).all():
                raise SolverError(f"{about}: its populations are not finite: {_shown(after)} from {_shown(list(g))}")
            gained = np.subtract(after, g)
            mass, momentum = gained.sum(), gained @ velocities - (force if force is not None else 0.0)
            if abs(mass) > _TOLERANCE * size:
                raise SolverError(
                    f"{about}: it does not keep the mass: {size:g} away from equilibrium a cell gains {mass:g}"
                )
            if np.abs(momentum).max() > _TOLERANCE * size:
                more = "beside the force " if forced else ""
                raise SolverError(
                    f"{about}: it does not keep the momentum: {size:g} away from equilibrium a cell gains "
                    f"{_shown(list(momentum))} {more}({lattice.name})"
                )
            if not forced and not np.abs(gained).max() > _TOLERANCE * size:
                raise SolverError(
                    f"{about}: it leaves populations {size:g} away from equilibrium as they are: __call__ has to "
                    "change g, which is an argument; what it returns nothing takes"
                )


def try_condition(about: str, formula: FaceState, par: Sequence[float], normal: Sequence[float]) -> None:
    """Raise `SolverError` where a formula of a boundary leaves a component of the state, or changes its arguments."""
    d = len(normal)
    w = [1.0, *(0.1 + 0.05 * k for k in range(d)), 1.0]
    arguments = (list(map(float, par)), list(map(float, normal)), w)
    _run(about, lambda p, n, inside, b: formula(p, n, inside, b, _GAMMA, d), arguments, d + 2, "b")


# ------------------------------------------------------------------------------------------------------- within


def _flux_of(flux: Flux, d: int) -> Callable[..., Any]:
    """Return a flux as a function of both states, the normal and what is written."""
    return lambda left, right, n, f: flux.near_shock(left, right, n, f, _GAMMA, d, 0.0)


def _about(member: Strategy, *, called: bool = False) -> str:
    """Return how messages begin, once a member is one that kernels can take."""
    what = type(member).choices.what
    try:
        check_strategy(what, member)
    except RecordProblem as problem:
        raise SolverError(f"{problem.message}; {problem.hint}" if problem.hint else problem.message) from None
    if called and not callable(member):
        raise SolverError(f"{what} {strategy_name(member)}: it has no __call__, which is its formula")
    return f"{what} {strategy_name(member)}"


def _state(rng: np.random.Generator, n: list[float], mach: float) -> list[float]:
    """Return a state with a Mach number along a normal, and some velocity along the face."""
    density, pressure = rng.uniform(0.5, 2.0, 2)
    speed = mach * (_GAMMA * pressure / density) ** 0.5
    along = rng.uniform(-0.3, 0.3, len(n))
    along -= np.dot(along, n) * np.asarray(n)
    return [float(density), *(float(speed * n[k] + along[k]) for k in range(len(n))), float(pressure)]


def _unit(rng: np.random.Generator, d: int) -> list[float]:
    n = rng.standard_normal(d)
    return [float(x) for x in n / np.linalg.norm(n)]


def _called(about: str, formula: Callable[..., Any], arguments: Sequence[Any]) -> Any:
    """Call a formula; what Python raises in it is told in one line."""
    try:
        with np.errstate(all="ignore"):
            return formula(*arguments)
    except (KernelError, SolverError):
        raise
    except Exception as error:
        raise SolverError(f"{about}: {_place(error)}{type(error).__name__}: {error}") from error


def _run(
    about: str, formula: Callable[..., Any], arguments: Sequence[list[float]], count: int, name: str
) -> list[float]:
    """Return what a formula writes, from copies of its arguments, once all is written and nothing else is."""
    given, out = [list(values) for values in arguments], [nan] * count
    returned = _called(about, formula, (*given, out))
    if returned is not None:
        wanted = f"it has to write {name}[0] to {name}[{count - 1}]"
        raise SolverError(f"{about}: it returns {returned!r}, which nothing takes: {wanted}")
    for k, value in enumerate(out):
        if isinstance(value, float) and isnan(value):
            raise SolverError(
                f"{about}: {name}[{k}] is not written (or not a number) for {', '.join(map(_shown, arguments))}"
            )
    for before, after in zip(arguments, given, strict=True):
        if before != after:
            raise SolverError(f"{about}: it changes an argument, {_shown(before)}: only {name} may be written")
    return [float(value) for value in out]


def _fraction(about: str, limiter: Limiter, *arguments: float) -> tuple[float, float]:
    found = _called(about, lambda *a: limiter(*a), arguments)
    if not (isinstance(found, tuple) and len(found) == 2):
        raise SolverError(f"{about}: it returns {found!r}: a numerator and a denominator are wanted")
    return float(found[0]), float(found[1])


def _place(error: BaseException) -> str:
    """Return the file and line of the user's code in which an error was raised, with a colon."""
    place = ""
    trace = error.__traceback__
    while trace is not None:
        frame = trace.tb_frame
        if str(frame.f_globals.get("__name__")).partition(".")[0] != __name__.partition(".")[0]:
            place = f"{frame.f_code.co_filename}:{trace.tb_lineno}: "
        trace = trace.tb_next
    return place


def _shown(values: Sequence[float]) -> str:
    return f"({', '.join(f'{value:.4g}' for value in values)})"
