"""Limits of kernels are told, with the line and what to do; what only looks like one is none."""

from __future__ import annotations

import math
import os
import sys
from pathlib import Path

import numpy as np
import pytest

import fluxloom as fl
from fluxloom import RW, Read, Write
from fluxloom.core.errors import FluxloomError, KernelError
from tests.conformance.harness import MARKS
from tests.unit.kernel.conftest import load_module

DEVICES = ["reference", "cpu", pytest.param("opencl", marks=MARKS["opencl"]), pytest.param("cuda", marks=MARKS["cuda"])]
HEAD = "@kernel\ndef k(a: Read, r: Write):\n"
N = 300
BRANCHES = "if a[0] < -1000.0:\n        t = -1.0\n" + "".join(
    f"    elif a[0] < @{i}.5:\n        t = {i}.0\n" for i in range(N)
)
DEEP = {
    "a sum": ("r[0] = " + " + ".join(f"{i}.0 * a[0]" for i in range(N)), 2.0 * N * (N - 1) / 2),
    "brackets": ("r[0] = " + "(a[0] + " * 150 + "1.0" + ")" * 150, 301.0),
    "elif": (f"{BRANCHES.replace('@', '')}    else:\n        t = -2.0\n    r[0] = t", 2.0),
    "the last else": (f"{BRANCHES.replace('@', '-')}    else:\n        t = -2.0\n    r[0] = t", -2.0),
    "max": ("r[0] = max(" + ", ".join(f"a[0] - {i}.0" for i in range(N)) + ")", 2.0),
    "or": ("r[0] = 1.0 if " + " or ".join(f"a[0] == {i}.0" for i in range(N)) + " else 0.0", 1.0),
    "and": ("r[0] = 1.0 if " + " and ".join(f"a[0] != {i}.0" for i in range(N)) + " else 0.0", 0.0),
    "if else": ("r[0] = " + "".join(f"{i}.0 if a[0] < {i}.5 else " for i in range(N)) + "-1.0", 2.0),
}  # fmt: skip


@pytest.mark.parametrize(
    ("device", "what"),
    [pytest.param(d, what, marks=[*MARKS.get(d, []), *([pytest.mark.long] if d == "opencl" and what != "elif" else [])])
     for d in ("reference", "cpu", "opencl", "cuda") for what in DEEP],
)  # fmt: skip
def test_deep(device: str, what: str, tmp_path: Path) -> None:
    """As deep as Python takes it."""
    text, want = DEEP[what]
    kernel = load_module(tmp_path, f"{HEAD}    {text}\n", "deep").k
    ctx = fl.Context(device, check=what in ("or", "and"), schedule=fl.Schedule(lanes=1))
    s = ctx.set(1, "s")
    r = ctx.dat(s, [0.0], "r")
    limit = sys.getrecursionlimit()
    fl.Loop(kernel, s, ctx.dat(s, [2.0], "a"), r)()
    assert r.read().tolist() == [want]
    assert sys.getrecursionlimit() == limit


@fl.kernel
def large(a: Read, r: Write):
    t = fl.zeros(140000)
    for i in fl.rolled(140000):
        t[i] = a[0] + i
    r[0] = t[7]


@pytest.mark.parametrize("device", DEVICES)
def test_large_local_arrays(device: str) -> None:
    """They lie on the stacks of threads."""
    ctx = fl.Context(device)
    s = ctx.set(1, "s")
    with pytest.raises(KernelError, match=r"'t' of shape \(140000,\)") as caught:
        fl.Loop(large, s, ctx.dat(s, [1.0]), ctx.dat(s))
    assert "make it a dat" in str(caught.value)
    assert "t = fl.zeros(140000)" in str(caught.value)


@pytest.mark.parametrize("device", ["reference", "cpu"])
@pytest.mark.parametrize("name", ["name", "schedule", "kernel", "over", "self", "arguments"])
def test_names_of_arguments_of_loop(device: str, name: str, tmp_path: Path) -> None:
    """A constant may have the name of an argument of Loop: its value is that of the constant."""
    text = f"@kernel\ndef k(a: Read, r: Write, *, {name}: float):\n    r[0] = {name} * a[0]\n"
    kernel = load_module(tmp_path, text, "names").k
    ctx = fl.Context(device)
    s = ctx.set(1, "s")
    r = ctx.dat(s, [0.0], "r")
    loop = fl.Loop(kernel, s, ctx.dat(s, [2.0], "a"), r, **{name: 5.0})
    loop()
    assert r.read().tolist() == [10.0]
    loop(**{name: 6.0})
    assert r.read().tolist() == [12.0]
    assert loop.name == "k"


@fl.kernel
def doubled(u: RW):
    u[0] = 2.0 * u[0]


@fl.kernel
def total(u: Read, g: fl.Inc):
    g[0] += u[0]


CHILD = """
import os, sys
import numpy as np
import fluxloom as fl
from fluxloom.core.errors import FluxloomError
from tests.unit.kernel.test_limits import doubled, total

def work():
    ctx = fl.Context(sys.argv[1], **({"threads": 2} if sys.argv[1] == "cpu" else {}))
    s = ctx.set(20000, "s")
    u, g = ctx.dat(s, np.ones(20000), "u"), ctx.scalar(0.0, "g")
    loops = [fl.Loop(doubled, s, u), fl.Loop(total, s, u, g)]
    for loop in loops:
        loop()
    return loops, g

loops, g = work()
assert g.value == 40000.0
child = os.fork()
if not child:
    try:
        if sys.argv[2] == "new":
            loops, g = work()
        else:
            g.value = 0.0
            loops[1]()
        print("child", g.value)
    except FluxloomError as error:
        print("child", error)
    sys.stdout.flush()
    os._exit(0)
os.waitpid(child, 0)
g.value = 0.0
loops[1]()
print("parent", g.value)
"""


@pytest.mark.parametrize("device", ["cpu", pytest.param("opencl", marks=MARKS["opencl"])])
@pytest.mark.parametrize("mode", ["new", "inherited"])
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork() here")
def test_fork(device: str, mode: str) -> None:
    """A child works, or ends in an error that says what to do; its parent goes on."""
    import subprocess

    root = Path(__file__).resolve().parents[3]
    done = subprocess.run(
        [sys.executable, "-c", CHILD, device, mode], capture_output=True, text=True, timeout=60, cwd=root, check=False
    )
    assert "parent 40000.0" in done.stdout, done.stderr
    wanted = "child 40000.0" if device == "cpu" else "child this process was forked from one that uses OpenCL"
    assert wanted in done.stdout, done.stdout


def run_doubled() -> None:
    ctx = fl.Context("cpu")
    s = ctx.set(1, "s")
    fl.Loop(doubled, s, ctx.dat(s, [1.0]))()


@pytest.mark.parametrize("variable", ["FLUXLOOM_CFLAGS", "FLUXLOOM_CC"])
@pytest.mark.parametrize("flag", ["-ffast-math", "-Ofast", "-ffinite-math-only", "-fno-signed-zeros"])
def test_flags_that_change_values(variable: str, flag: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """They would change the whole process: small numbers become zero."""
    monkeypatch.setenv(variable, f"-O1 {flag}" if variable == "FLUXLOOM_CFLAGS" else f"cc {flag}")
    with pytest.raises(FluxloomError, match=f"{variable}.* has {flag}"):
        run_doubled()
    assert sys.float_info.min / 2 != 0.0


@pytest.mark.opencl
def test_options_that_change_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYOPENCL_BUILD_OPTIONS", "-cl-fast-relaxed-math")
    ctx = fl.Context("opencl")
    s = ctx.set(1, "s")
    with pytest.raises(FluxloomError, match="PYOPENCL_BUILD_OPTIONS has -cl-fast-relaxed-math"):
        fl.Loop(doubled, s, ctx.dat(s, [math.pi]))()


@pytest.mark.parametrize("device", DEVICES)
def test_maps_go_with_their_sets(device: str) -> None:
    """What plans hold of maps is freed when the set from which they lead is."""
    import gc
    import weakref

    ctx = fl.Context(device)
    nodes = ctx.set(1000, "nodes")
    r, alive = ctx.dat(nodes, np.zeros(1000), "r"), []
    for _ in range(3):
        edges = ctx.set(1000, "edges")
        m = ctx.map(edges, nodes, np.stack([np.arange(1000), np.roll(np.arange(1000), 1)], 1), "m")
        fl.Loop(scatter, edges, ctx.dat(edges, np.ones(1000), "w"), r[m])()
        alive.append(weakref.ref(m))
        del edges, m
    gc.collect()
    assert sum(found() is not None for found in alive) == 0
    np.testing.assert_array_equal(r.read(), np.zeros(1000))


@fl.kernel
def scatter(w: Read, r: fl.Inc):
    r[0] += w[0]
    r[1] -= w[0]
