"""Which way a Poisson problem is solved: the axis of the tridiagonal systems, and the transforms along the others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.fft import next_fast_len

from fluxloom.core.errors import SolverError, did_you_mean
from fluxloom.linalg.direct.poisson.problem import Problem

__all__ = ["Way", "choose"]


@dataclass(frozen=True)
class Way:
    """How a problem is solved.

    Attributes
    ----------
    line
        Axis along which tridiagonal systems are solved; None: every direction is transformed.
    real
        Axes with real transforms, and these; the first is transformed first.
    periodic
        Axes with one Fourier transform over all of them; the last is halved.
    """

    line: int | None
    real: tuple[tuple[int, str], ...]
    periodic: tuple[int, ...]

    def describe(self) -> str:
        """Return one line."""
        parts = [f"{kind} along axis {axis}" for axis, kind in self.real]
        if self.periodic:
            axes = ", ".join(map(str, self.periodic))
            parts.append(f"dft over {'axis' if len(self.periodic) == 1 else 'axes'} {axes}")
        end = "division by the eigenvalues" if self.line is None else f"tridiagonal systems along axis {self.line}"
        return ", ".join([*parts, end])


def choose(problem: Problem, line: Any, transforms: Any, *, host: bool = False) -> Way:
    """Return how to solve a problem.

    Parameters
    ----------
    line
        ``"auto"``, an axis, or None.
    transforms
        ``"auto"``: fast ones where a direction has them; ``"matrix"``: dense eigenvectors in every direction.
    host
        Whether real transforms are SciPy's: then ``"auto"`` takes dense eigenvectors where these are quicker, because
        the length of the Fourier transform behind has a large prime factor.

    Raises
    ------
    SolverError
        For other values of them; and if the axis given for the lines would lose the mean of the solution.

    Notes
    -----
    A stretched axis has no fast transform, so that the longest of them is that of the tridiagonal systems. Else it
    is the first that is not periodic: there neighbours in memory are of different systems, and half the transforms
    of an axis cost more than the systems. A positive shift makes some systems indefinite, whose elimination without
    pivots is not stable: then every direction is transformed. So it is where ``L`` annuls constants and a negative
    shift is small beside the eigenvalues of the systems: elimination would lose the mean of the solution
    (`Problem.why_not_line`).
    """
    if transforms not in ("auto", "matrix"):
        hint = did_you_mean(str(transforms), ("auto", "matrix"))
        raise SolverError(f"poisson: transforms is 'auto' or 'matrix', not {transforms!r}{hint}")
    axes = range(len(problem.shape))
    if isinstance(line, str) and line == "auto":
        chosen = _line(problem)
        chosen = None if chosen is None or problem.why_not_line(chosen) else chosen
    elif line is None:
        chosen = None
    elif isinstance(line, int | np.integer) and not isinstance(line, bool) and line in axes:
        if why := problem.why_not_line(int(line)):
            raise SolverError(f"poisson: line={line}: {why}")
        chosen = None if problem.directions[int(line)].n == 1 else int(line)  # a number, which is no system
    else:
        raise SolverError(f"poisson: line is 'auto', None or an axis of 0 to {len(axes) - 1}, not {line!r}")
    kinds = {k: "matrix" if transforms == "matrix" else problem.directions[k].kind for k in axes if k != chosen}
    if host:
        kinds = {k: "matrix" if _dense_is_quicker(kind, problem.shape[k]) else kind for k, kind in kinds.items()}
    real = tuple((axis, kinds[axis]) for axis in sorted(kinds, reverse=True) if kinds[axis] != "dft")
    return Way(chosen, real, tuple(axis for axis in sorted(kinds) if kinds[axis] == "dft"))


def _line(problem: Problem) -> int | None:
    directions = problem.directions
    long = [axis for axis, one in enumerate(directions) if one.n > 1]
    if problem.shift > 0 or not long:
        return None
    stretched = [axis for axis in long if not directions[axis].uniform]
    if stretched:
        return max(stretched, key=lambda axis: directions[axis].n)
    closed = [axis for axis in long if not directions[axis].periodic]
    return closed[0] if closed else 0 if len(directions) == 1 else None


_DENSE_MOST = 1024
"""Length up to which dense eigenvectors come into question: they take the cube of it to find."""

_DENSE = 0.4
"""Time of a multiplication and addition of a matrix product, where a Fourier transform has 1 for what `_work` counts.

Measured with OpenBLAS and pocketfft on a core with AVX-512: 0.15; more than doubled, because on others it differs."""


def _dense_is_quicker(kind: str, n: int) -> bool:
    """Return whether products with an ``n x n`` matrix take less time than SciPy's transform."""
    if kind in ("dft", "matrix") or n > _DENSE_MOST:
        return False
    length = {"dct1": 2 * (n - 1), "dst1": 2 * (n + 1)}.get(kind, n)
    if next_fast_len(length) == length:
        return False
    direct = _work(length)
    convolved = 3 * _work(int(next_fast_len(2 * length - 1) or 0))
    return _DENSE * n * n < min(direct, convolved)


def _work(length: int) -> float:
    """Return about what a Fourier transform costs: its length times the sum of its prime factors."""
    total, rest, factor = 0.0, length, 2
    while rest > 1:
        while rest % factor == 0:
            total += factor
            rest //= factor
        factor += 1
    return length * total
