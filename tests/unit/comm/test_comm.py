"""A rank alone and threads do what a communicator must do."""

from __future__ import annotations

import numpy as np
import pytest

from fluxloom.comm import Comm, SelfComm
from fluxloom.comm.base import combine
from fluxloom.core.errors import CommError
from tests.unit.comm import cases
from tests.unit.comm.test_threads import ranks


@pytest.mark.parametrize("case", cases.CASES)
def test_alone(case) -> None:
    case(SelfComm())


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_threads(size: int) -> None:
    ranks(size, cases.battery)


def test_alone_aborts() -> None:
    with pytest.raises(CommError, match="enough"):
        SelfComm().abort("enough")


def test_alone_needs_both_sides() -> None:
    with pytest.raises(CommError, match="only one of the two"):
        SelfComm().channel([cases.Message(0, np.zeros(1))], [], 0)


def test_unlike_arrays() -> None:
    def work(comm: Comm) -> None:
        comm.reduce(np.zeros(2 + comm.rank // 2), "sum")

    with pytest.raises(CommError, match=r"ranks 0 and 1: sum of float64 of shape \(2,\); rank 2: sum of .*\(3,\)"):
        ranks(3, work)
    with pytest.raises(CommError, match=r"float32\(2,\) on rank 1"):
        combine([np.zeros(2), np.zeros(2, np.float32)], "max")
