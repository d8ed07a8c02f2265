"""Probes and averages of compressible cases: what they find, in which files, on ranks and across checkpoints."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from fluxloom.cases.files.loading import load_case
from fluxloom.core.errors import CaseError
from fluxloom.dsl.context import Context
from fluxloom.flows.compressible.flow import Compressible
from fluxloom.run.flow_run import FlowRun
from fluxloom.run.march import march
from fluxloom.run.results.files import ResidualLog
from fluxloom.run.results.results import ResultFolder

CASE = """
[case]
name = "pulse"
solver = "compressible"

[mesh]
x = [0.0, 2.0]
nx = 12
ny = 6

[flow]
pressure = 1.0

[initial]
density = "1 + 0.1 * x + 0.2 * y"
velocity_x = "0.3 - 0.2 * x"
velocity_y = "0.1 * y"
pressure = "1 + 0.05 * x - 0.1 * y"

[boundary.xmin]
type = "slip"
[boundary.xmax]
type = "slip"
[boundary.ymin]
type = "slip"
[boundary.ymax]
type = "slip"

[probes]
points = { low = [0.01, 0.02], middle = [1.03, 0.41], far = [1.99, 0.99] }

[statistics]
every = 2
start = 0.12

[time]
end = 0.6

[run]
iterations = 100
threads = 1
"""


def build(text: str, folder: Path) -> FlowRun[Compressible]:
    folder.mkdir(exist_ok=True)
    path = folder / "case.toml"
    path.write_text(text, encoding="utf-8")
    case, application = load_case(path)
    runner = application.build(case, Context("cpu", threads=1, tuning=False))
    assert isinstance(runner.flow, Compressible)
    return runner


def run(text: str, folder: Path, steps: int = 0) -> FlowRun[Compressible]:
    """Return a runner at its end, or after some steps as if it had been killed there."""
    runner = build(text, folder)
    runner.begin(ResultFolder(folder))
    march(runner, steps or 100, ResidualLog(None))
    if not steps:
        runner.finish(pictures=False)
    return runner


def table(path: Path) -> np.ndarray:
    return np.genfromtxt(path, delimiter=",", skip_header=1)


def test_probes_are_exact_for_linear_states(tmp_path: Path) -> None:
    """In corners too, before anything has moved."""
    runner = build(CASE, tmp_path)
    runner.begin(ResultFolder(tmp_path))
    for monitor in runner.monitors:
        monitor.stepped()
    runner.finish(pictures=False)
    heading = (tmp_path / "probes.csv").read_text().splitlines()[0].split(",")
    names = [f"{probe}.{value}" for probe in ("low", "middle", "far") for value in ("rho", "u", "v", "p")]
    assert heading == ["time", *names]
    x, y = np.array([[0.01, 1.03, 1.99], [0.02, 0.41, 0.99]])
    wanted = np.column_stack([1 + 0.1 * x + 0.2 * y, 0.3 - 0.2 * x, 0.1 * y, 1 + 0.05 * x - 0.1 * y])
    np.testing.assert_allclose(table(tmp_path / "probes.csv"), [0.0, *wanted.ravel()], rtol=1e-8)


def test_averages(tmp_path: Path) -> None:
    """Means and stresses are those of the states, weighted by the time since the look before, from the start on."""
    runner = build(CASE, tmp_path)
    states, weights, before = [], [], 0.0
    while not runner.finished:
        runner.advance()
        if runner.flow.solver.steps % 2 == 0:
            if runner.flow.solver.time >= 0.12:
                states.append(runner.flow.solver.states().copy())
                weights.append(runner.flow.solver.time - before)
            before = runner.flow.solver.time
    fields = runner.fields()
    w, weight = np.array(states), np.array(weights) / np.sum(weights)
    assert 2 < len(weights) < runner.flow.solver.steps // 2
    mean = np.einsum("s,sck->ck", weight, w)
    product = np.einsum("s,sci,sck->cik", weight, w - mean, w - mean)
    for k, name in enumerate(("rho", "u", "v", "p")):
        np.testing.assert_allclose(fields[f"{name}_mean"], mean[:, k], rtol=1e-11, err_msg=name)
        np.testing.assert_allclose(fields[f"{name}_rms"], np.sqrt(product[:, k, k]), rtol=1e-9, err_msg=name)
    np.testing.assert_allclose(fields["uv"], product[:, 1, 2], atol=1e-14)
    assert dict(runner.summary())["averages"].startswith(f"{len(weights)} samples, over a time of")


def test_steady_ones_are_over_steps(tmp_path: Path) -> None:
    """Points of a list have numbers; averages begin at a step, with equal weights."""
    text = re.sub(r"points = .*", "points = [[0.5, 0.5]]\nevery = 3", CASE).replace("end = 0.6", "cfl = 0.5")
    runner = run(text.replace("start = 0.12", "start = 5").replace("= 100", "= 9"), tmp_path, 9)
    runner.finish(pictures=False)
    assert (tmp_path / "probes.csv").read_text().startswith("step,1.rho,")
    assert table(tmp_path / "probes.csv")[:, 0].tolist() == [3.0, 6.0, 9.0]
    assert dict(runner.summary())["averages"] == "3 samples"


@pytest.mark.long
def test_on_two_ranks(tmp_path: Path, fluxloom: Callable[..., SimpleNamespace]) -> None:
    path = tmp_path / "case.toml"
    path.write_text(CASE, encoding="utf-8")
    for out, words in ((tmp_path / "one", ()), (tmp_path / "two", ("--ranks", "cpu:1*2"))):
        found = fluxloom("run", path, "--output", out, "--no-picture", *words)
        assert found.code == 0, found.text
    np.testing.assert_allclose(
        table(tmp_path / "two" / "probes.csv"), table(tmp_path / "one" / "probes.csv"), rtol=1e-7, atol=1e-8
    )


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("far = [1.99, 0.99]", "far = [2.5, 0.5]", "probes: probe 'far' at (2.5, 0.5) is not in the mesh"),
        ("far = [1.99, 0.99]", "far = [1.0, 0.5, 0.5]", "probes: probe 'far': 2 finite coordinates are wanted"),
        ("far = [", '"f,r" = [', "probes.points: a probe cannot be called 'f,r'"),
        ("[probes]", "[probes]\nevry = 2", "[probes] has no key 'evry'; did you mean 'every'?"),
        ("every = 2", "", "statistics: start is there but every is not"),
        ("start = 0.12", "start = -1.0", "statistics.start: must be at least 0"),
    ],
)
def test_refused(tmp_path: Path, old: str, new: str, message: str) -> None:
    """One message, which names the key."""
    assert old in CASE
    with pytest.raises(CaseError, match=re.escape(message)) as error:
        build(CASE.replace(old, new, 1), tmp_path)
    assert "mistakes" not in str(error.value)
