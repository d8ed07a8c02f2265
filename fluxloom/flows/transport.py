"""A case of transport on edges as it runs: the scalar at points, its sums over time, where the run is slow."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy.typing as npt

from fluxloom.core.errors import SolverError
from fluxloom.core.strategies import strategy_name
from fluxloom.dsl.chain import Chain
from fluxloom.flows.edge_flow import FlowOnPoints, volume_of
from fluxloom.flows.flow_change import Change
from fluxloom.flows.flow_plan import StepLengths
from fluxloom.flows.flow_watch import edge_transport_watch
from fluxloom.run.flow import HistoryPanel, Picture, Until
from fluxloom.run.guard_limits import GuardLimits
from fluxloom.run.start import Start
from fluxloom.run.watch import Watch
from fluxloom.solvers.edge_transport import EdgeTransport, TransportState

__all__ = ["EdgeTransportRun"]


class EdgeTransportRun(FlowOnPoints):
    """The solver of transport on edges, ready to advance by steps; see `FlowInTime` for the parameters.

    The velocity stays as it is, so that the largest stable step is found once.
    """

    remembers = (*FlowOnPoints.remembers, "_limit")

    curves = (
        HistoryPanel("least and most", ("least", "most")),
        HistoryPanel("amount", ("amount",)),
        HistoryPanel("square", ("square",)),
    )
    unknown, section = "c", "scalar"

    def __init__(self, solver: EdgeTransport, lengths: StepLengths) -> None:
        self.solver, self.domain, mass = solver, solver.mesh, solver.operators.mass
        super().__init__(solver, Change(solver.c, mass, volume_of(mass)), lengths)
        self._limit = 0.0

    def _take(self, start: Start) -> None:
        """Take the scalar of another result, bounded by those around it."""
        solver = self.solver
        solver.take(start.at(solver.places, ("scalar",), bounded=True)["scalar"])

    # ------------------------------------------------------------------------------------- advance
    def _largest_step(self) -> float:
        if not self._limit:
            self._limit = self.solver.stable_step(self.lengths.courant)
        return self._limit

    def _state(self) -> TransportState:
        """Return sums and range, NaN where the scalar is lost: the fields show where. Collective."""
        try:
            return self.solver.state()
        except SolverError:
            return TransportState(self.solver.time, self.solver.steps, *[math.nan] * 4)

    def columns(self) -> dict[str, float]:
        """Return time, amount, square and range of the scalar."""
        state = self._state()
        return {
            "time": state.time, "amount": state.amount, "square": state.square, "least": state.least,
            "most": state.most,
        }  # fmt: skip

    # --------------------------------------------------------------------------------------- results
    @property
    def chains(self) -> Sequence[Chain]:
        """Every chain of a step."""
        return [*self.solver.chains, self.solver.limit, self._change.chain]

    def pictures(self, name: str) -> Sequence[Picture]:
        """Return the scalar."""
        return (Picture("scalar", f"Scalar: {name}, time {self.solver.time:.6g}", "scalar"),)

    def fields(self) -> Mapping[str, npt.NDArray[Any]]:
        """Return the scalar, ``(n,)``."""
        return {"scalar": self.solver.scalar()}

    def choices(self) -> Sequence[tuple[str, str]]:
        """Return how the scalar is carried."""
        solver = self.solver
        free = f"{strategy_name(solver.scheme.convection)}, not bounded (scheme.bounded)"
        return (("scheme", free if solver.bounded is None else "bounded, by flux correction (scheme.bounded)"),)

    def _sums(self) -> Sequence[tuple[str, str]]:
        state = self._state()
        return (
            ("amount", f"{state.amount:.9g}"),
            ("square", f"{state.square:.9g}"),
            ("range", f"{state.least:.6g} to {state.most:.6g}"),
            *self.choices(),
        )

    def watch(self, table: GuardLimits, until: Until) -> Watch:
        """Return what guards look at. Collective."""
        return edge_transport_watch(self.solver, self.lengths, until, table)

    def advice(self) -> str:
        """Return what to change when the solution is lost."""
        if self.lengths.dt:
            return f"lower time.dt (now {self.lengths.dt:g}), or set it to 0 for the largest stable step"
        return "lower time.courant"
