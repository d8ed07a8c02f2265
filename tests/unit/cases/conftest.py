"""A made-up application that needs no device, and small case files."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from fluxloom.dsl.context import Context
from fluxloom.mesh import MeshData, box2d
from fluxloom.run.flow import Flow, Until
from fluxloom.run.flow_run import FlowRun

CASE = """
[case]
name = "tiny"
solver = "airfoil"

[mesh]
i = 8
j = 12

[flow]
cfl = 0.9

[run]
iterations = 20
report_every = 10
threads = 1
"""


class FakeFlow(Flow):
    """Halves its residual at every step; may lose its solution or be interrupted at one."""

    def __init__(self, *, lost_at: int = 0, stop_at: int = 0, signals: int = 1) -> None:
        self.lost_at, self.stop_at, self.signals = lost_at, stop_at, signals
        self.step = 0
        self.context = Context("reference")

    @property
    def cells(self) -> int:
        return 12

    @property
    def steps(self) -> int:
        return self.step

    def advance(self, until: Until) -> float:
        self.step += 1
        if self.step == self.stop_at:
            for _ in range(self.signals):
                signal.raise_signal(signal.SIGINT)
        return float("nan") if self.step == self.lost_at else 0.5**self.step

    def fields(self) -> dict[str, np.ndarray]:
        pressure = np.ones(self.cells)
        if self.step == self.lost_at:
            pressure[7:9] = np.nan
        return {"density": np.ones(self.cells), "pressure": pressure}

    def mesh(self) -> MeshData:
        return box2d(4, 3)

    def summary(self, until: Until) -> list[tuple[str, str]]:
        return [("residual", f"{0.5**self.step:.3e}")]

    def advice(self) -> str:
        return "lower flow.cfl"


def fake_run(**how: Any) -> FlowRun[FakeFlow]:
    """Return a run of it."""
    return FlowRun(FakeFlow(**how), "fake", Until())


@pytest.fixture
def fake_runner() -> Callable[..., FlowRun[FakeFlow]]:
    return fake_run


@pytest.fixture
def case_file(tmp_path: Path) -> Callable[..., Path]:
    """Return a writer of case files: the tiny case with lines replaced or a text of one's own."""

    def write(*changes: tuple[str, str], text: str = CASE) -> Path:
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        path = tmp_path / "case.toml"
        path.write_text(text)
        return path

    return write


@pytest.fixture
def fluxloom(capfd: pytest.CaptureFixture[str]) -> Callable[..., SimpleNamespace]:
    """Return a caller of the command line: exit status, output, error output."""
    from fluxloom.cli.main import main

    def call(*words: object) -> SimpleNamespace:
        capfd.readouterr()
        code = main([str(word) for word in words])
        out, err = capfd.readouterr()
        return SimpleNamespace(code=code, out=out, err=err, text=out + err)

    return call
