"""Cases of lattice Boltzmann flow on several ranks: what one rank writes, whoever has the cells."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fluxloom.cases.files.loading import load_case
from fluxloom.cases.lattice.case import LatticeApplication
from fluxloom.cases.lattice.tables import LatticeCase
from fluxloom.comm.base import Comm, SelfComm
from fluxloom.comm.threads import run_threads
from fluxloom.core.errors import CaseError, SolverError
from fluxloom.dsl.context import Context
from fluxloom.dsl.declare.schedule import Schedule
from fluxloom.flows.lattice.fields import look_at
from fluxloom.flows.lattice.flow import Lattice
from fluxloom.machine.ranks import Starter
from fluxloom.monitors.film import Film
from fluxloom.run.flow_run import FlowRun, find_lost, gathered
from fluxloom.run.results.results import ResultFolder
from tests.parallel.launch import ROOT, run

Values = dict[str, Any]

SMALL: dict[str, Values] = {
    "cylinder": {
        "mesh": {"nx": 30, "ny": 18, "spacing": 0.5}, "lattice": {"precision": "float64"},
        "body": {"cylinder": {"shape": "circle", "center": [5.0, 4.6], "diameter": 3.0}},
        "reference": {"length": 3.0}, "time": {"residual_interval": 5, "end": 0.0}, "run": {"iterations": 20},
        "history": {"every": 4}, "movie": {"every": 7}, "output": {"every": 8}, "checkpoint": {"every": 6},
        "probes": {"points": {"near": [1.2, 1.1], "far": [13.2, 8.1]}, "every": 3},
    },
    "taylor_green": {
        "mesh": {"nx": 8, "ny": 8, "nz": 10}, "lattice": {"precision": "float64", "collision": "trt", "name": "auto"},
        "fluid": {"reynolds": 40}, "time": {"residual_interval": 4, "end": 0.0}, "run": {"iterations": 6},
        "history": {"every": 2}, "movie": {"every": 3},
    },
    "moving": {
        "lattice": {"precision": "float64"}, "time": {"residual_interval": 4, "end": 0.0}, "run": {"iterations": 20},
        "history": {"every": 3}, "movie": {"every": 8}, "checkpoint": {"every": 6},
    },
}  # fmt: skip
"""Examples made small, as changes of their tables."""


def long(*values: Any) -> Any:
    return pytest.param(*values, marks=pytest.mark.long)


def case_of(name: str, **tables: Values) -> LatticeCase:
    """Return an example made small, with more changes; ``"cylinder push"``: with that streaming."""
    name, _, streaming = name.partition(" ")
    tables |= {"lattice": tables.get("lattice", {}) | {"streaming": streaming or "pull"}}
    case, _ = load_case(ROOT / "examples" / f"lattice_{name}.toml")
    given = case.model_dump(exclude_unset=True)
    for changes in (SMALL[name], tables):
        for table, keys in changes.items():
            given[table] = given.get(table, {}) | keys
    return LatticeCase.model_validate(given)


def build(comm: Comm, case: LatticeCase, device: str = "cpu") -> FlowRun[Lattice]:
    """Return a case at its start."""
    schedule = Schedule(deterministic="global")
    return LatticeApplication().build(case, Context(device, threads=1, comm=comm, tuning=False, schedule=schedule))


def ran(comm: Comm, folder: Path, case: LatticeCase, pictures: bool = False, device: str = "cpu") -> Values:
    """Run a case to its end, and return what a rank knows of it."""
    runner = build(comm, case, device)
    runner.begin(ResultFolder(folder if comm.rank == 0 else None))
    while not runner.finished and runner.flow.steps < case.run.iterations:
        runner.advance()
    fields = gathered(comm, runner.flow.part, runner.fields())
    runner.finish(pictures=pictures)
    written = comm.broadcast(runner.folder.written)
    lost_cell = np.where(np.arange(runner.fields()["u"].size) == 1, np.nan, 1.0)
    lost = find_lost(comm, runner.flow.part, {"cells": lost_cell})
    return {
        "fields": fields, "files": list(written), "rows": np.array(runner.history.rows), "lost": lost,
        "summary": dict(runner.summary()), "partition": runner.flow.partition, "residual": runner.residual(),
        "bound": dict(runner.flow.bound(12.0)), "loops": {report.name for report in runner.flow.reports()},
    }  # fmt: skip


def same(one: Values, found: list[Values]) -> None:
    """Check that ranks know what one does, and that the first has all values."""
    for each in found:
        np.testing.assert_allclose(each["rows"], one["rows"], rtol=1e-9, atol=1e-13)
        assert each["files"] == one["files"]
        assert each["residual"] == pytest.approx(one["residual"], rel=1e-8)
        assert each["summary"].keys() == one["summary"].keys()
        each_moves, moves = (float(of["summary"]["memory"].partition(" ")[0]) for of in (each, one))
        assert each_moves == pytest.approx(moves, rel=0.01)
    for name, values in one["fields"].items():
        np.testing.assert_allclose(found[0]["fields"][name], values, rtol=0, atol=1e-12, err_msg=name)


def same_files(one: Path, other: Path, names: list[str]) -> None:
    """Check that two runs wrote the same files: pictures to the last pixel, fields but for rounding."""
    image = pytest.importorskip("PIL.Image")
    for name in names:
        mine, theirs = one / name, other / name
        if name.endswith(".gif"):
            films = [image.open(path) for path in (mine, theirs)]
            assert films[0].n_frames == films[1].n_frames > 1
            for frame in range(films[0].n_frames):
                pixels = []
                for film in films:
                    film.seek(frame)
                    pixels.append(np.asarray(film.convert("RGB"), dtype=int))
                assert np.abs(pixels[0] - pixels[1]).max() <= 16, f"{name} {frame}"
        elif name.endswith(".vti"):
            texts = [path.read_bytes().partition(b"   _") for path in (mine, theirs)]
            assert texts[0][0] == texts[1][0]
            numbers = [np.frombuffer(text[2][8 : 8 + 4 * 30 * 18], "<f4") for text in texts]
            np.testing.assert_allclose(*numbers, rtol=1e-5, atol=1e-7)
        elif name.endswith(".csv"):
            tables = [np.genfromtxt(path, delimiter=",", skip_header=1) for path in (mine, theirs)]
            np.testing.assert_allclose(*tables, rtol=1e-7, atol=1e-9)
        else:
            assert theirs.stat().st_size > 0, name


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Return what one rank finds in a case, and where its files are; each case runs once."""
    known: dict[tuple[str, bool], tuple[Path, Values]] = {}

    def found(name: str, pictures: bool = False) -> tuple[Path, Values]:
        if (name, pictures) not in known:
            folder = tmp_path_factory.mktemp(name)
            known[name, pictures] = folder, ran(SelfComm(), folder, case_of(name), pictures)
        return known[name, pictures]

    return found


@pytest.mark.parametrize(
    ("name", "ranks", "cut", "pictures"),
    [
        ("cylinder", 3, [1, 3], False),
        long("cylinder", 4, [2, 2], True),
        long("cylinder", 2, [], False),
        long("cylinder push", 4, [2, 2], True),
        long("cylinder in-place", 3, [], False),
        long("taylor_green", 2, [1, 1, 2], True),
        long("taylor_green", 3, [1, 3, 1], False),
        long("moving", 3, [], False),
        long("moving push", 3, [], False),
        long("moving in-place", 2, [], False),
    ],
)
def test_ranks_find_what_one_does(
    name: str, ranks: int, cut: list[int], pictures: bool, alone: Any, tmp_path: Path
) -> None:
    """Fields, history, sums, pictures, films, checkpoints."""
    folder, one = alone(name, pictures)
    found = run_threads(ranks, ran, tmp_path, case_of(name, partition={"cut": cut}), pictures)
    same(one, found)
    same_files(folder, tmp_path, one["files"])
    report = found[0]["partition"]
    assert report.method.startswith("boxes ")
    assert not cut or report.method == f"boxes {' x '.join(map(str, cut))}"
    assert sum(report.sets[0].owned) == report.sets[0].total == len(one["fields"]["u"])
    assert len({each["lost"] for each in found}) == 1
    assert (one["lost"][2], found[0]["lost"][2]) == (1, ranks)
    assert found[0]["lost"][1] == one["lost"][1] == 1
    rates = [float(of["bound"]["ideal rate"].partition(" ")[0]) for of in (found[0], one)]
    assert rates[0] == pytest.approx(rates[1], rel=0.01)
    assert rates[1] == pytest.approx(12e3 / float(one["summary"]["memory"].partition(" ")[0]), rel=1e-3)
    assert f"of {ranks} ranks, 12 GB/s" in found[0]["bound"]["ideal rate"]
    if " " not in name:
        looks = "moments" if len(cut) < 3 else "layers"
        assert {"pull", "totals", looks} <= one["loops"] <= found[0]["loops"]


@pytest.mark.parametrize(
    ("ranks", "changes", "message"),
    [
        (3, {"partition": {"cut": [2, 2]}}, r"partition\.cut: 2 x 2 are 4 parts, but there are 3 ranks"),
        (2, {"mesh": {"nx": 3}, "partition": {"cut": [2, 1]}, "body": {}, "forces": {}}, "too thin"),
        (2, {"probes": {"points": [[5.0, 4.6]]}}, r"probes: the probe at \(5\.0, 4\.6\) is in a body"),
        (2, {"probes": {"points": [[5.0, 9.6]]}}, r"probes: probe '1' at \(5\.0, 9\.6\) is not in the mesh"),
        (3, {"mesh": {"ny": 1}, "partition": {"cut": [1, 3]}, "body": {}, "forces": {}}, "mesh, partition: .*cut="),
    ],
)
def test_what_ranks_refuse(ranks: int, changes: dict[str, Values], message: str) -> None:
    """Each with one message, the same on every rank, that names the key."""
    case = case_of("cylinder", **changes)
    for table in ("body", "forces"):  # emptied, not merged
        if table in changes:
            case = case.model_copy(update={table: {}})

    def refused(comm: Comm) -> str:
        with pytest.raises(CaseError, match=message) as error:
            build(comm, case)
        return str(error.value)

    assert len(set(run_threads(ranks, refused))) == 1


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"cut": [2]}, r"partition\.cut: 2 numbers are wanted"),
        ({"cut": [2, 2], "shares": [1, 2, 3, 4]}, r"cut = \[2, 2\] cuts more than one axis"),
        ({"cut": [2, 0]}, "greater than or equal to 1"),
        ({"method": "rcb"}, "a lattice is cut into boxes"),
    ],
)
def test_wrong_partitions(table: Values, message: str) -> None:
    """Told when the file is read."""
    with pytest.raises(ValueError, match=message):
        case_of("cylinder", partition=table)


def test_lost_on_all_ranks() -> None:
    """What blows up on one rank ends all of them at the same step, with one message."""
    time = {"residual_interval": 2}
    case = case_of("cylinder", run={"iterations": 4000}, history={"every": 0}, movie={"every": 0}, time=time)

    def lost(comm: Comm) -> str:
        runner = build(comm, case)
        runner.flow.solver.populations.write(np.where(comm.rank == 1, 1e300, 0.0))
        runner.advance()
        with np.errstate(all="ignore"), pytest.raises(SolverError, match="not finite any more; lower time") as error:
            runner.advance()
        return str(error.value)

    assert len(set(run_threads(3, lost))) == 1


# ------------------------------------------------------------------------------- beside the next steps


def delayed(runner: FlowRun[Lattice]) -> threading.Event:
    """Keep what works beside the steps waiting until an event is set."""
    event, pool = threading.Event(), runner.flow.beside._pool
    assert pool is not None
    pool.submit(event.wait, 60)
    return event


@pytest.mark.opencl
def test_what_was_asked_for_at_a_step_is_of_that_step(tmp_path: Path) -> None:
    """A device of its own memory: pictures, fields and numbers come late, and are those of their step."""
    case = case_of("cylinder", checkpoint={"every": 0}, movie={"every": 8}, run={"iterations": 12})
    runner = build(SelfComm(), case, "opencl")
    runner.begin(ResultFolder(tmp_path))
    runner.flow.beside.settle()
    event, wanted = delayed(runner), {}
    for step in range(1, 12):
        runner.advance()
        flow = runner.flow.solver
        fields = look_at(flow, runner.flow.units, runner.flow.pieces)
        wanted[step] = (fields, runner.columns(), runner.monitors[0].columns())
        if step == 10:
            assert [item[0].step for item in runner.flow.beside._running] == [8, 8]
            assert not (tmp_path / "fields_00000008.vti").exists()
            assert len(runner.history.rows) == 2, "the line of step 8 has been asked for"
    event.set()
    runner.advance()
    assert runner.flow.steps == case.run.iterations
    runner.finish(pictures=False)
    fields = wanted[8][0]
    data = (tmp_path / "fields_00000008.vti").read_bytes().partition(b"   _")[2]
    pressure = np.frombuffer(data[8 : 8 + 4 * fields.pressure.size], "<f4")
    np.testing.assert_array_equal(pressure, fields.pressure.astype(np.float32).ravel())
    assert np.abs(pressure - wanted[9][0].pressure.ravel()).max() > 0
    movie = next(one.movie for one in runner.monitors if isinstance(one, Film))
    assert movie is not None
    kept = movie.pictures[1]
    movie.add(fields.vorticity, ~fields.fluid)
    movie.add(wanted[11][0].vorticity, ~fields.fluid)
    assert (movie.pictures[-2] == kept).all()
    assert (movie.pictures[-1] != kept).any()
    probes = np.genfromtxt(tmp_path / "probes.csv", delimiter=",", names=True)
    assert probes["time"] == pytest.approx([step * runner.flow.units.dt for step in (3, 6, 9, 12)])
    for step, row in zip((3, 6, 9), probes, strict=False):
        seen = wanted[step][0]
        for place, (y, x) in (("near", (1, 1)), ("far", (15, 25))):  # so much of the way to the next cell: 0.9, 0.7
            fields = np.concatenate([seen.velocity, seen.pressure[..., None]], axis=2)[y : y + 2, x : x + 2]
            expected = np.einsum("y,x,yxk->k", [0.3, 0.7], [0.1, 0.9], fields)
            assert [row[f"{place}{what}"] for what in "uvp"] == pytest.approx(expected, rel=1e-6, abs=1e-9)
    for step, row in zip((4, 8), runner.history.rows[1:], strict=False):
        expected = wanted[step][1] | wanted[step][2]
        assert dict(zip(runner.history.names, row, strict=True)) == pytest.approx(expected, rel=1e-12)


def test_ranks_draw_some_steps_later(alone: Any, tmp_path: Path) -> None:
    """So they do where devices have memory of their own: what they write is of the steps that were asked for."""
    folder, one = alone("cylinder")

    def late(comm: Comm) -> None:
        case = case_of("cylinder")
        runner = build(comm, case)
        runner.flow.beside._ahead = 3
        runner.begin(ResultFolder(tmp_path if comm.rank == 0 else None))
        while not runner.finished and runner.flow.steps < case.run.iterations:
            runner.advance()
            steps = runner.flow.solver.steps
            assert bool(runner.flow.beside._waiting) == (steps % 7 < 3 or steps % 8 < 3)
        runner.finish(pictures=False)

    run_threads(3, late)
    same_files(folder, tmp_path, [name for name in one["files"] if not name.endswith(".png")])


# ---------------------------------------------------------------------------------------- command line


@pytest.mark.long
@pytest.mark.mpi
@pytest.mark.parametrize("name", ["cylinder", "taylor_green"])
def test_mpiexec(launcher: Starter, name: str, alone: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two processes write what one does, once, with one line of progress and the report of both."""
    monkeypatch.setenv("FLUXLOOM_METER_BYTES", str(4 << 20))
    monkeypatch.setenv("FLUXLOOM_TUNING", "off")
    folder, one = alone(name)
    case = case_of(name, run={"report_every": 1000, "device": "cpu", "threads": 1}, output={"directory": ""})
    (tmp_path / "case.toml").write_text(toml(case.model_dump(exclude_unset=True)))
    words = ["run", str(tmp_path / "case.toml"), "-o", str(tmp_path / "out"), "--no-picture", "--profile"]
    done = run(launcher.command(2, ["-m", "fluxloom", *words]), launcher.environment(), 100)
    assert done.returncode == 0, done.stderr
    same_files(folder, tmp_path / "out", one["files"])
    record = json.loads((tmp_path / "out" / "run.json").read_text())
    assert (record["ranks"], record["status"], record["cells"]) == (2, "end reached", len(one["fields"]["u"]))
    assert {"ideal rate", "memory"} <= set(record["results"])
    assert {row["name"] for row in record["exchanges"]} == {"a", "b"}
    assert done.stderr.count("building lattice") == done.stdout.count("uneven %") == 1
    assert {"pull", "totals"} <= {row["name"] for row in record["loops"]}


def toml(tables: Values, path: str = "") -> str:
    """Return tables as TOML."""
    lines = [f"{key} = {json.dumps(value)}" for key, value in tables.items() if not isinstance(value, dict)]
    text = (f"[{path}]\n" if path else "") + "\n".join(lines) + "\n"
    return text + "".join(
        toml(value, f"{path}.{key}" if path else key) for key, value in tables.items() if isinstance(value, dict)
    )
