"""How a group of work items is laid over lines: lines side by side, chunks of a line, rows of a chunk."""

from __future__ import annotations

from dataclasses import dataclass

from fluxloom.linalg.direct.tridiagonal.form import Form, Lines
from fluxloom.linalg.direct.tridiagonal.kernels_text import up_to_power

__all__ = ["Shape", "shapes"]

_SECTORS = (64, 32)
"""Bytes of neighbours that are fetched together: the first is wished for, the last is what memory moves at once."""

_GROUP, _LARGEST = 128, 512
"""Work items of a group: wanted at least, and allowed at most."""

_KEPT = ((64, 256), (128, 256), (96, 512), (128, 512), (160, 512))
_KEPT_STAGED = ((32, 512), (64, 512), (96, 512), (160, 256))
"""Registers of 4 bytes that the rows of an item may fill, and up to which size of a group: the best first, as measured
on an H200. Values that change places in the memory of a group want more items with fewer rows."""


@dataclass(frozen=True)
class Shape:
    """What a group of work items holds.

    Attributes
    ----------
    chunks
        Chunks of a line, a power of two: an item each.
    chunk
        Rows of a chunk at most; every chunk has as many, or one less.
    lanes
        Lines.
    staged
        Whether neighbouring values are of one line, and change places in the memory of the group.
    """

    chunks: int
    chunk: int
    lanes: int
    staged: bool

    @property
    def block(self) -> int:
        """Work items of the group."""
        return self.chunks * self.lanes


def shapes(form: Form, lines: Lines, chunk: int = 0, lanes: int = 0) -> list[Shape]:
    """Return the shapes in which lines fit on a chip, the best first.

    Parameters
    ----------
    chunk, lanes
        Rows of a chunk at most, and lines of a group, when they are given.
    """
    words = (3 if form.coefficients == "each" else 2) + form.rhs
    unit = form.size * (form.rhs if lines.rhs_step == 1 else 1)
    staged = not lines.interleaved
    found = []
    kept = _KEPT_STAGED if staged else _KEPT
    for sectors in (1,) if staged else _SECTORS:
        for registers, largest in ((512, _LARGEST),) if chunk else kept:
            rows = chunk or max(1, registers * 4 // (words * form.size))
            chunks = _chunks(lines.rows, rows)
            side = lanes or max(1, sectors // unit, _GROUP // chunks)
            side = min(side, up_to_power(lines.systems))
            shape = Shape(chunks, -(-lines.rows // chunks), side, staged)
            if chunks <= lines.rows and shape.block <= largest:
                found.append(shape)
    return found


def _chunks(rows: int, chunk: int) -> int:
    """Return the smallest power of two of chunks that have at most so many rows."""
    return min(up_to_power(-(-rows // chunk)), up_to_power(rows + 1) // 2)
