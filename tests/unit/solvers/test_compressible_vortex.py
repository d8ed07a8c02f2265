"""Far fields with the vortex of a body that lifts: their states, what the circulation follows, wrong ones."""

from __future__ import annotations

from math import cos, radians, sin

import numpy as np
import pytest

from fluxloom.core.errors import SolverError
from fluxloom.core.strategies import strategy_name
from fluxloom.dsl.context import Context
from fluxloom.fv.compressible.boundary import BoundaryCondition, FarField, SlipWall
from fluxloom.fv.compressible.fluxes import Flux, Roe, Rusanov
from fluxloom.fv.compressible.free_stream import FreeStream, PointVortex
from fluxloom.fv.compressible.gas import Gas
from fluxloom.fv.geometry.cell_faces import Rotation
from fluxloom.fv.geometry.control_volumes import control_volumes
from fluxloom.fv.time_schemes import RK5
from fluxloom.mesh import box3d
from fluxloom.mesh.data.mesh import MeshData
from fluxloom.mesh.generate.naca import naca_mesh
from fluxloom.solvers.compressible.cycles import Multigrid
from fluxloom.solvers.compressible.flow import CompressibleFlow
from fluxloom.solvers.compressible.implicit import Implicit, SteadySteps
from fluxloom.solvers.compressible.multigrid import MultigridSteps
from fluxloom.solvers.compressible.scheme import CompressibleScheme
from fluxloom.solvers.compressible.surface import AerodynamicReference, SurfaceForces

STREAM = FreeStream.at_angles(0.5, 1.0, 1.0, 4.0, dimension=2)
GAS = Gas(constant=1.0)
VORTEX = PointVortex(["airfoil"])
SMOOTH = CompressibleScheme(limiter=None, time=RK5(), cfl=2.0)


def flow_of(
    far: FarField | None = None, device: str = "cpu", around: int = 32, scheme: CompressibleScheme = SMOOTH
) -> CompressibleFlow:  # fmt: skip
    """Return the flow past an airfoil on rings of quads up to four chords, from a uniform stream."""
    sides: dict[str, BoundaryCondition] = {"airfoil": SlipWall(), "far_field": far or FarField(STREAM, vortex=VORTEX)}
    volumes = control_volumes(naca_mesh("0012", around, around // 2, 4.0))
    flow = CompressibleFlow(Context(device, threads=1, tuning=False), volumes, sides, GAS, scheme)
    flow.start(STREAM.state(GAS, 2))
    return flow


def circulations(flow: CompressibleFlow) -> dict[str, float]:
    balance = flow._balance
    assert balance is not None
    return balance.vortices.circulations()


def lift_of(flow: CompressibleFlow) -> float:
    force = SurfaceForces(flow, {"all": ["airfoil"]}, pressure=STREAM.pressure).now()["all"]
    return AerodynamicReference(STREAM, GAS).of(force).lift


def far_states(flow: CompressibleFlow) -> tuple[np.ndarray, np.ndarray]:
    """Return places and states of the far field."""
    span = flow.volumes.patches["far_field"]
    return flow.volumes.centres[span.start : span.stop], flow.par.read()[span.start : span.stop, :4]


def test_states_and_strength() -> None:
    """They are those of Prandtl and Glauert's potential, of one enthalpy and entropy; the circulation is half the lift.

    A flow that begins with the same states has the same circulation: a restart needs no more.
    """
    flow = flow_of()
    flow.iterate(30)
    lift = lift_of(flow)
    found = circulations(flow)
    speed, alpha, beta = STREAM.speed(GAS), radians(4.0), np.sqrt(0.75)
    assert lift > 0.1
    assert found["far_field"] == pytest.approx(0.5 * speed * lift, rel=1e-9)

    def potential(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        a, b = (x - 0.25) * cos(alpha) + y * sin(alpha), y * cos(alpha) - (x - 0.25) * sin(alpha)
        return speed * a - found["far_field"] / (2.0 * np.pi) * np.arctan2(beta * b, a)

    places, states = far_states(flow)
    kept = np.abs(np.arctan2(places[:, 1], places[:, 0] - 0.25)) < 3.0  # the potential jumps behind these
    (x, y), (rho, u, v, p) = places[kept].T, states[kept].T
    h = 1e-5
    assert u == pytest.approx((potential(x + h, y) - potential(x - h, y)) / (2.0 * h), abs=1e-8)
    assert v == pytest.approx((potential(x, y + h) - potential(x, y - h)) / (2.0 * h), abs=1e-8)
    assert np.ptp(np.hypot(u, v)) > 0.01 * speed
    assert p / rho**1.4 == pytest.approx(np.ones(rho.size), rel=1e-12)
    assert 3.5 * p / rho + 0.5 * (u**2 + v**2) == pytest.approx(np.full(rho.size, 3.5 + 0.5 * speed**2), rel=1e-12)

    again = flow_of()
    again.start(flow.states())
    again.before()
    assert circulations(again) == found


@pytest.mark.long
@pytest.mark.parametrize("flux", [Rusanov(), Roe()], ids=strategy_name)
def test_first_order_knows_the_lift(flux: Flux) -> None:
    """Of its fluxes, which take the pressure of the cell, also where slopes are found for shocks."""
    flow = flow_of(scheme=CompressibleScheme(order=1, time=RK5(), cfl=2.0, flux=flux))
    flow.iterate(30)
    lift = lift_of(flow)
    assert lift > 0.1
    assert circulations(flow)["far_field"] == pytest.approx(0.5 * STREAM.speed(GAS) * lift, rel=1e-9)


@pytest.mark.parametrize("device", ["reference", pytest.param("opencl", marks=[pytest.mark.opencl, pytest.mark.long]),
                                    pytest.param("cuda", marks=pytest.mark.cuda)])  # fmt: skip
def test_devices_agree(device: str) -> None:
    one, other = (flow_of(device=name, around=16) for name in ("cpu", device))
    for flow in (one, other):
        flow.iterate(3)
    assert circulations(other) == pytest.approx(circulations(one), rel=1e-12)
    assert other.states() == pytest.approx(one.states(), rel=1e-12, abs=1e-14)
    assert far_states(other)[1] == pytest.approx(far_states(one)[1], rel=1e-13)


@pytest.mark.long
def test_all_steps_lead_to_one_lift() -> None:
    """Newton's steps converge as fast as without: the residual is a function of the states, the vortex with it."""
    implicit, multigrid = flow_of(), flow_of()
    norms = SteadySteps(implicit, Implicit(cfl=20.0)).solve(1e-10, 200)
    assert norms[-1] <= 1e-10 * norms[0]
    cycles = MultigridSteps(multigrid, Multigrid(levels=2)).solve(1e-9, 800)
    assert cycles[-1] <= 1e-9 * cycles[0]
    assert lift_of(multigrid) == pytest.approx(lift_of(implicit), rel=1e-7)
    plain = flow_of(FarField(STREAM))
    SteadySteps(plain, Implicit(cfl=20.0)).solve(1e-10, 200)
    assert 1.05 < lift_of(implicit) / lift_of(plain) < 1.2


def test_wrong_ones() -> None:
    def refused(far: FarField, words: str) -> None:
        with pytest.raises(SolverError, match=words):
            flow_of(far, around=16)

    refused(FarField(STREAM, vortex=PointVortex(["airfoli"])), "vortex: no patch 'airfoli'; did you mean 'airfoil'")
    refused(FarField(STREAM, vortex=PointVortex(["far_field"])), "'far_field' is no wall")
    refused(FarField(STREAM, vortex=PointVortex(["airfoil"], (9.0, 0.0))), "not round its centre")
    refused(FarField((1.0, 0.0, 0.0, 1.0), vortex=VORTEX), "not at rest, is wanted, not Mach 0")
    refused(FarField((1.0, 2.0, 0.0, 1.0), vortex=VORTEX), "a stream slower than sound")
    refused(FarField(lambda x: np.ones((len(x), 4)), vortex=VORTEX), "a uniform stream is wanted")
    with pytest.raises(SolverError, match="a list of the patches that lift is wanted"):
        PointVortex("airfoil")
    with pytest.raises(SolverError, match="two finite coordinates"):
        PointVortex(["airfoil"], (0.0, 0.0, 0.0))


def test_one_plane_that_stands_still() -> None:
    def built(mesh: MeshData, stream: FreeStream, rotation: Rotation | None) -> None:
        volumes = control_volumes(mesh)
        sides: dict[str, BoundaryCondition] = dict.fromkeys(volumes.patches, SlipWall())
        name = next(iter(sides))
        sides[name] = FarField(stream, vortex=PointVortex([next(x for x in sides if x != name)]))
        CompressibleFlow(Context("cpu", threads=1, tuning=False), volumes, sides, GAS, SMOOTH, rotation=rotation)

    with pytest.raises(SolverError, match="one of flows in a plane"):
        built(box3d(2, 2, 2), FreeStream(0.5, 1.0, 1.0, (1.0, 0.0, 0.0)), None)
    with pytest.raises(SolverError, match="the mesh turns"):
        built(naca_mesh("0012", 16, 8, 4.0), STREAM, Rotation(1.0))
