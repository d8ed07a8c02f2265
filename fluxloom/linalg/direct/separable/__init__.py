"""Separable elliptic equations in two directions by block cyclic reduction, on one device or on two.

Read `equation` (what is discretised) and `solver` first, then `program` (a solve as data: `roots`, `jobs`, `batches`),
`native` (as functions; `text` puts them together from the files ``*.c``), `hybrid` (two devices), `modes` (a third
direction).
"""

from __future__ import annotations

from fluxloom.linalg.direct.separable.coefficients import Rows, Separable
from fluxloom.linalg.direct.separable.equation import Axis, SeparableEquation
from fluxloom.linalg.direct.separable.hybrid import SplitSolver
from fluxloom.linalg.direct.separable.modes import PeriodicSolver
from fluxloom.linalg.direct.separable.solver import SeparableSolver, Timed

__all__ = [
    "Axis",
    "PeriodicSolver",
    "Rows",
    "Separable",
    "SeparableEquation",
    "SeparableSolver",
    "SplitSolver",
    "Timed",
]
