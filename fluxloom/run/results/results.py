"""The results of a run: whose the folder is, what may be written into it, what lies there, and what became of it.

One run has a folder at a time (its lock). Files are written beside and renamed; one that fails is lost alone. What lies
there from before says what the same command does: begin, go on, or say that it is done.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import re
import shutil
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fluxloom.core.errors import CaseError, DeviceUnavailable, FluxloomError, OtherRankFailed
from fluxloom.core.status import RunStatus
from fluxloom.run.results.files import FULL, PART, Lines, reason_of, write_json

__all__ = [
    "CHECKPOINT", "LOCK", "RECORD", "Earlier", "FolderLock", "ResultFolder", "digests_of_inputs", "examine",
    "known_results",
]  # fmt: skip

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
        self._stop = threading.Event()
        self._beating = threading.Thread(target=self._beat, name="folder-heartbeat", daemon=True)
        try:
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, json.dumps(about).encode(), 0)
            self._beating.start()
        except BaseException:  # a full disk, or no memory for a thread
            self.release(refused=True)
            raise

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
        if self._beating.ident is not None:
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


RECORD, CHECKPOINT = "run.json", "checkpoint.h5"
_RESULTS = (
    "residual.csv", "history.csv", "probes.csv", "profile.csv", "gauges.csv", "line_*.csv", "spectrum_*.csv", "final.*",
    "diverged.*", "slice_*.vti", "snapshot_*.vt*", "wall_*.csv", "*.pvd", "*.series", "checkpoint.h5*",
)  # fmt: skip
_SUFFIX = re.compile(r"^(final|diverged)\.\w+$|\.(csv|gif|mp4|png|pvd|vtkhdf(\.series)?|vti|vtu|h5(\.\d+)?)$")
"""Of files that a run writes; other names in a record are not believed."""

_ORPHAN = re.compile(r"\.[^/]+-(\d+)-[0-9a-f]+(\.\w+)?$")


class ResultFolder:
    """Where one run writes. Only rank 0 of several has a path; on the others nothing is written.

    A file is written beside its place and renamed when it is whole, so that one of an earlier run goes only then. One
    that cannot be written is lost alone: it is told once, named in `lost`, and the run goes on.

    Parameters
    ----------
    path
        The folder; None: nothing is written here.
    tell
        Prints a line.

    Attributes
    ----------
    lost
        Names of files that could not be written, and why.
    written
        Names of files that were.
    good
        Whether the solution is one: what is written of another one is called ``diverged``, not ``final``.
    """

    def __init__(self, path: Path | None, tell: Callable[[str], object] | None = None) -> None:
        self.path, self._tell = path, tell
        self.lost: dict[str, str] = {}
        self.written: list[str] = []
        self.good = True
        self._lock: FolderLock | None = None
        self._made: list[Path] = []

    # ------------------------------------------------------------------------------- before the run
    def open(self, command: str, needed: int = 0) -> None:
        """Make the folder and lock it for this run; see that it can be written and has room.

        Parameters
        ----------
        command
            What runs, for another run that finds the lock.
        needed
            Bytes that the run will write, roughly.

        Raises
        ------
        CaseError
            When it cannot be used, or another run holds it; the message says why and what to do.
        """
        if self.path is None:
            return
        try:
            self._make(self.path)
            self._lock = FolderLock(self.path, command)
            _require_room(self.path, needed)
        except BaseException as error:
            self.close(refused=True)
            if isinstance(error, OSError):
                raise _unusable(self.path, error) from None
            raise
        if self._lock.taken_over and self._tell is not None:
            self._tell(f"output directory {self.path}: taken over from {self._lock.taken_over}")

    def _make(self, path: Path) -> None:
        missing = [folder for folder in (path, *path.parents) if not folder.exists()]
        path.mkdir(parents=True, exist_ok=True)
        self._made = missing

    def close(self, *, refused: bool = False) -> None:
        """Give the folder free; of a run that was refused nothing stays, an empty folder that it made neither."""
        if self._lock is not None:
            self._lock.release(refused=refused)
            self._lock = None
        if refused:
            for folder in self._made:
                with contextlib.suppress(OSError):
                    folder.rmdir()  # not if there is something in it
        self._made = []

    # ------------------------------------------------------------------------------- the record
    def record(self) -> dict[str, Any] | None:
        """Return the record of the run that wrote here; None where there is none that can be read."""
        if self.path is None:
            return None
        try:
            found = json.loads((self.path / RECORD).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return found if isinstance(found, dict) and isinstance(found.get("case"), dict) else None

    def write_record(self, record: dict[str, Any]) -> bool:
        """Write the record; return whether it could be."""
        if self.path is None:
            return True
        with self.attempt(RECORD, keep=False):
            write_json(self.path / RECORD, record)
            return True
        return False

    # ------------------------------------------------------------------------------- during the run
    def __truediv__(self, name: str) -> Path:
        if self.path is None:
            raise FluxloomError(f"{name}: this rank writes no results")
        return self.path / name

    @property
    def here(self) -> bool:
        """Whether this rank writes."""
        return self.path is not None

    def lines(self, name: str, heading: str, rows: Iterable[str] = ()) -> Lines:
        """Return a table that grows while the run advances; see `Lines`."""
        return Lines(None if self.path is None else self.path / name, heading, rows, self.lose)

    def write(self, name: str, action: Callable[[Path], object]) -> None:
        """Let an action write a file, on the rank that writes; when it fails, the file is lost and nothing else."""
        if self.path is not None:
            with self.attempt(name):
                action(self.path / name)

    def write_at(self, time: float, name: str, action: Callable[[Path], object]) -> None:
        """Let an action write a file of a series, and name it with its time in the list of the series, see `Series`."""
        from fluxloom.run.results.series import Series

        self.write(name, action)
        if self.path is None or name not in self.written:
            return
        series = Series.of(name)
        times = series.times(self.path) if series.name in self.written else {}
        kept = {file: at for file, at in (times | {name: time}).items() if file in self.written}
        self.write(series.name, lambda path: series.write(path, kept))

    @contextlib.contextmanager
    def attempt(self, name: str, *, keep: bool = True) -> Iterator[None]:
        """Write a file inside: when that fails, the file is lost and nothing else.

        Parameters
        ----------
        name
            Of the file.
        keep
            Whether it is one of the results.
        """
        try:
            yield
        except DeviceUnavailable as error:  # an optional package
            self._say(f"warning: {name} is left out: {error}")
        except OtherRankFailed:
            raise
        except Exception as error:  # a library that draws or writes may raise anything
            self.lose(name, reason_of(error))
        else:
            if keep and self.here and name not in self.written:
                self.written.append(name)

    def lose(self, name: str, reason: str) -> None:
        """Take note of a file that cannot be written, and say so once."""
        if name not in self.lost:
            reason = reason.removeprefix(f"{self.path}/{name}: ").removeprefix("cannot be written: ")
            self.lost[name] = reason
            self._say(f"output lost: {name}: {reason}")
        if name in self.written:
            self.written.remove(name)

    def closed(self, name: str, table: Lines | None) -> None:
        """Close a table, if there is one; it is one of the results."""
        if table is not None and table.close() and name not in self.written:
            self.written.append(name)

    def _say(self, line: str) -> None:
        if self._tell is not None:
            self._tell(line)

    @property
    def stem(self) -> str:
        """Name of the fields at the end, without its suffix."""
        return "final" if self.good else "diverged"

    # ------------------------------------------------------------------------------- its ends
    def remove_orphans(self) -> None:
        """Remove what a killed run was just writing: files beside their places."""
        if self.path is None:
            return
        for found in [*self.path.glob(f"*.csv{PART}"), *self.path.glob("checkpoint.h5.part"),
                      *(p for p in self.path.glob(".*") if _ORPHAN.match(p.name))]:  # fmt: skip
            with contextlib.suppress(OSError):
                found.unlink()

    def remove_earlier(self, names: Iterable[str]) -> None:
        """Remove results of an earlier run that has now a successor as a whole, but not what this run wrote."""
        if self.path is None:
            return
        for name in names:
            ours = Path(name).name == name and _SUFFIX.search(name)
            if ours and name not in self.written:
                with contextlib.suppress(OSError):
                    (self.path / name).unlink(missing_ok=True)


def known_results(path: Path) -> list[str]:
    """Return names of files in a folder that look like results of a run."""
    return sorted({found.name for pattern in _RESULTS for found in path.glob(pattern)})


def _require_room(path: Path, needed: int) -> None:
    """Raise `CaseError` where the run will not fit on the disk, or `OSError` where nothing can be written."""
    trial = path / f".trial-{os.getpid()}-0"
    try:
        trial.write_bytes(b"fluxloom")
    finally:
        trial.unlink(missing_ok=True)
    free = shutil.disk_usage(path).free
    if free < needed:
        raise CaseError(
            f"output directory {path}: the run will write about {_size(needed)} but only {_size(free)} are "
            f'free; free some space, set [output] format = "none", or {_ADVICE}'
        )


_ADVICE = "choose another with --output or [output] directory"


def _unusable(path: Path, error: OSError) -> CaseError:
    if isinstance(error, FileExistsError | NotADirectoryError):
        return CaseError(f"output directory {path}: there is a file of that name in the way; {_ADVICE}")
    if error.errno in FULL:
        return CaseError(f"output directory {path}: the disk is full; free some space or {_ADVICE}")
    return CaseError(f"output directory {path} cannot be written: {error.strerror or error}; {_ADVICE}")


def _size(count: int) -> str:
    return f"{count >> 20} MiB" if count >= 10 << 20 else f"{count >> 10} KiB"


_FEW = 8
_LARGE = 1 << 30
"""Bytes above which a file is known by its length and time alone."""

_SMALLER = ("steady", "residual_drop")
"""Keys of ``[time]`` of which the smaller value asks for more."""


@dataclass(frozen=True)
class Earlier:
    """What a run finds in its folder.

    Attributes
    ----------
    record
        Of the run before; None: there is none.
    goes_on
        Whether this run goes on from a checkpoint of it, if there is one.
    over
        How the run before ended, when nothing is left to be done.
    files
        Names of its results, which this run replaces.
    """

    record: Mapping[str, Any] | None = None
    goes_on: bool = True
    over: RunStatus | None = None
    files: tuple[str, ...] = ()

    @property
    def message(self) -> str:
        """What is to be said of a run before."""
        if self.record is None:
            return ""
        status, steps = self.record.get("status", "?"), self.record.get("iterations")
        return f"{status}, {steps:,} steps" if isinstance(steps, int) else str(status)


def examine(
    folder: ResultFolder, case: Mapping[str, Any], *, overwrite: bool, resume: bool, has_checkpoint: Callable[[], bool],
    allow_changes: bool = False,
    ways: tuple[str, str, str] = ("--overwrite", " with --output", "--allow-changes"),
) -> Earlier:  # fmt: skip
    """Return what this run does in its folder. Nothing is changed there.

    Parameters
    ----------
    folder
        Locked for this run.
    case
        All tables of the case, with ``inputs``: the digests of the files it names.
    overwrite, resume
        Whether the user wants it to begin anew (``--overwrite``), or the case does (``checkpoint.resume = false``).
    has_checkpoint
        Whether there is a checkpoint.
    allow_changes
        Whether the run goes on from a checkpoint of another case.
    ways
        How the user overwrites, chooses another directory, and goes on with another case, for messages; the last one is
        empty where that cannot be.

    Raises
    ------
    CaseError
        When there are results of another case, and they are not to be overwritten.
    """
    if folder.path is None:
        return Earlier()
    anew, record, path = overwrite or not resume, folder.record(), folder.path
    if record is None:
        found = known_results(path)
        if (path / RECORD).exists():
            found = [*found, RECORD]
        others = [name for name in found if not name.startswith("checkpoint.")]
        if others and not anew:
            raise CaseError(
                f"output directory {path}: there are results of no run that is known ({_listed(others)}); "
                f"{ways[0]} replaces them, or choose another directory{ways[1]}"
            )
        return Earlier(goes_on=not anew, files=tuple(found) if anew else ())
    names = tuple(name for name in record.get("files", ()) if isinstance(name, str))
    names += tuple(name for name in record.get("earlier_files", ()) if isinstance(name, str) and name not in names)
    if anew:
        return Earlier(record, goes_on=False, files=(*names, *known_results(path)))
    from fluxloom.run.results.case_difference import case_differences, output_differences

    before = record["case"] | {"inputs": record.get("inputs", {})}
    differing = case_differences(before, case)
    if differing and allow_changes:
        if not has_checkpoint():
            raise CaseError(f"output directory {path}: --allow-changes: there is no checkpoint to go on from")
        return Earlier(record, goes_on=True, files=names)
    if differing:
        changed = f", {ways[2]} goes on from its checkpoint with this case" if ways[2] else ""
        raise CaseError(
            f"output directory {path}: it holds results of another case ({record.get('status', '?')}): "
            f"{_listed(differing, '; ')}. {ways[0]} replaces them{changed}, or choose another directory{ways[1]}"
        )
    over = _over(record, case)
    if over is not None and output_differences(before, case) and not has_checkpoint():
        over = None
    return Earlier(record, goes_on=True, over=over, files=names)


def _over(record: Mapping[str, Any], case: Mapping[str, Any]) -> RunStatus | None:
    """Return how a run ended, if this case asks for nothing more; None: there is something left to do."""
    try:
        status = RunStatus(record.get("status", ""))
    except ValueError:
        return None
    if not status.complete or record.get("lost"):
        return None
    key, reached = record.get("ended_by", ""), record.get("reached")
    table, _, name = str(key).partition(".")
    wanted = case.get(table, {}).get(name) if isinstance(case.get(table), dict) else None
    if not isinstance(wanted, int | float) or not isinstance(reached, int | float):
        return None
    if status is RunStatus.CONVERGED:
        return status if reached <= wanted else None
    if not wanted or wanted > reached * (1.0 + 1e-9):  # 0: there is no such end any more
        return None
    now, then = (tables.get("time") or {} for tables in (case, record["case"]))
    return status if all(now.get(name) == then.get(name) for name in _SMALLER) else None


def digests_of_inputs(case: Mapping[str, Any]) -> dict[str, str]:
    """Return a digest of every file that a value of a case names, by the name of the file."""
    found: dict[str, str] = {}

    def look(value: Any) -> None:
        """Add the files that a value names."""
        if isinstance(value, Mapping):
            for item in value.values():
                look(item)
        elif isinstance(value, list | tuple):
            for item in value:
                look(item)
        elif isinstance(value, str) and 0 < len(value) < 4096 and "\n" not in value and value not in found:
            path = _named_file(value)
            try:
                if path.is_file():
                    found[value] = _digest(path)
            except (OSError, ValueError):
                return

    look(case)
    return found


def _named_file(value: str) -> Path:
    """Return the file that a value names, itself or as the place of a class, ``"module:Class"``."""
    module, between, _ = value.partition(":")
    file = getattr(sys.modules.get(module), "__file__", None) if between else None
    return Path(file or value)


def _digest(path: Path) -> str:
    about = path.stat()
    if about.st_size > _LARGE:
        return f"{about.st_size} bytes, {about.st_mtime_ns}"
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _listed(names: list[str], between: str = ", ") -> str:
    more = len(names) - _FEW
    return between.join(names[:_FEW]) + (f" and {more} more" if more > 0 else "")
