"""The bandwidth that is kept between processes: asked again it is the same, what it depends on is measured anew."""

from __future__ import annotations

from pathlib import Path

import pytest

from fluxloom.device.bandwidth import Bandwidth, measured_bandwidth
from fluxloom.device.reference import ReferenceDevice


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which the meter is compiled, once."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def small(compiled: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder without measurements, and arrays of a few megabytes."""
    monkeypatch.setenv("FLUXLOOM_CACHE", str(compiled))
    monkeypatch.setenv("FLUXLOOM_METER_BYTES", str(8 << 20))
    for path in kept(compiled):
        path.rmdir() if path.is_dir() else path.unlink()
    return compiled


def kept(folder: Path) -> list[Path]:
    return sorted(folder.glob("bandwidth-*.json"))


def test_a_second_process_measures_nothing(small: Path) -> None:
    first = measured_bandwidth(ReferenceDevice(), 1, repeats=1)
    assert first.copy_gbs > 0.0
    assert first.threads == 1
    (path,) = kept(small)
    path.write_text(path.read_text().replace(f'"copy_gbs": {first.copy_gbs!r}', '"copy_gbs": 12.5'))
    assert measured_bandwidth(ReferenceDevice(), 1).copy_gbs == 12.5


def test_fresh_measures_and_keeps_what_it_found(small: Path) -> None:
    measured_bandwidth(ReferenceDevice(), 1, repeats=1)
    (path,) = kept(small)
    path.write_text(path.read_text().replace('"copy_gbs": ', '"copy_gbs": 1e9'))
    found = measured_bandwidth(ReferenceDevice(), 1, fresh=True, repeats=1)
    assert found.copy_gbs < 1e6
    assert measured_bandwidth(ReferenceDevice(), 1) == found


def test_what_it_depends_on_is_measured_by_itself(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    measured_bandwidth(ReferenceDevice(), 1, repeats=1)
    monkeypatch.setenv("FLUXLOOM_METER_BYTES", str(9 << 20))
    found = measured_bandwidth(ReferenceDevice(), 1, repeats=1)
    assert found.bytes == 9 << 20
    monkeypatch.setenv("MPI_LOCALNRANKS", "2")
    measured_bandwidth(ReferenceDevice(), 1, repeats=1)
    assert len(kept(small)) == 3

    class WithMemory(ReferenceDevice):
        """A device that has a memory of its own."""

        def meter(self) -> WithMemory:
            return self

        def measure(self, _repeats: int = 5) -> Bandwidth:
            return Bandwidth(1000.0, 900.0, 950.0, 0, 1 << 30)

    assert measured_bandwidth(WithMemory(), 1).copy_gbs == 1000.0
    assert len(kept(small)) == 4


@pytest.mark.parametrize("text", ["", "{", "[]", '{"copy_gbs": 3.0}', '{"measured on": [], "copy_gbs": 3.0}'])
def test_a_damaged_file_is_measured_again(small: Path, text: str) -> None:
    measured_bandwidth(ReferenceDevice(), 1, repeats=1)
    (path,) = kept(small)
    path.write_text(text)
    found = measured_bandwidth(ReferenceDevice(), 1, repeats=1)
    assert found.triad_gbs > 0.0
    assert measured_bandwidth(ReferenceDevice(), 1) == found


def test_a_cache_that_cannot_be_written_costs_the_measurement_only(small: Path) -> None:
    measured_bandwidth(ReferenceDevice(), 1, repeats=1)
    (path,) = kept(small)
    path.unlink()
    path.mkdir()
    assert measured_bandwidth(ReferenceDevice(), 1, repeats=1).copy_gbs > 0.0
