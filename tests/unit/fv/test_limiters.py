"""Limiters of slopes."""

from __future__ import annotations

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.core.access import Read, Write
from fluxloom.core.errors import SolverError
from fluxloom.fv.gradients.limiters import Venkatakrishnan, bounded, smooth_share
from fluxloom.kernel.frontend import kernel


@kernel
def shares(a: Read, out: Write, *, eps2: float):
    out[0] = bounded(1.0, a[0], a[1], a[2], eps2)
    out[1] = smooth_share(1.0, a[0], a[1], a[2], eps2)


def computed(change: np.ndarray, low: float, high: float, eps2: float = 0.0, device: str = "cpu") -> np.ndarray:
    context = fl.Context(device, tuning=False)
    cells = context.set(change.size, "cells")
    given = np.column_stack([change, np.full(change.size, low), np.full(change.size, high)])
    out = context.dat(cells, shape=(2,))
    fl.Loop(shares, cells, context.dat(cells, given), out, eps2=eps2)()
    return out.read()


@pytest.mark.parametrize("device", ["reference", "cpu", pytest.param("opencl", marks=pytest.mark.opencl)])
def test_values_stay_between_the_extremes(device: str) -> None:
    change = np.linspace(-5.0, 5.0, 401)
    low, high = -1.0, 2.0
    hard, soft = computed(change, low, high, device=device).T
    for share in (hard, soft):
        assert ((share >= 0.0) & (share <= 1.0)).all()
        assert (share * change <= high + 1e-14).all()
        assert (share * change >= low - 1e-14).all()
    np.testing.assert_allclose(hard, _hard(change, low, high), rtol=1e-14)


def _hard(change: np.ndarray, low: float, high: float) -> np.ndarray:
    most = np.where(change > 0.0, high, low)
    out = np.ones(change.size)
    beyond = np.abs(change) > np.abs(most)
    out[beyond] = most[beyond] / change[beyond]
    return out


def test_no_slope_beside_an_extreme() -> None:
    np.testing.assert_array_equal(computed(np.array([0.5, 3.0]), -1.0, 0.0), 0.0)
    np.testing.assert_array_equal(computed(np.array([-0.5, -3.0]), 0.0, 1.0), 0.0)
    np.testing.assert_array_equal(computed(np.array([0.0]), 0.0, 0.0), 1.0)


def test_smooth() -> None:
    """Three quarters where the change is all that is allowed; with a threshold far above the change, nothing."""
    assert computed(np.array([2.0]), -1.0, 2.0)[0, 1] == pytest.approx(0.75)
    assert computed(np.array([0.002]), -0.001, 0.001, eps2=1.0)[0, 1] == pytest.approx(1.0, abs=1e-5)
    change = np.linspace(0.01, 5.0, 500)
    share = computed(change, -1.0, 2.0)[:, 1]
    assert (np.diff(share) <= 0.0).all()
    assert (share[change < 1.0] == 1.0).all()
    assert np.abs(np.diff(share[change > 1.2], 2)).max() < 1e-4  # no kink where the change is the largest allowed
    assert np.abs(np.diff(computed(change, -1.0, 2.0)[:, 0], 2)).max() > 3e-3


@pytest.mark.parametrize(
    ("given", "words"),
    [({"smoothness": 0.0}, "smoothness: a number above 0"), ({"unlimited": np.nan}, "unlimited: a number above 0"),
     ({"length": -1.0}, "length: a number of at least 0"), ({"length": np.inf}, "length: a number of at least 0")],
)  # fmt: skip
def test_numbers_out_of_range_are_refused(given: dict[str, float], words: str) -> None:
    with pytest.raises(SolverError, match=words):
        Venkatakrishnan(**given)
