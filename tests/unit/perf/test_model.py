"""The roofline."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fluxloom.core.errors import FluxloomError
from fluxloom.perf.model import Roofline


def test_memory_bound() -> None:
    roof = Roofline(copy_gbs=100.0)
    assert roof.seconds(2e9) == pytest.approx(0.02)
    assert roof.seconds(2e9, flops=1e15) == pytest.approx(0.02)
    assert roof.percent_of_copy(2e9, 0.04) == pytest.approx(50.0)
    assert roof.percent_of_copy(2e9, 0.0) == 0.0


def test_arithmetic_bound() -> None:
    roof = Roofline(copy_gbs=100.0, gflops=500.0)
    assert roof.balance == pytest.approx(5.0)
    assert roof.seconds(1e9, flops=1e10) == pytest.approx(0.02)
    assert roof.percent_of_roof(1e9, 1e10, 0.025) == pytest.approx(80.0)


def test_laplacian_of_the_thesis() -> None:
    """9 operations and 76 bytes a row: 16.8 Gflop/s at 141.6 GB/s (TermoFluids thesis, chapter 2)."""
    roof = Roofline(copy_gbs=141.6)
    assert 9e-9 / roof.seconds(76) == pytest.approx(16.8, rel=5e-3)


def test_two_ceilings_of_memory() -> None:
    """What was measured is met, whichever of the ceilings is the higher one: a copy, and a sum."""
    for read in (30.0, 50.0, 60.0):
        roof = Roofline(copy_gbs=50.0, read_gbs=read)
        assert roof.seconds(50e9, read=25e9) == pytest.approx(1.0)
        assert roof.seconds(1e9 * read, read=1e9 * read) == pytest.approx(1.0)


def test_cores_that_cannot_read_faster() -> None:
    """64 of 76 bytes of a product are reads: 64 / 30 rather than 76 / 50."""
    roof = Roofline(copy_gbs=50.0, read_gbs=30.0)
    assert roof.seconds(76e9, read=68e9) == pytest.approx(68 / 30)
    assert roof.seconds(24e9, read=12.5e9) == pytest.approx(24 / 50)
    assert roof.percent_of_roof(76e9, 0.0, 68 / 27, read=68e9) == pytest.approx(90.0)


def test_memory_that_reads_faster_than_it_copies() -> None:
    """What is only read goes at the speed of a sum, so that a scalar product is not above its bound."""
    roof = Roofline(copy_gbs=40.0, read_gbs=50.0)
    assert roof.seconds(16e9, read=16e9) == pytest.approx(16 / 50)
    assert roof.seconds(24e9, read=16e9) == pytest.approx(16 / 40 + 8 / 50)


def test_bound_of_reading_is_never_below_a_copy() -> None:
    """A copy reads too: a sum that was measured slower than that has been disturbed."""
    roof = Roofline(copy_gbs=50.0, read_gbs=10.0)
    assert roof.reading_gbs == 25.0
    assert roof.seconds(50e9, read=25e9) == pytest.approx(1.0)


@given(st.floats(1, 100), st.floats(1, 100), st.floats(0, 1e9), st.floats(0, 1e9))
def test_bound_is_below_a_copy_and_a_sum(copy: float, read: float, reads: float, writes: float) -> None:
    """Copying what is written and summing the rest does the work, in the time of both: no bound is above it."""
    roof = Roofline(copy_gbs=copy, read_gbs=read)
    both, rest = min(reads, writes), max(reads - writes, 0.0)
    found = roof.seconds(reads + writes, read=reads)
    done = (2 * both + max(writes - reads, 0.0)) / (1e9 * copy) + rest / (1e9 * roof.reading_gbs)
    assert found <= done * (1 + 1e-12)
    assert found <= max((reads + writes) / (1e9 * copy), reads / (1e9 * roof.reading_gbs)) * (1 + 1e-12)


def test_updates_in_place() -> None:
    """Within caches ``y = a x + y`` can be faster than a copy, so that the bound is that of the update."""
    roof = Roofline(copy_gbs=30.0, read_gbs=30.0, update_gbs=40.0)
    assert roof.seconds(24e9, read=16e9) == pytest.approx(24 / 40)
    assert roof.percent_of_copy(24e9, 0.8) == pytest.approx(100.0)
    assert Roofline(copy_gbs=30.0, read_gbs=30.0, update_gbs=20.0).seconds(24e9, read=12e9) == pytest.approx(24 / 30)


def test_no_measured_reading_is_as_before() -> None:
    roof = Roofline(copy_gbs=50.0)
    assert roof.seconds(76e9, read=68e9) == pytest.approx(76 / 50)
    with pytest.raises(FluxloomError, match="count both anew"):
        roof.seconds(1.0, read=2.0)


def test_ceilings_must_be_positive() -> None:
    for wrong in ({"copy_gbs": 0.0}, {"copy_gbs": 1.0, "read_gbs": 0.0}, {"copy_gbs": 1.0, "gflops": float("nan")}):
        with pytest.raises(FluxloomError, match="must be positive"):
            Roofline(**wrong)
