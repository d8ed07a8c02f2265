"""A stand-in for CuPy with several streams, captured forks, and NCCL between GPUs of one process.

Work runs as late as CUDA allows: when somebody waits, only what that needs is done, what is not ordered in reverse.
So an order that was not asked for does not come about by luck.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from tests.unit.device.cuda_fake import CUDARuntimeError, FakeCupy, Graph, Stream


class NcclError(RuntimeError):
    """An error of NCCL."""


class Work:
    """Something to do after other things."""

    def __init__(self, run: Callable[[], None] | None, after: list[Work], owner: Communicator | None = None) -> None:
        self.run, self.after, self.owner, self.state = run, after, owner, "asked"

    def finish(self) -> None:
        """Do it, and before it what it waits for."""
        pending = [self]
        while pending:
            work = pending[-1]
            missing = [w for w in work.after if w.state == "asked"]
            if work.state != "asked":
                pending.pop()
            elif missing:
                pending += missing  # the last one first
            else:
                work.state = "running"
                if work.run is not None:
                    work.run()
                work.state, work.after = "done", []
                pending.pop()


class Capture:
    """A capture that goes on: who takes part, and what they had been asked for before."""

    def __init__(self, origin: LateStream) -> None:
        self.origin, self.active = origin, True
        self.before: dict[LateStream, list[Work]] = {}
        self.add(origin)

    def add(self, stream: LateStream) -> None:
        """Take a stream in."""
        self.before[stream], stream.heads, stream.capture = stream.heads, [], self

    def end(self) -> list[Work]:
        """Return what the origin ended with; all streams go back to where they were."""
        ends, self.active = self.origin.heads, False
        known, pending = set(), list(ends)
        while pending:
            work = pending.pop()
            if id(work) not in known:
                known.add(id(work))
                pending += work.after
        joined = all(id(work) in known for stream in self.before for work in stream.heads)
        for stream, heads in self.before.items():
            stream.heads, stream.capture = heads, None
        if not joined:
            raise CUDARuntimeError("cudaErrorStreamCaptureUnjoined: a fork was not joined")
        return ends


class LateGraph(Graph):
    """What was captured, with its order."""

    def __init__(self, fake: LateCupy, ends: list[Work]) -> None:
        super().__init__([])
        self.fake, self.ends = fake, ends

    def launch(self, stream: Stream) -> None:
        """Ask for a copy of all of it, after what the stream was asked for."""
        assert isinstance(stream, LateStream)
        self.launched += 1
        roots, copies = stream.heads, {}

        def copy(work: Work) -> Work:
            if id(work) not in copies:
                copies[id(work)] = Work(work.run, [copy(w) for w in work.after] or roots, work.owner)
                if work.owner is not None:
                    work.owner.pending.append(copies[id(work)])
            return copies[id(work)]

        stream.heads = [copy(work) for work in self.ends] or roots


class LateStream(Stream):
    """A stream that knows what has to be done before what."""

    def __init__(self, fake: LateCupy, ptr: int, priority: int = 0) -> None:
        super().__init__(fake, ptr)
        self.priority = priority
        self.heads: list[Work] = []
        self.capture: Capture | None = None

    def ask(self, work: Callable[[], None], owner: Communicator | None = None) -> None:
        """Note what to do after what was asked for before."""
        self.heads = [Work(work, self.heads, owner)]
        if owner is not None and self.capture is None:
            owner.pending += self.heads

    def synchronize(self) -> None:
        """Do all of it, and nothing else."""
        assert self.capture is None, "waiting is not allowed while a graph is captured"
        self.fake.waits += 1
        for work in list(self.heads):
            work.finish()
        self.heads = []

    @property
    def done(self) -> bool:
        """Whether there is nothing left to do: always, as if who asks had given it the time."""
        return True

    def wait_event(self, event: Any) -> None:
        """Go on after what a stream had been asked for when the event was recorded."""
        if event.capture is not None and not event.capture.active:
            raise CUDARuntimeError("cudaErrorCapturedEvent: the event was recorded in a capture that has ended")
        if event.capture is None and self.capture is not None:
            raise CUDARuntimeError("cudaErrorStreamCaptureIsolation: the event was recorded outside of the capture")
        if event.capture is not None and self.capture is None:
            event.capture.add(self)
        self.heads = [Work(None, [*self.heads, event.work])]

    def begin_capture(self) -> None:
        """Begin to note work instead of asking for it."""
        if self.fake.no_graphs:
            raise CUDARuntimeError("cudaErrorStreamCaptureUnsupported: not here")
        Capture(self)

    def end_capture(self) -> LateGraph:
        """Return what was noted."""
        assert self.capture is not None
        assert self.capture.origin is self
        graph = LateGraph(self.fake, self.capture.end())
        self.fake.graphs.append(graph)
        return graph


class LateEvent:
    """A place in what a stream was asked for."""

    def __init__(self, fake: LateCupy) -> None:
        self.fake, self.time, self.capture = fake, -1.0, None
        self.work = Work(None, [])

    def record(self, stream: LateStream) -> None:
        """Be the place where the stream is now."""
        stream.ask(lambda: setattr(self, "time", self.fake.clock))
        self.work, self.capture = stream.heads[0], stream.capture

    def synchronize(self) -> None:
        """Wait until the stream gets there."""
        assert self.capture is None
        self.fake.waits += 1
        self.work.finish()


class LateCupy(FakeCupy):
    """The package; `nccl` is its module of that name. Memory is never given back: late work may still use it."""

    def __init__(self, kernels: dict[str, Callable[..., None]] | None = None) -> None:
        self.kept: list[Any] = []
        super().__init__(kernels)
        self.made = []
        self.streams = [LateStream(self, 0)]
        self.cuda.Stream = lambda non_blocking, priority=0: LateStream(
            self, 100 * len(self.made) + non_blocking, priority
        )
        self.cuda.Event = lambda disable_timing=False: LateEvent(self)
        self.nccl = Nccl(self)


    def _alloc(self, nbytes: int) -> Any:
        self.kept.append(super()._alloc(nbytes))
        return self.kept[-1]

    def _pinned(self, nbytes: int) -> Any:
        self.kept.append(super()._pinned(nbytes))
        return self.kept[-1]


class Nccl(SimpleNamespace):
    """NCCL among the GPUs of this process."""

    NCCL_UINT8, NCCL_FLOAT64, NCCL_FLOAT32, NCCL_FLOAT16, NCCL_INT64, NCCL_INT32 = range(1, 7)
    NCCL_SUM, NCCL_MIN, NCCL_MAX = range(3)
    NcclError = NcclError

    def __init__(self, fake: LateCupy) -> None:
        super().__init__(available=True, fake=fake, refuse="", made=0, group=None, ended=[])
        self.NcclCommunicator = lambda size, unique_id, rank: Communicator(self, size, unique_id, rank)
        self.ranks: dict[tuple[bytes, int], Communicator] = {}
        self.mail: dict[tuple[bytes, int, int], list[bytes]] = {}

    def get_unique_id(self) -> bytes:
        """Return another one each time."""
        self.made += 1
        return bytes([self.made]) * 128

    def groupStart(self) -> None:  # noqa: N802 - CuPy's name
        """Begin to collect messages."""
        assert self.group is None
        self.group = []

    def groupEnd(self) -> None:  # noqa: N802 - CuPy's name
        """Ask for the messages, all at once."""
        group, self.group = self.group, None
        if self.refuse:
            raise NcclError(self.refuse)
        if group:
            communicator, stream = group[0][:2]
            messages = [entry[2:] for entry in group]
            self.fake.find_stream(stream).ask(lambda: communicator.exchange(messages), communicator)


class Communicator:
    """A rank. Its messages are sent, and then received, when its stream gets there.

    Attributes
    ----------
    pending
        The exchanges that its streams have been asked for.
    """

    def __init__(self, nccl: Nccl, size: int, unique_id: bytes, rank: int) -> None:
        if nccl.refuse:
            raise NcclError(nccl.refuse)
        assert isinstance(unique_id, bytes)
        self.nccl, self.size, self.id, self.rank = nccl, size, unique_id, rank
        self.pending: list[Work] = []
        nccl.ranks[unique_id, rank] = self

    def _note(self, how: str, address: int, count: int, kind: int, peer: int, stream: int) -> None:
        assert self.nccl.group is not None, "outside of a group"
        assert kind == self.nccl.NCCL_UINT8
        self.nccl.group.append((self, stream, how, address, count, peer))

    def send(self, address: int, count: int, kind: int, peer: int, stream: int) -> None:
        """Note a message."""
        self._note("send", address, count, kind, peer, stream)

    def recv(self, address: int, count: int, kind: int, peer: int, stream: int) -> None:
        """Note a message."""
        self._note("receive", address, count, kind, peer, stream)

    def exchange(self, messages: list[tuple[str, int, int, int]]) -> None:
        """Send, then receive; a rank that has not sent yet goes on until it has."""
        mail = self.nccl.mail
        for _, address, count, peer in (m for m in messages if m[0] == "send"):
            mail.setdefault((self.id, self.rank, peer), []).append(ctypes.string_at(address, count))
        for _, address, count, peer in (m for m in messages if m[0] == "receive"):
            box = mail.setdefault((self.id, peer, self.rank), [])
            if not box:
                waiting = [work for work in self.nccl.ranks[self.id, peer].pending if work.state == "asked"]
                assert waiting, "this would wait for ever: nobody sends"
                waiting[0].finish()
            data = box.pop(0)
            assert len(data) == count
            ctypes.memmove(address, data, count)

    def allReduce(self, source: int, to: int, count: int, kind: int, how: int, stream: int) -> None:  # noqa: N802
        """Note that it was asked for."""
        self.reduced = (source, to, count, kind, how, stream)

    def check_async_error(self) -> None:
        """Say what went wrong meanwhile."""
        if self.nccl.refuse:
            raise NcclError(self.nccl.refuse)

    def destroy(self) -> None:
        """Note the end; NCCL waits here for graphs that use it."""
        self.nccl.ended.append(("destroy", self.rank))

    def abort(self) -> None:
        """Note the end."""
        self.nccl.ended.append(("abort", self.rank))
