"""The staggered grid: places, what is refused, and kernels that agree with plain Python."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.core.errors import SolverError
from fluxloom.fv.incompressible.boundary import Boundary, Inflow, NoSlip, Outflow, Symmetry
from fluxloom.fv.incompressible.projection_schemes import Wray
from fluxloom.fv.staggered.grid import StaggeredGrid
from fluxloom.fv.staggered.sides import check_sides, ghosts_of, inflow_of, outflow_faces, side_weights
from fluxloom.mesh.generate.boxes import clustered
from fluxloom.monitors.running_means import RunningMeans
from fluxloom.solvers.staggered.fields import StaggeredFields
from fluxloom.solvers.staggered.flow import Staggered
from fluxloom.solvers.staggered.stages import StageForm, StaggeredStage


def line(n: int, stretch: float = 0.0) -> np.ndarray:
    parts = np.arange(n + 1) / n
    return clustered(stretch)(parts) if stretch else parts


def test_places() -> None:
    """Stored places have a layer beyond the ends of axes that are not joined; faces of both ends are among them."""
    grid = StaggeredGrid((line(4), line(3, 1.0), line(5)), (True, False, False))
    assert grid.shape == (5, 3, 4)
    assert grid.full_shape == (7, 5, 4)
    assert grid.stretched == 1
    assert grid.volumes().sum() == pytest.approx(1.0)
    assert grid.inside().reshape(-1, 3).sum(axis=0).tolist() == [60, 40, 48]
    for a, shape in enumerate([(5, 3, 4), (5, 4, 4), (6, 3, 4)]):
        assert grid.inside()[(*grid.face_window(a), a)].shape == shape
        assert np.broadcast_shapes(*(p.shape for p in grid.places(a))) == shape
    metric = grid.metric()
    assert metric[1:-1, :, 0, 0][0, 1:-1] == pytest.approx(1 / grid.widths(1))
    assert metric[0, 2, 0, 1] == pytest.approx(1 / np.diff(grid.centres(1))[0])
    legs, pair = grid.offsets()
    assert len(set(legs)) == len(legs) == 13
    assert legs[pair[0][1]] == (0, 1, -1)


@pytest.mark.parametrize(
    ("faces", "periodic", "message"),
    [
        ((line(4), line(1)), (True, True), "at least 3 coordinates that ascend"),
        ((line(4), line(4)[::-1]), (True, True), "ascend"),
        ((line(4, 1.0), line(4, 1.0)), (False, False), "only one direction"),
        ((line(4), line(4, 1.0)), (False, True), "y is periodic and stretched"),
        ((line(4),), (False,), "two or three axes"),
    ],
)
def test_grids_refused(faces: tuple[np.ndarray, ...], periodic: tuple[bool, ...], message: str) -> None:
    with pytest.raises(SolverError, match=message):
        StaggeredGrid(faces, periodic)


BOX = StaggeredGrid((line(4), line(3)), (False, False))
WALLS: Mapping[str, Boundary] = {name: NoSlip() for name in ("xmin", "xmax", "ymin", "ymax")}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"ymaxx": NoSlip()}, "no side 'ymaxx'; did you mean 'ymax'"),
        ({"ymax": NoSlip((1.0, 0.5))}, "ymax: a wall slides along itself"),
        ({"ymax": NoSlip((1.0, 0.0, 0.0))}, "ymax: a vector of 2 components is wanted"),
        ({"xmin": Inflow((1.0, 0.0))}, "let 1 more in, and no side is an outflow"),
        ({"xmin": Inflow((-1.0, 0.0))}, "let 1 more out, and no side is an outflow"),
    ],
)
def test_sides_refused(changes: Mapping[str, Boundary], message: str) -> None:
    def checked() -> None:
        check_sides(BOX, {**WALLS, **changes})
        inflow_of(BOX, {**WALLS, **changes})

    with pytest.raises(SolverError, match=message):
        checked()


def test_side_that_lacks() -> None:
    with pytest.raises(SolverError, match="the side 'ymax' has none; give it one, or make its axis periodic"):
        check_sides(BOX, {name: WALLS[name] for name in ("xmin", "xmax", "ymin")})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"viscosity": -1.0}, "the viscosity"),
        ({"mean_velocity": (1.0, 0.0)}, "has to be periodic"),
        ({"force": (1.0,)}, "force: 2 finite numbers"),
        ({"scheme": "runge-kutta"}, r"not 'runge-kutta'; write scheme=Wray\(\)"),
    ],
)
def test_flows_refused(options: dict[str, object], message: str) -> None:
    given: dict[str, object] = {"viscosity": 1.0, "boundaries": WALLS, **options}
    with pytest.raises(SolverError, match=message):
        Staggered(fl.Context("cpu", threads=1), BOX, **given)  # pyright: ignore[reportArgumentType]
    with pytest.raises(SolverError, match=r"projection: 'steps' is none; did you mean 'step'"):
        Wray("steps")  # pyright: ignore[reportArgumentType]


def test_beyond_the_sides() -> None:
    """A wall lies half-way; friction is absent behind a plane of symmetry; inflow has formulas."""
    profile = Inflow(lambda p: np.stack([p[:, 1], 3 * p[:, 1]], axis=1))
    sides = {"xmin": profile, "xmax": Outflow(), "ymin": Symmetry(), "ymax": NoSlip((2.0, 0.0))}
    ghosts = ghosts_of(BOX, sides, 0)
    assert ghosts is not None
    number = np.arange(30).reshape(5, 6)
    assert ghosts.places.tolist() == [*number[1:4, 0], *number[1:4, 5]]
    assert ghosts.inner.tolist() == [*number[1:4, 1], *number[1:4, 4]]
    assert ghosts.value[:3, 1] == pytest.approx(6 * np.arange(3) / 3)
    assert ghosts.slope[:, 1].tolist() == [-1, -1, -1, 1, 1, 1]
    above = ghosts_of(BOX, sides, 1)
    assert above is not None
    assert above.slope[:, 0].tolist() == [1] * 4 + [-1] * 4
    assert above.value[4:, 0].tolist() == [4.0] * 4
    assert inflow_of(BOX, sides) == pytest.approx(0.5)
    faces = outflow_faces(BOX, sides)
    assert faces.places.tolist() == number[1:4, 5].tolist()
    assert faces.inner.tolist() == number[1:4, 4].tolist()
    assert faces.area == pytest.approx(1.0)
    weights = side_weights(BOX, "ymax", 0.5, sides["ymax"])
    assert weights.friction.sum(axis=0) == pytest.approx([1.5, 0.0])
    assert weights.push.sum(axis=0) == pytest.approx([0.0, 1.0])


@pytest.mark.parametrize(("axis", "dimension"), [(-1, 2), (1, 3), pytest.param(2, 3, marks=pytest.mark.long)])
def test_loops_agree_with_python(axis: int, dimension: int) -> None:
    """What runs before and after the pressure does the same on the device that interprets."""
    found: list[list[np.ndarray]] = []
    counts = (4, 5, 3)[:dimension]
    faces = tuple(line(n, 1.2 if k == axis else 0.0) for k, n in enumerate(counts))
    grid = StaggeredGrid(faces, (True, False, False)[:dimension])
    names = ("ymin", "ymax", "zmin", "zmax")[: 2 * dimension - 2]
    for device in ("reference", "cpu"):
        rng = np.random.default_rng(1)
        fields = StaggeredFields(fl.Context(device, threads=1), grid, dict.fromkeys(names, NoSlip()))
        stage = StaggeredStage(fields, StageForm(0.1, np.arange(1.0, dimension + 1), 0, 0.3, 0.0))
        for dat in (fields.u, fields.old):
            dat.write(rng.standard_normal((*grid.full_shape, dimension)))
        fields.q.write(rng.standard_normal(grid.full_shape))
        stage.weigh(0.1, 0.15, -0.05, 0.0)
        stage.before()
        stage.looking()
        values = (fields.star, fields.old, fields.source, fields.u)
        found.append([*(dat.read() for dat in values), np.array([fields.flow.value, fields.change.value])])
    for plain, compiled in zip(*found, strict=True):
        np.testing.assert_allclose(compiled, plain, rtol=1e-12, atol=1e-12)


def test_statistics() -> None:
    """Averages of a steady stream are its values; of two states weighted their mean and the squares of differences."""
    grid = StaggeredGrid((line(4), line(3, 1.0)), (True, False))
    sides: dict[str, Boundary] = {"ymin": Symmetry(), "ymax": Symmetry()}
    whole = fl.Staggered(grid, fl.Context("cpu", threads=1), viscosity=0.1, boundaries=sides)
    flow, statistics = whole.solver, RunningMeans(whole.averaged())
    for speed, weight in ((1.0, 3.0), (5.0, 1.0)):
        flow.initialise(lambda p, speed=speed: np.stack([np.full(len(p), speed), 0 * p[:, 0]], axis=1))
        statistics.sample(weight)
    planes = statistics.profile("y")
    assert planes.coordinate == pytest.approx(grid.centres(1))
    assert planes["u"] == pytest.approx([2.0] * 3)
    assert planes["u_rms"] ** 2 == pytest.approx([3.0] * 3)
    assert np.abs(planes["uv"]).max() < 1e-13
    assert statistics.velocity()[:, 0] == pytest.approx([2.0] * 12)


def test_squares_of_averages_are_those_at_faces() -> None:
    """In space, on a stretched axis: variances are means of the squares at both faces less the square of the mean."""
    grid = StaggeredGrid((line(4), line(3, 1.0), line(5)), (True, False, False))
    sides: dict[str, Boundary] = dict.fromkeys(("ymin", "ymax", "zmin", "zmax"), NoSlip())
    whole = fl.Staggered(grid, fl.Context("cpu", threads=1), viscosity=0.1, boundaries=sides)
    flow, means, noise = whole.solver, RunningMeans(whole.averaged()), np.random.default_rng(3)
    first, second = np.zeros((grid.cells, 3)), np.zeros((grid.cells, 3))
    for weight in (3.0, 1.0):
        flow.fields.u.write(noise.normal(size=flow.fields.u.shape))
        means.sample(weight)
        for a in range(3):
            u = flow.fields.u.read()[..., a]
            both = np.stack([u, np.roll(u, -1, axis=2 - a)])[:, *grid.interior].reshape(2, -1)
            first[:, a] += 0.25 * weight * both.mean(axis=0)
            second[:, a] += 0.25 * weight * (both**2).mean(axis=0)
    assert means.velocity() == pytest.approx(first, abs=1e-14)
    assert np.einsum("nii->ni", means.stress()) == pytest.approx(second - first**2, abs=1e-13)
    places = means.averaged.places()
    assert places[:5, 0] == pytest.approx([*grid.centres(0), grid.centres(0)[0]])
    assert np.unique(places[:, 1]) == pytest.approx(grid.centres(1))
    assert np.unique(places[:, 2]) == pytest.approx(grid.centres(2))
