"""Whom compiled code is taken from: the user alone.

A folder of compiled code belongs to the user, and nobody else can write to it. Each entry has a seal behind it: a mark
and the HMAC-SHA256 of its name and content. The key lies outside the folder and only the user can read it, so that a
file which was damaged, planted, renamed or copied from elsewhere is recognised before it is mapped or executed.
"""

from __future__ import annotations

import contextlib
import functools
import hmac
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from fluxloom.core.errors import FluxloomError

__all__ = ["Entry", "folder_fault", "held_place", "open_entry", "seal", "seal_key", "user_folder"]

_MARK = b"fluxloom"
_SEAL = len(_MARK) + 32
_KEY_BYTES = 32
_READ = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
_ENTRIES = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)


def user_folder(path: str) -> str:
    """Return a path with its ``~`` replaced; empty where nobody knows the home folder, never a folder named ``~``."""
    if not path.startswith("~"):
        return path
    if os.environ.get("HOME") == "" and path.startswith("~/"):
        return ""
    found = os.path.expanduser(path)
    return "" if found.startswith("~") else found


# ------------------------------------------------------------------------------------------ folders


def _fault(status: os.stat_result) -> str:
    """Return why somebody else can change a file or folder; empty where only its user, and root, can."""
    if os.name != "posix":
        return ""
    if status.st_uid != os.geteuid():
        return f"it belongs to the user with the number {status.st_uid}, not to {os.geteuid()}"
    return "others may write to it" if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH) else ""


def folder_fault(folder: Path) -> str:
    """Return why somebody else can put files into a folder, or replace the folder, and what to do; else empty."""
    try:
        status, link = os.stat(folder), os.lstat(folder)
        above = dict.fromkeys((*folder.parents, *folder.resolve().parents))
        modes = {place: os.stat(place).st_mode for place in above}
    except OSError as error:
        return error.strerror or str(error)
    if stat.S_ISLNK(link.st_mode) and link.st_uid not in (0, os.geteuid()):
        return f"it is a link of the user with the number {link.st_uid}"
    if fault := _fault(status):
        return f"{fault}; chmod go-w {folder}" if status.st_uid == os.geteuid() else fault
    for place, mode in modes.items() if os.name == "posix" else ():
        if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
            return f"everybody may replace it, as {place} can be written by all; chmod o-w {place}"
    return ""


def _held(folder: Path) -> int:
    """Return the open descriptor of a folder that nobody else can write to.

    Raises
    ------
    OSError
        Where there is none, or others can write to it.
    """
    status = os.stat(folder)
    if fault := _fault(status):
        raise PermissionError(fault)
    return _hold(folder, status.st_dev, status.st_ino)


@functools.cache
def _hold(folder: Path, device: int, number: int) -> int:
    """Open a folder; the descriptor lives as long as the process, as the libraries that are loaded through it do."""
    held = os.open(folder, _ENTRIES)
    status = os.fstat(held)
    if (status.st_dev, status.st_ino) != (device, number):
        os.close(held)
        raise FileNotFoundError(f"{folder} was replaced")
    return held


def held_place(folder: Path, name: str) -> str:
    """Return a path of an entry that leads through the open folder, by which a library is loaded.

    An entry is checked by its content and then mapped by the dynamic linker, which opens a path once more. What lies at
    the path must be the same. A path through the descriptor of the folder ensures it: whatever becomes of the folders
    above, it leads into the folder that was checked, and in there only the user can replace an entry. A path through a
    descriptor of the entry itself, ``/proc/self/fd/N``, would not do: such numbers are used again, and the linker takes
    a path that it has seen for the library that it has. A copy without a name (``memfd``) is hidden from debuggers and
    profilers, and in the memory of every rank.
    """
    try:
        held = _held(folder)
        place = f"/proc/{os.getpid()}/fd/{held}"
        if os.path.samestat(os.stat(place), os.fstat(held)):
            return f"{place}/{name}"
    except OSError:  # no /proc: not Linux, or hidden
        pass
    return str(folder / name)


# ---------------------------------------------------------------------------------------------- key


@functools.cache
def seal_key(folder: Path) -> bytes:
    """Return the key of the seals in a folder; one is made where there is none.

    It lies beside the folder, ``NAME.key``, or where that place cannot be used in the user's configuration folder.

    Raises
    ------
    FluxloomError
        When there is a key of the user that may not be used, or no place for one; the message says what to do.
    """
    faults: list[str] = []
    for place in _key_places(folder):
        try:
            with contextlib.suppress(FileExistsError):
                if not os.path.lexists(place):
                    _make_key(place)
            if os.lstat(place).st_uid == os.geteuid():
                return _read_key(place)
            faults.append(f"the key {place} belongs to another user")
        except OSError as error:
            faults.append(f"its key cannot be kept in {place}: {error.strerror or error}")
    raise FluxloomError(faults[0])


def _key_places(folder: Path) -> Iterator[Path]:
    """Yield where the key of a folder may lie."""
    yield folder.with_name(f"{folder.name}.key")
    if found := user_folder(os.environ.get("XDG_CONFIG_HOME", "") or "~/.config"):
        yield Path(found, "fluxloom", "seal.key")


def _make_key(place: Path) -> None:
    """Write a new key, whole, unless another process has just done so."""
    place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    trial = place.with_name(f".{place.name}-{os.getpid()}-{os.urandom(4).hex()}")
    file = os.open(trial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0), 0o600)
    try:
        with open(file, "wb") as output:
            output.write(os.urandom(_KEY_BYTES))
        try:
            os.link(trial, place)  # fails where there is a key
        except FileExistsError:
            raise
        except OSError:  # no hard links here: the last of several processes wins, the others compile twice
            os.replace(trial, place)
    finally:
        trial.unlink(missing_ok=True)


def _read_key(place: Path) -> bytes:
    """Return the key of a file of the user; `FluxloomError` where it is none, or not secret."""
    mend = f"delete {place}, and compiled code is made anew"
    try:
        with open(os.open(place, _READ), "rb") as file:
            status, key = os.fstat(file.fileno()), file.read(_KEY_BYTES + 1)
    except OSError as error:
        raise FluxloomError(f"its key {place} cannot be read ({error.strerror or error}); {mend}") from error
    if os.name == "posix" and (_fault(status) or status.st_mode & (stat.S_IRGRP | stat.S_IROTH)):
        raise FluxloomError(f"others may read or write its key {place}; {mend}")
    if len(key) != _KEY_BYTES:
        raise FluxloomError(f"its key {place} is damaged; {mend}")
    return key


# -------------------------------------------------------------------------------------------- seals


@dataclass(frozen=True)
class Entry:
    """A checked entry.

    Attributes
    ----------
    content
        Its bytes, without the seal.
    path
        Where it lies.
    place
        The path by which it is loaded (`held_place`).
    """

    content: bytes
    path: Path
    place: str


def seal(key: bytes, name: str, content: bytes) -> bytes:
    """Return content with its seal behind it (the dynamic linker ignores what follows a library)."""
    return content + _MARK + _code(key, name, content)


def _code(key: bytes, name: str, content: bytes | memoryview) -> bytes:
    """Return the HMAC-SHA256 of name and content; the name has no zero byte."""
    code = hmac.new(key, name.encode() + b"\0", "sha256")
    code.update(content)
    return code.digest()


def open_entry(folder: Path, name: str) -> Entry | None:
    """Return an entry of a folder; None where there is none, or it is no file that this user has sealed."""
    try:
        held = _held(folder)
        with open(os.open(name, _READ, dir_fd=held), "rb") as file:  # a link is no entry
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode) or _fault(status):
                return None
            data = file.read()
        key = seal_key(folder)
    except (OSError, ValueError, FluxloomError):
        return None
    end = len(data) - _SEAL
    if end <= 0 or not hmac.compare_digest(data[end:], _MARK + _code(key, name, memoryview(data)[:end])):
        return None
    return Entry(data[:end], folder / name, held_place(folder, name))
