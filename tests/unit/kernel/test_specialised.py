"""A kernel is lowered once for the same shapes and baked constants."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

from fluxloom.core.access import Const, Read, Write
from fluxloom.core.errors import KernelError
from fluxloom.kernel.frontend import Specialisations, kernel
from fluxloom.kernel.ir import ArgShape, Kind, LoweredKernel

REALS = ArgShape(None, (2,), Kind.REAL)


@kernel
def scaled(x: Read, y: Write, *, a: Const[float], table: Const[list] = (1.0, 2.0)):
    y[0] = a * x[0] + table[0]
    y[1] = a * x[1] + table[1]


def lowered(**baked: Any) -> LoweredKernel:
    return scaled.lower({"x": REALS, "y": REALS}, baked)


def test_once_for_each() -> None:
    first = lowered(a=2.0)
    assert lowered(a=2.0) is first
    assert lowered(a=0.5) is not first
    wide = ArgShape(None, (3,), Kind.REAL)
    assert scaled.lower({"x": wide, "y": REALS}, {"a": 2.0}).shapes == (wide, REALS)
    assert lowered(a=2.0) is first


def test_constants_that_compare_equal_are_told_apart() -> None:
    assert lowered(a=0.0).digest != lowered(a=-0.0).digest
    table = np.array([1.0, 3.0])
    first = lowered(a=2.0, table=table)
    table[1] = 4.0  # the array may be changed behind the kernel's back
    assert lowered(a=2.0, table=table).digest != first.digest


def test_errors_are_not_kept() -> None:
    for _ in range(2):
        with pytest.raises(KernelError, match="is not a real number"):
            lowered(a="two")
        with pytest.raises(KernelError, match="has no value"):
            lowered()


def test_ranks_that_are_threads_share_the_work() -> None:
    calls: list[int] = []
    answer, known = lowered(a=2.0), Specialisations(most=2)

    def slow() -> LoweredKernel:
        calls.append(1)
        return answer

    threads = [threading.Thread(target=known.get, args=({"x": REALS}, {"a": 1.0}, slow)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(calls) == 1
    for a in (2.0, 1.0, 3.0, 1.0, 2.0):  # 1 was used later than 2 when 3 came
        known.get({"x": REALS}, {"a": a}, slow)
    assert len(calls) == 4
