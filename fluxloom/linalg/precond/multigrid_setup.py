"""The set-up of smoothed aggregation: aggregates, prolongators, Galerkin's coarse matrices, the coarsest inverse.

On several ranks aggregates do not cross ranks, and a prolongator ``P`` has rows and columns of one rank only; the
coarse matrices ``P^T A P`` couple ranks as ``A`` does. Nothing here is random: the same matrix gives the same levels.

References
----------
P. Vanek, J. Mandel, M. Brezina: Algebraic multigrid by smoothed aggregation for second and fourth order elliptic
problems, Computing 56 (1996) 179-196.
N. Bell, L. Olson, J. Schroder, B. Southworth: PyAMG: Algebraic multigrid solvers in Python, J. Open Source Softw. 8
(2023) 5495. Its functions make strength of connection, aggregates and tentative prolongators.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array, dia_array

from fluxloom.core.activity import activity
from fluxloom.core.errors import SolverError
from fluxloom.core.packages import require
from fluxloom.linalg.matrix.local_rows import LocalRows, refuse
from fluxloom.linalg.matrix.ring_rows import Reals
from fluxloom.linalg.precond.chebyshev import inverse_diagonal

__all__ = ["HostLevel", "Limits", "hierarchy", "pseudo_inverse"]

_TITLE = "SmoothedAggregation"
_STALLED = 0.9
"""A level with more rows than this part of the one above it is no coarsening."""


@dataclass(frozen=True)
class Limits:
    """How levels are made.

    Attributes
    ----------
    theta
        Entries with ``|a_ij| < theta sqrt(a_ii a_jj)`` do not aggregate.
    coarse
        Rows that the coarsest level may have.
    levels
        At most, the matrix itself and the coarsest included.
    weight
        Of the prolongator's smoothing, ``P = (I - weight / lambda D^-1 A) T``; 0: none.
    """

    theta: float
    coarse: int
    levels: int
    weight: float


@dataclass(frozen=True, eq=False)
class HostLevel:
    """A level that has a coarser one.

    Attributes
    ----------
    rows
        The matrix.
    inverse : (owned,)
        One over its diagonal.
    bound
        Of the eigenvalues of ``D^-1 A``, see `LocalRows.spectrum`.
    prolongation
        ``P``, ``(owned, coarse rows of this rank)``, in compressed rows of SciPy.
    """

    rows: LocalRows
    inverse: Reals
    bound: float
    prolongation: Any


def hierarchy(rows: LocalRows, candidates: Reals, limits: Limits) -> tuple[list[HostLevel], LocalRows]:
    """Return the levels ``A_{l+1} = P^T A_l P``, from the finest, and the coarsest matrix. Collective.

    Parameters
    ----------
    rows
        The matrix.
    candidates : (owned, n)
        Vectors of the near null space.
    limits
        How.

    Raises
    ------
    SolverError
        On every rank, if the matrix has no positive diagonal, or coarsening ends with too many rows.
    """
    block, levels = 1, []
    with activity("levels of algebraic multigrid") as work:
        while not levels or rows.total > limits.coarse:
            work.at(f"level {len(levels) + 1}, {rows.total:,} rows")
            if len(levels) + 1 >= limits.levels:
                raise SolverError(
                    f"{_TITLE}: level {len(levels)} has {rows.total} rows, and levels={limits.levels} ends there: the "
                    f"coarsest may have {limits.coarse}; give more levels, or a larger coarse="
                )
            inverse = inverse_diagonal(rows, f"{_TITLE}: level {len(levels)}")
            estimate, bound = rows.spectrum(inverse)
            prolongation, coarse_candidates = _prolongator(rows, inverse, candidates, block, estimate, limits)
            levels.append(HostLevel(rows, inverse, bound, prolongation))
            coarse = _galerkin(rows, prolongation)
            alone = limits.theta > 0 and not sum(rows.comm.allgather(prolongation.nnz)) and not _diagonal(rows)
            if alone or coarse.total > max(limits.coarse, _STALLED * rows.total):
                count = 0 if alone else coarse.total
                advice = f"give a smaller theta= (now {limits.theta}), or take" if limits.theta else "take"
                raise SolverError(
                    f"{_TITLE}: level {len(levels)} would have {count} rows, the one above it has {rows.total}: too "
                    f"few are coupled; {advice} Chebyshev"
                )
            rows, candidates, block = coarse, coarse_candidates, candidates.shape[1]
    return levels, rows


def _diagonal(rows: LocalRows) -> bool:
    """Whether no row of any rank has an entry beside the diagonal. Collective."""
    own = np.count_nonzero(rows.local.data) <= np.count_nonzero(rows.diagonal)
    return all(rows.comm.allgather(own))


def _prolongator(
    rows: LocalRows, inverse: Reals, candidates: Reals, block: int, estimate: float, limits: Limits
) -> tuple[Any, Reals]:
    """Return ``P`` and the candidates of the coarse level; nodes have ``block`` rows each."""
    aggregation = require("pyamg.aggregation", "amg", "smoothed aggregation")
    own, count = rows.block, candidates.shape[1]
    everywhere = rows.fill(candidates)
    aggregates = _aggregates(own, block, limits.theta)
    if not aggregates.nnz:  # no row is coupled: smoothing alone solves, and the coarse rows are there for form's sake
        return csr_array((rows.owned, count)), np.eye(count)
    tentative, coarse = aggregation.fit_candidates(aggregates, candidates)
    tentative = csr_array(tentative.tocsr())
    if limits.weight == 0.0:
        return tentative, coarse
    moved = own @ tentative
    if rows.comm.size > 1:
        moved = moved + _others(rows, everywhere, aggregates, coarse, block)
    scaled = dia_array((limits.weight / estimate * inverse[None, :], [0]), shape=own.shape)
    return csr_array(tentative - scaled @ moved), coarse


def _aggregates(own: Any, block: int, theta: float) -> Any:
    """Return which aggregate each node of this rank is in, ``(nodes, aggregates)``: one entry a row, or none."""
    aggregation = require("pyamg.aggregation", "amg", "smoothed aggregation")
    strength = require("pyamg.strength", "amg", "smoothed aggregation")
    if not own.shape[0]:
        return csr_array((0, 0))
    nodes = own if block == 1 else own.tobsr(blocksize=(block, block))
    connected = strength.symmetric_strength_of_connection(nodes, theta=theta)
    return aggregation.standard_aggregation(connected)[0]


def _others(rows: LocalRows, everywhere: Reals, aggregates: Any, coarse: Reals, block: int) -> Any:
    """Return what stands for ``A T`` of the columns of other ranks: the same for the candidates, in own columns.

    With the candidates ``B``, of all columns of this rank, row ``i`` of an aggregate with coarse candidates ``C`` gets
    ``X_i`` with ``X_i C = sum_j a_ij B_j`` over the columns ``j`` of other ranks, so that ``P`` still reproduces
    what is in the null space.
    """
    count = everywhere.shape[1]
    halo = rows.local[:, rows.owned :].tocsr()
    outside = halo @ everywhere[rows.owned :]
    near = np.flatnonzero(np.diff(halo.indptr))
    lengths = np.diff(aggregates.indptr)
    near = near[lengths[near // block] > 0]
    which = aggregates.indices[aggregates.indptr[near // block]]
    inverse = np.linalg.pinv(coarse.reshape(-1, count, count))
    values = np.einsum("ij,ijk->ik", outside[near], inverse[which])
    columns = which[:, None] * count + np.arange(count)
    places = (np.repeat(near, count), columns.ravel())
    return csr_array((values.ravel(), places), shape=(rows.owned, coarse.shape[0]))


def _galerkin(rows: LocalRows, prolongation: Any) -> LocalRows:
    """Return ``P^T A P``, rows of this rank. A row that nothing reaches gets a diagonal of 1."""
    counts = rows.comm.allgather(int(prolongation.shape[1]))
    first = sum(counts[: rows.comm.rank])
    columns = prolongation.indices + np.int32(first)
    wide = csr_array((prolongation.data, columns, prolongation.indptr), shape=(rows.owned, sum(counts)))
    coarse = csr_array(prolongation.T @ (rows.local @ rows.with_halo(wide)))
    own = first + np.arange(prolongation.shape[1])
    empty = np.flatnonzero(coarse[:, own].diagonal() == 0) if own.size else own
    if empty.size:
        one = csr_array((np.ones(empty.size), (empty, own[empty])), shape=coarse.shape)
        coarse = csr_array(coarse + one)
    coarse.sort_indices()
    coarse.indices, coarse.indptr = coarse.indices.astype(np.int32), coarse.indptr.astype(np.int32)
    return LocalRows(rows.comm, coarse)


def pseudo_inverse(rows: LocalRows) -> npt.NDArray[np.float64]:
    """Return the rows of this rank of the pseudo-inverse ``A^+ = V Lambda^+ V^T``, ``(owned, total)``. Collective.

    Eigenvalues below ``n eps`` times the largest count as zero: those of a null space.

    Raises
    ------
    SolverError
        On every rank, if an eigenvalue is negative: the matrix is not positive semidefinite.
    """
    dense = np.concatenate(rows.comm.allgather(rows.matrix.toarray()))
    values, vectors = np.linalg.eigh(0.5 * (dense + dense.T))
    limit = values.size * np.finfo(np.float64).eps * max(abs(values[-1]), abs(values[0]))
    why = ""
    if values[0] < -1e3 * limit:
        why = f"{_TITLE}: the matrix has a negative eigenvalue, {values[0]:.3e} on the coarsest level"
    refuse(rows.comm, why)
    live = values > limit
    own = slice(rows.first, rows.first + rows.owned)
    return (vectors[own][:, live] / values[live]) @ vectors[:, live].T
