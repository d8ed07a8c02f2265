"""The verification ``compressible``: what it is made of on coarse meshes, and with ``long`` the whole."""

from __future__ import annotations

import numpy as np
import pytest

from fluxloom.core.errors import SolverError
from fluxloom.dsl.context import Context
from fluxloom.fv.compressible.boundary import SlipWall
from fluxloom.fv.geometry.control_volumes import control_volumes
from fluxloom.mesh.geometry.connectivity import connectivity
from fluxloom.mesh.geometry.metrics import geometry
from fluxloom.solvers.compressible.flow import CompressibleFlow
from fluxloom_lab.exact.riemann import SOD
from fluxloom_lab.problems.compressible_cases import (
    KINDS,
    Tube,
    box,
    change_of_uniform_flow,
    manufactured,
    noise_at_rest,
    turned_flow,
    vortex,
)
from fluxloom_lab.verify.base import FullOptions
from fluxloom_lab.verify.compressible.steady import Ramp, couette, nozzle, ramp_mesh, ringleb, settle
from fluxloom_lab.verify.registry import verifications


@pytest.fixture(scope="module")
def context() -> Context:
    return Context("cpu", threads=1, tuning=False)


def order(coarse: float, fine: float) -> float:
    """Return the order of errors on a mesh and one of half the size."""
    return float(np.log2(coarse / fine))


def size(errors: np.ndarray) -> float:
    """Return the root of the sum of squares."""
    return float(np.linalg.norm(errors))


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=() if kind in ("pyramid", "polyhedron") else pytest.mark.long) for kind in KINDS]
)
def test_uniform_flow_stays(context: Context, kind: str) -> None:
    assert change_of_uniform_flow(context, kind) < 2e-14


@pytest.mark.parametrize("kind", ["triangle", "prism"])
def test_noise_fades(context: Context, kind: str) -> None:
    assert noise_at_rest(context, kind, 100) < 1.5


def test_flow_turns_with_its_mesh(context: Context) -> None:
    assert turned_flow(context, 30.0, steps=5) < 1e-13


@pytest.mark.long
@pytest.mark.parametrize("limiter", ["venkatakrishnan", "barth-jespersen"])
def test_limiters_know_no_axes(context: Context, limiter: str) -> None:
    assert turned_flow(context, 37.0, limiter, 5) < 1e-11


@pytest.mark.parametrize("kind", ["quad", "triangle"])
def test_vortex(context: Context, kind: str) -> None:
    assert order(vortex(context, kind, 24), vortex(context, kind, 48)) > 1.8


@pytest.mark.parametrize(
    ("kind", "n"),
    [
        ("quad", 8),
        ("polygon", 8),
        *(
            pytest.param(*case, marks=pytest.mark.long)
            for case in (("triangle", 6), ("hexahedron", 5), ("prism", 4), ("polyhedron", 8))
        ),
    ],
)
def test_manufactured(context: Context, kind: str, n: int) -> None:
    coarse, fine = (manufactured(context, kind, m, 0.1) for m in (n, 2 * n))
    assert order(size(coarse), size(fine)) > 1.8


@pytest.mark.long
def test_manufactured_eddies(context: Context) -> None:
    """What the model of turbulence solves for is carried from upwind, with first order."""
    coarse, fine = (manufactured(context, "quad", n, eddy=4.0) for n in (8, 16))
    assert order(size(coarse[:-1]), size(fine[:-1])) > 1.8
    assert 0.7 < order(coarse[-1], fine[-1]) < 1.3


def test_shock_tube(context: Context) -> None:
    coarse, fine = Tube.run(context, 80), Tube.run(context, 160)
    assert order(coarse.error, fine.error) > 0.7
    assert dict(fine.plateaus()) == pytest.approx(
        {"p*": 0.3031301780, "u*": 0.9274526200, "rho*L": 0.4263194282, "rho*R": 0.2655737117}, rel=2e-3
    )
    assert dict(fine.places()) == pytest.approx(
        {"head": 0.2633568, "tail": 0.4859454, "contact": 0.6854905, "shock": 0.8504311}, abs=6e-3
    )


def test_waves_of_the_exact_tube_are_found() -> None:
    """The exact states have exactly their plateaus, and their waves are where they are to a cell."""
    x = (np.arange(1000) + 0.5) / 1000
    tube = Tube(x, SOD.at((x - 0.5) / Tube.TIME))
    assert tube.error == 0.0
    assert dict(tube.plateaus())["rho*R"] == pytest.approx(0.2655737117, abs=1e-10)
    places = dict(tube.places())
    assert [places["head"], places["tail"]] == pytest.approx([0.2633568, 0.4859454], abs=1e-6)
    assert [places["contact"], places["shock"]] == pytest.approx([0.6854905, 0.8504311], abs=1e-3)


@pytest.mark.long
def test_ramp(context: Context) -> None:
    mesh = ramp_mesh(10.0, 20)
    assert geometry(mesh, connectivity(mesh)).cell_volumes.sum() == pytest.approx(1.5 - 0.5 * np.tan(np.pi / 18))
    found = Ramp.run(context, 2.0, 10.0, 20)
    assert found.angle == pytest.approx(39.3139, rel=0.01)
    assert found.pressure == pytest.approx(1.70658, rel=0.01)
    assert found.mach == pytest.approx(1.64052, rel=0.01)


@pytest.mark.long
def test_nozzle(context: Context) -> None:
    place, exact, pressure, wanted = nozzle(context, 60)
    assert place == pytest.approx(exact, abs=0.05)
    assert pressure == pytest.approx(wanted, rel=0.01)


@pytest.mark.long
def test_couette(context: Context) -> None:
    (coarse, _), (fine, heat) = couette(context, 4), couette(context, 8)
    assert order(coarse[0], fine[0]) > 1.8
    assert heat == pytest.approx(1.0, abs=1e-4)


@pytest.mark.long
def test_ringleb(context: Context) -> None:
    coarse, fine = ringleb(context, 8), ringleb(context, 16)
    assert fine[0] < 1e-3
    assert order(coarse[0], fine[0]) > 1.8


def test_what_does_not_settle_is_said(context: Context) -> None:
    volumes = control_volumes(box("quad", 4))
    flow = CompressibleFlow(context, volumes, dict.fromkeys(volumes.patches, SlipWall()))
    flow.start(lambda x: np.where(x[:, :1] < 0.5, [1.0, 0.0, 0.0, 1.0], [0.125, 0.0, 0.0, 0.1]))
    with pytest.raises(SolverError, match=r"the residual is .* of the largest after 50 steps, 1e-12 is wanted"):
        settle(flow, 1e-12, 50)


@pytest.mark.long
def test_all_checks_pass() -> None:
    checks = list(verifications()["compressible"].run(FullOptions(threads=1), lambda _line: None))
    assert len(checks) > 45
    assert [check.name for check in checks if not check.ok] == []
