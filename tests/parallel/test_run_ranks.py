"""The command line on several ranks: runs, benchmarks, verification; what happens when a rank fails."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import numpy as np
import pytest

from fluxloom.cases.airfoil import AirfoilApplication
from fluxloom.cli.main import main
from fluxloom.comm.base import Comm, SelfComm
from fluxloom.comm.threads import run_threads
from fluxloom.core.errors import CommError
from fluxloom.machine.ranks import VARIABLE, RankSpec, Starter, place_of, starts_ranks
from fluxloom.mesh import read_fields
from fluxloom.run.results.files import read_residuals
from tests.parallel.launch import ROOT, run

pytestmark = pytest.mark.mpi

CASE = """
[case]
name = "tiny"
solver = "airfoil"
[mesh]
i = 8
j = 12
[run]
iterations = 20
report_every = 10
threads = 1
schedule = "deterministic=global"
[output]
picture = false
"""


@pytest.fixture
def case(tmp_path: Path) -> Path:
    path = tmp_path / "case.toml"
    path.write_text(CASE)
    return path


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Keep measurements of the memory short, in the processes that are started too."""
    folder = tmp_path_factory.mktemp("site")
    program = "import fluxloom.device.bandwidth as b\nb._default_size = lambda: 4 << 20\n"
    (folder / "sitecustomize.py").write_text(program)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(folder), str(ROOT)]))
    monkeypatch.setenv("FLUXLOOM_TUNING", "off")
    monkeypatch.setattr("fluxloom.device.bandwidth._default_size", lambda: 4 << 20)


def call(words: Sequence[object], timeout: float = 100) -> CompletedProcess[str]:
    """Run the command line in a process of its own."""
    return run([sys.executable, "-m", "fluxloom", *map(str, words)], dict(os.environ), timeout)


def mpi(starter: Starter, ranks: int, words: Sequence[object], timeout: float = 100) -> CompletedProcess[str]:
    """Run the command line below mpiexec."""
    return run(starter.command(ranks, ["-m", "fluxloom", *map(str, words)]), starter.environment(), timeout)


@pytest.fixture(scope="module")
def results() -> dict[str, Path]:
    """Return what `alone` found, once it was asked for."""
    return {}


@pytest.fixture
def alone(results: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the results of one rank."""
    if "out" not in results:
        folder = tmp_path_factory.mktemp("alone")
        (folder / "case.toml").write_text(CASE)
        assert main(["run", str(folder / "case.toml"), "-o", str(folder / "out")]) == 0
        results["out"] = folder / "out"
    return results["out"]


def same_run(found: Path, wanted: Path, *, bitwise: bool) -> dict[str, Any]:
    """Compare the results of two runs; return the record of the first."""
    steps, residuals = read_residuals(found / "residual.csv")
    assert steps.tolist() == list(range(1, 21))
    np.testing.assert_allclose(residuals, read_residuals(wanted / "residual.csv")[1], rtol=1e-12)
    mine, other = (read_fields(next(folder.glob("final.*"))) for folder in (found, wanted))
    assert np.array_equal(mine.mesh.points, other.mesh.points)
    assert list(mine.cell_data) == list(other.cell_data)
    for name, values in other.cell_data.items():
        if bitwise:
            assert np.array_equal(mine.cell_data[name], values), name
        else:
            np.testing.assert_allclose(mine.cell_data[name], values, rtol=1e-12, atol=1e-13)
    return json.loads((found / "run.json").read_text())


# ------------------------------------------------------------------------------------- where a rank runs


class Placed(SelfComm):
    """One of several ranks, as far as numbers go."""

    def __init__(self, rank: int, size: int, local_rank: int) -> None:
        self.rank, self.size, self.local_rank, self.local_size = rank, size, local_rank, size


def test_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    third = Placed(6, 8, 2)
    assert place_of(SelfComm(), "cuda", 3) == RankSpec("cuda")
    assert place_of(third, "cuda") == RankSpec("cuda:2")
    assert place_of(third, "cuda:5") == RankSpec("cuda:5")
    assert place_of(third, "cpu", 3) == RankSpec("cpu", 3)
    assert place_of(third, "cpu").threads >= 1
    assert place_of(third, ranks="cpu:1*6,cuda:3,opencl") == RankSpec("cuda:3")
    with pytest.raises(CommError, match="names 2, but 8 run"):
        place_of(third, ranks="cpu:1*2")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3")  # as launchers do that give each rank its GPU
    assert place_of(third, "cuda") == RankSpec("cuda:0")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,5,6")
    assert place_of(third, "cuda") == RankSpec("cuda:2")
    monkeypatch.setenv(VARIABLE, "cpu:1*6,cpu:7,opencl")
    assert place_of(third, "cuda", ranks="opencl*8") == RankSpec("cpu", 7)


def test_who_starts_ranks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    assert len(starts_ranks(SelfComm(), "cpu:1*3")) == 3
    assert not starts_ranks(SelfComm(), "")
    assert not starts_ranks(SelfComm(), "cpu:4")  # one rank is this process
    assert not starts_ranks(Placed(0, 3, 0), "cpu:1*3")
    monkeypatch.setenv(VARIABLE, "cpu:1*2")
    assert not starts_ranks(SelfComm(), "cpu:1*3")


@pytest.mark.parametrize("terminal", [True, False])
def test_ranks_write_plain_text_where_nobody_looks(monkeypatch: pytest.MonkeyPatch, terminal: bool) -> None:
    """Launchers may give ranks a terminal of their own."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("sys.stdout.isatty", lambda: terminal)
    assert Starter("mpiexec", "Open MPI").environment()["TERM"] == ("xterm" if terminal else "dumb")


def test_places_do_not_need_mpi() -> None:
    def on_rank(comm: Comm) -> RankSpec:
        return place_of(comm, ranks="cpu:1,cpu:2,reference")

    assert run_threads(3, on_rank) == [RankSpec("cpu", 1), RankSpec("cpu", 2), RankSpec("reference")]


# ---------------------------------------------------------------------------------------------------- run


def test_run(launcher: Starter, alone: Path, case: Path, tmp_path: Path) -> None:
    """Two ranks write what one does, once, and say what they did."""
    done = mpi(launcher, 2, ["run", case, "-o", tmp_path / "out", "--profile"])
    assert done.returncode == 0, done.stderr
    record = same_run(tmp_path / "out", alone, bitwise=True)
    assert (record["ranks"], record["gpus"], record["status"]) == (2, 0, "end reached")
    assert [row["rank"] for row in record["crew"]] == [0, 1]
    assert sum(record["shares"]) == pytest.approx(1.0)
    assert record["partition"]["ranks"] == 2
    assert record["partition"]["edge_cut"] > 0
    assert [(row["name"], row["calls"]) for row in record["exchanges"]] == [("q+adt", 40)]
    assert 0 < record["waiting"]["share"]["mean"] <= record["waiting"]["share"]["max"]
    assert all({"mean_seconds", "imbalance"} <= set(row) for row in record["loops"])
    assert done.stderr.count("iteration      20/20") == 1
    titles = [line.strip() for line in done.stdout.splitlines()]
    assert done.stdout.count("uneven %") == titles.count("messages") == 1
    assert "ranks        2: 2 x " in done.stdout


def test_started_ranks(launcher: Starter, alone: Path, case: Path, tmp_path: Path) -> None:
    """The file says how many there are and how the mesh is divided."""
    text = CASE.replace("threads = 1", 'ranks = "cpu:1*2"')
    case.write_text(text + '[partition]\nmethod = "rcb"\nshares = [3, 1]\n')
    done = call(["run", case, "-o", tmp_path / "out"])
    assert done.returncode == 0, done.stderr
    record = same_run(tmp_path / "out", alone, bitwise=True)
    assert record["partition"]["method"] == "rcb"
    assert record["shares"] == pytest.approx([0.75, 0.25], abs=0.02)
    assert "--ranks cpu:1,cpu:1" in record["command"]


@pytest.mark.long
@pytest.mark.opencl
def test_mixed_ranks(launcher: Starter, alone: Path, case: Path, tmp_path: Path) -> None:
    """A CPU rank and an OpenCL rank share the mesh as fast as they are."""
    case.write_text(CASE + '[partition]\nshares = "measured"\n')
    done = call(["run", case, "-o", tmp_path / "out", "--ranks", "cpu:1,opencl"])
    assert done.returncode == 0, done.stderr
    record = same_run(tmp_path / "out", alone, bitwise=False)
    assert record["device"] == "cpu+opencl"
    assert min(record["shares"]) > 0
    assert f"divided by kway: {100 * record['shares'][0]:.2f} %" in done.stderr


@pytest.mark.long
def test_lost_solution(launcher: Starter, case: Path, tmp_path: Path) -> None:
    """All ranks end with one message, which names the cell as one rank would; files are kept."""
    case.write_text(CASE + "[flow]\ncfl = 9.0\n")
    assert main(["run", str(case), "-o", str(tmp_path / "alone")]) == 1
    done = mpi(launcher, 2, ["run", case, "-o", tmp_path / "out"])
    assert done.returncode == 1
    records = [json.loads((tmp_path / name / "run.json").read_text()) for name in ("alone", "out")]
    assert records[1]["status"] == "diverged"
    assert records[0]["reason"] == records[1]["reason"]
    assert "in cell" in records[1]["reason"]
    assert done.stderr.count("error: ") == 1
    assert records[1]["reason"] in done.stderr.replace("\n", " ").replace("  ", " ")


def test_expected_errors_end_all_ranks(launcher: Starter, case: Path, tmp_path: Path) -> None:
    """What only rank 0 sees, what only one rank cannot do, and what all of them see."""
    (tmp_path / "file").touch()
    done = mpi(launcher, 2, ["run", case, "-o", tmp_path / "file"])
    assert done.returncode
    assert "error: output directory" in done.stderr
    assert "in the way" in done.stderr
    done = call(["run", case, "-o", tmp_path / "out", "--ranks", "cpu:1,opencl:nonsense"])
    assert done.returncode == 2
    assert "rank 1 of 2: error: " in done.stderr
    assert "Traceback" not in done.stderr


def test_errors_before_ranks_start(case: Path, capfd: pytest.CaptureFixture[str]) -> None:
    case.write_text(CASE + '[partition]\nmethod = "kwai"\nshares = "measurd"\n')
    assert main(["run", str(case), "--ranks", "cpu:1*2"]) == 2
    said = capfd.readouterr().err
    assert "partition.method: unknown value \"kwai\"; did you mean 'kway'?" in said
    assert "partition.shares: unknown 'measurd'; did you mean 'measured'?" in said
    for words, text in (
        (("--ranks", "cpu:1*2", "--device", "cpu"), "--device and --ranks both say what to run on"),
        (("--ranks", "gpu*2"), "unknown device 'gpu'"),
        (("--ranks", "cpu*2,"), "run.ranks: ranks 'cpu*2,': an empty entry is not of the form"),
        (("--ranks", "cuda:0,cpu:x"), "behind the colon of cpu stands the number of threads, 1 to 4096, not 'x'"),
        (("--ranks", "cpu:99999999999*2"), "not '99999999999'"),
        (("--ranks", "cpu:1*99999999"), "more than 65,536 ranks"),
        (("--ranks", "cpu:1*60000"), "60,000 ranks on the "),
        (("--ranks", "reference*2"), "the device reference runs on one rank only"),
        (("--ranks", "cpu*2", "--threads", "2"), "--threads and --ranks both say what to run on"),
        (("--ranks", "cpu*2", "--set", "run.transport=tcp"), 'run.transport: unknown value "tcp"'),
        (("--device", "cpu:2"), "device 'cpu:2': cpu has no choice behind a colon"),
    ):
        assert main(["run", "airfoil", "-o", str(case.parent / "out"), *words]) == 2
        assert text in capfd.readouterr().err


def test_threads_beside_the_ranks_of_a_file(case: Path, capfd: pytest.CaptureFixture[str]) -> None:
    case.write_text(CASE.replace("threads = 1", 'ranks = "cpu*2"'))
    assert main(["run", str(case), "--threads", "2"]) == 2
    assert f"--threads does not count where {case} says ranks = 'cpu*2'" in capfd.readouterr().err


def test_verify_refuses(capfd: pytest.CaptureFixture[str]) -> None:
    for words, text in (
        (("airfoil", "--ranks", "cpu*2,"), "an empty entry is not of the form"),
        (("airfoil", "--ranks", "cpu*2", "--device", "cpu"), "--device and --ranks both say what to run on"),
        (("airfoil", "--ranks", "cpu*2", "--threads", "1"), "--threads and --ranks both say what to run on"),
        (("airfoil", "--ranks", "cpu*2", "--json", "/dev/null/v.json"), "/dev/null/v.json: the directory /dev/null"),
    ):
        assert main(["verify", *words]) == 2
        assert text in capfd.readouterr().err


def test_solvers_that_know_one_rank(
    case: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(AirfoilApplication, "distributed", False)
    case.write_text(CASE.replace("threads = 1", 'ranks = "cpu*2"'))
    assert main(["run", str(case), "-o", str(case.parent / "out")]) == 2
    assert capfd.readouterr().err == "error: the solver airfoil does not run on several ranks\n"
    assert not (case.parent / "out").exists()


@pytest.mark.parametrize(
    ("table", "text"),
    [
        ("shares = [1, 2, 3]", "partition.shares: 3 numbers for 2 ranks: give one a rank"),
        ("shares = [1, -1]", "partition.shares: the shares of the ranks must be positive numbers"),
        ("shares = [1, nan]", "partition.shares: the shares of the ranks must be positive numbers"),
        ("shares = [1.0, inf]", "partition.shares: the shares of the ranks must be positive numbers"),
        ("shares = [1, 1e-300]", "partition.shares: a share is less than 1e-06 of the largest"),
        ("shares = [true, 1]", "partition.shares: the shares of the ranks must be auto, measured, or numbers"),
        ("shares = 3", "partition.shares: the shares of the ranks must be auto, measured, or numbers"),
        ("shares = []", "partition.shares: the shares of the ranks must be auto, measured, or numbers"),
        ('shares = "3,1"', "partition.shares: unknown '3,1' (allowed: auto, measured, or a list of numbers)"),
        ('metod = "rcb"', "partition.metod: [partition] has no key 'metod'; did you mean 'method'?"),
    ],
)
def test_wrong_partitions(case: Path, table: str, text: str, capfd: pytest.CaptureFixture[str]) -> None:
    """One line each, before anything starts."""
    case.write_text(f"{CASE}[partition]\n{table}\n")
    assert main(["run", str(case), "--ranks", "cpu:1*2"]) == 2
    said = capfd.readouterr().err
    assert text in said
    assert said.count("\n") == 1


def test_failed_starts_leave_what_was_written(
    launcher: Starter, alone: Path, case: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What only shows when the case is built, on one rank and on two, costs nobody the results of the run before."""
    out = tmp_path / "out"
    shutil.copytree(alone, out)
    (out / "mine.png").write_text("a picture of mine")
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    with monkeypatch.context() as patch:
        patch.setattr("fluxloom.cli.runs.job.available_memory", lambda: 1000)
        assert main(["run", str(case), "-o", str(out), "-n", "30"]) == 2
    done = call(["run", case, "-o", out, "-n", 30, "--ranks", "cpu:1*2", "--set", "run.transport=nccl"])
    assert done.returncode == 2
    assert "transport 'nccl' carries messages between GPUs, but no rank has one" in done.stderr
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before
    assert main(["run", str(case), "-o", str(out), "-n", "1", "--overwrite"]) == 0
    assert (out / "mine.png").exists()
    assert len(read_residuals(out / "residual.csv")[0]) == 1


@pytest.mark.parametrize("ranks", [1, 2])
def test_full_disk(launcher: Starter, case: Path, tmp_path: Path, ranks: int) -> None:
    """A file that may not grow is as good as a full disk: one message, whole lines, and the run goes on."""
    out, words = tmp_path / "out", ["run", str(case), "-o", str(tmp_path / "out")]
    limited = "import resource, sys; from fluxloom.run.results.files import Lines as log; put = log.add\n" + (
        "def limited(self, line):\n"
        "    most = 900 if line[:1].isdigit() else resource.RLIM_INFINITY\n"
        "    resource.setrlimit(resource.RLIMIT_FSIZE, (most, resource.RLIM_INFINITY))\n"
        "    try: put(self, line)\n"
        "    finally: resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)\n"
        "log.add = limited\n"
        "from fluxloom.cli.main import main; sys.exit(main(sys.argv[1:]))\n"
    )
    command = [sys.executable, "-c", limited] if ranks == 1 else launcher.command(ranks, ["-c", limited])
    case.write_text(CASE.replace("iterations = 20", "iterations = 500"))
    done = run([*command, *words], launcher.environment(), 100)
    assert done.returncode == 3, done.stderr
    assert done.stderr.count("output lost: residual.csv: File too large") == 1
    assert "Traceback" not in done.stderr
    record = json.loads((out / "run.json").read_text())
    assert (record["status"], record["iterations"]) == ("end reached", 500)
    assert record["lost"] == {"residual.csv": "File too large"}
    assert 10 < len(read_residuals(out / "residual.csv")[0]) < 500
    assert list(out.glob("final.*"))


@pytest.fixture
def endless(launcher: Starter, case: Path, tmp_path: Path) -> Any:
    """Start a run on two ranks that does not end by itself, and wait until it advances."""
    case.write_text(CASE.replace("iterations = 20", "iterations = 100_000_000"))
    words = ["run", str(case), "-o", str(tmp_path / "out"), "--ranks", "cpu:1*2"]
    process = subprocess.Popen(
        [sys.executable, "-m", "fluxloom", *words], cwd=ROOT, start_new_session=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    log, end = tmp_path / "out" / "residual.csv", time.monotonic() + 100
    while time.monotonic() < end and process.poll() is None and (not log.exists() or log.stat().st_size < 1000):
        time.sleep(0.02)
    assert process.poll() is None
    yield process
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def test_interruption(endless: subprocess.Popen[str], tmp_path: Path) -> None:
    """All ranks stop after the same iteration, and the results so far are written."""
    os.killpg(endless.pid, signal.SIGINT)  # as a terminal does
    endless.communicate(timeout=100)
    assert endless.returncode == 130
    record = json.loads((tmp_path / "out" / "run.json").read_text())
    assert record["status"] == "interrupted"
    assert len(read_residuals(tmp_path / "out" / "residual.csv")[0]) == record["iterations"]
    assert list((tmp_path / "out").glob("final.*"))


@pytest.mark.long
@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="processes are found in /proc")
def test_killed_rank(endless: subprocess.Popen[str], tmp_path: Path) -> None:
    """The others end too, with a status; what was written stays."""
    ranks = ranks_of(tmp_path)
    assert len(ranks) == 2
    os.kill(max(ranks), signal.SIGKILL)
    endless.communicate(timeout=100)
    assert endless.returncode
    assert len(read_residuals(tmp_path / "out" / "residual.csv")[0]) > 10
    assert not ranks_of(tmp_path)


def ranks_of(folder: Path) -> list[int]:
    """Return the processes that are ranks of the run in a folder: not the one that was asked, nor a launcher."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):  # it has ended
            words = os.fsdecode(path.read_bytes()).split("\0")
            if words[1:3] == ["-m", "fluxloom"] and str(folder / "out") in words and "--ranks" not in words:
                found.append(int(path.parent.name))
    return found


# ------------------------------------------------------------------------------------ bench and verify


@pytest.mark.long
def test_bench(launcher: Starter, tmp_path: Path) -> None:
    words = ("bench", "airfoil", "--cells", "8,12", "-n", 5, "--rounds", 2, "--threads", 1, "--json")
    done = mpi(launcher, 2, [*words, tmp_path / "two.json", "--partition", "rcb", "--transports"])
    assert done.returncode == 0, done.stderr
    record = json.loads((tmp_path / "two.json").read_text())
    metrics = record["metrics"]
    assert (record["ranks"], record["gpus"], record["sizes"]) == (2, 0, {"cells": 288})
    assert record["device_name"].startswith("2 x ")
    assert metrics["rms"] == pytest.approx(3.2135433344452e-03, rel=1e-12)
    assert (metrics["ranks"], metrics["cells"], metrics["partition"], metrics["exchanges"]) == (2, 288, "rcb", 2)
    assert metrics["owned_least"] + metrics["owned_most"] == 288
    assert 0 < metrics["halo_bytes_most"] < metrics["halo_bytes"]
    assert metrics["halo_bytes"] % 40 == 0  # q and adt of a cell
    assert metrics["transport"] == "host"
    part = (metrics["with_exchange_ms"] - metrics["without_exchange_ms"]) / metrics["exchange_alone_ms"]
    assert metrics["exchange_hidden"] == pytest.approx(1 - part)
    assert [row["name"] for row in metrics["transports"]] == ["host"]
    assert metrics["transports"][0]["rms"] == metrics["rms"]
    assert {row["calls"] for row in record["loops"]} == {5}
    assert done.stdout.count("airfoil on 2 x") == 1


def test_bench_refuses(capfd: pytest.CaptureFixture[str]) -> None:
    for words, text in (
        (("tiling", "--ranks", "cpu:1*2"), "the benchmark tiling has no option --ranks"),
        (("airfoil", "--partition", "kwai"), "did you mean 'kway'?"),
        (("airfoil", "--shares", "equal"), "shares 'equal': unknown 'equal'"),
        (("airfoil", "--transports", "--cells", "8,12"), "start several ranks"),
        (("scaling", "--ranks", "2"), "give two or more numbers of ranks"),
        (("airfoil", "--draw", "a.png"), "has no option --draw"),
        (("airfoil", "--shares", "3,1"), "--shares: 2 numbers for 1 rank: give one a rank"),
        (("airfoil", "--shares", "1,x"), "shares '1,x': unknown '1,x' (allowed: auto, measured, or a list of numbers)"),
        (("airfoil", "--shares", "1,1e-300"), "a share is less than 1e-06 of the largest"),
        (("airfoil", "--ranks", "cpu*2", "--shares", "1,2,3"), "--shares: 3 numbers for 2 ranks: give one a rank"),
        (("airfoil", "--ranks", "cpu*2", "--device", "cpu"), "--device and --ranks both say what to run on"),
        (("airfoil", "--ranks", "cpu*2", "--threads", "1"), "--threads and --ranks both say what to run on"),
        (("airfoil", "--ranks", "cpu*2,"), "an empty entry is not of the form"),
        (("airfoil", "--ranks", "reference*2"), "the device reference runs on one rank only"),
        (("airfoil", "--transport", "tcp"), "--transport 'tcp' (allowed: auto, host, mpi, nccl, peer)"),
        (("airfoil", "--json", "/dev/null/a.json"), "/dev/null/a.json: the directory /dev/null cannot be made"),
        (("airfoil", "--cells", "99999,99999"), "more nodes than the 2,147,483,648 that 32 bits number"),
        (("tiling", "--transport", "host"), "the benchmark tiling has no option --transport"),
        (("tiling", "--cells", "5"), "--cells '5'"),
        (("rings", "--ranks", "cpu*2", "--partition", "rcb"), "the benchmark rings has no option --partition"),
        (("mixed", "--ranks", "cpu*2", "--shares", "1,2,3"), "--shares: 3 numbers for 2 ranks"),
    ):
        assert main(["bench", *words]) == 2
        assert text in capfd.readouterr().err


@pytest.mark.long
def test_scaling(launcher: Starter, tmp_path: Path) -> None:
    picture = tmp_path / "pictures" / "scaling.png"
    words = ("bench", "scaling", "--ranks", "1,2", "--strong", "1k", "-n", 3, "--rounds", 1)
    done = call([*words, "--json", tmp_path / "s.json", "--draw", picture])
    assert done.returncode == 0, done.stderr
    record = json.loads((tmp_path / "s.json").read_text())
    assert (record["case"], record["ranks"], record["gpus"], record["device"]) == ("scaling", 2, 0, "cpu")
    strong = record["metrics"]["strong"]
    assert [(row["ranks"], row["cells"]) for row in strong] == [(1, 990), (2, 990)]
    assert strong[0]["rms"] == pytest.approx(strong[1]["rms"], rel=1e-12)
    assert strong[1]["transport"] == "host"
    assert strong[1]["efficiency"] == pytest.approx(strong[0]["ms_per_iteration"] / strong[1]["ms_per_iteration"] / 2)
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert "airfoil on" not in done.stdout  # tables of the runs are not shown


@pytest.mark.long
def test_verify(launcher: Starter, tmp_path: Path) -> None:
    done = mpi(launcher, 3, ["verify", "airfoil", "--threads", 1, "--json", tmp_path / "v.json"], timeout=300)
    assert done.returncode == 0, done.stderr
    record = json.loads((tmp_path / "v.json").read_text())
    assert record["ranks"] == 3
    assert all(check["ok"] for check in record["checks"])
    assert done.stdout.count("checks passed") == 1


FLOW = """
[case]
name = "duct"
solver = "incompressible"
[mesh]
x = [0.0, 2.0]
y = [-1.0, 1.0]
nx = 8
ny = 6
kind = "triangle"
[fluid]
viscosity = 0.05
[initial]
velocity_x = "1"
noise = 0.1
[boundary]
xmin = { type = "inflow", velocity_x = "1 - y**2" }
xmax = { type = "outflow" }
ymin = { type = "wall" }
ymax = { type = "wall" }
[time]
dt = 0.01
[history]
every = 2
[forces.ymin]
[probes]
points.middle = [1.0, 0.1]
[statistics]
every = 1
profile = "y"
[pressure]
rtol = 1e-9
[run]
iterations = 6
threads = 1
[output]
picture = false
"""


@pytest.mark.long
def test_incompressible_flow(tmp_path: Path) -> None:
    """Two ranks write the files of one."""
    case = tmp_path / "flow.toml"
    case.write_text(FLOW)
    for name, words in (("one", []), ("two", ["--ranks", "cpu:1*2"])):
        done = call(["run", case, "--output", tmp_path / name, *words])
        assert done.returncode == 0, done.stdout + done.stderr
    for name in ("history.csv", "probes.csv", "profile.csv"):
        one, two = (np.loadtxt(tmp_path / which / name, delimiter=",", skiprows=1) for which in ("one", "two"))
        np.testing.assert_allclose(two, one, rtol=1e-6, atol=1e-8)
    one, two = (read_fields(next((tmp_path / which).glob("final.*"))).cell_data for which in ("one", "two"))
    np.testing.assert_allclose(two["speed"], one["speed"], atol=1e-7)
    np.testing.assert_allclose(two["u_rms"], one["u_rms"], atol=1e-7)


@pytest.mark.long
def test_incompressible_flow_that_does_not_balance(tmp_path: Path) -> None:
    """Every rank ends with the one message."""
    case = tmp_path / "flow.toml"
    case.write_text(FLOW.replace('{ type = "outflow" }', '{ type = "wall" }'))
    done = call(["run", case, "--output", tmp_path / "out", "--ranks", "cpu:1*2"])
    assert done.returncode != 0
    assert done.stderr.count("the given velocities let") == 1
