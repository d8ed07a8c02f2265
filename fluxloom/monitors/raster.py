"""Pictures of a field of any flow, from its values at the points of a raster."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError, did_you_mean
from fluxloom.monitors.slices import bounds_of
from fluxloom.run.fields import Fields
from fluxloom.run.measures import CellValues
from fluxloom.run.monitor import Watched

__all__ = ["Raster"]

Array = npt.NDArray[np.float64]

_COLUMNS = 320
_AXES = 3


class Raster:
    """A field at the points of a raster (`fluxloom.run.measures.Frames`), of a volume in the middle across z.

    Parameters
    ----------
    run
        Whose flow has values at points. Attaching is collective.
    field
        A value that the flow has at points, or where these are cells any field with one number; else, where the
        velocity is among the values, ``"speed"`` or ``"vorticity"``.

    Raises
    ------
    SolverError
        If there is no such field, or the flow has no values at points.
    """

    largest = 0.0

    def __init__(self, run: Watched, field: str) -> None:
        flow = run.flow
        low, high = bounds_of(run)
        size = (high[0] - low[0]) / _COLUMNS
        rows = max(2, round((high[1] - low[1]) / size))
        x, y = low[0] + (np.arange(_COLUMNS) + 0.5) * size, low[1] + (np.arange(rows) + 0.5) * (high[1] - low[1]) / rows
        more = [0.5 * (low[2] + high[2])] if flow.dimension == _AXES else []
        places = {f"{k}": (*at, *more) for k, at in enumerate((a, b) for b in y.tolist() for a in x.tolist())}
        self._points = flow.at_points(places, 1, "leave out")
        self._at = np.array([int(name) for name in self._points.names])
        self._field, self._sizes, self._shape = field, (y[1] - y[0], size), (rows, _COLUMNS)
        self.hidden = np.ones(self._shape, dtype=bool)
        self.hidden.ravel()[self._at] = False
        self.signed, self._flow, known = field == "vorticity", flow, list(self._points.columns)
        if isinstance(self._points, CellValues):
            fields = Fields.of(flow.fields()).known
            known += [name for name, one in fields.items() if one.components == 1 and name not in known]
        elif {"u", "v"} <= set(known):
            known = ["speed", "vorticity", *known]
        if field not in known:
            there = ", ".join(known)
            raise SolverError(f"no field {field!r} at points{did_you_mean(field, known)} (there are {there})")

    def ask(self, work: Callable[[Array | None], None]) -> None:
        """Find the field, and have work done on it. Collective."""
        points, comm = self._points, self._flow.context.comm
        if isinstance(points, CellValues) and self._field not in points.columns:
            here = Fields.of(self._flow.fields()).chosen([self._field])[self._field][points.cells]
            values = np.empty((1, len(points.names)))
            for mine, found in comm.allgather((points.mine, here)):
                values[0, mine] = found
            columns: tuple[str, ...] = (self._field,)
        else:
            points.sample()
            values, columns = points.records.values()[1][-1].T, points.columns
            points.records.reset()
        work(None if comm.rank else self._picture(dict(zip(columns, values, strict=True))))

    def _picture(self, values: dict[str, Array]) -> Array:
        """Return the field, ``(rows, columns)``."""
        if self._field in values:
            return self._spread(values[self._field])
        if self._field == "speed":
            return self._spread(np.sqrt(sum(values[name] ** 2 for name in "uvw" if name in values)))
        u, v = self._spread(values["u"]), self._spread(values["v"])
        return np.gradient(v, self._sizes[1], axis=1) - np.gradient(u, self._sizes[0], axis=0)

    def _spread(self, values: Array) -> Array:
        found = np.full(self._shape, np.nan)
        found.ravel()[self._at] = values
        return found

    def settle(self) -> None:
        """Nothing is left to be done."""
