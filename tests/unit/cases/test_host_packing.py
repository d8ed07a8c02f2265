"""Messages that the host packs: what they are compared with has to do the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.comm.base import Comm
from fluxloom.core.dtypes import AoS, Layout, SoA
from fluxloom.dsl.ranks.decompose import Link
from fluxloom.dsl.ranks.exchange import Exchange
from fluxloom_lab.bench.host_packing import HostPacking


@pytest.mark.parametrize("layout", [AoS(), SoA()])
def test_halos_are_those_of_the_exchange(layout: Layout) -> None:
    """Three ranks round a ring, two dats of different width."""
    n = 30

    def rank(comm: Comm) -> list[Any]:
        ctx = fl.Context("cpu", threads=1, comm=comm)
        own = np.arange(10 * comm.rank, 10 * comm.rank + 10)
        parts = fl.decompose(
            comm, {"nodes": n, "edges": n}, {"ends": Link("edges", "nodes", np.stack([own, (own + 1) % n], axis=1))},
            on="nodes", method="block",
        ).parts  # fmt: skip
        part = parts["nodes"]
        nodes = ctx.set(part, "nodes")
        mine = part.numbers[: part.owned].astype(float)
        u = ctx.dat(nodes, np.stack([mine, -mine], axis=1), "u", layout=layout)
        v = ctx.dat(nodes, 0.5 * mine, "v")
        HostPacking(Exchange(ctx, [u, v]))()
        stored = u.buffer.host().view(np.float64)
        rows = stored.reshape(-1, 2) if isinstance(layout, AoS) else stored.reshape(2, -1).T
        there = part.numbers[part.owned :]
        assert len(there) > 0
        assert (rows[part.owned : part.stored] == np.stack([there, -there], axis=1)).all()
        assert (v.buffer.host().view(np.float64)[part.owned : part.stored] == 0.5 * there).all()
        return [len(there)]

    assert len(fl.run_threads(3, rank)) == 3
