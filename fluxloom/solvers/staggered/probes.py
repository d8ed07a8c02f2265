"""Probes of flow on a staggered grid: velocity from faces and pressure from cells, linear between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product

import numpy as np
import numpy.typing as npt

from fluxloom.core.access import Const, Inc, Read, Write
from fluxloom.dsl.declare.dats import Dat
from fluxloom.dsl.ranks.task import Reset
from fluxloom.dsl.run.chain import Chain
from fluxloom.dsl.run.loop import Loop
from fluxloom.fv.staggered.grid import StaggeredGrid
from fluxloom.kernel.frontend import kernel
from fluxloom.solvers.probe_records import Outside, ProbePlaces, ProbeRecords, Source
from fluxloom.solvers.staggered.flow import Staggered

__all__ = ["StaggeredProbes"]

Array = npt.NDArray[np.float64]
Index = npt.NDArray[np.int64]


@kernel
def weighted_sum(weight: Read, phi: Read, total: Inc):
    """Integral over cells, ``total += V phi``."""
    total[0] += weight[0] * phi[0]


@kernel
def sample_faces(
    weight: Read, u: Read, share: Read, phi: Read, total: Read, scale: Read, found: Write, *, d: Const[int],
    corners: Const[int], volume: float,
):  # fmt: skip
    """``sum w_j u_a,j`` of each component, ``scale (sum s_j phi_j - mean of phi)`` at a place."""
    for a in range(d):
        value = 0.0
        for j in range(corners):
            value += weight[corners * a + j] * u[corners * a + j][a]
        found[a] = value
    pressure = -total[0] / volume
    for j in range(corners):
        pressure += share[j] * phi[j]
    found[d] = scale[0] * pressure


class StaggeredProbes:
    """Places whose velocity and pressure are kept.

    Each component of the velocity is linear along each axis between the faces that it is at, up to the sides, beyond
    which values are those that the boundaries give; the pressure is so between the middles of cells, and goes on beyond
    the outermost ones: linear fields are exact. The pressure is kinematic and has the mean zero, as
    `Staggered.pressure`. Samples are kept as `fluxloom.solvers.probe_records.ProbeRecords` says: of each probe ``d``
    components of the velocity and the pressure.

    Parameters
    ----------
    flow
        Whose.
    points
        Name to coordinates ``(d,)``.
    capacity
        Samples that the device keeps before the host reads them all at once.
    outside
        Whether points outside of the box are an error, or left out.

    Attributes
    ----------
    names, points, columns
        Of the points that are in the box, their coordinates, and the names of the values at each.
    records
        The samples.

    Raises
    ------
    SolverError
        If a point lies outside the box, is not finite or has the wrong number of coordinates, or there are none.
    """

    def __init__(
        self, flow: Staggered, points: Mapping[str, Sequence[float]], capacity: int = 256, outside: Outside = "error"
    ) -> None:
        self.flow, context, f, d = flow, flow.context, flow.fields, flow.dimension
        places = ProbePlaces(context, points, d, lambda at: _inside(flow.grid, at), outside)
        self.names, self.points = places.names, places.places
        self.columns: tuple[str, ...] = (*"uvw"[:d], "p")
        rows, weights = zip(*(_between(flow.grid, places.places, a) for a in range(d)), strict=True)
        cells, shares = _between(flow.grid, places.places, -1)
        over = places.set
        weight = context.dat(over, np.concatenate(weights, axis=1), "probes.weights")
        share = context.dat(over, shares, "probes.shares")
        faces = context.map(over, f.grid, np.concatenate(rows, axis=1), "probes.faces")
        around = context.map(over, f.grid, cells, "probes.cells")
        self._total, self._scale = context.scalar(0.0, "probes.total"), context.scalar(1.0, "probes.scale")
        potential, _ = flow.impulse()
        mean = Loop(weighted_sum, f.grid, f.fluid, potential, self._total)
        self._before = Chain([Reset(self._total), mean], name="mean pressure")

        def states(found: Dat) -> Loop:
            """Return the loop that interpolates velocity and pressure, this less its mean, to the points."""
            return Loop(
                sample_faces, over, weight, f.u[faces], share, potential[around], self._total, self._scale, found, d=d,
                corners=2**d, volume=flow.grid.volume,
            )  # fmt: skip

        self.records = ProbeRecords(places, (Source("flow", d + 1, states),), capacity)

    def sample(self) -> None:
        """Keep what is at the probes now."""
        self._scale.value = self.flow.impulse()[1]
        self._before()
        self.records.sample(self.flow.time)


def _inside(grid: StaggeredGrid, places: Array) -> tuple[Index, Array]:
    """Return 0 for each place, and how far out of the box it is: infinite, if it is not in it."""
    low, high = (np.array([faces[end] for faces in grid.faces]) for end in (0, -1))
    rim = 1e-9 * (high - low)
    inside = ((places >= low - rim) & (places <= high + rim)).all(axis=1)
    return np.zeros(len(places), dtype=np.int64), np.where(inside, 0.0, np.inf)


def _between(grid: StaggeredGrid, places: Array, component: int) -> tuple[Index, Array]:
    """Return the stored places around each place, and their weights, ``(n, 2^d)`` each.

    Parameters
    ----------
    grid
        The box.
    places : (n, d)
        In it.
    component
        Of the velocity; -1: what is in the middle of cells.
    """
    axes = [_along(grid, axis, places[:, axis], component) for axis in range(grid.dimension)]
    d = grid.dimension
    corners = list(product((0, 1), repeat=d))
    rows = [np.ravel_multi_index([axes[k][0][corner[k]] for k in reversed(range(d))], grid.full_shape)
            for corner in corners]  # fmt: skip
    weights = np.stack([np.prod([axes[k][1][corner[k]] for k in range(d)], axis=0) for corner in corners], axis=1)
    _complete(grid, [places for places, _ in axes], corners, weights)
    return np.stack(rows, axis=1).astype(np.int64), weights


def _complete(
    grid: StaggeredGrid, places: Sequence[tuple[Index, Index]], corners: Sequence[tuple[int, ...]], weights: Array
) -> None:
    """Let places beyond several sides at once, which hold nothing, be as linear from those around.

    ``v_S = sum_(k in S) v_k - (|S| - 1) v`` with the axes ``S`` along which one is beyond a side.
    """
    d = grid.dimension
    number = {corner: j for j, corner in enumerate(corners)}
    last = [n + 1 for n in grid.counts]

    def beyond(axis: int, end: int) -> npt.NDArray[np.bool_]:
        """Return which places are beyond an end of an axis, in the layer of ghost cells."""
        at = places[axis][end]
        return (at == 0) | (at == last[axis]) if not grid.periodic[axis] else np.zeros(at.shape, dtype=bool)

    for corner in corners:
        out = np.stack([beyond(k, corner[k]) for k in range(d)], axis=1)
        for row in np.flatnonzero(out.sum(axis=1) > 1).tolist():
            axes = np.flatnonzero(out[row]).tolist()
            weight, weights[row, number[corner]] = weights[row, number[corner]], 0.0
            for kept in (*axes, None):
                inner = tuple(1 - end if k in axes and k != kept else end for k, end in enumerate(corner))
                weights[row, number[inner]] += weight * (1.0 if kept is not None else 1.0 - len(axes))


def _along(grid: StaggeredGrid, axis: int, x: Array, component: int) -> tuple[tuple[Index, Index], tuple[Array, Array]]:
    """Return the two stored places along an axis that coordinates are between, and their weights."""
    faces, n, joined = grid.faces[axis], grid.counts[axis], grid.periodic[axis]
    shift = 0 if joined else 1  # of what is stored, the first place is beyond the lower end
    if component == axis:  # at the lower faces
        lines = faces
        first = 0
    else:
        centres, last, length = grid.centres(axis), len(faces) - 1, float(faces[-1] - faces[0])
        if joined:
            ends = (centres[-1] - length, centres[0] + length)
        else:  # of the velocity as far beyond the side as the next one is before it
            ends = (2.0 * faces[0] - centres[0], 2.0 * faces[last] - centres[-1])
        outer = joined or component >= 0
        lines = np.concatenate([ends[:1], centres, ends[1:]]) if outer else centres
        first = -1 if outer else 0
    below = np.clip(np.searchsorted(lines, x, side="right") - 1, 0, len(lines) - 2)
    upper = (x - lines[below]) / (lines[below + 1] - lines[below])
    lower_place, upper_place = below + first + shift, below + first + 1 + shift
    if joined:
        lower_place, upper_place = lower_place % n, upper_place % n
    return (lower_place, upper_place), (1.0 - upper, upper)
