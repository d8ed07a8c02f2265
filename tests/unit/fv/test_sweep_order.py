"""The order of fronts: no two neighbours in one turn, and turns that go up along the lines of a mesh."""

from __future__ import annotations

import numpy as np
import pytest

from fluxloom.fv.geometry.control_volumes import control_volumes
from fluxloom.fv.geometry.sweep_order import front_order
from fluxloom.fv.geometry.volumes import ControlVolumes
from fluxloom.mesh import box2d
from fluxloom.mesh.data.mesh import MeshData, PatchFaces


def neighbours(cv: ControlVolumes) -> np.ndarray:
    inner = cv.faces[: cv.interior]
    return inner[(inner < cv.cells).all(axis=1)]


def test_turns_go_up_along_rows_and_columns() -> None:
    cv = control_volumes(box2d(7, 4, (7.0, 0.1)))
    turns = front_order(cv).reshape(4, 7)
    along, across = np.diff(turns, axis=1), np.diff(turns, axis=0)
    assert (abs(along) == 1).all()
    assert (abs(across) == 1).all()
    assert (along == along[0, 0]).all()
    assert (across == across[0, 0]).all()
    assert (turns.min(), turns.max()) == (0, 9)


@pytest.mark.parametrize("kind", ["triangle", "quad"])
def test_neighbours_have_different_turns(kind: str) -> None:
    cv = control_volumes(box2d(6, 5, kind=kind))
    turns = front_order(cv)
    pairs = turns[neighbours(cv)]
    assert (pairs[:, 0] != pairs[:, 1]).all()
    assert (np.unique(turns) == np.arange(turns.max() + 1)).all()


def test_parts_that_do_not_touch_have_turns_each() -> None:
    left, right = box2d(3, 1), box2d(5, 1)
    points = np.concatenate([left.points, right.points + np.array([9.0, 0.0])])
    more = len(left.points)
    quads = np.concatenate([left.cells["quad"], right.cells["quad"] + more])
    lines = [patch.blocks["line"] for patch in left.patches.values()]
    lines += [patch.blocks["line"] + more for patch in right.patches.values()]
    sides = {"sides": PatchFaces({"line": np.concatenate(lines)})}
    turns = front_order(control_volumes(MeshData(points, {"quad": quads}, sides)))
    assert sorted(turns[:3]) == [0, 1, 2]
    assert sorted(turns[3:]) == [0, 1, 2, 3, 4]
