"""Where the entries of rows in chunks lie."""

from __future__ import annotations

import numpy as np
import pytest

from fluxloom.core.errors import DatError
from fluxloom.dsl.declare.ragged import CSR, RaggedStore, SlicedELL
from fluxloom_lab.formats.row_grouped import RowGroupedCSR
from fluxloom_lab.problems.matrices import power_law


def store(lengths: list[int] | np.ndarray, layout: RowGroupedCSR | SlicedELL | CSR) -> RaggedStore:
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return RaggedStore(offsets, np.arange(offsets[-1], dtype=np.int32), layout)


def test_first_entries_of_all_chunks_come_first() -> None:
    found = store([2, 1, 3, 4, 0, 1], RowGroupedCSR(3, 2))
    assert found.position is not None
    assert np.split(found.position, np.cumsum(found.length)[:-1])[0].tolist() == [0, 4]  # chunks 0 | 1 | 2 3
    assert found.position.tolist() == [0, 4, 1, 2, 6, 3, 8, 11, 9, 12, 10]
    assert found.start.tolist() == [0, 1, 2, 8, 10, 10]
    assert found.table[:, 1:].tolist() == [[2, 4], [2, 3]]
    assert found.places == 14
    assert (found.slice, found.column_major) == (1, False)


@pytest.mark.parametrize("layout", [RowGroupedCSR(), RowGroupedCSR(7, 3), RowGroupedCSR(1, 5), RowGroupedCSR(64, 1)])
@pytest.mark.parametrize("seed", range(3))
def test_places(layout: RowGroupedCSR, seed: int) -> None:
    lengths = np.diff(power_law(3000, seed).indptr)
    lengths = lengths * np.random.default_rng(seed).integers(0, 2, lengths.size)
    found = store(lengths, layout)
    assert found.position is not None
    assert np.unique(found.position).size == found.entries <= found.places
    assert found.position.max() < found.places
    row = np.repeat(np.arange(lengths.size), lengths)
    j = np.arange(found.entries) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    inverse, size, number = found.table[row // layout.group].T
    assert np.array_equal((j * inverse) >> 32, j // size)  # how generated code divides
    assert np.array_equal(found.position, found.start[row] + j // size + j % size * number)
    size_of = found.table[np.arange(lengths.size) // layout.group, 1]
    assert found.places == (-(-lengths // size_of) * size_of).sum()


def test_limits() -> None:
    """Chunks of one entry are compressed rows; chunks of whole rows are slices by columns."""
    lengths = np.random.default_rng(0).integers(0, 9, 100)
    ones = store(lengths, RowGroupedCSR(32, 1))
    assert ones.position is not None
    assert np.array_equal(ones.position, np.arange(lengths.sum()))
    equal = np.full(96, 5)
    whole, sliced = store(equal, RowGroupedCSR(32, 5)), store(equal, SlicedELL(32))
    assert whole.position is not None
    assert sliced.position is not None
    assert np.array_equal(whole.position, sliced.position)
    assert whole.lanes == 1


def test_chosen_chunks() -> None:
    """Rows of a mesh are one chunk each; a long row among them has many, and pads no other."""
    mesh = store(np.full(1 << 18, 5), RowGroupedCSR())
    assert mesh.lanes == 1
    assert (mesh.table[:, 1] == 5).all()
    assert mesh.places == mesh.entries
    lengths = np.full(1 << 18, 5)
    lengths[77] = 5000
    odd = store(lengths, RowGroupedCSR())
    assert odd.places == odd.entries
    sliced = store(lengths, SlicedELL(32))
    assert sliced.places - sliced.entries == 31 * 4995
    assert store(np.full(1000, 64), RowGroupedCSR()).lanes == 32


def test_empty() -> None:
    assert store([], RowGroupedCSR()).places == 0
    nothing = store([0, 0, 0], RowGroupedCSR(2))
    assert (nothing.places, nothing.lanes, nothing.start.tolist()) == (0, 0, [0, 0, 0])


def test_errors() -> None:
    with pytest.raises(DatError, match="at least one row"):
        RowGroupedCSR(0)
    with pytest.raises(DatError, match="at least one entry"):
        RowGroupedCSR(4, -1)
    with pytest.raises(DatError, match="use short chunks"):
        store([100_000], RowGroupedCSR(1, 1 << 20))
