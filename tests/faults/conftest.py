"""Runs of small cases by the command line in this process, and folders to compare."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fluxloom.cli.main import main

Run = Callable[..., int]


@pytest.fixture(autouse=True)
def _apart(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FLUXLOOM_TUNING", str(tmp_path / "tuning.json"))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str]) -> Run:
    """Run the command line in this process; what it printed is in ``run.said``."""

    def call(*words: Any) -> int:
        code = main(["run", *map(str, words), "--no-picture"])
        out, err = capfd.readouterr()
        call.said = out + err  # type: ignore[attr-defined]
        return code

    return call


def tree(folder: Path) -> dict[str, bytes]:
    """Return what is in a folder, byte for byte."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
