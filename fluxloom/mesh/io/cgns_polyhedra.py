"""Cells given by their faces (``NFACE_n`` over ``NGON_n``), as tetrahedra, pyramids, prisms and hexahedra."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from fluxloom.core.errors import MeshError
from fluxloom.mesh.io.cgns_sections import NFACE, NGON, Section, ragged
from fluxloom.mesh.io.cgns_tree import Node
from fluxloom.mesh.io.cgns_zone import Blocks, Index

__all__ = ["polyhedra"]

_SHAPES: Mapping[tuple[int, int], str] = MappingProxyType(
    {(4, 0): "tetra", (4, 1): "pyramid", (2, 3): "prism", (0, 6): "hexahedron"}
)
"""Number of triangles and of quads to the element that has them."""


def polyhedra(node: Node, section: Section, sections: list[Section]) -> tuple[Blocks, Blocks]:
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
        Element type to nodes ``(m, k)`` and to the numbers of the elements.

    Raises
    ------
    MeshError
        For a cell that is none of the four elements, and for faces that do not exist.
    """
    if section.kind != NFACE:
        raise ValueError("a section of polyhedra is wanted")
    offsets, signed = ragged(node, section.stop - section.start)
    faces, widths = _faces(node, sections, np.abs(signed))
    rows = np.repeat(np.arange(offsets.size - 1), np.diff(offsets))
    triangles = np.bincount(rows, widths == 3, minlength=offsets.size - 1).astype(np.int64)
    quads = np.diff(offsets) - triangles
    blocks: Blocks = {}
    numbers: Blocks = {}
    for counts in np.unique(np.stack([triangles, quads], axis=1), axis=0).tolist():
        chosen = np.flatnonzero((triangles == counts[0]) & (quads == counts[1]))
        name = _SHAPES.get((counts[0], counts[1]))
        if name is None:
            raise MeshError(
                f"{node.where}: cell {section.start + int(chosen[0])} has {counts[0]} triangles and {counts[1]} quads "
                f"({chosen.size} such cells); only {', '.join(_SHAPES.values())} are supported"
            )
        places = offsets[chosen][:, None] + np.arange(sum(counts))
        order = np.argsort(widths[places], axis=1, kind="stable")
        places = np.take_along_axis(places, order if name != "pyramid" else order[:, ::-1], axis=1)
        outward = np.where((signed[places] > 0)[:, :, None], faces[places], _reversed(faces[places]))
        blocks[name] = _assemble(node, name, outward, section.start + chosen)
        numbers[name] = section.start + chosen
    return blocks, numbers


def _faces(node: Node, sections: list[Section], wanted: Index) -> tuple[Index, Index]:
    """Return the nodes of faces ``(n, 4)``, padded with -1, and how many they are."""
    nodes = np.full((wanted.size, 4), -1, dtype=np.int64)
    for section in sections:
        if section.kind == NFACE or (section.kind != NGON and section.dimension != 2):
            continue
        for name, numbers in section.numbers.items():
            spot = np.minimum(np.searchsorted(numbers, wanted), numbers.size - 1)
            hit = numbers[spot] == wanted
            block = section.blocks[name]
            nodes[hit, : block.shape[1]] = block[spot[hit]]
    widths = (nodes >= 0).sum(axis=1)
    if (widths < 3).any():
        face = int(wanted[np.flatnonzero(widths < 3)[0]])
        raise MeshError(f"{node.where}: the face {face} of a cell is no triangle or quad of any section")
    return nodes, widths


def _reversed(faces: Index) -> Index:
    """Return faces ``(..., 4)`` turned round; the padding of triangles stays at the end."""
    triangle = faces[..., 3:] < 0
    return np.where(triangle, faces[..., [0, 2, 1, 3]], faces[..., [0, 3, 2, 1]])


def _assemble(node: Node, name: str, outward: Index, numbers: Index) -> Index:
    """Return the nodes of cells from their faces ``(m, f, 4)``, the base first.

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
    ordered = np.sort(cells, axis=1)
    members = (outward[:, :, :, None] == cells[:, None, None, :]).any(axis=3) | (outward < 0)
    bad = (cells < 0).any(axis=1) | (ordered[:, 1:] == ordered[:, :-1]).any(axis=1) | ~members.all(axis=(1, 2))
    if bad.any():
        raise MeshError(f"{node.where}: the faces of cell {int(numbers[np.flatnonzero(bad)[0]])} do not make a {name}")
    return cells
