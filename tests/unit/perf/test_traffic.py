"""Bytes of sparse products, counted by hand and by brute force."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import fluxloom_lab.studies.traffic as traffic
from fluxloom.core.errors import FluxloomError
from fluxloom_lab.studies.traffic import LINE_BYTES, Traffic, distinct_lines, product_traffic

# Three rows: columns {0, 16}, none, {0, 15, 16}.
OFFSETS, INDICES = np.array([0, 2, 2, 5]), np.array([0, 16, 0, 15, 16])


def test_by_hand() -> None:
    found = product_traffic(OFFSETS, INDICES, 17, block=3)
    assert found.flops == 10
    assert found.effective == 5 * (8 + 8 + 4) + 3 * (8 + 4)
    assert found.minimum == 5 * (8 + 4) + 3 * (8 + 4) + 17 * 8
    assert found.worst == 128 * (3 * 5 + 2 * 3)
    # values, columns, offsets, y: a line each; x: columns 0 to 15 and 16 are in two lines of 16 values
    assert found.caching == 128 * (4 + 2)


def test_row_by_row() -> None:
    """Nothing is shared: full rows touch 4 lines and two of x; the empty one only its offsets and y."""
    assert product_traffic(OFFSETS, INDICES, 17, block=1).caching == 128 * (6 + 2 + 6)
    assert product_traffic(OFFSETS, INDICES, 17, block=np.array([0, 1, 2, 3])).caching == 128 * 14
    assert product_traffic(OFFSETS, INDICES, 17, block=np.array([0, 2, 3])).caching == 128 * (6 + 6)


def test_formulas_of_the_source() -> None:
    """Square matrix in single precision: worst is 32 times effective, minimum is nnz (v + 4) + rows (2 v + 4)."""
    found = product_traffic(OFFSETS, INDICES, value_bytes=4)
    assert found.worst == 32 * found.effective
    assert found.effective == 5 * (2 * 4 + 4) + 3 * (4 + 4)
    assert found.minimum == 5 * (4 + 4) + 3 * (2 * 4 + 4)


def test_values_in_single_precision_share_longer_lines() -> None:
    assert distinct_lines(OFFSETS, INDICES, np.array([0, 3]), 32).tolist() == [1]
    assert distinct_lines(OFFSETS, INDICES, np.array([0, 3]), 16).tolist() == [2]
    assert distinct_lines(OFFSETS, INDICES, np.array([0, 1, 2, 3]), 16).tolist() == [2, 0, 2]


def brute_force(offsets: np.ndarray, indices: np.ndarray, bounds: np.ndarray, value: int) -> int:
    """Count the lines of every access, one by one."""
    total = 0
    for low, high in pairwise(bounds):
        entries = range(offsets[low], offsets[high])
        touched = {("a", k * value // 128) for k in entries} | {("j", k * 4 // 128) for k in entries}
        touched |= {("x", int(indices[k]) * value // 128) for k in entries}
        touched |= {("p", r * 4 // 128) for r in range(low, high + 1)}
        touched |= {("y", r * value // 128) for r in range(low, high)}
        total += len(touched)
    return LINE_BYTES * total


@pytest.mark.parametrize("value", [4, 8])
@pytest.mark.parametrize("block", [1, 7, 32, 1000])
@pytest.mark.parametrize("chunk", [1, 50, 1 << 22])
def test_against_brute_force(value: int, block: int, chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(traffic, "_CHUNK", chunk)
    rng = np.random.default_rng(3)
    lengths = rng.integers(0, 12, 300)
    lengths[40] = 200
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    indices = rng.integers(0, 2000, offsets[-1]).astype(np.int32)
    found = product_traffic(offsets, indices, 2000, value_bytes=value, block=block)
    assert found.caching == brute_force(offsets, indices, traffic.block_bounds(block, 300), value)


def test_one_block_with_an_infinite_cache_moves_little_more_than_the_minimum() -> None:
    n = 4096
    offsets, indices = np.arange(0, 3 * n + 1, 3), (np.arange(3 * n) // 3 + np.tile([0, 5, 9], n)) % n
    found = product_traffic(offsets, indices, block=n)
    assert 0 <= found.caching - found.minimum <= 5 * LINE_BYTES
    assert found.minimum < found.effective < found.worst


def test_nothing() -> None:
    empty = product_traffic(np.zeros(1, dtype=int), np.zeros(0, dtype=int))
    assert empty == Traffic(0, 0, 0, 0, 0)
    assert product_traffic(np.zeros(5, dtype=int), np.zeros(0, dtype=int)).flops == 0


def test_rates() -> None:
    found = Traffic(flops=2, effective=4, minimum=3, worst=50, caching=6)
    assert found.gbs(1e-9) == pytest.approx({"effective": 4.0, "minimum": 3.0, "worst": 50.0, "caching": 6.0})
    assert found.gflops(1e-9) == pytest.approx(2.0)
    assert found.gflops(0.0) == 0.0
    assert set(found.gbs(0.0).values()) == {0.0}


@pytest.mark.parametrize("block", [0, np.array([0, 2]), np.array([1, 3]), np.array([0, 2, 2, 3]), np.array([])])
def test_blocks_that_do_not_cover_the_rows(block: int | np.ndarray) -> None:
    with pytest.raises(FluxloomError, match="block"):
        product_traffic(OFFSETS, INDICES, block=block)
