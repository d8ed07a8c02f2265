"""Steps of a scalar of a flow that make no new extremum."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from fluxloom.core.errors import SolverError
from fluxloom.dsl.declare.dats import Dat, Global
from fluxloom.dsl.run.loop import Loop
from fluxloom.fv.given import changes, given_values
from fluxloom.fv.incompressible.flux_correction import allowances, corrected
from fluxloom.fv.incompressible.scalar_boundary import Field
from fluxloom.fv.incompressible.scalar_bounded import (
    bounded_limit,
    bounded_transport,
    cell_fluxes,
    low_order,
    oblique_part,
)
from fluxloom.fv.steep_start import discontinuous, steepest
from fluxloom.solvers.flow_spaces import Rows
from fluxloom.solvers.incompressible.scalar_corrections import CarryingFlow, CorrectedScalar, ScalarCorrections
from fluxloom.values.value import has_values

__all__ = ["BoundedScalar", "starts_with_a_jump"]

_ROUNDING = 1e-9


class CarriedScalar(CorrectedScalar, Protocol):
    """What bounded steps take of a scalar, see `fluxloom.solvers.incompressible.scalar.FlowScalar`."""

    what: str
    flow: CarryingFlow
    corrections: ScalarCorrections | None
    source: Dat
    kind: Dat
    given: Dat

    def boundary(self, theta: Dat) -> list[Loop]:
        """Return the loop that sets values at the boundary from those of the cells."""
        ...


class BoundedScalar:
    """The loops of bounded steps, see `fluxloom.fv.incompressible.scalar_bounded`.

    What two points lack on oblique meshes is limited as all fluxes between cells are, also at boundaries.

    Parameters
    ----------
    scalar, name
        Whose.
    """

    forgets = ("pair", "flux", "low", "before", "allowed")

    def __init__(self, scalar: CarriedScalar, name: str) -> None:
        self.scalar, self._name, flow = scalar, name, scalar.flow
        ctx, pattern, sides = flow.context, flow.transport.pattern, flow.matrices.operators.sides
        self.pair = ctx.dat(pattern.entries, name=f"{name}.pair", shape=(3,))
        self.flux = ctx.dat(pattern.entries, name=f"{name}.fluxes")
        found = sides.rows(np.where(sides.outside, 0.0, 1.0), np.full(sides.cells, -1.0))
        self.link = flow.spaces.elements.more(pattern, found, f"{name}.link")
        self.low, self.before = (ctx.dat(flow.elements, name=f"{name}.{end}") for end in ("low", "before"))
        self.allowed = ctx.dat(flow.elements, name=f"{name}.allowed", shape=(2,))
        self._worst = ctx.scalar(0.0, f"{name}.worst")

    def explicit(self) -> list[Loop]:
        """Return the loops from the values ahead to new values of cells."""
        scalar, flow = self.scalar, self.scalar.flow
        theta, ahead, rows, near = scalar.theta, scalar.ahead, flow.entry_faces, flow.transport.pattern
        oblique = scalar.corrections
        lacking = [] if oblique is None else [
            *oblique.fluxes(), Loop(oblique_part, near.entries, rows.entries, oblique.flux[rows.pattern], self.pair)]
        pair, link, flux = (dat[near.to_entries] for dat in (self.pair, self.link, self.flux))
        return [
            Loop(bounded_transport, near.entries, rows.entries, flow.us_ahead[rows.pattern],
                 self._alpha[rows.pattern], self.pair),
            *lacking,
            Loop(low_order, flow.elements, pair, link, theta[near], theta, flow.inverse, scalar.source,
                 flow.step_length, self.low, self.before, self._worst),
            *scalar.boundary(self.low),
            Loop(cell_fluxes, flow.elements, pair, link, self.before[near], self.before, ahead[near], ahead, flux),
            Loop(allowances, flow.elements, flux, self.low[near], self.low, self.before[near], self.before,
                 flow.inverse, flow.step_length, self.allowed),
            Loop(corrected, flow.elements, flux, self.allowed[near], self.allowed, self.low, flow.inverse,
                 flow.step_length, theta),
        ]  # fmt: skip

    @property
    def _alpha(self) -> Dat:
        """The diffusivity of two-point derivatives."""
        oblique = self.scalar.corrections
        return self.scalar.alpha if oblique is None else oblique.raised

    def limit(self, out: Rows, step: Global) -> list[Loop]:
        """Return the loops that limit steps to those that are bounded."""
        scalar, flow = self.scalar, self.scalar.flow
        known = scalar.corrections
        raised = [] if known is None else [known.corrections.raising(scalar.alpha, known.raised)]
        return [*raised, Loop(bounded_limit, flow.cells, out.entries, flow.us[out.pattern], self._alpha[out.pattern],
                              flow.volume, step, name=f"{self._name}.bounds")]  # fmt: skip

    def check(self) -> None:
        """Raise `SolverError` if a step since the start was too long to be bounded. Collective."""
        worst = float(self._worst.value)
        if worst > 1.0 + _ROUNDING:
            raise SolverError(
                f"{self.scalar.what}: a step was {worst:.3g} times the longest one that keeps its bounds; take dt "
                "smaller, 0 for the largest step, or bounded = false"
            )


def starts_with_a_jump(scalar: CarriedScalar, initial: Field, source: Field) -> bool:
    """Return whether a scalar jumps at the start, between cells or to what flows in. Collective.

    The latter where there is no source: with one, a start is but where the way to a steady state begins.
    """
    flow, cv = scalar.flow, scalar.flow.volumes
    cells = cv.centres[: cv.cells]
    start = given_values(f"{scalar.what}: initial", initial, cells)
    wrapped = cv.wrapped.faces
    beside = np.setdiff1d(np.arange(cv.interior), wrapped)
    jumps = [np.array([steepest(initial, *cv.centres[cv.faces[beside].T])])]
    if callable(initial) or has_values(initial):  # periodic faces have two places
        ends = cv.centres[cv.faces[wrapped].T] + np.stack([cv.arms[wrapped], (cv.arms - cv.ways)[wrapped]])
        here, there = (given_values(f"{scalar.what}: initial", initial, places) for places in ends)
        jumps += [np.abs(here - there)]
    values = [start]
    sources = given_values(f"{scalar.what}: source", source, cells)
    largest = flow.context.comm.reduce(np.array([np.abs(sources).max(initial=0.0)]), "max")[0]
    if not (largest or changes(source)):
        owned = flow.spaces.elements.owned
        number = np.arange(cv.elements)[owned]
        there = number >= cv.cells
        velocity, kind, value = (dat.read()[there] for dat in (flow.given, scalar.kind, scalar.given))
        number = number[there]
        entering = np.einsum("ij,ij->i", velocity, cv.areas[cv.interior :][number - cv.cells]) < 0.0
        entering &= (kind < 0) & flow.conditions.prescribed[number - cv.cells]  # both are given
        behind = cv.faces[cv.interior :][number - cv.cells, 0]
        values.append(value[entering])
        known = start[behind]
        if callable(initial) or has_values(initial):  # at the faces: what it changes by up to the cells is no jump
            known = given_values(f"{scalar.what}: initial", initial, cv.centres[number])
        jumps.append(np.abs(value - known)[entering])
    return discontinuous(flow.context.comm, values, jumps)
