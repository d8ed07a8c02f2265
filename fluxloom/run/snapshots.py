"""Files of the fields now and then."""

from __future__ import annotations

from fluxloom.run.files import fields_name, write_fields
from fluxloom.run.gathering import gathered
from fluxloom.run.monitor import Monitor, Watched

__all__ = ["Snapshots"]


class Snapshots(Monitor):
    """The fields now and then, ``snapshot_000100.vtkhdf`` for step 100.

    Parameters
    ----------
    every
        Steps between two of them.
    """

    def __init__(self, every: int) -> None:
        self.every = every
        self._run: Watched | None = None

    def attach(self, run: Watched) -> None:
        """Hear of the run whose fields are written."""
        self._run = run

    def stepped(self) -> None:
        """Write the fields where they are due."""
        assert self._run is not None
        if self._run.flow.steps % self.every == 0:
            self._write(self._run)

    def _write(self, run: Watched) -> None:
        flow, nodal = run.flow, bool(run.flow.points)
        fields = gathered(flow.context.comm, flow.part, run.fields())
        time = float(flow.steps) if flow.time is None else flow.time  # of a steady flow the steps
        name = fields_name("auto", f"snapshot_{flow.steps:06d}")
        self.folder.write_at(
            time, name, lambda path: write_fields(path, run.mesh(), fields, nodal=nodal, time=time)
        )  # fmt: skip
