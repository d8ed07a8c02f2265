"""Files of the fields by steps and by times, of chosen fields, with their units."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from fluxloom.cases.files.loading import load_case
from fluxloom.core.errors import CaseError, SolverError
from fluxloom.dsl.context import Context
from fluxloom.mesh.io import read_fields
from fluxloom.run.flow_run import FlowRun
from fluxloom.run.results.results import Earlier, ResultFolder
from fluxloom.run.session import Output, Session, Settings
from fluxloom.run.snapshots import Snapshots
from fluxloom_lab.problems.small.state_cases import CASES
from tests.state_runs import leg
from tests.unit.monitors.test_averages import built


def times_of(folder: Path) -> dict[str, float]:
    """Return the files of a series, and their times."""
    (series,) = folder.glob("snapshot*.series")
    return {entry["name"]: entry["time"] for entry in json.loads(series.read_text())["files"]}


def advanced(run: FlowRun, folder: Path, end: float = 0.0, steps: int = 0) -> None:
    folder.mkdir(exist_ok=True)
    run.begin(ResultFolder(folder))
    while run.flow.steps < steps or (run.flow.time or 0.0) < end:
        run.advance()


@pytest.mark.parametrize("name", ["edge_flow", "edge_transport", "compressible in time"])
def test_free_steps_hit_the_times(name: str, tmp_path: Path) -> None:
    trial = built(name)
    advanced(trial, tmp_path / "trial", steps=4)
    period = 0.7 * trial.flow.time
    run = built(name, {"snapshots.period": period, "time.end": 10.0})
    advanced(run, tmp_path, end=2.5 * period)
    found = times_of(tmp_path)
    suffix = next(iter(found)).partition(".")[2]
    assert list(found) == [f"snapshot_0001.{suffix}", f"snapshot_0002.{suffix}"]
    assert list(found.values()) == pytest.approx([period, 2.0 * period], rel=1e-12)


def test_given_steps_pass_them(tmp_path: Path) -> None:
    """The first step at a time or behind it; the steps stay those of a run without files."""
    wanted = ["u", "ke = 0.5 * speed**2"]
    run = built("staggered", {"time.dt": 0.05, "snapshots.period": 0.12, "snapshots.fields": wanted})
    advanced(run, tmp_path, steps=8)
    assert run.flow.time == pytest.approx(0.4)
    assert list(times_of(tmp_path).values()) == pytest.approx([0.15, 0.25, 0.4])
    fields = read_fields(tmp_path / next(iter(times_of(tmp_path)))).cell_data
    assert set(fields) == {"u", "ke"}


def test_intervals_stop_on_the_way(tmp_path: Path) -> None:
    """A step of shallow water is the way to a report: files come between, and the reports stay where they were."""
    plain, run = (built("tsunami", {"output.snapshots": None} | more) for more in ({}, {"snapshots.period": 4.0}))
    for one, folder in ((plain, "plain"), (run, "run")):
        advanced(one, tmp_path / folder, steps=2)
    assert run.flow.time == plain.flow.time
    found = times_of(tmp_path / "run")
    assert list(found.values()) == pytest.approx([4.0, 8.0, 12.0, 16.0, 20.0], rel=1e-12)
    assert (run.flow.steps, run.flow.time) == (2, 20.0)
    before, now = plain.fields()["depth"], run.fields()["depth"]
    np.testing.assert_allclose(now, before, atol=1e-3 * np.ptp(before))


def test_a_run_that_goes_on_writes_none_twice(tmp_path: Path) -> None:
    text, changes, steps = CASES["edge_transport"]
    more = changes | {"snapshots.period": 0.05, "checkpoint.every": 1}
    leg(text, tmp_path / "whole", steps, more, save=False)
    leg(text, tmp_path / "parts", 4, more, killed=True)
    leg(text, tmp_path / "parts", steps, more)
    whole, parts = ({path.name for path in (tmp_path / leg).glob("snapshot_*.*")} for leg in ("whole", "parts"))
    assert len(whole) > 2
    assert parts == whole
    assert min(times_of(tmp_path / "parts").values()) == pytest.approx(0.25)  # those of the first leg it leaves alone


def test_fields_at_the_end_are_those_that_were_asked_for(tmp_path: Path) -> None:
    """With their units; pictures show what they always do."""
    path = tmp_path / "case.toml"
    text = CASES["compressible in time"][0]
    path.write_text(text.replace("[run]", '[output]\nfields = ["p", "q_criterion", "cp = (p - 1) / 2"]\n[run]'))
    case, application = load_case(path)
    folder = tmp_path / "results"
    folder.mkdir()
    for format in ("vtu", "vtkhdf"):
        run = application.build(case, Context("cpu", threads=1, tuning=False))
        output = Output(format, pictures=False, residual=False, fields=case.output.fields)
        session = Session(run, Settings(2, asked=True, output=output), ResultFolder(folder), lambda line: None)
        session.begin({}, Earlier())
        session.finish(session.march({}), {})
        cells = read_fields(folder / f"final.{format}").cell_data
        found = {name: np.asarray(values, dtype=np.float64) for name, values in cells.items()}
        assert set(found) == {"p", "q_criterion", "cp"}
        np.testing.assert_allclose(found["cp"], 0.5 * (found["p"] - 1.0))
    assert re.search(r'Name="p"[^>]*>\s*<InformationKey name="UNITS_LABEL" location="vtkDataArray">Pa<',
                     (folder / "final.vtu").read_bytes().decode("latin-1"))  # fmt: skip
    h5py = pytest.importorskip("h5py")
    with h5py.File(folder / "final.vtkhdf") as file:
        assert file["VTKHDF/CellData/q_criterion"].attrs["units"] == "1/s^2"
        assert "units" not in file["VTKHDF/CellData/cp"].attrs
    with pytest.raises(CaseError, match=r"output\.fields: no field 'pressure'"):
        Session(run, Settings(2, output=Output(fields=("pressure",))), ResultFolder(None), lambda line: None)


def test_what_does_not_fit() -> None:
    with pytest.raises(SolverError, match="give every, steps from one to the next, or period"):
        Snapshots()
    with pytest.raises(CaseError, match="snapshots: no field 'q'"):
        built("edge_flow", {"snapshots.every": 2, "snapshots.fields": ["q"]})
    with pytest.raises(CaseError, match="snapshots: period: a flow on the way to a steady one has no time"):
        built("airfoil", {"snapshots.period": 1.0})
    with pytest.raises(CaseError, match="give only one of every and period"):
        built("edge_flow", {"snapshots.every": 2, "snapshots.period": 1.0})
    with pytest.raises(CaseError, match=r"give only one of output\.snapshots and the table snapshots"):
        built("tsunami", {"snapshots.every": 2, "output.snapshots": 2})
