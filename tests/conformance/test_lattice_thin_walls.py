"""Walls thinner than a cell: nothing leaks through them, and links at corners belong to what they meet."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.comm.threads import run_threads
from fluxloom.core.errors import SolverError
from fluxloom.lbm.boundaries import Body, Pressure, Slip, Velocity, Wall
from fluxloom.lbm.collisions.operators import TRT
from fluxloom.lbm.lattices import D2Q9, D3Q19, D3Q27, Lattice
from fluxloom.lbm.shapes.sets import Complement, Difference, Implicit, Intersection, Polygon, Union
from fluxloom.lbm.shapes.shapes import Block, Circle, Cylinder, Shape, Sphere
from fluxloom.solvers.lattice.flow import LatticeBoltzmann
from tests.lattice_names import lattice_flow

THICK = (0.05, 0.35, 0.71, 1.0)


def flow_of(lattice: Lattice, shape: tuple[int, ...], body: Shape, *, interpolated: bool = True, **more: Any) -> Any:
    """Return a cavity whose lid is ``ymax``, with a wall in it."""
    d = lattice.dimensions
    sides: dict[str, Any] = {f"{axis}{end}": Wall() for axis in "xyz"[:d] for end in ("min", "max")}
    sides["ymax"] = Wall((*(0.0,) * (d - 1), 0.05))
    wall = Body("wall", body, Wall(interpolated=interpolated, measure=True))
    context = more.pop("context", None) or fl.Context("cpu", threads=1, tuning=False)
    chosen = {"collision": TRT(), "dtype": "float64", "viscosity": 0.05} | more
    flow = lattice_flow(context, shape, lattice=lattice, boundaries=sides, bodies=[wall], **chosen)
    flow.initialise()
    return flow


def shell(d: int, n: int, angle: float, thick: float) -> tuple[Shape, Any]:
    """Return the wall of a room with flat walls at some angle, and whether points are inside of the room."""
    c, s = np.cos(angle), np.sin(angle)
    middle, half = 0.5 * (n - 1) + 0.13, n / 4.3

    def away(p: np.ndarray) -> np.ndarray:
        y, x = p[:, -2] - middle, p[:, -1] - middle
        parts = [np.abs(c * y - s * x) - half, np.abs(s * y + c * x) - half]
        return np.max(parts if d == 2 else [*parts, np.abs(p[:, 0] - middle) - half], axis=0)

    return Implicit(lambda p: np.abs(away(p)) - 0.5 * thick, d), lambda p: away(p) < 0.0


def speeds(flow: Any, inside: Any) -> tuple[float, float]:
    """Return the largest speed in a room, and outside of it."""
    at = np.moveaxis(np.indices(flow.box.shape), 0, -1).reshape(-1, flow.box.dimensions).astype(float)
    speed = np.linalg.norm(flow.velocity(), axis=-1).ravel()
    within = inside(at)
    return float(speed[within].max()), float(speed[~within].max())


@pytest.mark.parametrize(("thick", "streaming"), [
    (0.35, "pull"), (0.71, "in-place"), *(pytest.param(thick, streaming, marks=pytest.mark.long) for thick in THICK
                                         for streaming in ("pull", "push", "three-phase", "in-place")),
])  # fmt: skip
def test_nothing_leaks_into_a_room_in_the_plane(thick: float, streaming: str) -> None:
    for angle in (0.0, 0.3, np.pi / 4, 1.2):
        wall, inside = shell(2, 26, angle, thick)
        for interpolated in (True, False):
            flow = flow_of(D2Q9, (26, 26), wall, interpolated=interpolated, streaming=streaming)
            flow.step(61)
            still, moved = speeds(flow, inside)
            assert still == 0.0
            assert moved > 0.02


@pytest.mark.parametrize("lattice", [D3Q19, pytest.param(D3Q27, marks=pytest.mark.long)], ids=str)
@pytest.mark.parametrize(
    ("thick", "angle"),
    [(0.35, 0.3), *(pytest.param(*case, marks=pytest.mark.long) for case in ((0.71, np.pi / 4), (1.0, 1.1)))],
)
def test_nothing_leaks_into_a_room_in_space(lattice: Lattice, thick: float, angle: float) -> None:
    wall, inside = shell(3, 14, angle, thick)
    flow = flow_of(lattice, (14, 14, 14), wall)
    flow.step(25)
    still, moved = speeds(flow, inside)
    assert still == 0.0
    assert moved > 0.01


SHELLS: dict[str, Shape] = {
    "ring": Difference(Circle((12.1, 12.3), 7.2), Circle((12.1, 12.3), 6.8)),
    "pipe wall": Intersection(Circle((12.1, 12.3), 7.2), Complement(Circle((12.1, 12.3), 6.49))),
    "four plates": Union(
        Block((5.2, 5.2), (5.5, 18.5)), Block((18.2, 5.2), (18.5, 18.5)), Block((5.2, 5.2), (18.5, 5.5)),
        Block((5.2, 18.2), (18.5, 18.5)),
    ),
    "polygon": Polygon(
        [(5, 5.3), (19, 12.3), (5, 19.3), (4.6, 19.4), (4.6, 12.0), (4.96, 12.0), (4.96, 18.7), (18.2, 12.3),
         (4.96, 5.9), (4.96, 12.0), (4.6, 12.0), (4.6, 5.2)]
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SHELLS)
def test_walls_of_all_shapes_are_tight(name: str) -> None:
    """What begins inside of a closed wall at another density does not reach the outside."""
    flow = flow_of(D2Q9, (25, 25), SHELLS[name], interpolated=False)
    at = np.moveaxis(np.indices((25, 25)), 0, -1).reshape(-1, 2).astype(float)
    room = (np.linalg.norm(at - (10.0 if name == "polygon" else 12.2, 12.3), axis=1) < 2.6).reshape(25, 25)
    flow.conditions.parts["ymax"].assign((0.0, 0.0))
    flow.initialise(np.where(room, 1.02, 1.0))
    flow.step(80)
    assert np.abs(flow.density()[0] - 1.0).max() == 0.0
    assert abs(flow.density()[10, 12] - 1.0) > 1e-4
    assert flow.mass() == pytest.approx(np.where(room, 1.02, 1.0)[flow.fluid].sum(), rel=1e-13)


def test_a_plate_without_any_cell_parts_a_channel_over_a_periodic_side() -> None:
    """It lies between the last cells and the first ones; what is on one side is not felt on the other."""
    plate = Body("plate", Block((-np.inf, 11.4), (np.inf, 11.6)), Wall(measure=True))
    flow = LatticeBoltzmann(
        fl.Context("cpu", threads=1, tuning=False), (6, 12), viscosity=0.1, lattice=D2Q9, dtype="float64",
        boundaries={"ymin": Wall(), "ymax": Wall()}, bodies=[plate], force=(0.0, 1e-5),
    )  # fmt: skip
    assert flow.fluid.all()
    at = np.arange(12) - 5.5
    flow.initialise(1.0 + 3e-5 * at)
    flow.step(200)
    np.testing.assert_allclose(flow.velocity(), 0.0, atol=1e-15)
    np.testing.assert_allclose(flow.force_on("plate"), (0.0, 6 * 12 * 1e-5), rtol=1e-10, atol=1e-16)


def test_thick_bodies_keep_the_links_that_their_cells_give_them() -> None:
    """A rounded corner that reaches into a link aside of it, or the end of a plate, cuts nothing."""
    square = Polygon([(8, 8), (8, 16), (16, 16), (16, 8)])
    for body in (Circle((12.0, 12.5), 5.02), Block((9.0, 8.7), (15.2, 14.0)), square):
        flow = flow_of(D2Q9, (25, 25), body)
        links = flow.conditions.parts["wall"].links
        x = np.pad(flow.fluid, 1, mode="edge")
        around = sum(
            int((flow.fluid & ~np.roll(x, shift, (0, 1))[1:-1, 1:-1]).sum())
            for shift in [(a, b) for a in (-1, 0, 1) for b in (-1, 0, 1)]
        )
        assert links == around


@pytest.mark.parametrize(("cut", "streaming"), [
    ((2, 1), "in-place"), *(pytest.param(cut, streaming, marks=pytest.mark.long) for cut in ((2, 1), (1, 3))
                            for streaming in ("pull", "push", "in-place")),
])  # fmt: skip
def test_ranks_find_what_one_rank_does(streaming: str, cut: tuple[int, int]) -> None:
    wall, _ = shell(2, 22, 0.5, 0.4)

    def values(comm: Any) -> tuple[Any, Any, Any]:
        schedule = fl.Schedule(deterministic="global")
        context = fl.Context("cpu", threads=1, comm=comm, tuning=False, schedule=schedule)
        parts = cut if comm is not None else None
        flow = flow_of(D2Q9, (22, 22), wall, context=context, streaming=streaming, cut=parts)
        flow.step(31)
        window = tuple(slice(o, min(o + n, 22)) for o, n in zip(flow.grid.offset, flow.grid.shape, strict=True))
        return window, flow.velocity(), flow.force_on("wall")

    _, whole, force = values(None)
    for window, part, found in run_threads(int(np.prod(cut)), values):
        np.testing.assert_allclose(part, whole[window], atol=1e-15)
        np.testing.assert_allclose(found, force, atol=1e-14)


def test_lists_of_cells_find_what_all_cells_do() -> None:
    wall, _ = shell(2, 22, 0.5, 0.9)
    found = []
    for cells in ("all", "fluid"):
        flow = flow_of(D2Q9, (22, 22), wall, cells=cells)
        flow.step(31)
        found.append((flow.velocity(), flow.force_on("wall")))
    np.testing.assert_allclose(found[0][0], found[1][0], atol=1e-16)
    np.testing.assert_allclose(found[0][1], found[1][1], atol=1e-15)


# ------------------------------------------------------------------------------------ corners and edges
def stream(half: tuple[bool, ...], interpolated: bool, lattice: Lattice) -> Any:
    """Return a stream past a body in the middle, or what planes of symmetry through it leave."""
    d, n = lattice.dimensions, 14
    shape = (*(n // 2 if cut else n for cut in half), 20)
    sides: dict[str, Any] = {"xmin": Velocity((*(0.0,) * (d - 1), 0.05)), "xmax": Pressure()}
    sides |= {f"{axis}{end}": Slip() for axis in "yz"[: d - 1] for end in ("min", "max")}
    middle = [-0.5 if cut else 0.5 * (n - 1) for cut in half]
    body = Sphere((*middle, 7.2), 3.3) if d == 3 else Circle((*middle, 7.2), 3.3)
    flow = LatticeBoltzmann(
        fl.Context("cpu", threads=1, tuning=False), shape, viscosity=0.05, lattice=lattice, collision=TRT(),
        dtype="float64", boundaries=sides, bodies=[Body("b", body, Wall(interpolated=interpolated, measure=True))],
    )  # fmt: skip
    flow.initialise(1.0, (*(0.0,) * (d - 1), 0.05))
    flow.step(60)
    return flow


@pytest.mark.parametrize("interpolated", [False, True])
@pytest.mark.parametrize(
    ("lattice", "half"),
    [(D2Q9, (True,)), *(pytest.param(*case, marks=pytest.mark.long) for case in (
        (D3Q19, (False, True)), (D3Q27, (True, True))))],
)  # fmt: skip
def test_parts_of_a_body_at_planes_of_symmetry_are_the_whole(
    lattice: Lattice, half: tuple[bool, ...], interpolated: bool
) -> None:
    whole = stream((False,) * len(half), interpolated, lattice).force_on("b")[-1]
    part = stream(half, interpolated, lattice).force_on("b")[-1]
    assert 2 ** sum(half) * part == pytest.approx(whole, rel=1e-12)


@pytest.mark.parametrize("interpolated", [False, True])
@pytest.mark.parametrize(
    ("low", "high", "forces"),
    [
        ((-9.0, 5.5), (3.5, 13.5), {"b": (16.0, -32.0), "ymin": (None, 0.0)}),  # on the floor: nothing below it
        ((-9.0, -9.0), (3.5, 7.5), {"b": (64.0, 16.0), "ymin": (None, 0.0), "xmin": (0.0, 144.0)}),  # in a corner
    ],
)
def test_a_block_on_the_floor_is_pressed_by_what_stands_beside_it(
    low: tuple[float, float], high: tuple[float, float], forces: dict[str, Any], interpolated: bool
) -> None:
    force = (0.0, 1e-4)
    sides = {f"{axis}{end}": Wall(measure=True) for axis in "xy" for end in ("min", "max")}
    flow = LatticeBoltzmann(
        fl.Context("cpu", threads=1, tuning=False), (16, 24), viscosity=0.1, lattice=D2Q9, dtype="float64", force=force,
        boundaries=sides, bodies=[Body("b", Block(low, high), Wall(interpolated=interpolated, measure=True))],
    )  # fmt: skip
    flow.initialise(1.0 + 3.0 * force[1] * (np.arange(24) - 11.5))
    flow.step(40)
    assert np.abs(flow.velocity()).max() < 1e-16
    for name, wanted in forces.items():
        for got, want in zip(flow.force_on(name) / force[1], wanted, strict=True):
            assert want is None or got == pytest.approx(want, abs=1e-10)
    whole = sum(flow.force_on(name) for name in ("b", *sides))
    np.testing.assert_allclose(whole / force[1], (0.0, float(np.count_nonzero(flow.fluid))), atol=1e-9)


# ------------------------------------------------------------------------------------ weight
@pytest.mark.parametrize(
    "streaming", ["in-place", *(pytest.param(name, marks=pytest.mark.long) for name in ("pull", "push"))]
)
@pytest.mark.parametrize("interpolated", [False, True])
def test_fluid_at_rest_stays_so_and_bodies_weigh_their_area(streaming: str, interpolated: bool) -> None:
    """A force along walls, in any direction, also one that came later; several bodies share their loops."""
    bodies = [Circle((9.13, 8.4), 5.0), Circle((17.2, 20.3), 2.3), Polygon([(15, 3), (20, 4), (17, 11)])]
    walls = [Body(f"b{k}", body, Wall(interpolated=interpolated, measure=True)) for k, body in enumerate(bodies)]
    for count in (1, 3):
        force = np.array((-1e-4, 2e-4))
        flow = lattice_flow(
            fl.Context("cpu", threads=1, tuning=False), (24, 27), viscosity=0.03, lattice=D2Q9, dtype="float64",
            collision=TRT(), boundaries={f"{a}{e}": Wall() for a in "xy" for e in ("min", "max")}, bodies=walls[:count],
            force=(0.0, 0.0), streaming=streaming,
        )  # fmt: skip
        flow.set_force(tuple(force))
        at = np.moveaxis(np.indices((24, 27)), 0, -1) - (11.5, 13.0)
        flow.initialise(1.0 + 3.0 * at @ force)
        flow.step(301)
        assert np.abs(flow.velocity()).max() < 1e-15
        for wall in walls[:count]:
            area = wall.shape.measure()
            tight = area is not None
            np.testing.assert_allclose(flow.force_on(wall.name), -force * (area or 19.5), rtol=1e-10 if tight else 0.05)


def test_balls_and_drums_weigh_their_volume() -> None:
    force = np.array((1e-4, -2e-4, 5e-5))
    shapes = {"ball": Sphere((5.2, 5.4, 5.1), 3.1), "drum": Cylinder((9.0, 11.2, 11.1), 2.2, (1.0, 0.0, 0.0), 5.3)}
    flow = LatticeBoltzmann(
        fl.Context("cpu", threads=1, tuning=False), (17, 17, 17), viscosity=0.03, lattice=D3Q19, dtype="float64",
        boundaries={f"{a}{e}": Wall() for a in "xyz" for e in ("min", "max")}, force=tuple(force),
        bodies=[Body(name, shape, Wall(interpolated=True, measure=True)) for name, shape in shapes.items()],
    )  # fmt: skip
    flow.initialise(1.0 + 3.0 * (np.moveaxis(np.indices((17, 17, 17)), 0, -1) - 8.0) @ force)
    flow.step(20)
    assert np.abs(flow.velocity()).max() < 1e-15
    for name, shape in shapes.items():
        np.testing.assert_allclose(flow.force_on(name), -force * (shape.measure() or 0.0), rtol=1e-10)


def test_a_body_that_no_link_meets_is_refused() -> None:
    with pytest.raises(SolverError, match="'wall' has no cell, and cuts no way"):
        flow_of(D2Q9, (9, 9), Circle((4.5, 4.5), 0.3))
