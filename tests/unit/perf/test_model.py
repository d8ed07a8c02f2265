"""The roofline."""

from __future__ import annotations

import pytest

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


def test_ceilings_must_be_positive() -> None:
    with pytest.raises(FluxloomError, match="must be positive"):
        Roofline(copy_gbs=0.0)
