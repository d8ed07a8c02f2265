"""Messages between ranks: one interface, over MPI, over threads of one process, or for a rank alone.

Read `base` first (what every world offers), then `rows` (rows of tables by number), `agreement` (errors of one rank),
`mpi`, `threads`, and `ranks` (which of them a program has).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fluxloom.core.packages import import_late

if TYPE_CHECKING:
    from fluxloom.comm.base import Channel, Comm, Message, SelfComm
    from fluxloom.comm.mpi import MpiComm, world
    from fluxloom.comm.ranks import detect, ending_together
    from fluxloom.comm.threads import ThreadsComm, run_threads

__all__ = [
    "Channel",
    "Comm",
    "Message",
    "MpiComm",
    "SelfComm",
    "ThreadsComm",
    "detect",
    "ending_together",
    "run_threads",
    "world",
]

if not TYPE_CHECKING:
    import_late(__name__, {
        "fluxloom.comm.base": "Channel Comm Message SelfComm",
        "fluxloom.comm.ranks": "detect ending_together",
        "fluxloom.comm.mpi": "MpiComm world",
        "fluxloom.comm.threads": "ThreadsComm run_threads",
    })  # fmt: skip
