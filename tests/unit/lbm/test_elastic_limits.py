"""How stiff elastic bodies may be: the number that says so, what is refused, and what does blow up."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fluxloom.cases.files.errors import Document
from fluxloom.cases.files.loading import parse_case
from fluxloom.cases.lattice.tables import LatticeCase, units_of
from fluxloom.core.errors import Divergence, SolverError
from fluxloom.core.strategies import strategy_name
from fluxloom.dsl.context import Context
from fluxloom.lbm.immersed import Elastic, ImmersedBody, circle
from fluxloom.lbm.immersed.markers.deltas import Delta, Peskin, Roma
from fluxloom.lbm.immersed.springs import check_springs, strain_on_step
from fluxloom.lbm.lattices import D2Q9
from fluxloom.solvers.lattice.flow import LatticeBoltzmann
from tests.lattice_cases import immersed_of
from tests.lattice_names import immersed

VISCOSITY = 0.04


@dataclass(frozen=True)
class Own(Roma):
    """A delta function that nobody has measured."""

    elastic_limits = None


def ring(radius: float = 3.0, **motion: Any) -> ImmersedBody:
    return ImmersedBody("ring", circle((10.3, 9.6), radius, retract=0.0), Elastic(**motion))


def dense(body: ImmersedBody, delta: Delta) -> float:
    """Return the largest eigenvalue of what a step does, from forces by differences and weights on all cells."""
    x, e = body.markers.positions, body.motion
    assert isinstance(e, Elastic)
    rest = np.linalg.norm(np.roll(x, -1, axis=0) - x, axis=1) if e.lengths is None else np.full(len(x), e.lengths)

    def force(y: np.ndarray) -> np.ndarray:
        way = np.roll(y, -1, axis=0) - y
        length = np.linalg.norm(way, axis=1)
        pull = e.stiffness * ((length - rest) / length)[:, None] * way
        found = pull - np.roll(pull, 1, axis=0)
        bent = e.bending * (np.roll(y, 1, axis=0) - 2 * y + np.roll(y, -1, axis=0))
        return found + 2 * bent - np.roll(bent, 1, axis=0) - np.roll(bent, -1, axis=0)

    n, step = x.size, 1e-6
    columns = [(force(x + d) - force(x - d)).ravel() / (2 * step) for d in step * np.eye(n).reshape(n, *x.shape)]
    cells = np.moveaxis(np.indices((20, 20)), 0, -1).reshape(-1, 1, 2)
    weights = np.vectorize(delta)(np.abs(cells - x)).prod(axis=2)
    weights[(np.abs(cells - x) > 0.5 * delta.points).any(axis=2)] = 0.0
    both = np.kron(weights.T @ weights, np.eye(2))
    return float(np.linalg.eigvals(both @ -np.array(columns).T).real.max())


@pytest.mark.parametrize("delta", [Roma(), Peskin()], ids=strategy_name)
@pytest.mark.parametrize(
    "motion", [{"stiffness": 0.3}, {"stiffness": 0.1, "bending": 0.2}, {"stiffness": 0.3, "lengths": 0.4}]
)
def test_the_number_is_the_largest_eigenvalue(delta: Delta, motion: dict[str, float]) -> None:
    body = ring(**motion)
    strain, lost = strain_on_step(body, delta, VISCOSITY)
    assert strain * delta.elastic_limits[0] * np.sqrt(VISCOSITY) == pytest.approx(dense(body, delta), rel=0.03)
    assert lost == (strain > delta.elastic_limits[1] / delta.elastic_limits[0])


def test_what_it_grows_with() -> None:
    """It is proportional to both stiffnesses together; less viscosity is worse; other functions were not measured."""
    weak, stiff = (strain_on_step(ring(stiffness=s, bending=s), Roma(), VISCOSITY)[0] for s in (0.05, 0.1))
    assert stiff == pytest.approx(2 * weak, rel=1e-9)
    assert strain_on_step(ring(stiffness=0.1, bending=0.1), Roma(), VISCOSITY / 4)[0] == pytest.approx(2 * stiff)
    assert strain_on_step(ring(stiffness=0.1), Own(), VISCOSITY) == (0.0, False)
    assert strain_on_step(ring(stiffness=0.0), Roma(), VISCOSITY) == (0.0, False)


def flow_of(body: ImmersedBody, delta: Delta) -> LatticeBoltzmann:
    flow = LatticeBoltzmann(Context("cpu", threads=1), (20, 20), viscosity=VISCOSITY, lattice=D2Q9)
    flow.immerse(immersed([body], delta=delta))
    flow.initialise(1.0, 1e-4 * np.random.default_rng(0).standard_normal((20, 20, 2)))
    return flow


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
@pytest.mark.parametrize("delta", [Roma(), pytest.param(Peskin(), marks=pytest.mark.long)], ids=strategy_name)
def test_beyond_the_limit_it_blows_up(delta: Delta, monkeypatch: pytest.MonkeyPatch, caplog: Any) -> None:
    """Safe ones stay, others are refused, and would not have lived; what comes of them names the cause."""
    safe = 1.0 / strain_on_step(ring(stiffness=1.0), delta, VISCOSITY)[0]
    lost = safe * delta.elastic_limits[1] / delta.elastic_limits[0]
    flow = flow_of(ring(stiffness=0.99 * safe), delta)
    assert flow.immersed is not None
    flow.step(1000)
    assert np.abs(flow.immersed.positions("ring") - ring().markers.positions).max() < 0.05
    assert not caplog.records
    with pytest.raises(SolverError, match=r"body 'ring': Elastic\(stiffness=.* times as stiff as .* blows up: divide"):
        flow_of(ring(stiffness=1.01 * lost), delta)
    flow_of(ring(stiffness=0.99 * lost), delta)
    assert "it may blow up" in caplog.text
    monkeypatch.setattr("fluxloom.lbm.immersed.boundary.check_springs", lambda *_: None)
    flow = flow_of(ring(stiffness=1.3 * lost), delta)
    start = flow.kinetic_energy()
    with contextlib.suppress(Divergence):
        flow.step(1500)
    assert not flow.kinetic_energy() < 1e3 * start, "it shakes, or is no number any more"
    with pytest.raises(SolverError, match=r"not finite any more; .*lower the stiffness of ring"):
        flow_of(ring(stiffness=4.0 * lost), delta).step(900, check_every=300)


def test_only_elastic_bodies_are_looked_at() -> None:
    check_springs([ImmersedBody("disk", circle((9.0, 9.0), 3.0))], Roma(), 1e-9)


def case_of(stiffness: float, **others: Any) -> LatticeCase:
    body = {
        "shape": "circle", "center": [0.0, 0.0], "diameter": 0.6, "condition": "immersed", "motion": "elastic",
        "stiffness": stiffness, "bending": 1e-4 * stiffness,
    }  # fmt: skip
    tables: dict[str, Any] = {
        "case": {"name": "ring", "solver": "lattice"}, "run": {"iterations": 6},
        "mesh": {"nx": 20, "ny": 20, "spacing": 0.05, "origin": [-0.5, -0.5]},
        "fluid": {"viscosity": 0.01}, "time": {"lattice_velocity": 0.05}, "body": {"ring": body},
    }  # fmt: skip
    case, _ = parse_case(Document(Path("case.toml"), tables | others, {}))
    assert isinstance(case, LatticeCase)
    return case


def test_cases_say_how_stiff_a_body_may_be() -> None:
    """What the message calls safe is; shorter steps and the other delta function help as it says."""
    case = case_of(1e4)
    with pytest.raises(SolverError) as caught:
        immersed_of(case)
    words = str(caught.value).split()
    assert words[0] == "body.ring.stiffness:"
    safe, shorter = float(words[words.index("stiffness") + 1]), float(words[words.index("times") - 1])
    assert shorter < 1.0

    def strain(case: LatticeCase) -> float:
        units = units_of(case)
        boundary = immersed_of(case)
        assert boundary is not None
        (body,) = boundary.bodies
        return strain_on_step(body, boundary.forcing.delta, units.lattice_viscosity)[0]

    assert strain(case_of(safe)) == pytest.approx(1.0, rel=0.02)
    assert strain(case_of(1e4, time={"lattice_velocity": 0.05 * shorter})) == pytest.approx(1.0, rel=0.15)
    assert strain(case_of(safe, immersed={"delta": "peskin"})) < 0.3
