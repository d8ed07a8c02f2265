"""What verifications against published values do with numbers: limits, shocks, separation, meshes that nest."""

from __future__ import annotations

from math import isnan, radians, tan
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from fluxloom.core.errors import CaseError
from fluxloom.dsl.context import Context
from fluxloom.mesh import box2d
from fluxloom_lab.problems.published_cases import PublishedCase, Settled, euler_airfoil, laminar_airfoil, refined
from fluxloom_lab.verify.compressible.published import family, limit
from fluxloom_lab.verify.compressible.published_airfoils import separation
from fluxloom_lab.verify.compressible.published_walls import shock_angle
from fluxloom_lab.verify.registry import verifications


def test_limit_of_a_family() -> None:
    value, words = limit([5.0, 2.0 + 0.16, 2.0 + 0.04, 2.0 + 0.01])
    assert value == pytest.approx(2.0)
    assert "order 2.00" in words
    assert limit([1.0, 2.0, 1.5])[0] == 1.5
    assert "no order" in limit([1.0, 2.0, 4.0])[1]


def test_states_on_a_finer_mesh_are_linear_between() -> None:
    coarse, fine = box2d(5, 3, (10.0, 3.0)), box2d(10, 6, (10.0, 3.0))
    places, finer = (mesh.points[mesh.cells["quad"]].mean(axis=1) for mesh in (coarse, fine))
    found = refined(places, 3).reshape(6, 10, 2)
    assert found[1:-1, 1:-1] == pytest.approx(finer.reshape(6, 10, 2)[1:-1, 1:-1], abs=1e-12)
    assert found[0, 0] == pytest.approx(places[0], abs=1e-12)


def test_angle_of_a_shock() -> None:
    columns, rows = 60, 50
    x, y = np.meshgrid((np.arange(columns) + 0.5) * 1.5 / columns, (np.arange(rows) + 0.5) / rows)
    places = np.stack([x.ravel(), y.ravel()], axis=1)
    front = (places[:, 0] - 0.5) * tan(radians(39.0))
    pressure = 1.0 + 0.7 * np.clip((front - places[:, 1]) * 20.0 + 0.5, 0.0, 1.0)
    assert shock_angle(places, pressure, 1.7, columns) == pytest.approx(39.0, abs=0.1)


def _wall(cf: list[float]) -> Settled:
    x = np.linspace(0.0, 1.0, len(cf))
    wall = SimpleNamespace(places=np.stack([x, np.full(len(cf), 0.1)], axis=1))
    return cast(Any, SimpleNamespace(wall=wall, cf=np.array(cf)))


def test_separation_is_where_friction_turns_behind_the_nose() -> None:
    assert separation(_wall([-1.0, 3.0, 2.0, 1.0, -1.0, -2.0])) == pytest.approx(0.7)
    assert isnan(separation(_wall([-1.0, 3.0, 2.0, 1.0, 0.5, 0.25])))


def test_rings_of_a_family_nest() -> None:
    def quads(case: PublishedCase) -> int:
        return len(case.mesh.cells["quad"])

    assert quads(euler_airfoil(0.5, 64)) == 64 * 64
    assert quads(euler_airfoil(0.5, 64, 600.0)) == 64 * 80
    assert quads(euler_airfoil(0.5, 128, 600.0)) == 128 * 160
    assert quads(euler_airfoil(0.5, 64, 20.0)) == 64 * 44
    assert quads(euler_airfoil(0.5, 128, 20.0)) == 128 * 88
    assert quads(laminar_airfoil(None, 64)) == 64 * 32


@pytest.mark.parametrize("name", ["airfoils", "walls"])
def test_data_are_asked_for(name: str) -> None:
    with pytest.raises(CaseError, match="give --data"):
        next(verifications()[name].run(verifications()[name].options(), print))


@pytest.mark.long
def test_lift_of_the_coarsest_airfoils() -> None:
    """Each finer mesh begins with the states of the coarser one, and ends nearer to 0.1798 (Vassberg and Jameson)."""
    told: list[str] = []
    cases = {str(n): euler_airfoil(0.5, n) for n in (16, 32)}
    coarse, fine = family(Context("cpu", threads=1, tuning=False), told.append, cases, 16, 1e-8)
    assert len(told) == 2
    assert coarse.coefficients.lift < fine.coefficients.lift == pytest.approx(0.1680, abs=5e-4)
    assert fine.drop <= 1e-5
    assert fine.steps < coarse.steps
