"""Lattice Boltzmann flow as a script makes it: physical units, the same numbers as a case, forces and torques."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.cases.files.errors import Document
from fluxloom.cases.files.loading import parse_case
from fluxloom.cases.lattice.case import LatticeApplication
from fluxloom.comm.base import Comm
from fluxloom.comm.threads import run_threads
from fluxloom.core.errors import SolverError
from fluxloom.dsl.context import Context
from fluxloom.flows.lattice.given.bodies import Body, Floating
from fluxloom.flows.lattice.given.numerics import Numerics
from fluxloom.flows.lattice.given.shapes import Ball, Box, Implicit, Rod
from fluxloom.flows.lattice.given.sides import Inflow, NoSlip, Outflow, PressureSide, Slip, Sponge
from fluxloom.flows.lattice.given.start import Start
from fluxloom.flows.lattice.given.units import Units
from fluxloom.lbm.streaming.schemes import InPlace, Pull
from fluxloom.run.flow_run import FlowRun, gathered

CHANNEL: dict[str, Any] = {
    "case": {"name": "channel", "solver": "lattice"}, "run": {"iterations": 12},
    "mesh": {"nx": 24, "ny": 12, "spacing": 0.125, "origin": [-1.0, 0.5]},
    "fluid": {"reynolds": 40, "density": 2.0, "force": [0.3, 0.0]},
    "time": {"lattice_velocity": 0.08, "residual_interval": 4},
    "lattice": {"precision": "float64", "streaming": "in-place"},
    "boundary": {
        "xmin": {"type": "velocity", "velocity_x": "1 + 0.1 * y", "ramp": 0.05},
        "xmax": {"type": "pressure", "sponge": {"width": 0.5}},
        "ymin": {"type": "wall", "velocity": [0.2, 0.0]}, "ymax": {"type": "slip"},
    },
    "initial": {"velocity_x": "1", "pressure": "0.01 * x"},
    "body": {
        "disk": {"shape": "circle", "center": [0.0, 1.2], "diameter": 0.5, "spin": [0.4]},
        "ball": {
            "shape": "circle", "center": [1.1, 1.3], "diameter": 0.5, "condition": "immersed", "motion": "free",
            "density": 3.0, "gravity": [0.0, -1.0],
        },
    },
    "history": {"every": 3},
}  # fmt: skip


DISK = Implicit(lambda x, y: (x - 0.5) ** 2 + (y - 0.5) ** 2 - 0.09)


def scripted(context: Context) -> fl.Lattice:
    """Return what the case describes."""
    units = Units.of(0.125, reynolds=40, density=2.0, lower=(-1.0, 0.5), lattice_velocity=0.08)

    def inflow(places: np.ndarray) -> np.ndarray:
        return np.stack([1 + 0.1 * places[:, 1], np.zeros(len(places))], axis=1)

    return fl.Lattice(
        (24, 12), units, context,
        boundaries={
            "xmin": Inflow(inflow, ramp=0.05), "xmax": Sponge(PressureSide(), 0.5), "ymin": NoSlip((0.2, 0.0)),
            "ymax": Slip(),
        },
        bodies={
            "disk": Body(Ball((0.0, 1.2), 0.5), spin=(0.4,)),
            "ball": Body(Ball((1.1, 1.3), 0.5), "immersed", motion=Floating(3.0, (0.0, -1.0))),
        },
        force=(0.3, 0.0), start=Start((1.0, 0.0), lambda places: 0.01 * places[:, 0]),
        numerics=Numerics(precision="float64", streaming=InPlace()), residual_interval=4,
    )  # fmt: skip


def test_a_script_finds_what_the_case_does() -> None:
    """To the last bit: fields, the history, forces."""
    case, application = parse_case(Document(Path("case.toml"), CHANNEL, {}))
    assert isinstance(application, LatticeApplication)
    context = Context("cpu", threads=1, tuning=False)
    cased: FlowRun[Any] = application.build(case, context)  # type: ignore[arg-type]
    for _ in range(12):
        cased.advance()
    flow = scripted(context)
    result = fl.run(flow, fl.Steps(12), [fl.History(3)])
    assert result.status.value == "end reached"
    for name, values in cased.fields().items():
        np.testing.assert_array_equal(result.fields[name], values, err_msg=name)
    assert np.ptp(result.fields["u"]) > 0.1
    columns = flow.columns()
    assert columns == cased.flow.columns()
    assert {"time", "kinetic_energy", "ball.x", "ball.y"} <= columns.keys()
    assert list(result.history) == list(columns)


def couette(context: Context, streaming: Any = None, about: tuple[float, float] = (0.0, 0.0)) -> tuple[float, float]:
    """Return the torques on a drum that turns in a ring, over that of Couette's flow."""
    inner, outer, n, spin, nu = 0.25, 0.6, 52, 0.5, 0.05
    units = Units.of(1.3 / n, viscosity=nu, velocity=spin * inner, lower=(-0.65, -0.65), lattice_velocity=0.05)
    ring = Implicit(lambda x, y: outer**2 - x**2 - y**2)
    bodies = {"drum": Body(Ball((0.0, 0.0), 2 * inner), spin=(spin,), torque=True), "ring": Body(ring, torque=True)}
    flow = fl.Lattice(
        (n, n), units, context, bodies=bodies, numerics=Numerics(precision="float64", streaming=streaming or InPlace()),
    )  # fmt: skip
    wanted = 4 * np.pi * nu * spin * inner**2 * outer**2 / (outer**2 - inner**2)
    surfaces = [flow.surface([name], about) for name in ("drum", "ring")]
    flow.solver.step(2600)
    found = []
    for surface in surfaces:
        surface.take()
        found.append(surface.collect().moment[2] / wanted)
    return found[0], found[1]


def test_torque_of_a_drum_in_a_ring() -> None:
    """As much as Couette's flow has, on the drum and the other way round on the ring; about any point."""
    drum, ring = couette(Context("cpu", threads=1, tuning=False))
    assert drum == pytest.approx(-1.0, abs=0.02)
    assert ring == pytest.approx(1.0, abs=0.02)


def forces(comm: Comm, about: tuple[float, float]) -> tuple[np.ndarray, np.ndarray]:
    context = Context("cpu", threads=1, tuning=False, comm=comm)
    units = Units.of(0.125, reynolds=40, density=2.0)
    flow = fl.Lattice(
        (24, 12), units, context, boundaries={"xmin": Inflow((1.0, 0.0)), "xmax": Outflow()},
        bodies={"disk": Body(Ball((1.0, 0.7), 0.5), torque=True)}, numerics=Numerics(precision="float64"),
    )  # fmt: skip
    flow.solver.step(9)
    surface = flow.surface(["disk"], about)
    surface.take()
    loads = surface.collect()
    return loads.force, loads.moment


def test_moments_move_with_their_point() -> None:
    """By the force times the way; on two ranks as on one."""
    alone = run_threads(1, forces, (1.0, 0.7))[0]
    force, moment = alone
    for found in run_threads(2, forces, (0.25, -0.5)):
        np.testing.assert_allclose(found[0], force, rtol=1e-10)
        assert found[1][:2].tolist() == [0.0, 0.0]
        assert found[1][2] == pytest.approx(moment[2] + 0.75 * force[1] - 1.2 * force[0], rel=1e-9)
    assert abs(force[0]) > 0.1


def test_bodies_in_space() -> None:
    """A rod, a box and a ball stand where physical places are, x first; torques have three components."""
    units = Units.of(0.1, viscosity=0.05, lower=(0.0, -0.5, 0.0))
    bodies = {
        "rod": Body(Rod((0.3, 0.0, 0.2), 0.3, "y"), "bounce-back"), "box": Body(Box((0.7, -0.4, 0.5), (1.0, 0.0, 0.7))),
        "ball": Body(Ball((0.75, 0.2, 0.25), 0.3), torque=True),
    }  # fmt: skip
    flow = fl.Lattice(
        (12, 10, 8), units, Context("cpu", threads=1, tuning=False), bodies=bodies, force=(0.5, 0.0, 0.0),
        numerics=Numerics(precision="float64"),
    )  # fmt: skip
    solid = ~flow.solver.fluid
    assert solid[2, :, 3].all()
    assert solid[6, 3, 8]
    assert solid[2, 7, 7]
    assert not solid[5, 7, 7]
    flow.solver.step(20)
    surface = flow.surface(["ball"], (0.0, 0.0, 0.0))
    surface.take()
    loads = surface.collect()
    center, (fx, fy, fz) = np.array([0.75, 0.2, 0.25]), loads.force
    assert fx > abs(fy) > 0 < abs(fz)
    own = loads.moment - np.cross(center, loads.force)
    assert np.abs(own).max() < 0.2 * np.abs(loads.moment).max()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"cells": (8, 8, 8)}, "2 numbers are wanted"),
        ({"boundaries": {"xmin": Inflow((1.0,)), "xmax": Outflow()}}, r"boundary\.xmin\.velocity: a vector of 2"),
        ({"boundaries": {"ymin": NoSlip((9.0, 0.0)), "ymax": Slip()}}, r"boundary\.ymin: the velocity has a Mach"),
        ({"bodies": {"a": Body(Ball((9.0, 9.0), 0.4))}}, r"body\.a: the body is outside"),
        ({"bodies": {"a": Body(Ball((0.5,), 0.4))}}, r"body\.a\.center: 2 numbers"),
        ({"bodies": {"a": Body(Ball((0.5, 0.5), 0.4), spin=(1.0, 0.0))}}, r"body\.a\.spin: 1 numbers"),
        ({"bodies": {"a": Body(DISK, "immersed")}}, r"body\.a\.condition: 'implicit' cannot"),
        ({"force": (1.0,)}, r"fluid\.force: 2 numbers"),
        ({"numerics": Numerics(lattice=fl.D3Q19)}, r"lattice\.name: D3Q19 has 3 dimensions"),
        ({"start": Start((9.0, 0.0))}, "initial: the velocity has a Mach"),
    ],
)
def test_what_does_not_fit_is_told_by_its_name(changes: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"cells": (8, 8), "units": Units.of(0.125, viscosity=0.1), "context": Context("reference")}
    with pytest.raises(SolverError, match=message):
        fl.Lattice(**(given | changes))


def test_torques_that_nobody_measures_are_refused() -> None:
    """Without a point they are not a number; what is no body is told."""
    flow = fl.Lattice(
        (12, 12), Units.of(0.1, viscosity=0.1), Context("reference"), bodies={"a": Body(Ball((0.5, 0.5), 0.4))}
    )
    surface = flow.surface(["a"])
    surface.take()
    assert np.isnan(surface.collect().moment).all()
    with pytest.raises(SolverError, match="no torque is measured on 'a'"):
        flow.surface(["a"], (0.0, 0.0))
    with pytest.raises(SolverError, match="did you mean 'a'"):
        flow.surface(["aa"])
    assert list(flow.patches) == ["a"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "one of viscosity and reynolds"),
        ({"reynolds": 10, "mach": 0.1, "dt": 0.1}, "only one of lattice_velocity"),
        ({"reynolds": 10, "lattice_velocity": 0.3}, "Mach number of the reference velocity"),
        ({"reynolds": 10, "length": -1.0}, "viscosity has to be positive"),
        ({"reynolds": 10, "lower": (0.0,)}, "2 or 3 dimensions"),
    ],
)
def test_units_that_do_not_fit(given: dict[str, Any], message: str) -> None:
    with pytest.raises(SolverError, match=message):
        Units.of(0.1, **given)


POINTS = {
    "middle": (0.52, 0.61), "centre": (0.5 + 0.5 / 16, 0.5 + 0.5 / 16), "wall": (0.3, 0.005), "seam": (0.999, 0.4),
    "body": (0.765, 0.62),
}  # fmt: skip


def sampled(comm: Comm, n: int, start: Start, **more: Any) -> np.ndarray:
    """Return u, v and p at points of a box with a block in it, at its start."""
    walls = {"ymin": NoSlip(), "ymax": NoSlip()}
    flow = fl.Lattice(
        (n, n), Units.of(1.0 / n, viscosity=0.05), Context("cpu", threads=1, tuning=False, comm=comm), start=start,
        boundaries=walls, bodies={"block": Body(Box((0.75, 0.75), (1.0, 1.0)))},
        numerics=Numerics(precision="float64", **more),
    )  # fmt: skip
    points = flow.at_points(POINTS, 4)
    assert points.columns == ("u", "v", "p")
    assert points.names == tuple(POINTS)
    points.sample()
    flow.solver.step()
    points.sample()
    times, values = points.records.values()
    assert times == pytest.approx([0.0, flow.units.dt])
    return values[0]


def test_points_are_exact_for_linear_fields() -> None:
    """Between cells, at walls and beside bodies; on three ranks as on one."""
    start = Start(
        lambda at: np.stack([0.3 + 0.5 * at[:, 1], 0.4 - 0.2 * at[:, 1]], axis=1), lambda at: 0.05 * at[:, 1]
    )
    y = np.array([at[1] for at in POINTS.values()])
    wanted = np.stack([0.3 + 0.5 * y, 0.4 - 0.2 * y, 0.05 * y], axis=1)
    found = run_threads(3, sampled, 16, start)
    for values in found:
        np.testing.assert_allclose(values, wanted, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(run_threads(1, sampled, 16, start)[0], found[0])


def test_points_are_of_second_order() -> None:
    """Also across a seam of joined sides, and beside a wall."""
    start = Start(lambda at: 0.5 * np.stack([np.sin(6.0 * at[:, 1]), np.cos(2 * np.pi * at[:, 0])], axis=1))
    x, y = np.array(list(POINTS.values())).T
    wanted = 0.5 * np.stack([np.sin(6.0 * y), np.cos(2 * np.pi * x)], axis=1)
    errors = [np.abs(run_threads(1, sampled, n, start)[0][:, :2] - wanted).max() for n in (16, 64)]
    assert errors[1] < errors[0] / 10


@pytest.mark.parametrize("point", [(0.8, 0.9), (0.5, 1.2)])
def test_points_that_are_not_in_the_fluid(point: tuple[float, float]) -> None:
    """Told, or left out."""
    flow = fl.Lattice(
        (8, 8), Units.of(0.125, viscosity=0.05), Context("reference"), boundaries={"ymin": NoSlip(), "ymax": Slip()},
        bodies={"block": Body(Box((0.7, 0.7), (1.0, 1.0)))},
    )  # fmt: skip
    with pytest.raises(SolverError, match="probe"):
        flow.at_points({"a": (0.2, 0.2), "b": point}, 4)
    assert flow.at_points({"a": (0.2, 0.2), "b": point}, 4, "leave out").names == ("a",)


def passed(comm: Comm) -> list[tuple[float, float, float, float]]:
    """Return flow, area and mean pressures of the ends of a channel with Poiseuille's flow at its start."""
    flow = fl.Lattice(
        (12, 10), Units.of(0.1, viscosity=0.05), Context("cpu", threads=1, tuning=False, comm=comm),
        boundaries={"xmin": Inflow(("4*y*(1-y)", 0.0)), "xmax": PressureSide(0.0), "ymin": NoSlip(), "ymax": NoSlip()},
        start=Start(("4*y*(1-y)", 0.0), "0.4 * (1.2 - x)"), numerics=Numerics(precision="float64"),
    )  # fmt: skip
    found = []
    for names in (["xmin"], ["xmax"], ["xmin", "xmax"], ["ymin"]):
        surface = flow.surface(names)
        surface.take()
        loads = surface.collect()
        assert np.isnan(loads.force).any() == ("xmin" in names or "xmax" in names)
        found.append((loads.flow, loads.area, *(loads.means.get(name, 0.0) for name in ("p", "total_pressure"))))
    return found


def test_what_passes_sides() -> None:
    """Volume, out of the box positive, and mean pressures, at the centres of the outermost cells; on two ranks too."""
    y = (np.arange(10) + 0.5) / 10
    u = 4 * y * (1 - y)
    volume, dynamic = u.mean(), 0.5 * (u**2).mean()
    wanted = [
        (-volume, 1.0, 0.4 * 1.15, 0.4 * 1.15 + dynamic), (volume, 1.0, 0.4 * 0.05, 0.4 * 0.05 + dynamic),
        (0.0, 2.0, 0.4 * 0.6, 0.4 * 0.6 + dynamic), (0.0, 1.2, 0.0, 0.0),
    ]  # fmt: skip
    for ranks in (1, 2):
        np.testing.assert_allclose(run_threads(ranks, passed)[0], wanted, rtol=0, atol=1e-12)


@pytest.mark.parametrize("streaming", [InPlace(), Pull()])
def test_averages(streaming: Any) -> None:
    """Means, root mean squares and stresses of even and odd steps alike; a profile leaves bodies out; ranks agree."""

    def averaged(comm: Comm) -> tuple[Any, Any, Any]:
        flow = fl.Lattice(
            (12, 10), Units.of(0.1, viscosity=0.02, density=1.0), Context("cpu", threads=1, tuning=False, comm=comm),
            boundaries={"ymin": NoSlip(), "ymax": NoSlip()}, bodies={"block": Body(Box((0.4, 0.0), (0.7, 0.3)))},
            start=Start(("4*y*(1-y)", "0.3*sin(2*pi*x/1.2)")), force=("0.5*cos(9*t)", 0.0),
            numerics=Numerics(precision="float64", streaming=streaming),
        )  # fmt: skip
        averages = fl.Averages(every=1, profile="y")
        seen: list[Any] = []

        class Record(fl.Monitor):
            def stepped(self) -> None:
                seen.append({name: values.copy() for name, values in flow.fields().items()})

        result = fl.run(flow, fl.Steps(5), [averages, Record()])
        profile = averages.profile()
        each = [gathered(comm, flow.part, one) for one in seen]
        return gathered(comm, flow.part, result.run.fields()), each, (profile.coordinate, dict(profile.columns))

    found, seen, (y, columns) = run_threads(1, averaged)[0]
    u, v, p = (np.array([one[name] for one in seen]) for name in ("u", "v", "p"))
    np.testing.assert_allclose(found["u_mean"], u.mean(axis=0), rtol=0, atol=1e-13)
    np.testing.assert_allclose(found["p_mean"], p.mean(axis=0), rtol=0, atol=1e-12)
    np.testing.assert_allclose(found["v_rms"], v.std(axis=0), rtol=0, atol=1e-9)
    assert found["u_rms"].max() > 1e-3
    fluid = seen[0]["fluid"].reshape(10, 12) > 0
    wanted = np.where(fluid, u.mean(axis=0).reshape(10, 12), 0.0).sum(axis=1) / fluid.sum(axis=1)
    np.testing.assert_allclose(columns["u"], wanted, rtol=0, atol=1e-12)
    np.testing.assert_allclose(y, (np.arange(10) + 0.5) / 10)
    two = run_threads(2, averaged)[0]
    np.testing.assert_allclose(two[0]["u_mean"], found["u_mean"], rtol=0, atol=1e-12)
    np.testing.assert_allclose(two[2][1]["uv"], columns["uv"], rtol=0, atol=1e-12)
