"""Shallow water on several ranks: the solver as threads of one process, the tsunami case below mpiexec."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import fluxloom as fl
from fluxloom.cases.shallow.case import TsunamiApplication, TsunamiCase
from fluxloom.cli.main import main
from fluxloom.comm.base import Comm, SelfComm
from fluxloom.comm.threads import run_threads
from fluxloom.core.errors import CaseError, SolverError
from fluxloom.dsl.declare.schedule import Schedule
from fluxloom.fv.shallow.boundary import Discharge, Incident, Level, Outflow
from fluxloom.fv.shallow.scheme import ShallowScheme
from fluxloom.mesh import bind, box2d
from fluxloom.mesh.data.mesh import MeshData
from fluxloom.mesh.io import write as write_data
from fluxloom.run.flow_run import gathered
from fluxloom.solvers.shallow.flow import ShallowWater
from fluxloom.solvers.shallow.probes import WaterProbes
from fluxloom.values.tables import TimeSeries
from tests.parallel.launch import mpiexec

FloatArray = npt.NDArray[np.float64]
MAPS = ("cell_nodes", "face_cells", "face_nodes", "boundary_cell", "boundary_nodes")
SCHEDULE = Schedule(deterministic="global")


@dataclass
class Found:
    """What a run found: fields and records of all cells (on rank 0), and numbers that all ranks have."""

    fields: dict[str, FloatArray]
    gauges: list[FloatArray] = field(default_factory=list)
    numbers: tuple[Any, ...] = ()


def water(comm: Comm, data: MeshData, bed: Any, elevation: Any, **options: Any) -> ShallowWater:
    """Return water on this rank's part; only rank 0 has the mesh."""
    context = fl.Context("cpu", threads=1, comm=comm)
    return ShallowWater(bind(data if comm.rank == 0 else None, context, maps=MAPS), bed, elevation, **options)


def everywhere(found: list[Found]) -> Found:
    """Return what rank 0 found, once it is clear that the others found the same numbers."""
    for other in found[1:]:
        assert other.numbers == found[0].numbers
        np.testing.assert_array_equal(other.gauges, found[0].gauges)
    return found[0]


def island(x: FloatArray, y: FloatArray) -> FloatArray:
    return -1.0 + 1.6 * np.exp(-((x - 0.9) ** 2 + (y - 0.6) ** 2) / 0.08)


def mixed(nx: int, ny: int) -> MeshData:
    """Return a channel of which one half has triangles, the other quadrilaterals."""
    data = box2d(nx, ny, (2.0, 1.0))
    quads = data.cells["quad"]
    cut, kept = quads[: len(quads) // 2], quads[len(quads) // 2 :]
    return MeshData(
        data.points, {"triangle": np.concatenate([cut[:, [0, 1, 2]], cut[:, [0, 2, 3]]]), "quad": kept}, data.patches
    )


@pytest.mark.long
@pytest.mark.parametrize("ranks", [2, 3])
def test_island_at_rest_stays_at_rest(ranks: int) -> None:
    data = box2d(16, 10, (2.0, 1.2), "triangle", perturb=0.2)

    def rests(comm: Comm) -> Found:
        flow = water(
            comm, data, island, 0.0, boundaries={"xmin": Incident(), "xmax": Outflow()},
            scheme=ShallowScheme(manning=0.03), schedule=SCHEDULE,
        )  # fmt: skip
        flow.advance_to(1.0)
        survey = flow.survey()
        return Found(gathered(comm, flow.mesh.cells.part, flow.fields()), numbers=(flow.steps, survey.speed))

    found = everywhere(run_threads(ranks, rests))
    fields, (steps, speed) = found.fields, found.numbers
    wet = fields["depth"] > 0.0
    assert steps > 20
    assert 0 < np.count_nonzero(wet) < wet.size
    assert speed < 1e-13
    assert np.abs(fields["elevation"][wet]).max() < 1e-13
    assert np.abs(fields["velocity"]).max() < 1e-13


def dam_break(comm: Comm, data: MeshData, order: int, fused: bool) -> Found:
    """Return what becomes of water that is held back: all boundaries, friction, rain, wind, an island, gauges."""
    times = np.linspace(0.0, 0.5, 60)
    flow = water(
        comm, data, lambda x, y: island(x, y) + 0.05 * x, lambda x, y: np.where(x < 0.5, 0.4, 0.0),
        schedule=SCHEDULE, fused=fused,
        scheme=ShallowScheme(order=order, manning=0.03, rain="0.01 * x * t", wind_stress=("y", 2.0)),
        boundaries={
            "xmin": Level(TimeSeries(times=times, outside="hold", numbers=0.4 + 0.1 * np.sin(20.0 * times)), until=0.4),
            "xmax": Outflow(),
            "ymin": Incident("0.05 * t * (1 + 0.1 * x)"), "ymax": Discharge("0.01 * x * t"),
        },
    )  # fmt: skip
    gauges = WaterProbes(flow, {"a": (0.3, 0.5), "b": (1.75, 0.5), "same as b": (1.75, 0.5), "on a node": (1.0, 0.5)})
    gauges.sample()
    for time in (0.1, 0.2):
        flow.advance_to(time)
        gauges.sample()
    flow.displace(lambda x, y: 0.1 * np.exp(-((x - 1.6) ** 2)))
    flow.advance_to(0.5)
    gauges.sample()
    survey = flow.survey()
    numbers = (flow.steps, flow.thin, flow.mesh.cells.total, survey.surface, survey.speed)
    sums = (survey.volume, survey.inflow, survey.change, flow.geometry.total_area)
    fields = gathered(comm, flow.mesh.cells.part, flow.fields())
    return Found(fields, list(gauges.records.values()[1]), (*numbers, *sums))


@pytest.mark.parametrize(
    ("ranks", "order", "make", "fused"),
    [
        pytest.param(
            2, 2, lambda: box2d(14, 9, (2.0, 1.0), "triangle", perturb=0.2), True, marks=pytest.mark.long
        ),
        (3, 2, lambda: box2d(14, 9, (2.0, 1.0), "triangle", perturb=0.2), True),
        pytest.param(3, 2, lambda: mixed(14, 8), False, marks=pytest.mark.long),
        pytest.param(3, 1, lambda: mixed(14, 8), True, marks=pytest.mark.long),
    ],
    ids=["triangles-2", "triangles-3", "mixed-unfused", "mixed-first-order"],
)
def test_dam_break_is_that_of_one_rank(ranks: int, order: int, make: Callable[[], MeshData], fused: bool) -> None:
    data = make()
    alone = dam_break(SelfComm(), data, order, False)  # neither ranks nor fusion change a bit
    found = everywhere(run_threads(ranks, dam_break, data, order, fused))
    assert alone.numbers[0] > 20
    assert found.numbers[:5] == alone.numbers[:5]
    np.testing.assert_allclose(found.numbers[5:], alone.numbers[5:], rtol=1e-12)
    for name, values in alone.fields.items():
        assert np.array_equal(found.fields[name], values), name
    np.testing.assert_array_equal(found.gauges, alone.gauges)
    moved = np.array(alone.gauges)
    assert np.abs(moved[-1, :, 2]).max() > 0.01  # the water flows
    np.testing.assert_array_equal(moved[:, 1], moved[:, 2])


@pytest.mark.long
def test_other_schedules_agree_to_rounding() -> None:
    data = box2d(12, 8, (2.0, 1.0), "triangle", perturb=0.2)

    def flows(comm: Comm) -> Found:
        flow = water(comm, data, island, lambda x, y: 0.3 * np.exp(-20.0 * x * x))
        flow.advance_to(0.4)
        return Found(gathered(comm, flow.mesh.cells.part, flow.fields()), numbers=(flow.steps,))

    alone, found = flows(SelfComm()), everywhere(run_threads(3, flows))
    assert found.numbers == alone.numbers
    for name, values in alone.fields.items():
        np.testing.assert_allclose(found.fields[name], values, rtol=1e-11, atol=1e-12, err_msg=name)


def test_errors_are_those_of_all_ranks() -> None:
    data = box2d(8, 6, (2.0, 1.0))

    def told(action: Callable[[Comm], object]) -> set[str]:
        def caught(comm: Comm) -> str:
            with pytest.raises((SolverError, CaseError)) as error:
                action(comm)
            return str(error.value)

        return set(run_threads(3, caught))

    def refuses(x: FloatArray, y: FloatArray) -> FloatArray:
        if (x > 1.8).any():
            raise CaseError("the grid does not cover the mesh")
        return x

    whole = set(run_threads(1, lambda comm: next(iter(_bad_bed(comm, data)))))
    assert whole == {"bed: the value of cell 7 at (1.875, 0.0833333) is not finite"}
    assert told(lambda comm: water(comm, data, lambda x, y: np.where((x > 1.8), np.nan, -1.0), 0.0)) == whole
    assert told(lambda comm: water(comm, data, refuses, 0.0)) == {"the grid does not cover the mesh"}
    points = {"in": (0.5, 0.5), "out": (3.0, 0.5)}
    outside = told(lambda comm: WaterProbes(water(comm, data, -1.0, 0.0, schedule=SCHEDULE), points))
    assert outside == {"probe 'out' at (3.0, 0.5) is not in the mesh"}

    def lost(comm: Comm) -> None:
        flow = water(comm, data, -1.0, 0.0, schedule=SCHEDULE)
        bad = np.isin(_numbers(flow), [11, 40])
        flow.u.write(np.where(bad[:, None], np.nan, flow.u.read()))
        flow.check_finite()

    (message,) = told(lost)
    assert "the state of cell 11 at (0.875, 0.25) is not finite (2 cells in all)" in message


def _bad_bed(comm: Comm, data: MeshData) -> set[str]:
    with pytest.raises(SolverError) as error:
        water(comm, data, lambda x, y: np.where(x > 1.8, np.nan, -1.0), 0.0)
    return {str(error.value)}


def _numbers(flow: ShallowWater) -> npt.NDArray[np.int64]:
    part = flow.mesh.cells.part
    assert part is not None
    return part.numbers[: part.owned]


# ------------------------------------------------------------------------------------------- the case

CASE = """
[case]
name = "basin"
solver = "tsunami"
[mesh]
x = [0, 4e3]
y = [0, 3e3]
nx = 16
ny = 12
perturb = 0.2
[bathymetry]
expression = "max(-20, -20 + 0.012 * (x - 1.9e3))"
[[event]]
time = 5.0
expression = "2 * exp(-((x - 1e3)**2 + (y - 1.4e3)**2) / 5e5)"
[flow]
manning = 0.02
[boundary.xmin]
type = "incident"
[gauges.points]
near = [1.2e3, 1.5e3]
beach = [3.4e3, 1.5e3]
[run]
time = 300.0
iterations = 10
threads = 1
schedule = "deterministic=global"
[output]
snapshots = 2
"""


@pytest.mark.long
@pytest.mark.mpi
def test_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLUXLOOM_TUNING", "off")
    monkeypatch.setattr("fluxloom.device.bandwidth._default_size", lambda: 4 << 20)
    path = tmp_path / "case.toml"
    path.write_text(CASE)
    one, three = tmp_path / "one", tmp_path / "three"
    assert main(["run", str(path), "-o", str(one)]) == 0
    program = """
    import sys
    import fluxloom.device.bandwidth as b
    b._default_size = lambda: 4 << 20
    from fluxloom.cli.main import main
    sys.exit(main(sys.argv[1:]))
    """
    mpiexec(3, program, "run", path, "-o", three, environment={"FLUXLOOM_TUNING": "off"})
    names = {p.name for p in one.iterdir()}
    assert names == {p.name for p in three.iterdir()}
    assert {"gauges.csv", "gauges.png", "elevation.png", "depth.png", "run.json", "residual.csv"} <= names
    assert (three / "gauges.csv").read_text() == (one / "gauges.csv").read_text()
    for name in sorted(n for n in names if n.startswith(("final.", "snapshot_"))):
        mine, other = (fl.mesh.read_fields(folder / name) for folder in (three, one))
        assert np.array_equal(mine.mesh.points, other.mesh.points)
        for key, values in other.cell_data.items():
            assert np.array_equal(mine.cell_data[key], values), (name, key)
    mine, other = (json.loads((folder / "run.json").read_text()) for folder in (three, one))
    assert mine["ranks"] == len(mine["shares"]) == 3
    assert mine["cells"] == other["cells"] == 384
    for name in ("time", "speed", "surface", "run-up"):
        assert mine["results"][name] == other["results"][name]


@pytest.mark.parametrize("shares", ["auto", pytest.param("measured", marks=pytest.mark.long)])
def test_bed_from_the_file_of_the_mesh(tmp_path: Path, shares: str) -> None:
    data = box2d(10, 8, (2.0, 1.6), "triangle", perturb=0.1)
    bed = np.linspace(-1.0, -0.5, data.n_cells)
    path = tmp_path / "bed.vtu"
    write_data(path, data, cell_data={"bed": bed}, patches=True)
    case = TsunamiCase.model_validate(
        {
            "case": {"name": "file", "solver": "tsunami"}, "flow": {"manning": 0.03},
            "run": {"time": 0.5, "iterations": 2, "schedule": "deterministic=global"},
            "mesh": {"file": str(path)}, "bathymetry": {"field": "bed"}, "partition": {"shares": shares},
        }
    )  # fmt: skip

    def runs(comm: Comm) -> Found:
        runner = TsunamiApplication().build(case, fl.Context("cpu", threads=1, comm=comm))
        part, report = runner.flow.part, runner.flow.partition
        assert part is not None
        assert report is not None
        assert runner.flow.cells == data.n_cells == part.total
        if comm.rank == 0:
            assert runner.mesh().n_cells == data.n_cells
        runner.advance()
        return Found(gathered(comm, part, runner.fields()), numbers=(runner.residual(), tuple(runner.summary())))

    found = everywhere(run_threads(2, runs))
    np.testing.assert_array_equal(found.fields["bed"], bed)
    assert np.isfinite(found.numbers[0])
