"""What goes wrong on one rank is an error of all: nobody waits for a rank that has given up."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from fluxloom.comm.base import Comm
from fluxloom.core.errors import DatError, FluxloomError

__all__ = ["agree", "raise_on_all_ranks"]

Result = TypeVar("Result")


def raise_on_all_ranks(comm: Comm, action: Callable[[], Result]) -> Result:
    """Do something that may fail on this rank alone; an error of one rank is raised on all.

    ``action`` must not be collective. Where several ranks fail, the error is that of the lowest.

    Raises
    ------
    FluxloomError
        What ``action`` raised on some rank, with the same type and message.
    """
    result, failed = None, None
    try:
        result = action()
    except FluxloomError as error:
        failed = error
    reasons = comm.allgather(None if failed is None else (type(failed), str(failed)))
    first = next((reason for reason in reasons if reason is not None), None)
    if first is not None:
        kind, text = first
        raise kind(text) from failed
    return result  # type: ignore[return-value]


def agree(comm: Comm, problem: str, kind: type[FluxloomError] = DatError) -> None:
    """Raise the first rank's problem, if some rank has one, on every rank. Collective.

    Raises
    ------
    FluxloomError
        Of the kind, with the rank, where there are several, and its text.
    """
    for rank, text in enumerate(comm.allgather(problem)):
        if text:
            raise kind(f"rank {rank}: {text}" if comm.size > 1 else text)
