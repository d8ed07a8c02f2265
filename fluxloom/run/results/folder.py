"""The folder of a run's results: made, locked, written into so that nothing is lost before its successor stands."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from fluxloom.core.errors import CaseError, DeviceUnavailable, FluxloomError, OtherRankFailed
from fluxloom.run.files import FULL, reason_of, write_json
from fluxloom.run.results.lock import FolderLock
from fluxloom.run.results.tables import PART, Lines

__all__ = ["CHECKPOINT", "RECORD", "ResultFolder", "known_results"]

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
