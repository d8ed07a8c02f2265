"""Cases of incompressible flow that are killed and go on: averages, probes, histories are those of one run."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from fluxloom.app.cases import flow_monitors, incompressible_observers
from fluxloom.app.cases.incompressible_run import IncompressibleRunner
from fluxloom.app.loading import load_case
from fluxloom.app.march import march
from fluxloom.app.results.folder import ResultFolder
from fluxloom.app.results.tables import ResidualLog
from fluxloom.comm.base import Comm
from fluxloom.comm.threads import run_threads
from fluxloom.core.errors import CaseError, CheckpointError
from fluxloom.dsl.context import Context

CASE = """
[case]
name = "channel"
solver = "incompressible"

[mesh]
nx = 9
ny = 6
perturb = 0.1

[fluid]
viscosity = 0.02
gravity = [0.0, -1.0]

[boundary.xmin]
type = "inflow"
velocity_x = "1 + y"
[boundary.xmax]
type = "outflow"
[boundary.ymin]
type = "wall"
[boundary.ymax]
type = "wall"

[scalar.T]
diffusivity = 0.02
expansion = 0.5
initial = "sin(3 * x)"
[scalar.T.boundary]
xmin = {{ type = "value", value = "1" }}
xmax = {{ type = "outflow" }}
ymin = {{ type = "flux", value = "0.4" }}
ymax = {{ type = "adiabatic" }}

[pressure]
preconditioner = "jacobi"
rtol = 1e-11

[forces.ymin]
speed = 1.0
area = 1.0

[probes]
every = 1
points.a = [0.2, 0.3]
points.b = [0.9, 0.6]

[statistics]
every = 3
profile = "y"
bins = 3

[history]
every = 4

[checkpoint]
every = {every}

[time]
{time}

[run]
iterations = {iterations}
threads = 1
"""
SHORT = "end = 0.5"
TEXTS = ("history.csv", "probes.csv", "profile.csv")
Ran = tuple[dict[str, np.ndarray], float, int]


def run(
    comm: Comm, out: Path, *, steps: int = 150, killed: bool = False, iterations: int = 150, every: int = 10,
    time: str = "end = 1.5", changed: tuple[str, str] = ("", ""),
) -> Ran:  # fmt: skip
    """Return the fields of all ranks in global order, the residual and the steps behind a run, or behind its death."""
    path = out.with_name(f"{out.name}-{comm.size}.toml")
    if comm.rank == 0:
        out.mkdir(exist_ok=True)
        text = CASE.format(iterations=iterations, every=every, time=time).replace(*changed)
        path.write_text(text, encoding="utf-8")
    comm.barrier()
    model, application = load_case(path)
    runner = application.build(model, Context("cpu", threads=1, comm=comm, tuning=False))
    assert isinstance(runner, IncompressibleRunner)
    runner.begin(ResultFolder(out))
    log = ResidualLog(None)
    march(runner, steps if killed else iterations, log, comm=comm)
    if killed:
        return {}, 0.0, 0
    names = runner.finish(pictures=False)
    assert ("checkpoint.h5" in names) == (every > 0)
    part, fields = runner.part, runner.fields()
    numbers = np.arange(runner.cells) if part is None else part.numbers[: part.owned]
    whole = {name: np.empty(runner.cells) for name in fields}
    for places, values in comm.allgather((numbers, fields)):
        for name, found in values.items():
            whole[name][places] = found
    return whole, log.values[-1], runner.solver.steps


def tables(out: Path) -> dict[str, np.ndarray]:
    """Return the numbers of the files; every line is there once."""
    return {name: np.genfromtxt(out / name, delimiter=",", skip_header=1) for name in TEXTS}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Ran, Path]:
    """Return a run that nothing interrupts, without checkpoints, and its files."""
    out = tmp_path_factory.mktemp("whole") / "out"
    return run_of(1, out, every=0)[0], out


@pytest.fixture(scope="module")
def short(tmp_path_factory: pytest.TempPathFactory) -> tuple[Ran, Path]:
    """Return a shorter one."""
    out = tmp_path_factory.mktemp("short") / "out"
    return run_of(1, out, every=0, time=SHORT)[0], out


def run_of(ranks: int, out: Path, **choices: object) -> list[Ran]:
    return run_threads(ranks, lambda comm: run(comm, out, **choices))  # pyright: ignore[reportArgumentType]


def test_averages_and_files_are_those_of_one_run(whole: tuple[Ran, Path], tmp_path: Path) -> None:
    """Killed twice, the second time with probes in two blocks: bit by bit, and line by line."""
    (fields, residual, steps), files = whole
    assert steps > 80
    out = tmp_path / "out"
    run_of(1, out, killed=True, steps=37)
    run_of(1, out, killed=True, steps=83)
    found, last, count = run_of(1, out)[0]
    assert count == steps
    assert last == residual
    assert {"u_mean", "v_rms", "p_mean", "T"} <= set(fields)
    for name, wanted in fields.items():
        np.testing.assert_array_equal(found[name], wanted, err_msg=name)
    for name in TEXTS:
        assert (out / name).read_text() == (files / name).read_text()


@pytest.mark.parametrize(("before", "after"), [(2, 2), (1, 2), (2, 1)])
def test_ranks(
    short: tuple[Ran, Path], before: int, after: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With as many ranks or others: to round-off; probes fill several blocks before the end."""
    for module in (flow_monitors, incompressible_observers):
        monkeypatch.setattr(module, "BLOCK", 6)
    (fields, _, steps), files = short
    out = tmp_path / "out"
    run_of(before, out, killed=True, steps=22, time=SHORT)
    for found, _, count in run_of(after, out, time=SHORT):
        assert count == steps
        for name, wanted in fields.items():
            np.testing.assert_allclose(found[name], wanted, rtol=1e-6, atol=1e-7, err_msg=name)
    mine, others = tables(out), tables(files)
    for name in TEXTS:
        np.testing.assert_allclose(mine[name], others[name], rtol=1e-6, atol=1e-7, err_msg=name)


def test_end_may_be_later(tmp_path: Path) -> None:
    """The shortened steps at an end are not part of a checkpoint: the longer run is that of one piece."""
    out, other = tmp_path / "out", tmp_path / "other"
    run_of(1, out, time="end = 0.2001", every=1)
    assert run_of(1, out, time="end = 0.3", every=1)[0][1:] == run_of(1, other, time="end = 0.3", every=0)[0][1:]
    assert (out / "history.csv").read_text() == (other / "history.csv").read_text()


def test_ends_before_the_checkpoint(tmp_path: Path) -> None:
    out = tmp_path / "out"
    run_of(1, out, killed=True, steps=25)
    with pytest.raises(CaseError, match=r"run.iterations: 12 steps end before the checkpoint was taken: raise it"):
        run_of(1, out, iterations=12)
    with pytest.raises(CaseError, match=r"time.end: 0.05 is before the time of the checkpoint, 0\.\d+: raise it"):
        run_of(1, out, time="end = 0.05")
    before = shutil.copy(out / "checkpoint.h5", tmp_path / "copy")
    assert run_of(1, out)[0][2] > 80
    with pytest.raises(CheckpointError, match=r"fluid.viscosity = 0.02.*fluid.viscosity = 0.03"):
        run_of(1, out, changed=("viscosity = 0.02", "viscosity = 0.03"))
    assert run_of(1, out, iterations=12, changed=("[checkpoint]", "[checkpoint]\nresume = false"))[0][2] == 12
    assert Path(before).read_bytes() != (out / "checkpoint.h5").read_bytes()


def test_interrupted_on_the_way(tmp_path: Path) -> None:
    """Nothing is written that is not there, and the checkpoint stays."""
    out = tmp_path / "out"
    run_of(1, out, killed=True, steps=25)
    kept = (out / "checkpoint.h5").read_bytes()
    model, application = load_case(out.with_name("out-1.toml"))
    runner = application.build(model, Context("cpu", threads=1, tuning=False))
    assert isinstance(runner, IncompressibleRunner)
    runner.begin(ResultFolder(out))
    march(runner, 5, ResidualLog(None))
    assert not runner.fields()
    assert "before the checkpoint" in dict(runner.summary())["time"]
    assert list(runner.finish(pictures=False)) == ["history.csv"]
    assert (out / "checkpoint.h5").read_bytes() == kept
    assert run_of(1, out)[0][2] > 80


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("every = 5\n", "keep = 3\n"), "keep is there but no checkpoint is taken"),
        (("[pressure]", '[pressure]\nsolver = "fourier"'), 'with pressure.solver = "fourier" cannot go on'),
    ],
)
def test_wrong_tables(change: tuple[str, str], message: str, tmp_path: Path) -> None:
    path = tmp_path / "case.toml"
    path.write_text(CASE.format(iterations=5, every=5, time="dt = 0.01").replace(*change), encoding="utf-8")
    with pytest.raises(CaseError, match=message):
        load_case(path)
