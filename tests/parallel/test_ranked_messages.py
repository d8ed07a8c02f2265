"""Which messages travel between ranks, and what runs meanwhile."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import fluxloom as fl
from fluxloom import Inc, Loop, Read, Write
from fluxloom.comm.base import Comm
from fluxloom.comm.threads import run_threads
from fluxloom.dsl.declare.transports import Side, Transport
from fluxloom.dsl.plan.plan import ALIGN
from fluxloom.dsl.ranks import exchange
from fluxloom.dsl.run.chain import Chain
from fluxloom.mesh.generate.airfoil import airfoil_slice
from fluxloom.mesh.ranks.distribute import distribute
from fluxloom.solvers.airfoil.flow import Airfoil
from fluxloom_lab.attack.loops.worlds import Mesh, World, owners, random_mesh, together


class Spy(Transport):
    """Carries messages like another transport and tells a listener."""

    def __init__(self, inner: Transport, told: Callable[[str], None]) -> None:
        self._inner, self._told, self.name = inner, told, inner.name

    def start(self) -> None:
        self._told("start")
        self._inner.start()

    def finish(self) -> None:
        self._told("finish")
        self._inner.finish()


class Watch:
    """What the ranks send: a row a start or finish, and the bytes to each neighbour."""

    def __init__(self) -> None:
        self.events: dict[int, list[tuple[str, dict[int, int]]]] = defaultdict(list)
        self.look: Callable[[int, str], None] = lambda _rank, _event: None
        self._lock = threading.Lock()

    def choose(self, make: Any) -> Any:
        def chosen(context: fl.Context, neighbours: Sequence[int], out: Side, into: Side) -> Transport:
            rank, sizes = context.comm.rank, {r: n for r, _, n in out.slices}

            def told(event: str) -> None:
                self.look(rank, event)
                with self._lock:
                    self.events[rank].append((event, sizes))

            return Spy(make(context, neighbours, out, into), told)

        return chosen

    def starts(self, rank: int) -> list[dict[int, int]]:
        """Return the bytes to each neighbour of every exchange since the last question."""
        found = [sizes for event, sizes in self.events[rank] if event == "start"]
        self.events[rank].clear()
        return found


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Watch:
    found = Watch()
    monkeypatch.setattr(exchange, "choose_transport", found.choose(exchange.choose_transport))
    return found


@pytest.mark.parametrize("ranks", [2, 3])
def test_airfoil_exchanges_twice_an_iteration(watch: Watch, ranks: int) -> None:
    """Before each stage q and adt travel together, 5 numbers a cell, one message a neighbour."""

    def rank(comm: Comm) -> None:
        ctx = fl.Context("cpu", threads=1, tuning=False, comm=comm)
        flow = Airfoil(ctx, distribute(airfoil_slice(12, 20, comm.rank, comm.size), comm))
        flow.iterate()
        watch.events[comm.rank].clear()
        part = flow.cells.part
        assert part is not None
        assert part.neighbours
        for _ in range(3):
            flow.iterate()
            sent = watch.starts(comm.rank)
            assert sent == [{r: 40 * p.size for r, p in zip(part.neighbours, part.send, strict=True)}] * 2

    run_threads(ranks, rank)


@fl.kernel
def around(u: Read, c: Read, v: Write):
    v[0] = u[0][0] + u[1][0] + c[2][0]


@fl.kernel
def flux(u: Read, r: Inc):
    r[0][0] += u[0][0] - u[1][0]
    r[1][0] -= u[0][0]


@fl.kernel
def double(u: Read, v: Write):
    v[0] = 2.0 * u[0]


MESH = random_mesh(21, 80, local=True)


def ranks(body: Callable[[World, dict[str, Any]], None], mesh: Any = MESH, kind: str = "blocks") -> None:
    """Run something on two ranks, with dats ``u v c r`` and loops between them."""

    def run(world: World) -> dict[str, Any]:
        n = world.mesh.sizes["cells"]
        dats = {name: world.dat("cells", np.arange(n)[:, None] * 1.0, name) for name in "uvcr"}
        u, v, c, r = dats.values()
        near, e, cells = world.maps["near"], world.maps["edge_cells"], world.sets["cells"]
        loops = {"around": Loop(around, cells, u[near], c[near], v), "double": Loop(double, cells, u, v),
                 "back": Loop(double, cells, v, u), "flux": Loop(flux, world.sets["edges"], u[e], r[e])}  # fmt: skip
        body(world, {**dats, **loops})
        return {}

    together(run, mesh, 2, owners(kind, mesh.sizes["cells"], 2), threads=1)


def test_single_loops_exchange_what_is_not_current(watch: Watch) -> None:
    def body(world: World, has: dict[str, Any]) -> None:
        part = world.sets["cells"].part
        assert part is not None
        halo, me = sum(p.size for p in part.send), world.rank

        def sent() -> list[int]:
            return [sum(s.values()) // 8 for s in watch.starts(me)]

        has["double"]()
        assert sent() == []  # direct: nothing
        has["around"]()
        assert sent() == [2 * halo]  # u and c in one message
        has["around"]()
        has["flux"]()
        assert sent() == []  # nobody changed them
        has["back"]()
        has["around"]()
        assert sent() == [halo]  # u alone
        has["u"].write(has["v"].read())
        has["c"].write(has["v"].read())
        has["flux"]()
        assert sent() == [halo]
        has["around"]()
        assert sent() == [halo]  # c, late
        assert has["r"].current is False

    ranks(body)


def test_a_chain_exchanges_constants_once(watch: Watch) -> None:
    def body(world: World, has: dict[str, Any]) -> None:
        part = world.sets["cells"].part
        assert part is not None
        halo, me = sum(p.size for p in part.send), world.rank
        chain = Chain([has["around"], has["flux"], has["back"], has["around"]], fuse=False)
        direct = Chain([has["double"], has["back"]])
        for call in range(3):
            chain()
            # c at the first call; u before each of the two loops that meet it changed
            assert [sum(s.values()) // 8 for s in watch.starts(me)] == [halo] * (3 if call == 0 else 2)
        direct()
        direct()
        assert watch.starts(me) == []
        has["c"].data[...] = 1.0
        chain()
        assert len(watch.starts(me)) == 3

    ranks(body)


@pytest.mark.parametrize("chained", [True, False])
def test_the_interior_runs_while_messages_travel(watch: Watch, chained: bool) -> None:
    """When the messages are waited for, exactly the interior has been computed, in whole packs of elements."""
    n = 900
    ring = np.arange(n)[:, None]
    next_two, next_one = (ring + np.arange(3)) % n, (ring + np.arange(2)) % n
    rows = {"near": ("cells", "cells", next_two), "edge_cells": ("edges", "cells", next_one)}
    seen: dict[int, list[tuple[str, np.ndarray]]] = defaultdict(list)
    stored: dict[int, np.ndarray] = {}

    def body(world: World, has: dict[str, Any]) -> None:
        part, v, me = world.sets["cells"].part, has["v"], world.rank
        assert part is not None
        inside = part.inside // ALIGN * ALIGN
        assert 0 < inside < part.owned
        run = Chain([has["back"], has["around"]], fuse=False) if chained else has["around"]
        run()
        v.write(0.125)
        has["u"].write(3.0)
        stored[me] = v.buffer.host().view(np.float64)[: part.owned]
        seen[me].clear()
        run()
        assert [event for event, _ in seen[me]] == ["start", "finish"]
        (_, before), (_, meanwhile) = seen[me]
        assert (before == 0.125).all()
        assert (meanwhile[:inside] != 0.125).all()
        assert (meanwhile[inside:] == 0.125).all()
        assert (v.read() != 0.125).all()

    watch.look = lambda rank, event: seen[rank].append((event, stored.get(rank, np.zeros(0)).copy()))
    ranks(body, Mesh({"cells": n, "edges": n}, rows))


def test_ranks_without_neighbours_send_nothing(watch: Watch) -> None:
    def body(world: World, has: dict[str, Any]) -> None:
        has["around"]()
        has["flux"]()
        assert all(not sum(s.values()) for s in watch.starts(world.rank))

    ranks(body, kind="one")
