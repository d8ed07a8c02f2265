"""The time of a step from the times of its kernels."""

from __future__ import annotations

import pytest

from fluxloom.core.errors import FluxloomError
from fluxloom.perf.model import Roofline
from fluxloom_lab.bench.flows.les_model import (
    KernelTimes,
    Part,
    gflops_per_joule,
    hidden_share,
    kernel_bounds,
    mean_times,
    predict,
    spmv_bytes,
    spmv_read_bytes,
    total,
)


def test_published_counts() -> None:
    assert predict(KernelTimes(1.0, 0.0, 0.0), 37) == 30 + 37 * 2
    assert predict(KernelTimes(0.0, 1.0, 0.0), 37) == 10 + 37 * 3
    assert predict(KernelTimes(0.0, 0.0, 1.0), 37) == 2 + 37 * 2


def test_published_bytes() -> None:
    """Five entries a row: 60 bytes of matrix and 16 of vectors, 9 flops; 16.8 GFLOPS at 141.6 GB/s."""
    assert spmv_bytes(1, 1, 5) == 76
    bounds = kernel_bounds(Roofline(141.6), 1000, 5000)
    assert 1e-9 * 9000 / bounds.spmv == pytest.approx(16.8, rel=5e-3)
    assert bounds.spmv / bounds.axpy == pytest.approx(76 / 24)
    assert bounds.axpy / bounds.dot == pytest.approx(1.5)


def test_bound_of_reading() -> None:
    """68 of 76 bytes of a product are read, two of three of AXPY, all of DOT."""
    assert spmv_read_bytes(1, 1, 5) == 68
    bounds = kernel_bounds(Roofline(50.0, read_gbs=30.0), 1000, 5000)
    assert bounds.spmv == pytest.approx(68e-6 / 30)
    assert bounds.axpy == pytest.approx(16e-6 / 30)
    assert bounds.dot == pytest.approx(16e-6 / 30)


def test_means_of_all_matrices() -> None:
    """Weighted by calls; pointwise passes are added to the formula, and are in no mean."""
    parts = [Part("a", "spmv", 3, 2.0, 8), Part("b", "spmv", 1, 6.0, 8), Part("c", "axpy", 2, 0.5, 8)]
    parts += [Part("d", "dot", 4, 0.25, 8), Part("e", "extra", 2, 7.0, 8)]
    times = mean_times(parts)
    assert times == KernelTimes(3.0, 0.5, 0.25)
    assert predict(times, 37, total(parts, "extra")) == predict(times, 37) + 14.0
    with pytest.raises(FluxloomError, match="a mean needs some of each"):
        mean_times(parts[:3])
    with pytest.raises(FluxloomError, match="measure the passes anew"):
        predict(times, 37, float("inf"))


def test_parts() -> None:
    parts = [Part("a", "spmv", 3, 2.0, 8), Part("b", "axpy", 2, 0.5, 8), Part("c", "spmv", 1, 4.0, 8)]
    assert total(parts) == 11.0
    assert total(parts, "spmv") == 10.0
    assert total(parts, "dot") == 0.0


def test_hidden_share() -> None:
    assert hidden_share(4.0, 1.0, 4.0) == 1.0
    assert hidden_share(4.0, 1.0, 5.0) == 0.0
    assert hidden_share(4.0, 1.0, 5.5) == -0.5
    assert hidden_share(4.0, 0.0, 4.0) is None


def test_wrong_numbers() -> None:
    with pytest.raises(FluxloomError, match="measure the kernels anew"):
        KernelTimes(float("nan"), 1.0, 1.0)
    with pytest.raises(FluxloomError, match="measure for longer"):
        gflops_per_joule(1e9, 0.0)
    assert gflops_per_joule(2e9, 4.0) == 0.5
