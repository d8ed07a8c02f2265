"""The square with a hot and a cold side: G. de Vahl Davis, Int. J. Numer. Methods Fluids 3, 1983, table I."""

from __future__ import annotations

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.fv.geometry.control_volumes import control_volumes
from fluxloom.fv.incompressible.boundary import NoSlip
from fluxloom.fv.incompressible.scalar_boundary import Adiabatic, FixedValue
from fluxloom.mesh.generate.boxes import box2d
from fluxloom.solvers.incompressible.flow import Incompressible
from fluxloom.solvers.incompressible.scalar import Buoyancy, Scalar

PRANDTL = 0.71
HEAT = {"xmin": FixedValue(1.0), "xmax": FixedValue(0.0), "ymin": Adiabatic(), "ymax": Adiabatic()}


def nusselt(n: int, rayleigh: float) -> float:
    """Return the mean of Nusselt's number over the hot side of a steady flow, by the flux that the operators use."""
    nu, alpha = np.sqrt(PRANDTL / rayleigh), 1 / np.sqrt(PRANDTL * rayleigh)
    volumes = control_volumes(box2d(n, n))
    air = Scalar("T", alpha, HEAT, initial=lambda x: 1 - x[:, 0], buoyancy=Buoyancy((0.0, -1.0), 1.0, reference=0.5))
    walls = dict.fromkeys(volumes.patches, NoSlip())
    flow = Incompressible(fl.Context("cpu", tuning=False), volumes, nu, walls, scalars=[air])
    flow.initialise((0.0, 0.0))
    scalar, before = flow.scalars["T"], np.inf
    while flow.time < 200:
        dt = flow.stable_step()
        for _ in range(max(1, round(1.0 / dt))):
            flow.step(dt)
        hot, cold = scalar.flux("xmin").diffusive / alpha, -scalar.flux("xmax").diffusive / alpha
        if abs(hot - before) < 1e-5 and abs(hot - cold) < 1e-4:
            return hot
        before = hot
    raise AssertionError(f"not steady at time {flow.time}: {hot} comes in, {cold} leaves")


@pytest.mark.long
@pytest.mark.parametrize(
    ("rayleigh", "wanted", "n"), [(1e3, 1.118, 12), (1e4, 2.243, 20), (1e5, 4.519, 24)], ids=["1e3", "1e4", "1e5"]
)
def test_heat_through_a_square(rayleigh: float, wanted: float, n: int) -> None:
    """Of second order; the limit of two meshes is within 0.5 %."""
    coarse, fine = nusselt(n, rayleigh), nusselt(2 * n, rayleigh)
    assert abs(fine - wanted) < 0.35 * abs(coarse - wanted)
    assert (4 * fine - coarse) / 3 == pytest.approx(wanted, rel=5e-3)
