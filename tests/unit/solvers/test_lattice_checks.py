"""What a lattice Boltzmann flow says of wrong arguments, and what a script asks of it."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.core.errors import SolverError
from fluxloom.lbm.body_force import ForceField
from fluxloom.lbm.boundaries import Body, Outflow, Pressure, Slip, Sponge, Velocity, Wall
from fluxloom.lbm.collisions.operators import TRT
from fluxloom.lbm.immersed import (
    Contact,
    Deforming,
    Elastic,
    Free,
    ImmersedBody,
    ImmersedBoundary,
    Prescribed,
    circle,
)
from fluxloom.lbm.lattices import D2Q9
from fluxloom.lbm.shapes.shapes import Circle, HalfSpace
from fluxloom.lbm.streaming.schemes import Push
from fluxloom.solvers.lattice.checks import check_immersed
from fluxloom.solvers.lattice.flow import LatticeBoltzmann

WALLS = {"ymin": Wall(), "ymax": Wall()}

CLASS: Any = Wall
SPONGE: Any = Sponge(Wall(), 2)


def flow(shape: Any = (4, 6), context: fl.Context | None = None, **options: Any) -> LatticeBoltzmann:
    """Return a flow in the plane, as Python runs it unless told otherwise."""
    given: dict[str, Any] = {"viscosity": 0.1, "lattice": D2Q9} | options
    return LatticeBoltzmann(context or fl.Context("reference"), shape, **given)


@pytest.fixture(scope="module")
def context() -> fl.Context:
    """One for all."""
    return fl.Context("cpu", threads=1, tuning=False)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"lattice": "D2Q9"}, "from fluxloom.lbm.lattices import D2Q9"),
        ({"lattice": "D2Q7"}, "did you mean 'D2Q9'"),
        ({"collision": TRT}, r"write collision=TRT\(\)"),
        ({"collision": "trt"}, r"write collision=TRT\(\)"),
        ({"collision": 3}, r"a collision is wanted \(BGK, TRT, .*\), not 3"),
        ({"streaming": "AA"}, r"write streaming=InPlace\(\)"),
        ({"streaming": "Esoteric Pull"}, "AA pattern"),
        ({"streaming": 2}, r"a scheme of streaming is wanted \(Pull, Push, .*\), not 2"),
        ({"streaming": "pul"}, r"write streaming=Pull\(\)"),
        ({"streaming": Push}, r"write streaming=Push\(\)"),
        ({"cells": "fluid"}, r"write cells=FluidCells\(\)"),
        ({"dtype": "int32"}, "stored as one of float16, float32, float64"),
        ({"dtype": "flaot32"}, "did you mean 'float32'"),
        ({"dtype": None}, "stored as one of"),
        ({"shape": (4.5, 6)}, "whole and positive"),
        ({"shape": (4, 0)}, "whole and positive"),
        ({"shape": 40}, "cells along each axis"),
        ({"shape": "ab"}, "cells along each axis"),
        ({"shape": (4, 4, 4)}, r"needs a shape of 2 axes.*\(ny, nx\)"),
        ({"viscosity": float("nan")}, "must be positive"),
        ({"viscosity": float("inf")}, "must be positive"),
        ({"viscosity": "0.1"}, "must be positive"),
        ({"viscosity": None}, "must be positive"),
        ({"boundaries": [Wall()]}, "a dictionary is wanted"),
        ({"boundaries": {"xmin": Wall, "xmax": Wall()}}, r"boundaries\['xmin'\]: Wall is the class"),
        ({"boundaries": {"xmin": "wall", "xmax": Wall()}}, r"'wall' is no condition; give Wall\(...\)"),
        ({"boundaries": {"xmin": None, "xmax": Wall()}}, "None is no condition; give one of Wall"),
        ({"boundaries": {"xmin": Sponge(CLASS, 2), "xmax": Wall()}}, "Wall is the class"),
        ({"bodies": [Circle((2.0, 2.0), 1.0)]}, r"bodies\[0\] is a Circle: give a Body"),
        ({"bodies": Circle((2.0, 2.0), 1.0)}, "a list is wanted"),
        ({"bodies": [Body("disc", Circle((2.0, 2.0), 1.2), CLASS)]}, "body 'disc': Wall is the class"),
        ({"bodies": [Body("disc", Circle((2.0, 2.0), 1.2), SPONGE)]}, "only sides of the box have sponges"),
        (
            {"bodies": [Body("big", Circle((2.0, 2.0), 1.6)), Body("small", Circle((2.0, 2.0), 1.1))]},
            "'small' has no cell: all of its cells are those of 'big'",
        ),
        ({"force": (0.0, float("nan"))}, "finite components"),
    ],
)  # fmt: skip
def test_what_is_not_meant_is_one_clear_error(options: dict[str, Any], words: str) -> None:
    with pytest.raises(SolverError, match=words):
        flow(**options)


def test_whole_numbers_of_cells_may_be_floats() -> None:
    assert flow((4.0, np.int64(6))).box.shape == (4, 6)


@pytest.mark.parametrize(("viscosity", "words"), [(1e-7, "more cells"), (1.5, "relaxation time 5 steps")])
def test_viscosities_that_are_hardly_meant(viscosity: float, words: str) -> None:
    with pytest.warns(RuntimeWarning, match=words) as found:
        flow(viscosity=viscosity)
    assert found[0].filename == __file__


HALF: dict[str, Any] = {"viscosity": 0.1, "collision": TRT(), "boundaries": WALLS, "dtype": "float16"}
FORCE = (0.0, 1e-5)


def test_half_precision_warns_where_it_loses_a_force() -> None:
    """Without a force, in a slit and without walls it is silent."""
    with pytest.warns(RuntimeWarning, match="320 steps.*about 3% low"):
        flow((16, 2), force=FORCE, **HALF)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        flow((6, 2), force=FORCE, **HALF)
        flow((16, 2), **HALF)
        changes: list[dict[str, Any]] = [{"boundaries": {}}, {"dtype": "float32"}]
        for change in changes:
            options: dict[str, Any] = HALF | change
            flow((16, 2), force=FORCE, **options)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:dtype='float16'")
def test_half_precision_is_as_low_as_the_warning_says(context: fl.Context) -> None:
    slow = flow((16, 2), context, force=FORCE, **HALF)
    slow.step(4000)
    assert slow.velocity().max() == pytest.approx(0.965 * FORCE[1] * 16**2 / 0.8, rel=0.015)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"density": np.ones((4, 7))}, r"density has the shape \(4, 7\); \(4, 6\) is wanted"),
        ({"velocity": np.zeros((4, 6))}, r"velocity has the shape \(4, 6\); \(4, 6, 2\) is wanted"),
        ({"velocity": np.zeros((3, 4, 6, 2))}, r"\(4, 6, 2\) is wanted"),
        ({"velocity": "fast"}, "has to be numbers"),
    ],
)
def test_shapes_at_the_start_are_those_of_the_box(values: dict[str, Any], words: str) -> None:
    """Not those of memory, which has a layer more across walls."""
    with pytest.raises(SolverError, match=words):
        flow(boundaries=WALLS).initialise(**values)


def test_forces_name_what_measures() -> None:
    sides = {"ymin": Wall(measure=True), "ymax": Wall(), "xmin": Velocity((0.0, 0.01)), "xmax": Pressure()}
    one = flow(boundaries=sides)
    with pytest.raises(SolverError, match=r"'ymax', a Wall: give its wall measure=True \(measured on: 'ymin'"):
        one.force_on("ymax")
    with pytest.raises(SolverError, match="'xmin', a Velocity: only walls measure it"):
        one.force_on("xmin")
    with pytest.raises(SolverError, match="no side or body 'ymim'; did you mean 'ymin'"):
        one.force_on("ymim")
    with pytest.raises(SolverError, match="none has been done since the start"):
        one.force_on("ymin")
    one.step()
    assert one.force_on("ymin").shape == (2,)


@pytest.mark.parametrize("field", [False, True])
def test_velocity_is_that_of_the_step(field: bool) -> None:
    """From rest, n steps of a uniform force make n times the force, whether the flow was initialised or not."""
    force = (0.0, 1e-5)
    one = flow(force=ForceField(force) if field else force, dtype="float64")
    np.testing.assert_allclose(one.velocity(), 0.0, atol=1e-18)
    one.step(10)
    np.testing.assert_allclose(one.velocity(), np.broadcast_to([0.0, 1e-4], (4, 6, 2)), rtol=1e-10)


def test_steps_can_look_for_what_blows_up() -> None:
    one = flow((2, 3))
    one.initialise(velocity=(0.0, 0.01))
    assert one.run(5, 2, lambda it: seen.append(it.steps)) == 5 if (seen := []) == [] else False
    assert seen == [2, 4, 5]
    assert one.run(9, 2, lambda it: it.steps >= 7) == 2
    one.step(3, check_every=1)
    assert one.steps == 10
    g = one.populations.read()
    g[...] = np.nan
    one.populations.write(g)
    one.step(1)
    with pytest.raises(SolverError, match="step 13: the flow is not finite"):
        one.step(6, check_every=2)
    with pytest.raises(SolverError, match="must not be negative"):
        one.step(1, check_every=-1)


@pytest.mark.parametrize("device", ["reference", "cpu"])
def test_single_steps_are_reported(device: str, context: fl.Context) -> None:
    """Once, whether a step was done by itself or with another one."""
    one = flow((4, 6), context if device == "cpu" else None)
    one.step(1)
    one.step(4)
    bulk = [report for report in one.reports() if "pull" in report.name]
    assert sum(report.calls for report in bulk) == 5


def test_values_are_assigned_by_name() -> None:
    one = flow(boundaries={"xmin": Velocity((0.0, 0.01)), "xmax": Outflow(), "ymin": Slip(), "ymax": Slip()})
    one.assign("xmin", (0.0, 0.02))
    one.step()
    np.testing.assert_allclose(one.velocity()[:, 0, 1], 0.02, rtol=1e-5)
    with pytest.raises(SolverError, match="no side or body 'xmni'; did you mean 'xmin'"):
        one.assign("xmni", 1.0)
    with pytest.raises(SolverError, match="sets no values"):
        one.assign("ymin", 1.0)


@pytest.mark.parametrize(
    ("sides", "bodies", "words"),
    [
        ({"ymin": Wall((0.01, 0.02)), "ymax": Wall()}, [], "ymin: the wall has a velocity of 0.01 across itself"),
        (
            WALLS,
            [Body("jet", Circle((6.0, 6.0), 3.0), Wall(lambda x: 0.01 * (x - 6.0)))],
            "jet: the velocity of the wall leads out of the body",
        ),
        (WALLS, [Body("plate", HalfSpace((3.0, 0.0), (1.0, 0.0)), Wall((0.01, 0.0)))], "plate: the velocity"),
    ],
)  # fmt: skip
def test_walls_are_tight(sides: dict[str, Any], bodies: list[Body], words: str) -> None:
    """A velocity through a wall changes the mass: only where that is said."""
    with pytest.raises(SolverError, match=words):
        flow((12, 12), boundaries=sides, bodies=bodies)


def test_blowing_changes_the_mass_as_it_should() -> None:
    sides = {"ymin": Wall((0.001, 0.02), permeable=True), "ymax": Wall()}
    one = flow((6, 8), boundaries=sides, dtype="float64")
    before = one.mass()
    one.step(5)
    assert one.mass() - before == pytest.approx(5 * 8 * 0.001, rel=1e-10)


@pytest.mark.parametrize(
    ("shape", "words"),
    [
        (circle((8.0, -2.0), 3.0), r"of its \d+ markers lie beyond the side xmin"),
        (circle((13.0, 8.0), 3.0), "beyond the side ymax"),
        (circle((8.0, 11.0), 3.0), "markers lie in a solid body"),
    ],
)
def test_immersed_bodies_are_in_the_fluid(shape: Any, words: str) -> None:
    sides = WALLS | {"xmin": Wall(), "xmax": Wall()}
    one = flow((16, 16), boundaries=sides, bodies=[Body("post", Circle((8.0, 13.0), 1.5))])
    with pytest.raises(SolverError, match=words):
        one.immerse(ImmersedBoundary([ImmersedBody("ring", shape)]))


def test_immersed_bodies_pass_over_joined_sides() -> None:
    check_immersed([ImmersedBody("ring", circle((8.0, 0.0), 3.0))], flow((16, 16)).box, np.zeros((16, 16), dtype=bool))


WRONG: Any = "wrong"


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Free.disk(-4, 2.0), r"Free.disk\(radius=-4\): it has to be positive"),
        (lambda: Free.disk(4, -2.0), r"Free.disk\(density=-2.0\)"),
        (lambda: Free.ball(0.0, 2.0), r"Free.ball\(radius=0.0\)"),
        (lambda: Free.ball(float("nan"), 2.0), "finite numbers are wanted"),
        (lambda: Free(1.0, 1.0, 1.0, damping=-1.0), r"Free\(damping=-1.0\)"),
        (lambda: Free(1.0, 1.0, 1.0, gravity=(0.0, float("inf"))), "finite numbers"),
        (lambda: Free(WRONG, 1.0, 1.0), r"Free\(mass=...\): finite numbers"),
        (lambda: Elastic(stiffness=-0.1), r"Elastic\(stiffness=-0.1\)"),
        (lambda: Elastic(lengths=WRONG), "finite numbers"),
        (lambda: Contact(float("nan")), "finite numbers"),
        (lambda: Prescribed(WRONG), "a function of the time"),
        (lambda: Deforming(WRONG), "a function of the time"),
        (lambda: ImmersedBody("x", WRONG), "give Markers"),
        (lambda: ImmersedBody("x", circle((8.0, 8.0), 3.0), WRONG), "its motion is 'wrong'"),
        (lambda: ImmersedBody("x", circle((8.0, 8.0), 3.0), Free), "Free, the class"),  # pyright: ignore[reportArgumentType]
    ],
)
def test_bodies_that_cannot_be(make: Any, words: str) -> None:
    with pytest.raises(SolverError, match=words):
        make()
