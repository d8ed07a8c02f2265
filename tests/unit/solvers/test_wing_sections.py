"""A wing by sections: planform, sonic pressure, shocks, cuts and strips."""

from __future__ import annotations

import numpy as np
import pytest

from fluxloom.core.errors import MeshError, SolverError
from fluxloom.fv.compressible.free_stream import FreeStream
from fluxloom.fv.compressible.gas import Gas
from fluxloom.fv.geometry.control_volumes import control_volumes
from fluxloom.mesh.data.mesh import MeshData
from fluxloom.mesh.generate.extrude import extrude
from fluxloom.mesh.generate.naca import naca_mesh
from fluxloom.solvers.compressible.surface import PatchValues
from fluxloom_lab.problems.wing_planform import WingPlanform
from fluxloom_lab.studies.wing_sections import critical_pressure, section, shock_places, strips

ONERA_M6 = WingPlanform(0.8059, 0.562, 1.1963, 30.0)
STREAM, GAS = FreeStream.at_angles(0.8, 1.0, 1.0, 0.0), Gas(constant=1.0)


def wing() -> tuple[MeshData, PatchValues]:
    """Return a wing without taper or sweep along ``y``, 2 wide, and a pressure that is linear in ``x`` and ``y``."""
    mesh = extrude(naca_mesh("0012", 64, 12, 5.0, 1.0), np.linspace(-2.0, 0.0, 5))
    mesh = mesh.with_points(np.stack([mesh.points[:, 0], -mesh.points[:, 2], mesh.points[:, 1]], axis=1))
    volumes = control_volumes(mesh)
    numbers = np.arange(volumes.patches["airfoil"].start, volumes.patches["airfoil"].stop)
    face = numbers - volumes.cells + volumes.interior
    places = volumes.centres[numbers]
    pressure = 1.0 + 0.5 * places[:, 0] + 0.25 * places[:, 1]
    friction = np.zeros_like(places)
    friction[:, 0] = 0.01
    return mesh, PatchValues(places, volumes.normals[face], volumes.area[face], pressure, friction, pressure)


def test_planform() -> None:
    """The numbers that AGARD AR-138 has for the ONERA M6."""
    assert ONERA_M6.area == pytest.approx(0.7532, rel=5e-4)
    assert ONERA_M6.mean_chord == pytest.approx(0.64607, rel=5e-4)
    assert ONERA_M6.chord(1.1963) == pytest.approx(0.562 * 0.8059)
    assert ONERA_M6.leading(1.0) == pytest.approx(1.0 / np.sqrt(3.0))
    with pytest.raises(MeshError, match="planform: span"):
        WingPlanform(1.0, 0.5, 0.0, 30.0)


def test_sonic_pressure() -> None:
    assert critical_pressure(0.8395) == pytest.approx(-0.3279, abs=5e-4)
    assert critical_pressure(1.0) == pytest.approx(0.0, abs=1e-14)
    with pytest.raises(SolverError, match="Mach number above 0"):
        critical_pressure(0.0)


def test_shocks() -> None:
    x, cp = np.array([0.0, 0.1, 0.3, 0.4, 0.6, 1.0]), np.array([0.5, -1.0, -0.6, -0.2, -0.5, 0.1])
    np.testing.assert_allclose(shock_places(x, cp, -0.4), [0.35, 0.6 + 0.4 / 6.0])
    assert shock_places(x, cp, -2.0).size == 0


def test_section() -> None:
    """Faces are those of the strip that is cut: their pressure is linear in x, and constant along the span in it."""
    mesh, values = wing()
    found = section(
        mesh, ["airfoil"], values, WingPlanform(1.0, 1.0, 2.0, 0.0), 0.6, stream=STREAM, gas=GAS
    )  # fmt: skip
    assert found.x.size == 64
    assert found.upper.sum() == 32
    np.testing.assert_array_equal(found.upper, found.z > 0.0)
    assert (np.diff(found.x[found.upper]) > 0.0).all()
    wanted = (0.5 * found.x + 0.25 * 0.75) / STREAM.dynamic_pressure(GAS)
    np.testing.assert_allclose(found.cp, wanted, atol=1e-3)


def test_strips() -> None:
    """Four strips, whose forces add up to those of the wing; that of the pressure is its slope times the volume."""
    _, values = wing()
    found = strips(values, 1.0)
    np.testing.assert_allclose(found.y, [0.25, 0.75, 1.25, 1.75])
    whole = ((values.pressure - 1.0)[:, None] * values.normals + values.friction) * values.area[:, None]
    np.testing.assert_allclose(found.force.sum(axis=0), whole.sum(axis=0), atol=1e-14)
    np.testing.assert_allclose(found.force[:, 2], 0.0, atol=1e-14)
    wanted = -0.5 * 0.5 * 0.0817 + 0.01 * values.area.sum() / 4.0  # a profile of 12 per cent has an area of 0.0822
    np.testing.assert_allclose(found.force[:, 0], wanted, rtol=0.03)
