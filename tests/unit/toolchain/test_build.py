"""Compiling, the cache, and what goes wrong with them."""

from __future__ import annotations

import ctypes
import importlib
import logging
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from fluxloom.core.errors import CompileError, FluxloomError
from fluxloom.device.cpu import CpuDevice
from fluxloom.toolchain import find_compiler, load_library, open_cache, vectorised_lines
from fluxloom.toolchain.build import nameless
from fluxloom.toolchain.trust import seal, seal_key

ROOT = Path(__file__).resolve().parents[3]
TWICE = "int twice(int x) { return 2 * x; }\n"
AXPY = """\
void axpy(double *restrict y, const double *restrict x, double a, long n)
{
    for (long i = 0; i < n; i++)
        y[i] += a * x[i];
}
void chain(double *x, long n)
{
    for (long i = 1; i < n; i++)
        x[i] += x[i - 1] * x[i];
}
"""


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FLUXLOOM_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_compiles_once(own_cache: Path) -> None:
    first = load_library(TWICE, "twice")
    second = load_library(TWICE, "twice")
    assert (first.compiled, second.compiled) == (True, False)
    assert first.path == second.path
    assert first.digest == second.digest
    assert first.path.parent == own_cache
    assert first.source_path.read_text() == TWICE
    assert first.seconds > 0.0
    assert first.twice(21) == 42
    assert second.function("twice", [ctypes.c_int], ctypes.c_int)(21) == 42
    assert not [path for path in own_cache.iterdir() if path.name.startswith(".twice")]


def test_another_name_is_no_other_code(own_cache: Path) -> None:
    """The same source and flags are compiled once whatever they are called, with the report and without."""
    first = load_library(TWICE, "twice", report=True)
    for report in (True, False):
        other = load_library(TWICE, "double", report=report)
        assert (other.compiled, other.path) == (False, first.path)
        assert other.twice(4) == 8
    first.path.write_bytes(b"damaged")
    again = load_library(TWICE, "thrice")
    assert (again.compiled, again.twice(3)) == (True, 6)
    assert sorted(path.stem.split("-")[0] for path in own_cache.glob("*.so")) == ["thrice", "twice"]
    assert load_library(AXPY, "twice").compiled


def test_names_are_no_other_code(own_cache: Path) -> None:
    """Marked names may differ, in whatever alphabetical order; what a text computes may not."""
    text = "/* {0}: direct */\nint fl_loop_{0}(int p0_{1}, int p1_{2}) {{ int {3}_ = p0_{1}; return {3}_ - p1_{2}; }}\n"
    first = load_library(text.format("minus", "a", "b", "c"), "minus")
    other = load_library(text.format("apart", "z", "y", "x"), "apart", report=False)
    assert (first.compiled, other.compiled, other.path) == (True, False, first.path)
    assert other.function("fl_loop_apart", [ctypes.c_int] * 2, ctypes.c_int)(5, 3) == other.fl_loop_apart(5, 3) == 2
    with pytest.raises(FluxloomError, match="defines no function 'fl_loop_plus'"):
        other.function("fl_loop_plus")
    swapped = text.format("turned", "a", "b", "c").replace("c_ - p1_b", "p1_b - c_")
    assert load_library(swapped, "turned").fl_loop_turned(5, 3) == -2
    pairs = ("M_PI", "M_E"), ("isnan(x_)", "isinf(x_)"), ("as_double(x_)", "as_long(x_)"), ("x_ - y_", "y_ - x_")
    for one, two in pairs:
        body = "int fl_loop_f(double x_, double y_) {{ return {} + x_; }}"
        assert nameless(body.format(one))[0] != nameless(body.format(two))[0]


def test_functions_are_apart() -> None:
    library = load_library(TWICE, "twice")
    one = library.function("twice", [ctypes.c_int], ctypes.c_int)
    two = library.function("twice", [ctypes.c_int], ctypes.c_short)
    assert one.restype is ctypes.c_int
    assert two.restype is ctypes.c_short
    with pytest.raises(FluxloomError, match="defines no function 'thrice'"):
        library.function("thrice")
    with pytest.raises(AttributeError):
        library.thrice(1)


def test_digest_depends_on_source_flags_and_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    base = load_library(TWICE, "twice")
    others = [
        load_library(TWICE + " ", "twice"),
        load_library(TWICE, "twice", contract=False),
        load_library(TWICE, "twice", flags=("-O1", "-shared", "-fPIC")),
    ]
    monkeypatch.setenv("FLUXLOOM_CC", f"{find_compiler().command[0]} -DA")
    others.append(load_library(TWICE, "twice"))
    assert len({base.digest, *(other.digest for other in others)}) == 5


def test_compile_error_keeps_the_source() -> None:
    broken = "int f(void) { return g(); }\n" + "".join(f"int x{i} = y{i};\n" for i in range(100))
    with pytest.raises(CompileError) as caught:
        load_library(broken, "broken")
    error = caught.value
    assert Path(error.source_path).read_text() == broken
    assert "'broken'" in str(error)
    assert "more lines" in error.log
    assert len(error.log.splitlines()) == 41


def test_undefined_symbol_is_a_compile_error() -> None:
    with pytest.raises(CompileError, match="nowhere"):
        load_library("void nowhere(void); void f(void) { nowhere(); }", "undefined")


@pytest.mark.parametrize("damage", ["empty", "text", "truncated", "flipped", "sealed text"])
def test_damaged_entry_is_built_again(damage: str) -> None:
    program = f"from fluxloom.toolchain import load_library as f; print(f({TWICE!r}, 'twice-{damage}').path)"
    path = Path(subprocess.check_output([sys.executable, "-c", program], cwd=ROOT, text=True).strip())
    data = path.read_bytes()
    content = {"empty": b"", "text": b"no library", "truncated": data[: len(data) // 2]}.get(damage, b"")
    if damage == "flipped":
        content = data[:500] + bytes([data[500] ^ 255]) + data[501:]
    if damage == "sealed text":
        content = seal(seal_key(path.parent), path.name, b"no library")
    path.write_bytes(content)
    again = load_library(TWICE, f"twice-{damage}")
    assert again.compiled
    assert again.twice(4) == 8
    assert path.read_bytes()[-40:] == data[-40:]


def test_missing_source_is_written_again() -> None:
    library = load_library(TWICE, "twice")
    library.source_path.unlink()
    assert load_library(TWICE, "twice").source_path.read_text() == TWICE


def test_many_processes_build_one_library(own_cache: Path) -> None:
    program = (
        "from fluxloom.toolchain import load_library\n"
        f"library = load_library({TWICE!r}, 'twice')\n"
        "print(library.compiled, library.twice(21))"
    )
    command = [sys.executable, "-c", program]
    running = [subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) for _ in range(8)]
    printed = [process.communicate(timeout=120)[0].split() for process in running]
    assert [process.returncode for process in running] == [0] * 8
    assert sorted(printed) == [["False", "42"]] * 7 + [["True", "42"]]
    assert len(list(own_cache.glob("*.so"))) == 1


def test_many_threads_build_libraries() -> None:
    find_compiler()
    sources = [f"int value(void) {{ return {i % 4}; }}" for i in range(16)]
    with ThreadPoolExecutor(8) as pool:
        built = list(pool.map(lambda source: load_library(source, "value"), sources))
    assert [library.value() for library in built] == [i % 4 for i in range(16)]
    assert sum(library.compiled for library in built) == 4


def test_cache_that_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("in the way")
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv("FLUXLOOM_CACHE", str(tmp_path / "file" / "cache"))
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    monkeypatch.setattr(tempfile, "tempdir", None)
    with caplog.at_level(logging.WARNING, logger="fluxloom"):
        library = load_library(TWICE, "twice")
        load_library(TWICE, "twice")
    assert library.twice(2) == 4
    assert library.path.parent == tmp_path / "temporary" / f"fluxloom-{os.getuid()}" / "cache"
    assert caplog.text.count("set FLUXLOOM_CACHE") == 1


def test_read_only_cache_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    load_library(TWICE, "twice")
    (tmp_path / "cache").chmod(0o555)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    module = importlib.import_module("fluxloom.toolchain.cache")
    real = module._unusable
    monkeypatch.setattr(module, "_unusable", lambda f: "read-only" if f == tmp_path / "cache" else real(f))
    module._open.cache_clear()  # root may write anywhere, so the refusal is acted
    try:
        assert not load_library(TWICE, "twice").compiled
        assert not load_library(TWICE, "another").compiled
        assert load_library(AXPY, "axpy").compiled
    finally:
        module._open.cache_clear()
        (tmp_path / "cache").chmod(0o755)


def test_private_folder_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLUXLOOM_CACHE", "/proc/fluxloom")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    folder = tmp_path / f"fluxloom-{os.getuid()}"
    folder.mkdir()
    folder.chmod(0o777)
    monkeypatch.setattr(importlib.import_module("fluxloom.toolchain.cache"), "_OTHER_PLACES", ())
    with pytest.raises(FluxloomError, match="FLUXLOOM_CACHE"):
        open_cache()


def test_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own_cache: Path) -> None:
    real = find_compiler().command[0]
    full = tmp_path / "full-cc"
    full.write_text(f"""#!/bin/sh
for a in "$@"; do
    [ "$a" = -shared ] && echo "ld: final link failed: No space left on device" >&2 && exit 1
done
exec {real} "$@"
""")
    full.chmod(0o755)
    monkeypatch.setenv("FLUXLOOM_CC", str(full))
    with pytest.raises(FluxloomError, match=r"No space left on device.*FLUXLOOM_CACHE") as caught:
        load_library(TWICE, "twice")
    assert str(own_cache) in str(caught.value)


def test_write_fails(monkeypatch: pytest.MonkeyPatch, own_cache: Path) -> None:
    cache = open_cache()

    def full(*_given: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(FluxloomError, match="No space left on device; free some space there"):
        cache.write("a.c", b"text")
    assert not list(own_cache.glob("*a*c"))


def test_names_of_files_are_harmless(own_cache: Path) -> None:
    library = load_library(TWICE, "../a b/ü")
    assert library.path.parent == own_cache
    assert library.twice(1) == 2


@pytest.mark.usefixtures("optimised")
def test_vectorisation_report() -> None:
    plain = load_library(AXPY, "axpy")
    assert plain.report == ""
    library = load_library(AXPY, "axpy", report=True)
    again = load_library(AXPY, "axpy", report=True)
    assert (library.compiled, again.compiled) == (True, False)
    assert again.report == library.report
    done = vectorised_lines(library.report)
    assert 3 in done
    assert "vectorized" in done[3]
    assert 8 not in done


def test_reports_of_both_families() -> None:
    gcc = (
        "a/b.c:5:3: optimized: loop vectorized using 32 byte vectors\n"
        "a/b.c:5:3: optimized: loop vectorized using 64 byte vectors\n"
        "a/b.c:7:3: optimized: basic block part vectorized using 64 byte vectors\n"
        "a/b.c:5:9: missed: statement clobbers memory\n"
        "a/b.c:9:1: missed: couldn't vectorize loop\n"
    )
    assert vectorised_lines(gcc) == {
        5: "loop vectorized using 64 byte vectors",
        7: "basic block part vectorized using 64 byte vectors",
    }
    clang = (
        "b.c:1:51: remark: vectorized loop (vectorization width: 8, interleaved count: 4) "
        "[-Rpass=loop-vectorize]\n"
        "    1 | for ...\n      |  ^\n"
        "b.c:2:26: remark: loop not vectorized: because [-Rpass-analysis=loop-vectorize]\n"
    )
    assert vectorised_lines(clang) == {1: "vectorized loop (vectorization width: 8, interleaved count: 4)"}


def test_import_is_light() -> None:
    program = (
        "import sys, types\n"
        "sys.path.insert(0, '.')\n"
        "sys.modules['fluxloom'] = types.ModuleType('fluxloom')\n"  # without what the facade imports
        "sys.modules['fluxloom'].__path__ = ['fluxloom']\n"
        "import fluxloom.toolchain\n"
        "print({'numpy', 'subprocess', 'tempfile', 'shutil'} & set(sys.modules))"
    )
    text = subprocess.check_output([sys.executable, "-S", "-c", program], cwd=ROOT, text=True)
    assert text.strip() == "set()"


def test_a_function_that_takes_long_to_compile_is_told(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Above 8 000 lines the compiler is asked for less; a unit of many functions of usual length is as ever."""
    monkeypatch.delenv("FLUXLOOM_CFLAGS", raising=False)
    device, line = CpuDevice(threads=1), "    x[0] += 1.0;\n"
    many = "".join(f"void f{k}(double *x) {{\n{line * 30}}}\n" for k in range(300))
    for text, level in ((many, "-O3"), (f"void f0(double *x) {{\n{line * 8100}}}\n", "-O1")):
        caplog.clear()
        unit = device.compile(text, ["f0"], "counted")
        assert [flag for flag in unit.library.flags if flag.startswith("-O")][-1] == level
        assert ("this takes a minute" in caplog.text) == (level == "-O1")
        caplog.clear()
        assert not device.compile(text, ["f0"], "counted").compiled
        assert not caplog.text
