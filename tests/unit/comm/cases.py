"""What every communicator must do, as functions of a communicator: called on a rank alone, on threads, on MPI ranks."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from fluxloom.comm import Comm, Message
from fluxloom.core.errors import CommError, OtherRankFailed


def identity(comm: Comm) -> None:
    ranks = comm.allgather(comm.rank)
    assert ranks == list(range(comm.size))
    assert comm.allgather((comm.local_rank, comm.local_size)) == [(rank, comm.size) for rank in ranks]
    assert repr(comm) == f"{type(comm).__name__}(rank {comm.rank} of {comm.size})"
    assert comm.takes_device_memory in (False, True)


def objects(comm: Comm) -> None:
    mine = {"rank": comm.rank, "list": [comm.rank] * comm.rank, "array": np.full(comm.rank, 2.5)}
    found = comm.allgather(mine)
    for rank, other in enumerate(found):
        assert other["rank"] == rank
        assert other["list"] == [rank] * rank
        assert other["array"].tolist() == [2.5] * rank
        other["rank"] = -1
    assert mine["rank"] == comm.rank, "the ranks share an object"
    for root in range(comm.size):
        assert comm.broadcast(f"from {comm.rank}", root) == f"from {root}"


def reductions(comm: Comm) -> None:
    combine = {"sum": np.add, "min": np.minimum, "max": np.maximum}
    for dtype in (np.float64, np.float32, np.int64, np.uint8):
        for shape in ((), (1,), (3, 2), (0,), (1000,)):
            values = [
                (np.random.default_rng(rank).normal(size=shape) * 10.0 ** (3 * rank)).astype(np.float64)
                for rank in range(comm.size)
            ]
            values = [np.asarray(np.abs(v) % 200 if dtype is np.uint8 else v).astype(dtype) for v in values]
            for name, function in combine.items():
                expected = values[0].copy()
                for value in values[1:]:
                    function(expected, value, out=expected)
                before = values[comm.rank].copy()
                found = comm.reduce(values[comm.rank], name)
                assert isinstance(found, np.ndarray)
                assert (found.shape, found.dtype) == (shape, dtype)
                assert found.tobytes() == expected.tobytes()
                assert values[comm.rank].tobytes() == before.tobytes()
                assert not np.shares_memory(found, values[comm.rank])
    with pytest.raises(CommError, match="known are 'sum', 'min', 'max'"):
        comm.reduce(np.zeros(1), "product")


def exchanges(comm: Comm) -> None:
    for trailing, dtype in (((), np.int32), ((2,), np.float64), ((3, 2), np.int8), ((0,), np.float64)):
        for scale in (0, 1, 500):
            parts = [numbers(comm.rank, to, scale, trailing, dtype) for to in range(comm.size)]
            found = comm.exchange(parts)
            assert len(found) == comm.size
            for rank, array in enumerate(found):
                expected = numbers(rank, comm.rank, scale, trailing, dtype)
                assert array.dtype == expected.dtype
                assert array.shape == expected.shape
                assert array.tobytes() == expected.tobytes()
                assert not any(np.shares_memory(array, part) for part in parts)
    strided = [np.arange(20.0)[::2] + comm.rank for _ in range(comm.size)]
    assert [a.tolist() for a in comm.exchange(strided)] == [
        (np.arange(0.0, 20.0, 2) + r).tolist() for r in range(comm.size)
    ]


def numbers(source: int, target: int, scale: int, trailing: tuple[int, ...], dtype: type) -> np.ndarray:
    """Return what a rank sends to another: of different length for each pair, often nothing."""
    length = scale * ((source + 2 * target) % 3)
    return (np.arange(length * int(np.prod(trailing))) + 7 * source + target).astype(dtype).reshape(length, *trailing)


def wrong_exchanges(comm: Comm) -> None:
    for parts, text in (
        ([np.zeros(1)] * (comm.size + 1), "one a rank"),
        ([np.zeros(())] * comm.size, "only lengths may differ"),
        ([np.array([None])] * comm.size, "use allgather"),
    ):
        with pytest.raises(CommError, match=text):
            comm.exchange(parts)
    if comm.size > 1:
        for other in (np.zeros(2, np.float32), np.zeros((2, 2))):
            with pytest.raises(CommError, match="only lengths may differ"):
                comm.exchange([np.zeros(2)] * (comm.size - 1) + [other])


def rings(comm: Comm) -> None:
    """Several channels with the same neighbours, of different lengths, many times, finished in another order."""
    after, before = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    channels = []
    for tag, length in ((0, 5), (1, 0), (7, 1), (32767, 20_000)):
        forth, back = np.zeros(length), np.zeros((length, 2), np.float32)
        to, fro = np.full(length, -1.0), np.full((length, 2), -1.0, np.float32)
        up = comm.channel([Message(after, forth)], [Message(before, to)], tag)
        down = comm.channel([Message(before, back)], [Message(after, fro)], (tag + 100) % 32768)
        channels.append((up, down, forth, back, to, fro, tag))
    for turn in range(5):
        for up, down, forth, back, *_, tag in channels:
            forth[...], back[...] = turn + 10 * comm.rank + tag, turn + 20 * comm.rank + tag
            up.start()
            down.start()
        for up, down, *_ in reversed(channels):
            down.finish()
            up.finish()
        for _, _, forth, back, to, fro, tag in channels:
            assert (to == turn + 10 * before + tag).all()
            assert (fro == turn + 20 * after + tag).all()
            forth[...] = back[...] = np.nan
    for up, down, *_ in channels:
        up.close()
        down.close()


def stars(comm: Comm) -> None:
    """One channel with all ranks at once, the own included, of a length for each pair; no messages on one side."""
    sends = [Message(to, numbers(comm.rank, to, 100, (3,), np.float64)) for to in range(comm.size)]
    targets = [
        Message(rank, np.zeros_like(numbers(rank, comm.rank, 100, (3,), np.float64))) for rank in range(comm.size)
    ]
    channel = comm.channel(sends, list(reversed(targets)), 3)
    channel.start()
    channel.finish()
    for rank, memory in targets:
        assert memory.tolist() == numbers(rank, comm.rank, 100, (3,), np.float64).tolist()
    channel.close()
    if comm.size > 1:
        value = np.full(4, comm.rank)
        sends, receives = ([Message(1, value)], []) if not comm.rank else ([], [])
        receives = [Message(0, value)] if comm.rank == 1 else []
        channel = comm.channel(sends, receives, 3)
        channel.start()
        channel.finish()
        assert (value == (0 if comm.rank < 2 else comm.rank)).all()
        channel.close()
    empty = comm.channel([], [], 0)
    empty.start()
    empty.finish()
    empty.close()


def memories(comm: Comm) -> None:
    """Memory of any order and type is taken as its bytes; a part of an array is left alone around the message."""
    for sent in (np.asfortranarray(np.arange(6.0).reshape(2, 3)), np.array([True, False]), np.array(3, np.int16)):
        found = np.zeros_like(sent)
        swap(comm, sent, found)
        assert found.tolist() == sent.tolist()
        assert found.dtype == sent.dtype
    whole = np.zeros((5, 2))
    swap(comm, np.full((2, 2), 4.0), whole[1:3])
    assert whole[:, 0].tolist() == [0.0, 4.0, 4.0, 0.0, 0.0]
    big = np.arange(3_000_000, dtype=np.float64) + comm.rank
    found = np.empty_like(big)
    swap(comm, big, found)
    assert (found == np.arange(3_000_000) + (comm.rank - 1) % comm.size).all()


def swap(comm: Comm, sent: np.ndarray, found: np.ndarray) -> None:
    """Send to the next rank, receive from the one before."""
    after, before = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    channel = comm.channel([Message(after, sent)], [Message(before, found)], 11)
    channel.start()
    channel.finish()
    channel.close()


def wrong_channels(comm: Comm) -> None:
    good = np.zeros(3)
    fixed = np.zeros(3)
    fixed.flags.writeable = False
    for sends, receives, tag, text in (
        ([], [], -1, "tag -1"),
        ([], [], 32768, "tag 32768"),
        ([Message(comm.size, good)], [], 0, "there are"),
        ([], [Message(-1, good)], 0, "there are"),
        ([Message(0, good)] * 2, [Message(0, good)] * 2, 0, "several messages to one rank"),
        ([Message(0, good)], [Message(0, fixed)], 0, "read-only"),
        ([Message(0, np.zeros((4, 4))[:, 1])], [Message(0, good)], 0, "contiguous"),
        ([Message(0, np.array([None]))], [Message(0, good)], 0, "contiguous"),
        ([Message(0, [1.0])], [Message(0, good)], 0, "NumPy arrays"),
    ):
        with pytest.raises(CommError, match=text):
            comm.channel(sends, receives, tag)
    channel = comm.channel([Message(comm.rank, good)], [Message(comm.rank, np.zeros(3))], 5)
    with pytest.raises(CommError, match="not started"):
        channel.finish()
    channel.start()
    if comm.name != "self":
        with pytest.raises(CommError, match="started again"):
            channel.start()
    channel.finish()
    with pytest.raises(CommError, match="not started"):
        channel.finish()
    channel.close()


def short_messages(comm: Comm) -> None:
    """A message shorter than what is expected is an error, not old numbers."""
    with pytest.raises(CommError, match=r"24|not as long"):
        swap(comm, np.zeros(3), np.zeros(4))


def barriers(comm: Comm) -> None:
    for _ in range(20):
        comm.barrier()


def groups(comm: Comm) -> None:
    """Ranks divided by colour, in the order of their keys; what groups say to each other does not meet."""
    assert comm.split(-1) is None
    last = comm.split(comm.rank if comm.rank < comm.size - 1 else -1)
    assert (last is None) == (comm.rank == comm.size - 1)
    part = comm.split(comm.rank % 2, -comm.rank)
    assert part is not None
    members = [rank for rank in range(comm.size - 1, -1, -1) if rank % 2 == comm.rank % 2]
    assert part.allgather(comm.rank) == members
    assert (part.rank, part.size) == (members.index(comm.rank), len(members))
    identity(part)
    reductions(part)
    exchanges(part)
    rings(part)
    memories(part)
    alone = part.split(part.rank)
    assert alone is not None
    assert alone.size == 1
    objects(alone)
    # A message of the whole and one of a part with the same tag, between the same ranks.
    sent, found = np.zeros((2, 2)), np.zeros((2, 2))
    sent[:, 0], sent[:, 1] = comm.rank, (0, 1)
    ranks = [((comm.rank + 2) % comm.size, (comm.rank - 2) % comm.size)]
    ranks.append(((part.rank + 1) % part.size, (part.rank - 1) % part.size))
    channels = [
        one.channel([Message(there, sent[k])], [Message(back, found[k])], 3)
        for k, (one, (there, back)) in enumerate(zip((comm, part), ranks, strict=True))
    ]
    for channel in channels:
        channel.start()
    for channel in reversed(channels):
        channel.finish()
    assert found.tolist() == [[ranks[0][1], 0], [members[ranks[1][1]], 1]]
    for channel in channels:
        channel.close()


def rallies(comm: Comm) -> None:
    """The last rank leaves what all wait for: they are woken, meet, and everything works again, old channels too."""
    assert comm.rally("first", 20.0) == ["first"] * comm.size
    after, before = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    sent, found = np.full(3, float(comm.rank)), np.zeros(3)
    ring = comm.channel([Message(after, sent)], [Message(before, found)], 5)

    def ask() -> None:
        """Wait for a message of the last rank."""
        ring.start()
        ring.finish()

    for wait in (comm.barrier, lambda: comm.reduce(np.ones(1), "sum"), lambda: comm.allgather(0), ask):
        if comm.size > 1:
            if comm.rank < comm.size - 1 and (wait is not ask or comm.rank == 0):
                with pytest.raises(OtherRankFailed):
                    wait()
            said = comm.rally(comm.rank if comm.rank == comm.size - 1 else None, 20.0)
            assert said == [None] * (comm.size - 1) + [comm.size - 1]
        assert comm.allgather(comm.rank) == list(range(comm.size))
        found[...] = -1.0
        ask()
        assert (found == before).all()
        comm.barrier()
    comm.rest()
    ring.close()


CASES: tuple[Callable[[Comm], None], ...] = (
    identity, objects, reductions, exchanges, wrong_exchanges, rings, stars, memories, wrong_channels,
    short_messages, barriers, rallies, groups,
)  # fmt: skip


def battery(comm: Comm) -> None:
    """Run every case; the barrier shows which one a rank is in when another waits for it."""
    for case in CASES:
        case(comm)
        comm.barrier()
