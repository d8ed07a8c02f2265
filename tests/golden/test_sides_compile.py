"""Fluxes through sides as CUDA: compiled without a GPU."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.fe.poisson import MatrixFree
from fluxloom.fe.spaces import LagrangeSpace
from fluxloom.mesh.generate.boxes import box2d, box3d
from fluxloom.mesh.ranks.bind import bind

from .test_edge_flow_compile import Writer


@pytest.mark.nvcc
@pytest.mark.long
@pytest.mark.parametrize(("dimension", "order"), [(2, 4), (3, 1), (3, 4)])
@pytest.mark.parametrize("kind", ["number", "function"])
def test_nvcc_compiles(dimension: int, order: int, kind: str, tmp_path: Path) -> None:
    """One value for a face, and one for each point of the rule."""
    compiler = shutil.which("nvcc")
    if compiler is None:
        pytest.skip("nvcc is not on the path")
    device = Writer()
    data = box2d(2, 2) if dimension == 2 else box3d(1, 1, 1)
    with np.errstate(all="ignore"):  # nothing runs on this device
        space = LagrangeSpace.on(bind(data, fl.Context(device)), order)
        b = space.context.dat(space.rows, name="b")
        (loop,) = MatrixFree(space).flux("xmax", 2.0 if kind == "number" else lambda x: x[:, 0], b)
        assert isinstance(loop, fl.Loop)
        loop.build()
    (text,) = (text for text in device.texts if "poisson_flux" in text)
    source, binary = tmp_path / "sides.cu", tmp_path / "sides.cubin"
    source.write_text(text)
    command = [compiler, "-arch=sm_90", "-cubin", "-o", str(binary), str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr[-4000:]
    assert binary.stat().st_size > 1000
