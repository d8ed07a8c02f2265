"""Loops of incompressible flow that is given values in time, in finite volumes and on edges, as CUDA, without a GPU."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.fe.edges.point_mesh import point_mesh
from fluxloom.fv.geometry.control_volumes import control_volumes
from fluxloom.fv.incompressible.boundary import Inflow, NoSlip, Outflow, Symmetry
from fluxloom.fv.incompressible.scalar_boundary import Adiabatic, FixedFlux, FixedValue
from fluxloom.mesh.generate.boxes import box3d
from fluxloom.solvers.edges.flow import EdgeFlow
from fluxloom.solvers.edges.scheme import EdgeScheme
from fluxloom.solvers.edges.subscales import Tracked
from fluxloom.solvers.edges.transport import EdgeTransport
from fluxloom.solvers.incompressible.flow import Incompressible
from fluxloom.solvers.incompressible.scalar import Scalar

from .test_edge_flow_compile import Writer

SIDES = {
    "xmin": Inflow(("sin(t) * y", 0.0, "t")), "xmax": Outflow("cos(t) * y"), "ymin": NoSlip(),
    "ymax": NoSlip(("x * t", "0", "sin(z * t)")), "zmin": Symmetry(), "zmax": Symmetry(),
}  # fmt: skip
FORCE = ("x * t", "sin(t)", "exp(-z * t)")


@pytest.mark.long
@pytest.mark.nvcc
@pytest.mark.parametrize("kind", ["hexahedron", "tetra"])
def test_nvcc_compiles(tmp_path: Path, kind: str) -> None:
    compiler = shutil.which("nvcc")
    if compiler is None:
        pytest.skip("nvcc is not on the path")
    device = Writer()
    context, mesh = fl.Context(device), box3d(3, 3, 3, kind=kind)
    heat = {"xmin": FixedValue("t * y"), "ymax": FixedFlux("x * sin(t)")}
    with np.errstate(all="ignore"):  # nothing runs on this device: masses are 0
        volumes = control_volumes(mesh)
        rest = {name: Adiabatic() for name in volumes.patches if name not in heat}
        scalar = Scalar("heat", 0.1, heat | rest, 0.0, "x * t", bounded=kind == "tetra")
        flow = Incompressible(context, volumes, 0.1, SIDES, force=FORCE, scalars=[scalar])
        device.texts.clear()
        chains = [flow.before, flow.after, flow.project]
        if kind == "tetra":
            points = point_mesh(context, mesh)
            scheme = EdgeScheme(dynamic=0.0, subscales=Tracked())
            edges = [EdgeFlow(points, "0.1 + x * t", SIDES, force=FORCE, scheme=one) for one in (None, scheme)]
            smoke = EdgeTransport(points, ("t * x", 0.0, 0.0), "0.1 + t", {"xmin": "sin(t) * y"},
                                  fluxes={"ymax": "t * x"}, source="t * z", bounded=True)  # fmt: skip
            device.texts.clear()
            chains += [*smoke.chains, *(c for one in edges for c in (one.loops.momentum, one.loops.fill,
                                                                     one.loops.correction))]  # fmt: skip
        for chain in chains:
            chain.build()
    text = "".join(device.texts)
    names = ("given_patch", "along_faces", "outlet_level")
    for name in (*names, "edges_lift", "edges_tracked_lift") if kind == "tetra" else names:
        assert name in text, f"no kernel of {name} was generated"
    for number, source in enumerate(device.texts):
        path = tmp_path / f"step{number}.cu"
        path.write_text(source)
        command = [compiler, "-arch=sm_90", "-cubin", "-o", str(tmp_path / "step.cubin"), str(path)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[-4000:]
