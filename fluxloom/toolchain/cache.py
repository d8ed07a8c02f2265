"""The folder of compiled code: named by content, written atomically, shared by threads and processes.

What is loaded, executed or passed to a compiler is followed by a seal (`trust`). The seal is part of the file: there is
no second file that a concurrent writer could leave out of step.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import logging
import os
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from fluxloom.core.errors import FluxloomError
from fluxloom.toolchain.trust import Entry, folder_fault, held_place, open_entry, seal, seal_key, user_folder

__all__ = ["Cache", "content_digest", "disk_error", "open_cache"]

_LOCK_SECONDS = 300.0
_LOCK_FILES = 256
_MODE = 0o644
"""Of files: whatever the umask, others may not write to them."""
_OTHER_PLACES = ("/tmp", "/var/tmp", "/dev/shm", "~/.cache")
_NO_HOME = "there is no home folder: neither HOME nor an entry of the user says where"


def content_digest(parts: Sequence[str]) -> str:
    """Return the SHA-256 (64 hexadecimal digits) of a sequence of texts; their borders count."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode()
        digest.update(str(len(data)).encode() + b":" + data)
    return digest.hexdigest()


def disk_error(folder: Path, reason: object) -> FluxloomError:
    """Return the error for a cache folder that cannot be written."""
    return FluxloomError(
        f"cannot write compiled code to {folder}: {reason}; "
        "free some space there, or set the environment variable FLUXLOOM_CACHE to another folder"
    )


@dataclass(frozen=True)
class Cache:
    """Where compiled code is looked for and written.

    Parameters
    ----------
    folder
        Where new entries are written.
    also
        Folders that are only read: the configured folder when it is read-only.
    """

    folder: Path
    also: tuple[Path, ...] = ()

    def entry(self, file_name: str) -> Entry | None:
        """Return a sealed entry, or None when no folder has it, whole and made by this user."""
        found = (open_entry(folder, file_name) for folder in (self.folder, *self.also))
        return next((entry for entry in found if entry is not None), None)

    def put(self, file_name: str, content: bytes, mode: int = _MODE) -> Entry:
        """Write an entry with its seal; ``mode`` as of `write`.

        Raises
        ------
        FluxloomError
            As `write` does, or when the key of the seals cannot be used.
        """
        path = self.write(file_name, seal(seal_key(self.folder), file_name, content), mode)
        return Entry(content, path, held_place(self.folder, file_name))

    def find(self, file_name: str) -> Path | None:
        """Return the path of a file that needs no seal, or None when no folder has it."""
        for folder in (self.folder, *self.also):
            path = folder / file_name
            if path.is_file():
                return path
        return None

    def alias(self, digest: str) -> str:
        """Return the name, without its ending, of the entry that is kept for a digest of nameless text, else ""."""
        path = self.find(f"{digest[:40]}.alias")
        try:
            return path.read_text(encoding="utf-8") if path is not None else ""
        except (OSError, ValueError):
            return ""

    def set_alias(self, digest: str, stem: str) -> None:
        """Keep the name of an entry, without its ending, for a digest of nameless text."""
        self.write(f"{digest[:40]}.alias", stem.encode())

    def temporary(self, file_name: str) -> Path:
        """Return a path beside ``file_name`` that no other process or thread uses.

        The name depends on the time and the machine too: a cache may lie on a file system of many nodes.
        """
        unique = f"{os.getpid()}-{threading.get_ident()}-{time.time_ns():x}-{os.urandom(4).hex()}"
        stem, dot, suffix = file_name.rpartition(".")
        return self.folder / f".{stem}-{unique}{dot}{suffix}"

    def write(self, file_name: str, data: bytes, mode: int = _MODE) -> Path:
        """Write a file whole or not at all, with the rights ``mode``, replacing an older one.

        Raises
        ------
        FluxloomError
            When the disk is full or the folder has become read-only.
        """
        temporary, path = self.temporary(file_name), self.folder / file_name
        try:
            with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
                file.write(data)
            os.replace(temporary, path)
        except OSError as error:
            with contextlib.suppress(OSError):
                temporary.unlink()
            raise disk_error(self.folder, error.strerror or error) from error
        return path

    @contextlib.contextmanager
    def lock(self, digest: str) -> Iterator[None]:
        """Hold the right to build one entry, so that others wait for it instead of building it too.

        The lock saves work and is not needed for safety: it is given up after five minutes, and where the
        file system has no locks.
        """
        number = int(digest[:8], 16) % _LOCK_FILES
        try:
            file = os.open(self.folder / f".lock-{number:02x}", os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as error:
            raise disk_error(self.folder, error.strerror or error) from error
        try:
            _wait_for_lock(file)
            yield
        finally:
            os.close(file)  # also gives the lock up


def _wait_for_lock(file: int) -> None:
    """Take the lock of an open file, for at most ``_LOCK_SECONDS``."""
    try:
        import fcntl
    except ImportError:
        return
    end, pause = time.monotonic() + _LOCK_SECONDS, 0.001
    while time.monotonic() < end:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(pause)
            pause = min(2 * pause, 0.05)
        except OSError:
            return
        else:
            return


def open_cache() -> Cache:
    """Return the cache of this process.

    The folder is ``FLUXLOOM_CACHE``, else ``$XDG_CACHE_HOME/fluxloom``, else ``~/.cache/fluxloom``. One
    that cannot be written is still read, and new code goes to a private folder below the system's
    temporary folder; so it does where somebody else can write to the folder, no file may be executed (``noexec``), or
    the user has no home. A warning says so once.

    Raises
    ------
    FluxloomError
        When no temporary folder can be used either.
    """
    chosen = os.environ.get("FLUXLOOM_CACHE", "")
    if not chosen:
        chosen = os.path.join(os.environ.get("XDG_CACHE_HOME", "") or "~/.cache", "fluxloom")
    found = user_folder(chosen)
    return _open(os.path.abspath(found) if found else "", os.environ.get("TMPDIR", ""))


@functools.lru_cache(maxsize=16)
def _open(chosen: str, _temporary_folder: str) -> Cache:
    """Open a folder, empty for none; kept for the process, so that the warning is given once."""
    folder = Path(chosen)
    doubt = _doubtful(folder) if chosen else _NO_HOME
    problem = doubt or _unusable(folder)
    if not problem:
        return Cache(folder)
    other = _private_folder()
    logging.getLogger("fluxloom").warning(
        "the cache of compiled code %s cannot be used (%s): using %s; set FLUXLOOM_CACHE to a folder of yours that "
        "allows writing and executing to keep compiled code", chosen or "has no place and", problem, other,
    )  # fmt: skip
    return Cache(other, () if doubt or _forbids_execution(folder) else (folder,))


def _doubtful(folder: Path) -> str:
    """Return why code in a folder is not trusted, or an empty string; the folder is made if it is missing."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if fault := folder_fault(folder):
            return fault
        seal_key(folder)
    except OSError as error:
        return error.strerror or str(error)
    except FluxloomError as error:
        return str(error)
    return ""


def _unusable(folder: Path) -> str:
    """Return why a folder cannot hold compiled code, or an empty string."""
    try:
        trial = folder / f".trial-{os.getpid()}-{threading.get_ident()}-{os.urandom(4).hex()}"
        os.close(os.open(trial, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        trial.unlink()
    except OSError as error:
        return error.strerror or str(error)
    return "its file system forbids executing, noexec" if _forbids_execution(folder) else ""


def _forbids_execution(folder: Path) -> bool:
    """Whether a file system is mounted so that nothing on it can be executed, or loaded as code."""
    try:
        return bool(os.statvfs(folder).f_flag & os.ST_NOEXEC)
    except (OSError, AttributeError):  # the flag is known on Linux alone
        return False


def _private_folder() -> Path:
    """Return a folder that belongs to this user alone: in the first temporary folder where code can be kept.

    Ranks of a run share it, so that each kernel is compiled once.

    Raises
    ------
    FluxloomError
        For the system's temporary folder, where there is no other.
    """
    import tempfile

    first: FluxloomError | None = None
    for place in dict.fromkeys((tempfile.gettempdir(), *map(user_folder, _OTHER_PLACES))):
        try:
            if place:
                return _private_below(Path(place))
        except FluxloomError as error:
            first = first or error
    assert first is not None
    raise first


def _private_below(place: Path) -> Path:
    """Return the private folder below a temporary folder; raise `FluxloomError` where it cannot be used.

    It lies in another private one: in a folder where all may write, anybody could take the place of its key.
    """
    outer = place / f"fluxloom-{os.geteuid() if os.name == 'posix' else 0}"
    for folder in (outer, outer / "cache"):
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise disk_error(folder, error.strerror or error) from error
        if fault := folder_fault(folder):
            raise disk_error(folder, fault)
    if problem := _doubtful(folder) or _unusable(folder):
        raise disk_error(folder, problem)
    return folder
