"""The frame of attacks: what trials find is told with their seeds, and nothing that they start is left."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from fluxloom.core.errors import CaseError
from fluxloom_lab.attack.frame import Attack, AttackOptions, Attacks, Outcome, Trial, as_json, attempt


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def _draw(trial: Trial) -> Iterator[str]:
    assert not list(Path.cwd().iterdir())
    Path("file").write_text("")
    trial.counts["draws"] += 1
    if trial.random().random() < 0.5:
        yield f"{trial.random().random():.3f}"


def _crash(trial: Trial) -> list[str]:
    if trial.seed == 1:
        raise ValueError("no good")
    os.kill(os.getpid(), signal.SIGSEGV)
    return []


def _wait(trial: Trial) -> list[str]:
    time.sleep(60)
    return []


def _leave(trial: Trial) -> list[str]:
    subprocess.Popen(["sleep", "61"], start_new_session=True)
    return []


def _run(attack: Attack, **options: int) -> Outcome:
    (outcome,) = attempt([attack], AttackOptions(**options), lambda line: None)  # type: ignore[arg-type]
    return outcome


@pytest.mark.parametrize("jobs", [1, 3])
def test_a_trial_is_repeated_by_its_seed(jobs: int) -> None:
    whole = _run(Attack("draw", _draw, trials=6), jobs=jobs)
    assert whole.trials == whole.counts["draws"] == 6
    assert 0 < len(whole.found) < 6
    for one in whole.found:
        (again,) = _run(Attack("draw", _draw), seed=one.seed, trials=1).found
        assert again.text == one.text
        assert (Path(again.folder) / "work" / "file").exists()
    record = as_json("test", AttackOptions(), [whole])
    assert (record["trials"], record["found"]) == (6, len(whole.found))


def test_failures_of_trials_are_found() -> None:
    first, second = _run(Attack("crash", _crash, trials=2)).found
    assert "ValueError: no good" in first.text
    assert second.text.startswith(f"ended by signal {signal.SIGSEGV}")
    (late,) = _run(Attack("wait", _wait, trials=1, seconds=0.2)).found
    assert late.text == "not done after 0.2 s"
    (left,) = _run(Attack("leave", _leave, trials=1)).found
    assert left.text == "the process sleep 61 is left"


def test_nothing_is_left_when_the_laboratory_is_interrupted(tmp_path: Path) -> None:
    def interrupted(line: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        attempt([Attack("leave", _leave, trials=2)], AttackOptions(jobs=2), interrupted)
    assert not list(tmp_path.iterdir())


def test_attacks_are_chosen_by_their_names() -> None:
    group = Attacks("all", tuple(Attack(name, _draw) for name in ("kills", "kills while writing", "ranks")))
    assert [one.name for one in group.chosen("kills*")] == ["kills", "kills while writing"]
    assert len(group.chosen("")) == 3
    with pytest.raises(CaseError, match=r"unknown attack 'rank'; did you mean 'ranks'"):
        group.chosen("rank")
    outcome = _run(Attack("draw", _draw, missing=lambda: "no tool for it"))
    assert (outcome.trials, outcome.missing) == (0, "no tool for it")
