"""Two ranks that do not declare or run the same: a ring of nodes, and what rank 1 does otherwise."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import fluxloom as fl
from fluxloom import RW, Chain, Inc, Link, Loop, Read, decompose
from fluxloom.comm.base import Comm

SIZE = 9


@fl.kernel
def scatter(w: Read, u: Read, r: Inc):
    f = w[0] * (u[1][0] - u[0][0])
    r[0][0] += f
    r[1][0] -= f


@fl.kernel
def add(u: Read, s: Inc):
    s[0] += u[0]


@fl.kernel
def bump(u: RW, *, c: float):
    u[0] += c


def other_scatter() -> Any:
    """Return a kernel with the name and the parameters of another one."""

    @fl.kernel
    def scatter(w: Read, u: Read, r: Inc):
        f = w[0] * (u[1][0] + u[0][0])
        r[0][0] += f
        r[1][0] -= f

    return scatter


class Ring:
    """Values on a ring of nodes, and loops over it; some on rank 1 are not those of rank 0."""

    def __init__(self, comm: Comm, device: str = "cpu", transport: str = "auto", **other: Any) -> None:
        use: Callable[[str, Any], Any] = lambda key, value: other.get(key, value) if comm.rank == 1 else value  # noqa: E731
        self.comm = comm
        numbers = np.arange(SIZE)
        table = np.stack([numbers, (numbers + 1) % SIZE], 1)
        mine = slice(SIZE * comm.rank // comm.size, SIZE * (comm.rank + 1) // comm.size)
        parts = decompose(
            comm, {"nodes": SIZE, "edges": SIZE}, {"e2n": Link("edges", "nodes", table[mine])}, on="nodes",
            method="block",
        )  # fmt: skip
        self.context = context = fl.Context(device, comm=comm, threads=1, transport=transport)
        self.nodes, self.edges = (context.set(parts.parts[name], name) for name in ("nodes", "edges"))
        rows = parts.table("e2n")
        e2n = context.map(self.edges, self.nodes, np.repeat(rows, use("arity", 2) // 2, 1), "e2n")
        u = np.repeat(self.owned(numbers**2.0)[:, None], use("components", 1), 1)
        self.u = context.dat(self.nodes, u, "u", dtype=use("dtype", "float64"))
        self.r = context.dat(self.nodes, np.zeros((len(u), 1)), use("name", "r"))
        w = context.dat(self.edges, np.ones(self.edges.size), "w")
        self.s = context.scalar(use("start", 0.0), "s", dtype=use("sums", "float64"))
        self.scatter = Loop(use("kernel", scatter), use("over", self.edges), w, self.u[e2n], self.r[e2n])
        self.add = Loop(use("adds", add), self.nodes, self.u, self.s)
        self.bump = Loop(bump, self.nodes, self.u, c=use("constant", 1.0))
        self.step = Chain([self.scatter, self.bump], fuse=False, name=use("chain", "step"))

    def owned(self, values: np.ndarray) -> np.ndarray:
        """Return the values that this rank owns."""
        part = self.nodes.part
        assert part is not None
        return values[part.numbers[: part.owned]]

    @property
    def odd(self) -> bool:
        """Whether this is rank 1."""
        return self.comm.rank == 1


def declared(comm: Comm, **other: Any) -> None:
    """Run all loops, with declarations that differ."""
    ring = Ring(comm, **other)
    ring.scatter()
    ring.add()
    ring.bump()
    _ = ring.s.value


def skips(comm: Comm) -> None:
    """Rank 1 leaves out a loop that sends."""
    ring = Ring(comm)
    if not ring.odd:
        ring.scatter()
    ring.add()
    _ = ring.s.value


def another_order(comm: Comm) -> None:
    """The loops of rank 1 come in another order: its halo would be of another time."""
    ring = Ring(comm)
    ring.step()
    (ring.step if ring.odd else ring.bump)()
    (ring.bump if ring.odd else ring.step)()
    ring.step()


def one_step_more(comm: Comm) -> None:
    """Rank 0 waits for messages, rank 1 for the end."""
    ring = Ring(comm)
    for _ in range(2 if ring.odd else 3):
        ring.step()
    comm.barrier()


def read_by_one(comm: Comm) -> None:
    """Rank 0 alone asks for what all have to form."""
    ring = Ring(comm)
    ring.add()
    if not ring.odd:
        _ = ring.s.value
    comm.allgather(1)


def restored_by_one(comm: Comm, folder: str) -> None:
    """Rank 0 alone reads a checkpoint."""
    from fluxloom.comm.store import StoreReader, StoreWriter

    ring = Ring(comm)
    path = Path(folder) / "state.h5"
    writer = StoreWriter(path, comm)
    assert ring.nodes.part is not None
    writer.rows("rows/u", ring.u.read(), ring.nodes.part.numbers[: ring.nodes.size], SIZE)
    writer.finish({}, {})
    if not ring.odd:
        StoreReader(path, comm)
    ring.scatter()


def set_by_one(comm: Comm) -> None:
    """A constant gets another value on rank 1."""
    ring = Ring(comm)
    ring.bump()
    ring.bump.set(c=3.0 if ring.odd else 2.0)
    ring.scatter()


def leaves(comm: Comm) -> None:
    """Rank 1 has nothing more to do, rank 0 waits for it."""
    ring = Ring(comm)
    ring.add()
    if not ring.odd:
        _ = ring.s.value


CASES: dict[str, tuple[Callable[..., None], dict[str, Any], tuple[str, ...]]] = {
    "dtype": (declared, {"dtype": "float32"}, ("u float64[1]", "u float32[1]")),
    "components": (declared, {"components": 2}, ("u float64[1]", "u float64[2]")),
    "arity": (declared, {"arity": 4}, ("2 legs", "4 legs")),
    "name": (declared, {"name": "q"}, ("INC r ", "INC q ")),
    "sums": (declared, {"sums": "float32"}, ("s float64", "s float32")),
    "start": (declared, {"start": 5.0}, ("s float64",)),
    "constant": (declared, {"constant": 2.0}, ("c=1.0", "c=2.0")),
    "kernel": (declared, {"kernel": other_scatter()}, ("loop scatter",)),
    "skips": (skips, {}, ("loop scatter", "loop add")),
    "another order": (another_order, {}, ("chain step", "loop bump")),
    "one step more": (one_step_more, {}, ("chain step", "a barrier")),
    "read by one": (read_by_one, {}, ("value of s", "an allgather")),
    "set by one": (set_by_one, {}, ("c=2.0", "c=3.0")),
}
"""What is run, what differs on rank 1, and words of the error that all ranks get."""
