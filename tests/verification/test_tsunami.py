"""Shallow water against exact solutions and published run-up; the same numbers as ``fluxloom verify tsunami``."""

from __future__ import annotations

from math import log2
from pathlib import Path

import pytest

import fluxloom as fl
from fluxloom_lab.problems.tsunami_cases import beach, dam_break, lake_at_rest, parabolic_basin
from fluxloom_lab.verify.base import DataOptions
from fluxloom_lab.verify.tsunami import TsunamiVerification
from fluxloom_lab.verify.tsunami_monai import BED, GAUGES, TIMES, monai, monai_checks


def context() -> fl.Context:
    return fl.Context("cpu", threads=1, tuning=False)


@pytest.mark.parametrize("order", [1, 2])
def test_lake_at_rest(order: int) -> None:
    speed, steps = lake_at_rest(context(), order, time=0.2)
    assert steps > 200
    assert speed <= 1e-13


@pytest.mark.parametrize(
    ("right", "order", "expected", "allowed"),
    [(0.1, 1, 0.8, 0.018), (0.1, 2, 0.8, 0.009), (0.0, 1, 0.65, 0.022), (0.0, 2, 0.87, 0.011)],
)
def test_dam_breaks_converge(right: float, order: int, expected: float, allowed: float) -> None:
    """Depth in the L1 norm against Stoker's and Ritter's solutions; kinks keep the order below one."""
    coarse, fine = (dam_break(context(), right, order, n) for n in (50, 100))
    assert log2(coarse[0] / fine[0]) == pytest.approx(expected, abs=0.2)
    assert fine[0] < allowed
    assert max(coarse[2], fine[2]) < 1e-14


def test_front_of_the_shock() -> None:
    assert dam_break(context(), 0.1, 2, 100)[1] < 0.015


def test_parabolic_basin() -> None:
    """Thacker's planar motion after a period, its shore always moving."""
    coarse, fine = (parabolic_basin(context(), 2, n) for n in (16, 32))
    assert fine[0] < 0.055
    assert log2(coarse[0] / fine[0]) > 1.3
    assert fine[1] < 1e-14


def test_runup_on_a_beach() -> None:
    """Solitary wave on 1 : 19.85: gauges and run-up of the analytical solution."""
    found = beach(context(), spacing=0.2)
    assert found.crest == pytest.approx(0.02353, rel=0.015)
    assert found.arrival == pytest.approx(29.0, rel=0.02)
    assert found.near_crest == pytest.approx(0.04541, rel=0.03)
    assert found.near_arrival == pytest.approx(49.6, rel=0.02)
    assert found.runup == pytest.approx(0.089, rel=0.12)


def test_monai_valley_coarse(shared_data: Path) -> None:
    """Cells of 5 cm in the valley: the gauges before it are right, the water climbs not so high."""
    found = monai(context(), shared_data / "tsunami_monai", columns=40, end=18.0)
    for column, name in ((1, "7"), (2, "9")):
        assert found.surface[:, column].max() == pytest.approx(GAUGES[name].crest, rel=0.15)
        assert found.arrival(column) == pytest.approx(GAUGES[name].arrival, rel=0.03)
    assert found.place[0] == pytest.approx(5.1575, abs=0.1)
    assert 6.5 < found.runup < 8.96
    assert found.defect < 1e-13


@pytest.mark.parametrize("given", [False, True])
def test_monai_valley_without_its_files(tmp_path: Path, given: bool) -> None:
    told: list[str] = []
    assert list(monai_checks(context, tmp_path if given else None, told.append)) == []
    (line,) = told
    assert line.startswith("Monai Valley is left out")
    assert (str(tmp_path / "tsunami_monai" / BED) if given else "--data") in line


def test_monai_valley_measured() -> None:
    """Every record has a value for each time, and its crest is not below them."""
    for gauge in GAUGES.values():
        assert len(gauge.series) == len(TIMES)
        assert max(gauge.series) <= gauge.crest


@pytest.mark.long
def test_monai_valley(shared_data: Path) -> None:
    checks = list(monai_checks(context, shared_data, lambda _line: None))
    assert len(checks) == 14
    assert [check.name for check in checks if not check.ok] == []


@pytest.mark.long
def test_everything() -> None:
    """The long verification, which ends with the conical island."""
    checks = list(TsunamiVerification().run(DataOptions(full=True), lambda _line: None))
    assert len(checks) > 20
    assert [check.name for check in checks if not check.ok] == []
