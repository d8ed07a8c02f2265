"""Several devices of one process, each with a thread of its own: ranks that run the same program at the same time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from fluxloom.comm.base import Comm, SelfComm
from fluxloom.comm.threads import thread_ranks
from fluxloom.core.errors import SolverError
from fluxloom.device.base import Device
from fluxloom.dsl.context import Context
from fluxloom.dsl.declare.named_device import open_named
from fluxloom.dsl.run.concurrent import Team, TimedComm
from fluxloom.dsl.run.hybrid import DistributedProgram, Measured
from fluxloom.perf.stopwatch import Stopwatch

__all__ = ["DeviceRanks", "DeviceTeam", "whole_shares"]

Result = TypeVar("Result")


class DeviceTeam:
    """Devices of this process that compute at the same time.

    Each has a thread for good, and so have the threads of its loops. Use it as a context manager, or call `close`.

    Parameters
    ----------
    devices
        Names as `open_named` takes them, or device objects; the same one may be there twice.

    Attributes
    ----------
    names
        What they were called.
    devices
        The devices.

    Raises
    ------
    SolverError
        If there is no device.
    DeviceUnavailable
        If one cannot be had.
    """

    def __init__(self, devices: Sequence[str | Device]) -> None:
        given = [devices] if isinstance(devices, str) else list(devices)
        if not given:
            raise SolverError("no devices: give a list of names, with one at least")
        self.devices = [open_named(device) for device in given]
        self.names = tuple(device if isinstance(device, str) else device.name for device in given)
        self._jobs: list[Callable[[], Any] | None] = [None for _ in given]
        self._team = Team([lambda k=k: self._work(k) for k in range(len(given))])
        self._close = threading.Lock()
        self._open = True

    @property
    def size(self) -> int:
        """Number of devices."""
        return len(self.devices)

    def _work(self, number: int) -> Any:
        job = self._jobs[number]
        return None if job is None else job()

    def run(self, jobs: Sequence[Callable[[], Any] | None]) -> list[Any]:
        """Run a function in the thread of each device, at the same time, and return the results; None: nothing."""
        self._jobs = list(jobs)
        try:
            return self._team()
        finally:
            self._jobs = [None for _ in self.devices]

    def close(self) -> None:
        """End the threads."""
        with self._close:
            if self._open:
                self._team.close()
            self._open = False

    def __enter__(self) -> DeviceTeam:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"DeviceTeam({', '.join(self.names)})"


class DeviceRanks:
    """Some devices of a team as the ranks of one communicator; a device alone is one rank and sends nothing.

    Parameters
    ----------
    team
        The devices.
    members
        Numbers of those that take part, in the order of their ranks.

    Attributes
    ----------
    contexts
        One a rank.
    comms
        The communicators of the contexts, which take the time for which ranks wait.
    """

    def __init__(self, team: DeviceTeam, members: Sequence[int]) -> None:
        self.team, self.members = team, tuple(members)
        self._ranks = thread_ranks(len(self.members)) if len(self.members) > 1 else []
        inner: Sequence[Comm] = self._ranks or [SelfComm()]
        self.comms = [TimedComm(comm) for comm in inner]
        self.contexts = [
            Context(team.devices[member], comm=comm) for member, comm in zip(self.members, self.comms, strict=True)
        ]
        for rank in self._ranks:
            rank.leave()

    @property
    def size(self) -> int:
        """Number of ranks."""
        return len(self.members)

    def run(self, function: Callable[[int], Result]) -> list[Result]:
        """Run ``function(rank)`` on all ranks at the same time and return the results.

        Raises
        ------
        Exception
            What the first rank that could not go on raised.
        SolverError
            If the ranks have stopped in the middle of something before.
        """
        why = next((rank.broken for rank in self._ranks if rank.broken), "")
        if why:
            raise SolverError(f"the devices stopped in the middle of an earlier call ({why}): make a new matrix")
        errors: list[BaseException] = []
        for rank in self._ranks:
            rank.enter()

        def work(rank: int) -> Result | None:
            try:
                return function(rank)
            except BaseException as error:  # raised below: the others end because of it
                errors.append(error)
                return None
            finally:
                if self._ranks:
                    self._ranks[rank].leave()

        jobs: list[Callable[[], Any] | None] = [None for _ in self.team.devices]
        for rank, member in enumerate(self.members):
            jobs[member] = lambda rank=rank: work(rank)
        found = self.team.run(jobs)
        if errors:
            raise errors[0]
        return [found[member] for member in self.members]

    def seconds(self, run: Callable[[int, int], object], calls: int) -> float:
        """Return the time of ``run(rank, calls)`` on all ranks at the same time."""
        return self.run(lambda rank: self._watch(rank).timed(lambda: run(rank, calls)))[0]

    def _watch(self, rank: int, **limits: Any) -> Stopwatch:
        """Return a stopwatch of which all ranks are told the time of the slowest."""
        return Stopwatch(wait=self.contexts[rank].synchronize, ranks=self.comms[rank], **limits)

    def measure(
        self, run: Callable[[int, int], object], calls: int, reset: Callable[[], object] = lambda: None
    ) -> Measured:
        """Return the time of a call, all devices at once, and for how long each of them was busy.

        Parameters
        ----------
        run
            Makes so many calls on a rank.
        calls
            Calls that are timed.
        reset
            Puts back the values that they change.
        """

        def busy(rank: int) -> float:
            """Return for how many seconds of a call this rank did not wait for others."""
            comm = self.comms[rank]
            comm.settle = self.contexts[rank].synchronize
            try:
                found = DistributedProgram(comm, lambda: run(rank, calls), 1).measure()
                return max(found.busy[comm.rank] / calls, 1e-9)
            finally:
                comm.settle = None

        reset()
        seconds = self.seconds(run, calls) / calls
        reset()
        return Measured(seconds, tuple(self.run(busy)))

    def calls_of(self, run: Callable[[int, int], object], seconds: float, most: int, unit: int = 1) -> int:
        """Return how many calls take about so many seconds, at most ``most``, a multiple of ``unit``."""
        limits = {"round_seconds": seconds, "most_calls": most // unit}
        return unit * self.run(lambda rank: self._watch(rank, **limits).calls(lambda: run(rank, unit)))[0]


def whole_shares(team: DeviceTeam, chosen: Sequence[int], shares: Sequence[float]) -> tuple[float, ...]:
    """Return a share for every device of a team: those of some of them, and nothing for the others."""
    given = dict(zip(chosen, shares, strict=True))
    return tuple(float(given.get(member, 0.0)) for member in range(team.size))
