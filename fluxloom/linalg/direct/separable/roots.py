"""Roots of the matrix polynomials of block cyclic reduction, and partial fractions of their quotients.

Columns are divided by their middle one, the halves by theirs, and so on: each column is the *centre* of one *block*.
With ``2^k - 1`` columns the centres of level ``r`` are the odd multiples of ``2^r``, as usual; with any other number
halves may differ by one column, and no large block has its centre at an end, where roots of numerators and denominators
nearly coincide and lose digits. Restricted to a block the matrix is ``S (x) I + I (x) B`` with a scalar tridiagonal
``S``: its determinant is a polynomial in ``B``, the product of ``B + lambda_k I`` over the eigenvalues of ``S``, and
the blocks of its inverse are rational functions of it:

    (S^-1)(B)_{pq} = sum_k  d_p V_pk V_qk / d_q  (B + lambda_k I)^-1,      D^-1 S D = V Lambda V^T symmetric

The weights of these partial fractions are products of entries of orthonormal eigenvectors, hence at most 1 apart from
the ratio of the ``d``, which are products of square roots of ``a / c`` and summed as logarithms. Eigenvalues may
coincide.

Source: Swarztrauber (1974), sections 2 and 3; partial fractions for cyclic reduction: R. A. Sweet, SIAM J. Sci.
Stat. Comput. 9 (1988) 761.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import eigh, eigh_tridiagonal, eigvalsh, eigvalsh_tridiagonal

from fluxloom.linalg.direct.separable.coefficients import Rows

__all__ = ["NONE", "Block", "Fractions", "Roots", "Tree", "product"]

Values = npt.NDArray[np.float64]
NONE = -1
"""Stands for a neighbour that is not there."""


@dataclass(frozen=True)
class Block:
    """Columns that one centre stands for; all numbers begin with 0.

    Attributes
    ----------
    level
        0: one column.
    first, centre, last
        Its columns.
    left, right
        The columns beside it, which belong to centres of higher levels, or `NONE`.
    """

    level: int
    first: int
    centre: int
    last: int
    left: int
    right: int

    @property
    def size(self) -> int:
        """Number of columns."""
        return self.last - self.first + 1


class Tree:
    """The blocks of all levels.

    Parameters
    ----------
    columns
        How many.
    periodic
        Whether the last column is a neighbour of the first. It then is the centre of a last level, of all columns, and
        beside the blocks at both ends.

    Attributes
    ----------
    levels
        The blocks of each level.
    """

    def __init__(self, columns: int, periodic: bool) -> None:
        inner = columns - 1 if periodic else columns
        outside = inner if periodic else NONE
        self.columns, self.periodic = columns, periodic
        self.levels: list[list[Block]] = [[] for _ in range(inner.bit_length())]
        pending = [(len(self.levels) - 1, 0, inner - 1, outside, outside)] if inner else []
        while pending:
            level, first, last, left, right = pending.pop(0)
            centre = (first + last) // 2
            self.levels[level].append(Block(level, first, centre, last, left, right))
            if centre > first:
                pending.append((level - 1, first, centre - 1, left, centre))
            if centre < last:
                pending.append((level - 1, centre + 1, last, centre, right))
        if periodic:
            self.levels.append([Block(len(self.levels), 0, inner, inner, NONE, NONE)])

    def blocks(self) -> Iterator[Block]:
        """Yield all blocks, low levels first."""
        for level in self.levels:
            yield from level

    def wraps(self, block: Block) -> bool:
        """Whether a block is that of all periodic columns."""
        return self.periodic and block.size == self.columns


@dataclass(frozen=True, eq=False)
class Fractions:
    """Partial fractions of the rational functions that belong to a block, ``sum_k weight_k (B + root_k I)^-1``.

    Attributes
    ----------
    roots : (size,)
        Eigenvalues of the scalar rows.
    centre : (size,)
        Of the block's inverse at its centre.
    to_left, to_right : (size,)
        What the centre adds to the right-hand side of the column beside the block when the block is eliminated.
    from_left, from_right : (size,)
        What the column beside the block adds to the solution at the centre.
    """

    roots: Values
    centre: Values
    to_left: Values
    to_right: Values
    from_left: Values
    from_right: Values


class Roots:
    """Roots and partial fractions of all blocks of some rows, each found once.

    Parameters
    ----------
    rows
        Across columns: those that `Separable` accepts.
    """

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self.tree = Tree(rows.length, rows.periodic)
        n = rows.length
        after = np.roll(rows.a, -1)
        self._off = np.sign(rows.c) * np.sqrt(rows.c * after)  # between a column and the one after it
        with np.errstate(divide="ignore", invalid="ignore"):
            steps = 0.5 * (np.log(np.abs(after)) - np.log(np.abs(rows.c)))
        steps = np.where(np.isfinite(steps), steps, 0.0)
        self._log_scale = np.concatenate([[0.0], np.cumsum(steps)])[:n]
        self._values: dict[bytes, Values] = {}
        self._vectors: dict[bytes, tuple[Values, Values]] = {}

    def eigenvalues(self, first: int, last: int) -> Values:
        """Return the eigenvalues of the rows ``first ... last``, ascending; none where ``last < first``."""
        if last < first:
            return np.zeros(0)
        if self.rows.periodic and last - first + 1 == self.rows.length:
            return eigvalsh(self._periodic())
        diagonal, off = self.rows.b[first : last + 1], self._off[first:last]
        key = diagonal.tobytes() + off.tobytes()
        if key not in self._values:
            self._values[key] = np.asarray(eigvalsh_tridiagonal(diagonal, off)) if off.size else diagonal.copy()
        return self._values[key]

    def fractions(self, block: Block) -> Fractions:
        """Return the partial fractions of a block.

        ``d_p V_pk V_qk / d_q``, with ``a`` or ``c`` of the columns beside it.
        """
        values, (v_first, v_centre, v_last) = self._system(block)
        rows, nothing = self.rows, np.zeros(block.size)
        lower = v_centre * v_first * np.exp(self._log_scale[block.centre] - self._log_scale[block.first])
        upper = v_centre * v_last * np.exp(self._log_scale[block.centre] - self._log_scale[block.last])
        # The other way: towards the side, not from it.
        down = v_centre * v_first * np.exp(self._log_scale[block.first] - self._log_scale[block.centre])
        up = v_centre * v_last * np.exp(self._log_scale[block.last] - self._log_scale[block.centre])
        left, right = block.left != NONE, block.right != NONE
        return Fractions(
            values,
            v_centre**2,
            -rows.c[block.left] * down if left else nothing,
            -rows.a[block.right] * up if right else nothing,
            -rows.a[block.first] * lower if left else nothing,
            -rows.c[block.last] * upper if right else nothing,
        )

    def _system(self, block: Block) -> tuple[Values, Values]:
        """Return the eigenvalues of a block, and the rows first, centre and last of its eigenvectors."""
        if self.tree.wraps(block):
            values, vectors = eigh(self._periodic())
            return values, vectors[[block.first, block.centre, block.last]]
        diagonal, off = self.rows.b[block.first : block.last + 1], self._off[block.first : block.last]
        key = diagonal.tobytes() + off.tobytes() + (block.centre - block.first).to_bytes(8, "little")
        if key not in self._vectors:
            values, vectors = eigh_tridiagonal(diagonal, off) if off.size else (diagonal, np.ones((1, 1)))
            self._vectors[key] = values, vectors[[0, block.centre - block.first, -1]]
        return self._vectors[key]

    def _periodic(self) -> npt.NDArray[Any]:
        """Return the symmetric matrix of all periodic rows."""
        n = self.rows.length
        found = np.diag(self.rows.b)
        for k in range(n):
            found[k, (k + 1) % n] += self._off[k]
            found[(k + 1) % n, k] += self._off[k]
        return found


def product(values: Values) -> tuple[float, float]:
    """Return the logarithm of the size of a product, ``sum_i log |v_i|``, and its sign."""
    with np.errstate(divide="ignore"):
        return float(np.sum(np.log(np.abs(values)))), float(np.prod(np.sign(values)))
