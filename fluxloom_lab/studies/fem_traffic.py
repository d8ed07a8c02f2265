"""What products of global and of local matrices move: the words of the study, and those that the loops count."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from fluxloom.dsl.declare.dats import Dat
from fluxloom.dsl.declare.maps import EntriesMap, Map, RaggedMap, TableMap
from fluxloom.dsl.declare.ragged import CSR, RaggedStore
from fluxloom.dsl.run.loop import Loop

__all__ = ["PUBLISHED", "accessed_bytes", "modelled_ratio", "traffic_rows"]

PUBLISHED: Mapping[tuple[str, str], tuple[float, ...]] = MappingProxyType({
    ("ell", "float32"): (1.0, 1.81, 2.25, 2.49),
    ("csr", "float32"): (1.04, 1.85, 2.28, 2.51),
    ("ell", "float64"): (0.90, 1.58, 1.93, 2.12),
    ("csr", "float64"): (0.92, 1.60, 1.95, 2.13),
})  # fmt: skip
"""Bytes of a product with a global matrix over those with local ones, quads of order 1 to 4: table 3.1 there."""

_INDEX = 4


def modelled_ratio(order: int, form: str, width: int) -> float:
    r"""Return the ratio of the study, ``T_GMA / T_LMA``, quads of one order on a mesh without end.

    .. math:: T_{LMA} = n^2 + 3 n, \quad T_{GMA} = \sum (3 L + 1) N \;(+ \sum N)

    words a cell, ``n = (p + 1)^2``: local matrices, two vectors and a map; value, column and vector for each of the
    ``L`` entries in the rows of ``N`` vertices, inner points of edges and of the cell, the result, and for CSR the
    start of a row.

    Parameters
    ----------
    order
        ``p``.
    form
        ``"csr"`` or ``"ell"``.
    width
        Bytes of a value; indices have four.

    Notes
    -----
    Source: I. Z. Reguly, PhD thesis, Pazmany Peter Catholic University 2014, sections 3.3 and 4.4.
    """
    n, rows, entries = (order + 1) ** 2, 0, 0
    long, short, inner = 2 * order + 1, order + 1, order - 1
    for count, length in ((1, long * long), (2 * inner, long * short), (inner**2, short * short)):
        rows, entries = rows + count, entries + count * length
    local = n * n * width + n * (2 * width + _INDEX)
    return (entries * (2 * width + _INDEX) + rows * (width + (_INDEX if form == "csr" else 0))) / local


def accessed_bytes(loops: Sequence[Loop], width: int) -> int:
    """Return the bytes of all accesses of some loops: nothing is found in a cache, an increment counts once.

    Parameters
    ----------
    loops
        Whose arguments are counted.
    width
        Bytes of a real value.
    """
    total = 0
    for loop in loops:
        maps: dict[int, int] = {}
        for argument in loop.bound.arguments:
            if not isinstance(argument.data, Dat):
                continue
            dat = argument.data
            size = width if dat.scalar.floating else dat.scalar.size
            total += _elements(loop, argument.map) * dat.dim * size
            maps[id(argument.map)] = _map_bytes(loop, argument.map)
        total += sum(maps.values())
    return total


def _elements(loop: Loop, through: Map | None) -> int:
    if isinstance(through, TableMap):
        return loop.over.size * through.legs
    if isinstance(through, RaggedMap | EntriesMap):
        return int((through if isinstance(through, RaggedMap) else through.ragged).indices.size)
    return loop.over.size


def _map_bytes(loop: Loop, through: Map | None) -> int:
    if isinstance(through, TableMap):
        return loop.over.size * through.legs * _INDEX
    return through.indices.size * _INDEX + _row_bytes(through.store) if isinstance(through, RaggedMap) else 0


def _row_bytes(store: RaggedStore) -> int:
    """Return the bytes that say where rows are and end: of CSR the starts, else the lengths."""
    if isinstance(store.layout, CSR):
        return store.start.nbytes
    return store.rows if store.short else store.length.nbytes


def traffic_rows(order: int, products: Mapping[str, Sequence[Loop]]) -> list[dict[str, Any]]:
    """Return the ratios of global over local matrices of one order, in both formats and precisions of the study.

    Parameters
    ----------
    order
        Of the elements.
    products
        The loops of a product by format; needs ``"local"``.
    """
    rows: list[dict[str, Any]] = []
    for (form, precision), published in PUBLISHED.items():
        if form not in products or "local" not in products:
            continue
        width = 4 if precision == "float32" else 8
        whole, cells = products["local"], products["local"][-1:]
        own = accessed_bytes(products[form], width)
        rows.append({
            "order": order, "format": form, "precision": precision, "published": published[order - 1],
            "modelled": modelled_ratio(order, form, width),
            "counted_without_identity": own / accessed_bytes(cells, width),
            "counted": own / accessed_bytes(whole, width),
        })  # fmt: skip
    return rows
