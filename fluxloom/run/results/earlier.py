"""What lies in the folder of a run, and so what the same command does there: begin, go on, or say that it is done."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fluxloom.core.errors import CaseError
from fluxloom.core.status import RunStatus
from fluxloom.run.results.folder import RECORD, ResultFolder, known_results

__all__ = ["Earlier", "digests_of_inputs", "examine"]

_FEW = 8
_LARGE = 1 << 30
"""Bytes above which a file is known by its length and time alone."""

_SMALLER = ("steady", "drop")
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
    from fluxloom.run.case_difference import case_differences, output_differences

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
