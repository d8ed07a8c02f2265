"""Exact lift of airfoils by the full potential equation: gas of constant density, order, Mach numbers, wrong ones."""

from __future__ import annotations

import numpy as np
import pytest

from fluxloom.core.errors import SolverError
from fluxloom.mesh.generate.naca import AirfoilMap, NacaProfile
from fluxloom_lab.exact.potential_airfoil import potential_lift

PLAIN, BENT = (NacaProfile.named(name) for name in ("0012", "2412"))


@pytest.mark.parametrize("profile", [PLAIN, BENT])
def test_gas_of_constant_density(profile: NacaProfile) -> None:
    """The conformal map knows the circulation: ``8 pi a sin(alpha - alpha_0)``; that of Mach 0.02 is nearly so."""
    found = AirfoilMap(profile)
    exact = 8.0 * np.pi * found.scale * np.sin(np.radians(2.0) - found.turn)
    assert potential_lift(profile, 0.02, 2.0, 32).lift == pytest.approx(exact, rel=4e-4)
    assert potential_lift(profile, 0.01, 2.0, 32).lift == pytest.approx(exact, rel=1e-4)


def test_order_and_lift_at_mach_half() -> None:
    """The error falls with the square of the width to the lift of finer planes, 0.17875 at 1.25 degrees."""
    found = [potential_lift(PLAIN, 0.5, 1.25, around) for around in (32, 64, 128)]
    first, second = np.diff([one.lift for one in found])
    assert np.log2(first / second) == pytest.approx(2.0, abs=0.1)
    assert found[-1].lift + second / 3.0 == pytest.approx(0.17875, abs=1e-5)
    assert found[-1].mach == pytest.approx(0.676, abs=2e-3)
    glauert = potential_lift(PLAIN, 0.01, 1.25, 64).lift / np.sqrt(0.75)
    assert 1.0 < found[-1].lift / glauert < 1.05


def test_end_is_far_enough() -> None:
    near, far = (potential_lift(PLAIN, 0.5, 1.25, 32, reach).lift for reach in (1e3, 1e5))
    assert near == pytest.approx(far, rel=1e-5)


@pytest.mark.parametrize(("mach", "words"), [(0.75, "not slower than sound everywhere"), (1.2, "between 0 and 1")])
def test_refused(mach: float, words: str) -> None:
    with pytest.raises(SolverError, match=words):
        potential_lift(PLAIN, mach, 1.25, 32)
