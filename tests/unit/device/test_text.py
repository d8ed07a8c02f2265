"""The device without hardware: source in every language, and nothing that runs."""

from __future__ import annotations

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.core.errors import DeviceUnavailable
from fluxloom.device.text import TextDevice
from fluxloom.mesh import airfoil_mesh
from fluxloom.solvers.airfoil.flow import Airfoil

MARKS = {"c": "void fl_", "cuda": "__global__ void", "opencl": "__kernel "}


@pytest.mark.parametrize("dialect", MARKS)
@pytest.mark.parametrize("strategy", [None, "gather", "two_pass", "atomic", "element_colour", "block_colour"])
def test_sources(dialect: str, strategy: str | None) -> None:
    """Loops and fused groups have source in every language, whatever the strategy."""
    context = fl.Context(TextDevice(dialect), tuning=False)
    solver = Airfoil(context, airfoil_mesh(8, 12), schedule=fl.Schedule(strategy=strategy))
    for loop in solver.loops:
        assert MARKS[dialect] in loop.source
        assert f"fl_loop_{loop.name}" in loop.source
    text = solver.chain.source
    assert text.count(MARKS[dialect]) >= 5
    assert ("fl_fused_" in text) == solver.chain.fused
    assert not any(MARKS[other] in text for other in ("cuda", "opencl") if other != dialect)


@pytest.mark.parametrize("dialect", MARKS)
def test_nothing_runs(dialect: str) -> None:
    context = fl.Context(TextDevice(dialect), tuning=False)
    solver = Airfoil(context, airfoil_mesh(8, 12))
    for run in (solver.save_soln, solver.chain):
        with pytest.raises(DeviceUnavailable, match=f"dialect '{dialect}' have source here and no device to run on"):
            run()
    assert solver.q.read().shape == (288, 4)  # values are in host memory
    assert all(row.calls == 0 and row.seconds == 0 for row in solver.reports())


def test_calls_may_be_passed_over() -> None:
    """For solvers that set values while they are built."""
    solver = Airfoil(fl.Context(TextDevice("cuda", passing=True), tuning=False), airfoil_mesh(8, 12))
    before = solver.qold.read()
    solver.save_soln()
    np.testing.assert_array_equal(solver.qold.read(), before)


def test_the_source_is_that_of_the_device() -> None:
    """What is shown in C is what the processor compiles."""
    mesh = airfoil_mesh(8, 12)
    texts = [Airfoil(fl.Context(device, threads=2, tuning=False), mesh).chain.source
             for device in ("cpu", TextDevice("c", 2))]  # fmt: skip
    assert texts[0] == texts[1]


def test_description() -> None:
    assert (TextDevice("c", 3).threads, TextDevice("cuda", 3).threads) == (3, 1)
    assert [TextDevice(name).items for name in MARKS] == [False, True, True]
    device = TextDevice("cuda")
    assert "cuda" in device.describe()
    assert (device.memory(), device.shared, device.native) == ((0, 0), True, True)
    done = []
    assert device.elapsed(lambda: done.append(np.zeros(1))) >= 0
    assert len(done) == 1
