"""Separable problems with variable coefficients, and their discrete solutions."""

from __future__ import annotations

import itertools

import numpy as np

from fluxloom.linalg.direct.separable.coefficients import Rows, Separable
from fluxloom_lab.exact.separable_oracle import settled

SIDES = ("periodic", "dd", "dn", "nd", "nn")
"""Conditions of a direction: periodic, or d (value) and n (derivative) at both ends."""
PAIRS = list(itertools.product(SIDES, repeat=2))
SIZES = (1, 2, 3, 5, 8, 13, 31, 32, 100)


def rows(length: int, sides: str, phase: float = 0.0, *, constant: bool = False) -> Rows:
    """Return cells with variable diffusion and, away from periodic sides, advection."""
    h = 1.0 / length
    faces, cells = np.arange(length + 1) * h, (np.arange(length) + 0.5) * h
    d = np.ones(length + 1) if constant else 1.0 + 0.5 * np.sin(2 * np.pi * faces + phase)
    e = np.zeros(length) if constant or sides == "periodic" else 1.5 * np.cos(2 * np.pi * cells + phase)
    a, c = d[:-1] / h**2 - e / (2 * h), d[1:] / h**2 + e / (2 * h)
    b = -(a + c)
    if sides != "periodic":
        b[0] += a[0] * (1 if sides[0] == "n" else -1)
        b[-1] += c[-1] * (1 if sides[1] == "n" else -1)
    return Rows(a, b, c, periodic=sides == "periodic")


def problem(n: int, m: int, y: str = "dd", x: str = "dd", *, constant: bool = False) -> Separable:
    return Separable(rows(m, x, 0.3, constant=constant), rows(n, y, 1.1, constant=constant))


def solution(given: Separable) -> np.ndarray:
    """Return random values, of zero weighted mean where the problem is singular."""
    u = np.random.default_rng(sum(given.shape)).standard_normal(given.shape)
    return settled(given, u) if given.singular else u


def backward_error(given: Separable, u: np.ndarray, f: np.ndarray) -> float:
    """Return the residual over the size of the matrix times that of the solution, in units of rounding."""
    size = float(abs(given.matrix()).sum(axis=1).max()) * np.abs(u).max()
    return float(np.abs(given.times(u.astype(np.float64)) - f).max() / size / np.finfo(u.dtype).eps)


def fits(sides: str, length: int) -> bool:
    """Whether a direction can have these sides."""
    return sides != "periodic" or length >= 3
