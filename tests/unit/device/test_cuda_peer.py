"""Messages and sums between GPUs that write into each other's memory, with the kernels acted out in host memory."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from fluxloom.comm.base import Comm
from fluxloom.comm.threads import run_threads
from fluxloom.core.errors import CommError
from fluxloom.device.base import Call
from fluxloom.device.cuda import peer as cuda_peer
from fluxloom.device.cuda.peer import PeerLink, is_near, why_no_peers

Array = np.ndarray


class Gpu:
    """A GPU whose memory is that of the host."""

    failures = (ValueError,)

    def __init__(self, number: int, *, closed: bool = False) -> None:
        self.number, self.title = number, f"GPU {number}"
        self.kept: list[Any] = []
        self.stream = SimpleNamespace(ptr=1, synchronize=lambda: None)

        def opened(handle: bytes) -> int:
            if closed:
                raise ValueError("not permitted")
            return int(np.frombuffer(handle, dtype=np.int64)[0])

        runtime = SimpleNamespace(
            malloc=lambda n: self.keep(np.full(n, 0xA5, dtype=np.uint8)).ctypes.data,
            ipcGetMemHandle=lambda address: np.array([address]).tobytes(),
            ipcOpenMemHandle=opened,
            memsetAsync=lambda address, value, n, _stream: ctypes.memset(address, value, n),
        )
        self.cupy = SimpleNamespace(cuda=SimpleNamespace(runtime=runtime))

    def keep(self, array: Array) -> Array:
        self.kept.append(array)
        return array

    def compile(self, text: str, symbols: tuple[str, ...], name: str) -> Any:
        assert all(f"{symbol}(" in text for symbol in symbols)
        return name

    def pinned(self, nbytes: int) -> Array:
        return np.zeros(nbytes, dtype=np.uint8)

    def resident(self, table: Array) -> tuple[int, Any]:
        return self.keep(table.copy()).ctypes.data, None

    def active(self) -> Any:
        return self

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        pass

    def enter(self) -> int:
        return 0

    def leave(self, _before: int) -> None:
        pass


def words(address: int, count: int = 1) -> Array:
    """Return words of memory."""
    raw: Any = (ctypes.c_int64 * count).from_address(int(address))
    return np.frombuffer(raw, dtype=np.int64)


def send(call: Call) -> None:
    """Do what ``fl_peer_send`` does."""
    state, table, count = (int(w) for w in call.words)
    sent = words(state)[0] + 1
    rows = words(table, 5 * count).reshape(count, 5)
    for source, place, half, n, _ in rows:
        if n:
            words(place + (sent & 1) * half, n)[:] = words(source, n)
    words(state)[0] = sent
    for row in rows:
        words(row[4])[0] = sent


def receive(call: Call) -> None:
    """Do what ``fl_peer_receive`` does; everything has to be there."""
    state, table, count, *_ = (int(w) for w in call.words)
    sent = words(state)[0]
    for target, place, half, n, flag in words(table, 5 * count).reshape(count, 5):
        assert words(flag)[0] >= sent
        if n:
            words(target, n)[:] = words(place + (sent & 1) * half, n)


@pytest.fixture(autouse=True)
def processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every rank believe that it is a process of its own."""
    ids = iter(range(1, 1000))
    monkeypatch.setattr(cuda_peer.os, "getpid", lambda: next(ids))


def linked(comm: Comm, **choices: Any) -> tuple[PeerLink, Gpu]:
    gpu: Any = Gpu(comm.rank, **choices)
    return PeerLink(gpu, comm.rank, comm.size, comm.allgather), gpu


SIZES: dict[str, Callable[[int, int], int]] = {
    "all": lambda a, b: 8 * (1 + a + 2 * b),
    "one way": lambda a, b: 16 * (a < b),
    "ring": lambda a, b: 8 * 40 * ((b - a) % 4 == 1),
    "none": lambda a, b: 0,
}


@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize("name", list(SIZES))
def test_messages_arrive_again_and_again(name: str, ranks: int) -> None:
    size = SIZES[name]

    def rank(comm: Comm) -> None:
        link, _ = linked(comm)
        me, others = comm.rank, [r for r in range(comm.size) if r != comm.rank]
        out = {r: np.zeros(size(me, r) // 8, dtype=np.int64) for r in others}
        into = {r: np.zeros(size(r, me) // 8, dtype=np.int64) for r in others}
        channel = link.channel(
            [(r, out[r].ctypes.data, out[r].nbytes) for r in others],
            [(r, into[r].ctypes.data, into[r].nbytes) for r in others],
        )
        assert bool(channel.send.launches) is any(v.size for v in (*out.values(), *into.values()))
        for turn in range(5):
            for r in others:
                out[r][:] = 1000 * me + 100 * r + turn + np.arange(out[r].size)
            send(channel.send)
            comm.barrier()
            if turn % 2:  # a fast rank sends once more before a slow one has read
                receive(channel.receive)
                comm.barrier()
            else:
                comm.barrier()
                receive(channel.receive)
            for r in others:
                want = 1000 * r + 100 * me + turn + np.arange(into[r].size)
                np.testing.assert_array_equal(into[r], want)
        comm.barrier()
        channel.close()
        place = link.channel([(r, out[r].ctypes.data, out[r].nbytes) for r in others],
                             [(r, into[r].ctypes.data, into[r].nbytes) for r in others])  # fmt: skip
        assert place.send.words[0] == channel.send.words[0], "memory that was given back is used again"
        assert not words(place.send.words[0])[0]

    run_threads(ranks, rank)


def test_halves_take_turns() -> None:
    """What is sent next does not touch what has not been read yet."""

    def rank(comm: Comm) -> None:
        link, _ = linked(comm)
        other = 1 - comm.rank
        out, into = np.zeros(3, dtype=np.int64), np.zeros(3, dtype=np.int64)
        channel = link.channel([(other, out.ctypes.data, 24)], [(other, into.ctypes.data, 24)])
        out[:] = 1
        send(channel.send)
        comm.barrier()
        if comm.rank == 0:
            receive(channel.receive)
            out[:] = 2
            send(channel.send)  # rank 1 has not read the first one
        comm.barrier()
        if comm.rank == 1:
            receive(channel.receive)
            assert into.tolist() == [1, 1, 1]

    run_threads(2, rank)


def total(call: Call, comm: Comm) -> None:
    """Do what ``fl_peer_total`` does."""
    state, rows, values, boxes, ranks, flags, halves, half, *_ = (int(w) for w in call.words)
    table, there = words(rows, 3 * values).reshape(values, 3), words(boxes, 2 * ranks).reshape(ranks, 2)
    sent = words(state)[0] + 1
    begin = (sent & 1) * half
    kinds = ("float64", "float32", "int64", "int32")
    for place, _ in there:
        for k, (address, kind, _) in enumerate(table):
            nbytes = np.dtype(kinds[kind]).itemsize
            ctypes.memmove(int(place + begin + 8 * k), int(address), nbytes)
    words(state)[0] = sent
    for _, flag in there:
        words(flag)[0] = sent
    comm.barrier()
    assert (words(flags, ranks) == sent).all()
    for k, (address, kind, operation) in enumerate(table):
        kind = np.dtype(kinds[kind])
        found = [np.frombuffer(words(halves + begin + 8 * (r * values + k)).tobytes(), kind)[0] for r in range(ranks)]
        combined = [np.sum, np.min, np.max][operation](np.array(found, kind), dtype=kind) if operation == 0 else (
            [np.sum, np.min, np.max][operation](np.array(found, kind))
        )  # fmt: skip
        ctypes.memmove(int(address), np.array([combined], kind).tobytes(), kind.itemsize)
    comm.barrier()


def test_sums_of_all_ranks() -> None:
    def rank(comm: Comm) -> None:
        link, _ = linked(comm)
        a, b = np.array([1.5, 2.0]) + comm.rank, np.array([3], dtype=np.int32) * comm.rank
        c, d = np.array([0.25], dtype=np.float32) - comm.rank, np.array([7], dtype=np.int64) << comm.rank
        call = link.total([
            (a.ctypes.data, 2, "float64", "sum"), (b.ctypes.data, 1, "int32", "max"),
            (c.ctypes.data, 1, "float32", "min"), (d.ctypes.data, 1, "int64", "sum"),
        ])  # fmt: skip
        assert call is not None
        for _ in range(3):
            a[:], b[:] = np.array([1.5, 2.0]) + comm.rank, 3 * comm.rank
            c[:], d[:] = 0.25 - comm.rank, 7 << comm.rank
            total(call, comm)
            assert (a.tolist(), b.tolist(), c.tolist(), d.tolist()) == ([7.5, 9.0], [6], [-1.75], [49])
        few = link.total([(a.ctypes.data, 1, "float64", "max")])  # in the same places as the one before
        assert few is not None
        total(few, comm)
        assert a[0] == 7.5
        assert link.total([(a.ctypes.data, 1, "float16", "sum")]) is None
        assert link.total([(a.ctypes.data, cuda_peer.MOST_VALUES + 1, "float64", "sum")]) is None

    run_threads(3, rank)


def test_many_channels_take_further_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda_peer, "_CHUNK", 1 << 15)

    def rank(comm: Comm) -> int:
        link, gpu = linked(comm)
        other, out, into = 1 - comm.rank, np.arange(600), np.zeros(600, dtype=np.int64)
        for _ in range(6):
            channel = link.channel([(other, out.ctypes.data, 4800)], [(other, into.ctypes.data, 4800)])
            into[:] = 0
            send(channel.send)
            comm.barrier()
            receive(channel.receive)
            assert (into == out).all()
            comm.barrier()
        return sum(array.nbytes >= 1 << 15 for array in gpu.kept)

    assert min(run_threads(2, rank)) > 1


def test_what_is_sent_has_to_be_awaited() -> None:
    def rank(comm: Comm) -> None:
        link, _ = linked(comm)
        memory = np.zeros(4, dtype=np.int64)
        count = 16 if comm.rank else 8
        link.channel([(1 - comm.rank, memory.ctypes.data, 16)], [(1 - comm.rank, memory.ctypes.data, count)])

    with pytest.raises(CommError, match="rank 1 sends 16 bytes to rank 0, which awaits 8"):
        run_threads(2, rank)


def test_memory_that_cannot_be_opened() -> None:
    """Every rank hears of it, whichever it is that cannot."""

    def rank(comm: Comm) -> str:
        with pytest.raises(CommError) as caught:
            linked(comm, closed=comm.rank == 1)
        return str(caught.value)

    found = run_threads(3, rank)
    assert set(found) == {"GPU 1 of rank 1 cannot open the memory of another GPU: not permitted"}


def test_who_can_take_part() -> None:
    assert is_near(["box 0000:01", "box 0000:02"])
    assert not is_near(["box 0000:01"])
    assert not is_near(["box 0000:01", "box 0000:01"])
    assert not is_near(["box 0000:01", "bin 0000:02"])

    def gpu(capability: str, **runtime: Any) -> Any:
        cuda = SimpleNamespace(
            runtime=SimpleNamespace(**runtime), Device=lambda _n: SimpleNamespace(compute_capability=capability)
        )
        return SimpleNamespace(number=0, cupy=SimpleNamespace(cuda=cuda))

    assert why_no_peers(gpu("90")) == ""
    assert why_no_peers(gpu("61")) == "compute capability below 7.0"
    assert why_no_peers(gpu("90", is_hip=True)) == "not written for AMD GPUs"


def test_waiting_comes_to_an_end() -> None:
    def rank(comm: Comm) -> None:
        link, _ = linked(comm)
        link.check()
        link._alarm[0] = 1  # as a kernel does
        with pytest.raises(CommError, match=r"GPU \d, rank \d of 2: no message came for 1800 s"):
            link.check()
        link.close()
        link.close()
        with pytest.raises(CommError, match="is closed: its ranks have ended"):
            link.check()

    run_threads(2, rank)
