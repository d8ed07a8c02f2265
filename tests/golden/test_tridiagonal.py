"""Kernels for tridiagonal systems: their text as it was, and that it is CUDA, compiled without a GPU.

``pytest tests/golden --update-golden`` writes the files anew.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from fluxloom.codegen.primitive import primitive_unit
from fluxloom.linalg.direct.tridiagonal.form import Form, Lines, Method
from fluxloom.linalg.direct.tridiagonal.methods import METHODS_ITEMS
from fluxloom.linalg.direct.tridiagonal.partition import Partition

FOLDER = Path(__file__).parent / "tridiagonal"
ENDINGS = {"cuda": "cu", "opencl": "cl"}

POISSON = Form("double", "shifted", False, 2), Lines(512, 257, 512, 2, 2 * 257 * 512, 2, 2 * 257, 1)
"""Pairs of real and imaginary parts, between two transforms of a grid of 512^3."""

INTERLEAVED = Form(), Lines(512, 1 << 17, 1, 1, 1 << 17, 1)
CONTIGUOUS = Form("double", "each", True), Lines(500, 1 << 17, 1, 1, 1, 500)
LONG = Form(), Lines(65536, 256, 1, 1, 256, 1)

GOLDEN: dict[str, tuple[Method, tuple[Form, Lines]]] = {
    "thomas": (METHODS_ITEMS["thomas"](0), INTERLEAVED),
    "partition": (METHODS_ITEMS["partition"](0), POISSON),
}

COMPILED = {
    **GOLDEN,
    "thomas_periodic": (METHODS_ITEMS["thomas"](0), CONTIGUOUS),
    "partition_interleaved": (METHODS_ITEMS["partition"](0), INTERLEAVED),
    "partition_contiguous": (METHODS_ITEMS["partition"](0), CONTIGUOUS),
    "partition_held": (Partition(16, 4, registers=255), POISSON),
    "cr_pcr": (METHODS_ITEMS["cr_pcr"](0), CONTIGUOUS),
    "chunks": (METHODS_ITEMS["chunks"](0), LONG),
}


def unit(dialect: str, method: Method, form: Form, lines: Lines) -> str:
    assert not method.refuses(form, lines)
    code = method.code(form, lines)
    return primitive_unit(code.functions, dialect, code.helpers).text


@pytest.mark.parametrize("dialect", list(ENDINGS))
@pytest.mark.parametrize("name", list(GOLDEN))
def test_source(name: str, dialect: str, request: pytest.FixtureRequest) -> None:
    method, (form, lines) = GOLDEN[name]
    text = unit(dialect, method, form, lines)
    text = text[text.index("#define REAL") :]
    path = FOLDER / f"{name}.{ENDINGS[dialect]}"
    if request.config.getoption("--update-golden", default=False):
        path.write_text(text, encoding="utf-8")
    assert path.exists(), f"{path.name} is missing: run pytest tests/golden --update-golden"
    assert text == path.read_text(encoding="utf-8"), (
        f"{path.name} changed; if that is meant: pytest tests/golden --update-golden"
    )


FULL = {"partition_interleaved": "fl_partition", "chunks": "fl_ends"}
"""Kernels whose items hold 128 words of rows, by the shapes that were the fastest on an H200; others hold up to 80."""

_REGISTERS = 65536
"""Of a multiprocessor."""


@pytest.mark.nvcc
@pytest.mark.long
@pytest.mark.parametrize("real", ["double", "float"])
@pytest.mark.parametrize("name", list(COMPILED))
def test_nvcc_compiles(name: str, real: str, tmp_path: Path) -> None:
    """No value of a chunk is spilled; of groups of up to 256 two fit on a multiprocessor, of larger ones one.

    Items that hold 128 words of rows need some 204 registers, as 80 words fit into 128: one group has to fit, and what
    may be spilled is what these are more than a group leaves to an item, which is nothing up to 256 items.
    """
    compiler = shutil.which("nvcc")
    if compiler is None:
        pytest.skip("nvcc is not on the path")
    method, (form, lines) = COMPILED[name]
    form = Form(real, form.coefficients, form.periodic, form.rhs)
    source, binary = tmp_path / f"{name}.cu", tmp_path / f"{name}.cubin"
    source.write_text(unit("cuda", method, form, lines))
    command = [compiler, "-arch=sm_90", "-cubin", "-Xptxas", "-v", "-o", str(binary), str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr[-4000:]
    told = r"entry function '(\w+)'.*?(\d+) bytes spill stores.*?Used (\d+) registers"
    found = {n: (int(stores), int(used)) for n, stores, used in re.findall(told, done.stderr, re.DOTALL)}
    functions = {function.symbol: function.block for function in method.code(form, lines).functions}
    assert found.keys() == functions.keys()
    for function, block in functions.items():
        full = FULL.get(name) == function
        groups = 2 if block <= 256 and not full else 1
        lacking = 204 - _REGISTERS // block if full else 0
        spilled, registers = found[function]
        assert spilled <= 4 * max(16, lacking), function
        assert registers * block * groups <= _REGISTERS, function
