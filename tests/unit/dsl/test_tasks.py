"""What a loop needs of other ranks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fluxloom as fl
from fluxloom import Loop
from fluxloom.comm.base import Comm
from fluxloom.comm.threads import run_threads
from fluxloom.dsl.ranks.task import executes_halo, halo_needs
from fluxloom_lab.attack.loops.chains import add, copy
from fluxloom_lab.attack.loops.chains import total as total_of
from fluxloom_lab.attack.loops.programs import ends, extremes, flux, near, put, put_more, relax, spread, to_points
from fluxloom_lab.attack.loops.worlds import World, owners, random_mesh

MESH = random_mesh(51, 50)

CASES: list[tuple[Any, str, str, str, bool]] = [
    (copy, "cells", "u v", "", False), (add, "cells", "u v", "", False), (relax, "points", "a", "", False),
    (near, "cells", "u@near v", "u", False), (ends, "edges", "u@edge_cells a@edge_points k", "u a", False),
    (flux, "edges", "u@edge_cells v@edge_cells", "u", True),
    (spread, "edges", "k u@edge_cells v@edge_cells", "k u", True),
    (extremes, "edges", "k u@edge_cells v@edge_cells w@edge_cells", "k u", True),
    (put, "border", "t u@border_cell", "t", True), (put_more, "border", "t u@border_cell", "t u", True),
    (to_points, "cells", "u a@cell_points", "u", True), (total_of, "cells", "u g", "", False),
]  # fmt: skip
"""Kernel, set, arguments, dats whose halo it reads, whether it runs over the execute halo."""


@pytest.mark.parametrize(("kernel", "over", "arguments", "needs", "halo"), CASES)
@pytest.mark.parametrize("listed", [False, True])
def test_needs(kernel: Any, over: str, arguments: str, needs: str, halo: bool, listed: bool) -> None:
    def rank(comm: Comm) -> None:
        world = World(MESH, comm, owners("random", 50, 3))
        on = {**dict.fromkeys("uvw", "cells"), "a": "points", "k": "edges", "t": "border"}
        dats: dict[str, Any] = {n: world.dat(s, np.zeros((MESH.sizes[s], 2)), n) for n, s in on.items()}
        dats["g"] = world.ctx.scalar(0.0, "g")
        given = []
        for word in arguments.split():
            name, _, through = word.partition("@")
            if not through:
                given.append(dats[name])
            else:
                found = world.maps[through]
                given.append(dats[name][found[0] if found.legs == 1 else found])
        some = np.arange(MESH.sizes[over]) % 2 == 0
        place: Any = world.subset(over, some) if listed else world.sets[over]
        constants: dict[str, Any] = {"w": 1.0} if kernel is flux else {}
        loop = Loop(kernel, place, *given, **constants)
        assert " ".join(d.name for d in halo_needs(loop.bound)) == needs
        assert executes_halo(loop.bound) is halo
        if listed:
            part = world.sets[over].part
            assert part is not None
            executed = part.numbers[: part.executed]
            assert np.array_equal(executed[place.indices], executed[some[executed]])

    run_threads(3, rank)


def test_one_rank_needs_nothing() -> None:
    ctx = fl.Context("cpu", threads=1, tuning=False)
    cells = ctx.set(9, "cells")
    ring = ctx.map(cells, cells, (np.arange(9)[:, None] + np.arange(3)) % 9, "ring")
    u, v = (ctx.dat(cells, np.ones((9, 2)), n) for n in "uv")
    loop = Loop(near, cells, u[ring], v)
    assert halo_needs(loop.bound) == []
    assert not ctx.distributed


def test_code_that_begins_anywhere_is_for_ranks_only() -> None:
    texts: dict[str, str] = {}

    def build(world: World) -> None:
        u, v = (world.dat("cells", np.ones((50, 2)), n) for n in "uv")
        loop = Loop(near, world.sets["cells"], u[world.maps["near"]], v)
        texts[f"{world.ctx.comm.size}"] = loop.source

    call: Callable[[Comm], None] = lambda comm: build(World(MESH, comm, owners("random", 50, 2)))  # noqa: E731
    run_threads(2, call)
    build(World(MESH))
    assert "from" in texts["2"]
    assert "int64_t from;" not in texts["1"]
