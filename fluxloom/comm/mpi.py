"""Ranks as processes that talk through MPI (mpi4py)."""

from __future__ import annotations

import atexit
import ctypes
import os
import pickle
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from fluxloom.comm.account import PATIENCE, Account, disagreement, patience_asked
from fluxloom.comm.base import Channel, Comm, Message, check_messages, check_parts, check_root, folded, raw
from fluxloom.comm.launchers import STATUS_FILE, Launcher, find_launcher, mark, refuse_early_exit, unmark
from fluxloom.comm.mpi_channel import MpiChannel
from fluxloom.comm.watch import COMPUTES, DIFFERS, RESTS, WAITS, Watch
from fluxloom.core.errors import CommError, DeviceUnavailable, OtherRankFailed
from fluxloom.core.packages import require

__all__ = ["MpiComm", "device_memory_support", "load_mpi", "world"]

_PACKED = 2**20
"""Bytes that ranks exchange in one collective call; more goes directly, without being packed: several times faster."""

_REST = 0.005
"""Seconds between two looks of a rank that rests."""

_SPIN, _SHARE = 1e-3, 0.01
"""Seconds for which a rank that waits for its own device asks without a pause; the part of what it has waited that its
pauses take later."""

_GLANCES, _LATER, _LOOK = 64, 0.5, 0.01
"""Tests of a request between two looks for a rank that failed; seconds in which what is under way may still come;
seconds between two looks at what others say who wait."""

_MEETING = 64
"""Bytes with which every collective call begins: head of the account, then what is small enough to come with it."""

_BEGIN = 16
"""Where that is: behind count and digest, and its length."""

_ROOM = _MEETING - _BEGIN

_ADVICE = (
    "start with the mpiexec of that library (for the mpich package it lies beside the Python interpreter; "
    "`fluxloom run --ranks` finds it), or install mpi4py for the MPI of the launcher: "
    "pip install --no-binary mpi4py mpi4py"
)


def world() -> MpiComm:
    """Return a communicator of all MPI ranks.

    Raises
    ------
    CommError
        If the launcher and the MPI library do not belong together.
    DeviceUnavailable
        If mpi4py is missing.
    """
    return MpiComm()


def load_mpi() -> Any:
    """Import mpi4py, start MPI unless that was done, and return the module ``mpi4py.MPI``.

    Raises
    ------
    CommError
        If there is no MPI library, or a launcher of another one started this process: the processes would not
        see each other, and each would run alone.
    DeviceUnavailable
        If mpi4py is missing.
    """
    launcher = find_launcher()
    if "mpi4py.MPI" not in sys.modules:
        settings: Any = require("mpi4py", "mpi", "running on several ranks").rc
        wanted = settings.initialize
        if wanted:  # but not yet: a library that meets a launcher of another one may end the process
            settings.initialize = False
            settings.finalize = settings.finalize is not False
    else:
        wanted = False
    try:
        mpi: Any = require("mpi4py.MPI", "mpi", "running on several ranks")
    except (RuntimeError, DeviceUnavailable) as error:
        why = error.__cause__ or error
        raise CommError(f"mpi4py finds no MPI library: pip install 'fluxloom[mpi]', or load one ({why})") from error
    if wanted:
        _check_family(mpi, launcher)
        mpi.Init_thread()
    if not mpi.Is_initialized():
        raise CommError("mpi4py was told not to start MPI (mpi4py.rc.initialize): call MPI.Init() first")
    _check_size(mpi, launcher)
    return mpi


def _check_family(mpi: Any, launcher: Launcher | None) -> None:
    """Compare the launcher with the library before MPI starts."""
    if launcher is None or not launcher.family or launcher.processes == 1:
        return
    family = "Open MPI" if mpi.get_vendor()[0] == "Open MPI" else "MPICH"
    if family != launcher.family:
        raise CommError(_mismatch(mpi, launcher))


def _check_size(mpi: Any, launcher: Launcher | None) -> None:
    """Compare the number of processes that were started with those that MPI sees."""
    if launcher is not None and launcher.processes > 1 and mpi.COMM_WORLD.size == 1:
        raise CommError(_mismatch(mpi, launcher))


def _mismatch(mpi: Any, launcher: Launcher) -> str:
    version = " ".join(mpi.Get_library_version().split("\n")[0].strip("\x00 ").split())
    return (
        f"{launcher.processes} processes were started by {launcher.name}, but mpi4py uses another MPI ({version}), "
        f"so that each would be rank 0 of 1 and compute everything: {_ADVICE}"
    )


def device_memory_support(mpi: Any) -> bool:
    """Whether the MPI library takes addresses in the memory of a CUDA device; False where it does not say.

    It is asked through its functions ``MPIX_Query_cuda_support`` and ``MPIX_GPU_query_support``; MPICH then has to
    have it switched on too.
    """
    version = mpi.Get_library_version().upper()
    if "CRAY" in version and os.environ.get("MPICH_GPU_SUPPORT_ENABLED") != "1":
        return False
    if "MPICH" in version and os.environ.get("MPIR_CVAR_ENABLE_GPU") == "0":
        return False
    library = ctypes.CDLL(mpi.__file__)  # its symbols are found with those of the library that it is linked to
    query = getattr(library, "MPIX_Query_cuda_support", None)
    if query is not None:
        return bool(query())
    query = getattr(library, "MPIX_GPU_query_support", None)
    found = ctypes.c_int(0)
    return query is not None and query(0, ctypes.byref(found)) == 0 and bool(found.value)


class MpiComm(Comm):
    """The ranks of an MPI communicator.

    Parameters
    ----------
    communicator
        One of mpi4py; ``COMM_WORLD`` by default. It is duplicated, so that messages of the caller and of this
        package do not meet; this is collective.

    Attributes
    ----------
    largest
        Bytes above which a message is described in larger units, because MPI counts in 32 bits.
    handle
        The duplicate, an object of mpi4py.
    epoch
        How often the ranks have left everything and met (`Comm.rally`).
    unseen
        Whether messages go from device to device, past the account: then what the ranks have done is compared at the
        end, too. The same on all ranks.
    """

    name = "mpi"
    largest = 2**30

    def __init__(self, communicator: Any = None, whole: MpiComm | None = None) -> None:
        self._mpi = load_mpi()
        base = self._mpi.COMM_WORLD if communicator is None else communicator
        self.handle = base.Dup()
        self._whole = whole if whole is not None else self
        self.epoch, self._limit = self._whole.epoch if whole is not None else 0, 0.0
        self.rank, self.size = self.handle.Get_rank(), self.handle.Get_size()
        self.account = Account()
        self.note = self.account.note
        if whole is None:
            self._alarm, self._spare, self.unseen = base.Dup(), base.Dup(), False
            patience = patience_asked(os.environ.get(PATIENCE, ""))
            self.watch = Watch(self._mpi, self._alarm, self.account, patience)
            if self.size > 1:
                self._together = False
                refuse_early_exit(lambda: self._together or self._mpi.Is_finalized(), self.abort)
                if self.rank == 0:
                    mark()
                atexit.register(self._leave, os.getpid())
        self._make_meeting()
        local = self.handle.Split_type(self._mpi.COMM_TYPE_SHARED, key=self.rank)
        self.local_rank, self.local_size = local.Get_rank(), local.Get_size()
        local.Free()
        self.takes_device_memory = all(self.handle.allgather(device_memory_support(self._mpi)))

    @property
    def module(self) -> Any:
        """``mpi4py.MPI``."""
        return self._mpi

    def _make_meeting(self) -> None:
        """Make the memory with which collective calls begin."""
        self._mine, self._all = bytearray(_MEETING), bytearray(self.size * _MEETING)
        self._head = memoryview(self._mine).cast("Q")
        heads = np.frombuffer(self._all, np.uint64).reshape(self.size, -1)
        self._words, self._sizes = heads[:, 0], heads[:, 1]
        self._sides = [self._mine, self._mpi.BYTE], [self._all, self._mpi.BYTE]
        self._acts: dict[Any, tuple[bytes, npt.NDArray[Any], npt.NDArray[Any]]] = {}

    def _meet(self, act: bytes, nbytes: int = 0, *, rests: bool = False) -> None:
        """Begin a collective call: the ranks compare what they have done, and pass what is small.

        Parameters
        ----------
        act
            What is called.
        nbytes
            Length of what this rank gives; it comes along where it is in its place, behind the head.
        rests
            Whether the rank sleeps while it waits.

        Raises
        ------
        CommError
            If they differ; the same on all ranks.
        """
        self.account.note(act)
        self._head[0], self._head[1] = self.account.word, nbytes
        self.wait(self.handle.Iallgather(*self._sides).Test, kind=RESTS if rests else WAITS)
        words = self._words.tolist()
        if words.count(words[0]) != self.size:
            stories = self.handle.allgather(self.account.story())
            self._refuse(disagreement(dict(enumerate(stories))))

    def _pass(self, act: bytes, data: bytes) -> bool:
        """Begin a collective call with some bytes of each rank; return whether those of all came along."""
        if len(data) <= _ROOM:
            self._mine[_BEGIN : _BEGIN + len(data)] = data
        self._meet(act, len(data))
        return int(self._sizes.max()) <= _ROOM

    def _passed(self, rank: int) -> Any:
        """Return the value of a rank that came along."""
        begin = rank * _MEETING + _BEGIN
        return pickle.loads(self._all[begin : begin + int(self._sizes[rank])])

    def allgather(self, value: Any) -> list[Any]:
        """Return the (small, picklable) value of every rank, on every rank."""
        packed = pickle.dumps(value)  # before the others wait for it
        if self._pass(b"an allgather", packed):
            return [self._passed(rank) for rank in range(self.size)]
        return [pickle.loads(data) for data in self.handle.allgather(packed)]

    def broadcast(self, value: Any, root: int = 0) -> Any:
        """Return the value of one rank on every rank."""
        check_root(root, self.size)
        packed = pickle.dumps(value) if self.rank == root else b""
        if self._pass(b"a broadcast from rank %d" % root, packed):
            return self._passed(root)
        return pickle.loads(self.handle.bcast(packed, root))

    def barrier(self) -> None:
        """Wait for every rank."""
        self._meet(b"a barrier")

    def rest(self) -> None:
        """Wait for every rank without keeping a core busy, as a plain barrier of MPI does."""
        self._meet(b"a barrier", rests=True)

    def wait(
        self, done: Callable[[], bool], what: Callable[[], str] | None = None, *, nbytes: int = 0, kind: str = WAITS
    ) -> None:
        """Wait until something is done, unless a rank calls all of them to `rally`, or it will not come.

        What all ranks have entered still comes then: a collective call behind a barrier always ends.

        Parameters
        ----------
        done
            Whether it is.
        what
            For what, in words; by default for the others in the last act.
        nbytes
            What comes may be so long.
        kind
            `WAITS`; `RESTS`: the rank sleeps meanwhile, and the wait is not told; `COMPUTES`: it waits for its own
            device.

        Raises
        ------
        OtherRankFailed
            If one does, or, of those that have met after one did, if nothing has come for the patience of all.
        CommError
            If all ranks wait, or have ended, and nothing comes; the same on all of them.
        """
        if self.epoch != self._whole.epoch:
            raise CommError("this group of ranks was left in the middle of its messages, and is of no more use")
        count, begin, heard, watch, pause = 0, 0.0, 0.0, self._whole.watch, 0.0
        while not done():
            count += 1
            if kind == RESTS:
                time.sleep(_REST)
            elif count % _GLANCES and kind == WAITS:
                continue
            now = time.monotonic()
            begin = begin or now
            if kind == COMPUTES and now - begin > _SPIN:
                time.sleep(min(_SHARE * (now - begin), _REST))
            if not heard and self._whole.called():
                heard = now
            late = self._whole.impatient(now - begin) and kind != RESTS
            if late or (heard and now - heard > _LATER):
                self.held.append(_Left(done))  # its memory may still be written
                why = "the ranks wait for different things" if late else "another rank has failed"
                self._refuse(why, OtherRankFailed)
            if now - begin < pause or now - begin < watch.pause(nbytes):
                continue
            if not pause:
                watch.begin(begin)
            pause = now - begin + _LOOK
            if verdict := watch.look(kind, what or self._waits_for_all, nbytes):
                self.held.append(_Left(done))
                self._make_meeting()
                self._refuse(verdict)

    def _waits_for_all(self) -> str:
        return "waiting for the others"

    def devices_talk(self) -> Callable[[Callable[[], bool]], None]:
        """Hear that devices send each other messages; see `Comm.devices_talk`."""
        self._whole.unseen = True
        return self._whole.wait_for_device  # a device outlives a group that is left

    def wait_for_device(self, done: Callable[[], bool]) -> None:
        """Wait until the device of this rank has done something, which may need messages of other devices; see `wait`.

        That is computing, however long it takes; but where the ranks have run different things, all get the same error.
        """
        self.wait(done, lambda: "waiting for its device", kind=COMPUTES)

    def differ(self, text: str) -> NoReturn:
        """Leave, as this rank has found that another one has not done the same: all that wait get the same error.

        Raises
        ------
        CommError
            With what differs; where the others do not come, with the text.
        """
        begin = time.monotonic()
        self._whole.watch.begin(begin)
        while time.monotonic() - begin < self._whole.watch.patience:
            if self._whole.called():
                self._refuse("another rank has failed", OtherRankFailed)
            if verdict := self._whole.watch.look(DIFFERS, lambda: text):
                self._refuse(verdict)
            time.sleep(_REST)
        self._refuse(text)

    def _refuse(self, text: str, error: type[CommError] = CommError) -> NoReturn:
        """Raise an error of ranks that differ, or of one that has failed: their ends need not be compared any more."""
        self._whole.unseen = False
        raise error(text)

    def farewell(self, done: Callable[[], bool], what: str) -> None:
        """Wait until all ranks have come to their end; this one has nothing more to say.

        Raises
        ------
        CommError
            If others wait for it; the same on all of them.
        """
        begin = time.monotonic()
        self.watch.begin(begin)
        while not done():
            time.sleep(_REST)
            if time.monotonic() - begin > self.watch.pause() and (verdict := self.watch.look(RESTS, lambda: what)):
                self._refuse(verdict)

    def _leave(self, process: int) -> None:
        """Wait for the other ranks at the end of the process: before MPI does, which would wait for ever."""
        if os.getpid() != process:  # a copy of the process is no rank
            return
        if not self._mpi.Is_finalized():
            self._await_all()
        self._together = True
        if self.rank == 0:
            unmark()

    def _await_all(self) -> None:
        failed = getattr(sys, "last_value", None) is not None
        mine = np.array([self.account.word, self.unseen and not failed], np.uint64)
        found = np.empty((self.size, 2), np.uint64)
        everybody = self._alarm.Iallgather([mine, self._mpi.UINT64_T], [found, self._mpi.UINT64_T])
        try:
            self.farewell(everybody.Test, "it has ended")
        except CommError as error:  # those that wait get it too, and end
            deadline = time.monotonic() + self.watch.patience
            while not everybody.Test():
                time.sleep(_REST)
                if time.monotonic() > deadline:
                    self.abort(str(error), 2)
        if found[:, 1].all() and (found[:, 0] != found[0, 0]).any():
            stories = self._alarm.allgather(self.account.story())
            if self.rank == 0:
                self.abort(disagreement(dict(enumerate(stories)), dict.fromkeys(range(self.size), "it has ended")), 2)

    def called(self) -> bool:
        """Whether a rank calls all of them."""
        return self._alarm.Iprobe(tag=self.epoch)

    def impatient(self, seconds: float) -> bool:
        """Whether a wait has lasted for too long."""
        return 0.0 < self._limit < seconds

    def rally(self, word: Any, patience: float) -> list[Any] | None:
        """Wake the other ranks, and meet them; see `Comm.rally`."""
        packed, calls, others = pickle.dumps(word), not self.called(), [r for r in range(self.size) if r != self.rank]
        sent = [self._alarm.Isend([bytearray(), self._mpi.BYTE], other, self.epoch) for other in others if calls]
        everybody, deadline = self._spare.Ibarrier(), time.monotonic() + patience
        while not everybody.Test():
            if time.monotonic() > deadline:
                return None
            time.sleep(_REST)
        found = self._spare.allgather((calls, packed))
        for other in others:
            if found[other][0]:
                self._alarm.Recv([bytearray(), self._mpi.BYTE], other, self.epoch)
        self._mpi.Request.Waitall(sent)
        self.handle, self._spare = self._spare, self._spare.Dup()  # requests under way stay with the old one
        self.epoch, self._limit = self.epoch + 1, patience
        self.account.clear()
        self._make_meeting()
        return [pickle.loads(data) for _, data in found]

    def split(self, colour: int, key: int = 0) -> Comm | None:
        """Return the communicator of the ranks that give the same colour; see `Comm.split`."""
        self._meet(b"a split into groups")
        part = self.handle.Split(colour if colour >= 0 else self._mpi.UNDEFINED, key)
        if part == self._mpi.COMM_NULL:
            return None
        found = MpiComm(part, self._whole)
        part.Free()
        return found

    def reduce(self, values: npt.NDArray[Any], operation: str) -> npt.NDArray[Any]:
        """Combine small arrays of all ranks in the order of the ranks; every rank gets the same bits."""
        array = np.asarray(values, order="C")
        key = operation, array.dtype, array.shape
        act, mine, rows = self._acts.get(key) or self._act(*key)
        if array.nbytes <= _ROOM:
            mine[...] = array
            self._meet(act, array.nbytes)
            return folded(rows, operation)
        self._meet(act, array.nbytes)
        found = np.empty((self.size, *array.shape), array.dtype)
        self.wait(self.handle.Iallgather([raw(array), self._mpi.BYTE], [raw(found), self._mpi.BYTE]).Test)
        return folded(found, operation)

    def _act(
        self, operation: str, dtype: np.dtype[Any], shape: tuple[int, ...]
    ) -> tuple[bytes, npt.NDArray[Any], npt.NDArray[Any]]:
        """Return how a call with arrays is told, and where small ones come along: that of this rank, those of all."""
        if dtype.hasobject:
            raise CommError(f"{operation}: arrays of Python objects cannot be sent; use allgather")
        one = np.empty(shape, dtype)
        rows = np.empty(0, dtype)
        if one.nbytes <= _ROOM:
            rows = np.ndarray((self.size, *shape), dtype, self._all, _BEGIN, (_MEETING, *one.strides))
            one = np.ndarray(shape, dtype, self._mine, _BEGIN)
        self._acts[operation, dtype, shape] = found = f"{operation} of {dtype} of shape {shape}".encode(), one, rows
        return found

    def exchange(self, parts: Sequence[npt.NDArray[Any]]) -> list[npt.NDArray[Any]]:
        """Send ``parts[r]`` to rank ``r``; return what each rank sent here."""
        arrays = check_parts(parts, self.size)
        self._meet(f"exchange of {arrays[0].dtype} of shape {arrays[0].shape[1:]}".encode())
        counts = np.array([len(array) for array in arrays], np.int64)
        lengths = np.empty_like(counts)
        self.handle.Alltoall([counts, self._mpi.INT64_T], [lengths, self._mpi.INT64_T])
        first = arrays[0]
        row = first.dtype.itemsize * int(np.prod(first.shape[1:], dtype=np.int64))
        total = row * max(int(counts.sum()), int(lengths.sum()))
        if self.handle.allreduce(total, self._mpi.MAX) > min(_PACKED, self.largest):
            return self._exchange_large(arrays, lengths)
        sent = np.concatenate(arrays)
        found = np.empty((int(lengths.sum()), *first.shape[1:]), first.dtype)
        self.handle.Alltoallv(
            [raw(sent), counts * row, _starts(counts) * row, self._mpi.BYTE],
            [raw(found), lengths * row, _starts(lengths) * row, self._mpi.BYTE],
        )
        return np.split(found, np.cumsum(lengths)[:-1])

    def _exchange_large(self, arrays: list[npt.NDArray[Any]], lengths: npt.NDArray[np.int64]) -> list[npt.NDArray[Any]]:
        """Exchange by one message a pair of ranks."""
        first = arrays[0]
        found = [np.empty((int(length), *first.shape[1:]), first.dtype) for length in lengths]
        found[self.rank][...] = arrays[self.rank]
        others = [Message(rank, found[rank]) for rank in range(self.size) if rank != self.rank]
        sends = [Message(message.rank, arrays[message.rank]) for message in others]
        # Messages meet no others: those of channels have tags, these go through a communicator of their own.
        private = self.handle.Dup()
        channel = MpiChannel(self, self.largest, sends, others, 0, private)
        channel.start()
        channel.finish()
        channel.close()
        private.Free()
        return found

    def channel(self, sends: Sequence[Message], receives: Sequence[Message], tag: int) -> Channel:
        """Return a channel of persistent requests."""
        check_messages(sends, receives, tag, self.size)
        return MpiChannel(self, self.largest, sends, receives, tag)

    def abort(self, message: str, status: int = 1) -> NoReturn:
        """Print the message on standard error and end all ranks with the exit status.

        A launcher may report that it killed the others instead; the status is also left in a file where the
        environment names one.
        """
        sys.stdout.flush()
        sys.stderr.write(f"rank {self.rank} of {self.size}: {message}\n")
        sys.stderr.flush()
        if name := os.environ.get(STATUS_FILE):
            Path(name).write_text(str(status or 1), encoding="ascii")
        self.handle.Abort(status or 1)
        raise CommError(message)


class _Left:
    """What a rank has left while it was under way; kept with the communicator."""

    def __init__(self, done: Callable[[], bool]) -> None:
        self.done = done

    def close(self) -> None:
        """Nothing can be done for it."""


def _starts(counts: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(counts)[:-1]])
