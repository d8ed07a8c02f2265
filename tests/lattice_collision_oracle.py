"""Collision operators as textbooks write them, in NumPy and double precision; populations ``(..., q)``, full ``f_i``.

Nothing here comes from the kernels: moments are sums over tables of velocities, transforms are matrices.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.lbm.collisions.rates import Rates
from fluxloom.lbm.lattices import Lattice

Array = npt.NDArray[Any]


def tables(lattice: Lattice) -> tuple[Array, Array]:
    """Return velocities and weights."""
    return np.array(lattice.velocities, dtype=float), np.array(lattice.weights)


def equilibrium(lattice: Lattice, rho: Array, u: Array) -> Array:
    """Second order in ``u``: ``(...)`` and ``(..., d)`` to ``(..., q)``."""
    c, w = tables(lattice)
    cu, uu = u @ c.T, (u * u).sum(axis=-1, keepdims=True)
    return w * rho[..., None] * (1 + 3 * cu + 4.5 * cu**2 - 1.5 * uu)


def guo(lattice: Lattice, u: Array, force: Array) -> Array:
    """Guo's force without its prefactor: ``w (3 (c - u) + 9 (c u) c) F``."""
    c, w = tables(lattice)
    cu, cf, uf = u @ c.T, force @ c.T, (u * force).sum(axis=-1, keepdims=True)
    return w * (3 * (cf - uf) + 9 * cu * cf)


def macroscopic(lattice: Lattice, f: Array, force: Array) -> tuple[Array, Array]:
    """Density and velocity with half the force."""
    c, _ = tables(lattice)
    rho = f.sum(axis=-1)
    return rho, (f @ c + 0.5 * force) / rho[..., None]


def two_rates(lattice: Lattice, f: Array, rates: Rates, force: Array) -> Array:
    """TRT, and BGK where the rates are equal."""
    rho, u = macroscopic(lattice, f, force)
    away, push, against = f - equilibrium(lattice, rho, u), guo(lattice, u, force), list(lattice.opposite)
    result = f.copy()
    for rate, sign in ((rates.even, 1), (rates.odd, -1)):
        result -= rate * 0.5 * (away + sign * away[..., against])
        result += (1 - 0.5 * rate) * 0.5 * (push + sign * push[..., against])
    return result


# ---------------------------------------------------------------------------------------------- orders


def projectors(lattice: Lattice) -> list[Array]:
    """Return the matrix ``(q, q)`` of each order that takes the part of populations in that order of Hermite moments.

    Polynomials of one degree more, less what lower ones span with the scalar product of the weights.
    """
    c, w = tables(lattice)
    scale, found, before = np.sqrt(w), [], np.zeros((lattice.q, 0))
    for order in range(2 * lattice.dimensions + 1):
        powers = [p for p in np.ndindex(*(3,) * lattice.dimensions) if sum(p) == order]
        rows = np.stack([np.prod(c ** np.array(p), axis=1) for p in powers], axis=1) * scale[:, None]
        rows -= before @ (before.T @ rows)
        u, s, _ = np.linalg.svd(rows, full_matrices=False)
        basis = u[:, s > 1e-9]
        found.append(scale[:, None] * (basis @ basis.T) / scale)
        before = np.concatenate([before, basis], axis=1)
    assert before.shape[1] == lattice.q
    return found


def trace_projector(lattice: Lattice) -> Array:
    """Return the matrix that takes the part of populations in the trace of the stresses."""
    c, w = tables(lattice)
    trace = (c * c).sum(axis=1) - lattice.dimensions / 3
    return np.outer(w * trace, trace) / (w * trace**2).sum()


def by_orders(lattice: Lattice, f: Array, rates: Rates, force: Array) -> Array:
    """MRT: a rate for each order of Hermite moments, and one for the trace of the stresses."""
    rho, u = macroscopic(lattice, f, force)
    away, push = f - equilibrium(lattice, rho, u), guo(lattice, u, force)
    parts, trace = projectors(lattice), trace_projector(lattice)
    pairs = [(rates.bulk, trace), (rates.shear, parts[2] - trace)]
    pairs += [(0.0 if n == 0 else rates.odd if n % 2 else rates.even, part) for n, part in enumerate(parts) if n != 2]
    result = f.copy()
    for rate, part in pairs:
        result += (-rate * away + (1 - 0.5 * rate) * push) @ part.T
    return result


def strain(lattice: Lattice, f: Array, force: Array) -> Array:
    """Norm of the non-equilibrium stress, with half of what the force adds, over the density."""
    c, _ = tables(lattice)
    rho, u = macroscopic(lattice, f, force)
    stress = np.einsum("...k,ka,kb->...ab", f - equilibrium(lattice, rho, u), c, c)
    mixed = u[..., :, None] * force[..., None, :]
    stress = stress + 0.5 * (mixed + np.swapaxes(mixed, -1, -2))
    return np.sqrt((stress**2).sum(axis=(-1, -2))) / rho


def eddy_rate(lattice: Lattice, f: Array, rate: float, constant: float, force: Array) -> Array:
    """Rate of the shear with the Smagorinsky model: the root of ``tau = tau_0 + 3 C^2 |S|``, by iteration."""
    size, start = strain(lattice, f, force), 1 / rate
    tau = np.full_like(size, start)
    for _ in range(200):
        tau = start + 3 * constant**2 * np.sqrt(2) * 1.5 * size / tau
    return 1 / tau


# -------------------------------------------------------------------------------------- central moments


def central_matrix(lattice: Lattice, u: Array) -> Array:
    """Return the matrix ``(3^d, q)`` from the populations of a cell to its central moments, last axis fastest."""
    c, _ = tables(lattice)
    powers = np.array(list(np.ndindex(*(3,) * lattice.dimensions)))
    return np.prod((c - u)[None] ** powers[:, None], axis=2)


def maxwellian(lattice: Lattice, shift: Array) -> Array:
    """Central moments of a Maxwellian of density one whose mean is ``shift``, to first order in it."""
    even, found = (1.0, 0.0, 1 / 3), []
    for powers in np.ndindex(*(3,) * lattice.dimensions):
        odd = [a for a, n in enumerate(powers) if n == 1]
        rest = np.prod([even[n] for n in powers if n != 1])
        found.append(rest * (shift[odd[0]] if len(odd) == 1 else 1.0 if not odd else 0.0))
    return np.array(found)


def relaxed_stresses(n: Array, u: Array, shear: float, bulk: float, corrected: bool) -> Array:
    """Distance ``(d, d)`` of the second central moments from equilibrium, after collision (divided by the density)."""
    d = len(u)
    mean = np.trace(n) / d * np.eye(d)
    result = (1 - shear) * (n - mean) + (1 - bulk) * mean
    if corrected:
        gradients = -1.5 * np.diag(shear * (n - mean) + bulk * mean)
        error = np.diag(3 * u * u * gradients)
        middle = np.trace(error) / d * np.eye(d)
        result -= (1 - shear / 2) * (error - middle) + (1 - bulk / 2) * middle
    return result


def central(lattice: Lattice, f: Array, rates: Rates, force: Array, corrected: bool = False) -> Array:
    """Central moments of one cell; the mean of populations is half a force behind ``u``, then half a force ahead."""
    rho, u = macroscopic(lattice, f, force)
    matrix, lag = central_matrix(lattice, u), 0.5 * force / rho
    powers = np.array(list(np.ndindex(*(3,) * lattice.dimensions)))
    away = matrix @ f / rho - maxwellian(lattice, -lag)
    order = powers.sum(axis=1)
    kept = np.where(order % 2 == 1, 1 - rates.odd, 1 - rates.even) * away
    kept[order < 2] = 0.0
    _set_stresses(kept, powers, relaxed_stresses(_get_stresses(away, powers), u, rates.shear, rates.bulk, corrected))
    return np.linalg.solve(matrix, rho * (kept + maxwellian(lattice, lag)))


def _places(powers: Array) -> dict[tuple[int, int], int]:
    """Return which moment belongs to each pair of axes."""
    found = {}
    for i, p in enumerate(powers.astype(int)):
        if p.sum() == 2:
            axes = [a for a, n in enumerate(p) for _ in range(n)]
            found[axes[0], axes[1]] = found[axes[1], axes[0]] = i
    return found


def _get_stresses(moments: Array, powers: Array) -> Array:
    d = powers.shape[1]
    places = _places(powers)
    return np.array([[moments[places[a, b]] for b in range(d)] for a in range(d)])


def _set_stresses(moments: Array, powers: Array, values: Array) -> None:
    for (a, b), i in _places(powers).items():
        moments[i] = values[a, b]


# ------------------------------------------------------------------------------------------- cumulants


def partitions(items: list[int]) -> list[list[list[int]]]:
    """Return all partitions of a list into blocks."""
    if not items:
        return [[]]
    first, found = items[0], []
    for rest in partitions(items[1:]):
        found.append([[first], *rest])
        found += [[*rest[:i], [first, *block], *rest[i + 1 :]] for i, block in enumerate(rest)]
    return found


def products(powers: tuple[int, ...], values: dict[tuple[int, ...], float], sign: bool) -> float:
    """Sum over partitions of the indices into two blocks or more, none of one index, of the products of ``values``.

    With the factors ``(-1)^(n-1) (n-1)!`` (``sign``) it is what a cumulant has besides its moment; without them what a
    moment has besides its cumulant.
    """
    total = 0.0
    d = len(powers)
    for blocks in partitions([a for a, n in enumerate(powers) for _ in range(n)]):
        if len(blocks) < 2 or min(map(len, blocks)) < 2:
            continue
        weight = (-1.0) ** (len(blocks) - 1) * float(np.prod(range(1, len(blocks)))) if sign else 1.0
        total += weight * float(np.prod([values[tuple(block.count(a) for a in range(d))] for block in blocks]))
    return total


def cumulant(lattice: Lattice, f: Array, rates: Rates, force: Array) -> Array:
    """Cumulants of one cell, by the general relation of moments and cumulants."""
    rho, u = macroscopic(lattice, f, force)
    matrix, lag = central_matrix(lattice, u), 0.5 * force / rho
    powers = np.array(list(np.ndindex(*(3,) * lattice.dimensions)))
    keys = [tuple(int(n) for n in p) for p in powers]
    rest = maxwellian(lattice, 0 * lag)
    moments = matrix @ f / rho - (maxwellian(lattice, -lag) - rest)
    values = dict(zip(keys, moments, strict=True))
    cumulants: dict[tuple[int, ...], float] = {}
    after: dict[tuple[int, ...], float] = {}
    stress = relaxed_stresses(_get_stresses(moments - rest, powers), u, rates.shear, rates.bulk, True)
    new = np.zeros_like(moments)
    _set_stresses(new, powers, stress)
    for key, value, base in sorted(zip(keys, new, rest, strict=True), key=lambda item: sum(item[0])):
        order = sum(key)
        if order <= 2:
            cumulants[key] = base if order < 2 else value + base
        else:
            kept = 1 - (rates.odd if order % 2 else rates.even)
            cumulants[key] = kept * (values[key] + products(key, values, True))
        after[key] = cumulants[key] + products(key, cumulants, False)
    moved = np.array([after[key] for key in keys]) + maxwellian(lattice, lag) - rest
    return np.linalg.solve(matrix, rho * moved)
