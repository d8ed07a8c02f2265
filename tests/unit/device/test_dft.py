"""Which library transforms on a device, and how axes of two arrays are joined."""

from __future__ import annotations

from importlib.util import find_spec
from types import SimpleNamespace

import numpy as np
import pytest

from fluxloom.core.errors import SolverError
from fluxloom.device.buffer import Buffer, View
from fluxloom.device.cpu import CpuDevice
from fluxloom.device.transforms.dft import INVERSE, REAL_KINDS, Values, merged, pair_type
from fluxloom.device.transforms.libraries import open_library


def test_axes_are_joined_where_both_allow_it():
    assert merged((2, 3, 4), (12, 4, 1), (12, 4, 1)) == [(24, 1, 1)]
    assert merged((2, 3, 4), (12, 4, 1), (24, 8, 2)) == [(24, 1, 2)]
    assert merged((2, 3, 4), (20, 5, 1), (12, 4, 1)) == [(2, 20, 12), (3, 5, 4), (4, 1, 1)]
    assert merged((2, 3, 4), (20, 4, 1), (20, 4, 1)) == [(2, 20, 20), (12, 1, 1)]
    assert merged((4, 3, 2), (1, 4, 12), (1, 4, 12)) == [(24, 1, 1)]
    assert merged((1, 3, 1), (7, 2, 9), (0, 5, 0)) == [(3, 2, 5)]
    assert merged((), (), ()) == []


def test_inverses():
    assert all(INVERSE[INVERSE[kind]] == kind for kind in REAL_KINDS)
    assert INVERSE["dst2"] == "dst3"


def test_pairs():
    assert pair_type(np.dtype("float32")) == np.complex64
    assert pair_type(np.dtype("float64")) == np.complex128


def test_same_values():
    """Two buffers over one array are the same memory."""
    array = np.zeros(6)
    view = View((3,), np.dtype(float), (16,))
    assert Values(Buffer.over(array), view).same(Values(Buffer.over(array), view))
    assert not Values(Buffer.over(array), view).same(Values(Buffer.over(array), View((3,), np.dtype(float), (8,))))
    assert not Values(Buffer(48), view).same(Values(Buffer(48), view))


def test_host_has_a_library():
    found = open_library(CpuDevice(1), "auto", 2)
    assert found is not None
    assert "SciPy" in found.title
    assert "2 threads" in found.title
    assert ("FFTW" in found.title) is (find_spec("pyfftw") is not None)


def test_device_without_a_library():
    device = SimpleNamespace(shared=False, name="other")
    assert open_library(device) is None  # type: ignore[arg-type]
    with pytest.raises(SolverError, match="use one of 'matrix', 'auto'"):
        open_library(device, "scipy")  # type: ignore[arg-type]


def test_fftw_keeps_what_it_measures_with():
    """Planning writes into the arrays it is given; their values come back."""
    pytest.importorskip("pyfftw")
    library = open_library(CpuDevice(1), "pyfftw")
    assert library is not None
    x = np.random.default_rng(0).standard_normal((64, 48))
    source, target = x.copy(), np.ones((64, 25), complex)
    values = [Values(Buffer.over(a), View(a.shape, a.dtype, a.strides)) for a in (source, target)]
    run = library.plan("dft", (0, 1), *values)
    np.testing.assert_array_equal(source, x)
    np.testing.assert_array_equal(target, 1)
    run()
    np.testing.assert_allclose(target, np.fft.rfft2(x), rtol=0, atol=1e-12)
    np.testing.assert_array_equal(source, x)
