"""The cavity in space: flow on tetrahedra and edges beside hexahedra and our own finite volumes."""

from __future__ import annotations

from collections.abc import Iterator
from math import log

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import DeviceUnavailable
from fluxloom.dsl.context import Context
from fluxloom_lab.verify.base import Check, Tell
from fluxloom_lab.verify.edge_flow_cube import CubeFlow, cells_cavity, edges_cavity, gmsh_cavity

__all__ = ["cavity_in_space", "limit_of"]

Array = npt.NDArray[np.float64]

_CELLS = "own finite volumes"
_NAMES = (
    "least u at x = z = 1/2", "largest v at y = z = 1/2", "least v at y = z = 1/2", "energy", "friction of the floor",
)  # fmt: skip


def limit_of(sizes: tuple[int, ...], found: list[CubeFlow]) -> Array:
    """Return what `CubeFlow.numbers` of the finest two meshes tend to with second order, ``(5,)``."""
    (m, n), (a, b) = sizes[-2:], found[-2:]
    return (n**2 * b.numbers - m**2 * a.numbers) / (n**2 - m**2)


def cavity_in_space(context: Context, tell: Tell, full: bool) -> Iterator[Check]:
    """Check the cavity in space at the Reynolds number 100: tetrahedra and edges against own finite volumes.

    Parameters
    ----------
    context
        Where both run.
    tell
        Takes lines of progress.
    full
        Meshes that are fine enough for orders, and one of Gmsh; else coarse ones, whose limits are compared.
    """
    what = "cavity in space, Re = 100"
    sizes, counts = ((12, 24, 36), (12, 24, 48)) if full else ((8, 12), (8, 16))
    cells, edges = list[CubeFlow](), list[CubeFlow]()
    for n in counts:
        tell(f"{what}: finite volumes, {n} x {n} x {n} cells")
        cells.append(cells_cavity(context, n, 100.0, cells[-1] if cells else None))
    for n in sizes:
        tell(f"{what}: edges, {n} x {n} x {n} intervals")
        edges.append(edges_cavity(context, n, 100.0, edges[-1] if edges else None))
    source = f"{_CELLS}, limit of {counts[-2]} and {counts[-1]} cells a side"
    wanted, found = limit_of(counts, cells), limit_of(sizes, edges)
    if full:
        yield from _orders(f"{what}: order of finite volumes", counts[1:], cells[1:], found, "limit of flow on edges")
        yield from _orders(f"{what}: order of flow on edges", sizes, edges, wanted, source)
        yield from _deviations(what, sizes, edges, wanted, cells[-1])
        yield from _other_meshes(context, what, edges[-2], wanted, tell)
    allowed = (0.003, 0.003, 0.003, 0.01, 0.005) if full else (0.035, 0.035, 0.035)
    for name, value, reference, part in zip(_NAMES, found, wanted, allowed, strict=False):
        yield Check(f"{what}: limit of {sizes[-2]} and {sizes[-1]} intervals, {name}", value, reference, part, source)


def _orders(what: str, sizes: tuple[int, ...], found: list[CubeFlow], wanted: Array, source: str) -> Iterator[Check]:
    """Check orders between the first and the last mesh; of energy, which feels most where the lid ends, a lower one."""
    first, last = (np.abs(flow.numbers - wanted) for flow in (found[0], found[-1]))
    orders = np.log(first / last) / log(sizes[-1] / sizes[0])
    for name, order, allowed in zip(_NAMES[:4], orders, (0.2, 0.2, 0.2, 0.25), strict=False):
        yield Check(f"{what}, {sizes[0]} to {sizes[-1]}, {name}", float(order), 2.0, allowed, source)


def _deviations(
    what: str, sizes: tuple[int, ...], edges: list[CubeFlow], wanted: Array, cells: CubeFlow
) -> Iterator[Check]:
    """Check how far flow on edges is from the limit of finite volumes, and from the profiles of their finest mesh."""
    for n, flow, allowed in zip(sizes[1:], edges[1:], (0.015, 0.0075), strict=True):
        for name, value, reference in zip(_NAMES[:3], flow.numbers, wanted, strict=False):
            yield Check(f"{what}, {n} x {n} x {n} intervals: {name}", float(value), float(reference), allowed, _CELLS)
    for name in ("upright", "level"):
        places, values = getattr(edges[-1], name).T
        deviation = np.abs(values - np.interp(places, *getattr(cells, name).T)).max()
        yield Check(f"{what}: {name} centreline, of the lid's speed", float(deviation), 0.0, 0.005, _CELLS)


def _other_meshes(context: Context, what: str, start: CubeFlow, wanted: Array, tell: Tell) -> Iterator[Check]:
    """Check the flow on a mesh of Gmsh of about 24 000 points, if Gmsh is there."""
    try:
        count, flow = gmsh_cavity(context, 0.0315, 100.0, start)
    except DeviceUnavailable as missing:
        tell(f"{what}: left out on a mesh of Gmsh: {missing}")
        return
    for name, value, reference in zip(_NAMES[:3], flow.numbers, wanted, strict=False):
        yield Check(f"{what}, Gmsh, {count} points: {name}", float(value), float(reference), 0.03, _CELLS)
