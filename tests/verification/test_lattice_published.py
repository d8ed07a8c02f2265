"""Lattice flows beside published results, small; `fluxloom verify lbm` has them in full."""

from __future__ import annotations

from math import log2

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.app.verify.base import VerifyOptions
from fluxloom.app.verify.lbm import LatticeVerification
from fluxloom.app.verify.lbm_bodies import BodyFlow, channel_cylinder, settle
from fluxloom.app.verify.lbm_cavity import cavity, cavity_extremes
from fluxloom.app.verify.lbm_exact import mass_drift, offset_channel_error, shear_viscosity
from fluxloom.app.verify.lbm_space import decay
from fluxloom.app.verify.staggered import BOTELLA_PEYRET
from fluxloom.core.errors import SolverError
from fluxloom.lbm.collisions import BGK, Cumulant


@pytest.fixture(scope="module")
def context() -> fl.Context:
    return fl.Context("cpu", threads=1, tuning=False)


def test_viscosity_in_a_wind(context: fl.Context) -> None:
    """Populations relax to an equilibrium of second order in the speed; cumulants know of no frame."""
    assert shear_viscosity(context, BGK(), 0.1) == pytest.approx(0.97, rel=2e-3)
    assert shear_viscosity(context, Cumulant(), 0.1) == pytest.approx(1.0, rel=1e-3)


def test_walls_between_cells_and_mass(context: fl.Context) -> None:
    assert log2(offset_channel_error(context, 12) / offset_channel_error(context, 24)) == pytest.approx(2.0, abs=0.15)
    assert abs(mass_drift(context)) < 1e-13


@pytest.mark.long
def test_cylinder_in_a_channel_by_markers(context: fl.Context) -> None:
    """The drag of 2D-1 with ten cells in the diameter, and no slip at the markers."""
    case = channel_cylinder(context, 10, "immersed", speed=0.06)
    assert settle(case, 1e-3)[0] == pytest.approx(5.5795, rel=0.15)
    assert case.slip() < 0.02 * 0.06


def test_only_markers_have_a_slip(context: fl.Context) -> None:
    case = channel_cylinder(context, 10, "half-way")
    with pytest.raises(SolverError, match="no markers"):
        BodyFlow(case.flow, case.unit, case.turnover).slip()
    with pytest.raises(SolverError, match="allowed: interpolated"):
        channel_cylinder(context, 10, "soft")


@pytest.mark.long
def test_vortex_in_space_decays(context: fl.Context) -> None:
    """Energy starts at an eighth and falls with the enstrophy, 3/8, before vortices stretch."""
    found = decay(context, 32, end=1.0, reynolds=50.0, speed=0.05, samples=5)
    assert found.energy[0] == pytest.approx(0.125, rel=1e-3)
    time, rate = found.rate()  # the first ones: stresses are not there yet at the start
    assert rate[2:4] == pytest.approx(0.015 * np.exp(-6.0 * time[2:4] / 50.0), rel=0.08)


@pytest.mark.long
def test_cavity(context: fl.Context) -> None:
    _, velocity = cavity(context, 64)
    for name, value in cavity_extremes(velocity).items():
        assert value == pytest.approx(BOTELLA_PEYRET[name], rel=0.03)


@pytest.mark.long
def test_all_quick_checks() -> None:
    failed = [check for check in LatticeVerification().run(VerifyOptions(threads=1), lambda _: None) if not check.ok]
    assert not failed, failed
