"""Sparse matrices as ragged maps with values, their products as loops, and iterative solvers made of loops."""

from __future__ import annotations

from fluxloom.linalg.approximate_inverse import ApproximateInverse
from fluxloom.linalg.bicgstab import BiCGStab
from fluxloom.linalg.chebyshev import Chebyshev, DampedJacobi
from fluxloom.linalg.conjugate_gradient import ConjugateGradient
from fluxloom.linalg.distribute import distributed_matrix
from fluxloom.linalg.extruded import ExtrudedPoisson
from fluxloom.linalg.extruded_tuning import ExtrudedTuning
from fluxloom.linalg.hybrid import HybridMatrix
from fluxloom.linalg.hybrid_balance import balance_kernel, balance_rows
from fluxloom.linalg.jacobi import Jacobi
from fluxloom.linalg.layouts import fastest_layouts
from fluxloom.linalg.matrix import SparseMatrix
from fluxloom.linalg.multigrid import SmoothedAggregation
from fluxloom.linalg.products import spmv
from fluxloom.linalg.reorder import permuted, reorder
from fluxloom.linalg.ssor import SSOR
from fluxloom.linalg.status import Status, Stop
from fluxloom.linalg.two_level import GatheredSolver
from fluxloom.linalg.two_level_rows import nested_parts, spread_rows

__all__ = [
    "SSOR",
    "ApproximateInverse",
    "BiCGStab",
    "Chebyshev",
    "ConjugateGradient",
    "DampedJacobi",
    "ExtrudedPoisson",
    "ExtrudedTuning",
    "GatheredSolver",
    "HybridMatrix",
    "Jacobi",
    "SmoothedAggregation",
    "SparseMatrix",
    "Status",
    "Stop",
    "balance_kernel",
    "balance_rows",
    "distributed_matrix",
    "fastest_layouts",
    "nested_parts",
    "permuted",
    "reorder",
    "spmv",
    "spread_rows",
]
