"""What is given at places: one value or a function, and what wrong ones are answered with."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fluxloom.core.errors import SolverError
from fluxloom.fv.geometry.control_volumes import control_volumes
from fluxloom.fv.given import check_patches, given_values
from fluxloom.mesh import box2d

PLACES = np.array([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]])


def test_values() -> None:
    assert given_values("it", 2.0, PLACES).tolist() == [2.0] * 3
    assert given_values("it", lambda x: x[:, 0] - x[:, 1], PLACES).tolist() == [-1.0] * 3
    assert given_values("it", (1.0, 2.0), PLACES, 2).tolist() == [[1.0, 2.0]] * 3
    assert given_values("it", lambda x: 2 * x, PLACES, 2).tolist() == (2 * PLACES).tolist()


@pytest.mark.parametrize(
    ("given", "components", "message"),
    [
        ("warm", 0, "it: 'warm': unknown name 'warm'"),  # a formula
        (["warm"], 0, "it: a number"),
        ((), 0, r"it: a number is wanted, or a function that returns \(3,\) numbers for the places \(3, 2\)"),
        ((1.0, 2.0), 0, "it: a number is wanted"),
        (lambda x: x[:2, 0], 0, "it: a number is wanted"),
        ((1.0, 2.0, 3.0), 2, r"it: a vector of 2 components is wanted, or a function that returns \(3, 2\) numbers"),
        ("fast", 2, "it: a vector of 2 components is wanted"),
        (1.0, 2, "it: a vector of 2 components is wanted"),
        (lambda x: x[:, :1], 2, r"it: a vector of 2 components is wanted, .*, not array"),
        (np.inf, 0, "it: inf is not finite"),
        (lambda x: np.where(x[:, 0] > x[0, 0], np.nan, 1.0), 0, r"it: nan at the place \("),
    ],
)
def test_wrong_values(given: Any, components: int, message: str) -> None:
    with pytest.raises(SolverError, match=message):
        given_values("it", given, PLACES, components)


def test_patches() -> None:
    volumes = control_volumes(box2d(2, 2))
    check_patches("boundaries", volumes, ["xmin", "ymax"])
    with pytest.raises(SolverError, match=r"boundaries: no patch 'xmni'; did you mean 'xmin'\? \(patches: xmin, xmax"):
        check_patches("boundaries", volumes, ["ymax", "xmni"])
