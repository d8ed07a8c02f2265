"""Assembly of matrices whose cells have hundreds of entries, as CUDA: compiled without a GPU."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.fe.cells.dofs import lagrange_dofs
from fluxloom.fe.global_matrix import GlobalFormat, GlobalMatrix
from fluxloom.fe.poisson import Integration
from fluxloom.fe.spaces import LagrangeSpace
from fluxloom.mesh.generate.boxes import box2d
from fluxloom.mesh.ranks.bind import bind

from .test_edge_flow_compile import Writer


def long(*given: Any) -> Any:
    """Return parameters of a test that the long run alone makes."""
    return pytest.param(*given, marks=pytest.mark.long)


def text_of(order: int, form: GlobalFormat, integration: Integration) -> str:
    """Return what assembly in a format is compiled from: with atomic additions, or in the lazy format with none."""
    device = Writer()
    data = box2d(2, 2)
    with np.errstate(all="ignore"):  # nothing runs on this device
        space = LagrangeSpace.of(bind(data, fl.Context(device)), lagrange_dofs(data, order))
        schedule = None if form == "lazy" else fl.Schedule(strategy="atomic")
        found = GlobalMatrix(space, integration=integration, format=form, schedule=schedule)
    assert [loop.strategy for loop in found.assembly.loops] == (["direct"] if form == "lazy" else ["direct", "atomic"])
    (text,) = (text for text in device.texts if "poisson_assembly" in text)
    return text


@pytest.mark.nvcc
@pytest.mark.parametrize(
    ("order", "form", "integration"),
    [(3, "csr", "B"), *(long(3, form, letter) for form, letter in (("csr", "A"), ("lazy", "A"), ("csr", "C"))),
     *(long(4, form, letter) for form in ("csr", "lazy") for letter in "ABC")],
)  # fmt: skip
def test_nvcc_compiles(order: int, form: GlobalFormat, integration: Integration, tmp_path: Path) -> None:
    """The 256 or 625 entries of a cell are gone through in a loop, and the compiler takes what it gets."""
    compiler = shutil.which("nvcc")
    if compiler is None:
        pytest.skip("nvcc is not on the path")
    text, entries = text_of(order, form, integration), (order + 1) ** 4
    assert f"for (int g = 0; g < {entries}; g++)" in text
    source, binary = tmp_path / "assembly.cu", tmp_path / "assembly.cubin"
    source.write_text(text)
    command = [compiler, "-arch=sm_90", "-cubin", "-o", str(binary), str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr[-4000:]
    assert binary.stat().st_size > 1000
