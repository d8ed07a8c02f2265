"""The cavity of tetrahedra: what it refuses, what flows in it are compared by, and our flows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest

from fluxloom.core.errors import CaseError
from fluxloom.dsl.context import Context
from fluxloom.linalg.precond.jacobi import Jacobi
from fluxloom.mesh import box3d
from fluxloom_lab.problems.lid_cavity import LID
from fluxloom_lab.problems.tetra_cavity import MIDDLE, Profiles, TetraCavity, profile_points
from fluxloom_lab.problems.tetra_flows import CavityRun, FlowRun, edges, finite_volumes


@pytest.fixture(scope="module")
def cavity() -> TetraCavity:
    return TetraCavity(box3d(4, 4, 4, kind="tetra"))


@pytest.mark.parametrize(
    ("mesh", "words"),
    [
        (box3d(2, 2, 2), "tetrahedra alone, this one has: hexahedron"),
        (replace(box3d(2, 2, 2, kind="tetra"), patches={}), "this mesh has: none"),
        (box3d(2, 2, 2, (1.0, 2.0, 1.0), kind="tetra"), "is the unit cube, this mesh goes from"),
        (box3d(1, 2, 2, kind="tetra"), "too coarse"),
    ],
)
def test_other_meshes(mesh: Any, words: str) -> None:
    with pytest.raises(CaseError, match=words):
        TetraCavity(mesh)


def test_profiles_of_a_linear_flow() -> None:
    cavity = TetraCavity(box3d(4, 4, 4, kind="tetra", axes=(lambda s: s**1.5, None, None)))
    slope = np.array([[0.3, 0.7, -0.2], [0.5, -0.4, 0.1], [0.2, 0.6, 0.1]])
    found = cavity.profiles(cavity.mesh.points @ slope.T + [1.0, 2.0, 3.0], 0.25)
    along_y, along_x = np.split(profile_points(), 2)
    assert found.u == pytest.approx(along_y @ slope[0] + 1.0, rel=1e-13)
    assert found.v == pytest.approx(along_x @ slope[1] + 2.0, rel=1e-13)
    assert found.drag == pytest.approx(-0.25 * (slope[0, 1] + slope[1, 0]), rel=1e-13)
    inner = cavity.divided().patches[MIDDLE].blocks["triangle"]
    a, b, c = cavity.mesh.points[inner].transpose(1, 0, 2)
    area = 0.5 * np.linalg.norm(np.cross(b - a, c - a), axis=1).sum()
    assert 0 < area < 0.6
    assert found.middle_drag == pytest.approx(area * found.drag, rel=1e-13)


def test_divided_lid(cavity: TetraCavity) -> None:
    mesh = cavity.divided()
    rows = np.concatenate([mesh.patches[name].blocks["triangle"] for name in (LID, MIDDLE)])
    whole = cavity.mesh.patches[LID].blocks["triangle"]
    assert sorted(map(tuple, rows.tolist())) == sorted(map(tuple, whole.tolist()))
    assert len(mesh.patches[MIDDLE]) == 8  # two a square, of 2 x 2


def test_forces_that_hold_the_lid(cavity: TetraCavity) -> None:
    """Of a stress of 3 on the lid: the rim rests, what its points hold is not counted."""
    reaction = np.zeros((cavity.mesh.n_points, 3))
    triangles = cavity.mesh.patches[LID].blocks["triangle"]
    np.add.at(reaction[:, 0], triangles.reshape(-1), 3.0 * (1 / 32) / 3)
    whole, middle = cavity.held(reaction)
    assert whole == pytest.approx(3.0 * (3 / 4) ** 2)
    assert middle == pytest.approx(3.0 / 4)


def test_differences() -> None:
    one = Profiles(np.zeros(4), np.ones(4), -0.5, -0.25)
    two = Profiles(np.array([0.0, 0.0, -4.0, 0.0]), np.ones(4), -0.6, -0.25)
    assert one.differences(two) == pytest.approx(
        {"u_max": 4.0, "u_l2": 2.0, "v_max": 0.0, "v_l2": 0.0, "drag_percent": 20.0, "middle_drag_percent": 0.0}
    )


@pytest.mark.long
@pytest.mark.parametrize(
    ("solver", "percent"), [(partial(finite_volumes, recipe=Jacobi()), 1.0), (partial(edges, recipe=None), 12.0)]
)
def test_ours(solver: Callable[[Context, CavityRun], FlowRun], percent: float) -> None:
    """The flow follows the lid; a step that is too long is divided, and both give nearly the same.

    The stabilisation of edges depends on the step, which shows on so few points.
    """
    context, cavity = Context("cpu", threads=1), TetraCavity(box3d(3, 3, 3, kind="tetra"))
    long, short = (solver(context, CavityRun(cavity, 0.2, 0.8 / n, n, 1e-8)) for n in (1, 24))
    assert len(long.seconds) == len(long.cpu_seconds) == 1
    assert len(short.seconds) == 24
    assert long.details["substeps"] > short.details["substeps"]
    assert long.iterations > short.iterations > 2
    assert short.profiles.u[-1] > 0.5 > 0 > short.profiles.u.min()
    assert short.profiles.drag < short.profiles.middle_drag < 0
    differences = short.profiles.differences(long.profiles)
    assert abs(differences["drag_percent"]) < percent
    assert differences["u_l2"] < 0.05 * percent / 12.0
