"""The examples: every file is correct, and its pinned number comes out."""

from __future__ import annotations

from pathlib import Path

import pytest

from fluxloom.cases.files.loading import load_case
from fluxloom.dsl.context import Context
from fluxloom.run.flow_run import FlowRun

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
PUBLISHED = 0.0001060114637578  # OP2 Airfoil, 720 000 cells, 1000 iterations


def run(name: str, iterations: int, threads: int = 0) -> float:
    case, application = load_case(EXAMPLES / name)
    runner: FlowRun = application.build(case, Context(case.run.device, threads=threads))
    for _ in range(iterations):
        runner.advance()
    return runner.residual()


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.toml")), ids=lambda path: path.name)
def test_examples_are_correct(path: Path) -> None:
    if path.name == "monai.toml":
        pytest.skip("its series is read with it, which is of the reference data: tested in test_monai.py")
    case, application = load_case(path)
    assert case.case.name == path.stem
    given = getattr(case.mesh, "file", "") or getattr(getattr(case.mesh, "gmsh", None), "file", "")
    if not given:  # a case that needs files has tests of its own
        assert application.estimate(case).cells > 0


def test_small() -> None:
    case, _ = load_case(EXAMPLES / "airfoil_small.toml")
    assert run("airfoil_small.toml", case.run.iterations, threads=1) == pytest.approx(1.2025085724589e-05, rel=1e-9)


def test_start_of_the_published_case() -> None:
    assert run("airfoil.toml", 10) == pytest.approx(1.1319443110799e-03, rel=1e-11)


@pytest.mark.long
def test_published_residual() -> None:
    case, _ = load_case(EXAMPLES / "airfoil.toml")
    assert run("airfoil.toml", case.run.iterations) == pytest.approx(PUBLISHED, rel=1e-7)


@pytest.mark.long
def test_steady() -> None:
    case, _ = load_case(EXAMPLES / "airfoil_steady.toml")
    assert run("airfoil_steady.toml", case.run.iterations) == pytest.approx(2.6872842269424e-06, rel=1e-8)
