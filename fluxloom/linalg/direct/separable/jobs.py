"""Stages of a program as tables: chains of tridiagonal solves, and weighted sums of columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

__all__ = ["SOURCES", "Chains", "Job", "Kernel", "Phase", "Stage", "Sums", "chains"]

Phase = Literal["reduction", "substitution"]
Kernel = Literal["q", "alpha", "gamma", "p"]
Table = npt.NDArray[Any]

SOURCES = 3
"""Columns that a job reads at most."""


@dataclass(frozen=True, eq=False)
class Job:
    """Solves in a chain: ``v = sum weight * column``, for each root ``v = factor (B + root I)^-1 v``.

    Where a root has a numerator the step is ``(B + numerator I) (B + root I)^-1 v``, computed as
    ``v + (numerator - root) (B + root I)^-1 v``: that needs no product with ``B`` and loses no digits.

    Attributes
    ----------
    sources
        Columns and their weights.
    target
        Column of the result.
    roots
        In order.
    numerators
        Of the first roots.
    factor
        Of the steps without a numerator.
    """

    sources: tuple[tuple[int, float], ...]
    target: int
    roots: Table
    numerators: Table = field(default_factory=lambda: np.zeros(0))
    factor: float = 1.0


class _Tabled:
    """What is known of the tables of a stage, whatever it computes."""

    level: int
    phase: Phase
    kernel: Kernel
    targets: Table
    begin: Table

    @property
    def size(self) -> int:
        """Number of jobs or sums."""
        return self.targets.size

    @property
    def longest(self) -> int:
        """Roots of the longest job, columns of the longest sum."""
        return int(np.diff(self.begin).max(initial=0))

    @property
    def name(self) -> str:
        """For profilers."""
        return f"{self.phase}.{self.level}.{self.kernel}"


@dataclass(frozen=True, eq=False)
class Chains(_Tabled):
    """The jobs of one kernel at one level, which are independent, as tables.

    Attributes
    ----------
    level, phase, kernel
        Where they belong.
    columns, weights : (jobs, SOURCES)
        What is read.
    targets : (jobs,)
        What is written.
    begin : (jobs + 1,)
        Where the roots of each job begin.
    roots, gains : (begin[-1],)
        A step is ``v = gain (B + root I)^-1 v``, or that added to ``v``.
    kept : (jobs,)
        How many steps add, the first ones of a job.
    pinned
        Place of the root whose system is singular and has its first diagonal value doubled (-1: there is none).
    """

    level: int
    phase: Phase
    kernel: Kernel
    columns: Table
    weights: Table
    targets: Table
    begin: Table
    roots: Table
    gains: Table
    kept: Table
    pinned: int = -1


@dataclass(frozen=True, eq=False)
class Sums(_Tabled):
    """Weighted sums of columns: ``u[target] = keep * u[target] + sum weight * u[column]``.

    Attributes
    ----------
    level, phase
        Where they belong.
    keep
        1 or 0.
    targets : (count,)
        What is written.
    begin : (count + 1,)
        Where the columns of each begin.
    columns, weights : (begin[-1],)
        What is added, in this order.
    """

    level: int
    phase: Phase
    keep: float
    targets: Table
    begin: Table
    columns: Table
    weights: Table
    kernel: Kernel = "p"

    @classmethod
    def of(cls, level: int, phase: Phase, keep: float, sums: Mapping[int, Sequence[tuple[int, float]]]) -> Sums:
        """Return the tables of some sums, by target."""
        targets = np.array(sorted(sums), dtype=np.int32)
        entries = [entry for target in targets.tolist() for entry in sums[target]]
        begin = np.concatenate([[0], np.cumsum([len(sums[target]) for target in targets.tolist()])])
        columns = np.array([column for column, _ in entries], dtype=np.int32)
        weights = np.array([weight for _, weight in entries], dtype=np.float64)
        return cls(level, phase, keep, targets, begin.astype(np.int32), columns, weights)


Stage = Chains | Sums


def chains(level: int, phase: Phase, kernel: Kernel, jobs: Sequence[Job]) -> Chains:
    """Return jobs as tables."""
    columns = np.zeros((len(jobs), SOURCES), dtype=np.int32)
    weights = np.zeros((len(jobs), SOURCES))
    for k, job in enumerate(jobs):
        columns[k] = job.sources[0][0]
        for source, (column, weight) in enumerate(job.sources):
            columns[k, source], weights[k, source] = column, weight
    begin = np.concatenate([[0], np.cumsum([job.roots.size for job in jobs])]).astype(np.int32)
    roots = np.concatenate([job.roots for job in jobs]) if jobs else np.zeros(0)
    gains = np.repeat([job.factor for job in jobs], np.diff(begin))
    for k, job in enumerate(jobs):
        count = job.numerators.size
        gains[begin[k] : begin[k] + count] = job.numerators - job.roots[:count]
    return Chains(
        level, phase, kernel, columns, weights, np.array([job.target for job in jobs], dtype=np.int32), begin, roots,
        gains, np.array([job.numerators.size for job in jobs], dtype=np.int32),
    )  # fmt: skip
