"""Where a sequence exchanges halos, how it is cut, and what it reports; without messages where none are needed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import pytest

import fluxloom as fl
from fluxloom.core.access import Access
from fluxloom.device.base import Call
from fluxloom.dsl.plan.plan import Limits, Span
from fluxloom.dsl.ranks.task import Task, counted, exchange_places, next_access


class Thing:
    """Stands for a dat or a global: told apart by identity."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name


U, V, W, OLD = (cast("Any", Thing(name)) for name in ("u", "v", "w", "old"))


def no_call(_span: Span, _counts: bool) -> Call:
    raise AssertionError("nothing runs here")


def task(needs: Sequence[Any] = (), written: Sequence[Any] = (), copies: Sequence[Any] = (), **more: Any) -> Task:
    return Task("task", Limits(0, 64, 100, 130), True, no_call, needs, written, copies=copies, **more)


def test_what_is_needed_is_exchanged_once() -> None:
    places, fresh = exchange_places([task([U], [V]), task([U], [W])], [])
    assert places == [[U], []]
    assert fresh == [U]


def test_what_is_current_is_not_exchanged() -> None:
    places, fresh = exchange_places([task([U, V], [W])], [U])
    assert places == [[V]]
    assert fresh == [U, V]


def test_what_a_later_task_needs_travels_along() -> None:
    """Unless something in between changes it."""
    places, fresh = exchange_places([task([U], [W]), task([V]), task([W])], [])
    assert places == [[U, V], [], [W]]
    assert fresh == [U, V, W]
    places, _ = exchange_places([task([U], []), task([], [V]), task([V])], [])
    assert places == [[U], [], [V]]
    places, _ = exchange_places([task([U], [V]), task([V])], [])
    assert places == [[U], [V]]


def test_a_task_that_changes_what_it_needs() -> None:
    places, fresh = exchange_places([task([U], [U]), task([U], [])], [])
    assert places == [[U], [U]]
    assert fresh == [U]
    _, fresh = exchange_places([task([U], [U])], [U])
    assert fresh == []


def test_copies_are_as_current_as_their_source() -> None:
    places, fresh = exchange_places([task([U], []), task([OLD], [U], [(OLD, U)])], [])
    assert places == [[U], []]
    assert fresh == [OLD]
    places, _ = exchange_places([task([OLD], []), task([OLD], [], [(OLD, U)])], [])
    assert places == [[OLD], [OLD]]
    places, _ = exchange_places([task([V], []), task([OLD], [], [(OLD, U)])], [])
    assert places == [[V], [OLD]]  # not before it is what it will be


def test_elements_of_the_halo_do_not_count() -> None:
    reducing = task([], [], reduces=[(U, Access.INC)])
    assert counted(reducing, [Span(0, 64), Span(64, 130)]) == [
        (Span(0, 64), True), (Span(64, 100), True), (Span(100, 130), False),
    ]  # fmt: skip
    assert counted(reducing, [Span(110, 130)]) == [(Span(110, 130), False)]
    assert counted(task(), [Span(0, 130)]) == [(Span(0, 130), True)]


def test_the_next_use_of_a_global() -> None:
    add, read, reset = task(reduces=[(U, Access.INC)]), task(reads=[U]), task(resets=U)
    other = task(reduces=[(V, Access.MIN)])
    assert next_access([other, add, read], U) is Access.INC
    assert next_access([other, read, add], U) is None
    assert next_access([reset, add], U) is None
    assert next_access([other], U) is None
    assert next_access([], U) is None


def test_sequences_know_which_task_took_how_long() -> None:
    """Interior, boundary and what does not count belong to one loop."""
    from fluxloom.comm.base import Comm
    from fluxloom.comm.threads import run_threads
    from fluxloom_lab.attack.loops.programs import flux_and_sum, near
    from fluxloom_lab.attack.loops.worlds import World, owners, random_mesh

    mesh = random_mesh(5, 200, local=True)

    def rank(comm: Comm) -> None:
        world = World(mesh, comm, owners("blocks", 200, 2), threads=1)
        u, v, r = (world.dat("cells", [[1.0, 2.0]] * 200, name) for name in "uvr")
        e, sums = world.maps["edge_cells"], [world.ctx.scalar(0.0), world.ctx.scalar(1.0)]
        loops = [fl.Loop(near, world.sets["cells"], u[world.maps["near"]], v),
                 fl.Loop(flux_and_sum, world.sets["edges"], v[e], r[e], *sums)]  # fmt: skip
        chain = fl.Chain(loops, fuse=False)
        for _ in range(3):
            chain()
        rows = {row.name: row for row in chain.reports()}
        assert {name: row.calls for name, row in rows.items()} == {"near": 3, "flux_and_sum": 3}
        assert all(row.seconds > 0.0 for row in rows.values())
        chain.reset_counters()
        assert all(row.calls == 0 and row.seconds == 0.0 for row in chain.reports())
        loops[0]()
        loops[0]()
        u.write(2.0)
        loops[0]()
        assert loops[0].report().calls == 3

    run_threads(2, rank)


@pytest.mark.parametrize("limits", [Limits(0, 0, 5, 5), Limits(3, 4, 5, 9), Limits(0, 9, 9, 9)])
def test_spans_cover_everything_once(limits: Limits) -> None:
    places = [k for span in [limits.interior, *limits.rest] for k in range(span.begin, span.end)]
    assert sorted(places) == list(range(limits.end))
    assert len(limits.whole) == limits.end
