"""Row-grouped CSR: rows cut into chunks, the chunks of a group of rows interleaved, one work item a chunk.

In no record it was the fastest format (design/044). It is that of a published system, and an example of a format that
touches no file of the package.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fluxloom.codegen.language.spec import RowCode
from fluxloom.core.errors import DatError
from fluxloom.dsl.declare.ragged import Offsets, Placement, RaggedLayout
from fluxloom.perf.ragged import measured_rule

__all__ = ["RowGroupedCSR"]

_ENTRY_BYTES = 12
"""Bytes of an entry that the automatic chunk assumes: a double and its column."""

_USUAL = 2.0
"""Rows longer than so many times the mean of their group have more chunks, not longer ones."""

_MOST_LANES = 32

_FUNCTIONS = """/* Place of entry j of a row in chunks; inverse = ceil(2^32 / chunk), exact while j * chunk < 2^32. */
AI int64_t fl_in_chunks(int64_t start, int64_t j, int64_t inverse, int64_t chunk, int64_t stride) {
    const int64_t q = (j * inverse) >> 32;
    return start + q + (j - q * chunk) * stride;
}
"""


@dataclass(frozen=True)
class RowGroupedCSR(RaggedLayout):
    """Rows cut into chunks, the chunks of a group of rows interleaved: one work item a chunk.

    The chunks of ``group`` neighbouring rows lie side by side: the first entry of each, then the second of each and
    so on. Every row is padded to whole chunks of its group; what a row adds up to is the sum of its chunks. Entry
    ``j`` of row ``r`` in a group of ``N`` chunks of ``C`` entries is at ``start(r) + j // C + (j % C) N``. A chunk of
    one entry makes it `fluxloom.CSR`, one as long as the longest row `fluxloom.SlicedELL` by columns.

    Parameters
    ----------
    group
        Rows a group.
    chunk
        Entries a chunk; 0: chosen for each group, such that its usual rows (those up to twice the mean) have as many
        chunks as work items share a row of the map by `fluxloom.perf.ragged.measured_rule`, and longer rows more.

    Notes
    -----
    Source: T. Oberhuber, A. Suzuki, J. Vacata, "New row-grouped CSR format for storing the sparse matrices on GPU
    with implementation in CUDA", Acta Technica 56 (2011), with adaptive chunks by M. Heller, T. Oberhuber (2012).
    """

    group: int = 32
    chunk: int = 0

    def __post_init__(self) -> None:
        if self.group < 1 or self.chunk < 0:
            raise DatError(f"{self}: a group has at least one row, a chunk at least one entry (0: chosen)")

    def code(self) -> RowCode:
        """Return how entries are found: the table has ``ceil(2**32 / C)``, ``C`` and ``N`` of each group."""
        group = f"{{table}}[{{element}} / {self.group} * 3"
        return RowCode(
            place="fl_in_chunks({row}_start, {entry}, {row}_inverse, {row}_chunk, {row}_stride)",
            stride=f"{group} + 2]",
            declarations=(
                f"const int64_t {{row}}_inverse = {group}];", f"const int {{row}}_chunk = (int){group} + 1];",
            ),
            dealt="{row}_chunk",
            functions=_FUNCTIONS,
        )  # fmt: skip

    def place(self, offsets: Offsets) -> Placement:
        """Return the place of each entry of rows in chunks."""
        length = np.diff(offsets)
        group = np.arange(length.size) // self.group
        size = self._chunk_sizes(group, length)
        per_row = -(-length // size[group])
        number = np.bincount(group, per_row, size.size).astype(np.int64)
        if length.size and int((length * size[group]).max()) >= 2**32:
            raise DatError(f"{self}: chunks of {size.max()} entries, a row of {length.max()}: use short chunks")
        bounds = np.concatenate([[0], np.cumsum(number * size)])
        before = np.concatenate([[0], np.cumsum(per_row)])
        first = before[np.arange(size.size) * self.group]  # chunks before the group
        start = bounds[group] + before[:-1] - first[group]
        rows = np.repeat(np.arange(length.size), length)
        chunk, deep = np.divmod(np.arange(offsets[-1]) - offsets[:-1][rows], size[group[rows]])
        return Placement(
            start, int(bounds[-1]), start[rows] + chunk + deep * number[group[rows]],
            table=np.stack([-(-(2**32) // size), size, number], axis=1), lanes=_usual_chunks(per_row),
        )  # fmt: skip

    def _chunk_sizes(self, group: npt.NDArray[np.int64], length: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the entries of a chunk of each group."""
        rows = length.size
        groups = -(-rows // self.group) if rows else 0
        if self.chunk:
            return np.full(groups, self.chunk, dtype=np.int64)
        share = measured_rule(rows, int(length.sum()), _ENTRY_BYTES).lanes
        filled = np.maximum(1, np.bincount(group[length > 0], minlength=groups))
        mean = np.bincount(group, length, groups) / filled
        usual = np.where(length <= _USUAL * mean[group], length, 0)
        longest = np.zeros(groups, dtype=np.int64)
        np.maximum.at(longest, group, usual)
        return np.maximum(1, -(-longest // share))


def _usual_chunks(per_row: npt.NDArray[np.int64]) -> int:
    """Return the chunks of a usual row as a power of two."""
    if not per_row.any():
        return 0
    return min(_MOST_LANES, 1 << max(0, round(float(np.log2(per_row[per_row > 0].mean())))))
