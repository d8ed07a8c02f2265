"""A profile that is extruded between planes of symmetry, on several ranks: limiter, length and images of one rank."""

from __future__ import annotations

import numpy as np

import fluxloom as fl
from fluxloom.comm.base import Comm
from fluxloom.comm.threads import run_threads
from fluxloom.fv.compressible.boundary import FarField, NoSlipWall, SymmetryPlane
from fluxloom.fv.compressible.free_stream import FreeStream
from fluxloom.fv.compressible.gas import ConstantViscosity, Gas
from fluxloom.fv.geometry.control_volumes import FLOW_MAPS, control_volumes, shared_volumes
from fluxloom.fv.time_schemes import RK5
from fluxloom.mesh.generate.extrude import extrude
from fluxloom.mesh.generate.naca import naca_mesh
from fluxloom.mesh.ranks.distribute import distribute_mesh
from fluxloom.mesh.ranks.slices import as_slice
from fluxloom.solvers.compressible.flow import CompressibleFlow
from fluxloom.solvers.compressible.scheme import CompressibleScheme

MESH = extrude(naca_mesh("0012", 16, 6, 3.0), np.linspace(0.0, 0.1, 3))
STREAM = FreeStream.at_angles(0.5, 1.0, 1.0, 4.0, up=1)


def run(comm: Comm) -> tuple[np.ndarray, np.ndarray, float, bool]:
    """Make some steps; return numbers and states of the cells of this rank, the length, and whether it is extruded."""
    volumes = control_volumes(MESH) if comm.size == 1 else shared_volumes(
        distribute_mesh(as_slice(comm, MESH), comm, method="rcb", maps=FLOW_MAPS))  # fmt: skip
    sides = {"airfoil": NoSlipWall(), "far_field": FarField(STREAM), "zmin": SymmetryPlane(), "zmax": SymmetryPlane()}
    gas, scheme = Gas(constant=1.0, viscosity=ConstantViscosity(0.01)), CompressibleScheme(time=RK5(), cfl=1.5)
    flow = CompressibleFlow(fl.Context("cpu", comm=comm, tuning=False, threads=1), volumes, sides, gas, scheme)
    flow.start(STREAM.state(flow.gas, 3))
    flow.iterate(10)
    numbers = volumes.shared.cells.numbers
    return numbers[: volumes.owned], flow.states(), flow.length, flow.axis is not None


def test_states_of_one_rank() -> None:
    ((_, whole, length, extruded),) = run_threads(1, run)
    assert 0.9 < length < 1.1
    assert extruded
    assert np.abs(whole[:, 3]).max() < 1e-13
    for numbers, states, other, again in run_threads(2, run):
        assert abs(other - length) < 1e-12
        assert again
        np.testing.assert_allclose(states, whole[numbers], rtol=1e-11, atol=1e-13)
