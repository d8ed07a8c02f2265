"""Boxes of quads, triangles, hexahedra, tetrahedra, prisms and pyramids, with a named patch per side."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate, permutations
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import MeshError, did_you_mean
from fluxloom.mesh.data.elements import element, face_name
from fluxloom.mesh.data.mesh import FloatArray, IntArray, MeshData, MeshSource, PatchFaces

__all__ = ["Axis", "Diagonal", "box2d", "box3d", "clustered", "ring_quads"]

Axis = npt.ArrayLike | Callable[[FloatArray], npt.ArrayLike] | None
"""Node positions along one axis: an array of ``n + 1`` values, a map of [0, 1] to itself, or None for uniform."""

Diagonal = Literal["alternating", "right", "left"]

_KINDS2 = ("quad", "triangle")
_KINDS3 = ("hexahedron", "tetra", "prism", "pyramid")


def box2d(
    nx: int,
    ny: int,
    lengths: Sequence[float] = (1.0, 1.0),
    kind: str = "quad",
    *,
    origin: Sequence[float] = (0.0, 0.0),
    diagonal: Diagonal = "alternating",
    axes: Sequence[Axis] = (None, None),
    perturb: float = 0.0,
    seed: int = 0,
) -> MeshData:
    """Mesh a rectangle.

    Parameters
    ----------
    nx, ny
        Intervals along each axis.  Nodes and cells are numbered x first; a box has two triangles, adjacent in number.
    lengths, origin
        Side lengths and lower corner.
    kind
        ``"quad"`` or ``"triangle"``.
    diagonal
        Of triangles: ``"right"`` joins lower left to upper right, ``"left"`` the others, ``"alternating"`` both
        in a chequerboard.
    axes
        Per axis, node positions or a stretching (see `Axis`).
    perturb
        Interior nodes move at random by at most this fraction of the local spacing per axis (below 0.5).
    seed
        Of the random moves.

    Returns
    -------
    MeshData
        With patches ``xmin``, ``xmax``, ``ymin``, ``ymax``.

    Raises
    ------
    MeshError
        For sizes below 1, an unknown kind, or positions that do not increase.
    """
    _check_kind(kind, _KINDS2)
    if diagonal not in ("alternating", "right", "left"):
        raise MeshError(f"unknown diagonal {diagonal!r} (known: alternating, right, left)")
    points = _lattice((nx, ny), lengths, origin, axes, perturb, seed)
    node = np.arange((nx + 1) * (ny + 1), dtype=np.int32).reshape(ny + 1, nx + 1)
    a, b, c, d = node[:-1, :-1], node[:-1, 1:], node[1:, 1:], node[1:, :-1]
    if kind == "quad":
        cells = np.stack([a, b, c, d], axis=-1).reshape(-1, 4)
        return _finish(points, {"quad": cells}, (nx, ny), "<box2d>")
    right = np.stack([a, b, c, a, c, d], axis=-1)
    left = np.stack([a, b, d, b, c, d], axis=-1)
    j, i = np.indices((ny, nx))
    falls = np.full((ny, nx), diagonal == "left") if diagonal != "alternating" else (i + j) % 2 == 1
    cells = np.where(falls[..., None], left, right).reshape(-1, 3)
    return _finish(points, {"triangle": cells}, (nx, ny), "<box2d>")


def box3d(
    nx: int,
    ny: int,
    nz: int,
    lengths: Sequence[float] = (1.0, 1.0, 1.0),
    kind: str = "hexahedron",
    *,
    origin: Sequence[float] = (0.0, 0.0, 0.0),
    axes: Sequence[Axis] = (None, None, None),
    perturb: float = 0.0,
    seed: int = 0,
) -> MeshData:
    """Mesh a box.

    Parameters
    ----------
    nx, ny, nz
        Intervals along each axis; nodes and cells are numbered x first, then y, then z.
    lengths, origin
        Side lengths and lower corner.
    kind
        ``"hexahedron"``; ``"tetra"`` (six per box, Kuhn's division); ``"prism"`` (two per box, extruded
        along z); ``"pyramid"`` (six per box, about an extra node in its middle).
    axes, perturb, seed
        As in `box2d`.

    Returns
    -------
    MeshData
        With patches ``xmin``, ``xmax``, ``ymin``, ``ymax``, ``zmin``, ``zmax``.

    Raises
    ------
    MeshError
        For sizes below 1, an unknown kind, or positions that do not increase.
    """
    _check_kind(kind, _KINDS3)
    points = _lattice((nx, ny, nz), lengths, origin, axes, perturb, seed)
    node = np.arange(len(points), dtype=np.int32).reshape(nz + 1, ny + 1, nx + 1)
    low, high = node[:-1], node[1:]
    corners = [face[:, y, x] for face in (low, high) for y, x in _AROUND]
    hexes = np.stack(corners, axis=-1).reshape(-1, 8)
    if kind == "pyramid":
        centres = np.arange(len(points), len(points) + len(hexes), dtype=np.int32)
        points = np.concatenate([points, points[hexes].mean(axis=1)])
        bases = [hexes[:, face[::-1]] for face in element("hexahedron").faces]
        parts = [np.concatenate([base, centres[:, None]], axis=1) for base in bases]
        cells = np.stack(parts, axis=1).reshape(-1, 5)
    else:
        division = {"hexahedron": (tuple(range(8)),), "tetra": _kuhn(), "prism": _PRISMS}[kind]
        cells = hexes[:, np.array(division)].reshape(-1, element(kind).n_nodes)
    return _finish(points, {kind: cells}, (nx, ny, nz), "<box3d>")


def ring_quads(levels: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the quads between nodes ``(levels, around)``, closed around, from the inside to the outside."""
    following = np.roll(levels, -1, axis=1)
    return np.stack([levels[:-1], levels[1:], following[1:], following[:-1]], axis=-1).reshape(-1, 4)


def clustered(strength: float) -> Callable[[FloatArray], FloatArray]:
    """Return a stretching for `box2d` and `box3d`: intervals that get smaller towards both ends.

    ``x(t) = (1 + tanh(s (2 t - 1)) / tanh(s)) / 2``, which is symmetric about the middle.

    Parameters
    ----------
    strength
        ``s``, above 0: the outermost interval is about ``2 s / sinh(2 s)`` of the mean one.

    Raises
    ------
    MeshError
        For a strength that is not positive.
    """
    if not strength > 0.0:
        raise MeshError(f"the strength of a stretching must be above 0, not {strength!r}")
    return lambda t: 0.5 * (1.0 + np.tanh(strength * (2.0 * t - 1.0)) / np.tanh(strength))


_HEAD, _TAIL = slice(None, -1), slice(1, None)
_AROUND = ((_HEAD, _HEAD), (_HEAD, _TAIL), (_TAIL, _TAIL), (_TAIL, _HEAD))
_PRISMS = ((0, 1, 2, 4, 5, 6), (0, 2, 3, 4, 6, 7))
_CORNER = (0, 1, 3, 2, 4, 5, 7, 6)
"""Number of the corner at ``x + 2 y + 4 z``, each of them 0 or 1."""


def _kuhn() -> tuple[tuple[int, ...], ...]:
    """Return the six tetrahedra of a box: one for each order in which the axes are walked from corner 0 to 6."""
    tetras: list[tuple[int, ...]] = []
    for order in permutations(range(3)):
        places = accumulate((1 << axis for axis in order), initial=0)
        path = [_CORNER[place] for place in places]
        even = order in ((0, 1, 2), (1, 2, 0), (2, 0, 1))
        tetras.append(tuple(path) if even else (path[0], path[2], path[1], path[3]))
    return tuple(tetras)


def _check_kind(kind: str, known: Sequence[str]) -> None:
    if kind not in known:
        raise MeshError(f"unknown kind of cell {kind!r}{did_you_mean(kind, known)} (known: {', '.join(known)})")


def _positions(n: int, length: float, origin: float, axis: Axis, name: str) -> FloatArray:
    """Return the ``n + 1`` node positions along one axis."""
    if n < 1:
        raise MeshError(f"a box needs at least one interval along {name}, got {n}")
    unit = np.linspace(0.0, 1.0, n + 1)
    if axis is None:
        values = origin + length * unit
    elif callable(axis):
        values = origin + length * np.asarray(axis(unit), dtype=np.float64)
    else:
        values = np.asarray(axis, dtype=np.float64)
    if values.shape != (n + 1,) or not (np.diff(values) > 0.0).all():
        raise MeshError(f"positions along {name} must be {n + 1} increasing values, got shape {values.shape}")
    return values


def _lattice(
    sizes: Sequence[int],
    lengths: Sequence[float],
    origin: Sequence[float],
    axes: Sequence[Axis],
    perturb: float,
    seed: int,
) -> FloatArray:
    """Return the lattice points, x fastest, interior ones perturbed."""
    d = len(sizes)
    if not len(lengths) == len(origin) == len(axes) == d:
        raise MeshError(f"a box in {d} dimensions needs {d} lengths, origins and axes")
    if not 0.0 <= perturb < 0.5:
        raise MeshError(f"perturb must be in [0, 0.5), got {perturb}")
    lines = [_positions(sizes[k], lengths[k], origin[k], axes[k], "xyz"[k]) for k in range(d)]
    grids = np.meshgrid(*reversed(lines), indexing="ij")[::-1]
    if perturb > 0.0:
        random = np.random.default_rng(seed)
        inner = tuple(slice(1, -1) for _ in range(d))
        for k, line in enumerate(lines):
            gap = np.minimum(np.diff(line)[1:], np.diff(line)[:-1])
            room = gap.reshape([-1 if axis == d - 1 - k else 1 for axis in range(d)])
            grids[k][inner] += perturb * room * random.uniform(-1.0, 1.0, grids[k][inner].shape)
    return np.stack([grid.reshape(-1) for grid in grids], axis=1)


def _finish(points: FloatArray, cells: Mapping[str, IntArray], sizes: Sequence[int], name: str) -> MeshData:
    """Add the patches: a face of a cell is on a side when all its nodes are (a box has no interior such face)."""
    n_lattice = int(np.prod([n + 1 for n in sizes]))
    number = np.arange(n_lattice, dtype=np.int32)
    patches: dict[str, PatchFaces] = {}
    for axis, n in enumerate(sizes):
        index = number % (n + 1)
        number = number // (n + 1)
        for side, value in (("min", 0), ("max", n)):
            on_side = np.zeros(len(points), dtype=bool)
            on_side[:n_lattice] = index == value
            patches["xyz"[axis] + side] = PatchFaces(_side_faces(cells, on_side))
    return MeshData(points, cells, patches, MeshSource(name))


def _side_faces(cells: Mapping[str, IntArray], on_side: npt.NDArray[np.bool_]) -> dict[str, IntArray]:
    """Return the cell faces all of whose nodes are marked, by face type, in cell order."""
    found: dict[int, list[tuple[IntArray, IntArray]]] = {}
    for name, block in cells.items():
        near = np.flatnonzero(on_side[block].any(axis=1))
        for face in element(name).faces:
            nodes = block[near][:, list(face)]
            full = on_side[nodes].all(axis=1)
            if full.any():
                found.setdefault(len(face), []).append((near[full].astype(np.int32), nodes[full]))
    blocks: dict[str, IntArray] = {}
    for width, parts in found.items():
        rows = np.concatenate([part[0] for part in parts])
        nodes = np.concatenate([part[1] for part in parts])
        blocks[face_name(width)] = nodes[np.argsort(rows, kind="stable")]
    return blocks
