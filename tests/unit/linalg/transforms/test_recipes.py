"""Recipes, carried out with NumPy, give SciPy's transforms."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.fft

from fluxloom.device.transforms.dft import REAL_KINDS
from fluxloom.linalg.direct.transforms.matrix import real_matrix
from fluxloom.linalg.direct.transforms.recipes import Collect, Recipe, Spread, recipe

SIZES = (*range(1, 24), 64, 97, 101)


def row_of(found: Recipe, x: np.ndarray) -> np.ndarray:
    before = found.before
    if not isinstance(before, Spread):
        return sum((before.real[m] + 1j * before.imaginary[m]) * x[before.source[m]] for m in (0, 1))
    row = np.full(found.length, np.nan)
    for places, signs in zip(before.places, before.signs, strict=True):
        there = places >= 0
        values = np.where(before.source >= 0, x[before.source], 0.0)
        row[places[there]] = (signs * values)[there]
    return row


def carry_out(found: Recipe, x: np.ndarray) -> np.ndarray:
    row = row_of(found, x)
    if found.way == "complex":
        spectrum = np.fft.fft(row)
    else:
        spectrum = np.fft.rfft(row) if found.way == "forward" else np.fft.irfft(row, found.length) * found.length
    after = found.after
    if isinstance(after, Collect):
        return after.signs * spectrum[after.source]
    y = np.full(x.size, np.nan)
    for places, real, imaginary in zip(after.places, after.real, after.imaginary, strict=True):
        there = places >= 0
        y[places[there]] = (real * spectrum.real + imaginary * spectrum.imag)[there]
    return y


def scipy_of(kind: str, x: np.ndarray, axis: int = -1) -> np.ndarray:
    return getattr(scipy.fft, kind[:3])(x, int(kind[3]), axis=axis)


@pytest.mark.parametrize("kind", REAL_KINDS)
def test_recipe(kind):
    rng = np.random.default_rng(1)
    for n in SIZES[1:] if kind == "dct1" else SIZES:
        x = rng.standard_normal(n)
        wanted = scipy_of(kind, x)
        np.testing.assert_allclose(
            carry_out(recipe(kind, n), x), wanted, rtol=0, atol=8e-16 * (5 + np.abs(wanted).max())
        )


@pytest.mark.parametrize("kind", REAL_KINDS)
def test_matrix(kind):
    for n in SIZES[1:] if kind == "dct1" else SIZES:
        wanted = scipy_of(kind, np.eye(n), axis=0)
        np.testing.assert_allclose(real_matrix(kind, n), wanted, rtol=0, atol=2e-14)


def test_lengths():
    """No recipe but those of the extensions transforms more values than there are."""
    for kind in REAL_KINDS:
        lengths = {n: recipe(kind, n).length for n in (7, 8)}
        extended = {"dct1": {7: 12, 8: 14}, "dst1": {7: 16, 8: 18}, "dct4": {7: 7, 8: 4}, "dst4": {7: 7, 8: 4}}
        assert lengths == extended.get(kind, {7: 7, 8: 8})
