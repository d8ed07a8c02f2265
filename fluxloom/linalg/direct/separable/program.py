"""A solve as data: stages of rational functions of ``B`` applied to columns, and of sums of columns.

The same program is run by every device, and by NumPy in `oracle`. Memory is a table of columns: first the ``n``
columns of the problem, which begin as right-hand sides and end as the solution, then columns of intermediate results.
For a block with the centre ``x`` between the columns ``l`` and ``r``, with ``L``, ``S``, ``R`` the matrices of its left
half, of all its rows, and of its right half:

    product form                                          partial fractions
    reduction
      q = det(L) det(R) / det(S)  p_x                     z_k = (B + s_k)^-1 p_x                    kernel q
      A = +- alpha / det(R)  q                                                                      kernel alpha
      G = +- gamma / det(L)  q                                                                      kernel gamma
      p_r += A,  p_l += G                                 p_r += sum to_right_k z_k,  p_l += ...    kernel p
    substitution
      A = +- alpha / det(L)  x_l,  G = +- gamma / det(R)  x_r                                       alpha, gamma
      p_x += A + G                                                                                  kernel p
      x = det(L) det(R) / det(S)  p_x                     z_k = (B + s_k)^-1 (w_k p_x + ...)        kernel q
                                                          x = sum z_k                               kernel p

A determinant is a product of ``B + root I``. The product form solves one tridiagonal system after the other in a
*job*; partial fractions make each of them a job of its own. Since ``det(R)`` divides out between ``A`` and ``q`` they
need half of the solves, too.

Source: Swarztrauber (1974), section 3, in the arrangement of the thesis on heterogeneous Poisson solvers that
`docs/theory/fast_poisson.md` cites.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy.linalg import eigvalsh_tridiagonal

from fluxloom.core.errors import SolverError, did_you_mean
from fluxloom.linalg.direct.separable.coefficients import Separable
from fluxloom.linalg.direct.separable.jobs import Job, Phase, Stage, Sums, chains
from fluxloom.linalg.direct.separable.roots import NONE, Block, Roots, product

__all__ = ["FORMS", "Form", "Program", "make_program"]

Form = Literal["product", "partial_fractions"]
FORMS: tuple[Form, ...] = ("product", "partial_fractions")
_LEAST = 4 * np.finfo(np.float64).eps
_NO_WEIGHT = 8 * np.finfo(np.float64).eps
"""Entries of eigenvectors below this are known to no digit: what they multiply is left out."""


@dataclass(frozen=True, eq=False)
class Program:
    """What is done, in order.

    Attributes
    ----------
    problem, form
        What is solved, and how.
    stages
        In order.
    columns
        Of the problem and of intermediate results.
    levels
        Number of levels.
    """

    problem: Separable
    form: Form
    stages: tuple[Stage, ...]
    columns: int
    levels: int

    @property
    def solves(self) -> int:
        """Tridiagonal systems of one solve."""
        return sum(stage.roots.size for stage in self.stages if not isinstance(stage, Sums))

    def part(self, phase: Phase, levels: range) -> list[Stage]:
        """Return the stages of a phase on some levels."""
        return [stage for stage in self.stages if stage.phase == phase and stage.level in levels]


def make_program(problem: Separable, form: str = "partial_fractions") -> Program:
    """Return the program that solves a problem.

    Raises
    ------
    SolverError
        If the form is unknown, or the equation is so indefinite that the matrix of a block is singular.
    """
    if form not in FORMS:
        raise SolverError(f"form {form!r} is none of {', '.join(FORMS)}{did_you_mean(form, FORMS)}")
    roots = Roots(problem.y)
    writer = _Fractions(problem, roots) if form == "partial_fractions" else _Products(problem, roots)
    stages: list[Stage] = []
    for blocks in roots.tree.levels:
        stages += writer.reduction(blocks)
    for blocks in reversed(roots.tree.levels):
        stages += writer.substitution(blocks)
    levels = len(roots.tree.levels)
    filled = tuple(_pinned(stage, problem, levels - 1) for stage in stages if stage.size)
    _check(problem, filled)
    return Program(problem, writer.form, filled, problem.y.length + writer.most, levels)


def _pinned(stage: Stage, problem: Separable, top: int) -> Stage:
    """Mark the one singular system of a singular problem: the block of all columns at the root next to ``-B 1``."""
    whole = stage.level == top and stage.phase == "substitution" and stage.kernel == "q"
    if isinstance(stage, Sums) or not whole or not problem.singular:
        return stage
    return replace(stage, pinned=int(np.argmin(np.abs(stage.roots + problem.x.sums().mean()))))


def _check(problem: Separable, stages: Sequence[Stage]) -> None:
    """Raise `SolverError` if a system is singular to rounding: ``-root`` is an eigenvalue of ``B``."""
    rows = problem.x
    ahead = rows.a[1:] * rows.c[:-1]
    if rows.periodic or np.any(ahead < 0):
        return  # the eigenvalues of B are not at hand; a solution that is no number shows
    values = np.asarray(eigvalsh_tridiagonal(rows.b, np.sqrt(ahead))) if rows.length > 1 else rows.b
    least = _LEAST * max(np.abs(values).max(), np.abs(problem.y.b).max())
    for stage in stages:
        if isinstance(stage, Sums):
            continue
        wanted = np.delete(-stage.roots, stage.pinned) if stage.pinned >= 0 else -stage.roots
        place = np.searchsorted(values, wanted).clip(1, values.size) - 1
        gaps = np.minimum(
            np.abs(wanted - values[place]), np.abs(wanted - values[(place + 1).clip(max=values.size - 1)])
        )
        if gaps.size and gaps.min() <= least:
            raise SolverError(
                f"block cyclic reduction: a system of level {stage.level} is singular to rounding (eigenvalue "
                f"{gaps.min():.1e}); {_why_indefinite(problem)}"
            )


def _why_indefinite(problem: Separable) -> str:
    """Return what makes an equation indefinite: neighbours coupled with different signs, or else its diagonal."""
    x, y = (float(np.sum(rows.a) + np.sum(rows.c)) for rows in (problem.x, problem.y))
    if x * y < 0:
        return "the diffusion of x and that of y have different signs: the equation is not elliptic, give both one sign"
    return "the reaction (or the diagonals) makes the equation indefinite: change it, or use a sparse solver"


class _Writer:
    """Writes the stages of a level."""

    form: Form

    def __init__(self, problem: Separable, roots: Roots) -> None:
        self.rows, self.roots = problem.y, roots
        self.most = 0
        sums = problem.x.sums()
        self.small = float(sums[np.argmin(np.abs(sums))])
        """About the eigenvalue of ``B`` next to zero."""

    def take(self, slots: int) -> int:
        """Return the first of some columns for intermediate results, of which ``slots`` are in use."""
        self.most = max(self.most, slots)
        return self.rows.length

    def reduction(self, blocks: Sequence[Block]) -> list[Stage]:
        """Return the stages that eliminate the centres of some blocks."""
        raise NotImplementedError

    def substitution(self, blocks: Sequence[Block]) -> list[Stage]:
        """Return the stages that find the solution at the centres."""
        raise NotImplementedError


class _Fractions(_Writer):
    form: Form = "partial_fractions"

    def reduction(self, blocks: Sequence[Block]) -> list[Stage]:
        found: list[Job] = []
        sums: dict[int, list[tuple[int, float]]] = {}
        for block in blocks:
            if block.left == block.right == NONE:
                continue
            parts = self.roots.fractions(block)
            for k in _kept(parts.centre):
                slot = self.rows.length + len(found)
                found.append(Job(((block.centre, 1.0),), slot, parts.roots[k : k + 1]))
                for column, weight in ((block.left, float(parts.to_left[k])), (block.right, float(parts.to_right[k]))):
                    if column != NONE:
                        sums.setdefault(column, []).append((slot, weight))
        self.take(len(found))
        level = blocks[0].level
        return [chains(level, "reduction", "q", found), Sums.of(level, "reduction", 1.0, sums)]

    def substitution(self, blocks: Sequence[Block]) -> list[Stage]:
        found: list[Job] = []
        sums: dict[int, list[tuple[int, float]]] = {}
        for block in blocks:
            parts = self.roots.fractions(block)
            for k in _kept(parts.centre):
                slot = self.rows.length + len(found)
                sources = [(block.centre, float(parts.centre[k]))]
                sources += [(block.left, float(parts.from_left[k]))] if block.left != NONE else []
                sources += [(block.right, float(parts.from_right[k]))] if block.right != NONE else []
                found.append(Job(tuple(sources), slot, parts.roots[k : k + 1]))
                sums.setdefault(block.centre, []).append((slot, 1.0))
        self.take(len(found))
        level = blocks[0].level
        return [chains(level, "substitution", "q", found), Sums.of(level, "substitution", 0.0, sums)]


def _kept(squares: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Return which roots have a weight; every weight has the eigenvector's entry at the centre as a factor."""
    return np.flatnonzero(np.sqrt(squares) > _NO_WEIGHT)


class _Products(_Writer):
    form: Form = "product"

    def reduction(self, blocks: Sequence[Block]) -> list[Stage]:
        level, rows = blocks[0].level, self.rows
        inner = [block for block in blocks if block.left != NONE or block.right != NONE]
        first = self.take(3 * len(inner))
        jobs_q = [self._quotient(block, first + k) for k, block in enumerate(inner)]
        alpha: list[Job] = []
        gamma: list[Job] = []
        sums: dict[int, list[tuple[int, float]]] = {}
        for k, block in enumerate(inner):
            slot = first + len(inner) + 2 * k
            if block.right != NONE:
                steps = np.append(rows.a[block.centre + 1 : block.last + 1], rows.a[block.right])
                alpha.append(self._coupling(first + k, slot, steps, block.centre + 1, block.last))
                sums.setdefault(block.right, []).append((slot, 1.0))
            if block.left != NONE:
                steps = np.append(rows.c[block.first : block.centre], rows.c[block.left])
                gamma.append(self._coupling(first + k, slot + 1, steps, block.first, block.centre - 1))
                sums.setdefault(block.left, []).append((slot + 1, 1.0))
        phase: Phase = "reduction"
        return [
            chains(level, phase, "q", jobs_q), chains(level, phase, "alpha", alpha),
            chains(level, phase, "gamma", gamma), Sums.of(level, phase, 1.0, sums),
        ]  # fmt: skip

    def substitution(self, blocks: Sequence[Block]) -> list[Stage]:
        level, rows = blocks[0].level, self.rows
        first = self.take(2 * len(blocks))
        alpha: list[Job] = []
        gamma: list[Job] = []
        sums: dict[int, list[tuple[int, float]]] = {}
        for k, block in enumerate(blocks):
            slot = first + 2 * k
            if block.left != NONE:
                steps = rows.a[block.first : block.centre + 1]
                alpha.append(self._coupling(block.left, slot, steps, block.first, block.centre - 1))
                sums.setdefault(block.centre, []).append((slot, 1.0))
            if block.right != NONE:
                steps = rows.c[block.centre : block.last + 1]
                gamma.append(self._coupling(block.right, slot + 1, steps, block.centre + 1, block.last))
                sums.setdefault(block.centre, []).append((slot + 1, 1.0))
        phase: Phase = "substitution"
        return [
            chains(level, phase, "alpha", alpha), chains(level, phase, "gamma", gamma),
            Sums.of(level, phase, 1.0, sums),
            chains(level, phase, "q", [self._quotient(block, block.centre) for block in blocks]),
        ]  # fmt: skip

    def _quotient(self, block: Block, target: int) -> Job:
        """Return the job ``det(L) det(R) / det(S)``; the roots interlace, so that each partial product is bounded.

        The root next to zero comes first: what is smooth is large from then on, and what rounding adds small beside it.
        """
        below = [self.roots.eigenvalues(*ends) for ends in
                 ((block.first, block.centre - 1), (block.centre + 1, block.last))]  # fmt: skip
        roots = self.roots.eigenvalues(block.first, block.last)
        above, order = np.sort(np.concatenate(below)), slice(None)
        if abs(roots[0] + self.small) > abs(roots[-1] + self.small):
            order = slice(None, None, -1)
        return Job(((block.centre, 1.0),), target, roots[order], above[order])

    def _coupling(self, source: int, target: int, steps: npt.NDArray[Any], first: int, last: int) -> Job:
        """Return the job ``(-1)^H prod(steps) / det`` of the rows ``first ... last``, ``H`` the number of steps."""
        log, sign = product(steps)
        sign *= (-1.0) ** steps.size
        roots = self.roots.eigenvalues(first, last)
        if not roots.size or sign == 0:
            return Job(((source, sign * float(np.exp(log)) if sign else 0.0),), target, roots[:0])
        factor = float(np.exp(log / roots.size))
        return Job(((source, sign),), target, _balanced(roots, factor, self.small), factor=factor)


def _balanced(roots: npt.NDArray[Any], factor: float, small: float) -> npt.NDArray[Any]:
    """Return the roots in an order in which the products of ``factor / (root + small)`` stay near 1."""
    size = np.maximum(np.abs(roots + small), np.finfo(np.float64).tiny)
    logs = np.log(factor) - np.log(size)
    order = np.argsort(logs)
    found = np.empty_like(roots)
    low, high, total = 0, roots.size - 1, 0.0
    for k in range(roots.size):
        place = low if total > 0 else high
        low, high = (low + 1, high) if total > 0 else (low, high - 1)
        found[k] = roots[order[place]]
        total += logs[order[place]]
    return found
