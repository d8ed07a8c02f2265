"""What the user wants of a run: a checked case, where its results go, and what of it is shown."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from fluxloom.app.application import Application
from fluxloom.app.case import CaseModel
from fluxloom.core.errors import CaseError

__all__ = ["Request"]


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
