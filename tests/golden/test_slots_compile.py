"""Loops through slots as CUDA and as OpenCL: written as text, compiled by CUDA's compiler without a GPU."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import fluxloom as fl
from fluxloom import RW, Inc, Loop, Read, Write
from fluxloom.codegen.unit import generate
from fluxloom.dsl.plan.bind import Numbering

from .sources import context

LAYOUTS = {"aos": fl.AoS(), "soa": fl.SoA(), "blocked": fl.Blocked(8)}


@fl.kernel
def turn(arrived: Read, put: Write, force: Inc):
    put[0] = arrived[1]
    put[1] = arrived[0]
    force[0] += arrived[0] + arrived[1]


@fl.kernel
def change(one: RW):
    one[0] = 0.5 * one[0]


@fl.kernel
def gain(x: Inc):
    x[0] += 1.0
    x[1] += 2.0


@fl.kernel
def many(x: Read, y: Write):
    for g in range(40):
        y[g] = 2.0 * x[39 - g]


def loops(ctx: fl.Context, dtype: str, layout: fl.AoS | fl.SoA | fl.Blocked) -> list[Loop]:
    """Return a loop for each access, two dats of one layout and a map with many legs."""
    rng = np.random.default_rng(0)
    grid, links = ctx.grid((6, 7)), ctx.set(9, "links")
    f = ctx.dat(grid, shape=(19,), dtype=dtype, layout=layout)
    every = rng.permutation(42 * 19)
    two, forty = every[:36].reshape(2, 9, 2), every[:720].reshape(2, 9, 40)
    read, put, far, put_far = (ctx.slots(links, grid, t // 19, t % 19) for t in (*two, *forty))
    out = [
        Loop(turn, links, f[read], f[put], ctx.scalar(0.0)),
        Loop(change, ctx.subset(links, [1, 2, 7]), f[put[1]]),
        Loop(many, links, f[far], f[put_far]),
    ]
    if dtype != "float16":
        out.append(Loop(gain, links, f[read], schedule=fl.Schedule(strategy="atomic")))
    return out


def units(dialect: str, dtype: str) -> dict[str, str]:
    """Return the sources of all loops of all layouts, by layout."""
    return {
        name: generate([loop.group(Numbering()) for loop in loops(context(dialect), dtype, how)], dialect).text
        for name, how in LAYOUTS.items()
    }


@pytest.mark.parametrize("dialect", ["cuda", "opencl"])
def test_one_table_leads_to_single_numbers(dialect: str) -> None:
    """The code is the same for every layout: a leg costs one entry of one table, and where it leads is in the table."""
    made = units(dialect, "float32")
    assert len(set(made.values())) == 1
    text = made["soa"]
    pointers = re.findall(r"[^\n,(]*\bd0\b(?=,\n)", text)
    assert len(pointers) >= 4
    assert not [p for p in pointers if "const float" in p], "the dat is written: no pointer to it may be read only"


@pytest.mark.nvcc
@pytest.mark.parametrize("wide", [False, True])
def test_nvcc_compiles(wide: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With tables of 32 and of 64 bits; these have no increments."""
    compiler = shutil.which("nvcc")
    if compiler is None:
        pytest.skip("nvcc is not on the path")
    if wide:
        monkeypatch.setattr("fluxloom.dsl.declare.slots.NARROW", 0)
    for dtype in ("float16",) if wide else ("float16", "float64"):
        text = units("cuda", dtype)["soa"]
        assert ("int64_t * __restrict__ m" in text or "int64_t *__restrict__ m" in text) is wide
        source, binary = tmp_path / f"{dtype}.cu", tmp_path / f"{dtype}.cubin"
        source.write_text(text)
        command = [compiler, "-arch=sm_90", "-std=c++17", "-cubin", "-o", str(binary), str(source)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
        assert done.returncode == 0, done.stderr[-4000:]
        assert binary.stat().st_size > 1000
