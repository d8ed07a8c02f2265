"""The generated CUDA is CUDA: what the golden files hold, and more, compiled without a GPU."""

from __future__ import annotations

import functools
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from importlib import resources
from pathlib import Path

import numpy as np
import pytest

import fluxloom as fl
from fluxloom import Inc, Loop, Max, Min, Read, Write
from fluxloom.codegen.language.group import Group
from fluxloom.codegen.unit import generate
from fluxloom.dsl.plan.bind import Numbering
from fluxloom_lab.formats.row_grouped import RowGroupedCSR

from .sources import context, makers, product, rolled

pytestmark = pytest.mark.nvcc

ARCHITECTURE = "sm_90"
FIXED = ("runtime", "peer")
LAYOUTS = {"aos": fl.AoS(), "soa": fl.SoA(), "blocked": fl.Blocked(8)}


@fl.kernel
def sides(w: Read, u: Read, r: Inc, low: Min, high: Max, total: Inc, n: Inc, least: Min):
    """Increments, extremes and reductions at once."""
    f = w[0] * (u[0][0] - u[1][1])
    r[0][0] += f
    r[1][1] -= f * f
    low[0] = min(low[0], f)
    high[0] = max(high[0], f)
    total[0] += f
    n[0] += 1
    least[0] = min(least[0], f)


@fl.kernel
def functions(a: Read, k: Read, out: Write, n: Write, *, nu: float, shift: int):
    x = fl.sqrt(fl.fabs(a[0])) + fl.exp(a[1]) * fl.sin(nu) + fl.atan2(a[0], a[1]) + a[0] ** 2.5
    out[0] = fl.select(x > 0.5, fl.floor(x), x % 0.3) + fl.copysign(1.0, a[1]) + a[0] // 0.25
    n[0] = (k[0] - 10) // 3 + (k[0] - 10) % shift + int(x) + min(k[0], shift)


def loops(dtype: str, layout: fl.AoS | fl.SoA | fl.Blocked, ctx: fl.Context) -> Iterator[Loop]:
    """Yield loops with what the golden ones lack."""
    edges, nodes = ctx.set(40, "edges"), ctx.set(30, "nodes")
    table = np.random.default_rng(0).integers(0, 30, (40, 2))
    m = ctx.map(edges, nodes, table, "m")
    w, u, r = (ctx.dat(s, shape=(n,), dtype=dtype, layout=layout) for s, n in ((edges, 1), (nodes, 2), (nodes, 2)))
    low, high = (ctx.dat(nodes, dtype=dtype, layout=layout) for _ in range(2))
    results = [ctx.scalar(0.0), ctx.scalar(0, dtype="int32"), ctx.scalar(0.0, dtype="float32")]
    for name in ("two_pass", "element_colour", "block_colour"):
        for over in (edges, ctx.subset(edges, np.arange(0, 40, 3))):
            if over is edges or name != "two_pass":
                schedule = fl.Schedule(strategy=name)
                yield Loop(sides, over, w, u[m], r[m], low[m], high[m[0]], *results, schedule=schedule)
    a, k = ctx.dat(nodes, shape=(2,), dtype=dtype, layout=layout), ctx.dat(nodes, dtype="uint8", layout=layout)
    out, n = ctx.dat(nodes, dtype=dtype, layout=layout), ctx.dat(nodes, dtype="int32", layout=layout)
    yield Loop(functions, nodes, a, k, out, n, nu=0.5, shift=3)


def numbered(groups: list[Group]) -> list[Group]:
    """Give every group a symbol of its own."""
    return [replace(group, symbol=f"{group.symbol}_{k}") for k, group in enumerate(groups)]


@functools.cache
def golden() -> str:
    """Return every golden source, and rows in teams, as one unit."""
    groups = [group for make in makers("cuda").values() for group in make()]
    for layout in (fl.CSR(), fl.ELL(), fl.SlicedELL(32), RowGroupedCSR()):
        groups += product("cuda", layout)
    return generate(numbered([*groups, *rolled("cuda", 3000)]), "cuda").text


@functools.cache
def others() -> str:
    """Return loops of other types and layouts as one unit."""
    ctx = context("cuda")
    every = [("float64", "soa"), ("float32", "aos"), ("float32", "blocked"), ("float16", "soa")]
    found = [loop for dtype, layout in every for loop in loops(dtype, LAYOUTS[layout], ctx)]
    return generate(numbered([loop.group(Numbering()) for loop in found]), "cuda").text


def kernels(text: str) -> list[str]:
    return re.findall(r"__global__ void __launch_bounds__\([^)]*\) (\w+)\(", text)


def test_symbols_are_distinct() -> None:
    for text in (golden(), others()):
        names = kernels(text)
        assert len(names) > 15
        assert len(set(names)) == len(names)


def test_large_tables_lie_outside_the_memory_for_constants() -> None:
    """Of 3000 points the table of pairs takes 48000 bytes, and the weights have no room any more beside small ones."""
    found = re.findall(r"^(.*) double fl_table_\w+\[(\d+)\]", golden(), re.MULTILINE)
    assert found.count(("__constant__", "66")) == 2
    assert ("static __device__ const", "3000") in found
    assert sum(16 * int(n) for qualifier, n in found if qualifier == "__constant__") < 2 * 65536


def test_nvcc_compiles(tmp_path: Path) -> None:
    """All units in one call, with the toolkit's own headers: what is generated, and what is not."""
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        pytest.skip("nvcc is not on PATH")
    sources = []
    fixed = [(name, resources.files("fluxloom.device.cuda").joinpath(f"{name}.cu").read_text()) for name in FIXED]
    for name, text in (("golden", golden()), ("others", others()), *fixed):
        sources.append(tmp_path / f"{name}.cu")
        sources[-1].write_text(text)
    command = [nvcc, f"-arch={ARCHITECTURE}", "-std=c++17", "-cubin", "--threads", "2", *map(str, sources)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    assert all(source.with_suffix(".cubin").stat().st_size > 1000 for source in sources)


NVRTC = """
import sys
from pathlib import Path
import cupy
from cupy.cuda import nvrtc
from fluxloom.device.cuda import program as cuda_program
from fluxloom_lab.formats.row_grouped import RowGroupedCSR
headers = cuda_program._header_folders(cupy, nvrtc.getVersion()[0])
for contract, path in zip((True, False), sys.argv[2:]):
    text = Path(path).read_text()
    if "FL_HALF\\n" in text.partition("/*")[0] and not headers:
        continue  # no header of float16
    options = cuda_program.compile_options(sys.argv[1], contract) + tuple(f"--include-path={h}" for h in headers)
    binary, log = cuda_program.compile_text(nvrtc, text, options)
    print(log)
    if not binary:
        raise SystemExit(1)
print("compiled")
"""


def test_nvrtc_compiles(tmp_path: Path) -> None:
    """The same as the cuda device does it: types come from the prelude, headers are those of float16 alone."""
    pytest.importorskip("cupy")
    paths = [tmp_path / "golden.cu", tmp_path / "others.cu"]
    for path, text in zip(paths, (golden(), others()), strict=True):
        path.write_text(text)
    command = [sys.executable, "-c", NVRTC, ARCHITECTURE, *map(str, paths)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert "compiled" in done.stdout, (done.stdout + done.stderr)[-4000:]
