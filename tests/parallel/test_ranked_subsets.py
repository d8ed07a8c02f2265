"""What a subset that no other rank stores anything of, and a map that stays on its rank, spare in messages."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fluxloom as fl
from fluxloom import RW, Chain, Loop, Read, Write
from fluxloom.comm.base import Comm
from fluxloom.comm.threads import run_threads
from fluxloom.core.errors import DatError
from fluxloom.dsl.declare.parts import Part

OWN = 5
"""Elements of a rank, on a ring; each reads the next one."""


@fl.kernel
def from_next(u: Read, out: RW):
    """Take over from the next element."""
    out[0] = 2.0 * out[0] + u[0]


@fl.kernel
def raised(u: RW):
    """Change a value where it is."""
    u[0] = 3.0 * u[0] + 1.0


@fl.kernel
def copied(u: Read, out: Write):
    """Take a value as it is."""
    out[0] = u[0]


class Ring:
    """Elements on a ring, on some ranks; the first one of each rank is in the halo of the rank before."""

    def __init__(self, comm: Comm) -> None:
        total, first = OWN * comm.size, OWN * comm.rank
        self.comm, self.numbers = comm, first + np.arange(OWN)
        after = np.array([(first + OWN) % total])
        inside, rest = self.numbers[1:-1], self.numbers[[0, -1]]
        self.context = fl.Context("cpu", comm=comm, threads=1, tuning=False)
        part = Part.of_reads(comm, inside, rest, after, after // OWN, total)
        self.set = self.context.set(part, "ring")
        place = {int(number): k for k, number in enumerate(part.numbers)}
        self.order = part.numbers[:OWN]
        self.next = self.context.map(self.set, self.set, [place[(k + 1) % total] for k in self.order], "next")
        self.same = self.context.map(self.set, self.set, np.arange(OWN), "same", stays=True)
        self.u = self.context.dat(self.set, self.order.astype(np.float64), "u")
        self.out = self.context.dat(self.set, np.zeros(OWN), "out")

    def some(self, place: int) -> Any:
        """Return the subset of the element at some place among those of a rank."""
        return self.context.subset(self.set, self.order == self.numbers[place], f"at {place}")

    def gathered(self) -> np.ndarray:
        found = np.empty(OWN * self.comm.size)
        for numbers, values in self.comm.allgather((self.order, self.out.read())):
            found[numbers] = values
        return found


def expected(place: int, ranks: int, runs: int) -> np.ndarray:
    u, out = np.arange(OWN * ranks, dtype=np.float64), np.zeros(OWN * ranks)
    for _ in range(runs):
        u = 3.0 * u + 1.0
        out = 2.0 * out + np.roll(u, -1)
        u[place::OWN] = 3.0 * u[place::OWN] + 1.0
        out = 2.0 * out + np.roll(u, -1)
    return out


@pytest.mark.parametrize(("place", "mirrored"), [(2, False), (0, True), (4, False)])
def test_a_subset_that_others_do_not_store_keeps_halos_current(place: int, mirrored: bool) -> None:
    def work(comm: Comm) -> tuple[np.ndarray, int, bool]:
        ring = Ring(comm)
        some, read = ring.some(place), (ring.u[ring.next[0]], ring.out)
        chain = Chain([Loop(raised, ring.set, ring.u), Loop(from_next, ring.set, *read),
                       Loop(raised, some, ring.u), Loop(from_next, ring.set, *read)], fuse=False)  # fmt: skip
        for _ in range(3):
            chain()
        return ring.gathered(), sum(row.calls for row in chain.exchanges()), some.mirrored

    for found, calls, stored in run_threads(3, work):
        np.testing.assert_array_equal(found, expected(place, 3, 3))
        assert stored is mirrored
        assert calls == (6 if mirrored else 3)


def test_values_that_the_host_changes_between_two_runs_travel() -> None:
    """The chain changes only what others do not store, so that nothing in it tells of the host."""

    def work(comm: Comm) -> np.ndarray:
        ring = Ring(comm)
        read = (ring.u[ring.next[0]], ring.out)
        chain = Chain([Loop(raised, ring.some(2), ring.u), Loop(from_next, ring.set, *read)], fuse=False)
        for k in range(3):
            ring.u.write(10.0**k * ring.order)
            chain()
        return ring.gathered()

    want = np.zeros(2 * OWN)
    for k in range(3):
        u = 10.0**k * np.arange(2 * OWN)
        u[2::OWN] = 3.0 * u[2::OWN] + 1.0
        want = 2.0 * want + np.roll(u, -1)
    np.testing.assert_array_equal(run_threads(2, work)[0], want)


def test_a_map_that_stays_needs_no_messages() -> None:
    def work(comm: Comm) -> tuple[np.ndarray, int]:
        ring = Ring(comm)
        chain = Chain([Loop(raised, ring.set, ring.u), Loop(copied, ring.set, ring.u[ring.same[0]], ring.out)])
        chain()
        return ring.gathered(), sum(row.calls for row in chain.exchanges())

    for found, calls in run_threads(2, work):
        np.testing.assert_array_equal(found, 3.0 * np.arange(2 * OWN) + 1.0)
        assert calls == 0


def test_a_map_that_is_said_to_stay_and_does_not() -> None:
    def work(comm: Comm) -> None:
        ring = Ring(comm)
        with pytest.raises(DatError, match=r"map 'next': entry .* is 5; allowed are 0 ... 4"):
            ring.context.map(ring.set, ring.set, ring.next.table, "next", stays=True)

    run_threads(2, work)
