"""Several products of a distributed matrix with one exchange: rings of halo rows, computed redundantly.

Every rank stores, beside its own rows, those that its rows reach in 1, 2, ... ``R`` steps along the entries. With the
values of ``x`` on all of them it can form ``A x, ... Aᴿ x`` alone: each product is over one ring less than
the one before. ``R`` latencies become one, for rows that neighbours compute too.

Sources: J. Demmel, M. Hoemmen, M. Mohiyuddin, K. Yelick, "Avoiding communication in sparse matrix computations",
IPDPS 2008 (algorithm PA1); I. Z. Reguly, PhD thesis, PPCU Budapest 2014, section 4.5.3.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.comm.base import Channel, Comm, Message
from fluxloom.core.errors import CommError, DatError
from fluxloom.dsl.context import Context
from fluxloom.dsl.declare.dats import Dat
from fluxloom.dsl.declare.ragged import RaggedLayout
from fluxloom.dsl.declare.schedule import Schedule
from fluxloom.dsl.declare.sets import Set
from fluxloom.dsl.run.chain import Chain
from fluxloom.dsl.run.loop import Loop
from fluxloom.linalg.matrix.matrix import SparseMatrix
from fluxloom.linalg.matrix.products import spmv
from fluxloom.linalg.matrix.ring_rows import Index, Rings, agree, find_rings
from fluxloom.linalg.vectors import copy

__all__ = ["RingProduct"]


class RingProduct:
    """Powers ``x, A x, ... Aᵀ x`` (``T`` = ``times``) of a matrix whose rows are distributed over ranks.

    Values are exchanged before every ``rings``-th product only: ``rings=1`` are plain distributed products, one
    exchange each; with ``times=rings`` there is a single one. The results are bit for bit the same for any number of
    rings and ranks where the loops are (on the CPU always): the entries of a row are added in the order in which its
    owner has them.

    Collective: every rank makes it, and calls it, with the same choices.

    Parameters
    ----------
    context
        The device of this rank. Its communicator joins the ranks, unless ``comm`` is given.
    matrix, rows
        The rows of this rank, see `find_rings`.
    rings
        Rings of halo rows.
    times
        Number of products; by default as many as rings.
    comm
        The ranks, where the context is that of a rank alone.
    overlap
        Whether owned rows that need no message are multiplied while the messages are under way.
    layout, dtype
        How entries are stored, and the type of values and vectors, as in `SparseMatrix`.
    schedule
        Of the products.
    tag
        Tells products that exchange at the same time apart, see `Comm.channel`.

    Attributes
    ----------
    plan
        What is stored here.
    rows
        The owned rows: the first elements of `stored`. Loops over them take the vectors of `basis` directly.
    stored
        The set of all stored rows.
    basis
        ``times + 1`` vectors on `stored`; values of owned rows come first, in the order of ``rows``.

    Raises
    ------
    DatError
        On every rank, if the matrix of one of them does not fit, or the numbers are not positive.
    CommError
        If the context or the communicator is none.
    """

    def __init__(
        self,
        context: Context,
        matrix: Any,
        *,
        rings: int = 1,
        times: int = 0,
        rows: npt.ArrayLike | None = None,
        comm: Comm | None = None,
        overlap: bool = False,
        layout: RaggedLayout | None = None,
        dtype: npt.DTypeLike | None = None,
        schedule: Schedule | None = None,
        tag: int = 0,
        name: str = "rings",
    ) -> None:
        if not isinstance(context, Context):
            raise CommError(f"{name}: a context is wanted first, not {type(context).__name__}")
        self.comm = comm if comm is not None else context.comm
        if not isinstance(self.comm, Comm):
            raise CommError(f"{name}: comm: a communicator is wanted, not {comm!r}")
        fits = isinstance(times, int | np.integer) and times >= 0
        wrong = "" if fits else f"{times} products; give a positive number, or 0 for as many as rings"
        agree(self.comm, wrong, ("products", times))
        agree(self.comm, "", ("is the tag", tag))
        agree(self.comm, "", ("is the dtype", str(dtype)))
        self.plan = find_rings(self.comm, matrix, rings, rows)
        self.context = _alone(context)
        self.times = times or rings
        self.name, self._schedule = name, schedule
        plan = self.plan
        self.stored: Set = self.context.set(plan.numbers.size, f"{name}.stored")
        self.rows: Set = _Prefix(self.stored, plan.owned, f"{name}.rows")
        # One square matrix for all products; nobody runs over the rows of the last ring, which are empty here.
        offsets = np.append(plan.offsets, np.full(plan.ends[-1] - plan.ends[-2], plan.offsets[-1]))
        self.matrix = SparseMatrix.from_csr(
            self.context, offsets, plan.indices, plan.values, rows=self.stored, columns=self.stored,
            layout=layout, dtype=dtype, name=name,
        )  # fmt: skip
        kind = self.matrix.values.scalar.numpy
        vectors = [self.context.dat(self.stored, name=f"{name}.x{k}", dtype=kind) for k in range(self.times + 1)]
        self.basis = tuple(vectors)
        self._messages = _Messages(self.context, self.comm, plan, self.stored, kind, tag, name)
        sizes = [self.rows if end == plan.owned else _Prefix(self.stored, end, f"{name}.to{k}")
                 for k, end in enumerate(plan.ends[:-1])]  # fmt: skip
        inner = plan.inner if overlap and self._messages.needed else None
        self._blocks = [self._block(first, sizes, inner) for first in range(0, self.times, plan.rings)]

    def _block(self, first: int, sizes: Sequence[Set], inner: npt.NDArray[np.bool_] | None) -> Callable[[], None]:
        """Return a run of one exchange and the products that it allows."""
        count = min(self.plan.rings, self.times - first)
        over: list[Set] = [sizes[count - 1 - k] for k in range(count)]
        meanwhile: Loop | None = None
        if inner is not None:
            early = self.context.subset(self.stored, np.flatnonzero(inner), f"{self.name}.inner")
            late = np.ones(over[0].size, dtype=bool)
            late[: inner.size] = ~inner
            over[0] = self.context.subset(self.stored, np.flatnonzero(late), f"{self.name}.outer")
            meanwhile = self._product(early, first) if early.size else None
        steps = [self._product(rows, first + k) for k, rows in enumerate(over) if rows.size]
        x = self.basis[first]
        if not self._messages.needed:
            return Chain(steps, fuse=False, name=self.name) if steps else _nothing
        pack, unpack = self._messages.loops(x)
        steps = [unpack, *steps] if unpack is not None else steps
        after = Chain(steps, fuse=False, name=self.name) if steps else _nothing
        messages = self._messages

        def run() -> None:
            messages.start(pack)
            if meanwhile is not None:
                meanwhile()
            messages.finish()
            after()

        return run

    def _product(self, rows: Set, k: int) -> Loop:
        a, x, y = self.matrix.values[self.matrix.pattern.to_entries], self.basis[k], self.basis[k + 1]
        name = f"{self.name}.product"
        return Loop(spmv, rows, a, x[self.matrix.pattern], y, schedule=self._schedule, name=name)

    # -------------------------------------------------------------------------------------- what it does
    def run(self) -> None:
        """Compute ``basis[1] ... basis[times]`` from the owned values of ``basis[0]``. Collective."""
        for block in self._blocks:
            block()

    def powers(self, x: npt.ArrayLike) -> npt.NDArray[Any]:
        """Return ``[x, A x, ... ]`` of the owned rows: ``(times + 1, owned)``. Collective.

        Raises
        ------
        DatError
            If ``x`` is not one number an owned row.
        """
        self.start(x)
        self.run()
        return np.stack([dat.read()[: self.plan.owned] for dat in self.basis])

    def __call__(self, x: npt.ArrayLike) -> npt.NDArray[Any]:
        """Return the last power of the owned rows: ``(owned,)``. Collective."""
        self.start(x)
        self.run()
        return self.basis[-1].read()[: self.plan.owned]

    def start(self, x: npt.ArrayLike) -> None:
        """Set the owned values of ``basis[0]``."""
        values = np.asarray(x)
        if values.dtype.kind not in "fiub":
            raise DatError(f"{self.name}: x of type {values.dtype}; real numbers are wanted")
        if values.shape != (self.plan.owned,):
            raise DatError(f"{self.name}: x of shape {values.shape}; this rank has {self.plan.owned} rows")
        full = np.zeros(self.stored.size, dtype=self.basis[0].scalar.numpy)
        full[: values.size] = values
        self.basis[0].write(full)

    def close(self) -> None:
        """Give the messages back; the product is not used any more."""
        self._messages.close()

    def __repr__(self) -> str:
        plan = self.plan
        return f"RingProduct({self.name}, {plan.owned} of {plan.total} rows, {plan.rings} rings, {self.times} products)"


# ------------------------------------------------------------------------------------------ the parts


class _Prefix(Set):
    """The first elements of a set; a loop over it takes the dats of the whole set, and needs no list."""

    def __init__(self, parent: Set, size: int, name: str) -> None:
        super().__init__(parent.context, size, name)
        self._parent = parent

    @property
    def parent(self) -> Set:
        return self._parent


class _Messages:
    """The values that go out and come in at each exchange: one message a neighbour each way."""

    def __init__(
        self, context: Context, comm: Comm, plan: Rings, stored: Set, kind: npt.DTypeLike, tag: int, name: str
    ) -> None:
        self.needed = bool(plan.send or plan.receive)
        self._channel: Channel | None = None
        self._out, self._out_map = _message(context, plan.send, stored, kind, f"{name}.out")
        self._in, self._in_map = _message(context, plan.receive, stored, kind, f"{name}.in")
        self._sent, self._received = _memory(self._out), _memory(self._in)
        self._shared = context.device.shared
        if self.needed:
            self._channel = comm.channel(_cut(self._sent, plan.send), _cut(self._received, plan.receive), tag)

    def loops(self, x: Dat) -> tuple[Loop | None, Loop | None]:
        """Return the loops that fill the outgoing message from a vector, and write the one that came into it."""
        out, into = self._out.set, self._in.set
        pack = Loop(copy, out, x[self._out_map[0]], self._out, systems=1, name="pack") if out.size else None
        unpack = Loop(copy, into, self._in, x[self._in_map[0]], systems=1, name="unpack") if into.size else None
        return pack, unpack

    def start(self, pack: Loop | None) -> None:
        if self._channel is None:
            raise CommError("this product was closed: make a new one")
        if pack is not None:
            pack()
            if not self._shared:
                self._sent[:] = self._out.read()
        self._channel.start()

    def finish(self) -> None:
        assert self._channel is not None
        self._channel.finish()
        if not self._shared and self._received.size:
            self._in.write(self._received)

    def close(self) -> None:
        if self._channel is not None:
            self._channel.close()
            self._channel = None


def _message(context: Context, lists: dict[int, Index], stored: Set, kind: npt.DTypeLike, name: str) -> tuple[Dat, Any]:
    """Return the values of the messages from or to all neighbours, and their places."""
    places = np.concatenate([np.zeros(0, dtype=np.int64), *lists.values()])
    over = context.set(places.size, name)
    return context.dat(over, name=name, dtype=kind), context.map(over, stored, places[:, None], name)


def _memory(dat: Dat) -> npt.NDArray[Any]:
    """Return the memory that a message lies in: that of the dat where the host sees it, else a copy."""
    return dat.data if dat.context.device.shared else np.zeros(dat.set.size, dtype=dat.scalar.numpy)


def _cut(memory: npt.NDArray[Any], lists: dict[int, Index]) -> list[Message]:
    ends = np.cumsum([places.size for places in lists.values()])
    return [Message(rank, memory[end - p.size : end]) for (rank, p), end in zip(lists.items(), ends, strict=True)]


def _alone(context: Context) -> Context:
    """Return a context of the device for this rank alone: rings are sets that no other rank knows."""
    if not context.distributed:
        return context
    return Context(context.device, schedule=context.schedule, tuning=context.tuning, check=context.check)


def _nothing() -> None:
    """Do nothing."""
