"""Fast direct solvers of Poisson's equation on boxes."""

from fluxloom.linalg.poisson.boundary import Dirichlet, Neumann
from fluxloom.linalg.poisson.decomposition import Cut
from fluxloom.linalg.poisson.once import solve
from fluxloom.linalg.poisson.plan import Plan
from fluxloom.linalg.poisson.preconditioner import FastPoisson
from fluxloom.linalg.separable import (
    Axis,
    PeriodicSolver,
    Rows,
    Separable,
    SeparableEquation,
    SeparableSolver,
    SplitSolver,
)

__all__ = [
    "Axis",
    "Cut",
    "Dirichlet",
    "FastPoisson",
    "Neumann",
    "PeriodicSolver",
    "Plan",
    "Rows",
    "Separable",
    "SeparableEquation",
    "SeparableSolver",
    "SplitSolver",
    "solve",
]
