"""Messages between ranks: one interface, over MPI, over threads of one process, or for a rank alone."""

from fluxloom.comm.base import Channel, Comm, Message, SelfComm

__all__ = ["Channel", "Comm", "Message", "SelfComm"]
