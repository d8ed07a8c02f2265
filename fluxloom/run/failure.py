"""A failure on one of several ranks in the middle of what needs all of them: they meet, and end as one."""

from __future__ import annotations

import pickle
import traceback
from collections.abc import Callable
from typing import TypeVar

from fluxloom.comm.base import Comm
from fluxloom.core.errors import FluxloomError, OtherRankFailed

__all__ = ["APART", "all_or_none", "first_failure"]

Result = TypeVar("Result")

_PATIENCE = 30.0
"""Seconds in which ranks that compute have to come to a message, where they hear of the one that failed."""

APART = f"the other ranks did not leave what they do within {_PATIENCE:.0f} s: they are ended"
"""Note of an error that only this rank knows."""


def first_failure(comm: Comm, error: Exception, steps: int) -> tuple[Exception, int]:
    """Return what the lowest rank that failed has raised, and behind which step. Collective.

    Ranks that wait for the one that failed are woken; the communicator can be used again.

    Parameters
    ----------
    comm
        The ranks.
    error
        What was raised here: `OtherRankFailed` on those that were woken.
    steps
        Steps that were done before.

    Raises
    ------
    Exception
        The error itself, with the note `APART`, where the ranks do not come together.
    """
    if comm.size == 1:
        return error, steps
    word = None if isinstance(error, OtherRankFailed) else (_portable(error, comm.rank), steps)
    said = comm.rally(word, _PATIENCE)
    if said is None:
        error.add_note(APART)
        raise error
    return next((found for found in said if found is not None), (error, steps))


def all_or_none(comm: Comm, action: Callable[[], Result]) -> Result | None:
    """Return what a collective action returns; None on every rank if it fails on one of several. Collective."""
    if comm.size == 1:
        return action()
    try:
        found = action()
        comm.barrier()
    except Exception as error:
        if comm.rally(None, _PATIENCE) is None:
            error.add_note(APART)
            raise
        return None
    return found


def _portable(error: Exception, rank: int) -> Exception:
    """Return an error as other ranks can have it, with a note of where it comes from if it is a mistake of ours."""
    text = "".join(traceback.format_exception(error)).rstrip()
    try:
        found = pickle.loads(pickle.dumps(error))
    except Exception:
        ours = isinstance(error, FluxloomError)
        found = FluxloomError(str(error)) if ours else RuntimeError(f"{type(error).__name__}: {error}")
    if not isinstance(found, FluxloomError):
        found.add_note(f"on rank {rank}:\n{text}")
    return found
