"""Compiled code is taken from the user alone: folders of others, planted and swapped entries, keys, full disks."""

from __future__ import annotations

import logging
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fluxloom.core.errors import FluxloomError
from fluxloom.toolchain import Compiler, build, cache, find_compiler, load_library, open_cache, trust

ROOT = Path(__file__).resolve().parents[3]
TWICE = "int twice(int x) { return 2 * x; }\n"
PLANTED = "int twice(int x) { return 666; }\n"
PROGRAM = (
    "from fluxloom.toolchain import load_library\n"
    f"library = load_library({TWICE!r}, 'twice')\nprint(library.compiled, library.twice(21), library.path)"
)
root_only = pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as another user")


@pytest.fixture(scope="module")
def compiler(compile_cache: Path) -> Compiler:
    """Find the compiler once; other processes find it by themselves."""
    return find_compiler()


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compiler: Compiler) -> Iterator[Path]:
    monkeypatch.setattr(build, "find_compiler", lambda: compiler)
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv("FLUXLOOM_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    monkeypatch.setattr(tempfile, "tempdir", None)
    forget()
    yield tmp_path / "cache"
    forget()


def forget() -> None:
    cache._open.cache_clear()
    trust.seal_key.cache_clear()


def in_another_process() -> list[str]:
    """Load the library in another process; return whether it was compiled, what it says, where it lies."""
    done = subprocess.run([sys.executable, "-c", PROGRAM], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def elsewhere(tmp_path: Path) -> Path:
    return tmp_path / "temporary" / f"fluxloom-{os.geteuid()}" / "cache"


# ------------------------------------------------------------------------------------------ folders


def test_folder_and_key_are_of_the_user_alone(own_cache: Path, tmp_path: Path) -> None:
    load_library(TWICE, "twice")
    assert stat.S_IMODE(own_cache.stat().st_mode) == 0o700
    key = tmp_path / "cache.key"
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert key.stat().st_size == 32
    assert not list(tmp_path.glob(".cache.key*"))
    assert not any(path.stat().st_mode & 0o022 for path in own_cache.iterdir() if not path.name.startswith("."))


def another_owner(folder: Path) -> None:
    os.chown(folder, 65534, -1)


def group_may_write(folder: Path) -> None:
    folder.chmod(0o770)


def all_may_write(folder: Path) -> None:
    folder.chmod(0o707)


def all_may_replace(folder: Path) -> None:
    folder.parent.chmod(0o777)


def foreign_link(folder: Path) -> None:
    folder.rename(folder.with_name("target"))
    folder.symlink_to("target")
    os.chown(folder, 65534, -1, follow_symlinks=False)


def link_to_foreign(folder: Path) -> None:
    folder.rename(folder.with_name("target"))
    folder.symlink_to("target")
    os.chown(folder, 65534, -1)


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        pytest.param(another_owner, "belongs to the user with the number 65534", marks=root_only),
        (group_may_write, "others may write to it; chmod go-w"),
        (all_may_write, "others may write to it; chmod go-w"),
        (all_may_replace, "everybody may replace it.*chmod o-w"),
        pytest.param(foreign_link, "a link of the user with the number 65534", marks=root_only),
        pytest.param(link_to_foreign, "belongs to the user with the number 65534", marks=root_only),
    ],
)
def test_a_folder_that_others_can_change_is_not_used(
    spoil: Callable[[Path], None], reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    """Nothing is read from there, nor written to it; one warning says why and what to do."""
    own_cache = tmp_path / "above" / "cache"
    monkeypatch.setenv("FLUXLOOM_CACHE", str(own_cache))
    assert load_library(TWICE, "twice").compiled
    spoil(own_cache)
    before = sorted(os.listdir(own_cache))
    forget()
    with caplog.at_level(logging.WARNING, logger="fluxloom"):
        library = load_library(TWICE, "twice")
        load_library(PLANTED, "other")
    assert (library.compiled, library.twice(2), library.path.parent) == (True, 4, elsewhere(tmp_path))
    assert sorted(os.listdir(own_cache)) == before
    (record,) = caplog.records
    assert "set FLUXLOOM_CACHE" in record.getMessage()
    assert re.search(reason, record.getMessage())


def test_an_own_private_link_is_followed(own_cache: Path, tmp_path: Path) -> None:
    (tmp_path / "target").mkdir(mode=0o700)
    own_cache.symlink_to("target")
    assert load_library(TWICE, "twice").path.parent == own_cache
    assert list((tmp_path / "target").glob("twice-*.so"))


def test_a_folder_that_becomes_open_is_read_no_more(own_cache: Path) -> None:
    load_library(TWICE, "twice")
    own_cache.chmod(0o777)
    assert open_cache().entry(next(own_cache.glob("*.so")).name) is None


def test_the_temporary_folder_of_another_is_passed_over(
    own_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own_cache.mkdir()
    own_cache.chmod(0o777)
    elsewhere(tmp_path).parent.mkdir(mode=0o700)
    elsewhere(tmp_path).parent.chmod(0o777)
    (tmp_path / "second").mkdir()
    monkeypatch.setattr(cache, "_OTHER_PLACES", (str(tmp_path / "second"),))
    assert load_library(TWICE, "twice").path.is_relative_to(tmp_path / "second")
    monkeypatch.setattr(cache, "_OTHER_PLACES", ())
    forget()
    with pytest.raises(FluxloomError, match=r"others may write to it; chmod go-w.*FLUXLOOM_CACHE"):
        open_cache()


@pytest.fixture
def mounted(tmp_path: Path) -> Iterator[Callable[[str], Path]]:
    """Return a function that mounts a small file system with options; skip where that is not allowed."""
    places: list[Path] = []

    def mount(options: str) -> Path:
        place = tmp_path / f"mounted{len(places)}"
        place.mkdir()
        command = ["mount", "-t", "tmpfs", "-o", options, "none", str(place)]
        if os.geteuid() or not shutil.which("mount") or subprocess.run(command, capture_output=True).returncode:
            pytest.skip("file systems cannot be mounted here")
        places.append(place)
        return place

    yield mount
    for place in places:
        subprocess.run(["umount", "-l", str(place)], check=False)


@pytest.mark.parametrize("options", ["size=64k,noexec", "size=64k,ro"])
def test_file_systems_that_cannot_be_used(
    options: str, mounted: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FLUXLOOM_CACHE", str(mounted(options) / "cache"))
    library = load_library(TWICE, "twice")
    assert (library.compiled, library.twice(4), library.path.parent) == (True, 8, elsewhere(tmp_path))


def test_full_file_systems(
    mounted: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without room for the key another folder is used; without room for code it is told."""
    place = mounted("size=16k")
    (place / "filling").write_bytes(bytes(16384))
    monkeypatch.setenv("FLUXLOOM_CACHE", str(place / "cache"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(place / "config"))
    assert load_library(TWICE, "twice").path.parent == elsewhere(tmp_path)
    other = mounted("size=32k")
    monkeypatch.setenv("FLUXLOOM_CACHE", str(other / "cache"))
    with pytest.raises(FluxloomError, match=r"(?s)cannot write compiled code to .*FLUXLOOM_CACHE"):
        load_library("int big[9999] = {1};" + TWICE, "twice")
    assert not list((other / "cache").glob("twice*.so"))


# ------------------------------------------------------------------------------------------ entries


def planted(tmp_path: Path) -> bytes:
    """Return another library, as a compiler makes it."""
    (tmp_path / "planted.c").write_text(PLANTED)
    command = [*build.find_compiler().command, "-shared", "-fPIC", "planted.c", "-o", "planted.so"]
    subprocess.run(command, cwd=tmp_path, check=True)
    return (tmp_path / "planted.so").read_bytes()


@pytest.mark.parametrize("kind", ["bare", "another key", "another entry", "link", "foreign", "writable", "pipe"])
def test_a_planted_library_is_built_anew(kind: str, own_cache: Path, tmp_path: Path) -> None:
    path = load_library(TWICE, "twice").path
    other = load_library(PLANTED, "other").path
    genuine, content = path.read_bytes(), planted(tmp_path)
    path.unlink()
    if kind == "bare":
        path.write_bytes(content)
    elif kind == "another key":
        path.write_bytes(trust.seal(bytes(32), path.name, content))
    elif kind == "another entry":
        path.write_bytes(other.read_bytes())
    elif kind == "link":
        (tmp_path / "elsewhere.so").write_bytes(genuine)
        path.symlink_to(tmp_path / "elsewhere.so")
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.write_bytes(genuine)
        path.chmod(0o666)
        if kind == "foreign":
            if os.geteuid():
                pytest.skip("only root can act as another user")
            path.chmod(0o644)
            os.chown(path, 65534, -1)
    assert in_another_process()[:2] == ["True", "42"]
    assert stat.S_ISREG(path.lstat().st_mode)
    assert path.stat().st_uid == os.geteuid()
    assert in_another_process()[:2] == ["False", "42"]


@pytest.mark.parametrize("swapped", ["folder", "folder above"])
def test_what_is_swapped_after_the_check_is_not_loaded(
    swapped: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another folder takes the place of the one that was checked before the linker opens the library."""
    place = tmp_path / "above" / "cache"
    monkeypatch.setenv("FLUXLOOM_CACHE", str(place))
    forget()
    source = f"/* {swapped} */ int thrice(int x) {{ return 3 * x; }}\n"
    done = subprocess.run(
        [sys.executable, "-c", f"from fluxloom.toolchain import load_library as f; f({source!r}, 'thrice')"], cwd=ROOT
    )
    assert done.returncode == 0
    (name,) = (path.name for path in place.glob("thrice-*.so"))
    content = planted(tmp_path)
    loaded: list[str] = []
    init = build.ctypes.CDLL.__init__

    def swap(self: object, path: str) -> None:
        gone = place if swapped == "folder" else place.parent
        gone.rename(tmp_path / "gone")
        place.mkdir(parents=True)
        (place / name).write_bytes(content.replace(b"twice", b"thrice"[:5]))
        loaded.append(path)
        init(self, path)  # type: ignore[arg-type]

    monkeypatch.setattr(build.ctypes.CDLL, "__init__", swap)
    library = load_library(source, "thrice")
    assert (len(loaded), library.compiled, library.thrice(5)) == (1, False, 15)


def test_a_changed_source_gives_names_to_no_other_code(own_cache: Path) -> None:
    """The source of an entry says what its functions are called; where it was changed the code is built anew."""
    text = "int fl_loop_{0}(int a_) {{ return a_ + 1; }}\nint fl_loop_{1}(int a_) {{ return a_ - 1; }}\n"
    first = load_library(text.format("up", "down"), "first")
    first.source_path.write_text(text.format("down", "up"))
    other = load_library(text.format("more", "less"), "second")
    assert (other.compiled, other.fl_loop_more(1), other.fl_loop_less(1)) == (True, 2, 0)


def test_flags_of_the_compiler_are_sealed(own_cache: Path) -> None:
    """A planted record would choose what compilers are run with."""
    in_another_process()
    (record,) = own_cache.glob("compiler-*.json")
    record.write_bytes(record.read_bytes().replace(b'"native": [', b'"native": ["-DPLANTED", '))
    program = "from fluxloom.toolchain import find_compiler; print(find_compiler().native)"
    assert "PLANTED" not in subprocess.check_output([sys.executable, "-c", program], cwd=ROOT, text=True)


# --------------------------------------------------------------------------------------------- keys


def test_without_its_key_all_is_built_anew(tmp_path: Path) -> None:
    assert in_another_process()[0] == "True"
    assert in_another_process()[0] == "False"
    (tmp_path / "cache.key").unlink()
    assert in_another_process()[:2] == ["True", "42"]
    assert in_another_process()[0] == "False"


def open_to_others(key: Path) -> None:
    key.chmod(0o644)


def cut_off(key: Path) -> None:
    key.write_bytes(bytes(31))


def a_folder(key: Path) -> None:
    key.unlink()
    key.mkdir()


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [(open_to_others, "others may read or write its key"), (cut_off, "is damaged"), (a_folder, "cannot be read")],
)
def test_a_key_that_may_not_be_used(
    spoil: Callable[[Path], None], reason: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    load_library(TWICE, "twice")
    spoil(tmp_path / "cache.key")
    forget()
    with caplog.at_level(logging.WARNING, logger="fluxloom"):
        library = load_library(TWICE, "twice")
    assert (library.compiled, library.path.parent) == (True, elsewhere(tmp_path))
    (record,) = caplog.records
    assert reason in record.getMessage()
    assert f"delete {tmp_path / 'cache.key'}" in record.getMessage()


@root_only
def test_a_key_that_cannot_be_read() -> None:
    """Where its rights keep the user out, who is not root."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        folder = Path(name, "cache")
        folder.mkdir()
        for path in (folder.parent, folder):
            os.chown(path, 65534, 65534)
        os.seteuid(65534)
        try:
            assert len(trust.seal_key(folder)) == 32
            (folder.parent / "cache.key").chmod(0)
            forget()
            with pytest.raises(FluxloomError, match=r"cannot be read \(Permission denied\); delete"):
                trust.seal_key(folder)
        finally:
            os.seteuid(0)


def test_a_place_for_the_key_that_cannot_be_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside the folder lies a file of somebody else, or nothing may be written: the key is kept with the settings."""
    make = trust._make_key

    def refuse(place: Path) -> None:
        if place.parent == tmp_path:
            raise PermissionError(13, "Permission denied")
        make(place)

    monkeypatch.setattr(trust, "_make_key", refuse)
    assert load_library(TWICE, "twice").path.parent == tmp_path / "cache"
    key = tmp_path / "config" / "fluxloom" / "seal.key"
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert stat.S_IMODE(key.parent.stat().st_mode) == 0o700
    if os.geteuid() == 0:
        (tmp_path / "cache.key").write_bytes(bytes(32))
        os.chown(tmp_path / "cache.key", 65534, -1)
        forget()
        assert not load_library(TWICE, "twice").compiled
    monkeypatch.setattr(trust, "_key_places", lambda _folder: iter([tmp_path / "cache.key"]))
    (tmp_path / "cache.key").unlink(missing_ok=True)
    forget()
    with pytest.raises(FluxloomError, match="cannot be kept in"):
        trust.seal_key(tmp_path / "cache")


def test_without_hard_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_given: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    assert trust.seal_key(tmp_path / "cache") == (tmp_path / "cache.key").read_bytes()
    assert not list(tmp_path.glob(".*"))


def test_twelve_processes_make_one_key_and_one_library(own_cache: Path) -> None:
    command = [sys.executable, "-c", PROGRAM]
    running = [subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) for _ in range(12)]
    printed = [process.communicate(timeout=300)[0].split()[:2] for process in running]
    assert sorted(printed) == [["False", "42"]] * 11 + [["True", "42"]]
    assert len(list(own_cache.glob("*.so"))) == 1
    assert in_another_process()[:2] == ["False", "42"]
