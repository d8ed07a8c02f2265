"""Probes: what a flow does at points, step by step, kept on the device and read in blocks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError, did_you_mean
from fluxloom.dsl.run.chain import Chain
from fluxloom.dsl.run.loop import Loop
from fluxloom.fv.flow_samples import sample_flow, sample_oblique, sample_scalar
from fluxloom.fv.geometry.volumes import Family
from fluxloom.fv.incompressible.linear_operators import LinearOperators
from fluxloom.fv.incompressible.wall_forces import pressure_gradients
from fluxloom.solvers.flow_signals import Signal
from fluxloom.solvers.flow_spaces import Rows, Space
from fluxloom.solvers.incompressible.corrections import FlowCorrections
from fluxloom.solvers.incompressible.flow import Incompressible
from fluxloom.solvers.incompressible.forces import straight_pressure
from fluxloom.solvers.incompressible.scalar import FlowScalar
from fluxloom.solvers.probe_records import Outside, ProbePoints, ProbeRecords, Source

__all__ = ["ProbeSeries", "Probes"]

Array = npt.NDArray[np.float64]
Index = npt.NDArray[np.int64]


@dataclass(frozen=True)
class ProbeSeries:
    """What probes have seen.

    Attributes
    ----------
    names, points
        Of the probes, and their coordinates ``(probes, d)``.
    time : (n,)
        Of the samples.
    velocity : (n, probes, d)
        At the probes.
    pressure : (n, probes)
        Kinematic, of the last step.
    scalars
        Name to values, ``(n, probes)``.
    """

    names: tuple[str, ...]
    points: Array
    time: Array
    velocity: Array
    pressure: Array
    scalars: Mapping[str, Array]

    def signal(self, probe: str, what: str) -> Signal:
        """Return what one probe has seen of ``"u"``, ``"v"``, ``"w"``, ``"p"`` or a scalar.

        Raises
        ------
        SolverError
            If there is no such probe or value.
        """
        if probe not in self.names:
            raise SolverError(f"no probe {probe!r}{did_you_mean(probe, self.names)} (probes: {', '.join(self.names)})")
        k = self.names.index(probe)
        columns = {"uvw"[i]: self.velocity[:, k, i] for i in range(self.velocity.shape[2])}
        columns |= {"p": self.pressure[:, k]} | {name: values[:, k] for name, values in self.scalars.items()}
        if what not in columns:
            known = ", ".join(columns)
            raise SolverError(f"probe {probe!r}: no {what!r}{did_you_mean(what, columns)} (it has {known})")
        return Signal(self.time, columns[what])


class Probes:
    """Points of a flow whose velocity, pressure and scalars are kept.

    Values are linear around the centre of the cell that a point is in, with the gradients of the flow's form: exact for
    linear fields on meshes of bricks, and on every mesh where the operators are corrected. There the pressure in a cell
    of at most three sides (in space five), which is uneven from one to the next, is the mean over it and those across
    its faces, images beyond planes of symmetry too, by volume, of ``p_j + (x - x_j) . (g_j + g) / 2`` with mean
    gradients ``g_j`` and their mean ``g``. Samples are kept as `fluxloom.solvers.probe_records.ProbeRecords` says.

    Parameters
    ----------
    flow
        Whose.
    points
        Name to coordinates ``(d,)``.
    capacity
        Samples that the device keeps before the host reads them all at once.
    outside
        Whether points outside of the mesh are an error, or left out.

    Raises
    ------
    SolverError
        If a point lies outside the mesh, is not finite or has the wrong number of coordinates, or there are none.

    Attributes
    ----------
    names, points, columns
        Of the points that are in the mesh, their coordinates, and the names of the values at each.
    records
        The samples.
    """

    def __init__(
        self, flow: Incompressible, points: Mapping[str, Sequence[float]], capacity: int = 256,
        outside: Outside = "error",
    ) -> None:  # fmt: skip
        self.flow = flow
        self._points = ProbePoints(flow.context, flow.volumes, points, outside)
        self.names, self.points = self._points.names, self._points.places
        self.columns: tuple[str, ...] = (*"uvw"[: flow.dimension], "p", *flow.scalars.all)
        self._scale = flow.context.scalar(1.0, "scale")
        found = flow.matrices.velocity_gradient()
        self._weights = _weights(self._points, found, flow.spaces.elements, "probes.weights")
        self._slope: Chain | None = None
        states = self._straight() if flow.corrections is None else self._oblique(flow.corrections)
        scalars = [self._scalar(name, scalar) for name, scalar in flow.scalars.all.items()]
        self.records = ProbeRecords(self._points, [states, *scalars], capacity)

    def _straight(self) -> Source:
        """Return what finds velocity and pressure, this with a row of cells too."""
        flow, over, weights = self.flow, self._points.set, self._weights
        if flow.scalars.buoyancy is not None and flow.scalars.buoyancy.level is not None:
            return self._beside_outlets()
        shares = _weights(self._points, pressure_gradients(flow.matrices), flow.spaces.cells, "probes.shares")
        return Source("flow", flow.dimension + 1, lambda found: Loop(
            sample_flow, over, weights.entries, flow.u[weights.pattern], shares.entries, flow.phi[shares.pattern],
            self._scale, found, d=flow.dimension,
        ))  # fmt: skip

    def _beside_outlets(self) -> Source:
        """Return the same where the pressure is not zero along outflows, which slopes of cells have to know."""
        flow, points, weights = self.flow, self._points, self._weights
        slope = flow.context.dat(flow.cells, name="probes.slope", shape=(flow.dimension,))
        self._slope = Chain(straight_pressure(flow, flow.cells, slope, "probes.gradient"), name="pressure at probes")
        columns = [np.array([cell], dtype=np.int64) for cell in points.cells.tolist()]
        shares = [np.concatenate([[1.0], reach, np.zeros_like(reach)])[None] for reach in points.reach]
        own = points.rows(flow.spaces.cells, columns, shares, "probes.shares", (1 + 2 * flow.dimension,))
        return Source("flow", flow.dimension + 1, lambda found: Loop(
            sample_oblique, points.set, weights.entries, flow.u[weights.pattern], own.entries, flow.phi[own.pattern],
            slope[own.pattern], slope[own.pattern], self._scale, found, d=flow.dimension,
        ))  # fmt: skip

    def _oblique(self, corrections: FlowCorrections) -> Source:
        """Return the same with corrected operators."""
        flow, points, weights = self.flow, self._points, self._weights
        loops, g = corrections.whole_pressure("probes.gradient", flow.scalars.buoyancy)
        self._slope = Chain(loops, name="pressure at probes")
        columns, shares = self._pressure_shares(corrections.whole_operators())
        rows = points.rows(flow.spaces.cells, columns, shares, "probes.shares", (1 + 2 * flow.dimension,))
        return Source("flow", flow.dimension + 1, lambda found: Loop(
            sample_oblique, points.set, weights.entries, flow.u[weights.pattern], rows.entries, flow.phi[rows.pattern],
            g.raw[rows.pattern], g.mean[rows.pattern], self._scale, found, d=flow.dimension,
        ))  # fmt: skip

    def _pressure_shares(self, linear: LinearOperators) -> tuple[list[Index], list[Array]]:
        """Return cells for each point, and what they count: their pressure, their gradients, and mean ones."""
        cv, points = self.flow.volumes, self._points
        means, (_, images), sides = linear.means(), linear.images(), np.diff(linear.operators.sides.offsets)
        columns: list[Index] = []
        shares: list[Array] = []
        for cell, reach, place in zip(points.cells.tolist(), points.reach, points.places[points.mine], strict=True):
            if sides[cell] < 2 * cv.dimension:
                row, beyond = (slice(*rows.offsets[cell : cell + 2].tolist()) for rows in (means, images))
                others, image = means.columns[row].astype(np.int64), images.values[beyond]
                far = np.einsum("ij,ij->i", cv.centres[images.columns[beyond]] - cv.centres[cell], image[:, 1:])
                near = np.concatenate([others, np.full(len(image), cell)])
                share = np.concatenate([means.values[row], image[:, 0]])[:, None]
                normal = np.concatenate([np.zeros((others.size, cv.dimension)), image[:, 1:]])
                away = place - cv.centres[near]
                away[others.size :] -= 2.0 * far[:, None] * image[:, 1:]
                away += (share * away).sum(axis=0)
                away -= 2.0 * np.einsum("ij,ij->i", away, normal)[:, None] * normal
                shares.append(np.hstack([share, np.zeros_like(away), 0.5 * share * away]))
            else:
                near = np.array([cell], dtype=np.int64)
                shares.append(np.hstack([1.0, reach, np.zeros_like(reach)])[None])
            columns.append(near)
        return columns, shares

    def _scalar(self, name: str, scalar: FlowScalar) -> Source:
        """Return what finds a scalar."""
        rows = self._weights
        if scalar.corrections is not None:
            found = scalar.corrections.linear.gradients()
            rows = _weights(self._points, found, self.flow.spaces.elements, f"probes.{name}")
        theta = scalar.theta[rows.pattern]
        return Source(name, 1, lambda found: Loop(sample_scalar, self._points.set, rows.entries, theta, found))

    # ------------------------------------------------------------------------------ sampling
    def sample(self) -> None:
        """Keep what is at the probes now."""
        self._scale.value = 1.0 / self.flow.impulse
        if self._slope is not None:
            self._slope()
        self.records.sample(self.flow.time)

    def series(self, first: int = 0) -> ProbeSeries:
        """Return all samples, or those from the one with the number ``first`` on. Collective; all ranks get the same.

        Raises
        ------
        SolverError
            If there is none.
        CheckpointError
            If a run catches up with its checkpoint: the samples are not there yet.
        """
        time, whole = self.records.values(first)
        d = self.flow.dimension
        scalars = {name: whole[:, :, d + 1 + k] for k, name in enumerate(self.flow.scalars.all)}
        return ProbeSeries(self.names, self.points, time, whole[:, :, :d], whole[:, :, d], scalars)

    def reset(self) -> None:
        """Forget all samples."""
        self.records.reset()


def _weights(points: ProbePoints, gradient: Family, space: Space, name: str) -> Rows:
    """Return the rows ``1 + reach . G`` of the cells of points; the cell itself comes first in each."""
    columns, values = [], []
    for cell, away in zip(points.cells.tolist(), points.reach, strict=True):
        row = slice(int(gradient.offsets[cell]), int(gradient.offsets[cell + 1]))
        columns.append(np.concatenate([[cell], gradient.columns[row]]))
        values.append(np.concatenate([[1.0], gradient.values[row] @ away]))
    return points.rows(space, columns, values, name)
