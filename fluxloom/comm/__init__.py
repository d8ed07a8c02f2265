"""Messages between ranks: one interface, over MPI, over threads of one process, or for a rank alone."""

from fluxloom.comm.base import Channel, Comm, Message, SelfComm
from fluxloom.comm.ending import ending_together
from fluxloom.comm.mpi import MpiComm, detect, world
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
