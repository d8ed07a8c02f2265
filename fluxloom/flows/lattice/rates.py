"""How fast a case of lattice Boltzmann flow runs, and how fast the memory would let it run."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from fluxloom.comm.base import Comm
from fluxloom.dsl.run.report import LoopReport

__all__ = ["Rate", "bound_row", "bytes_of_step"]


class Rate:
    """Cells a second, from the first time that one asks to the last; whoever asks has waited for the device.

    Parameters
    ----------
    cells
        That a step updates, of all ranks.

    Attributes
    ----------
    value
        Zero while it is not known.
    """

    def __init__(self, cells: int) -> None:
        self._cells, self.value = cells, 0.0
        self._first: tuple[int, float] | None = None

    def note(self, steps: int) -> None:
        """Take note of how many steps have been made until now."""
        now = time.perf_counter()
        if self._first is None:
            self._first = (steps, now)
        elif steps > self._first[0]:
            self.value = (steps - self._first[0]) * self._cells / (now - self._first[1])


def bytes_of_step(comm: Comm, reports: Sequence[LoopReport], steps: int, cells: int) -> float:
    """Return the useful bytes of a cell and a step of all ranks, ``sum bytes calls / (steps cells)``. Collective."""
    mine = sum(report.useful_bytes * report.calls for report in reports)
    return float(comm.reduce(np.array([float(mine)]), "sum")[0]) / max(1, steps) / cells


def bound_row(rate: float, each: float, copy_gbs: float, ranks: int) -> tuple[str, str]:
    """Return the row of the summary that compares the rate with what the memory allows, ``10^9 copy_gbs / each``.

    Parameters
    ----------
    rate
        Cells a second; zero: not known.
    each
        Bytes of a cell and a step.
    copy_gbs
        Copy bandwidth of all ranks together, measured.
    """
    most = 1e9 * copy_gbs / each
    of = f" of {ranks} ranks" if ranks > 1 else ""
    part = f"; {100 * rate / most:.0f} % of it" if rate else ""
    text = f"the copy bandwidth{of}, {copy_gbs:.4g} GB/s, by {each:.4g} bytes{part}"
    return "ideal rate", f"{most / 1e6:.4g} MLUPS: {text}"
