r"""Eigenvectors of a second difference on a stretched direction, as dense matrices.

``T = W^{-1} K`` with the weights ``W`` and a symmetric ``K``: :math:`S = W^{-1/2} K W^{-1/2} = Q \Lambda Q^T` gives
:math:`T = V \Lambda V^{-1}`, :math:`V = W^{-1/2} Q`, :math:`V^{-1} = Q^T W^{1/2}`.

References
----------
R. E. Lynch, J. R. Rice, D. H. Thomas: *Direct solution of partial difference equations by tensor product methods*,
Numer. Math. 6 (1964), section 2.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy.linalg

__all__ = ["Basis", "eigenvalues_of"]

_Array = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Basis:
    """What takes values to coefficients of eigenvectors and back.

    Attributes
    ----------
    eigenvalues
        ``(n,)``, that of the smallest magnitude first.
    forward
        ``V^{-1}``, ``(n, n)``: coefficients of values.
    backward
        ``V``, ``(n, n)``: the eigenvectors, as columns.
    """

    eigenvalues: _Array
    forward: _Array
    backward: _Array

    @classmethod
    def of(cls, a: _Array, b: _Array, c: _Array, weights: _Array, *, constant: bool) -> Basis:
        """Return ``T = V Lambda V^-1`` of a matrix with rows ``a_i, b_i, c_i``, symmetric with the weights.

        Parameters
        ----------
        constant
            Whether it annuls constants: then the first eigenvalue is zero.
        """
        root = np.sqrt(weights)
        values, vectors = scipy.linalg.eigh(_symmetric(a, b, c, root)) if _corner(a, c) else (
            scipy.linalg.eigh_tridiagonal(b, _beside(a, c, weights))
        )  # fmt: skip
        values, vectors = np.minimum(values[::-1], 0.0), vectors[:, ::-1]
        if constant:
            values[0] = 0.0
            vectors[:, 0] = root / np.linalg.norm(root)
        forward = np.ascontiguousarray(vectors.T * root)
        return cls(values, forward, np.ascontiguousarray(vectors / root[:, None]))


def eigenvalues_of(a: _Array, b: _Array, c: _Array, weights: _Array) -> _Array:
    """Return the eigenvalues ``(n,)`` of a matrix with rows ``a_i, b_i, c_i``, symmetric with the weights.

    Those of ``S = W^{1/2} T W^{-1/2}``.
    """
    if _corner(a, c):
        return np.asarray(scipy.linalg.eigvalsh(_symmetric(a, b, c, np.sqrt(weights))), np.float64)
    return np.asarray(scipy.linalg.eigvalsh_tridiagonal(b, _beside(a, c, weights)), np.float64)


def _corner(a: _Array, c: _Array) -> bool:
    return a[0] != 0 or c[-1] != 0


def _beside(a: _Array, c: _Array, weights: _Array) -> _Array:
    """Return the entries beside the diagonal of ``S``."""
    return c[:-1] * np.sqrt(weights[:-1] / weights[1:])


def _symmetric(a: _Array, b: _Array, c: _Array, root: _Array) -> _Array:
    """Return ``S`` as a dense matrix; what couples the last row and the first may fall on an entry that is there."""
    n = b.size
    found = np.diag(b)
    row = np.arange(n)
    np.add.at(found, (row, (row - 1) % n), a * root / np.roll(root, 1))
    np.add.at(found, (row, (row + 1) % n), c * root / np.roll(root, -1))
    return (found + found.T) / 2
