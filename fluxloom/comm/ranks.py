"""The ranks that run a program: finding them, and ending all of them when one cannot go on."""

from __future__ import annotations

import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from fluxloom.comm.base import Comm, SelfComm
from fluxloom.comm.launchers import find_launcher
from fluxloom.core.errors import FluxloomError, OutOfMemory

if TYPE_CHECKING:
    from fluxloom.comm.mpi import MpiComm

__all__ = ["detect", "ending_together"]

_TURN, _LAST_TURN = 0.5, 2.0
"""Seconds by which a rank lets the one before it speak first, and the most that it waits."""


def detect() -> Comm:
    """Return the communicator of this process: MPI under a launcher, else that of a rank alone.

    Without a launcher mpi4py is not even imported, unless the program has started MPI itself.

    Raises
    ------
    CommError
        If the launcher and the MPI library do not belong together.
    DeviceUnavailable
        If mpi4py is missing.
    """
    module: Any = sys.modules.get("mpi4py.MPI")
    started = module is not None and module.Is_initialized() and module.COMM_WORLD.size > 1
    if not started and find_launcher() is None:
        return SelfComm()
    from fluxloom.comm.mpi import world

    return world()


@contextmanager
def ending_together(comm: Comm, *, patience: float = 10.0) -> Iterator[Comm]:
    """End every rank when an error leaves the body on one of them, instead of leaving the others waiting for ever.

    The rank prints its number and the message of a `FluxloomError`, or the traceback of any other error, and ends
    the run with the exit status of the command line: that of a `FluxloomError`, 130 after an interruption, else 1.
    When all ranks meet the same error, the lowest speaks and ends the others, which wait for that. A rank that wants to
    exit waits for the others to end too, and ends them if they do not: at once with a status other than 0, with 0 when
    they wait for it.
    A rank alone and the threads of a process just raise.

    Collective.

    Parameters
    ----------
    comm
        The ranks.
    patience
        Seconds that a rank waits with its exit status, or after another one has spoken.
    """
    if comm.size == 1:
        yield comm
        return
    from fluxloom.comm.mpi import MpiComm

    if not isinstance(comm, MpiComm):
        yield comm
        return
    comm.agree(b"ending_together")
    private = comm.handle.Dup()
    try:
        try:
            yield comm
        except SystemExit as stop:
            _exit(comm, private, stop, patience)
            raise
        else:
            comm.farewell(private.Ibarrier().Test, "it has come to the end of ending_together")
    except SystemExit:
        raise
    except KeyboardInterrupt:
        comm.abort("interrupted", 130)
    except BaseException as error:
        time.sleep(min(_TURN * comm.rank, _LAST_TURN))
        if isinstance(error, MemoryError):
            error = OutOfMemory(f"the memory of this machine is exhausted: {error}")
        expected = isinstance(error, FluxloomError)
        text = f"error: {error}" if expected else "".join(traceback.format_exception(error)).rstrip()
        if private.Iprobe():
            time.sleep(patience)  # another rank has spoken, and ends all
        for other in range(comm.size):
            if other != comm.rank:
                private.isend(None, other)
        comm.abort(text, error.exit_code if isinstance(error, FluxloomError) else 1)
    private.Free()


def _exit(comm: MpiComm, private: Any, stop: SystemExit, patience: float) -> None:
    """Wait until all ranks have come to their end, or end them."""
    code = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    everybody = private.Ibarrier()
    deadline = time.monotonic() + patience
    while code and not everybody.Test():
        if time.monotonic() > deadline:
            text = "" if isinstance(stop.code, int) else f": {stop.code}"
            comm.abort(f"exits with status {code}{text}, but other ranks go on; all are ended", code)
        time.sleep(0.01)
    comm.farewell(everybody.Test, f"it has ended with status {code}")
