"""Loops of transport on edges, and of subscales that are followed in time, as CUDA, compiled without a GPU."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.fe.edges.point_mesh import point_mesh
from fluxloom.mesh.generate.boxes import box3d
from fluxloom.solvers.edges.flow import EdgeFlow
from fluxloom.solvers.edges.scheme import EdgeScheme
from fluxloom.solvers.edges.subscales import Tracked
from fluxloom.solvers.edges.transport import EdgeTransport

from .test_edge_flow_compile import BOUNDARIES, Writer


@pytest.mark.long
@pytest.mark.nvcc
def test_nvcc_compiles(tmp_path: Path) -> None:
    """A step of transport with its limit and sums; the matrix, the right-hand side and the memory of subscales."""
    compiler = shutil.which("nvcc")
    if compiler is None:
        pytest.skip("nvcc is not on the path")
    device = Writer()
    mesh = point_mesh(fl.Context(device), box3d(2, 2, 2, kind="tetra"))
    with np.errstate(all="ignore"):  # nothing runs on this device: masses are 0
        flow = EdgeFlow(mesh, 1e-2, BOUNDARIES, scheme=EdgeScheme(dynamic=0.0, subscales=Tracked()))
        smoke = EdgeTransport(mesh, flow.u, 1e-3, {"xmin": 1.0}, operators=flow.operators)
        device.texts.clear()
        loops = flow.loops
        for chain in (*smoke.chains, smoke.limit, smoke.sums_of.chain, loops.momentum, loops.fill, loops.survey):
            chain.build()
    text = "".join(device.texts)
    names = ("prepare", "transport_stage", "time_limit", "tracked", "tracked_fill", "tracked_continuity", "leftover")
    for name in names:
        assert f"edges_{name}" in text, f"no kernel of {name} was generated"
    for number, source in enumerate(device.texts):
        path = tmp_path / f"step{number}.cu"
        path.write_text(source)
        command = [compiler, "-arch=sm_90", "-cubin", "-o", str(tmp_path / "step.cubin"), str(path)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[-4000:]
