"""The meter of the host's memory: what its passes compute, and what it makes of their times. No time is asserted."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from fluxloom.device.bandwidth import Bandwidth, BandwidthMeter, best_roof, meter_of_size
from fluxloom.device.reference import ReferenceDevice

SIZE = 100 * 64
"""Bytes of an array: some packs are left over by each of the streams."""


def meter(both: bool = False) -> BandwidthMeter:
    return BandwidthMeter(threads=2, nbytes=SIZE, both=both)


def values(found: BandwidthMeter) -> np.ndarray[Any, np.dtype[np.float64]]:
    """The three arrays, one after the other."""
    start = -found._raw.ctypes.data % 64 // 8
    return found._raw[start : start + 3 * SIZE // 8].reshape(3, -1)


@pytest.mark.parametrize("name", ["fl_copy_plain", "fl_copy_stream", "fl_copy_memcpy"])
def test_copies(name: str) -> None:
    found = meter()
    a, b, c = values(found)
    a[:] = np.arange(a.size)
    assert found._passes[name]() >= 0.0
    np.testing.assert_array_equal(c, a)
    np.testing.assert_array_equal(b, 2.0)


def test_triad_and_update() -> None:
    found = meter()
    a, b, c = values(found)
    b[:] = np.arange(b.size)
    found._passes["fl_triad"]()
    np.testing.assert_array_equal(c, 1.0 + 3.0 * np.arange(b.size))
    found._passes["fl_update"]()
    np.testing.assert_array_equal(a, 2.0)
    np.testing.assert_array_equal(b, np.arange(b.size))


@pytest.mark.parametrize("both", [False, True])
@pytest.mark.parametrize("name", ["fl_sum_plain", "fl_sum_streams", "fl_sum_ahead"])
def test_sums_read_every_value(name: str, both: bool) -> None:
    """A sum that left something out would be faster than what it is a bound of."""
    found = meter(both)
    arrays = values(found)
    arrays[:] = np.random.default_rng(1).integers(-1000, 1000, arrays.shape)
    found._passes[name]()
    assert found.kept() == arrays[: 2 if both else 1].sum()


def test_bandwidths_are_bytes_over_the_least_time() -> None:
    found = meter(both=True)
    ran: list[str] = []
    seconds = {name: 1e-6 * (number + 1) for number, name in enumerate(found._passes)}

    def timed(name: str) -> float:
        ran.append(name)
        return seconds[name] * (2.0 if ran.count(name) % 3 else 1.0)

    found._passes = {name: (lambda name=name: timed(name)) for name in seconds}
    memory = found.measure(2)
    assert memory.copy_gbs == pytest.approx(2e-9 * SIZE / 1e-6)
    assert memory.triad_gbs == pytest.approx(3e-9 * SIZE / seconds["fl_triad"])
    assert memory.update_gbs == pytest.approx(4e-9 * SIZE / seconds["fl_update"])
    assert memory.read_gbs == pytest.approx(2e-9 * SIZE / seconds["fl_sum_plain"])
    assert ran[:6] == 6 * [ran[0]], "where caches hold the arrays passes of a kind follow each other"


def test_a_meter_as_large_as_the_data() -> None:
    found = meter_of_size(ReferenceDevice(), 1, 1 << 20)
    assert isinstance(found, BandwidthMeter)
    assert (found.threads, found.bytes) == (1, 1 << 19)
    assert meter_of_size(SimpleNamespace(meter=lambda: None), 1, 1 << 20) is None  # type: ignore[arg-type]


def test_ceilings_are_the_fastest_of_each_kind() -> None:
    slow, fast = Bandwidth(10.0, 1.0, 1.0, 1, 1, 9.0, 8.0), Bandwidth(8.0, 1.0, 1.0, 1, 1, 11.0, 12.0)
    roof = best_roof([slow, fast])
    assert (roof.copy_gbs, roof.read_gbs, roof.update_gbs) == (10.0, 11.0, 12.0)
    bare = best_roof([Bandwidth(10.0, 1.0, 1.0, 1, 1)])
    assert (bare.read_gbs, bare.update_gbs, bare.reading_gbs) == (None, None, 10.0)
