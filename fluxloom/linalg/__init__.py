"""Sparse matrices as ragged maps with values, their products as loops, and iterative solvers made of loops.

Read `operators` and `matrix` first, then `krylov` with `conjugate_gradient`, `bicgstab` and `gmres`, `preconditioning`
with a file a method, `direct`; `poisson`, `separable`, `tridiagonal`, `transforms` and `extruded*` are solvers of
boxes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fluxloom.core.packages import import_late

if TYPE_CHECKING:
    from fluxloom.linalg.approximate_inverse import ApproximateInverse
    from fluxloom.linalg.bicgstab import BiCGStab
    from fluxloom.linalg.chebyshev import Chebyshev, DampedJacobi
    from fluxloom.linalg.conjugate_gradient import ConjugateGradient
    from fluxloom.linalg.distribute import distributed_matrix
    from fluxloom.linalg.extruded import ExtrudedPoisson
    from fluxloom.linalg.extruded_batch import PlaneGradients
    from fluxloom.linalg.extruded_plane import ExtrudedMatrix
    from fluxloom.linalg.extruded_tuning import ExtrudedTuning
    from fluxloom.linalg.gmres import GMRES
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
    "GMRES",
    "SSOR",
    "ApproximateInverse",
    "BiCGStab",
    "Chebyshev",
    "ConjugateGradient",
    "DampedJacobi",
    "ExtrudedMatrix",
    "ExtrudedPoisson",
    "ExtrudedTuning",
    "GatheredSolver",
    "HybridMatrix",
    "Jacobi",
    "PlaneGradients",
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

if not TYPE_CHECKING:
    import_late(__name__, {
        "fluxloom.linalg.approximate_inverse": "ApproximateInverse",
        "fluxloom.linalg.bicgstab": "BiCGStab",
        "fluxloom.linalg.chebyshev": "Chebyshev DampedJacobi",
        "fluxloom.linalg.conjugate_gradient": "ConjugateGradient",
        "fluxloom.linalg.distribute": "distributed_matrix",
        "fluxloom.linalg.extruded": "ExtrudedPoisson",
        "fluxloom.linalg.extruded_batch": "PlaneGradients",
        "fluxloom.linalg.extruded_plane": "ExtrudedMatrix",
        "fluxloom.linalg.extruded_tuning": "ExtrudedTuning",
        "fluxloom.linalg.gmres": "GMRES",
        "fluxloom.linalg.hybrid": "HybridMatrix",
        "fluxloom.linalg.hybrid_balance": "balance_kernel balance_rows",
        "fluxloom.linalg.jacobi": "Jacobi",
        "fluxloom.linalg.layouts": "fastest_layouts",
        "fluxloom.linalg.matrix": "SparseMatrix",
        "fluxloom.linalg.multigrid": "SmoothedAggregation",
        "fluxloom.linalg.products": "spmv",
        "fluxloom.linalg.reorder": "permuted reorder",
        "fluxloom.linalg.ssor": "SSOR",
        "fluxloom.linalg.status": "Status Stop",
        "fluxloom.linalg.two_level": "GatheredSolver",
        "fluxloom.linalg.two_level_rows": "nested_parts spread_rows",
    })  # fmt: skip
