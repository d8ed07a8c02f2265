r"""Meshes of one passage of a blade row: quads between two blades of a plane cascade, hexahedra between two of a ring.

Blades are thin, with sharp edges, so that one block of lines along the flow fits between them (an H-mesh). With ``x``
from 0 to the axial chord ``c`` and ``y`` along the pitch, the camber line and half the thickness along the pitch are

.. math:: y_c = x \tan\beta_1 + \frac{x^2}{2 c} (\tan\beta_2 - \tan\beta_1), \quad h = 2 t x (1 - x / c),

so that the flow meets the blade with the angle ``beta_1`` from the axis and leaves it with ``beta_2``. Ahead and behind
the lines go on straight. The sides of the passage there are the patches ``low`` and ``high``, one the other one moved
by the pitch, or turned by it about the axis ``x``; the others are ``inlet``, ``outlet``, ``blade`` (the upper side of
the lower blade and the lower side of the upper one), and of a ring ``hub`` and ``casing``.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite, pi
from typing import Any

import numpy as np

from fluxloom.core.errors import MeshError
from fluxloom.mesh.data.mesh import FloatArray, MeshData, MeshSource, PatchFaces
from fluxloom.mesh.generate.boxes import box2d, box3d, clustered

__all__ = ["BladeRow", "blade_row_mesh", "blade_row_sizes"]

_STEEPEST = 80.0
"""Degrees from the axis that a blade may have."""


@dataclass(frozen=True)
class BladeRow:
    """A row of equal blades, and how one passage of it is divided.

    Attributes
    ----------
    chord
        Axial.
    pitch
        From blade to blade, of a plane cascade.
    blades
        Around a ring; 0: a plane cascade.
    hub, casing
        Radii of the ring.
    inlet_angle, outlet_angle
        Of the camber line at its ends, degrees from the axis; of a ring at the hub.
    inlet_twist, outlet_twist
        What they are more at the casing; in between they change evenly with the radius.
    thickness
        Along the pitch, as a part of the axial chord.
    ahead, behind
        Lengths of the passage beyond the blade, in axial chords.
    along, before, after
        Cells along the blade, ahead of it and behind it.
    across, span
        Cells from blade to blade, and of a ring from the hub to the casing.
    stretch, stretch_span
        How far cells get smaller towards the blades, and towards hub and casing: ``tanh(s (2 t - 1)) / tanh(s)``.

    Raises
    ------
    MeshError
        If a number is out of range.
    """

    chord: float = 1.0
    pitch: float = 0.8
    blades: int = 0
    hub: float = 1.0
    casing: float = 1.5
    inlet_angle: float = 0.0
    outlet_angle: float = 50.0
    inlet_twist: float = 0.0
    outlet_twist: float = 0.0
    thickness: float = 0.1
    ahead: float = 0.8
    behind: float = 1.2
    along: int = 48
    before: int = 16
    after: int = 24
    across: int = 32
    span: int = 16
    stretch: float = 1.5
    stretch_span: float = 0.0

    def __post_init__(self) -> None:
        for name in ("chord", "pitch", "hub", "thickness", "ahead", "behind"):
            self._check(name, getattr(self, name) > 0.0, "above 0")
        for name, least in (("along", 2), ("before", 1), ("after", 1), ("across", 2), ("span", 1), ("blades", 0)):
            self._check(name, getattr(self, name) >= least, f"at least {least}")
        for name in ("stretch", "stretch_span"):
            self._check(name, 0.0 <= getattr(self, name) <= 10.0, "between 0 and 10")
        for name in ("inlet", "outlet"):
            angle, twist = getattr(self, f"{name}_angle"), getattr(self, f"{name}_twist")
            self._check(f"{name}_angle", abs(angle) <= _STEEPEST, f"at most {_STEEPEST:g} degrees")
            self._check(f"{name}_twist", abs(angle + twist) <= _STEEPEST, f"with the angle at most {_STEEPEST:g}")
        self._check("casing", self.casing > self.hub, f"above the hub ({self.hub:g})")
        narrowest = 2.0 * pi * self.hub / self.blades if self.blades else self.pitch
        self._check("thickness", self.thickness * self.chord < 0.9 * narrowest, "far less than the pitch")

    def _check(self, name: str, right: bool, wanted: str) -> None:
        value = getattr(self, name)
        if not (isfinite(value) and right):
            raise MeshError(f"blade row: {name}: {wanted} is wanted, not {value!r}")

    @property
    def lines(self) -> int:
        """Cells along the passage."""
        return self.before + self.along + self.after

    def pitch_at(self, radius: FloatArray) -> FloatArray:
        """Return the way from blade to blade."""
        return 2.0 * pi * radius / self.blades if self.blades else self.pitch + 0.0 * radius

    def camber(self, x: FloatArray, radius: FloatArray) -> FloatArray:
        """Return ``y`` of the camber line, straight beyond the blade."""
        part = (radius - self.hub) / (self.casing - self.hub) if self.blades else 0.0 * radius
        first = np.tan(np.radians(self.inlet_angle + part * self.inlet_twist))
        last = np.tan(np.radians(self.outlet_angle + part * self.outlet_twist))
        inside = np.clip(x, 0.0, self.chord)
        curve = inside * first + inside * inside / (2.0 * self.chord) * (last - first)
        return curve + np.minimum(x, 0.0) * first + np.maximum(x - self.chord, 0.0) * last

    def half(self, x: FloatArray) -> FloatArray:
        """Return half the thickness of the blade along the pitch."""
        inside = np.clip(x, 0.0, self.chord)
        return 2.0 * self.thickness * inside * (1.0 - inside / self.chord)


def blade_row_sizes(row: BladeRow) -> tuple[int, int, int]:
    """Return the numbers of cells, nodes and dimensions of the mesh of a passage."""
    cells, nodes = row.lines * row.across, (row.lines + 1) * (row.across + 1)
    return (cells * row.span, nodes * (row.span + 1), 3) if row.blades else (cells, nodes, 2)


def blade_row_mesh(row: BladeRow) -> MeshData:
    """Return the mesh of a passage; see the module for its patches. The axis of a ring is ``x``.

    Raises
    ------
    MeshError
        If cells turn inside out: blades that are too steep for so long a passage do so in a ring.
    """
    parts = clustered(row.stretch) if row.stretch else None
    spans = clustered(row.stretch_span) if row.stretch_span else None
    if row.blades:
        size = (1.0, row.casing - row.hub, 1.0)
        box = box3d(row.lines, row.span, row.across, size, origin=(0.0, row.hub, 0.0), axes=(None, spans, parts))
        radius, part = box.points[:, 1], box.points[:, 2]
    else:
        box = box2d(row.lines, row.across, (1.0, 1.0), axes=(None, parts))
        radius, part = np.ones(box.n_points), box.points[:, 1]
    x = _stations(row)[np.arange(box.n_points) % (row.lines + 1)]
    half, pitch = row.half(x), row.pitch_at(radius)
    y = row.camber(x, radius) + half + part * (pitch - 2.0 * half)
    points = np.stack([x, y], axis=1)
    if row.blades:
        points = np.stack([x, radius * np.cos(y / radius), radius * np.sin(y / radius)], axis=1)
    return MeshData(points, box.cells, _patches(row, box), MeshSource("blade row"))


def _stations(row: BladeRow) -> FloatArray:
    """Return the places of the lines along the axis, ``(lines + 1,)``: near its edges close, as the blade has them."""
    blade = row.chord * clustered(1.0)(np.linspace(0.0, 1.0, row.along + 1))
    first = blade[1] - blade[0]
    ahead = _growing(row.ahead * row.chord, first, row.before)
    behind = _growing(row.behind * row.chord, first, row.after)
    return np.concatenate([-ahead[:0:-1], blade, row.chord + behind[1:]])


def _growing(length: float, first: float, count: int) -> FloatArray:
    """Return places from 0 to a length whose intervals grow evenly, the first one as given if it is short enough."""
    from scipy.optimize import brentq

    if first * count >= length:
        return np.linspace(0.0, length, count + 1)

    def excess(logarithm: float) -> float:
        return first * float(np.exp(logarithm * np.arange(count)).sum()) - length

    rate: Any = brentq(excess, 0.0, np.log(length / first) + 1.0)
    places = np.concatenate([[0.0], np.cumsum(np.exp(float(rate) * np.arange(count)))])
    return places * (length / places[-1])


def _patches(row: BladeRow, box: MeshData) -> dict[str, PatchFaces]:
    """Return the patches of a box under the names of a passage, the blade cut out of its sides."""
    low, high = ("zmin", "zmax") if row.blades else ("ymin", "ymax")
    found = {"inlet": box.patches["xmin"], "outlet": box.patches["xmax"]}
    if row.blades:
        found |= {"hub": box.patches["ymin"], "casing": box.patches["ymax"]}
    blades = []
    for name, side in (("low", low), ("high", high)):
        ((kind, faces),) = box.patches[side].blocks.items()
        line = faces % (row.lines + 1)
        wet = ((line >= row.before) & (line <= row.before + row.along)).all(axis=1)
        found[name] = PatchFaces({kind: faces[~wet]})
        blades.append((kind, faces[wet]))
    found["blade"] = PatchFaces({blades[0][0]: np.concatenate([faces for _, faces in blades])})
    return found
