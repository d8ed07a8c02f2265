"""Lines of ``history.csv``: at whatever interval, each has the numbers of its own step."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.cases.files.errors import Document
from fluxloom.cases.files.loading import parse_case
from fluxloom.cases.lattice.case import LatticeApplication
from fluxloom.dsl.context import Context
from fluxloom.flows.lattice.flow import Lattice
from fluxloom.flows.lattice.given.bodies import Body
from fluxloom.flows.lattice.given.shapes import Ball
from fluxloom.flows.lattice.given.sides import Inflow, Outflow
from fluxloom.flows.lattice.given.units import Units
from fluxloom.run.flow_run import FlowRun
from fluxloom.run.results.results import ResultFolder

STEPS = 13

CHANNEL: dict[str, Any] = {
    "case": {"name": "channel", "solver": "lattice"},
    "run": {"iterations": STEPS},
    "mesh": {"nx": 16, "ny": 10, "spacing": 0.125},
    "fluid": {"reynolds": 50},
    "boundary": {"xmin": {"type": "velocity", "velocity": [1.0, 0.0]}, "xmax": {"type": "outflow"}},
    "body": {"disk": {"shape": "circle", "center": [0.8, 0.55], "diameter": 0.5}},
    "forces": {"disk": {}},
}  # fmt: skip


def runner_of(every: int, streaming: str, device: str) -> FlowRun[Lattice]:
    tables = CHANNEL | {"history": {"every": every}, "lattice": {"streaming": streaming, "precision": "float64"}}
    case, application = parse_case(Document(Path("case.toml"), tables, {}))
    assert isinstance(application, LatticeApplication)
    return application.build(case, Context(device, threads=1))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("device", "streaming"),
    [
        ("cpu", "in-place"),
        pytest.param("cpu", "pull", marks=pytest.mark.long),
        pytest.param("opencl", "pull", marks=pytest.mark.opencl),
        pytest.param("opencl", "in-place", marks=[pytest.mark.opencl, pytest.mark.long]),
        pytest.param("cuda", "in-place", marks=pytest.mark.cuda),
    ],
)
def test_lines_are_of_their_steps(device: str, streaming: str, tmp_path: Path) -> None:
    """Every step, every third one, every fourth: forces are those of that step, even or odd; the last is there."""
    flow = runner_of(0, streaming, device).flow.solver
    forces, energies = [np.zeros(2)], [flow.totals()[1]]
    for _ in range(STEPS):
        flow.step()
        forces.append(flow.force_on("disk")[::-1])
        energies.append(flow.totals()[1])
    assert np.ptp(np.array(forces)[::2], axis=0).min() > 1e-6
    for every in (1, 3, 4):
        runner = runner_of(every, streaming, device)
        folder = tmp_path / str(every)
        folder.mkdir()
        runner.begin(ResultFolder(folder))
        while not runner.finished and runner.flow.steps < STEPS:
            runner.advance()
        runner.finish(pictures=False)
        lines = np.genfromtxt(folder / "history.csv", delimiter=",", names=True)
        steps = [*range(0, STEPS, every), STEPS]
        assert lines["time"] == pytest.approx(np.array(steps) * runner.flow.units.dt, rel=1e-9)
        found = np.stack([lines["diskforce_x"], lines["diskforce_y"]], axis=1) / runner.flow.units.force
        np.testing.assert_allclose(found, np.array(forces)[steps], rtol=1e-9, atol=1e-13)
        part = lines["kinetic_energy"] / lines["kinetic_energy"][-1]
        np.testing.assert_allclose(part, np.array(energies)[steps] / energies[-1], rtol=1e-9)


@pytest.mark.parametrize(
    "device",
    ["cpu", pytest.param("opencl", marks=pytest.mark.opencl), pytest.param("cuda", marks=pytest.mark.cuda)],
)
@pytest.mark.parametrize(("every", "lines"), [(2, 3), (3, 3), (1, 4)])
def test_forces_are_of_their_steps(device: str, every: int, lines: int) -> None:
    """Samples and lines at intervals of their own: force and torque of each are those of its step."""

    def made() -> fl.Lattice:
        disk = Body(Ball((0.8, 0.55), 0.5), torque=True)
        return fl.Lattice(
            (16, 10), Units.of(0.125, reynolds=50), Context(device, threads=1), bodies={"disk": disk},
            boundaries={"xmin": Inflow((1.0, 0.0)), "xmax": Outflow()},
        )  # fmt: skip

    flow, wanted = made(), [np.zeros(3)]
    scale = flow.units.force
    for _ in range(STEPS):
        flow.solver.step()
        force, torque = flow.solver.force_on("disk"), flow.solver.torque_on("disk")
        wanted.append(scale * np.array([force[1], force[0], torque[0] * flow.units.dx]))
    forces = fl.Forces("disk", about=(0.8, 0.55), every=every)
    result = fl.run(made(), fl.Steps(STEPS), [forces, fl.History(lines)])
    series, steps = forces.series, [*range(every, STEPS, every), STEPS]
    assert series.time == pytest.approx(np.array(steps) * flow.units.dt)
    found = np.concatenate([series.force, series.moment[:, 2:]], axis=1)
    np.testing.assert_allclose(found, np.array(wanted)[steps], rtol=1e-5, atol=1e-7)
    names = ("disk.force_x", "disk.force_y", "disk.moment_z")
    found = np.stack([result.history[name] for name in names], axis=1)
    np.testing.assert_allclose(found, np.array(wanted)[[*range(0, STEPS, lines), STEPS]], rtol=1e-5, atol=1e-7)
    assert np.ptp(found, axis=0).min() > 1e-5
