"""Numbers of the cells of a compressible flow: what it is given, and what its steps leave."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
import numpy.typing as npt

from fluxloom.comm.base import Comm
from fluxloom.core.errors import Divergence, SolverError
from fluxloom.dsl.context import Context
from fluxloom.dsl.declare.dats import total_of_ranks
from fluxloom.dsl.run.loop import Loop
from fluxloom.fv.compressible.gas import Gas
from fluxloom.fv.geometry.volumes import ControlVolumes

__all__ = ["Field", "Residuals", "first_lost", "left", "owned_numbers", "require_finite", "squared_sizes"]

Array = npt.NDArray[np.float64]
Field = npt.ArrayLike | Callable[[Array], npt.ArrayLike]


@dataclass(frozen=True)
class Residuals:
    """What the steps since the last look did.

    Attributes
    ----------
    norms : (nv,)
        Root of the mean square of ``R``, of mass, momentum and energy, in the last stage of the last step.
    clipped_faces
        States at faces without enough density or pressure, whose gradients were made smaller.
    clipped_cells
        New states without positive density or pressure, in whose place cells kept theirs: towards a steady flow alone.
    """

    norms: Array
    clipped_faces: int
    clipped_cells: int


def owned_numbers(what: str, values: Field, volumes: ControlVolumes, components: int) -> Array:
    """Return given numbers of the owned cells, ``(owned, components)``.

    Parameters
    ----------
    what
        How messages begin.
    values
        ``(components,)``, ``(owned, components)``, or a function of the places ``(owned, d)``.

    Raises
    ------
    SolverError
        If there are others, or one is not finite.
    """
    wanted = (volumes.owned, components)
    found = np.asarray(values(volumes.centres[: volumes.owned]) if callable(values) else values, dtype=np.float64)
    try:
        found = np.broadcast_to(found, wanted)
    except ValueError:
        raise SolverError(f"{what}: numbers of shape {wanted} are wanted, not {found.shape}") from None
    if not np.isfinite(found).all():
        raise SolverError(f"{what}: all numbers have to be finite")
    return found


def squared_sizes(states: Array, volumes: ControlVolumes, gas: Gas, length: float, context: Context) -> Array:
    """Return squares of how large the components of states ``(owned, nv)`` are, ``(nv,)``: for limiters. Collective.

    ``mean(rho)^2``, ``mean(|u|^2 + gamma p / rho)``, ``mean(p)^2``.

    Of density and pressure the mean, of velocities that of flow and sound together, which times a length is that of the
    variable of a model of turbulence.
    """
    d, weight = volumes.dimension, volumes.volumes[: volumes.owned]
    square = (states[:, 1 : 1 + d] ** 2).sum(axis=1) + gas.gamma * states[:, 1 + d] / states[:, 0]
    sums = np.array([weight.sum(), weight @ states[:, 0], weight @ square, weight @ states[:, 1 + d]])
    rows = np.stack([weight, weight * states[:, 0], weight * square, weight * states[:, 1 + d]], axis=1)
    total = total_of_ranks(context, sums, rows)
    scale = np.full(states.shape[1], total[2] / total[0] * length * length)
    scale[0], scale[1 + d] = (total[1] / total[0]) ** 2, (total[3] / total[0]) ** 2
    scale[1 : 1 + d] = total[2] / total[0]
    return scale


def first_lost(states: Array, volumes: ControlVolumes, comm: Comm) -> tuple[int, list[float]] | None:
    """Return number and place of the first cell whose state is not finite, of the owned ones. Collective."""
    broken = np.flatnonzero(~np.isfinite(states).all(axis=1))
    numbers = volumes.shared.cells.numbers[broken]
    places = [] if not broken.size else [(int(numbers[0]), volumes.centres[broken[0]].round(6).tolist())]
    return min((place for found in comm.allgather(places) for place in found), default=None)


def require_finite(states: Array, volumes: ControlVolumes, comm: Comm, step: int, time: float, cfl: float) -> None:
    """Raise `Divergence` naming the first cell whose state is not finite, at a step and a time. Collective."""
    lost = first_lost(states, volumes, comm)
    if lost is None:
        return
    number, place = lost
    raise Divergence(
        f"step {step}, time {time:g}: the state of cell {number} at {place} is not finite; lower cfl (now {cfl:g}), "
        "take order = 1 for the first steps, or look for a poor cell there",
        field="state", number=number, place=tuple(place), step=step, time=time,
    )  # fmt: skip


Stages = Sequence[tuple[float, float, float]]


def left(stages: Stages, add: Callable[[float, bool], Loop] | None) -> list[list[Loop]]:
    r"""Return for each stage the loops that add what leaves in it, made for a weight, and for the first one or not.

    Of ``U = a U_start + b U + c dt R / V`` a residual has in the end the weight :math:`c_k \prod_{j > k} b_j`.
    """
    if add is None:
        return [[] for _ in stages]
    weights = [c * prod(later[1] for later in stages[k + 1 :]) for k, (_, _, c) in enumerate(stages)]
    first = next((k for k, weight in enumerate(weights) if weight), 0)
    return [[add(weight, k == first)] if weight else [] for k, weight in enumerate(weights)]
