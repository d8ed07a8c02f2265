"""The loops of flow on edges, as CUDA: all of a step with its walls, model and surveys, compiled without a GPU."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.fe.edges.point_mesh import point_mesh
from fluxloom.fv.incompressible.boundary import Inflow, NoSlip, Outflow, Symmetry
from fluxloom.fv.incompressible.eddy_viscosity import Smagorinsky
from fluxloom.mesh.generate.boxes import box3d
from fluxloom.solvers.edges.boundary import EdgePatch, WallLaw
from fluxloom.solvers.edges.flow import EdgeFlow
from fluxloom.solvers.edges.scheme import EdgeScheme, FullStress

from .fake import FakeItems, FakeProgram

BOUNDARIES: dict[str, EdgePatch] = {
    "xmin": Inflow((1.0, 0.0, 0.0)), "xmax": Outflow(), "ymin": WallLaw(1e-3), "ymax": Symmetry(),
    "zmin": NoSlip(), "zmax": NoSlip(),
}  # fmt: skip


class Writer(FakeItems):
    """Keeps what it is given to compile."""

    def __init__(self) -> None:
        super().__init__("cuda")
        self.texts: list[str] = []

    def compile(self, text: str, symbols: Sequence[str], name: str, *, contract: bool = True) -> FakeProgram:
        self.texts.append(text)
        return super().compile(text, symbols, name, contract=contract)


@pytest.mark.nvcc
def test_nvcc_compiles_a_step(tmp_path: Path) -> None:
    """Momentum with a model and walls, matrix, correction, limits and forces."""
    compiler = shutil.which("nvcc")
    if compiler is None:
        pytest.skip("nvcc is not on the path")
    device = Writer()
    mesh = point_mesh(fl.Context(device), box3d(2, 2, 2, kind="tetra"))
    with np.errstate(all="ignore"):  # nothing runs on this device: masses are 0
        flow = EdgeFlow(mesh, 1e-2, BOUNDARIES, scheme=EdgeScheme(stress=FullStress()), model=Smagorinsky())
        device.texts.clear()
        for chain in (*flow.chains, flow.loops.limit, flow.loops.survey, flow.loops.reaction(("ymin",))[0]):
            chain.build()
    text = "".join(device.texts)
    for name in ("stage", "convection", "friction", "fill", "continuity", "correct", "time_limit", "reaction"):
        assert f"edges_{name}" in text or f"{name}_ymin" in text, f"no kernel of {name} was generated"
    for number, source in enumerate(device.texts):
        path = tmp_path / f"step{number}.cu"
        path.write_text(source)
        command = [compiler, "-arch=sm_90", "-cubin", "-o", str(tmp_path / "step.cubin"), str(path)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[-4000:]
