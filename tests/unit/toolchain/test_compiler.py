"""Finding a compiler and its flags."""

from __future__ import annotations

import importlib.util
import json
import logging
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fluxloom.core.errors import DeviceUnavailable, FluxloomError
from fluxloom.toolchain import Compiler, compile_flags, find_compiler, load_library, open_cache, report_flags

SUM = """
#include <stdint.h>
double total(const double *x, int64_t n)
{
    double s = 0.0;
    #pragma omp parallel for reduction(+ : s)
    for (int64_t i = 0; i < n; i++)
        s += x[i];
    return s;
}
"""
GCC = Compiler(("gcc",), "gcc", "gcc", "12.2", True, ("-march=native",), True, "t")


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FLUXLOOM_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("FLUXLOOM_CC", raising=False)
    monkeypatch.delenv("CC", raising=False)
    return tmp_path / "cache"


def no_ziglang(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name, _package=None: None)


def script(path: Path, text: str) -> Path:
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(0o755)
    return path


def test_finds_a_compiler_once(own_cache: Path) -> None:
    compiler = find_compiler()
    assert compiler.name in ("gcc", "clang", "zig")
    assert Path(compiler.command[0]).is_absolute()
    assert len(compiler.target) == 32
    assert find_compiler() is compiler
    (record,) = own_cache.glob("compiler-*.json")
    kept = open_cache().entry(record.name)
    assert kept is not None
    assert json.loads(kept.content)["compiler"]["version"] == compiler.version
    assert not list(own_cache.glob(".trial*"))


def test_what_was_learnt_is_read_back_and_damage_is_harmless(own_cache: Path) -> None:
    program = (
        "from fluxloom.toolchain import compiler as c; c._examine = lambda *a: print('examined') or exit();"
        "print(c.find_compiler().version)"
    )
    compiler = find_compiler()
    command = [sys.executable, "-c", program]
    root = Path(__file__).resolve().parents[3]
    assert subprocess.check_output(command, cwd=root, text=True).strip() == compiler.version
    (record,) = own_cache.glob("compiler-*.json")
    whole = record.read_bytes()
    for damage in (b"", b"{}", b"[1]", whole[:50], whole.replace(b"-fPIC", b"-fpic").replace(b"native", b"Native")):
        record.write_bytes(damage)
        assert subprocess.check_output(command, cwd=root, text=True).strip() == "examined"


def test_no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    no_ziglang(monkeypatch)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(
        DeviceUnavailable, match=r"apt install gcc.*pip install fluxloom\[compiler\].*FLUXLOOM_CC"
    ):
        load_library(SUM, "sum")


def test_order_names_the_compiler_and_its_arguments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = find_compiler()
    wrapper = script(tmp_path / "my-cc", f'exec {" ".join(real.command)} "$@"\n')
    monkeypatch.setenv("FLUXLOOM_CC", f"{wrapper} -DANSWER=42")
    compiler = find_compiler()
    assert compiler.command == (str(wrapper), "-DANSWER=42")
    assert "ANSWER" in compiler.identity
    assert load_library("int answer(void) { return ANSWER; }", "answer").answer() == 42
    monkeypatch.setenv("FLUXLOOM_CC", f"{wrapper} -DANSWER=43")
    assert load_library("int answer(void) { return ANSWER; }", "answer").answer() == 43


def test_order_is_not_replaced_by_another_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLUXLOOM_CC", "no-such-compiler")
    with pytest.raises(DeviceUnavailable, match="FLUXLOOM_CC='no-such-compiler': no such program"):
        find_compiler()
    monkeypatch.setenv("FLUXLOOM_CC", str(script(tmp_path / "broken", "echo it is broken >&2; exit 1\n")))
    with pytest.raises(DeviceUnavailable, match="cannot compile a C program: it is broken"):
        find_compiler()


def test_suggestion_is_tried_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    real = find_compiler()
    wrapper = script(tmp_path / "my-cc", f'exec {" ".join(real.command)} "$@"\n')
    monkeypatch.setenv("CC", str(wrapper))
    assert find_compiler().command == (str(wrapper),)
    monkeypatch.setenv("CC", str(script(tmp_path / "broken", "exit 1\n")))
    with caplog.at_level(logging.WARNING, logger="fluxloom"):
        assert find_compiler().command == real.command
    assert "broken does not work" in caplog.text


def test_without_openmp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = find_compiler()
    text = 'for a in "$@"; do [ "$a" = -fopenmp ] && exit 1; done\n' + f'exec {" ".join(real.command)} "$@"\n'
    monkeypatch.setenv("FLUXLOOM_CC", str(script(tmp_path / "serial-cc", text)))
    compiler = find_compiler()
    assert not compiler.openmp
    assert "-fopenmp" not in compile_flags(compiler)
    library = load_library(SUM, "sum")
    x = np.arange(1000.0)
    assert call_sum(library, x) == x.sum()


def call_sum(library: object, x: np.ndarray) -> float:
    from ctypes import c_double, c_int64, c_void_p

    total = library.function("total", (c_void_p, c_int64), c_double)  # type: ignore[attr-defined]
    return total(x.ctypes.data, x.size)


@pytest.mark.usefixtures("optimised")
def test_zig(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    pytest.importorskip("ziglang")
    monkeypatch.setenv("PATH", "")
    with caplog.at_level(logging.WARNING, logger="fluxloom"):
        compiler = find_compiler()
    assert (compiler.name, compiler.family) == ("zig", "clang")
    assert compiler.openmp or "one thread" in caplog.text
    x = np.arange(1000.0)
    library = load_library(SUM, "sum", report=True)
    assert call_sum(library, x) == x.sum()
    assert library.report


@pytest.mark.usefixtures("optimised")
def test_flags() -> None:
    flags = compile_flags(GCC)
    assert {"-O3", "-march=native", "-std=gnu11", "-fPIC", "-shared", "-fopenmp", "-ffp-contract=fast"} < set(
        flags
    )
    assert "-ffp-contract=off" in compile_flags(GCC, contract=False)
    assert "-fopenmp" not in compile_flags(GCC, openmp=False)
    assert "-mprefer-vector-width=512" in compile_flags(GCC, vector_width=512)
    assert compile_flags(replace(GCC, vector_width=False), vector_width=512) == flags
    assert compile_flags(GCC, signed_zeros=False, extra=("-g",))[-1] == "-g"
    assert "-fno-signed-zeros" in compile_flags(GCC, signed_zeros=False)
    assert "-fno-sanitize=undefined" in compile_flags(replace(GCC, name="zig", family="clang"))
    with pytest.raises(FluxloomError, match="0, 128, 256, 512"):
        compile_flags(GCC, vector_width=100)
    for contract in (True, False):
        assert not {
            "-ffast-math",
            "-Ofast",
            "-fassociative-math",
            "-ffinite-math-only",
            "-fno-signed-zeros",
        } & set(compile_flags(GCC, contract=contract))


def test_flags_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLUXLOOM_CFLAGS", "-O1 -DNOTE='two words'")
    assert compile_flags(GCC, extra=("-g",))[-3:] == ("-O1", "-DNOTE=two words", "-g")
    monkeypatch.setenv("FLUXLOOM_CFLAGS", "-O1 'open")
    with pytest.raises(FluxloomError, match=r"FLUXLOOM_CFLAGS=.*No closing quotation; close the quotation or unset it"):
        compile_flags(GCC)


def test_report_flags() -> None:
    assert report_flags(GCC, "/x") == ("-fopt-info-vec-optimized-missed=/x",)
    assert report_flags(replace(GCC, family="clang"), "/x")[0] == "-Rpass=loop-vectorize"


def test_contraction_can_be_switched_off() -> None:
    source = "double f(double a, double b, double c) { return a * b + c; }"
    a = 1.0 + 2.0**-30
    exact = load_library(source, "f", contract=False)
    exact.f.restype, exact.f.argtypes = double_type(), [double_type()] * 3
    assert exact.f(a, a, -1.0) == a * a - 1.0


def double_type() -> type:
    from ctypes import c_double

    return c_double


def test_cache_of_this_process_is_used() -> None:
    assert open_cache() is open_cache()
