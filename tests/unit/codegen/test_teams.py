"""The text of kernels in which items share rows: launches, trees, and what the compiler of CUDA says."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

import fluxloom as fl
from fluxloom.codegen.language.group import Group, Member, WorkShape
from fluxloom.codegen.unit import Unit, generate
from tests.unit.codegen import coop_cases as cases
from tests.unit.codegen.coop_cases import Case, spec_of


def unit(kernel: fl.Kernel, where: str, dialect: str, work: WorkShape, strategy: str = "direct", **more: Any) -> Unit:
    member = Member(spec_of(kernel, where, **more))
    scatter, direct = ((member,), ()) if strategy != "direct" else ((), (member,))
    return generate([Group("fl_loop", scatter, direct, strategy, tile=0, work=work)], dialect)


def test_launches() -> None:
    [run] = unit(cases.spmv, "exy", "cuda", WorkShape(128, lanes=8, repeat=4)).entries[0].launches
    assert (run.block, run.extent, run.per, run.over) == (128, "n", 8, 4)
    shape = WorkShape(256, lanes=4, repeat=2)
    [coloured] = unit(cases.scatter, "yx", "cuda", shape, "element_colour").entries[0].launches
    assert (coloured.colours, coloured.per, coloured.over, coloured.chunk) == (True, 4, 2, 256)


def test_one_lane_and_one_row_need_nothing() -> None:
    assert "lane" not in unit(cases.spmv, "exy", "cuda", WorkShape(128)).text.split("fl_loop_run")[1]
    text = unit(cases.spmv, "exy", "cuda", WorkShape(128, repeat=2)).text.split("fl_loop_run")[1]
    assert "fl_swap" not in text
    assert "if (row < count)" in text


@pytest.mark.parametrize("dialect", ["cuda", "opencl"])
@pytest.mark.parametrize("lanes", [2, 8, 32])
def test_depth_of_the_tree(dialect: str, lanes: int) -> None:
    text = unit(cases.two_loops, "exy2yy", dialect, WorkShape(64, lanes=lanes)).text.split("fl_loop_run")[1]
    depth = lanes.bit_length() - 1
    assert text.count("fl_swap_double(") == (5 * depth if dialect == "cuda" else 0)
    assert text.count("barrier(") == (0 if dialect == "cuda" else 2 * (depth + 2))


SHAPES = [WorkShape(128, lanes=8), WorkShape(64, lanes=32, repeat=3, registers=64), WorkShape(128, lanes=1, repeat=2)]


@pytest.mark.nvcc
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_cuda_text_compiles(tmp_path: Path, dtype: str) -> None:
    compiler = shutil.which("nvcc")
    if compiler is None:
        pytest.skip("nvcc is not on the path")
    kernels = [
        (cases.spmv, "exy", "direct"), (cases.stored_sums, "ey2yg1", "direct"), (cases.two_loops, "exy2yy", "direct"),
        (cases.forms, "ey2", "direct"), (cases.arrays, "ey", "direct"), (cases.entry_writes, "xeee", "direct"),
        (cases.table_sums, "xt", "atomic"), (cases.scatter, "yx", "atomic"), (cases.scatter, "yx", "element_colour"),
    ]  # fmt: skip
    groups = []
    for k, (kernel, where, strategy) in enumerate(kernels):
        for layout in (fl.CSR(), fl.SlicedELL(8)):
            for shape in SHAPES:
                member = Member(spec_of(kernel, where, Case(layout, dtype)))
                scattered, direct = ((member,), ()) if strategy != "direct" else ((), (member,))
                name = f"fl_{k}_{len(groups)}"
                groups.append(Group(name, scattered, direct, strategy, tile=0, work=shape))
    source = tmp_path / "teams.cu"
    source.write_text(generate(groups, "cuda").text)
    command = [compiler, "-arch=sm_90", "-cubin", "-o", str(tmp_path / "teams.cubin"), str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
