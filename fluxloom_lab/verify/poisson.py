"""Fast Poisson solvers: discrete solutions to round-off, order two, singular problems, tridiagonal systems."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from itertools import product
from math import log2, prod
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.dsl.context import Context
from fluxloom.linalg.direct.poisson import Plan
from fluxloom_lab.verify.base import Check, FullOptions, Tell
from fluxloom_lab.verify.poisson_lines import line_checks
from fluxloom_lab.verify.poisson_separable import separable_checks

__all__ = ["PAIRS", "PoissonVerification"]

Array = npt.NDArray[np.float64]
Pair = tuple[str, str]

PAIRS: tuple[Pair, ...] = (
    ("periodic", "periodic"), ("dirichlet", "dirichlet"), ("neumann", "neumann"), ("dirichlet", "neumann"),
    ("neumann", "dirichlet"),
)  # fmt: skip
"""Conditions at the low and the high end of an axis."""

SIZES = (1, 2, 7, 12)
SIZES_FULL = (1, 2, 3, 5, 7, 8, 12, 16, 17, 30, 31, 64, 97)
_PLANE = ((12, 7), (9, 16))
_EXACT = "matrix of the same discrete operator"
_EPS = {"float64": float(np.finfo(np.float64).eps), "float32": float(np.finfo(np.float32).eps)}
_ROUND_OFF = 64.0
"""Errors of a solve in units of the round-off of the right-hand side, which is that of the operator's norm."""


class PoissonVerification:
    """Every pair of boundary conditions on cells and nodes, in double and single precision, against the matrix.

    Then order two with boundary data and stretched axes, tridiagonal systems by every method, and block cyclic
    reduction. ``--full``: more sizes, all pairs along every axis of a box, and 511 x 511 unknowns with variable
    coefficients.
    """

    title = "poisson: discrete solutions to round-off, order two, lines by all methods, block cyclic reduction"
    options = FullOptions

    def run(self, options: FullOptions, tell: Tell) -> Iterator[Check]:
        """Yield the checks as they are done.

        Raises
        ------
        CaseError
            On a device that runs no generated code.
        """
        context = options.native_context()
        for precision in ("float64", "float32"):
            yield from _line_pairs(context, SIZES_FULL if options.full else SIZES, precision, tell)
            yield from _plane_pairs(context, precision, tell)
            yield from _box_pairs(context, precision, options.full, tell)
        yield from _orders(context)
        yield from line_checks(context, options.full, tell)
        yield from separable_checks(context, options.full, tell)


def off(
    context: Context, shape: Sequence[int], sides: Sequence[Pair], centring: str, precision: str, **more: Any
) -> float:
    """Return the error of a manufactured discrete solution, relative to the round-off that its operator allows.

    The right-hand side is the matrix times random values; where the problem is singular their mean is zero. The unit
    is eps times the norm of the operator times that of its inverse, not below eps.
    """
    spacing = more.pop("spacing", 0.1)
    plan = Plan(tuple(shape), spacing, tuple(sides), centring=centring, dtype=precision, device=context, **more)
    exact = np.random.default_rng(prod(shape)).standard_normal(shape)
    matrix = plan.matrix()
    if plan.problem.singular:
        volumes = plan.problem.volumes()
        exact -= (volumes * exact).sum() / volumes.sum()
    f = (matrix @ exact.reshape(-1)).reshape(shape).astype(precision)
    found = plan(f)
    error = float(np.abs(np.asarray(found, dtype=np.float64) - exact).max() / max(1e-30, np.abs(exact).max()))
    spectra = [np.sort(np.abs(direction.spectrum)) for direction in plan.problem.directions]
    largest = sum(float(values[-1]) for values in spectra)
    sums = np.sort(reduce(np.add.outer, spectra).reshape(-1))
    nonzero = sums[sums > 1e-9 * max(largest, 1e-300)]
    condition = largest / float(nonzero[0]) if nonzero.size else 1.0
    return error / (_EPS[precision] * max(1.0, condition))


def _line_pairs(context: Context, sizes: Sequence[int], precision: str, tell: Tell) -> Iterator[Check]:
    """Lines of every size: the worst of each pair."""
    for centring, pair in product(("cell", "node"), PAIRS):
        allowed = [n for n in sizes if n > 1 or centring == "cell" or "dirichlet" in pair or pair[0] == "periodic"]
        errors = [off(context, (n,), (pair,), centring, precision) for n in allowed]
        name = f"{precision}, line, {centring} {pair[0]}-{pair[1]}"
        tell(f"{name}: error in units of round-off {max(errors):.2g}, {len(allowed)} sizes up to {allowed[-1]}")
        yield Check(f"{name}: error over eps times condition", max(errors), 0.0, _ROUND_OFF, _EXACT)


def _plane_pairs(context: Context, precision: str, tell: Tell) -> Iterator[Check]:
    """Planes with every two pairs, and each way to solve: a line along either axis, and transforms alone."""
    for centring in ("cell", "node"):
        errors = []
        for shape, sides in product(_PLANE, product(PAIRS, PAIRS)):
            line: Any
            for line in (0, 1, None):
                errors.append(off(context, shape, sides, centring, precision, line=line))
        tell(f"{precision}, planes, {centring}: {len(errors)} problems, worst {max(errors):.2g}")
        name = f"{precision}, planes, {centring}: error over eps times condition"
        yield Check(name, max(errors), 0.0, _ROUND_OFF, _EXACT)


def _box_pairs(context: Context, precision: str, full: bool, tell: Tell) -> Iterator[Check]:
    """Boxes, stretched along one axis too."""
    shape = (6, 9, 8)
    every = list(product(PAIRS, PAIRS, PAIRS))
    chosen = every if full else every[::17]
    for centring in ("cell", "node"):
        errors = [off(context, shape, sides, centring, precision) for sides in chosen]
        errors += [_stretched(context, shape, axis, centring, precision) for axis in range(3)]
        tell(f"{precision}, boxes, {centring}: {len(errors)} problems, worst {max(errors):.2g}")
        name = f"{precision}, boxes, {centring}: error over eps times condition"
        yield Check(name, max(errors), 0.0, _ROUND_OFF, _EXACT)


def _stretched(context: Context, shape: tuple[int, ...], axis: int, centring: str, precision: str) -> float:
    """Return the error with one axis stretched between walls."""
    spacing: list[Any] = [0.1] * len(shape)
    count = shape[axis] + (1 if centring == "cell" else 2)
    spacing[axis] = np.tanh(np.linspace(-1.5, 1.5, count))
    sides = [("periodic", "periodic"), ("neumann", "neumann"), ("dirichlet", "neumann")]
    sides[axis] = ("dirichlet", "dirichlet")
    return off(context, shape, sides, centring, precision, spacing=spacing)


def _orders(context: Context) -> Iterator[Check]:
    """Order of accuracy: boundary data that are not zero, on an even and on a stretched grid."""
    from fluxloom.linalg.direct.poisson import Dirichlet, Neumann

    def error(n: int, stretched: bool) -> float:
        t = np.linspace(0.0, 1.0, n + 1)
        faces = t + 0.1 * np.sin(np.pi * t) ** 2 if stretched else t
        y = 0.5 * (faces[1:] + faces[:-1])
        x = (np.arange(n) + 0.5) / n
        exact = np.exp(y)[:, None] * np.sin(2.0 * np.pi * x)
        sides = ((Dirichlet(np.sin(2.0 * np.pi * x)), Neumann(np.e * np.sin(2.0 * np.pi * x))), "periodic")
        plan = Plan((n, n), (faces, 1.0 / n), sides, device=context)
        u = plan((1.0 - 4.0 * np.pi**2) * exact)
        return float(np.sqrt(np.mean((u - exact) ** 2)))

    for stretched in (False, True):
        coarse, fine = error(32, stretched), error(64, stretched)
        name = "stretched" if stretched else "even"
        yield Check(f"order in L2, {name} grid, Dirichlet and Neumann data", log2(coarse / fine), 2.0, 0.05, "h^2")
