"""Arguments of another kind than those wanted: one message that says what to give."""

from __future__ import annotations

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.comm.base import SelfComm
from fluxloom.core.errors import DatError, LoopError
from fluxloom.mesh.ranks.distribute import distribute


@fl.kernel
def twice(a: fl.RW):
    a[0] = 2.0 * a[0]


def test_schedule_that_is_none() -> None:
    ctx = fl.Context("reference")
    a = ctx.dat(ctx.set(3, "s"), np.ones(3), "a")
    with pytest.raises(LoopError, match=r"^twice: schedule: a Schedule\(...\) is wanted, not 'gather'"):
        fl.Loop(twice, a.set, a, schedule="gather")  # type: ignore[arg-type]
    loop = fl.Loop(twice, a.set, a)
    with pytest.raises(LoopError, match=r"a Schedule\(...\) is wanted, not None"):
        loop.reschedule(None)  # type: ignore[arg-type]


def test_layout_that_is_none() -> None:
    ctx = fl.Context("reference")
    rows = ctx.set(2, "rows")
    message = r"^ragged map 'm': layout: CSR\(\), ELL\(\) or SlicedELL\(\) is wanted, not 'c'"
    with pytest.raises(DatError, match=message):
        ctx.ragged(rows, rows, [0, 1, 2], [0, 1], "m", "c")  # type: ignore[arg-type]


def test_mesh_that_is_none() -> None:
    with pytest.raises(DatError, match=r"^an Airfoil mesh or a slice of one is wanted, not NoneType"):
        distribute(None, SelfComm())  # type: ignore[arg-type]
