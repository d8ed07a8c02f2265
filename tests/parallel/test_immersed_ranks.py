"""Immersed bodies on several ranks: what one rank finds, wherever the lattice is cut."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.comm.base import Comm, SelfComm
from fluxloom.comm.threads import run_threads
from fluxloom.lbm.boundaries import Pressure, Velocity, Wall
from fluxloom.lbm.immersed import Contact, Free, ImmersedBody, circle
from fluxloom.lbm.lattices import D2Q9, D3Q19
from tests.conformance.test_immersed import drum, movers, space_bodies
from tests.lattice_names import immersed, lattice_flow
from tests.parallel.launch import mpiexec

Values = dict[str, Any]


def long(*values: Any) -> Any:
    return pytest.param(*values, marks=pytest.mark.long)


def still() -> list[ImmersedBody]:
    """A drum across a periodic end, and a body that not every rank has cells of."""
    return [drum(), ImmersedBody("far", circle((3.0, 6.0), 2.0))]


def disk() -> list[ImmersedBody]:
    """A free disk on the cuts."""
    return [ImmersedBody("disk", circle((7.0, 7.5), 2.0), Free.disk(2.0, 1.5, gravity=(-1e-2, 0.0)))]


def post() -> list[ImmersedBody]:
    """A body at rest between walls."""
    return [ImmersedBody("post", circle((7.0, 6.0), 2.0))]


def channel() -> list[ImmersedBody]:
    """A body at rest and a free one between walls."""
    return [
        ImmersedBody("post", circle((10.0, 9.0), 3.0)),
        ImmersedBody("disk", circle((16.0, 19.0), 3.0), Free.disk(3.0, 1.5, gravity=(-1e-4, 0.0))),
    ]


SHAPES: dict[Callable[[], list[ImmersedBody]], tuple[int, ...]] = {
    still: (16, 18), disk: (16, 18), post: (14, 16), movers: (24, 20), channel: (22, 30), space_bodies: (14, 13, 12),
}  # fmt: skip


def run(
    comm: Comm, bodies: Callable[[], list[ImmersedBody]], count: int, *, cut: Any = None, device: str = "cpu",
    streaming: str = "pull", dtype: str = "float64", **options: Any,
) -> Values:  # fmt: skip
    """Return what a rank finds after some steps of a flow that differs from cell to cell."""
    shape = SHAPES[bodies]
    context = fl.Context(device, threads=1, comm=comm, tuning=False)
    walls: Values = {"xmin": Velocity((0.0, 0.02)), "xmax": Pressure(1.0), "ymin": Wall(), "ymax": Wall()}
    flow = lattice_flow(
        context, shape, viscosity=0.1, lattice=D2Q9 if len(shape) == 2 else D3Q19, dtype=dtype, streaming=streaming,
        boundaries=walls if bodies in (channel, post) else {}, cut=cut, field=options.get("mode") == "field",
    )  # fmt: skip
    boundary = immersed(bodies(), **{"margin": 1, **options})
    flow.immerse(boundary)
    flow.initialise(1.0, 0.01 * np.random.default_rng(1).standard_normal((*shape, len(shape))))
    flow.step(count)
    place = zip(flow.grid.offset, flow.grid.shape, shape, strict=True)
    looks = {
        name: [flow.force_on(name), boundary.torque_on(name), boundary.positions(name), boundary.slip(name)]
        for name in boundary.names
    }
    return {
        "window": tuple(slice(o, min(o + n, m)) for o, n, m in place),
        "velocity": flow.velocity(),
        "bodies": {name: np.concatenate([values.ravel() for values in found]) for name, found in looks.items()},
        "state": boundary.state(),
        "cells": boundary.cells.indices.size,
    }


def check(one: Values, found: list[Values], tolerance: float = 1e-13) -> None:
    """Check that ranks find what one finds, and all the same bits of bodies."""
    assert np.abs(one["velocity"]).max() > 1e-3
    assert sum(each["cells"] for each in found) == one["cells"], "each cell around markers is one rank's"
    for each in found:
        assert np.abs(each["velocity"] - one["velocity"][each["window"]]).max() < tolerance
        for name, values in one["bodies"].items():
            assert np.abs(each["bodies"][name] - values).max() < tolerance, name
            assert np.array_equal(each["bodies"][name], found[0]["bodies"][name]), name
        for name, values in found[0]["state"].items():
            assert np.array_equal(each["state"][name], values), name


def agree(ranks: int, *arguments: Any, tolerance: float = 1e-13, oracle: str = "cpu", **options: Any) -> None:
    one = run(SelfComm(), *arguments, **{k: v for k, v in options.items() if k != "cut"} | {"device": oracle})
    check(one, run_threads(ranks, lambda comm: run(comm, *arguments, **options)), tolerance)


CONTACT = Contact(0.01, 1.0)


@pytest.mark.parametrize(("ranks", "bodies", "count", "options"), [
    (4, disk, 6, {"cut": (2, 2), "margin": 0, "iterations": 1, "oracle": "reference"}),
    long(4, movers, 30, {"cut": (2, 2), "contact": CONTACT}),
    long(3, still, 3, {"cut": (3, 1), "iterations": 2}),
    long(3, post, 3, {"cut": (3, 1)}),
    long(2, post, 4, {"cut": (1, 2), "streaming": "three-phase"}),
    long(4, channel, 20, {"cut": (2, 2)}),
    long(3, channel, 21, {"cut": (3, 1), "streaming": "three-phase"}),
    long(3, movers, 31, {"cut": (3, 1), "streaming": "three-phase"}),
    long(3, movers, 30, {"cut": (1, 3), "mode": "field", "margin": 0}),
    long(2, movers, 30, {"cut": (1, 2), "pipeline": "host"}),
    long(2, movers, 90, {"cut": (2, 1), "pipeline": "auto"}),
    long(4, still, 5, {"cut": (2, 2), "scattered": True}),
    long(8, still, 5, {"cut": (8, 1)}),
    long(2, still, 5, {"cut": (2, 1), "pipeline": "host-serial", "streaming": "three-phase", "iterations": 3}),
    long(4, space_bodies, 6, {"cut": (1, 2, 2)}),
    long(2, space_bodies, 6, {"cut": (2, 1, 1), "delta": "peskin"}),
    (3, post, 3, {"cut": (3, 1), "streaming": "in-place", "mode": "field"}),
    long(4, channel, 21, {"cut": (2, 2), "streaming": "in-place", "mode": "field"}),
    long(4, movers, 31, {"cut": (2, 2), "streaming": "in-place", "mode": "field", "contact": CONTACT}),
    long(2, movers, 31, {"cut": (1, 2), "streaming": "push", "pipeline": "host"}),
    long(4, channel, 21, {"cut": (2, 2), "streaming": "push"}),
    *(long(2, space_bodies, 6, {"cut": (1, 2, 1), **more}) for more in (
        {"streaming": "push"}, {"streaming": "in-place", "mode": "field"})),
])  # fmt: skip
def test_ranks_find_what_one_finds(ranks: int, bodies: Any, count: int, options: Values) -> None:
    agree(ranks, bodies, count, **options)


@pytest.mark.long
def test_single_precision() -> None:
    agree(4, movers, 10, cut=(2, 2), dtype="float32", tolerance=1e-5)


@pytest.mark.parametrize("pipeline", ["device", "host"])
@pytest.mark.parametrize(
    "device",
    [
        pytest.param("opencl", marks=[pytest.mark.opencl, pytest.mark.long]),
        pytest.param("cuda", marks=pytest.mark.cuda),
    ],
)
def test_work_items(device: str, pipeline: str) -> None:
    """Devices of work items, whose host does the work on markers beside the step of all cells or not."""
    one = run(SelfComm(), movers, 12)
    found = run_threads(2, lambda comm: run(comm, movers, 12, cut=(2, 1), device=device, pipeline=pipeline))
    check(one, found, 1e-12)


@pytest.mark.long
@pytest.mark.opencl
def test_unlike_ranks() -> None:
    """A processor and a device of work items: bodies are in the same places."""
    one = run(SelfComm(), movers, 30)
    devices = ("opencl", "cpu")
    found = run_threads(2, lambda comm: run(comm, movers, 30, cut=(2, 1), device=devices[comm.rank]))
    for each in found:
        assert np.abs(each["velocity"] - one["velocity"][each["window"]]).max() < 1e-12
        for name, values in one["bodies"].items():
            assert np.abs(each["bodies"][name] - values).max() < 1e-12, name
        assert np.array_equal(each["state"]["rigid.rows"], found[0]["state"]["rigid.rows"])


@pytest.mark.long
@pytest.mark.mpi
def test_processes() -> None:
    done = mpiexec(
        2,
        """
        from fluxloom.comm.base import SelfComm
        from tests.parallel.test_immersed_ranks import check, movers, run

        parts = comm.allgather(run(comm, movers, 20, cut=(2, 1)))
        if comm.rank == 0:
            check(run(SelfComm(), movers, 20), parts)
            print("equal")
        """,
    )
    assert done.stdout.count("equal") == 1
