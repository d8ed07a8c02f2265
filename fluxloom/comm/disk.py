"""Files that appear whole or not at all: written beside their place, brought to the disk, renamed."""

from __future__ import annotations

import fcntl
import os
import shutil
from contextlib import suppress
from pathlib import Path

__all__ = ["Disk", "publish", "require_writable"]


class Disk:
    """A binary file that remembers the first failure to write instead of raising it.

    HDF5 cannot be left in peace once a write of its own has failed. So it is told that all is well, nothing more is
    written, and `check` raises.

    Parameters
    ----------
    path
        Made or emptied.

    Raises
    ------
    OSError
        When it cannot be opened, or another process writes to it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._raw = open(os.open(path, os.O_RDWR | os.O_CREAT, 0o666), "r+b", buffering=0)  # noqa: SIM115
        self._failed: OSError | None = None
        try:
            fcntl.flock(self._raw, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._raw.close()
            raise
        except OSError:
            pass  # a file system without locks
        self._raw.truncate(0)

    # ------------------------------------------------------------------------- what HDF5 asks of a file
    def seek(self, offset: int, whence: int = 0) -> int:
        """Go to a place."""
        return self._raw.seek(offset, whence)

    def tell(self) -> int:
        """Return the place."""
        return self._raw.tell()

    def read(self, size: int = -1) -> bytes:
        """Return up to ``size`` bytes; all there are when it is negative."""
        return self._raw.read(size) or b""

    def readinto(self, buffer: memoryview) -> int:
        """Read as many bytes as there are, up to the length of ``buffer``."""
        view, got = memoryview(buffer).cast("B"), 0
        while got < len(view) and (n := self._raw.readinto(view[got:])):
            got += n
        return got

    def write(self, data: memoryview) -> int:
        """Write all bytes, or note why that is not possible."""
        view = memoryview(data).cast("B")
        done = 0
        try:
            while self._failed is None and done < len(view):
                done += self._raw.write(view[done:]) or 0
        except OSError as error:
            self._failed = error
        return len(view)

    def truncate(self, size: int | None = None) -> int:
        """Change the length, or note why that is not possible."""
        try:
            return self._raw.truncate(size) if self._failed is None else size or 0
        except OSError as error:
            self._failed = error
            return size or 0

    def flush(self) -> None:
        """Nothing is buffered here."""

    # ------------------------------------------------------------------------------------ what we ask of it
    def check(self) -> None:
        """Raise the first `OSError` there was."""
        if self._failed is not None:
            raise self._failed

    def give_up(self) -> None:
        """Write nothing more."""
        self._failed = self._failed or OSError("given up")

    def sync(self) -> None:
        """Wait until the bytes are on the disk."""
        os.fsync(self._raw.fileno())

    def close(self) -> None:
        """Close the file."""
        self._raw.close()

    def remove(self) -> None:
        """Close and remove the file, if it is still there."""
        if not self._raw.closed:
            with suppress(OSError):
                self.path.unlink()
            self._raw.close()


def publish(part: Path, path: Path, keep: int) -> None:
    """Rename a finished file to its place; those before it become ``path.1``, ``path.2`` ..., ``keep`` in all.

    At every moment there is a whole file at ``path``, the old or the new one.
    """
    if keep > 1 and path.exists():
        for age in range(keep - 2, 0, -1):
            if (younger := path.with_name(f"{path.name}.{age}")).exists():
                younger.replace(path.with_name(f"{path.name}.{age + 1}"))
        spare = path.with_name(f"{path.name}.old")
        spare.unlink(missing_ok=True)
        try:
            os.link(path, spare)
        except OSError:  # a file system without hard links
            shutil.copyfile(path, spare)
        spare.replace(path.with_name(f"{path.name}.1"))
    part.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def require_writable(path: Path) -> str:
    """Return why no file can be made beside ``path``, or an empty text; leaves nothing behind."""
    if path.is_dir():
        return "it is a directory: name a file in it"
    if not path.parent.is_dir():
        return f"there is no directory {path.parent}: make it, or give another path"
    trial = path.with_name(f"{path.name}.trial")
    try:
        with open(trial, "wb"):
            pass
        trial.unlink()
    except OSError as error:
        return f"{error.strerror} ({path.parent}): change its permissions, or give another path"
    return ""
