"""What several ranks refuse, and that no rank waits for ever when one cannot go on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fluxloom as fl
from fluxloom import Loop
from fluxloom.comm.base import Comm
from fluxloom.comm.threads import run_threads
from fluxloom.core.errors import CommError, DatError, FluxloomError, PlanError
from fluxloom.dsl.run.chain import Chain
from fluxloom_lab.attack.loops.programs import flux, flux_and_sum, near
from fluxloom_lab.attack.loops.worlds import World, owners, random_mesh

CELLS = 60
MESH = random_mesh(31, CELLS, local=True)


def each(body: Callable[[World], Any], ranks: int = 3, device: str = "cpu", kind: str = "random") -> list[Any]:
    """Return what a body returns, or the error it raises, on each rank."""

    def rank(comm: Comm) -> Any:
        return body(World(MESH, comm, owners(kind, CELLS, ranks, 1), device, threads=1))

    return run_threads(ranks, rank)


def refused(action: Callable[[], Any]) -> str:
    """Return the message of an error."""
    try:
        action()
    except FluxloomError as error:
        return f"{type(error).__name__}: {error}"
    return ""


def on_all(body: Callable[[World], Callable[[], Any]], *words: str, **options: Any) -> None:
    """Check that what a body returns raises the same error on every rank."""
    found = each(lambda world: refused(body(world)), **options)
    for message in found:
        assert all(word in message for word in words), message


def test_a_size_says_not_enough() -> None:
    with pytest.raises(DatError, match=r"'cells': there are 2 ranks: say which elements this one has"):
        run_threads(2, lambda comm: fl.Context("cpu", comm=comm).set(7, "cells"))


def test_a_map_has_a_row_for_each_executed_element() -> None:
    def body(world: World) -> Callable[[], Any]:
        edges, cells = world.sets["edges"], world.sets["cells"]
        rows = world.maps["edge_cells"].table
        assert len(rows) == edges.executed > edges.size
        return lambda: world.ctx.map(edges, cells, rows[: edges.size], "short")

    on_all(body, "DatError", "map 'short'", "does not fit")


def test_a_map_leads_to_what_is_stored() -> None:
    def body(world: World) -> Callable[[], Any]:
        edges, cells = world.sets["edges"], world.sets["cells"]
        rows = world.maps["edge_cells"].table.copy()
        world.ctx.map(edges, cells, np.full_like(rows, cells.stored - 1), "last")
        rows[0, 1] = cells.stored
        return lambda: world.ctx.map(edges, cells, rows, "far")

    on_all(body, "DatError", "map 'far'", "entry [0, 1]")


def edge_loop(world: World, kernel: Any, schedule: fl.Schedule, over: Any = None) -> Loop:
    u, r = (world.dat("cells", np.ones((CELLS, 2)), name) for name in "ur")
    e, more = world.maps["edge_cells"], dict[str, Any](w=1.0) if kernel is flux else {}
    sums = [world.ctx.scalar(0.0, "g"), world.ctx.scalar(0.0, "low")] if kernel is flux_and_sum else []
    return Loop(kernel, over or world.sets["edges"], u[e], r[e], *sums, schedule=schedule, **more)


@pytest.mark.parametrize("chained", [True, False])
def test_serial_has_not_the_global_order(chained: bool) -> None:
    def body(world: World) -> Callable[[], Any]:
        loop = edge_loop(world, flux, fl.Schedule(strategy="serial", deterministic="global"))
        return (lambda: Chain([loop])()) if chained else loop

    on_all(body, "PlanError", "flux", "needs the strategy 'gather' or 'two_pass'")


@pytest.mark.parametrize("device", ["cpu", pytest.param("opencl", marks=pytest.mark.opencl)])
def test_increments_of_a_subset_have_not_the_global_order(device: str) -> None:
    def body(world: World) -> Callable[[], Any]:
        some = world.subset("edges", np.arange(2 * CELLS) % 3 == 0)
        return edge_loop(world, flux, fl.Schedule(deterministic="global"), some)

    on_all(body, "PlanError", "flux", "deterministic='global' on several ranks", device=device)


@pytest.mark.parametrize("kind", ["random", "one"])
def test_two_passes_cannot_count(kind: str) -> None:
    """Said on every rank, also where nothing is shared."""
    on_all(lambda world: edge_loop(world, flux_and_sum, fl.Schedule(strategy="two_pass")),
           "PlanError", "flux_and_sum", "cannot tell which elements count", kind=kind)  # fmt: skip


@pytest.mark.opencl
def test_items_choose_what_can_count() -> None:
    def body(world: World) -> Callable[[], Any]:
        loop = edge_loop(world, flux_and_sum, fl.Schedule(deterministic="plan"))
        assert loop.strategy != "two_pass"
        return edge_loop(world, flux_and_sum, fl.Schedule(deterministic="global"))

    on_all(body, "PlanError", "cannot tell which elements count", "reduce in a loop of its own", device="opencl")


def test_the_reference_device_has_one_rank() -> None:
    on_all(lambda world: lambda: edge_loop(world, flux, fl.Schedule()),
           "LoopError", "'reference' runs loops on one rank only", device="reference")  # fmt: skip


def test_a_rank_that_fails_between_two_calls_ends_the_others() -> None:
    ended: dict[int, str] = {}

    def body(world: World) -> None:
        u, v = (world.dat("cells", np.ones((CELLS, 2)), name) for name in "uv")
        there, back = (Loop(near, world.sets["cells"], a[world.maps["near"]], b) for a, b in ((u, v), (v, u)))
        chain = Chain([there, back])
        chain()
        if world.rank == 1:
            raise ValueError("the first error")
        try:
            for _ in range(100):
                chain()
        except CommError as error:
            ended[world.rank] = str(error)
            raise

    with pytest.raises(ValueError, match="the first error"):
        each(body)
    assert set(ended) == {0, 2}
    assert all("rank 1 of 3 failed: ValueError: the first error" in text for text in ended.values())


def test_a_rank_that_fails_inside_a_chain_ends_the_others() -> None:
    """The failing rank runs out of memory while it prepares an exchange that the others wait for."""
    ended: dict[int, str] = {}

    def body(world: World) -> None:
        u, v = (world.dat("cells", np.ones((CELLS, 2)), name) for name in "uv")
        loop = Loop(near, world.sets["cells"], u[world.maps["near"]], v)
        if world.rank == 2:
            world.ctx.device.allocate = _refuse  # type: ignore[method-assign]
        try:
            Chain([loop])()
        except CommError as error:
            ended[world.rank] = str(error)
            raise

    with pytest.raises(PlanError, match="no more memory"):
        each(body)
    assert set(ended) == {0, 1}


def _refuse(*_: Any) -> Any:
    raise PlanError("no more memory")


def test_ranks_that_call_different_things_are_told() -> None:
    def body(world: World) -> None:
        u, v = (world.dat("cells", np.ones((CELLS, 2)), name) for name in "uv")
        loop = Loop(near, world.sets["cells"], u[world.maps["near"]], v)
        if world.rank != 1:
            loop()

    with pytest.raises(CommError, match="rank 1 has finished"):
        each(body)
