"""What verifications against published values of steady flows share: groups of checks, families of meshes, limits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from math import log2, nan
from pathlib import Path
from time import perf_counter

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import CaseError, SolverError
from fluxloom.dsl.context import Context
from fluxloom_lab.problems.published_cases import PublishedCase, Settled, refined
from fluxloom_lab.verify.base import Check, DataOptions, Tell

__all__ = ["Group", "Published", "family", "limit", "settled", "steady"]

Array = npt.NDArray[np.float64]
Group = Callable[[Context, Path, bool, Tell], Iterator[Check]]

_STEPS = 600
_NEARER = 1e3
"""How much nearer to the end first states from a coarser mesh are than a uniform stream, in residuals."""


class Published:
    """Groups of checks with the public reference data: `title` says what, `groups` are run in their order."""

    title = ""
    options = DataOptions
    groups: dict[str, Group]

    def run(self, options: DataOptions, tell: Tell) -> Iterator[Check]:
        """Yield the checks as they are done, and tell how long each group took; one that fails ends no other.

        Raises
        ------
        CaseError
            If there is no folder of data.
        """
        if options.data is None:
            raise CaseError(f"{self.title}: meshes of the public reference data are wanted: give --data")
        for what, group in self.groups.items():
            tell(what)
            start = perf_counter()
            try:
                yield from group(options.context(), options.data, options.full, tell)
            except SolverError as error:
                yield Check(f"{what}: no steady state", nan, 0.0, 0.0, str(error))
            tell(f"{what}: {perf_counter() - start:.1f} s")


def settled(
    context: Context, tell: Tell, what: str, case: PublishedCase, drop: float, states: Array | None = None
) -> Settled:
    """Return the steady state of a case, and tell what was found."""
    found = case.settle(context, drop, _STEPS, states)
    c = found.coefficients
    tell(
        f"{what}: {found.flow.volumes.cells} cells, {found.steps} steps to {found.drop:.1e}, lift {c.lift:.6f}, drag "
        f"{c.drag:.7f}, of it friction {found.friction:.7f}"
    )
    return found


def steady(what: str, found: Settled, drop: float) -> Check:
    """Check that the residual has fallen."""
    return Check(f"{what}: residual over the first one", found.drop, 0.0, drop, f"after {found.steps} steps")


def family(context: Context, tell: Tell, cases: dict[str, PublishedCase], rows: int, drop: float) -> list[Settled]:
    """Return steady states on meshes of quads, each with twice the rows of the one before, begun with its states.

    Parameters
    ----------
    context, tell
        Where it runs, and what takes lines of progress.
    cases
        By what they are called.
    rows
        Of the first mesh.
    drop
        Residual over that of the first state on the first mesh; a thousand times as much on the others, whose first
        states are so much nearer to the end.
    """
    found: list[Settled] = []
    for what, case in cases.items():
        if not found:
            found.append(settled(context, tell, what, case, drop))
            continue
        near = replace(case, implicit=replace(case.implicit, switch=1.0))
        states = refined(found[-1].flow.states(), rows << (len(found) - 1))
        found.append(settled(context, tell, what, near, _NEARER * drop, states))
    return found


def limit(values: list[float]) -> tuple[float, str]:
    """Return where three values lead to, on meshes of half the width each (Richardson), and the words for it."""
    first, second = (b - a for a, b in pairwise(values[-3:]))
    listed = ", ".join(f"{value:.6g}" for value in values)
    if not first * second > second * second:
        return values[-1], f"{listed}: no order"
    ratio = first / second
    return values[-1] + second / (ratio - 1.0), f"{listed}: order {log2(ratio):.2f}"
