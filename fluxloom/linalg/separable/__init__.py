"""Separable elliptic equations in two directions by block cyclic reduction, on one device or on two."""

from __future__ import annotations

from fluxloom.linalg.separable.coefficients import Rows, Separable
from fluxloom.linalg.separable.equation import Axis, SeparableEquation
from fluxloom.linalg.separable.hybrid import SplitSolver
from fluxloom.linalg.separable.modes import PeriodicSolver
from fluxloom.linalg.separable.solver import SeparableSolver, Timed

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
