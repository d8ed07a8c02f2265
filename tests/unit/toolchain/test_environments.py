"""Where nothing may be executed, nobody has a home, and compilers that change after they were looked at."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from fluxloom.core.errors import FluxloomError
from fluxloom.toolchain import cache, find_compiler, load_library, open_cache
from fluxloom.toolchain import compiler as module

ROOT = Path(__file__).resolve().parents[3]
TWICE = "int twice(int x) { return 2 * x; }\n"


@pytest.fixture(autouse=True)
def fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("FLUXLOOM_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("FLUXLOOM_CC", raising=False)
    monkeypatch.delenv("CC", raising=False)
    cache._open.cache_clear()
    yield
    cache._open.cache_clear()


@pytest.fixture
def noexec(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Return a function that forbids to execute what lies below some folders."""

    def forbid(*folders: Path) -> None:
        def look(path: object) -> SimpleNamespace:
            inside = any(Path(str(path)).is_relative_to(folder) for folder in folders)
            return SimpleNamespace(f_flag=os.ST_NOEXEC if inside else 0)

        monkeypatch.setattr(os, "statvfs", look)

    return forbid


def temporary(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return folder


def test_a_cache_that_forbids_executing_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, noexec: Callable[..., None], caplog: pytest.LogCaptureFixture
) -> None:
    place = temporary(tmp_path / "temporary", monkeypatch)
    noexec(tmp_path / "cache")
    with caplog.at_level(logging.WARNING, logger="fluxloom"):
        library = load_library(TWICE, "twice")
    assert library.twice(2) == 4
    assert library.path.parent == place / f"fluxloom-{os.getuid()}" / "cache"
    assert "forbids executing, noexec" in caplog.text
    assert list((tmp_path / "cache").iterdir()) == []


def test_so_is_a_temporary_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, noexec: Callable[..., None]
) -> None:
    place, home = temporary(tmp_path / "temporary", monkeypatch), tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    noexec(tmp_path / "cache", place, Path("/tmp/fluxloom-0"), Path("/tmp/fluxloom-" + str(os.getuid())),
           Path("/var/tmp"), Path("/dev/shm"))  # fmt: skip
    assert open_cache().folder == home / ".cache" / f"fluxloom-{os.getuid()}" / "cache"
    noexec(Path("/"))
    cache._open.cache_clear()
    with pytest.raises(FluxloomError, match=r"noexec.*FLUXLOOM_CACHE"):
        open_cache()


def script(path: Path, text: str) -> Path:
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(0o755)
    return path


def test_programs_that_cannot_be_executed_are_no_missing_compiler(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = " ".join(find_compiler().command)
    text = f'{real} "$@" || exit 1\nfor a in "$@"; do case "$a" in *.exe) chmod a-x "$a";; esac; done\n'
    monkeypatch.setenv("CC", str(script(tmp_path / "my-cc", text)))
    with pytest.raises(FluxloomError, match=r"cannot be executed.*FLUXLOOM_CACHE.*noexec") as caught:
        find_compiler()
    assert "no C compiler" not in str(caught.value)


def test_openmp_that_is_installed_later_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    real, marker = " ".join(find_compiler().command), tmp_path / "elsewhere"
    text = f'for a in "$@"; do [ "$a" = -fopenmp ] && [ ! -e {marker} ] && exit 1; done\nexec {real} "$@"\n'
    monkeypatch.setenv("FLUXLOOM_CC", str(script(tmp_path / "my-cc", text)))
    with caplog.at_level(logging.WARNING, logger="fluxloom"):
        assert not find_compiler().openmp
    assert "without OpenMP: loops run on one thread" in caplog.text
    serial = load_library(TWICE, "twice")
    marker.touch()
    module._find.cache_clear()  # as another process
    assert find_compiler().openmp
    assert "-fopenmp" in load_library(TWICE, "twice").flags
    assert serial.digest != load_library(TWICE, "twice").digest


def test_a_compiler_behind_a_script_is_looked_at_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What changes in the folders of its libraries makes what was learnt void, OpenMP that is removed too."""
    real, libraries = " ".join(find_compiler().command), tmp_path / "lib"
    libraries.mkdir()
    (libraries / "libomp.so").touch()
    (tmp_path / "bin").mkdir()
    text = (
        f'for a in "$@"; do [ "$a" = -print-search-dirs ] && echo "libraries: ={libraries}:/usr/lib" && exit 0\n'
        f'[ "$a" = -fopenmp ] && [ ! -e {libraries}/libomp.so ] && exit 1; done\nexec {real} "$@"\n'
    )
    monkeypatch.setenv("FLUXLOOM_CC", str(script(tmp_path / "bin" / "my-cc", text)))
    looked: list[object] = []
    examine = module._examine
    monkeypatch.setattr(module, "_examine", lambda *given: looked.append(given) or examine(*given))
    for number in (1, 1):
        module._find.cache_clear()
        assert find_compiler().openmp
        assert len(looked) == number
    (libraries / "libomp.so").unlink()
    module._find.cache_clear()
    assert not find_compiler().openmp
    assert len(looked) == 2


NOBODY = """
import pwd
def nobody(*given):
    raise KeyError("getpwuid(): uid not found")
pwd.getpwuid = pwd.getpwnam = nobody
"""


@pytest.mark.parametrize(
    "given", [{}, {"HOME": ""}, {"FLUXLOOM_CACHE": "~/kept"}, {"XDG_CACHE_HOME": "~nobody/x"}], ids=str
)
def test_nobody_has_a_home(given: dict[str, str], tmp_path: Path) -> None:
    """Neither HOME nor an entry of the user: no folder named ``~``, and a word about where compiled code goes."""
    work, places = tmp_path / "work", tmp_path / "places"
    work.mkdir()
    places.mkdir()
    (places / "sitecustomize.py").write_text(NOBODY)
    environment = {name: value for name, value in os.environ.items()
                   if name not in ("HOME", "FLUXLOOM_CACHE", "XDG_CACHE_HOME")}  # fmt: skip
    environment |= {"PYTHONPATH": f"{places}{os.pathsep}{ROOT}", "TMPDIR": str(tmp_path), **given}
    program = (
        "from fluxloom.toolchain import load_library, open_cache\n"
        f"assert load_library({TWICE!r}, 'twice').twice(4) == 8\nprint(open_cache().folder)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=work, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert Path(done.stdout.strip()) == tmp_path / f"fluxloom-{os.getuid()}" / "cache"
    assert "there is no home folder" in done.stderr
    assert list(work.iterdir()) == []
