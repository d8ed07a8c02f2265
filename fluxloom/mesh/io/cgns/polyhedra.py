"""Cells given by their faces (``NFACE_n`` over ``NGON_n``): tetrahedra, pyramids, prisms, hexahedra, and any others."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import MeshError
from fluxloom.mesh.data.elements import element
from fluxloom.mesh.data.mesh import Polyhedra, turned_rows
from fluxloom.mesh.data.ragged import Ragged, narrowed
from fluxloom.mesh.geometry.connectivity import mixed_rows
from fluxloom.mesh.io.cgns.sections import NFACE, NGON, Section, find, ragged
from fluxloom.mesh.io.cgns.tree import Node
from fluxloom.mesh.io.cgns.zone import Blocks, Index

__all__ = ["polyhedra"]

Cells = tuple[Blocks, dict[str, Index], Polyhedra | None]
"""Elements by type, their numbers by type, and polyhedra, whose numbers are those of ``"polyhedron"``."""

_SHAPES: Mapping[tuple[int, int], str] = MappingProxyType(
    {(4, 0): "tetra", (4, 1): "pyramid", (2, 3): "prism", (0, 6): "hexahedron"}
)
"""Number of triangles and of quads to the element that has them."""


def polyhedra(node: Node, section: Section, sections: list[Section]) -> Cells:
    """Return the cells of a section of polyhedra.

    Parameters
    ----------
    node, section
        The section.
    sections
        All sections of the zone; those of polygons hold the faces.

    Returns
    -------
    blocks, numbers
        Element type to nodes ``(m, k)`` and to the numbers of the elements; of ``"polyhedron"`` the latter alone.
    others
        The cells that are none of the four elements.

    Raises
    ------
    MeshError
        For faces that do not exist.
    """
    if section.kind != NFACE:
        raise ValueError("a section of polyhedra is wanted")
    offsets, signed = ragged(node, section.stop - section.start)
    faces, widths = _faces(node, sections, np.abs(signed))
    rows = np.repeat(np.arange(offsets.size - 1), np.diff(offsets))
    sizes = [np.bincount(rows, widths == k, minlength=offsets.size - 1).astype(np.int64) for k in (3, 4)]
    left = np.ones(offsets.size - 1, dtype=bool)
    blocks: Blocks = {}
    numbers: dict[str, Index] = {}
    for counts, name in _SHAPES.items():
        chosen = np.flatnonzero((sizes[0] == counts[0]) & (sizes[1] == counts[1]) & (np.diff(offsets) == sum(counts)))
        if not chosen.size:
            continue
        places = offsets[chosen][:, None] + np.arange(sum(counts))
        order = np.argsort(widths[places], axis=1, kind="stable")
        places = np.take_along_axis(places, order if name != "pyramid" else order[:, ::-1], axis=1)
        four = faces[places][..., :4]
        cells, sound = _assemble(name, np.where((signed[places] > 0)[:, :, None], four, _reversed(four)))
        if sound.any():
            blocks[name], numbers[name] = narrowed(cells[sound]), section.start + chosen[sound]
            left[chosen[sound]] = False
    if not left.any():
        return blocks, numbers, None
    kept = left[rows]
    loops = turned_rows(Ragged.from_padded(narrowed(faces[kept])), signed[kept] < 0)
    bounds = np.concatenate([[0], np.cumsum(np.diff(offsets)[left])]).astype(np.int64)
    numbers["polyhedron"] = section.start + np.flatnonzero(left)
    return blocks, numbers, Polyhedra(bounds, loops)


def _faces(node: Node, sections: list[Section], wanted: Index) -> tuple[Index, Index]:
    """Return the nodes of faces ``(n, 4 or more)``, padded with -1, and how many they are."""
    known = [item for item in sections if item.kind == NGON or (item.kind != NFACE and item.dimension == 2)]
    width = max((block.shape[1] for section in known for block in section.blocks.values()), default=4)
    nodes = np.full((wanted.size, max(width, 4)), -1, dtype=np.int64)
    for _, hit, rows in find(known, wanted):
        nodes[hit, : rows.shape[1]] = rows
    widths = (nodes >= 0).sum(axis=1)
    if (widths < 3).any():
        face = int(wanted[np.flatnonzero(widths < 3)[0]])
        raise MeshError(f"{node.where}: the face {face} of a cell is no triangle, quad or polygon of any section")
    return nodes, widths


def _reversed(faces: Index) -> Index:
    """Return faces ``(..., 4)`` turned round; the padding of triangles stays at the end."""
    triangle = faces[..., 3:] < 0
    return np.where(triangle, faces[..., [0, 2, 1, 3]], faces[..., [0, 3, 2, 1]])


def _assemble(name: str, outward: Index) -> tuple[Index, npt.NDArray[np.bool_]]:
    """Return the nodes of cells from their faces ``(m, f, 4)``, the base first, and which are such elements.

    The base of an element turns anticlockwise seen from the others, that is, against its outward face. Above each of
    its nodes is that other node to which an edge leads.
    """
    width = 3 if name in ("tetra", "prism") else 4
    base = _reversed(outward[:, 0])[:, :width]
    top = np.full_like(base, -1)
    for face in range(1, outward.shape[1]):
        for corner in range(4):
            start = outward[:, face, corner]
            after = outward[:, face, (corner + 1) % 4]
            before = outward[:, face, corner - 1]
            last = after < 0
            after = np.where(last, outward[:, face, 0], after)
            before = np.where(before < 0, outward[:, face, 2], before)
            for end in (after, before):
                leads = (end >= 0) & ~(base == end[:, None]).any(axis=1)
                hit = (base == start[:, None]) & leads[:, None]
                top = np.where(hit, end[:, None], top)
    upper = top if name in ("prism", "hexahedron") else top[:, :1]
    cells = np.concatenate([base, upper], axis=1)
    places = np.array([face if len(face) == 4 else (*face, -1) for face in element(name).faces])
    wanted = np.where(places < 0, -1, cells[:, places])
    same = np.sort(_loops(outward), axis=1) == np.sort(_loops(wanted), axis=1)
    ordered = np.sort(cells, axis=1)
    bad = (cells < 0).any(axis=1) | (ordered[:, 1:] == ordered[:, :-1]).any(axis=1) | ~same.all(axis=1)
    return cells, ~bad


def _loops(faces: Index) -> npt.NDArray[np.uint64]:
    """Return a number per face ``(..., 4)`` for its loop of nodes, wherever it begins and whichever way it goes."""
    even, odd = np.sort(faces[..., [0, 2]]), np.sort(faces[..., [1, 3]])  # what lies across in a quad
    swap = odd[..., :1] < even[..., :1]
    quad = np.concatenate([np.where(swap, odd, even), np.where(swap, even, odd)], axis=-1)
    return mixed_rows(np.where(faces[..., 3:] < 0, np.sort(faces), quad))
