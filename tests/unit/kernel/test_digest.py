"""Digests depend on content only, and the walks over lowered kernels."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from fluxloom.kernel import ir, map_expressions, used_components, walk
from fluxloom.kernel.analysis import dump
from fluxloom_lab.attack.loops.text import HEADER

from .conftest import Loader

TEXT = """
C = {constant}
@func
def square(a):
    return a * a
@kernel
def k(q: Read, n: Read, r: RW, *, nu: float):
    a = [q[0], 2.0, C]
    for j in range(3):
        if q[j] > nu and j != 1:
            r[0] = r[0] + square(q[j]) * a[n[0]]
"""
SHAPES = {
    "q": ir.ArgShape(None, (3,), ir.Kind.REAL),
    "n": ir.ArgShape(None, (), ir.Kind.INT),
    "r": ir.ArgShape(None, (), ir.Kind.REAL),
}


def test_digest_is_the_same_in_another_process(load: Loader, tmp_path: Path):
    here = load(TEXT.format(constant=3.5)).k.lower(SHAPES).digest
    script = tmp_path / "other.py"
    shapes = "{'q': A(None, (3,), K.REAL), 'n': A(None, (), K.INT), 'r': A(None, (), K.REAL)}"
    # blank lines: locations are no part of the digest
    tail = f"\nfrom fluxloom.kernel.ir import ArgShape as A, Kind as K\nprint(k.lower({shapes}).digest)\n"
    script.write_text(HEADER + "\n\n\n" + TEXT.format(constant=3.5) + tail)
    for seed in ("0", "1"):
        result = subprocess.run(
            [sys.executable, str(script)], capture_output=True, text=True, check=True,
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": str(Path(__file__).parents[3])},
        )  # fmt: skip
        assert result.stdout.strip() == here


def test_digest_follows_content(load: Loader):
    digests = {load(TEXT.format(constant=value)).k.lower(SHAPES).digest for value in ("3.5", "4.5", "0.0", "-0.0")}
    assert len(digests) == 4
    kernel = load(TEXT.format(constant=3.5)).k
    other = kernel.lower(SHAPES | {"r": ir.ArgShape(None, (2,), ir.Kind.REAL)})
    assert other.digest not in digests


def test_constants_are_captured_when_defined(load: Loader):
    module = load(TEXT.format(constant=3.5))
    before = module.k.lower(SHAPES).digest
    module.C = 9.0
    assert module.k.lower(SHAPES).digest == before


def test_locations_are_those_of_the_kernel(load: Loader):
    lowered = load(TEXT.format(constant=3.5)).k.lower(SHAPES)
    first = HEADER.count("\n") + 7
    lines = {item.location.line for item in walk(lowered.body)}
    assert lines <= set(range(first, first + 5))


def test_map_expressions_rebuilds_everything(load: Loader):
    lowered = load(TEXT.format(constant=3.5)).k.lower(SHAPES)
    assert map_expressions(lowered.body, lambda node: node) == lowered.body

    def shift(node: ir.Expression) -> ir.Expression:
        return replace(node, parameter="p") if isinstance(node, ir.Read) and node.parameter == "q" else node

    moved = replace(lowered, body=map_expressions(lowered.body, shift))
    assert used_components(moved, "q") == frozenset()
    assert (
        used_components(moved, "p")
        == used_components(lowered, "q")
        == {(None, (0,)), (None, (1,)), (None, (2,))} - {(None, (1,))}
    )


def test_dump_is_readable(load: Loader):
    text = dump(load(TEXT.format(constant=3.5)).k.lower(SHAPES))
    assert text.startswith("k('q', 'n', 'r')")
    assert "if (Read(q, None, [0]) > ReadConstant(nu)):" in text


@pytest.mark.parametrize("constant", ["math.inf", "math.nan", "np.float64(1.5)", "True and 2"])
def test_odd_constants(load: Loader, constant: str):
    load(TEXT.format(constant=constant)).k.lower(SHAPES)
