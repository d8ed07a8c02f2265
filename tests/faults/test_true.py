"""Statuses are true, in every solver: targets that are met and missed, steps that are asked for, and what is told."""

from __future__ import annotations

import json
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.faults.cases import CASES
from tests.faults.test_kept import record, write

AIMING = [name for name, case in CASES.items() if case.target[0]]


def aimed(solver: str, residual: str, iterations: int = 6) -> Path:
    """Write the case of a solver with a target."""
    old, new = CASES[solver].target
    return write(solver, iterations, (old, new.replace("{residual}", residual)))


@pytest.mark.parametrize("solver", AIMING)
def test_a_target_that_is_missed(solver: str, run: Any) -> None:
    case = aimed(solver, "1e-14")
    assert run(case, "-o", "out") == 1
    assert run.said.count("status") >= 1
    found = record()
    assert found["status"] == "not converged"
    assert (found["ended_by"], found["wanted"], found["reached"], found["iterations"]) == ("run.iterations", 6, 6, 6)
    assert found["reason"].startswith("residual ")
    assert "of 1e-14 wanted after 6 steps" in found["reason"]
    assert run(case, "-o", "out") == 1  # the same command again
    assert "at its end already: not converged" in run.said
    assert run(case, "-o", "asked", "-n", 6) == 0
    assert record("asked")["status"] == "end reached"
    assert "target not met: residual" in record("asked")["reason"]


@pytest.mark.parametrize("solver", AIMING)
def test_a_target_that_is_met(solver: str, run: Any) -> None:
    case = aimed(solver, "0.9" if solver == "compressible" else "1e3")
    assert run(case, "-o", "out") == 0
    found = record()
    assert found["status"] == "converged"
    assert found["iterations"] < 6
    assert found["ended_by"] in ("time.steady", "time.residual_drop")
    assert found["reached"] < found["wanted"]
    assert run(case, "-o", "out") == 0
    assert "at its end already: converged" in run.said


@pytest.mark.parametrize("factor", [10, 100])
@pytest.mark.parametrize("solver", [name for name in CASES if name != "diffusion"])  # whose steps have no bound
def test_steps_that_are_far_too_long(solver: str, factor: int, run: Any) -> None:
    """Diverged with a place and what to do, or refused by the table of the case; never an end that is reached."""
    old, new = CASES[solver].too_long
    length = f"{factor * CASES[solver].stable:g}"
    case = write(solver, 300, (old, new.replace("{length}", length if "." in length else f"{length}.0")))
    code = run(case, "-o", "out", "-n", 300)
    if code == 2:
        assert new.partition(" ")[0] in run.said
        assert not Path("out").exists()
        return
    assert code == 1, run.said
    found = record()
    assert found["status"] == "diverged"
    assert found["details"]["step"] <= 300
    assert found["details"]["message"]
    assert any(path.stem == "diverged" for path in Path("out").iterdir())
    assert not any(path.stem == "final" for path in Path("out").iterdir())


@pytest.mark.parametrize("solver", [name for name in CASES if name not in ("tsunami", "lattice", "diffusion")])
def test_steps_beyond_the_bound_are_told(solver: str, run: Any) -> None:
    """The answer may be right: the status is as before. Steps within the bound are not spoken of."""
    old, new = CASES[solver].too_long
    times = {"incompressible": 4.8, "staggered": 2.4}.get(solver, 2.0)  # their defaults are on the safe side
    length = 2.4 if solver == "airfoil" else times * CASES[solver].stable
    for changes, told in (((), False), (((old, new.replace("{length}", f"{length:g}")),), True)):
        assert run(write(solver, 6, *changes), "-o", "out", "-n", 2, "--overwrite") == 0
        assert ("reached, above the bound" in run.said) == told
        assert ("time step" in record()["results"]) == told
        assert (record()["guards"]["numbers"]["courant"] > 1.0) == told


def test_a_time_that_does_not_pass_any_more(run: Any, tmp_path: Path) -> None:
    """An inflow that grows without bound at t = 0.02 makes steps that come to it and never pass it."""
    sides = "".join(f'[boundary.{side}]\ntype = "symmetry"\n' for side in ("ymin", "ymax"))
    case = tmp_path / "endless.toml"
    case.write_text(
        '[case]\nname = "endless"\nsolver = "incompressible"\n[mesh]\nnx = 4\nny = 4\n[fluid]\nviscosity = 0.01\n'
        '[boundary.xmin]\ntype = "inflow"\nvelocity = ["1 / (0.02 - t)", 0]\n[boundary.xmax]\ntype = "outflow"\n'
        f"{sides}[time]\nend = 0.1\n[output]\npicture = false\n"
    )
    assert run(case, "-o", "out") == 1
    assert record()["status"] == "diverged"
    assert "the time does not pass any more" in record()["reason"]


def test_an_end_that_the_limit_of_steps_cuts_off(run: Any) -> None:
    case = write("compressible")
    assert run(case, "-o", "out") == 1
    assert record()["status"] == "not converged"
    assert "of 100 wanted after 6 steps: raise run.iterations" in record()["reason"]
    assert run(case, "-o", "out", "-n", 6) == 0  # these steps are there
    assert "at its end already: end reached" in run.said


def test_a_run_that_met_its_target_is_kept_as_it_ended(run: Any) -> None:
    """Its checkpoint is of its last step: more is asked for, and the run goes on from there."""
    case = aimed("incompressible", "1.0", 40)
    case.write_text(case.read_text() + "[checkpoint]\nevery = 1000\n")
    assert run(case, "-o", "out") == 0
    steps = record()["iterations"]
    assert record()["status"] == "converged"
    case.write_text(case.read_text().replace("steady = 1.0", "steady = 1e-9"))
    assert run(case, "-o", "out", "-n", steps + 2) == 0
    assert f"resumed from step {steps}, " in run.said
    assert record()["iterations"] == steps + 2


def test_what_is_missing_is_said_before_the_first_step(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from fluxloom.cli.main import main

    monkeypatch.setattr("fluxloom.cli.runs.job.find_spec", lambda name: None)
    assert main(["run", str(write("incompressible")), "-o", "out"]) == 0
    assert not list(Path("out").glob("*.png"))
    assert record()["status"] == "end reached"
    assert record()["lost"] == {}


def test_a_failure_of_ours_is_recorded(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A mistake in the middle of a run: a traceback, and a record that does not say that it is still running."""
    from fluxloom.run.flow_run import FlowRun

    def broken(self: object) -> float:
        raise RuntimeError("a mistake of ours")

    monkeypatch.setattr(FlowRun, "residual", broken)
    with pytest.raises(RuntimeError, match="a mistake of ours"):
        run(write("incompressible"), "-o", "out")
    found = json.loads(Path("out/run.json").read_text())
    assert (found["status"], found["reason"]) == ("interrupted", "RuntimeError: a mistake of ours")
    assert not (Path("out") / ".fluxloom-lock").exists()


def test_an_interruption_while_modules_are_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    from fluxloom.cli.main import main

    class Interrupts:
        def find_spec(self, name: str, *_: Any) -> None:
            if name == "fluxloom.cli.commands":
                raise KeyboardInterrupt

    monkeypatch.delitem(sys.modules, "fluxloom.cli.commands", raising=False)
    monkeypatch.setattr(sys, "meta_path", [Interrupts(), *sys.meta_path])
    assert main(["devices"]) == 130


def test_a_thread_that_cannot_start_is_no_failure_of_ours(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def exhausted(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", exhausted)
    assert run(write("airfoil"), "-o", "out") == 2
    assert "exhausted: can't start new thread" in run.said
    assert not Path("out").exists()


@pytest.mark.parametrize("words", [("-o", ""), ("--output", " ")])
def test_a_directory_without_a_name_is_an_error(words: tuple[str, str], run: Any) -> None:
    assert run(write("incompressible"), *words) == 2
    assert "the name of the directory is empty" in run.said
