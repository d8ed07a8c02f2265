"""Fast Poisson solvers and divided lines on several GPUs: every transport gives the numbers of one processor."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.dsl.declare.arrays import DeviceArray
from fluxloom.dsl.run.primitive import Steps
from fluxloom.linalg.direct.transforms.ranks import Redistribution, divided
from fluxloom.linalg.direct.tridiagonal import Form
from tests.parallel import test_poisson_ranks as poisson
from tests.parallel import test_tridiagonal_ranks as lines
from tests.parallel.test_gpus import TRANSPORTS, count, on_gpus

pytestmark = pytest.mark.cuda


@pytest.fixture(autouse=True)
def several() -> None:
    """Skip where there is one GPU only."""
    if count() < 2:
        pytest.skip("needs two GPUs or more")


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("name", [
    "walls", "channel", "channel in pencils", "periodic", "periodic in pencils", "periodic without lines", "data",
    "plane in pencils", "ring", "single", "single in pencils",
])  # fmt: skip
def test_problems(name: str, transport: str) -> None:
    case = poisson.CASES[name]
    poisson.check(on_gpus(lambda context: poisson.solved(context, case), transport), case)


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("way", lines.WAYS, ids=str)
@pytest.mark.parametrize("coefficients", lines.FORMS)
def test_lines(coefficients: Any, way: Any, transport: str) -> None:
    case = lines.Case(Form("double", coefficients, False, 2), rows=21, inner=300, way=way[0], pieces=way[1])
    found = np.concatenate(on_gpus(lambda context: lines.solved_in(context, case), transport), axis=1)
    want = case.solution()
    assert np.abs(found - want).max() < 1e-12 * np.abs(want).max()


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_redistribution(transport: str) -> None:
    def work(context: fl.Context) -> bool:
        ranks = context.comm.size
        return all(
            lines.moved_in(context, (40, 33, 70), (ranks, 1, 1), (1, ranks, 1), dtype) for dtype in ("f4", "f8", "c16")
        )

    assert all(on_gpus(work, transport))


@pytest.mark.long
@pytest.mark.parametrize("transport", TRANSPORTS)
def test_large_messages(transport: str) -> None:
    """Two GiB and more between two GPUs, in one message."""

    def work(context: fl.Context) -> bool:
        ranks, rank = context.comm.size, context.comm.rank
        shape = (ranks, ranks, (1 << 28) + 3)
        there = Redistribution(context, divided(shape, (ranks, 1, 1)), divided(shape, (1, ranks, 1)), "f8")
        source, target = (DeviceArray.zeros(context.device, box.shape) for box in (there.before, there.after))
        device: Any = context.device
        with device.active():
            values = source.array()
            for k in range(ranks):
                values[0, k] = ranks * rank + k
                values[0, k, -1] += 0.5
            device.cupy.cuda.Device().synchronize()
            Steps(device, there.items(source, target), [source.buffer], [target.buffer])()
            found = target.array()
            return all(
                bool((found[k, 0, :-1] == ranks * k + rank).all()) and float(found[k, 0, -1]) == ranks * k + rank + 0.5
                for k in range(ranks)
            )

    assert all(on_gpus(work, transport))
