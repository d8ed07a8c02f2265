"""When a loop is gathered by default: where what that computes again costs less than the additions it saves."""

from __future__ import annotations

import numpy as np
import pytest

import fluxloom as fl
from fluxloom import Inc, Read
from fluxloom.device.base import Buffer, Device
from fluxloom.dsl.plan.cost import redundancy_is_low, repeating_pays
from fluxloom.dsl.plan.work import gather_pays
from fluxloom.dsl.run.loop import Loop

N = 2000


class Items(Device):
    """A GPU that is never asked to run anything."""

    name, native, items, dialect, max_block, local_memory = "items", True, True, "cuda", 512, 48 << 10

    def allocate(self, nbytes: int, stagger: int = 0) -> Buffer:
        return Buffer(nbytes)

    def describe(self) -> str:
        return "items"


class Processor(Items):
    """A CPU with a driver of work items."""

    is_cpu = True


@fl.kernel
def difference(u: Read, r: Inc):
    f = u[1] - u[0]
    r[0] += f
    r[1] -= f


@fl.kernel
def outer(u: Read, entries: Inc):
    """Sixteen numbers of four, each with several operations."""
    for i in range(4):
        for j in range(4):
            entries[4 * i + j] += fl.sqrt(u[i] * u[i] + u[j] * u[j]) / (1.0 + u[i] * u[j]) + u[i] * u[j] * u[i]


def fluxes(device: str | Device, schedule: fl.Schedule | None = None, dtype: str = "float64") -> Loop:
    """Return a loop over the faces of a row of cells."""
    ctx = fl.Context(device, threads=2)
    cells, faces = ctx.set(N, "cells"), ctx.set(N - 1, "faces")
    through = ctx.map(faces, cells, np.stack([np.arange(N - 1), np.arange(1, N)], axis=1), "f2c")
    u, r = (ctx.dat(cells, np.ones(N, dtype=dtype), name) for name in "ur")
    return Loop(difference, faces, u[through], r[through], schedule=schedule)


def matrices(device: str | Device, schedule: fl.Schedule | None = None, scattered: bool = False) -> Loop:
    """Return a loop over cells that adds to entries, which lie far apart if ``scattered``."""
    ctx = fl.Context(device, threads=2)
    cells, nodes, entries = ctx.set(N, "cells"), ctx.set(N + 3, "nodes"), ctx.set(8 * N + 16, "entries")
    places = np.random.default_rng(3).permutation(entries.size) if scattered else np.arange(entries.size)
    to_nodes = ctx.map(cells, nodes, np.arange(N)[:, None] + np.arange(4), "c2n")
    to_entries = ctx.map(cells, entries, places[8 * np.arange(N)[:, None] + np.arange(16)], "c2e")
    u, a = ctx.dat(nodes, np.ones(N + 3), "u"), ctx.dat(entries, name="a")
    return Loop(outer, cells, u[to_nodes], a[to_entries], schedule=schedule)


def test_fluxes_are_gathered_and_matrices_are_not() -> None:
    assert fluxes(Items()).strategy == "gather"
    assert matrices(Items()).strategy == "atomic"
    assert fluxes(Items()).fusable_as_gather
    assert not matrices(Items()).fusable_as_gather


@pytest.mark.parametrize("grade", ["plan", "global"])
def test_what_is_reproducible_stays_so(grade: str) -> None:
    assert matrices(Items(), fl.Schedule(deterministic=grade)).strategy == "two_pass"
    assert fluxes(Items(), fl.Schedule(deterministic=grade)).strategy == "gather"


def test_wishes_come_first() -> None:
    asked = matrices(Items(), fl.Schedule(strategy="gather"))
    assert asked.strategy == "gather"
    assert asked.fusable_as_gather


def test_a_processor_adds_by_colours_what_it_does_not_gather() -> None:
    """Its atomic additions are slow."""
    assert fluxes(Processor()).strategy == "gather"
    near = matrices(Processor())
    assert near.strategy == "block_colour"
    assert not gather_pays(near.bound, near.races)


def test_the_rule_in_numbers() -> None:
    """Both sides for one face: ``F`` operations and two rows of 8 bytes, against two additions of 32 bytes."""
    loop = fluxes("cpu")
    flops = loop.bound.lowered.flops
    assert flops == 3
    limit = (N - 1) * 2 * 32 / (flops / 4 + 16 / 4)
    assert repeating_pays(loop.bound, loop.races, 0.999 * limit)
    assert not repeating_pays(loop.bound, loop.races, 1.001 * limit)
    single = fluxes("cpu", dtype="float32")
    assert repeating_pays(single.bound, single.races, 0.999 * (N - 1) * 2 * 32 / (flops / 8 + 16 / 4))


def test_threads_follow_the_rule_too() -> None:
    """A tile so small that each cell is computed several times is not for heavy kernels."""
    near, far = matrices("cpu"), matrices("cpu", scattered=True)
    assert redundancy_is_low(near.bound, near.races)
    assert near.strategy == "gather"
    assert not redundancy_is_low(far.bound, far.races, 1024)


@pytest.mark.opencl
def test_results_do_not_depend_on_the_choice() -> None:
    reference, loop = matrices("cpu", scattered=True), matrices("opencl", scattered=True)
    reference()
    loop()
    loop.reschedule(fl.Schedule(strategy="gather"))
    loop()
    wanted, found = (each.written[0].read() for each in (reference, loop))  # type: ignore[union-attr]
    np.testing.assert_allclose(found, 2.0 * wanted, rtol=1e-13)
