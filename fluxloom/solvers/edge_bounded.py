"""A step of transport on edges that makes no new extremum: stages of Shu and Osher's, each corrected flux by flux."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from fluxloom.core.errors import SolverError
from fluxloom.dsl.chain import Chain, Reset
from fluxloom.dsl.loop import Loop
from fluxloom.fe import edge_bounded as kernels
from fluxloom.fe.edge_transport import hold
from fluxloom.fv.flux_correction import allowances, corrected, unlimited
from fluxloom.fv.given import Given, given_values
from fluxloom.fv.steep_start import discontinuous, steepest
from fluxloom.solvers.edge_transport_given import BEGIN, END, MIDDLE

if TYPE_CHECKING:
    from fluxloom.solvers.edge_transport import EdgeTransport

__all__ = ["BoundedTransport", "starts_with_a_jump"]

_STAGES = (0.0, 0.75, 1.0 / 3.0)
"""What each stage has of the start of the step."""

_ROUNDING = 1e-9


class BoundedTransport:
    """The loops of a bounded step, see `fluxloom.fe.edge_bounded`.

    Parameters
    ----------
    transport
        Whose scalar it is.

    Attributes
    ----------
    prepare, advance
        What a new velocity or step needs, and a step.
    """

    forgets = ("pair", "flux", "low", "rate", "allowed", "start")

    def __init__(self, transport: EdgeTransport) -> None:
        self.transport = transport
        ctx, ops, points = transport.context, transport.operators, transport.mesh.points
        entries = ops.neighbours.entries
        self.pair = ctx.dat(entries, name="bounded.pair", shape=(3,), layout=ops.entries.layout)
        self.flux = ctx.dat(entries, name="bounded.flux")
        self.low, self.rate, self.allowed, self.start = (
            ctx.dat(points, name=f"bounded.{name}", shape=shape)
            for name, shape in (("low", ()), ("rate", ()), ("allowed", (2,)), ("start", ()))
        )
        self.inverse = ctx.dat(points, 1.0 / ops.mass.read(), "bounded.inverse")
        self._fastest = ctx.scalar(0.0, "bounded.fastest")
        rows, both = ops.neighbours.to_entries, transport.both
        self.prepare = Chain([
            Reset(self._fastest),
            Loop(kernels.prepare, points, ops.entries[rows], *both(transport.u, transport.kappa), self.inverse,
                 self.pair[rows], self._fastest, d=transport.dimension, name="bounded.prepare"),
        ], name="bounded.prepare")  # fmt: skip
        keep = Loop(hold, points, transport.c, self.start, name="bounded.start")
        stages = zip(_STAGES, (BEGIN, END, MIDDLE), (END, MIDDLE, END), strict=True)
        self.advance = Chain([keep, *(loop for stage in stages for loop in self._stage(*stage))], name="bounded")

    def _stage(self, share: float, begin: int, end: int) -> list[Loop]:
        """Return the loops of a stage, from ``c`` to ``c``, and of one moment to another."""
        own, points = self.transport, self.transport.mesh.points
        rows, both, dt = own.operators.neighbours.to_entries, own.both, own.step_length
        free = [] if own.held is None else [Loop(unlimited, own.held, self.allowed, name="bounded.unlimited")]
        mixed = [Loop(kernels.blend, points, self.start, own.c, share=share, name="bounded.blend")] if share else []
        if mixed and own.values.moves:
            mixed += own.values.hold(own.c, end)
        return [
            *own.sources.loops(begin),
            Loop(kernels.low_order, points, self.pair[rows], *both(own.c), self.inverse, own.source, dt, self.rate,
                 self.low, name="bounded.low"),
            *own.values.hold(self.low, end),
            Loop(kernels.edge_fluxes, points, self.pair[rows], *both(own.c, self.rate), self.flux[rows],
                 name="bounded.fluxes"),
            Loop(allowances, points, self.flux[rows], *both(self.low, own.c), self.inverse, dt, self.allowed,
                 name="bounded.allowances"),
            *free,
            Loop(corrected, points, self.flux[rows], *both(self.allowed), self.low, self.inverse, dt, own.c,
                 name="bounded.corrected"),
            *own.values.hold(own.c, end),
            *mixed,
        ]  # fmt: skip

    def check(self, dt: float) -> None:
        """Raise `SolverError` where a step is too long to be bounded; `prepare` has run. Collective."""
        longest = self.longest()
        if dt > longest * (1.0 + _ROUNDING):
            raise SolverError(
                f"dt = {dt:g}: a bounded scalar takes steps of at most {longest:.4g} here; take a shorter one, "
                "0 for the largest, or bounded = false"
            )

    def longest(self) -> float:
        """Return the longest step that makes no new extremum; `prepare` has run. Collective."""
        rate = float(self._fastest.value)
        return 1.0 / rate if rate > 0.0 else float("inf")


def starts_with_a_jump(transport: EdgeTransport, initial: Given, given: Mapping[str, Given]) -> bool:
    """Return whether the scalar jumps at the start, between points or to what is given where flow enters. Collective.

    The latter where there is no source: with one, a start is but where the way to a steady state begins.

    Parameters
    ----------
    transport
        Whose scalar it is.
    initial
        What it starts from.
    given
        Patch to what it is there.
    """
    places, pattern, size = transport.mesh.coordinates, transport.operators.neighbours, transport.mesh.points.size
    first = np.repeat(np.arange(size), np.diff(pattern.offsets[: size + 1]))
    second = pattern.indices[: first.size]
    pairs = first < second
    start = given_values("initial", initial, places)
    jumps = [np.array([steepest(initial, places[first[pairs]], places[second[pairs]])])]
    values, velocity = [start], transport.u.read()
    sourced = transport.context.comm.reduce(np.array([np.abs(transport.source.read()).max(initial=0.0)]), "max")[0]
    sourced += transport.sources.moves
    for name, scalar in given.items() if sourced == 0.0 else ():
        patch = transport.mesh.patches[name]
        enters = np.einsum("ij,ij->i", velocity[patch.points], patch.areas) < 0.0
        there = given_values(f"patch {name!r}", scalar, places[patch.points])
        values.append(there)
        jumps.append(np.abs(there - start[patch.points])[enters])
    return discontinuous(transport.context.comm, values, jumps)
