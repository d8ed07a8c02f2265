"""Sparse matrices as ragged maps with values, and their product with a vector as a loop."""

from __future__ import annotations

from fluxloom.linalg.distribute import distributed_matrix
from fluxloom.linalg.matrix import SparseMatrix, spmv

__all__ = ["SparseMatrix", "distributed_matrix", "spmv"]
