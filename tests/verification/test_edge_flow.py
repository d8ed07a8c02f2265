"""The verification ``edge_flow``: what it is made of, and with ``long`` the whole."""

from __future__ import annotations

from math import log2

import numpy as np
import pytest

from fluxloom.app.verify.base import VerifyOptions, verifications
from fluxloom.app.verify.edge_flow import GHIA_100
from fluxloom.app.verify.edge_flow_cases import edge_cavity, energy_of_decay, made_flow, peak, slip_vortices
from fluxloom.dsl.context import Context


@pytest.fixture(scope="module")
def context() -> Context:
    return Context("cpu", threads=1, tuning=False)


def test_peaks_of_a_parabola() -> None:
    x = np.array([0.0, 0.1, 0.25, 0.45, 0.6, 1.0])
    line = np.stack([x, 0.3 - 2.0 * (x - 0.31) ** 2], axis=1)
    assert peak(line, 1.0) == pytest.approx(0.3)
    assert peak(line * [1.0, -1.0], -1.0) == pytest.approx(-0.3)


def test_order_on_triangles(context: Context) -> None:
    """Of a forced flow between walls; the stabilisation does not take it away where fluid slides along planes."""
    first, second = made_flow(context, 2, 8), made_flow(context, 2, 16)
    assert log2(first.velocity / second.velocity) > 1.8
    assert log2(first.pressure / second.pressure) > 1.8
    assert second.imbalance < 1e-8
    coarse, fine = slip_vortices(context, 8, 16)[1], slip_vortices(context, 16, 32)[1]
    assert log2(coarse.velocity / fine.velocity) > 1.9
    assert log2(coarse.pressure / fine.pressure) > 1.8


def test_energy_decays(context: Context) -> None:
    """At the Reynolds number 1e5, whatever the mesh resolves, from the first steps of the pressure on."""
    energy = energy_of_decay(context, steps=60)
    assert (np.diff(energy)[10:] < 0.0).all()
    assert (energy[1:] < energy[0]).all()


@pytest.mark.long
@pytest.mark.parametrize(("n", "allowed"), [(16, 0.014), (48, 0.01)])
def test_cavity_at_100(context: Context, n: int, allowed: float) -> None:
    """The deviation from Ghia's profile, as a part of the speed of the lid."""
    _, upright, _ = edge_cavity(context, n, 100.0)
    assert np.abs(np.interp(GHIA_100[:, 0], *upright.T) - GHIA_100[:, 1]).max() < allowed


def test_coarse_cavity(context: Context) -> None:
    """On 12 x 12 intervals: how far it is from Ghia's profile, pinned."""
    _, upright, level = edge_cavity(context, 12, 100.0, still=1e-3)
    off = np.abs(np.interp(GHIA_100[:, 0], *upright.T) - GHIA_100[:, 1]).max()
    assert off == pytest.approx(0.01836, rel=0.02)
    assert peak(level, -1.0) == pytest.approx(-0.2538030, rel=0.05)


@pytest.mark.long
def test_verification() -> None:
    checks = list(verifications()["edge_flow"].run(VerifyOptions(threads=1, full=True), lambda _line: None))
    assert len(checks) > 40
    assert [check for check in checks if not check.ok] == []
