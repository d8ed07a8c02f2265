"""Cases of compressible flow that are killed and go on are those of one run; ranks change round-off alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fluxloom.app.cases.compressible_run import CompressibleRunner
from fluxloom.app.loading import load_case
from fluxloom.app.march import march
from fluxloom.app.results.folder import ResultFolder
from fluxloom.app.results.tables import ResidualLog
from fluxloom.comm.base import Comm
from fluxloom.comm.threads import run_threads
from fluxloom.core.errors import CaseError, CheckpointError
from fluxloom.dsl.context import Context

TUBE = """
[case]
name = "tube"
solver = "compressible"

[mesh]
nx = 40
ny = 2
y = [0.0, 0.05]
perturb = 0.1

[initial]
left = [1.0, 0.0, 0.0, 1.0]
right = [0.125, 0.0, 0.0, 0.1]
at = 0.5

[boundary]
xmin = { type = "slip" }
xmax = { type = "slip" }
ymin = { type = "symmetry" }
ymax = { type = "symmetry" }

[flow]
mach = 0.1
pressure = 1.0

[forces.xmax]

[surface]
patches = ["xmax"]

[history]
every = 4

[checkpoint]
every = 10

[time]
end = 0.25

[run]
iterations = 1000
threads = 1
"""
STEADY = (
    TUBE.replace("end = 0.25", "cfl = 1.0")
    .replace("iterations = 1000", "iterations = 30")
    .replace('xmin = { type = "slip" }', 'xmin = { type = "far-field" }')
)
TEXTS = ("history.csv", "surface_xmax.csv")
Ran = tuple[dict[str, np.ndarray], float, int]


def run(comm: Comm, out: Path, text: str, killed: int) -> Ran:
    """Return the fields in global order, the residual and the steps behind a run, or behind its death."""
    path = out.with_name(f"{out.name}.toml")
    if comm.rank == 0:
        out.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    comm.barrier()
    model, application = load_case(path)
    runner = application.build(model, Context("cpu", threads=1, comm=comm, tuning=False))
    assert isinstance(runner, CompressibleRunner)
    runner.begin(ResultFolder(out))
    log = ResidualLog(None)
    march(runner, killed or model.run.iterations, log, comm=comm)
    if killed:
        return {}, 0.0, 0
    names = runner.finish(pictures=False)
    assert ("checkpoint.h5" in names) == ("[checkpoint]" in text)
    assert set(TEXTS) <= set(names)
    numbers = np.arange(runner.cells) if runner.part is None else runner.part.numbers[: runner.part.owned]
    fields = runner.fields()
    whole = {name: np.empty(runner.cells) for name in fields}
    for places, values in comm.allgather((numbers, fields)):
        for name, found in values.items():
            whole[name][places] = found
    return whole, log.values[-1], runner.flow.steps


def run_of(ranks: int, out: Path, text: str = TUBE, killed: int = 0) -> list[Ran]:
    return run_threads(ranks, lambda comm: run(comm, out, text, killed))


def without(text: str) -> str:
    return text.replace("[checkpoint]\nevery = 10\n", "")


@pytest.mark.parametrize("text", [TUBE, pytest.param(STEADY, marks=pytest.mark.long)], ids=["in time", "steady"])
def test_goes_on(text: str, tmp_path: Path) -> None:
    """Killed twice: bit by bit, and line by line."""
    fields, residual, steps = run_of(1, tmp_path / "whole", without(text))[0]
    assert steps >= 30
    out = tmp_path / "out"
    run_of(1, out, text, killed=13)
    run_of(1, out, text, killed=24)
    found, last, count = run_of(1, out, text)[0]
    assert (last, count) == (residual, steps)
    for name, wanted in fields.items():
        np.testing.assert_array_equal(found[name], wanted, err_msg=name)
    for name in TEXTS:
        assert (out / name).read_text() == (tmp_path / "whole" / name).read_text()


@pytest.mark.long
@pytest.mark.parametrize(("before", "after"), [(2, 2), (1, 2), (2, 1)])
def test_ranks(before: int, after: int, tmp_path: Path) -> None:
    """With as many ranks or others: to round-off, in fields and files."""
    fields, _, steps = run_of(1, tmp_path / "whole", without(TUBE))[0]
    out = tmp_path / "out"
    run_of(before, out, killed=22)
    for found, _, count in run_of(after, out):
        assert count == steps
        for name, wanted in fields.items():
            np.testing.assert_allclose(found[name], wanted, rtol=1e-9, atol=1e-10, err_msg=name)
    for name in TEXTS:
        mine, others = (
            np.genfromtxt(place / name, delimiter=",", skip_header=1) for place in (out, tmp_path / "whole")
        )
        np.testing.assert_allclose(mine, others, rtol=1e-6, atol=1e-8, err_msg=name)


def test_end_may_be_later(tmp_path: Path) -> None:
    """The shortened steps at an end are not part of a checkpoint: the longer run is that of one piece."""
    out, other, often = tmp_path / "out", tmp_path / "other", TUBE.replace("every = 10", "every = 1")
    run_of(1, out, often.replace("end = 0.25", "end = 0.1001"))
    longer = often.replace("end = 0.25", "end = 0.15")
    assert run_of(1, out, longer)[0][1:] == run_of(1, other, longer.replace("[checkpoint]\nevery = 1\n", ""))[0][1:]
    assert (out / "history.csv").read_text() == (other / "history.csv").read_text()


def test_another_case(tmp_path: Path) -> None:
    run_of(1, tmp_path / "out", killed=15)
    with pytest.raises(CheckpointError, match=r"gamma = 1\.4.*gamma = 1\.3"):
        run_of(1, tmp_path / "out", TUBE + "\n[gas]\ngamma = 1.3\n")
    with pytest.raises(CaseError, match=r"time.end: 0.01 is before the time of the checkpoint"):
        run_of(1, tmp_path / "out", TUBE.replace("end = 0.25", "end = 0.01"))
