"""Linear element types: node counts, VTK, SU2 and Gmsh codes, faces and edges, as one table.

Node ordering is that of VTK, Gmsh and CGNS: the base of a tetra, pyramid, prism or hexahedron turns
anticlockwise when it is seen from the other nodes.  The prism alone is mirrored in VTK, whose base turns
the other way; `vtk_order` converts it when VTK and SU2 files are read and written.  Faces turn
anticlockwise when seen from outside, so the right-hand rule gives the outward normal.

Source: VTK file formats, "Linear cell types"; Gmsh reference manual, "Node ordering"; SU2 "Mesh file".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import MeshError, did_you_mean

__all__ = [
    "ELEMENTS", "FOLDABLE", "PARALLEL", "VTK_POLYGON", "ElementType", "by_code", "element", "face_name", "vtk_order",
]  # fmt: skip

VTK_POLYGON = 7
"""VTK's code of a polygon with any number of nodes."""

FOLDABLE = ("hexahedron", "prism")
"""Kinds of cells of space that may be concave, and of which the determinant of the Jacobian says whether they are."""


@dataclass(frozen=True)
class ElementType:
    """One linear element type.

    Attributes
    ----------
    name
        ``"vertex"``, ``"line"``, ``"triangle"``, ``"quad"``, ``"tetra"``, ``"pyramid"``, ``"prism"`` or
        ``"hexahedron"``.
    dimension
        Topological dimension, 0 to 3.
    n_nodes
        Number of nodes.
    vtk, gmsh
        Type codes; SU2 uses VTK's.
    faces
        Local nodes of each face, outward (a face of a triangle or quad is an edge).
    edges
        Local node pairs of each edge.
    """

    name: str
    dimension: int
    n_nodes: int
    vtk: int
    gmsh: int
    faces: tuple[tuple[int, ...], ...]
    edges: tuple[tuple[int, int], ...]

    @property
    def face_width(self) -> int:
        """The largest number of nodes of a face."""
        return max((len(face) for face in self.faces), default=0)


_LOOP3 = ((0, 1), (1, 2), (2, 0))
_LOOP4 = ((0, 1), (1, 2), (2, 3), (3, 0))

_TABLE = (
    ElementType("vertex", 0, 1, 1, 15, (), ()),
    ElementType("line", 1, 2, 3, 1, ((0,), (1,)), ((0, 1),)),
    ElementType("triangle", 2, 3, 5, 2, _LOOP3, _LOOP3),
    ElementType("quad", 2, 4, 9, 3, _LOOP4, _LOOP4),
    ElementType(
        "tetra", 3, 4, 10, 4,
        ((0, 2, 1), (0, 1, 3), (1, 2, 3), (0, 3, 2)),
        (*_LOOP3, (0, 3), (1, 3), (2, 3)),
    ),
    ElementType(
        "pyramid", 3, 5, 14, 7,
        ((0, 3, 2, 1), (0, 1, 4), (1, 2, 4), (2, 3, 4), (3, 0, 4)),
        (*_LOOP4, (0, 4), (1, 4), (2, 4), (3, 4)),
    ),
    ElementType(
        "prism", 3, 6, 13, 6,
        ((0, 2, 1), (3, 4, 5), (0, 1, 4, 3), (1, 2, 5, 4), (2, 0, 3, 5)),
        (*_LOOP3, (3, 4), (4, 5), (5, 3), (0, 3), (1, 4), (2, 5)),
    ),
    ElementType(
        "hexahedron", 3, 8, 12, 5,
        ((0, 3, 2, 1), (4, 5, 6, 7), (0, 1, 5, 4), (1, 2, 6, 5), (2, 3, 7, 6), (3, 0, 4, 7)),
        (*_LOOP4, (4, 5), (5, 6), (6, 7), (7, 4), (0, 4), (1, 5), (2, 6), (3, 7)),
    ),
)  # fmt: skip

ELEMENTS: Mapping[str, ElementType] = MappingProxyType({item.name: item for item in _TABLE})
"""Every element type by name; read only."""


PARALLEL: Mapping[str, tuple[tuple[tuple[int, int], ...], ...]] = MappingProxyType(
    {
        "quad": (((0, 1), (3, 2)), ((0, 3), (1, 2))),
        "prism": (((0, 3), (1, 4), (2, 5)),),
        "hexahedron": (
            ((0, 1), (3, 2), (4, 5), (7, 6)),
            ((0, 3), (1, 2), (4, 7), (5, 6)),
            ((0, 4), (1, 5), (2, 6), (3, 7)),
        ),
    }
)
"""Parallel edges of each type, in the same direction: a cell may be cut across all edges of a group alike. Those of a
hexahedron are at the ends of the two other axes, that of the lower number first."""


def element(name: str) -> ElementType:
    """Return the element type called ``name``: one of `ELEMENTS`, or ``"polygon5"``, ``"polygon6"`` and so on.

    Raises
    ------
    MeshError
        For any other name; the message lists those in `ELEMENTS`.
    """
    if name not in ELEMENTS:
        if (width := name.removeprefix("polygon")).isdecimal() and name != width and int(width) > 4:
            return _polygon(int(width))
        known = ", ".join(ELEMENTS)
        raise MeshError(f"unknown element type {name!r}{did_you_mean(name, ELEMENTS)} (known: {known})")
    return ELEMENTS[name]


def by_code(system: str) -> dict[int, ElementType]:
    """Return the element types keyed by their code in ``system`` (``"vtk"``, ``"su2"`` or ``"gmsh"``)."""
    return {item.gmsh if system == "gmsh" else item.vtk: item for item in _TABLE}


@cache
def _polygon(width: int) -> ElementType:
    """Return the polygon with so many nodes, which turns anticlockwise; Gmsh has no such type."""
    sides = tuple((k, (k + 1) % width) for k in range(width))
    return ElementType(f"polygon{width}", 2, width, VTK_POLYGON, 0, sides, sides)


def face_name(n_nodes: int) -> str:
    """Return the element type of a face with that many nodes (1 or more)."""
    return ("vertex", "line", "triangle", "quad")[n_nodes - 1] if n_nodes < 5 else f"polygon{n_nodes}"


def vtk_order(name: str, block: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """Convert nodes ``(m, k)`` of an element type to VTK's ordering or back; only the prism's differs."""
    return np.ascontiguousarray(block[:, [0, 2, 1, 3, 5, 4]]) if name == "prism" else block
