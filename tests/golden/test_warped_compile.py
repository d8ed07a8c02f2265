"""What warped faces add to incompressible and compressible flow, as CUDA: compiled without a GPU."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.dsl.run.chain import Chain
from fluxloom.fv.compressible.boundary import SlipWall
from fluxloom.fv.geometry.control_volumes import control_volumes
from fluxloom.fv.geometry.volumes import ControlVolumes
from fluxloom.fv.incompressible.boundary import NoSlip, Outflow
from fluxloom.fv.incompressible.scalar_boundary import Adiabatic
from fluxloom.mesh.generate.boxes import box3d
from fluxloom.solvers.compressible.flow import CompressibleFlow
from fluxloom.solvers.compressible.scheme import CompressibleScheme
from fluxloom.solvers.incompressible.flow import Incompressible
from fluxloom.solvers.incompressible.forces import Forces
from fluxloom.solvers.incompressible.scalar import Scalar
from fluxloom_lab.bench.flows.compressible_domain import LOOPS
from tests.unit.fv.oblique_meshes import turned

from .test_edge_flow_compile import Writer


def incompressible(context: fl.Context, cv: ControlVolumes) -> list[Chain]:
    sides = dict.fromkeys(cv.patches, NoSlip()) | {"xmax": Outflow()}
    heat = Scalar("T", 0.1, dict.fromkeys(cv.patches, Adiabatic()))
    flow = Incompressible(context, cv, 0.1, sides, scalars=[heat])
    return [flow.before, Forces(flow, "xmax")._loops]


def compressible(context: fl.Context, cv: ControlVolumes) -> list[Chain]:
    walls = dict.fromkeys(cv.patches, SlipWall())
    return [CompressibleFlow(context, cv, walls, scheme=CompressibleScheme(loops=LOOPS[loops])).before
            for loops in ("cells", "faces")]  # fmt: skip


@pytest.mark.nvcc
@pytest.mark.long
@pytest.mark.parametrize(("make", "names"), [
    (incompressible, ("warped_fluxes", "warped_scalar_flux", "warped_force")),
    (compressible, ("residual", "through_faces")),
])  # fmt: skip
def test_nvcc_compiles(make, names: tuple[str, ...], tmp_path: Path) -> None:
    """All that a step does before the pressure, forces, and residuals over cells and over faces."""
    compiler = shutil.which("nvcc")
    if compiler is None:
        pytest.skip("nvcc is not on the path")
    device = Writer()
    cv = control_volumes(turned(box3d(2, 2, 2), 0.05))
    with np.errstate(all="ignore"):  # nothing runs on this device
        for chain in make(fl.Context(device), cv):
            chain.build()
    text = "".join(device.texts)
    for name in names:
        assert name in text, f"no kernel of {name} was generated"
    for number, source in enumerate(device.texts):
        if not any(name in source for name in names):
            continue
        path = tmp_path / f"step{number}.cu"
        path.write_text(source)
        command = [compiler, "-arch=sm_90", "-cubin", "-o", str(tmp_path / "step.cubin"), str(path)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[-4000:]
