"""Quad meshes whose lines cross at right angles: nodes and aspect ratios of least energy.

Quads with the ratio ``a`` of their second to their first side have the energy

::

    E = 1/2 sum (a |x_1|^2 + |x_2|^2 / a)

with the mean squares ``|x_1|^2`` and ``|x_2|^2`` of opposite sides. It is at least the area, and is the area where
all of them are rectangles of that ratio: a conformal map (J. F. Thompson, Z. U. A. Warsi, C. W. Mastin: *Numerical Grid
Generation*, North-Holland 1985, chapter X). For given ratios the nodes of least energy are those of a linear system.
A domain has such a map for the right widths of its blocks alone: these are found by Newton's method.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from scipy.sparse import csr_array

from fluxloom.core.activity import activity

__all__ = ["QuadNet", "Relaxed", "relax", "relax_widths", "widths_curvature"]

Array = npt.NDArray[np.float64]
Index = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Ratios = Callable[[Array], Array]

_CURVATURE_STEP = 1e-3
_RATIO_STEP = 1e-6
_LARGEST_STEP = 0.2
_WIDTHS_FOUND = 1e-5


@dataclass(frozen=True, eq=False)
class QuadNet:
    """Quads, and which of their nodes may move.

    Attributes
    ----------
    quads : (quads, 4)
        Nodes around each of them. The first side leads from the first node to the second.
    held : (nodes, 2)
        Coordinates that stay.
    circle
        Nodes that move along a circle.
    centre, radius
        Of the circle.
    """

    quads: Index
    held: Flags
    circle: Index
    centre: Array
    radius: float


@dataclass(frozen=True, eq=False)
class Relaxed:
    """Nodes of least energy for given ratios.

    Attributes
    ----------
    points : (nodes, 2)
        Where they are.
    energy
        At least the area of the domain.
    slope : (quads,)
        Derivative of the energy with respect to the logarithm of each ratio.
    """

    points: Array
    energy: float
    slope: Array


def relax(net: QuadNet, points: Array, ratios: Array, steps: int = 2) -> Relaxed:
    """Return the nodes of least energy for the ratio of each quad, from a guess; Newton's method along the circle."""
    matrix = _stiffness(net, ratios)
    for _ in range(steps):
        points = _newton(net, matrix, points)
    edges = points[np.roll(net.quads, -1, axis=1)] - points[net.quads]
    square = np.einsum("qsk,qsk->qs", edges, edges)
    first, second = 0.5 * (square[:, 0] + square[:, 2]) * ratios, 0.5 * (square[:, 1] + square[:, 3]) / ratios
    return Relaxed(points, float(0.5 * (first + second).sum()), 0.5 * (first - second))


def relax_widths(
    net: QuadNet, points: Array, ratios: Ratios, widths: Array, curvature: Array, steps: int
) -> tuple[Array, Array]:
    """Return nodes and logarithms of widths of least energy, the nodes ``(nodes, 2)`` and the widths ``(widths,)``.

    Parameters
    ----------
    net, points
        The quads, and a guess of their nodes.
    ratios
        Of each quad, a function of the logarithms of the widths.
    widths
        A guess of these.
    curvature : (widths, widths)
        Second derivatives of the energy, from `widths_curvature`, if need be of a coarser mesh of the same domain.
    steps
        At most.
    """
    found = relax(net, points, ratios(widths))
    slope = _gradient(ratios, widths, found)
    with activity("relaxing the mesh", f"{len(net.quads):,} quads", total=steps) as work:
        for _ in range(steps):
            whole = -np.linalg.solve(curvature, slope)
            largest = float(np.abs(whole).max())
            step: Array = whole.astype(np.float64) * min(1.0, _LARGEST_STEP / max(largest, _WIDTHS_FOUND))
            found = relax(net, found.points, ratios(widths + step))
            widths, before, slope = widths + step, slope, _gradient(ratios, widths + step, found)
            if largest < _WIDTHS_FOUND:
                break
            curvature = _updated(curvature, step, slope - before)
            work.step()
    return found.points, widths


def _updated(curvature: Array, step: Array, change: Array) -> Array:
    """Return second derivatives that fit how the first change along a step: Broyden, Fletcher, Goldfarb, Shanno."""
    if change @ step <= 0.0:
        return curvature
    known = curvature @ step
    return curvature + np.outer(change, change) / (change @ step) - np.outer(known, known) / (step @ known)


def widths_curvature(net: QuadNet, points: Array, ratios: Ratios, widths: Array) -> Array:
    """Return second derivatives of the least energy with respect to logarithms of widths, by differences."""
    here = relax(net, points, ratios(widths), steps=3)
    slope = _gradient(ratios, widths, here)
    rows = []
    with activity("widths of the blocks of the mesh", total=widths.size) as work:
        for step in _CURVATURE_STEP * np.eye(widths.size):
            moved = relax(net, here.points, ratios(widths + step))
            rows.append((_gradient(ratios, widths + step, moved) - slope) / _CURVATURE_STEP)
            work.step()
    return 0.5 * (np.array(rows) + np.array(rows).T)


def _gradient(ratios: Ratios, widths: Array, found: Relaxed) -> Array:
    """Return the derivative of the least energy; that of the nodes does not count, as they are at the minimum."""
    here = np.log(ratios(widths))
    return np.array([
        found.slope @ (np.log(ratios(widths + step)) - here) / _RATIO_STEP
        for step in _RATIO_STEP * np.eye(widths.size)
    ])  # fmt: skip


def _stiffness(net: QuadNet, ratios: Array) -> csr_array:
    """Return the matrix ``W`` of the energy, ``E = 1/2 sum_k x_k . W x_k``."""
    from scipy.sparse import coo_array, csr_array, diags_array

    weight = 0.5 * np.stack([ratios, 1.0 / ratios, ratios, 1.0 / ratios], axis=1).ravel()
    first, second = net.quads.ravel(), np.roll(net.quads, -1, axis=1).ravel()
    size = len(net.held)
    half = coo_array((weight, (first, second)), shape=(size, size))
    linked = csr_array(half + half.T)
    return csr_array(diags_array(np.asarray(linked.sum(axis=1)).ravel()) - linked)


def _newton(net: QuadNet, matrix: csr_array, points: Array) -> Array:
    """Return the nodes after one step: free coordinates, and angles along the circle.

    A node on the circle moves by ``s t`` along the tangent ``t``; the energy changes by ``-s^2 / 2 r n . W x`` besides,
    as the circle bends away from the tangent.
    """
    from scipy.sparse import csc_array, csr_array, diags_array
    from scipy.sparse.linalg import splu

    away = (points[net.circle] - net.centre) / net.radius
    count, on_circle = len(points), np.zeros(len(points), dtype=bool)
    on_circle[net.circle] = True
    free = [np.flatnonzero(~net.held[:, k] & ~on_circle) for k in range(2)]
    starts, total = (0, free[0].size), free[0].size + free[1].size + net.circle.size
    angles = np.arange(free[0].size + free[1].size, total)
    maps = []
    for k, tangent in enumerate((-away[:, 1], away[:, 0])):
        rows = np.concatenate([free[k], net.circle])
        columns = np.concatenate([starts[k] + np.arange(free[k].size), angles])
        values = np.concatenate([np.ones(free[k].size), tangent])
        maps.append(csr_array((values, (rows, columns)), shape=(count, total)))
    force = matrix @ points
    bend = np.zeros(total)
    bend[angles] = -np.einsum("ck,ck->c", force[net.circle], away) / net.radius
    system = sum((part.T @ matrix @ part for part in maps), start=diags_array(bend))
    slope = sum(part.T @ force[:, k] for k, part in enumerate(maps))
    solver = splu(csc_array(system), permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
    change = solver.solve(-np.asarray(slope))
    moved = points + np.stack([part @ change for part in maps], axis=1)
    outward = moved[net.circle] - net.centre
    moved[net.circle] = net.centre + net.radius * outward / np.linalg.norm(outward, axis=1)[:, None]
    return moved
