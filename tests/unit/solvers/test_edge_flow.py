"""Flow on edges: states that stay as they are, continuity, forces, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import fluxloom as fl
from fluxloom.core.errors import MeshError, SolverError
from fluxloom.fe.edges.point_mesh import point_mesh
from fluxloom.fv.incompressible.boundary import Inflow, NoSlip, Outflow, Symmetry
from fluxloom.linalg import BiCGStab, ConjugateGradient, Stop
from fluxloom.mesh.data.mesh import MeshData
from fluxloom.mesh.generate.boxes import box2d
from fluxloom.solvers.edges.boundary import WallLaw
from fluxloom.solvers.edges.flow import EdgeFlow
from fluxloom.solvers.edges.scheme import Advective, Convection, EdgeScheme, SkewSymmetric
from fluxloom_lab.problems.edge_flow_cases import slip_vortices, steady

Array = npt.NDArray[np.float64]
SIDES = ("xmin", "xmax", "ymin", "ymax")
TIGHT = Stop(rtol=1e-12)
SURPLUS = dict.fromkeys(SIDES, NoSlip()) | {"xmin": Inflow((1.0, 0.0))}


@pytest.fixture(scope="module")
def context() -> fl.Context:
    return fl.Context("cpu", threads=1, tuning=False)


def square(**options: Any) -> MeshData:
    return box2d(6, 5, kind="triangle", perturb=0.2, **options)


def flow_on(
    context: fl.Context,
    sides: dict[str, Any] | None = None,
    nu: Any = 0.02,
    mesh: MeshData | None = None,
    **options: Any,
) -> EdgeFlow:
    chosen: dict[str, Any] = sides or dict.fromkeys(SIDES, NoSlip())
    return EdgeFlow(point_mesh(context, square() if mesh is None else mesh), nu, chosen, stop=TIGHT, **options)


def test_a_free_stream_stays(context: fl.Context) -> None:
    """From an inflow to an outflow along planes, to rounding."""
    stream = (1.3, 0.0)
    sides = {"xmin": Inflow(stream), "xmax": Outflow(), "ymin": Symmetry(), "ymax": Symmetry()}
    flow = flow_on(context, sides)
    flow.initialise(stream)
    for _ in range(5):
        flow.step(0.02)
    assert np.abs(flow.velocity() - stream).max() < 1e-13
    assert np.abs(flow.pressure()).max() < 1e-13
    state = flow.state()
    assert state.kinetic_energy == pytest.approx(0.5 * 1.3**2, rel=1e-12)
    assert state.momentum == pytest.approx([1.3, 0.0], abs=1e-12)
    assert (state.steps, state.dt) == (5, 0.02)


def test_a_fluid_under_gravity_rests(context: fl.Context) -> None:
    """The pressure, 0 at first, gets to that of the depth; then nothing moves, and walls bear the weight.

    With one ``tau`` everywhere, here that of the step: where it differs from point to point, slopes of the pressure and
    their projection do not cancel edge by edge.
    """
    flow = flow_on(context, nu=0.3, force=(0.0, -2.0), scheme=EdgeScheme(viscous=0.0, convective=0.0))
    flow.initialise()
    for _ in range(300):
        flow.step(0.02)
    pressure, y = flow.pressure(), flow.mesh.coordinates[:, 1]
    assert np.abs(flow.velocity()).max() < 1e-11
    assert np.abs(pressure - pressure.mean() + 2.0 * (y - y.mean())).max() < 1e-10
    assert flow.force(*SIDES) == pytest.approx([0.0, -2.0], abs=1e-10)


@dataclass(frozen=True)
class Divergence(Convection):
    """A form of one's own, ``div (u u)``."""

    skew: float = 1.0  # pyright: ignore[reportIncompatibleMethodOverride]


@pytest.mark.parametrize("convection", [SkewSymmetric(), Advective(), Divergence()])
def test_continuity_is_left_to_rounding(context: fl.Context, convection: Any) -> None:
    """Whatever the start and the scheme, what is left is what the pressure solver leaves."""
    rough = np.random.default_rng(2).normal(size=(42, 2))
    flow = flow_on(context, scheme=EdgeScheme(convection=convection))
    assert flow.initialise(lambda _x: rough).converged
    for _ in range(3):
        assert flow.step(0.01).converged
        assert flow.state().imbalance < 1e-10
        outer = np.unique(np.concatenate([patch.points for patch in flow.mesh.patches.values()]))
        assert not flow.velocity()[outer].any()
    matrix = flow.matrix.to_scipy()
    assert abs(matrix - matrix.T).max() < 1e-15
    assert np.abs(matrix.sum(axis=1)).max() < 1e-15


@pytest.mark.parametrize("lid", [Inflow((1.0, 0.0)), NoSlip((1.0, 0.0))])
def test_both_krylov_methods_find_the_same(context: fl.Context, lid: Any) -> None:
    """With the diagonal, of a pressure that floats and of one that an outflow holds."""
    sides = dict.fromkeys(SIDES, NoSlip()) | {"ymax": lid}
    if isinstance(lid, Inflow):
        sides |= {"ymax": Symmetry(), "xmin": lid, "xmax": Outflow()}
    found = []
    for krylov in (ConjugateGradient, BiCGStab):
        flow = flow_on(context, sides, krylov=krylov)
        flow.initialise()
        iterations = [flow.step(0.02).require("pressure").iterations for _ in range(3)]
        found.append((flow.velocity(), flow.pressure(), iterations))
    (u, p, often), (v, q, seldom) = found
    assert np.abs(u - v).max() < 1e-9
    assert np.abs(p - q).max() < 1e-9 * np.abs(p).max()
    assert all(b < a for a, b in zip(often, seldom, strict=True))


def test_closed_planes_keep_momentum(context: fl.Context) -> None:
    """A closed box has no momentum; vortices in it get none."""
    flow, _ = slip_vortices(context, 8, 16)
    state = flow.state()
    assert np.abs(state.momentum).max() < 2e-3 * np.sqrt(2.0 * state.kinetic_energy) * np.pi
    normal = np.abs(flow.velocity()[:, 0][np.abs(flow.mesh.coordinates[:, 0]) < 1e-9])
    assert normal.max() == 0.0


def test_shear_between_walls(context: fl.Context) -> None:
    """Couette's flow is exact where cells are equal; walls bear its shear."""
    sides: dict[str, Any] = dict.fromkeys(
        ("xmin", "xmax"), Inflow(lambda x: np.stack([x[:, 1], 0.0 * x[:, 1]], axis=1))
    )
    equal = box2d(6, 5, kind="triangle", diagonal="right")
    flow = flow_on(context, {**sides, "ymin": NoSlip(), "ymax": NoSlip((1.0, 0.0))}, mesh=equal)
    flow.initialise(lambda x: np.stack([x[:, 1], 0.1 * np.sin(np.pi * x).prod(axis=1)], axis=1))
    steady(flow, 1e-10)
    assert np.abs(flow.velocity()[:, 0] - flow.mesh.coordinates[:, 1]).max() < 1e-8
    assert flow.force("ymin")[0] == pytest.approx(0.02, rel=1e-6)
    assert flow.force("ymax")[0] == pytest.approx(-0.02, rel=1e-6)


def test_shear_of_a_viscosity_in_space_leaves_as_it_came(context: fl.Context) -> None:
    """``nu (1 + y) du/dy`` is the same everywhere; the transposed gradient bends nothing where the flow goes out."""

    def exact(x: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        return np.stack([np.log2(1.0 + x[:, 1]), 0.0 * x[:, 1]], axis=1)

    sides: dict[str, Any] = {"xmin": Inflow(exact), "xmax": Outflow(), "ymin": NoSlip(), "ymax": NoSlip((1.0, 0.0))}
    flow = flow_on(context, sides, mesh=box2d(8, 8, kind="triangle"), nu="0.1 + 0.1 * y")
    flow.initialise(exact)
    steady(flow, 1e-6)
    assert np.abs(flow.velocity() - exact(flow.mesh.coordinates)).max() < 5e-3
    assert flow.force("ymin") == pytest.approx([0.1 / np.log(2.0), 0.0], abs=3e-3)
    assert (flow.loops.transposed, flow_on(context).loops.transposed) == (1, 0)


def test_stable_steps(context: fl.Context) -> None:
    """At rest without viscosity there is no limit; otherwise it is a multiple of the number asked for."""
    assert flow_on(context, nu=0.0).stable_step() == float("inf")
    flow = flow_on(context)
    assert flow.stable_step(0.4) == pytest.approx(0.5 * flow.stable_step(0.8))
    still = flow.stable_step()
    flow.initialise(lambda x: np.stack([np.sin(np.pi * x[:, 0]), 0.0 * x[:, 0]], axis=1))
    assert flow.stable_step() < still


@pytest.mark.parametrize(
    ("act", "message"),
    [(lambda c: flow_on(c).force("ymin"), "there was no step yet"),
     (lambda c: flow_on(c, nu=-1.0), "viscosity: at least 0 is wanted, not -1 at"),
     (lambda c: flow_on(c, nu=lambda x: np.ones(3)), "viscosity"),
     (lambda c: flow_on(c, force=(1.0, 2.0, 3.0)), "force"),
     (lambda c: flow_on(c, {"xmin": NoSlip()}), "patch 'xmax' has no boundary"),
     (lambda c: flow_on(c).initialise(lambda x: x[:2]), "velocity"),
     (lambda c: flow_on(c).step(0.0), "dt: a positive number"),
     (lambda c: flow_on(c, krylov="bicgstab"), "krylov: a method such as ConjugateGradient or BiCGStab is wanted"),
     (lambda c: flow_on(c, preconditioner="ssor"), r"not 'ssor'; write preconditioner=SSOR\(\)"),
     (lambda c: flow_on(c).step("a"), "dt: a positive number is wanted, not 'a'"),  # pyright: ignore[reportArgumentType]
     (lambda c: flow_on(c).stable_step(-1.0), "courant: a positive number is wanted, not -1.0"),
     (lambda c: flow_on(c, nu=np.nan), "viscosity: nan is not finite"),
     (lambda c: flow_on(c, nu=["a"]), r"viscosity: a number, a formula .* is wanted, not \['a'\]"),
     (lambda c: flow_on(c, force=1.0), "force: a vector of 2 components is wanted"),
     (lambda c: flow_on(c).initialise(lambda x: x + np.inf), r"velocity: .* at the place \(.*\) is not finite"),
     (lambda c: flow_on(c, SURPLUS).initialise(), r"boundaries: the given velocities let 0\..* more in, and no patch"),
     (lambda c: WallLaw("a"), "WallLaw: distance is a positive number, not 'a'"),  # pyright: ignore[reportArgumentType]
     (lambda c: EdgeScheme(dynamic="a"), "dynamic: a number of at least 0"),  # pyright: ignore[reportArgumentType]
     (lambda c: EdgeScheme(convection="upwind"), r"convection: .*SkewSymmetric, Advective.* not 'upwind'"),  # pyright: ignore[reportArgumentType]
     (lambda c: EdgeScheme(dynamic=-1.0), "dynamic: a number of at least 0"),
     (lambda c: EdgeScheme(dynamic=0.0, viscous=0.0, convective=0.0), "tau is infinite")],
)  # fmt: skip
def test_what_is_refused(context: fl.Context, act: Callable[[fl.Context], Any], message: str) -> None:
    with pytest.raises(SolverError, match=message):
        act(context)


def test_faces_without_a_patch_and_steps_that_fail(context: fl.Context) -> None:
    data = square()
    loose = replace(data, patches={name: data.patches[name] for name in SIDES[:3]})
    with pytest.raises(MeshError, match="6 faces of the boundary are in no patch"):
        EdgeFlow(point_mesh(context, loose), 0.1, dict.fromkeys(SIDES[:3], NoSlip()))
    flow = flow_on(context, {**dict.fromkeys(SIDES[:3], NoSlip()), "ymax": NoSlip((1.0, 0.0))})
    flow.initialise()
    flow.step(0.01)
    with pytest.raises(SolverError, match="no patch 'ymix'"):
        flow.force("ymix")
    with pytest.raises(SolverError, match="force: name a patch or several"):
        flow.force()
    with pytest.raises(SolverError, match=r"force: no patch \['ymin'\]"):
        flow.force(["ymin"])  # pyright: ignore[reportArgumentType]


    def burst() -> None:
        for _ in range(60):
            flow.step(1e6)

    with pytest.raises(SolverError, match=r"step \d+, time .*: the velocity is not finite; take dt smaller"):
        burst()


def test_meshes_and_operators_of_others(context: fl.Context) -> None:
    data, sides = square(), dict.fromkeys(SIDES, NoSlip())
    other = EdgeFlow(point_mesh(context, data), 0.1, sides)
    with pytest.raises(MeshError, match="the operators are of another mesh"):
        EdgeFlow(point_mesh(context, data), 0.1, sides, operators=other.operators)
    with pytest.raises(MeshError, match=r"mesh: what fluxloom.fe.edges.point_mesh.point_mesh"):
        EdgeFlow(data, 0.1, sides)  # pyright: ignore[reportArgumentType]
    assert np.array_equal(EdgeFlow(other.mesh, 0.1, sides, force=np.array([1.0, 2.0])).loops.body.read()[3], [1.0, 2.0])
