"""Fast direct solvers of Poisson's equation on boxes.

Read `plan` (a solver to use again and again) and `problem` (what is solved) first, then `choice` (which way), `stages`
(the calls of a solve) with `moves`, `passes` and `middle`, `decomposition` (slabs on ranks), `once`, `preconditioner`.
"""

from fluxloom.linalg.direct.poisson.boundary import Dirichlet, Neumann
from fluxloom.linalg.direct.poisson.decomposition import Cut
from fluxloom.linalg.direct.poisson.once import solve
from fluxloom.linalg.direct.poisson.plan import Plan
from fluxloom.linalg.direct.poisson.preconditioner import FastPoisson
from fluxloom.linalg.direct.separable import (
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
