"""Flows run from a script: how they end, what they return, and what is kept in their directory."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.core.errors import CaseError, DeviceUnavailable, SolverError
from fluxloom.core.status import Goal, RunStatus
from fluxloom.mesh import box2d
from fluxloom.mesh.data.mesh import MeshData
from fluxloom.run.flow import Until, described


@fl.kernel
def halve(c: fl.RW, *, by: float):
    c[0] *= by


class Decay(fl.Flow):
    """A number in each cell that is halved in a step of 0.25; it may be lost in one, or interrupted."""

    def __init__(self, by: Any = 0.5, context: fl.Context | None = None) -> None:
        self.context = context or fl.Context("reference")
        cells = self.context.set(12, "cells")
        self.c = self.context.dat(cells, np.arange(1.0, 13.0), "c")
        part = by if isinstance(by, float) else by(0.0)
        self.chain = self.step = fl.Chain([fl.Loop(halve, cells, self.c, by=part)], name="decay")
        self.count = 0

    remembers = ("count",)
    lost_at, stop_at = 0, 0

    @property
    def cells(self) -> int:
        return 12

    @property
    def steps(self) -> int:
        return self.count

    @property
    def time(self) -> float:
        return 0.25 * self.count

    def mesh(self) -> MeshData:
        return box2d(4, 3)

    def goals(self, until: Until) -> Sequence[Goal]:
        low, found = 0.5**self.count, []
        if until.time:
            found.append(Goal("time.end", "time", until.time, self.time, self.time >= until.time))
        if until.steady:
            found.append(Goal("time.steady", "residual", until.steady, low, low < until.steady))
        return found

    def advance(self, until: Until) -> float:
        self.step()
        self.count += 1
        if self.count == self.stop_at:
            signal.raise_signal(signal.SIGINT)
        if self.count == self.lost_at:
            self.c.write(np.full(12, np.nan))
            return float("nan")
        return 0.5**self.count

    def fields(self) -> Mapping[str, Any]:
        return {"c": self.c.read()}

    def columns(self) -> dict[str, float]:
        return {"time": self.time, "total": float(self.c.read().sum())}

    def advice(self) -> str:
        return "halve less"


def broken(**at: int) -> Decay:
    flow = Decay()
    vars(flow).update(at)
    return flow


def test_a_run_in_memory() -> None:
    """Nothing is written; the result has fields, the history and how it ended."""
    flow = Decay()
    result = fl.run(flow, fl.Time(1.0), [fl.History(every=2)])
    assert (result.status, result.steps, result.time, result.directory) == (RunStatus.END_REACHED, 4, 1.0, None)
    np.testing.assert_array_equal(result.fields["c"], np.arange(1.0, 13.0) / 16)
    np.testing.assert_array_equal(result.history["time"], [0.0, 0.5, 1.0])
    np.testing.assert_array_equal(result.history["total"], [78.0, 78.0 / 4, 78.0 / 16])
    np.testing.assert_array_equal(result.residuals, [0.5, 0.25, 0.125, 0.0625])
    assert result.mesh.n_cells == 12
    assert "time 1 of 1 wanted" in str(result)


@pytest.mark.parametrize(
    ("until", "status", "steps"),
    [(fl.Steps(3), "end reached", 3), (fl.Steady(orders=2), "converged", 7),
     (fl.Time(0.5) | fl.Steady(orders=2), "not converged", 2), (fl.Steps(5) | fl.Time(9.0), "end reached", 5)],
)  # fmt: skip
def test_ends(until: Until, status: str, steps: int, recwarn: pytest.WarningsRecorder) -> None:
    result = fl.run(Decay(), until)
    assert (str(result.status), result.steps) == (status, steps)
    assert [str(one.message) for one in recwarn] == ([str(result.outcome)] if status == "not converged" else [])


@pytest.mark.parametrize("make", [lambda: fl.Time(0.0), lambda: fl.Steps(0), lambda: fl.Steady(orders=-1.0)])
def test_ends_that_are_none(make: Any) -> None:
    with pytest.raises(SolverError, match="wanted, not"):
        make()


def test_a_flow_that_is_lost(tmp_path: Path) -> None:
    """Its files are written before the error, under the name of a flow that is none."""
    with pytest.raises(SolverError, match=r"diverged: .*halve less"):
        fl.run(broken(lost_at=3), fl.Steps(9), directory=tmp_path / "out")
    record = json.loads((tmp_path / "out" / "run.json").read_text())
    assert (record["status"], record["iterations"]) == ("diverged", 3)
    assert [path.stem for path in (tmp_path / "out").glob("*.vt*")] == ["diverged"]


def test_the_same_script_again(tmp_path: Path) -> None:
    """It goes on from its checkpoint; results of another run are not replaced unless that is asked for."""
    out, lines = tmp_path / "out", list[str]()
    whole = fl.run(Decay(), fl.Steps(8), [fl.History(every=1)], directory=tmp_path / "whole")
    fl.run(Decay(), fl.Steps(5), [fl.History(every=1)], checkpoint=fl.Every(steps=2), directory=out)
    every = fl.Every(steps=2)
    again = fl.run(Decay(), fl.Steps(8), [fl.History(every=1)], checkpoint=every, directory=out, tell=lines.append)
    assert again.end.iterations == 3
    assert any("resumed from step 5" in line for line in lines)
    np.testing.assert_array_equal(again.fields["c"], whole.fields["c"])
    assert (out / "history.csv").read_bytes() == (tmp_path / "whole" / "history.csv").read_bytes()
    before = (out / "run.json").read_bytes()
    with pytest.raises(CaseError, match=r"run is at its end there already.*nothing has been changed.*overwrite=True"):
        fl.run(Decay(), fl.Steps(8), directory=tmp_path / "whole")
    for by, text in ((0.25, "flow.by: was 0.5, is 0.25"), (lambda t: 0.25 + t, "flow.by: was 0.5")):
        with pytest.raises(CaseError, match=f"of another case .*{text}"):
            fl.run(Decay(by), fl.Steps(9), directory=out)
    assert (out / "run.json").read_bytes() == before
    assert fl.run(Decay(context=fl.Context("cpu", threads=1)), fl.Steps(8), directory=out).end.iterations == 0
    assert fl.run(Decay(0.25), fl.Steps(2), directory=out, overwrite=True).steps == 2


@pytest.mark.parametrize("again", [1.0, 0.5])
def test_a_finished_script_again(again: float, tmp_path: Path) -> None:
    """With a checkpoint of its end, or behind it, no step is made, and the result is that of before."""
    every = fl.Every(steps=1)
    before = fl.run(Decay(), fl.Time(1.0), [fl.History(1)], directory=tmp_path, checkpoint=every)
    result = fl.run(Decay(), fl.Time(again), [fl.History(1)], directory=tmp_path, checkpoint=every)
    assert (result.status, result.steps, result.end.iterations) == (RunStatus.END_REACHED, 4, 0)
    assert np.array_equal(result.fields["c"], before.fields["c"])
    assert result.history["time"].tolist() == before.history["time"].tolist()
    assert fl.run(Decay(), fl.Time(1.5), [fl.History(1)], directory=tmp_path, checkpoint=every).steps == 6


def test_what_a_flow_is_made_of() -> None:
    """Other numerics are another description; where it runs, and where a function stands, are not."""
    shift, other = 1.0, 2.0
    same = [described(lambda x: x + shift), described(lambda x: x + shift)]
    assert same[0] == same[1] != described(lambda x: x - shift) != described(lambda x: x + other)
    assert described(lambda x: x + other) != same[0]
    assert described(box2d(2, 2)) == described(box2d(2, 2)) != described(box2d(2, 2, (1.0, 2.0)))
    assert described(fl.Roe(0.1)) == described(fl.Roe(0.1)) != described(fl.Roe(0.2))
    assert described(np.arange(3)) != described(np.arange(3.0))
    assert Decay(context=fl.Context("reference")).made_of == {"by": 0.5}


def test_an_interruption(tmp_path: Path) -> None:
    """The script ends, after the checkpoint from which it goes on."""
    with pytest.raises(KeyboardInterrupt, match="SIGINT after 3 steps"):
        fl.run(broken(stop_at=3), fl.Steps(6), directory=tmp_path)
    result = fl.run(Decay(), fl.Steps(6), directory=tmp_path)
    assert (result.steps, result.end.iterations) == (6, 3)


def test_monitors_are_attached_before_anything_is_written(tmp_path: Path) -> None:
    class Wrong(fl.Monitor):
        """Looks for what no flow has."""

        def attach(self, run: Any) -> None:
            raise SolverError("no patch 'wing'")

    with pytest.raises(SolverError, match="no patch 'wing'"):
        fl.run(Decay(), fl.Steps(2), [Wrong()], directory=tmp_path / "out")
    assert not (tmp_path / "out").exists()
    with pytest.raises(CaseError, match="give directory"):
        fl.run(Decay(), fl.Steps(2), checkpoint=fl.Every(minutes=1))


def test_snapshots(tmp_path: Path) -> None:
    result = fl.run(Decay(), fl.Steps(4), [fl.Snapshots(every=2)], directory=tmp_path)
    assert {name.partition(".")[0] for name in result.files if name.startswith("snapshot")} >= {
        "snapshot_000002", "snapshot_000004",
    }  # fmt: skip


def test_checkpoints_need_h5py_from_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not when the first one is due, perhaps after hours."""
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(DeviceUnavailable, match=r"\[checkpoint\] needs h5py"):
        fl.run(Decay(), fl.Steps(2), directory=tmp_path, checkpoint=fl.Every(100))
