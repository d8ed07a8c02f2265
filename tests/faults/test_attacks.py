"""Attacks on runs find nothing: a trial of two of them by default, two trials of each as long tests."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from fluxloom_lab.attack.faults import FAULTS
from fluxloom_lab.attack.frame import AttackOptions, attempt

NAMES = [attack.name for attack in FAULTS.attacks]


def found(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, **options: int) -> list[str]:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (outcome,) = attempt(FAULTS.chosen(name), AttackOptions(**options), lambda line: None)  # type: ignore[arg-type]
    if outcome.missing:
        pytest.skip(outcome.missing)
    return [f"seed {one.seed}: {one.text}" for one in outcome.found]


@pytest.mark.parametrize(("name", "seed"), [("writing", 31), ("two-runs", 151)])
def test_a_trial(name: str, seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert found(name, tmp_path, monkeypatch, seed=seed, trials=1) == []


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_two_trials(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert found(name, tmp_path, monkeypatch, trials=2) == []
