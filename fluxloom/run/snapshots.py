"""Files of the fields now and then."""

from __future__ import annotations

from collections.abc import Sequence

from fluxloom.core.errors import SolverError
from fluxloom.run.flow_run import gathered
from fluxloom.run.moments import Moments
from fluxloom.run.monitor import Monitor, Watched
from fluxloom.run.results.files import fields_name, write_fields
from fluxloom.run.results.results import ResultFolder

__all__ = ["Snapshots"]


class Snapshots(Monitor):
    """The fields now and then: ``snapshot_000100.vtkhdf`` behind step 100, ``snapshot_0003.vtkhdf`` at three periods.

    Parameters
    ----------
    every
        Steps between two of them; 0: none by steps.
    period
        Time of the flow between two of them, instead of steps: steps of free length hit these times, of others the
        first one at such a time or behind it counts.
    fields
        Names and formulas, as `fluxloom.run.fields.Fields.chosen` takes them; empty: those of the flow.

    Raises
    ------
    SolverError
        If there is neither a number of steps nor a time, or both, or one below 0.
    """

    def __init__(self, every: int = 0, period: float = 0.0, fields: Sequence[str] = ()) -> None:
        if bool(every) == bool(period):
            raise SolverError("snapshots: give every, steps from one to the next, or period, the time between them")
        self.moments, self.wanted = Moments(every, period), tuple(fields)
        self._run: Watched | None = None

    @property
    def every(self) -> int:
        """Steps between two of them; 0: they are at times."""
        return self.moments.every

    def attach(self, run: Watched) -> None:
        """Hear of the run whose fields are written.

        Raises
        ------
        SolverError
            If times are wanted of a flow that has none, or there is no such field.
        """
        self.moments.check(run.flow)
        run.fields().chosen(self.wanted)
        self._run = run

    def begin(self, folder: ResultFolder) -> None:
        """Hear where files go."""
        super().begin(folder)
        self.moments.begin(self._watched.flow)

    @property
    def _watched(self) -> Watched:
        assert self._run is not None
        return self._run

    def next_time(self) -> float:
        """Return the time of the next file."""
        return self.moments.next_time(self._watched.flow)

    def stepped(self) -> None:
        """Write the fields where they are due."""
        run = self._watched
        if self.moments.come(run.flow):
            number = self.moments.number(run.flow)
            self._write(run, f"snapshot_{number:04d}" if self.moments.period else f"snapshot_{number:06d}")

    def reached(self) -> None:
        """Write the fields where a time is due."""
        if self.moments.period:
            self.stepped()

    def _write(self, run: Watched, stem: str) -> None:
        flow, nodal, chosen = run.flow, bool(run.flow.points), run.fields().chosen(self.wanted)
        fields = gathered(flow.context.comm, flow.part, chosen)
        self.folder.write_at(
            flow.now, fields_name("auto", stem),
            lambda path: write_fields(path, run.mesh(), fields, nodal=nodal, time=flow.now, units=chosen.units),
        )  # fmt: skip
