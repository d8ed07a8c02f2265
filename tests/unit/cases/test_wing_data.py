"""The files of the ONERA M6 wing: stations are read, shocks found, and numbers are those of the report."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fluxloom.core.errors import CaseError
from fluxloom.mesh import box3d
from fluxloom_lab.verify.base import DataOptions
from fluxloom_lab.verify.compressible.wing import WingVerification, projected_area
from fluxloom_lab.verify.compressible.wing_data import STATIONS, computed, measured, shock

SHARED = Path(__file__).resolve().parents[4] / "shared" / "data" / "onera_m6"


def written(folder: Path, stations: int) -> Path:
    """Write a measurement with a shock between 0.5 and 0.6 above, the same at each station."""
    lines = ['VARIABLES = "Section", "Tap", "X/L", "Z/L", "CP"']
    for k in range(stations):
        lines.append(f'ZONE T="Section {k + 1}", I= 5, F=POINT')
        for x, cp in ((0.9, 0.1), (0.1, -0.1), (0.0, 0.8), (0.5, -1.0), (0.6, 0.2)):
            lines.append(f"  {k + 1:.8E}  1.0E+00  {x:.8E}  0.0E+00 {cp:.8E}")
    (folder / "case_2308.dat").write_text("\n".join(lines))
    return folder


def test_reads_stations(tmp_path: Path) -> None:
    found = measured(written(tmp_path, 7))
    assert len(found) == len(STATIONS)
    np.testing.assert_array_equal(found[3].upper, [False, False, True, True, True])
    place, low, high = found[3].shock()
    assert (low, high) == (0.5, 0.6)
    assert place == pytest.approx(0.5 + 0.1 * (1.0 - 0.328) / 1.2, abs=1e-4)
    assert np.isnan(shock(np.array([0.0, 1.0]), np.array([0.5, 0.2]))).all()


def test_refuses_what_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(CaseError, match="there is no such file"):
        computed(tmp_path)
    with pytest.raises(CaseError, match="7 stations are wanted, not 3"):
        measured(written(tmp_path, 3))


def test_data_are_wanted(tmp_path: Path) -> None:
    for options in (DataOptions(), DataOptions(data=tmp_path)):
        with pytest.raises(CaseError, match="give --data, a folder that has onera_m6"):
            list(WingVerification().run(options, lambda _: None))


def test_area_seen_from_above() -> None:
    assert projected_area(box3d(3, 2, 2, (2.0, 3.0, 1.0)), "zmax") == pytest.approx(3.0)


@pytest.mark.skipif(not SHARED.is_dir(), reason="the reference data are not here")
def test_published_files() -> None:
    """Shocks of the measurement, and those of the other code within 0.015 of the chord."""
    test, other = measured(SHARED), computed(SHARED)
    places = [station.shock()[0] for station in test]
    assert places == pytest.approx([0.638, 0.570, 0.497, 0.396, 0.303, 0.253, 0.214], abs=2e-3)
    assert [station.shock()[0] for station in other] == pytest.approx(places, abs=0.015)
