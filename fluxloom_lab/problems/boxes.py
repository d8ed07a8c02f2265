"""Boxes that several benchmarks share: how large one is by default, and its Laplacian on ranks."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.dsl.context import Context
from fluxloom.linalg.matrix.distribute import distributed_matrix
from fluxloom.linalg.matrix.matrix import SparseMatrix
from fluxloom_lab.problems.matrices import lattice_laplacian

__all__ = ["lattice_matrix", "usual_side"]


def usual_side(context: Context, python: int, cpu: int, gpu: int) -> int:
    """Return the side of a box for what a context computes on: Python, a processor, or a GPU."""
    if not context.device.native:
        return python
    return cpu if context.device.shared else gpu


def lattice_matrix(context: Context, shape: tuple[int, ...]) -> tuple[SparseMatrix, npt.NDArray[np.int64], Any]:
    """Return the Laplacian of a lattice, of which each rank has consecutive rows. Collective.

    Returns
    -------
    matrix
        In the context.
    numbers : (owned,)
        Global number of each owned row, in the order of the matrix.
    rows
        Those of this rank in SciPy, ``(owned, total)``, in their global order.
    """
    total, comm = prod(shape), context.comm
    rows = lattice_laplacian(shape, range(comm.rank * total // comm.size, (comm.rank + 1) * total // comm.size))
    if not context.distributed:
        return SparseMatrix.from_scipy(context, rows, name="laplacian"), np.arange(total), rows
    matrix = distributed_matrix(context, rows, name="laplacian")
    part = matrix.rows.part
    assert part is not None
    return matrix, part.numbers[: part.owned], rows
