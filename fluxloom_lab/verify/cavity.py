"""The lid-driven cavity at Reynolds number 1000 against a spectral solution."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import log2

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError
from fluxloom.dsl.context import Context
from fluxloom.fv.geometry.control_volumes import control_volumes
from fluxloom.linalg.precond.multigrid import SmoothedAggregation
from fluxloom.linalg.status import Stop
from fluxloom.mesh.generate.boxes import box2d
from fluxloom.solvers.incompressible.flow import Incompressible
from fluxloom_lab.problems.lid_cavity import BOTELLA_PEYRET, SOURCE, lid_walls
from fluxloom_lab.verify.base import Check, FullOptions, Tell

__all__ = ["Cavity", "CavityVerification", "cavity", "extremes"]

Array = npt.NDArray[np.float64]

_NAMES = ("least u at x = 1/2", "largest v at y = 1/2", "least v at y = 1/2")
_ALLOWED = {64: 0.065, 128: 0.02, 256: 0.005}

_SPAN, _SETTLE = 4.0, 2.0
"""Times between the states that are extrapolated, and before the first of them."""

_STEADY = 5e-5
"""Root mean square of the change in the span at which the flow counts as steady."""

_ROUNDS = 40
_CUBIC = np.array([-1.0, 9.0, 9.0, -1.0]) / 16.0
"""The cubic through the values of four cells in a row, in their middle."""


@dataclass(frozen=True)
class Cavity:
    """The steady flow of a cavity.

    Attributes
    ----------
    extremes
        Least u on the vertical centreline, largest and least v on the horizontal one.
    velocity : (n, n, 2)
        The field, y first.
    time
        How long it took to get steady.
    """

    extremes: tuple[float, float, float]
    velocity: Array
    time: float


class CavityVerification:
    """Extremes of the velocity on the centrelines, their order and limit; ``--full``: a finer mesh."""

    title = "cavity: extremes on the centrelines at Reynolds number 1000, their order and limit"
    options = FullOptions

    def run(self, options: FullOptions, tell: Tell) -> Iterator[Check]:
        """Yield the checks as they are done."""
        found: list[Cavity] = []
        for n in (32, 64, 128, 256) if options.full else (32, 64, 128):
            tell(f"cavity of {n} x {n} cells, until it is steady")
            context = Context(options.device, threads=options.threads)
            found.append(cavity(context, n, [coarser.velocity for coarser in found[-2:]]))
            for name, value, reference in zip(_NAMES, found[-1].extremes, BOTELLA_PEYRET.values(), strict=True):
                if n in _ALLOWED:
                    yield Check(f"{n} x {n} cells: {name}", value, reference, _ALLOWED[n], SOURCE)
        yield from _limits(found[-2], found[-1])


def _limits(coarse: Cavity, fine: Cavity) -> Iterator[Check]:
    """Compare order and limit of the finest two meshes."""
    first, second = len(coarse.velocity), len(fine.velocity)
    for name, a, b, reference in zip(_NAMES, coarse.extremes, fine.extremes, BOTELLA_PEYRET.values(), strict=True):
        meshes = f"{first} and {second} cells a side"
        order = log2(abs(a - reference) / abs(b - reference))
        yield Check(f"{meshes}: order of the {name}", order, 2.0, 0.1, SOURCE)
        yield Check(f"{meshes}: limit of the {name}, (4 b - a) / 3", b + (b - a) / 3.0, reference, 0.003, SOURCE)


def cavity(context: Context, n: int, coarser: list[Array], reynolds: float = 1000.0) -> Cavity:
    """Compute the steady flow in the unit square under a lid of speed 1.

    Steps in time, and now and then a state that follows from three (Aitken): the last changes are those of one slow
    decay, so that their sum is known.

    Parameters
    ----------
    context
        Where it runs.
    n
        Cells a side, even.
    coarser : (m, m, 2) each
        Flows on meshes of half and a quarter of the cells, y first, from the coarser to the finer one: where to start.
        Without them the fluid is at rest.
    reynolds
        1 over the viscosity.

    Raises
    ------
    SolverError
        If it does not get steady.
    """
    volumes = control_volumes(box2d(n, n))
    sides = lid_walls(volumes.patches)
    flow = Incompressible(
        context, volumes, 1.0 / reynolds, sides, preconditioner=SmoothedAggregation(), stop=Stop(rtol=1e-5)
    )
    state = _start(coarser, volumes.centres[: volumes.cells])
    spent = 0.0
    for _ in range(_ROUNDS):
        flow.initialise(lambda _places, state=state: state)
        states = [_advanced(flow, time, n) for time in (_SETTLE, _SETTLE + _SPAN, _SETTLE + 2.0 * _SPAN)]
        spent += flow.time
        first, second = states[1] - states[0], states[2] - states[1]
        ratio = float((first * second).sum() / (first * first).sum())
        state = states[2] + (second * ratio / (1.0 - ratio) if 0.0 < ratio < 0.9 else 0.0)
        if np.sqrt((second**2).sum(axis=1).mean()) < _STEADY:
            velocity = state.reshape(n, n, 2)
            return Cavity(extremes(velocity), velocity, spent)
    raise SolverError(f"the cavity of {n} x {n} cells is not steady at time {spent:g}")


def _advanced(flow: Incompressible, end: float, n: int) -> Array:
    """Return the velocity at a time, about."""
    while flow.time < end:
        dt = min(flow.stable_step(0.5, 0.4), 0.5 / n)
        flow.step(dt).require("the pressure of the cavity")
    return flow.velocity()


def _start(coarser: list[Array], places: Array) -> Array:
    """Return what flows on coarser meshes tell of this one, whose error is a quarter of the finer one's."""
    if not coarser:
        return np.zeros(places.shape)
    finer = _between(coarser[-1], places)
    return finer if len(coarser) == 1 else finer + 0.25 * (finer - _between(coarser[-2], places))


def _between(velocity: Array, places: Array) -> Array:
    """Return a flow in the cavity, ``(m, m, 2)``, at other places ``(n, 2)``."""
    from scipy.interpolate import RegularGridInterpolator

    m = len(velocity)
    lines = np.concatenate([[0.0], (np.arange(m) + 0.5) / m, [1.0]])
    whole = np.zeros((m + 2, m + 2, 2))
    whole[1:-1, 1:-1] = velocity
    whole[-1, :, 0] = 1.0
    return np.asarray(RegularGridInterpolator((lines, lines), whole, method="cubic")(places[:, ::-1]))


def extremes(velocity: Array) -> tuple[float, float, float]:
    """Return least u on the vertical centreline, largest and least v on the horizontal one.

    The centrelines lie between two cells: values there are those of the cubic through four. The extreme is that of the
    parabola through the extreme value and its neighbours.

    Parameters
    ----------
    velocity : (n, n, 2)
        Of the cells, y first, with even n.
    """
    middle = slice(len(velocity) // 2 - 2, len(velocity) // 2 + 2)
    upright = velocity[:, middle, 0] @ _CUBIC
    level = _CUBIC @ velocity[middle, :, 1]
    return -_peak(-upright), _peak(level), -_peak(-level)


def _peak(values: Array) -> float:
    """Return the top of the parabola through the largest of some values and its neighbours, if it has two."""
    k = int(np.argmax(values))
    if k in (0, values.size - 1):
        return float(values[k])
    left, centre, right = (float(value) for value in values[k - 1 : k + 2])
    bend = left - 2.0 * centre + right
    return centre - (right - left) ** 2 / (8.0 * bend) if bend < 0.0 else centre
