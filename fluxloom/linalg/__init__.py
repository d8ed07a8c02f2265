"""Sparse matrices as ragged maps with values, their products as loops, and iterative solvers made of loops."""

from __future__ import annotations

from fluxloom.linalg.approximate_inverse import ApproximateInverse
from fluxloom.linalg.bicgstab import BiCGStab
from fluxloom.linalg.chebyshev import Chebyshev, DampedJacobi
from fluxloom.linalg.conjugate_gradient import ConjugateGradient
from fluxloom.linalg.distribute import distributed_matrix
from fluxloom.linalg.jacobi import Jacobi
from fluxloom.linalg.matrix import SparseMatrix
from fluxloom.linalg.multigrid import SmoothedAggregation
from fluxloom.linalg.products import spmv
from fluxloom.linalg.reorder import permuted, reorder
from fluxloom.linalg.ssor import SSOR
from fluxloom.linalg.status import Status, Stop

__all__ = [
    "SSOR",
    "ApproximateInverse",
    "BiCGStab",
    "Chebyshev",
    "ConjugateGradient",
    "DampedJacobi",
    "Jacobi",
    "SmoothedAggregation",
    "SparseMatrix",
    "Status",
    "Stop",
    "distributed_matrix",
    "permuted",
    "reorder",
    "spmv",
]
