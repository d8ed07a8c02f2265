"""The source that is read is the function that runs, with the values of its decoration: on the reference device too."""

from __future__ import annotations

import functools
import importlib.util
import os
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import fluxloom as fl
from fluxloom import Const, Read, Write
from fluxloom.core.errors import KernelError

from .conftest import Loader

HEAD = "import math\nimport fluxloom as fl\nfrom fluxloom import Const, Read, Write\n"


def module_of(path: Path, text: str, name: str = "made") -> ModuleType:
    path.write_text(HEAD + textwrap.dedent(text))
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def result(device: str, kernel: Any, **constants: Any) -> float:
    ctx = fl.Context(device)
    s = ctx.set(1, "s")
    a, r = ctx.dat(s, [3.0], "a"), ctx.dat(s, [0.0], "r")
    fl.Loop(kernel, s, a, r, **constants)()
    return float(r.read()[0])


MAKES = """
def make(scale=2.0):
    @fl.kernel
    def k(a: Read, r: Write):
        r[0] = scale * math.floor(a[0]) {what} 1.0
    return k

def helper():
    @fl.func
    def double(x):
        return 2.0 * x {what} 0.0
    return double
"""
EDITS: dict[str, Callable[[str], str]] = {
    "a number": lambda text: text.replace("1.0", "9.0").replace("0.0", "5.0"),
    "an operator": lambda text: text.replace("+", "-"),
    "a name": lambda text: text.replace("scale * ", "a[0] * ").replace("2.0 * x", "x * x"),
    "lines above": lambda text: "\n\n" + text,
    "another function there": lambda text: text.replace("def k(", "def other(").replace("def double(", "def other("),
    "cut": lambda _: "",
}


@pytest.mark.parametrize("edit", EDITS)
def test_a_file_that_was_edited(edit: str, tmp_path: Path) -> None:
    """Its kernels and helpers that are made afterwards are refused: the new text is not what runs."""
    text, path = MAKES.format(what="+"), tmp_path / "made.py"
    module = module_of(path, text)
    assert result("cpu", module.make()) == 7.0
    path.write_text(HEAD + EDITS[edit](text))
    os.utime(path, (time.time() + 5, time.time() + 5))
    for make in (module.make, module.helper):
        with pytest.raises(KernelError):
            make()
    path.write_text(HEAD + text)
    os.utime(path, (time.time() + 10, time.time() + 10))
    assert result("cpu", module.make(4.0)) == 13.0


def test_the_text_of_another_file(tmp_path: Path) -> None:
    """Code that says it is from a file which has other lines."""
    path = tmp_path / "made.py"
    module_of(path, MAKES.format(what="+"))
    names: dict[str, Any] = {}
    exec(compile(HEAD + MAKES.format(what="-"), str(path), "exec"), names)
    with pytest.raises(KernelError, match="not the function that runs"):
        names["make"]()


def test_how_the_module_came_to_its_names(tmp_path: Path) -> None:
    """Modules that are imported, and those that are bound otherwise, are called by different code."""
    text = """
    import importlib
    mathematics = importlib.import_module("math")

    @fl.kernel
    def k(a: Read, r: Write):
        "What it is."
        r[0] = mathematics.sqrt(a[0] + 1.0) + math.sqrt(a[0] + 1.0) + fl.sqrt(4.0)
    """
    for device in ("reference", "cpu"):
        assert result(device, module_of(tmp_path / "made.py", text).k) == 6.0


def hundredfold(_: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(_)
    def inner(a: Read, r: Write):
        r[0] = 100.0 * a[0]

    return inner


@pytest.mark.parametrize("device", ["reference", "cpu"])
def test_wrapped(device: str) -> None:
    """What a decorator returns runs, whatever name it has."""

    @fl.kernel
    @hundredfold
    def k(a: Read, r: Write):
        r[0] = a[0]

    assert result(device, k) == 300.0


TAKES = """
Z = 2.0
W = (1.0, 4.0)
DEFAULT = [7.0]

@fl.func
def times(x):
    return Z * x

@fl.kernel
def k(a: Read, r: Write, *, c: Const[list[float]] = DEFAULT):
    r[0] = times(a[0]) + Z * W[1] + c[0] + math.pi - math.pi
"""


@pytest.mark.parametrize("device", ["reference", "cpu"])
def test_values_are_those_of_the_decoration(device: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of globals, tuples, functions, modules' attributes and defaults."""
    module = module_of(tmp_path / "made.py", TAKES)
    monkeypatch.setattr("math.pi", 5.0)
    vars(module).update(Z=50.0, W=(0.0, 0.0), times=lambda x: 0.0)
    module.DEFAULT[0] = 70.0
    assert result(device, module.k) == 6.0 + 8.0 + 7.0


@pytest.mark.parametrize("device", ["reference", "cpu"])
@pytest.mark.parametrize("kind", [list, np.array])
def test_values_of_closures_and_baked_lists(device: str, kind: Callable[..., Any]) -> None:
    """A closure's are those of the decoration, a list's those of the loop."""
    factor = 2.0

    @fl.kernel
    def k(a: Read, r: Write, *, c: Const[list[float]]):
        r[0] = factor * a[0] + c[0]

    factor = 9.0
    given = kind([1.0])
    ctx = fl.Context(device)
    s = ctx.set(1, "s")
    r = ctx.dat(s, [0.0], "r")
    loop = fl.Loop(k, s, ctx.dat(s, [3.0], "a"), r, c=given)
    given[0] = 100.0
    loop()
    assert float(r.read()[0]) == 7.0


def test_a_method_calls_a_function_of_its_own_name(load: Loader) -> None:
    module = load("""
from dataclasses import dataclass
@func
def twice(x):
    return 2.0 * x
@dataclass(frozen=True)
class Law:
    @func
    def twice(self, x):
        return twice(x) + 1.0
def made(z):
    @dataclass(frozen=True)
    class Inner:
        @func
        def twice(self, x):
            return twice(x) + z
    return Inner
""")
    assert module.Law().twice(3.0) == module.Law.twice.meaning(np.float64)(module.Law(), 3.0) == 7.0
    assert module.Law.twice.source.name == "twice"
    assert module.made(1.0).twice.source.name == "twice"
