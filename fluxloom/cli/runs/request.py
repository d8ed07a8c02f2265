"""What the user wants of a run, and what can be said of a case before anything is built.

That is what a run would refuse, and what it would do without.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from fluxloom.cases.files.application import Application
from fluxloom.cases.files.case import CaseModel
from fluxloom.core.errors import CaseError

__all__ = ["Request", "check_directory", "check_ranks", "missing_packages"]


@dataclass(frozen=True)
class Request:
    """What the user wants.

    Attributes
    ----------
    case, application
        The checked case, and its solver.
    file, command
        Where it was read, and the command line.
    directory
        Where results go.
    pictures
        Whether pictures are drawn.
    profile
        Whether the time of every loop is measured, and compared with the memory bandwidth.
    overwrite
        Whether the run begins anew, whatever is in the directory.
    allow_changes
        Whether it goes on from a checkpoint of another case on the same mesh.
    asked
        Whether the number of steps comes from the command line: then it is what the user wants, not a limit.

    Raises
    ------
    CaseError
        If it is to begin anew and to go on.
    """

    case: CaseModel
    application: Application
    file: str
    command: str
    directory: Path
    pictures: bool = True
    profile: bool = False
    overwrite: bool = False
    allow_changes: bool = False
    asked: bool = False

    def __post_init__(self) -> None:
        if self.overwrite and self.allow_changes:
            raise CaseError("give only one of --overwrite, to begin anew, and --allow-changes, to go on")


def check_ranks(file: str, case: CaseModel, application: Application, ranks: int, threads: int | None) -> None:
    """Raise `CaseError` where a case cannot run on its ranks; ``threads`` are those of the command line."""
    if threads is not None and case.run.ranks:
        raise CaseError(
            f"--threads does not count where {file} says ranks = {case.run.ranks!r}: write the threads behind the "
            "colon, as in cpu:2*4, or give --device too"
        )
    if ranks > 1 and not getattr(application, "distributed", False):
        raise CaseError(f"the solver {application.name} does not run on several ranks")
    if ranks > 1 and case.run.tune == "startup":
        raise CaseError("run.tune: tuning at the start is for one rank; leave the key out")
    given = case.partition.given
    if ranks > 1 and given is not None and len(given) != ranks:
        raise CaseError(f"{file}: partition.shares: {len(given)} numbers for {ranks} ranks: give one a rank")


def check_directory(path: Path, needed: int) -> None:
    """Raise `CaseError` where results could not be written to a directory, without making it.

    Parameters
    ----------
    path
        The directory; it need not exist yet.
    needed
        Bytes that the run will write, roughly.
    """
    there = next(folder for folder in (path, *path.absolute().parents) if folder.exists())
    if not there.is_dir():
        raise CaseError(f"output directory {path}: there is a file of that name in the way; choose another")
    if not os.access(there, os.W_OK | os.X_OK):
        raise CaseError(f"output directory {path} cannot be written: no permission for {there}; choose another")
    free = shutil.disk_usage(there).free
    if free < needed:
        raise CaseError(
            f"output directory {path}: the run will write about {needed >> 20} MiB but only {free >> 20} MiB are "
            'free; free some space, set [output] format = "none", or choose another'
        )


def missing_packages(case: CaseModel) -> Iterator[str]:
    """Yield what outputs of a case need and this Python has not, a line each."""
    checkpoint, movie = getattr(case, "checkpoint", None), getattr(case, "movie", None)
    film = str(movie.format) if movie is not None and movie.every else ""
    asked = checkpoint is not None and bool(checkpoint.every or checkpoint.seconds)
    wishes = (
        ("pictures", "matplotlib", "viz", case.output.picture or bool(film)),
        ("final fields in VTKHDF", "h5py", "mesh", case.output.format == "vtkhdf"),
        ("checkpoints", "h5py", "mesh", asked),
        ("a film .gif", "PIL", "viz", film == "gif"),
        ("a film .mp4", "imageio_ffmpeg", "movie", film == "mp4"),
    )
    for what, package, extra, wanted in wishes:
        if wanted and find_spec(package) is None:
            yield f"{package}, for {what}: pip install 'fluxloom[{extra}]'"
    if case.output.format == "auto" and find_spec("h5py") is None:
        yield "h5py, for final fields in VTKHDF (they are written as VTU): pip install 'fluxloom[mesh]'"
