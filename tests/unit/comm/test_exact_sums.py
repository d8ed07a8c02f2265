"""Sums that do not depend on order or ranks: those of `math.fsum`."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fluxloom.comm.base import SelfComm
from fluxloom.comm.exact_sums import exact_total
from fluxloom.comm.threads import run_threads


@pytest.mark.parametrize("spread", [0, 30, 300])
@pytest.mark.parametrize("ranks", [1, 3])
def test_the_sum_rounded_once(spread: int, ranks: int) -> None:
    rng = np.random.default_rng(spread)
    values = rng.standard_normal((700, 2)) * 10.0 ** rng.integers(-spread, spread + 1, (700, 2))
    values = np.concatenate([values, -values[100:], [[5e-324, 1e-310]]])  # most of it cancels
    rng.shuffle(values)
    parts = np.split(values, np.sort(rng.integers(0, len(values), ranks - 1)))
    for found in run_threads(ranks, lambda comm: exact_total(comm, parts[comm.rank])):
        np.testing.assert_array_equal(found, [math.fsum(column) for column in values.T])


def test_numbers_that_are_not_finite() -> None:
    values = np.array([[1e308, np.inf, np.nan, np.inf], [1e308, 1.0, 1.0, -np.inf]])
    np.testing.assert_array_equal(exact_total(SelfComm(), values), [np.inf, np.inf, np.nan, np.nan])
    np.testing.assert_array_equal(exact_total(SelfComm(), np.zeros((0, 2))), [0.0, 0.0])
    assert exact_total(SelfComm(), np.array([1.0, 2.0])).shape == ()
