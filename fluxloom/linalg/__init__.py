"""Sparse matrices as ragged maps with values, their products as loops, and solvers made of loops.

Read `operators` (what solvers ask of a matrix) and `matrix` first, then `krylov` with `status` (when a solve ends),
`precond` (a file a preconditioner), `direct` (boxes and extruded meshes), `mixed` (one matrix on several devices).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fluxloom.core.packages import import_late

if TYPE_CHECKING:
    from fluxloom.linalg.direct.extruded.batch import PlaneGradients
    from fluxloom.linalg.direct.extruded.plane import ExtrudedMatrix
    from fluxloom.linalg.direct.extruded.solver import ExtrudedPoisson
    from fluxloom.linalg.direct.extruded.tuning import ExtrudedTuning
    from fluxloom.linalg.krylov.bicgstab import BiCGStab
    from fluxloom.linalg.krylov.conjugate_gradient import ConjugateGradient
    from fluxloom.linalg.krylov.gmres import GMRES
    from fluxloom.linalg.matrix.distribute import distributed_matrix
    from fluxloom.linalg.matrix.layouts import fastest_layouts
    from fluxloom.linalg.matrix.matrix import SparseMatrix
    from fluxloom.linalg.matrix.products import spmv
    from fluxloom.linalg.matrix.reorder import permuted, reorder
    from fluxloom.linalg.mixed.balance import balance_kernel, balance_rows
    from fluxloom.linalg.mixed.hybrid import HybridMatrix
    from fluxloom.linalg.mixed.two_level import GatheredSolver
    from fluxloom.linalg.mixed.two_level_rows import nested_parts, spread_rows
    from fluxloom.linalg.precond.approximate_inverse import ApproximateInverse
    from fluxloom.linalg.precond.chebyshev import Chebyshev, DampedJacobi
    from fluxloom.linalg.precond.jacobi import Jacobi
    from fluxloom.linalg.precond.multigrid import SmoothedAggregation
    from fluxloom.linalg.precond.ssor import SSOR
    from fluxloom.linalg.status import Status, Stop

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
        "fluxloom.linalg.direct.extruded.batch": "PlaneGradients",
        "fluxloom.linalg.direct.extruded.plane": "ExtrudedMatrix",
        "fluxloom.linalg.direct.extruded.solver": "ExtrudedPoisson",
        "fluxloom.linalg.direct.extruded.tuning": "ExtrudedTuning",
        "fluxloom.linalg.krylov.bicgstab": "BiCGStab",
        "fluxloom.linalg.krylov.conjugate_gradient": "ConjugateGradient",
        "fluxloom.linalg.krylov.gmres": "GMRES",
        "fluxloom.linalg.matrix.distribute": "distributed_matrix",
        "fluxloom.linalg.matrix.layouts": "fastest_layouts",
        "fluxloom.linalg.matrix.matrix": "SparseMatrix",
        "fluxloom.linalg.matrix.products": "spmv",
        "fluxloom.linalg.matrix.reorder": "permuted reorder",
        "fluxloom.linalg.mixed.balance": "balance_kernel balance_rows",
        "fluxloom.linalg.mixed.hybrid": "HybridMatrix",
        "fluxloom.linalg.mixed.two_level": "GatheredSolver",
        "fluxloom.linalg.mixed.two_level_rows": "nested_parts spread_rows",
        "fluxloom.linalg.precond.approximate_inverse": "ApproximateInverse",
        "fluxloom.linalg.precond.chebyshev": "Chebyshev DampedJacobi",
        "fluxloom.linalg.precond.jacobi": "Jacobi",
        "fluxloom.linalg.precond.multigrid": "SmoothedAggregation",
        "fluxloom.linalg.precond.ssor": "SSOR",
        "fluxloom.linalg.status": "Status Stop",
    })  # fmt: skip
