"""One run a folder: a lock that says who holds it, with a heartbeat where the file system has no locks."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import socket
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from fluxloom.core.errors import CaseError

__all__ = ["LOCK", "FolderLock"]

LOCK = ".fluxloom-lock"
_BEAT, _STALE = 15.0, 60.0
"""Seconds between two heartbeats, and after which a holder that cannot be asked is taken for gone."""


class FolderLock:
    """Holds a folder for this process until `release`.

    Where the file system has locks (``flock``) they decide. The file says the process, its machine and its command,
    and a thread touches it every 15 s: where there are no locks, or the holder is on another machine that the locks
    may not reach, one that has not been touched for 60 s is taken over.

    Parameters
    ----------
    folder
        A directory.
    command
        What is running, in words.

    Attributes
    ----------
    taken_over
        Who held it and is gone, in words; empty: nobody.

    Raises
    ------
    CaseError
        When another run holds it: says which.
    """

    def __init__(self, folder: Path, command: str) -> None:
        self.path = folder / LOCK
        self.taken_over = ""
        self._before = b""
        self._descriptor = self._acquire(folder)
        about = {"process": os.getpid(), "machine": socket.gethostname(), "command": command, "since": time.time()}
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, json.dumps(about).encode(), 0)
        self._stop = threading.Event()
        self._beating = threading.Thread(target=self._beat, name="folder-heartbeat", daemon=True)
        self._beating.start()

    def _acquire(self, folder: Path) -> int:
        while True:
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o644)
            try:
                locked = self._lock(descriptor, folder)
                about, age = _holder(descriptor)
                if about and _alive(about, age, locked):
                    raise _refusal(folder, about)
                if not self._still_there(descriptor):  # its holder has just removed it
                    os.close(descriptor)
                    continue
            except BaseException:
                with suppress(OSError):
                    os.close(descriptor)
                raise
            self._before = os.pread(descriptor, 1 << 16, 0)
            if about:
                self.taken_over = f"{_words(about)}, which has ended without saying so"
            return descriptor

    @staticmethod
    def _lock(descriptor: int, folder: Path) -> bool:
        """Lock the file; return whether the file system can. Raises `CaseError` where another process has it."""
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
                raise _refusal(folder, _holder(descriptor)[0]) from None
            return False
        return True

    def _still_there(self, descriptor: int) -> bool:
        try:
            return os.stat(self.path).st_ino == os.fstat(descriptor).st_ino
        except FileNotFoundError:
            return False

    def _beat(self) -> None:
        while not self._stop.wait(_BEAT):
            with suppress(OSError):
                os.utime(self._descriptor)

    def release(self, *, refused: bool = False) -> None:
        """Give the folder free; may be called twice.

        Parameters
        ----------
        refused
            Whether the run never began: what a killed run left of its lock then stays as it was.
        """
        if self._stop.is_set():
            return
        self._stop.set()
        self._beating.join()
        with suppress(OSError):
            if refused and self._before:
                os.ftruncate(self._descriptor, 0)
                os.pwrite(self._descriptor, self._before, 0)
            else:
                self.path.unlink()
        os.close(self._descriptor)


def _holder(descriptor: int) -> tuple[dict[str, Any], float]:
    """Return what the file says of who holds it, empty where nothing, and the seconds since the last heartbeat."""
    try:
        found = json.loads(os.pread(descriptor, 1 << 16, 0) or b"{}")
        return (found if isinstance(found, dict) else {}), time.time() - os.fstat(descriptor).st_mtime
    except ValueError:
        return {}, 0.0


def _alive(about: dict[str, Any], age: float, locked: bool) -> bool:
    """Whether the process that a lock names may still run, when it is not this lock that keeps us out."""
    if about.get("machine") == socket.gethostname():
        return not locked and _running(about.get("process"))
    return age < _STALE


def _running(process: Any) -> bool:
    try:
        os.kill(int(process), 0)
    except (ProcessLookupError, TypeError, ValueError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


def _words(about: dict[str, Any]) -> str:
    return f"process {about.get('process', '?')} on {about.get('machine', '?')}"


def _refusal(folder: Path, about: dict[str, Any]) -> CaseError:
    since = about.get("since")
    began = f" since {time.strftime('%H:%M:%S', time.localtime(since))}" if isinstance(since, int | float) else ""
    command = f" ({about['command']})" if about.get("command") else ""
    return CaseError(
        f"output directory {folder}: {_words(about)} is writing results there{began}{command}; wait for it, end it, or "
        "choose another directory with --output"
    )
