"""Parts of the OpenCL device that need no OpenCL: choosing a device, reading logs, what is missing."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from textwrap import dedent
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from fluxloom.core.errors import DeviceUnavailable
from fluxloom.device.base import Resources
from fluxloom.device.opencl.platform import Candidate, candidates, choose, import_pyopencl
from fluxloom.device.opencl.program import keep_source, read_log, read_registers

FOUND = [
    Candidate(0, "Portable Computing Language", "pthread-EPYC", False, None),
    Candidate(1, "NVIDIA CUDA", "NVIDIA H200", True, None),
    Candidate(2, "NVIDIA CUDA", "NVIDIA RTX 2080", True, None),
]


@pytest.mark.parametrize(
    ("choice", "number"),
    [("", 1), ("0", 0), ("2", 2), ("epyc", 0), ("Portable", 0), ("nvidia", 1), ("2080", 2), ("RTX", 2)],
)
def test_choice(choice: str, number: int) -> None:
    assert choose(FOUND, choice).number == number


def test_choice_without_a_gpu() -> None:
    assert choose(FOUND[:1], "").number == 0


@pytest.mark.parametrize("choice", ["3", "radeon", "-1"])
def test_no_such_device(choice: str) -> None:
    with pytest.raises(DeviceUnavailable, match="no OpenCL device matches") as caught:
        choose(FOUND, choice)
    for words in (repr(choice), "0: pthread-EPYC (Portable Computing Language)", "2: NVIDIA RTX 2080 (NVIDIA CUDA)"):
        assert words in str(caught.value)


# ------------------------------------------------------------------------------------- what is missing


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Undo what is set in the environment."""
    for name in ("POCL_CACHE_DIR", "PYOPENCL_NO_CACHE"):
        monkeypatch.setenv(name, os.environ.get(name, ""))
        if not os.environ[name]:
            monkeypatch.delenv(name)


class FakeError(Exception):
    """Stands for ``pyopencl.Error``."""


def fake_opencl(*platforms: Any) -> Any:
    """Return what looks like pyopencl with these platforms; an exception is raised in place of a list."""

    def get_platforms() -> list[Any]:
        if platforms and isinstance(platforms[0], Exception):
            raise platforms[0]
        return list(platforms)

    return SimpleNamespace(get_platforms=get_platforms, Error=FakeError, device_type=SimpleNamespace(CPU=2, GPU=4))


def fake_platform(name: str, *devices: Any) -> Any:
    def get_devices() -> list[Any]:
        if devices and isinstance(devices[0], Exception):
            raise devices[0]
        return list(devices)

    return SimpleNamespace(name=name, get_devices=get_devices)


def test_candidates_are_numbered_over_all_platforms() -> None:
    first = fake_platform("One ", SimpleNamespace(name=" a ", type=2), SimpleNamespace(name="b", type=4))
    broken = fake_platform("Broken", FakeError("DEVICE_NOT_FOUND"))
    last = fake_platform("Two", SimpleNamespace(name="c", type=4))
    found = candidates(fake_opencl(first, broken, last))
    assert [str(one) for one in found] == ["0: a (One)", "1: b (One)", "2: c (Two)"]
    assert [one.gpu for one in found] == [False, True, True]


@pytest.mark.parametrize("platforms", [(), (FakeError("PLATFORM_NOT_FOUND_KHR"),)])
def test_no_platform(platforms: tuple[Any, ...]) -> None:
    with pytest.raises(DeviceUnavailable, match="apt install pocl-opencl-icd"):
        candidates(fake_opencl(*platforms))


def test_platform_without_devices() -> None:
    with pytest.raises(DeviceUnavailable, match=r"found Portable .* POCL_CACHE_DIR"):
        candidates(fake_opencl(fake_platform("Portable Computing Language")))


def test_pyopencl_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyopencl", None)
    with pytest.raises(DeviceUnavailable, match=r"fluxloom\[opencl\]"):
        import_pyopencl()


def test_pyopencl_is_broken(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "pyopencl.py").write_text("raise ImportError('libOpenCL.so.1: cannot open shared object file')")
    monkeypatch.delitem(sys.modules, "pyopencl", raising=False)
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(DeviceUnavailable, match=r"cannot be imported \(libOpenCL\.so\.1"):
        import_pyopencl()


@pytest.mark.parametrize("writable", [True, False])
def test_folder_for_pocl(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, writable: bool) -> None:
    """PoCL is given a folder of ours only where its own cannot be made; pyopencl then keeps nothing."""
    monkeypatch.setitem(sys.modules, "pyopencl", ModuleType("pyopencl"))
    for name in ("POCL_CACHE_DIR", "PYOPENCL_NO_CACHE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("FLUXLOOM_CACHE", str(tmp_path / "ours"))
    base = tmp_path / "base"
    if writable:
        base.mkdir()
    else:
        base.write_text("a file is no folder")
    monkeypatch.setenv("XDG_CACHE_HOME", str(base))
    import_pyopencl()
    assert os.environ.get("POCL_CACHE_DIR") == (None if writable else str(tmp_path / "ours" / "pocl"))
    assert ("PYOPENCL_NO_CACHE" in os.environ) is not writable


# ------------------------------------------------------------------------------------------------ logs

SOURCE = "__kernel void f(__global double *x)\n{\n    x[0] = foo;\n}"


def test_log_without_source_lines() -> None:
    """PoCL names places; the lines are added."""
    report = dedent("""\
        clBuildProgram failed: BUILD_PROGRAM_FAILURE - clBuildProgram failed: BUILD_PROGRAM_FAILURE

        Build on <pyopencl.Device 'pthread' on 'Portable Computing Language' at 0x55a8>:

        error: /a/b/tempfile_1.cl:3:12: use of undeclared identifier 'foo'
        Device pthread failed to build the program

        (options: -cl-std=CL1.2)""")
    assert read_log(report, SOURCE).splitlines() == [
        "line 3, column 12: error: use of undeclared identifier 'foo'",
        "        x[0] = foo;",
        "               ^",
        "Device pthread failed to build the program",
    ]


def test_log_with_source_lines() -> None:
    """Where the log shows the line already it is not shown twice."""
    report = "<kernel>:3:12: fatal error: unknown 'foo'\n    x[0] = foo;\n           ^\n<kernel>:9:1: warning: end"
    assert read_log(report, SOURCE).splitlines() == [
        "line 3, column 12: error: unknown 'foo'",
        "    x[0] = foo;",
        "           ^",
        "line 9, column 1: warning: end",
    ]


def test_long_log() -> None:
    lines = read_log("\n".join(f"remark {k}" for k in range(100)), SOURCE).splitlines()
    assert len(lines) == 41
    assert lines[-1] == "... 60 more lines"


def test_registers() -> None:
    log = dedent("""\
        ptxas info    : 0 bytes gmem
        ptxas info    : Compiling entry function 'flux' for 'sm_90'
        ptxas info    : Function properties for flux
        ptxas         .     24 bytes stack frame, 20 bytes spill stores, 28 bytes spill loads
        ptxas info    : Used 62 registers, used 1 barriers, 2048 bytes smem, 416 bytes cmem[0]
        ptxas info    : Compiling entry function 'update' for 'sm_90'
        ptxas info    : Function properties for update
        ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
        ptxas info    : Used 18 registers, 376 bytes cmem[0]
        ptxas info    : Function properties for helper
            8 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads""")
    assert read_registers(log) == {"flux": Resources(62, 24, 2048), "update": Resources(18, 0, 0)}
    assert read_registers("") == {}


def test_source_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLUXLOOM_CACHE", str(tmp_path))
    path = Path(keep_source(SOURCE, "a loop/of mine"))
    assert path.parent == tmp_path
    assert path.name.startswith("a_loop_of_mine-")
    assert path.read_text() == SOURCE
