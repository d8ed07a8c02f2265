"""A mesh of hexahedra round a wing with a rounded tip, for flow with boundary layers.

One block lies above the wing and is mirrored below it. Its lines ``i`` lead from the leading edge over the upper side
and along the wake, ``j`` away from the wing, ``k`` from the root round the tip (a C along the stream, an O across it).
So where the tip ends lines fan out, and no thin cells lead beyond it. In the wake cells next to the sheet behind the
trailing edge soon are as high as they are some way off: there is no wall that wants thin ones.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from math import sqrt

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import MeshError
from fluxloom.mesh.data.mesh import MeshData, MeshSource, PatchFaces
from fluxloom.mesh.generate.cluster import growth_factors
from fluxloom_lab.problems.wing_lines import AwayLines
from fluxloom_lab.problems.wing_surface import WingShape, stretched, surface_normals, surface_points

__all__ = ["WingMesh", "wing_mesh"]

Array = npt.NDArray[np.float64]

Index = npt.NDArray[np.int64]

_SAMPLES = 400
_ROOT, _EDGE = 0.15, 0.1
"""Parts of the span in which normals turn into the plane of symmetry, and of the chord before the trailing edge in
which lines cease to begin with them: behind it they begin at right angles to the sheet."""
_CORNER = (0.03, 0.004)
"""Parts of span and chord, where leading edge and tip meet, in which lines do not begin with normals either."""
_SHARP = (0.02, 0.08)
"""Parts of span and chord, where trailing edge and tip meet, in which first cells are higher."""


@dataclass(frozen=True)
class WingMesh:
    """How many cells there are, and how long they are. Lengths are in chords of the section, but for ``first``.

    Attributes
    ----------
    chordwise, wake, spanwise, normal
        Cells from the leading to the trailing edge, along the wake, from the root round the tip to its end, and away
        from the wing.
    first
        Height of the first cells on the wing, in the unit of the mesh.
    nose, edge, tip
        Length of the cells at the leading edge, at the trailing edge, and (over the span) at the tip.
    root
        Width of the cells at the root over that of equal ones.
    far
        How far the outer boundary is from the leading edge.
    near
        Way along which lines turn from the normals of the wing.
    band, spreading
        Height above the sheet of the wake that has cells of about the same height, and how it grows along the wake.
    wake_height
        Height of the first cells in the wake, as a part of equal ones in the band.
    opening
        Way along the wake in which they become as high.
    raised
        Which part of that they have where trailing edge and tip meet: both are sharp there, and cells lead round them.

    Raises
    ------
    MeshError
        If a number is not positive.
    """

    chordwise: int = 64
    wake: int = 28
    spanwise: int = 40
    normal: int = 72
    first: float = 2e-6
    nose: float = 0.0012
    edge: float = 0.003
    tip: float = 0.0015
    root: float = 1.5
    far: float = 25.0
    near: float = 0.04
    band: float = 0.1
    spreading: float = 0.15
    wake_height: float = 0.4
    opening: float = 0.15
    raised: float = 0.2

    def __post_init__(self) -> None:
        for field in fields(self):
            if not getattr(self, field.name) > 0:
                raise MeshError(f"wing: {field.name}: a positive number is wanted, not {getattr(self, field.name)!r}")

    @property
    def cells(self) -> int:
        """How many there are."""
        return 2 * (self.chordwise + self.wake) * self.spanwise * self.normal


def wing_mesh(shape: WingShape, sizes: WingMesh) -> MeshData:
    """Return a mesh round a wing.

    Parameters
    ----------
    shape
        The wing.
    sizes
        Of its cells.

    Returns
    -------
    MeshData
        Hexahedra, those away from one face of the wing after each other, with the patches ``wing``, ``symmetry``
        (``y = 0``) and ``farfield``.

    Raises
    ------
    MeshError
        If there are too few or too many cells for the lengths that they are to have.
    """
    points = _points(shape, sizes)
    points[:, 0, :, 1] = 0.0
    return _mirrored(points, sizes.chordwise)


def _points(shape: WingShape, sizes: WingMesh) -> Array:
    """Return the points of the block above the wing, ``(i, k, j, 3)``."""
    section = shape.upper(sizes.chordwise, sizes.nose, sizes.edge)
    spanwise = stretched(sizes.spanwise, sizes.root / sizes.spanwise, sizes.tip)
    wing = surface_points(shape, section, spanwise)
    normals = surface_normals(wing, _ROOT * shape.planform.span)
    behind, end, flat = _behind(sizes), section[-1, 0], np.zeros(sizes.wake)
    past = np.concatenate([np.zeros(len(section)), behind])
    along = np.concatenate([section[:, 0], end + behind])
    plan = shape.planform
    sheet = plan.span + 0.5 * float(plan.chord(plan.span)) * np.concatenate([section[:, 1], flat])
    near = sizes.near * np.clip((end - along) / _EDGE, 0.0, 1.0)
    points = np.empty((len(along), len(spanwise), sizes.normal + 1, 3))
    for k in range(len(spanwise)):
        chord = float(plan.chord(wing[0, k, 1]))
        trail = wing[-1, k] + chord * behind[:, None] * np.array([1.0, 0.0, 0.0])
        inboard = (plan.span - wing[0, k, 1]) / (_CORNER[0] * plan.span)
        turned = near * chord * (1.0 - np.exp(-(inboard**2) - (along / _CORNER[1]) ** 2))
        lines = AwayLines(
            np.concatenate([wing[:, k], trail]),
            np.concatenate([normals[:, k], np.tile(normals[-1, k], (sizes.wake, 1))]),
            sheet, along, chord, _nose(section), turned, sqrt(sizes.far),
        )  # fmt: skip
        sharp = np.exp(-(((wing[0, -1, 1] - wing[0, k, 1]) / (_SHARP[0] * plan.span)) ** 2))
        raised = sizes.raised * sharp * np.exp(-((np.clip(end - along, 0.0, None) / _SHARP[1]) ** 2))
        points[:, k] = _on_lines(lines, sizes, past, raised)
    return points


def _on_lines(lines: AwayLines, sizes: WingMesh, past: Array, raised: Array) -> Array:
    """Return the points on lines, ``(n, normal + 1, 3)``, see `_heights`."""
    eta, length = lines.spread(_SAMPLES, sizes.first / (lines.chord * sizes.far))
    heights = _heights(sizes, past, raised, lines.chord, length[:, -1])
    found = np.stack([np.interp(h, s, e) for h, s, e in zip(heights, length, eta, strict=True)])
    found[:, 0], found[:, -1] = eta[:, 0], eta[:, -1]
    return lines.at(found)


def _nose(section: Array) -> float:
    """Return half the radius of the nose over the chord, from its first points."""
    x, z = section[1:4].T
    return float(np.mean(z * z / (4.0 * x)))


def _behind(sizes: WingMesh) -> Array:
    """Return how far the points of the wake are behind the trailing edge, over the chord."""
    factor = float(growth_factors(np.array([sizes.edge]), np.array([sizes.far]), sizes.wake)[0])
    return np.cumsum(sizes.edge * factor ** np.arange(sizes.wake, dtype=np.float64))


def _heights(sizes: WingMesh, past: Array, raised: Array, chord: float, length: Array) -> Array:
    """Return the heights of the points on lines ``(n, normal + 1)``.

    Lines begin so far behind the trailing edge, and have a part ``raised`` of the heights in the wake in any case.
    """
    wall = _growing(np.full(1, sizes.first), length[:1], sizes.normal)[0]
    low = np.concatenate([[0.0], np.cumsum(wall)])
    inner = int(np.clip(np.searchsorted(low, sizes.band * chord), 4, sizes.normal - 4))
    # in the wake a line and a power, with the same last step
    part, t = 1.0 - sizes.wake_height, np.arange(inner + 1) / inner
    power = (wall[inner - 1] * inner / low[inner] - sizes.wake_height) / part
    wake = low[inner] * (sizes.wake_height * t + part * t ** max(power, 1.0))
    s = np.clip(past / sizes.opening, 0.0, 1.0)[:, None]
    s = 1.0 - (1.0 - s * s * (3.0 - 2.0 * s)) * (1.0 - raised[:, None])
    near = ((1.0 - s) * low[: inner + 1] + s * wake) * (1.0 + sizes.spreading * past)[:, None]
    last = near[:, -1] - near[:, -2]
    outer = _growing(last * wall[inner] / wall[inner - 1], length - near[:, -1], sizes.normal - inner)
    return np.concatenate([near, near[:, -1:] + np.cumsum(outer, axis=1)], axis=1)


def _growing(first: Array, length: Array, count: int) -> Array:
    """Return so many distances ``(n, count)`` that grow by one factor from a first one to a whole length."""
    steps = first[:, None] * growth_factors(first, length, count)[:, None] ** np.arange(count, dtype=np.float64)
    return steps * (length / steps.sum(axis=1))[:, None]


def _mirrored(points: Array, chordwise: int) -> MeshData:
    """Return the mesh of a block ``(i, k, j, 3)`` and its mirror image, joined where it meets that."""
    upper = np.arange(points[..., 0].size).reshape(points.shape[:3])
    seam = np.zeros(upper.shape, dtype=bool)
    seam[0], seam[:, -1], seam[chordwise:, :, 0] = True, True, True
    above = points.reshape(-1, 3).copy()
    above[seam.reshape(-1), 2] = 0.0
    lower = np.where(seam, upper, 0)
    lower[~seam] = len(above) + np.arange(int((~seam).sum()))
    below = above[~seam.reshape(-1)] * np.array([1.0, 1.0, -1.0])
    cells = np.concatenate([_hexahedra(upper), _hexahedra(lower)[:, [3, 2, 1, 0, 7, 6, 5, 4]]])
    sides: dict[str, list[Index]] = {"wing": [], "symmetry": [], "farfield": []}
    for number, turn in ((upper, 1), (lower, -1)):
        sides["wing"].append(_quads(number[: chordwise + 1, :, 0])[:, ::-turn])
        sides["symmetry"].append(_quads(number[:, 0])[:, ::turn])
        sides["farfield"] += [_quads(number[:, :, -1])[:, ::turn], _quads(number[-1])[:, ::turn]]
    patches = {name: PatchFaces({"quad": np.concatenate(parts).astype(np.int32)}) for name, parts in sides.items()}
    every = np.concatenate([above, below])
    return MeshData(every, {"hexahedron": cells.astype(np.int32)}, patches, MeshSource("<wing>"))


def _quads(number: Index) -> Index:
    """Return the quads of a grid of nodes, anticlockwise for who sees its first line lead right and its second up."""
    ring = [number[:-1, :-1], number[1:, :-1], number[1:, 1:], number[:-1, 1:]]
    return np.stack(ring, axis=-1).reshape(-1, 4)


def _hexahedra(number: Index) -> Index:
    """Return the cells of a block, those with other ``j`` after each other."""
    first, last = slice(None, -1), slice(1, None)
    ring = [(first, first), (last, first), (last, last), (first, last)]
    return np.stack([number[a, b, j] for j in (first, last) for a, b in ring], axis=-1).reshape(-1, 8)
