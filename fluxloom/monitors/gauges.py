"""Gauges: depth, surface and velocity of water at points over time, ``gauges.csv``."""

from __future__ import annotations

from fluxloom.monitors.point_samples import Points
from fluxloom.monitors.probes import Probes
from fluxloom.run.flow import HistoryPanel
from fluxloom.run.results.results import ResultFolder

__all__ = ["Gauges"]


class Gauges(Probes):
    """Probes of water, by their own name: also at the start, and with a picture of the surface at each.

    Parameters
    ----------
    points
        Name to coordinates.
    period
        Seconds between two samples.
    """

    name, file = "gauges", "gauges.csv"

    def __init__(self, points: Points, period: float) -> None:
        super().__init__(points, period=period)

    def begin(self, folder: ResultFolder) -> None:
        """Open the file; its first row is the start."""
        super().begin(folder)
        if not len(self.rows()):
            self._sample()

    def draw(self, name: str) -> None:
        """Draw the surface at the gauges over time."""
        rows = self.rows()
        if len(rows) < 2:
            return
        from fluxloom.run.pictures import draw_history

        panels = [(HistoryPanel(f"{gauge} [m]", (gauge,)), self.column(f"{gauge}.elevation")[:, None])
                  for gauge in self.inside]  # fmt: skip
        title = f"{name}: surface at the gauges"
        self.folder.write("gauges.png", lambda path: draw_history(path, "time [s]", rows[:, 0], panels, title))
