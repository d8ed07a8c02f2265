"""How a Poisson problem is divided over ranks: slabs whose lines go through all ranks, or pencils."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Literal

from fluxloom.core.errors import SolverError, did_you_mean
from fluxloom.linalg.direct.poisson.choice import Way, choose
from fluxloom.linalg.direct.poisson.problem import Problem

__all__ = ["Cut", "Decomposition", "Layout", "decompose"]

_KINDS = ("auto", "slabs", "pencils")
_LEAST = 2
"""Rows of a line that a rank needs."""


@dataclass(frozen=True)
class Cut:
    """How a plan is to be divided over the ranks of its context.

    Attributes
    ----------
    factors
        Boxes along each axis of the arrays of the user; None: slabs along the axis of the lines.
    decomposition
        ``"slabs"``: the axis of the tridiagonal systems is cut and no other; ranks send two values a system.
        ``"pencils"``: any cut; ranks send all values, once or twice for each cut there and back. ``"auto"``: slabs
        where they are possible.
    gathering, pieces
        How slabs bring their systems together: ``way`` and ``pieces`` of
        `fluxloom.linalg.direct.tridiagonal.ranks.solver.DistributedTridiagonal`.
    """

    factors: tuple[int, ...] | None = None
    decomposition: Literal["auto", "slabs", "pencils"] = "auto"
    gathering: Literal["auto", "all", "shares"] = "auto"
    pieces: int = 1


@dataclass(frozen=True)
class Layout:
    """A division of the axes, and the axes that are transformed while it holds.

    Attributes
    ----------
    factors
        Boxes along each axis.
    axes
        Not cut by it, ascending.
    """

    factors: tuple[int, ...]
    axes: tuple[int, ...]


@dataclass(frozen=True)
class Decomposition:
    """How a problem is solved on the ranks that there are.

    Attributes
    ----------
    kind
        ``"whole"``: by one rank. ``"slabs"``: the axis of the tridiagonal systems is cut, and no other: the systems are
        solved across ranks. ``"pencils"``: every axis is treated by ranks that have the whole of it, and values move in
        between.
    way
        Transforms and systems.
    layouts
        One after the other; arrays of the user have the first one. Systems, or the division by eigenvalues, follow
        in the last one.
    """

    kind: str
    way: Way
    layouts: tuple[Layout, ...]

    def describe(self) -> str:
        """Return one line."""
        cuts = " -> ".join(" x ".join(map(str, layout.factors)) for layout in self.layouts)
        return f"{self.kind}, cut {cuts}; {self.way.describe()}"


def decompose(
    problem: Problem, ranks: int, cut: Cut, line: Any, transforms: Any, *, host: bool = False
) -> Decomposition:
    """Return how to divide a problem; the same on every rank.

    Parameters
    ----------
    cut
        What is wished.
    line, transforms, host
        See `fluxloom.linalg.direct.poisson.choice.choose`. With slabs ``"auto"`` is the axis that is cut.

    Raises
    ------
    SolverError
        If slabs are asked for and not possible, the cut does not fit the ranks, or an option is unknown.
    """
    shape, kind = problem.shape, cut.decomposition
    if kind not in _KINDS:
        raise SolverError(
            f"poisson: decomposition is one of {', '.join(_KINDS)}, not {kind!r}{did_you_mean(str(kind), _KINDS)}"
        )
    factors = None if cut.factors is None else _checked(cut.factors, shape, ranks)
    if ranks == 1:
        way = choose(problem, line, transforms, host=host)
        return Decomposition("whole", way, (Layout((1,) * len(shape), _others(shape, way.line)),))
    if kind != "pencils":
        axis, why = _slab_axis(problem, ranks, factors, line)
        if not why:
            slabs = tuple(ranks if k == axis else 1 for k in range(len(shape)))
            way = choose(problem, axis, transforms, host=host)
            return Decomposition("slabs", way, (Layout(slabs, _others(shape, axis)),))
        if kind == "slabs":
            raise SolverError(f"poisson: slabs are not possible: {why}")
    factors = _pencils(shape, ranks) if factors is None else factors
    way = choose(problem, _last(problem, factors) if line == "auto" else line, transforms, host=host)
    if len(shape) == 1 and way.line is None:
        raise SolverError(
            "poisson: the systems of one axis alone cannot be solved here (line=None, or a shift that is positive, or "
            "small and negative), and its transform is not divided over ranks: give the problem to one rank"
        )
    return Decomposition("pencils", way, tuple(_layouts(shape, factors, way.line)))


def _others(shape: tuple[int, ...], line: int | None) -> tuple[int, ...]:
    """Return the axes but that of the lines."""
    return tuple(k for k in range(len(shape)) if k != line)


def _checked(cut: Any, shape: tuple[int, ...], ranks: int) -> tuple[int, ...]:
    try:
        factors = tuple(int(k) for k in cut)
    except (TypeError, ValueError):
        factors = ()
    if ranks == 1 and factors != (1,) * len(shape):
        raise SolverError(f"poisson: cut={cut!r} on one rank: leave it out, or give a context with ranks as the device")
    if len(factors) != len(shape) or min(factors) < 1 or prod(factors) != ranks:
        raise SolverError(f"poisson: cut={cut!r}: give a number of boxes for each of {len(shape)} axes, {ranks} in all")
    if any(k > n for k, n in zip(factors, shape, strict=True)):
        raise SolverError(f"poisson: cut={cut!r} of {shape} unknowns leaves ranks without any: take fewer boxes")
    return factors


def _slab_axis(problem: Problem, ranks: int, factors: tuple[int, ...] | None, line: Any) -> tuple[int, str]:
    """Return the axis that slabs are cut along, and why there can be none."""
    shape = problem.shape
    if problem.shift > 0:
        return 0, "a positive shift makes systems indefinite, which are not eliminated without pivots"
    if line is None:
        return 0, "line=None asks for transforms along every axis"
    if factors is None:
        axis = choose(problem, line, "auto").line
        long = [k for k in range(len(shape)) if shape[k] >= _LEAST * ranks]
        axis = (long[0] if long else 0) if axis is None else axis
    else:
        cuts = [k for k, n in enumerate(factors) if n > 1] or [0]
        if len(cuts) > 1:
            return 0, f"cut={factors} cuts several axes"
        axis = cuts[0]
        if line not in ("auto", axis):
            return 0, f"cut={factors} does not cut the axis of the lines, {line}"
    if why := problem.why_not_line(axis):
        return axis, why
    if shape[axis] < _LEAST * ranks:
        return axis, f"axis {axis} has {shape[axis]} unknowns, {_LEAST} for each of {ranks} ranks are needed"
    return axis, ""


def _pencils(shape: tuple[int, ...], ranks: int) -> tuple[int, ...]:
    """Return the cut of pencils: of the first axis alone where all ranks have work then, else of the first two axes."""
    others = shape[1:]
    if ranks <= shape[0] and (not others or ranks <= max(others) // 2):
        return (ranks, *(1 for _ in others))
    pairs = [(k, ranks // k) for k in range(1, ranks + 1) if ranks % k == 0]
    fitting = [(a, b) for a, b in pairs if others and a <= shape[0] and b <= others[0]]
    if not fitting:
        raise SolverError(f"poisson: {shape} unknowns cannot be divided over {ranks} ranks: take fewer")
    return (*min(fitting, key=max), *(1 for _ in others[1:]))


def _last(problem: Problem, factors: tuple[int, ...]) -> int | None:
    """Return the axis of the lines of pencils: the longest stretched one, else one that the arrays cut."""
    if problem.shift > 0:
        return None
    axes = [k for k, n in enumerate(problem.shape) if n > 1]
    stretched = [k for k in axes if not problem.directions[k].uniform]
    if stretched:
        found = max(stretched, key=lambda k: problem.shape[k])
    else:
        found = min(axes, key=lambda k: (factors[k] == 1, problem.directions[k].periodic, k)) if axes else None
    return None if found is None or problem.why_not_line(found) else found


def _layouts(shape: Sequence[int], factors: tuple[int, ...], line: int | None) -> Iterator[Layout]:
    """Yield the divisions: each makes an axis whole, by cutting one that is done instead."""
    todo = [k for k in range(len(shape)) if k != line]
    done: list[int] = []
    while True:
        whole = [k for k in todo if factors[k] == 1]
        yield Layout(factors, tuple(whole))
        done += whole
        todo = [k for k in todo if k not in whole]
        if todo:
            next_axis = todo[-1]
        elif line is not None and factors[line] > 1:
            next_axis = line
        else:
            return
        others = done or [k for k in range(len(shape)) if k != next_axis]
        takes = max(others, key=lambda k: shape[k] // factors[k])
        moved = list(factors)
        moved[takes] *= moved[next_axis]
        moved[next_axis] = 1
        factors = tuple(moved)
