"""How repeatable a case of a solver that chooses its schedules asks to be: taken, refused, and what the run says."""

from __future__ import annotations

from pathlib import Path

import pytest

from fluxloom.cli.main import main

CASE = """
[case]
name = "ring"
solver = "incompressible"
[mesh]
nx = 4
ny = 4
periodic = [["xmin", "xmax"], ["ymin", "ymax"]]
[fluid]
viscosity = 0.01
[initial]
velocity_x = "sin(2 * pi * y)"
[pressure]
preconditioner = "ssor"
[run]
iterations = 1
threads = 1
[output]
picture = false
format = "none"
"""


@pytest.mark.parametrize(("schedule", "code", "said"), [
    ("deterministic=global", 0, 'depend on the number of ranks: pressure.preconditioner = "ssor"'),
    ("gather", 2, "run.schedule: this solver chooses"), ("gather, deterministic=global", 2, "but for deterministic="),
])  # fmt: skip
def test_how_repeatable(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], schedule: str, code: int, said: str
) -> None:
    path = tmp_path / "case.toml"
    path.write_text(CASE)
    words = ["run", str(path), "-o", str(tmp_path / "out"), "--set", f"run.schedule={schedule}"]
    assert main(words) == code
    found = capsys.readouterr()
    assert said in " ".join((found.out + found.err).split())
