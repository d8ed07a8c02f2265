"""What --ranks means, and which launcher is taken."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fluxloom.comm import Comm, run_threads
from fluxloom.core.errors import CommError, DeviceUnavailable
from fluxloom.machine import ranks
from fluxloom.machine.ranks import RankSpec, Starter, find_starter, parse, spec_of, without_ranks

GPU = [RankSpec("cuda:0"), RankSpec("cuda:1")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("cuda:0,cpu:14", [RankSpec("cuda:0"), RankSpec("cpu", 14)]),
        ("cpu:1*4", [RankSpec("cpu", 1)] * 4),
        ("cuda:0,cuda:1", GPU),
        ("cuda*2", GPU),
        ("cuda,cuda", GPU),
        ("cuda:3*2", [RankSpec("cuda:3")] * 2),
        ("opencl:0", [RankSpec("opencl:0")]),
        (" opencl:Portable Computing * 2 , cpu ", [RankSpec("opencl:Portable Computing")] * 2 + [RankSpec("cpu")]),
        ("reference*3", [RankSpec("reference")] * 3),
    ],
)
def test_parse(text: str, expected: list[RankSpec]) -> None:
    specs = parse(text)
    assert list(specs) == expected
    assert parse(",".join(map(str, specs))) == specs


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "an empty entry is not of the form device"),
        ("cpu,,cuda", "an empty entry is not of the form device"),
        ("cpu:1*2,", "an empty entry is not of the form device"),
        ("cpu:2*0", r"'cpu:2\*0' is not of the form"),
        ("cpu:2*x", r"'cpu:2\*x' is not of the form"),
        ("4", "'4' is not of the form"),
        ("cpu:0", "behind the colon of cpu stands the number of threads, 1 to 4096, not '0'"),
        ("cpu:", "behind the colon of cpu stands the number of threads, 1 to 4096, not ''"),
        ("cpu:99999999999*2", "threads, 1 to 4096, not '99999999999'"),
        ("cpu:\u00b2", "threads, 1 to 4096, not"),
        ("cpu*65536,cuda", "more than 65,536 ranks"),
        ("cpu*99999999999", "is not of the form"),
        ("reference:3*2", "reference has no choice"),
        ("cpu:-2", "not '-2'"),
        ("cuda:first", "behind the colon of cuda stands the number of a GPU, not 'first'"),
    ],
)
def test_wrong_ranks(text: str, said: str) -> None:
    with pytest.raises(CommError, match=said):
        parse(text)


def test_far_more_ranks_than_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    """They would take all memory before the first of them speaks."""
    monkeypatch.setattr(ranks, "available_threads", lambda: 4)
    with pytest.raises(CommError, match="129 ranks on the 4 cores of this machine: at most 128 are started"):
        ranks.start([RankSpec("cpu", 1)] * 129, ["devices"])


def test_unknown_device() -> None:
    with pytest.raises(DeviceUnavailable, match="unknown device 'cudo'; did you mean 'cuda'"):
        parse("cudo:1")


def test_spec_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(ranks.VARIABLE, raising=False)
    assert run_threads(2, spec_of) == [None, None]
    monkeypatch.setenv(ranks.VARIABLE, "cuda:1,cpu:5,cpu")
    share = max(1, len(os.sched_getaffinity(0)) // 3)
    assert run_threads(3, spec_of) == [RankSpec("cuda:1"), RankSpec("cpu", 5), RankSpec("cpu", share)]
    with pytest.raises(CommError, match=r"names 3 ranks, but 2 run: start them with `fluxloom run --ranks`"):
        run_threads(2, spec_of)


def test_share_of_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    def share(comm: Comm) -> int:
        return ranks.share_of_cores(comm)

    monkeypatch.setattr(ranks, "available_threads", lambda: 16)
    assert run_threads(3, share) == [5, 5, 5]
    monkeypatch.setattr(ranks, "available_threads", lambda: 2)
    assert run_threads(3, share) == [1, 1, 1]


@pytest.mark.parametrize(
    ("words", "kept"),
    [
        (["run", "a.toml", "--ranks", "cpu*2", "-n", "5"], ["run", "a.toml", "-n", "5"]),
        (["run", "--ranks=cpu*2", "a.toml"], ["run", "a.toml"]),
        (["run", "--", "--ranks", "x"], ["run", "--", "--ranks", "x"]),
        (["run", "a.toml", "--ranks"], ["run", "a.toml"]),
        (["run"], ["run"]),
    ],
)
def test_without_ranks(words: list[str], kept: list[str]) -> None:
    assert without_ranks(words) == kept


def program(path: Path, says: str) -> str:
    """Write a launcher that only says of which MPI it is."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho '{says}'\n")
    path.chmod(0o755)
    return str(path)


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let mpi4py use the MPICH of a folder, with another Python elsewhere and an Open MPI in the search path."""
    library = tmp_path / "mpich" / "lib" / "libmpi.so.12"
    answer = f'["MPICH", ["{library}"]]'

    seen = subprocess.CompletedProcess([], 0, f"a remark\n{answer}\n", "")
    monkeypatch.setattr(ranks, "_probe", lambda: seen)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python" / "bin" / "python"))
    program(tmp_path / "path" / "mpirun", "mpirun (Open MPI) 5.0.6")
    program(tmp_path / "python" / "bin" / "mpiexec", "mpiexec (OpenRTE) 4.1")
    monkeypatch.setenv("PATH", f"{tmp_path / 'path'}:{os.environ['PATH'].split(':')[-1]}:/bin:/usr/bin")
    return library


def test_launcher_of_the_library(library: Path) -> None:
    """Not the one beside Python, which is of another MPI, but the one that lies with the library."""
    expected = program(library.parents[1] / "bin" / "mpiexec.hydra", "HYDRA build details:")
    assert find_starter() == Starter(expected, "MPICH")


def test_no_launcher_of_the_library(library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(library.parents[1] / "bin" / "mpiexec", "something else")
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    with pytest.raises(
        CommError, match=r"no mpiexec for the MPI library of mpi4py, MPICH in .*libmpi\.so\.12; found "
    ) as error:
        find_starter()
    text = str(error.value)
    assert f"{tmp_path}/path/mpirun (Open MPI)" in text
    assert f"{tmp_path}/mpich/bin/mpiexec (of an unknown MPI)" in text


def test_no_mpi(monkeypatch: pytest.MonkeyPatch) -> None:
    failed = subprocess.CompletedProcess([], 1, "", "Traceback\nImportError: No module named 'mpi4py'\n")
    monkeypatch.setattr(ranks, "_probe", lambda: failed)
    with pytest.raises(CommError, match=r"No module named 'mpi4py'\): pip install 'fluxloom\[mpi\]'"):
        find_starter()


def test_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PMI_RANK", "3")
    for name in [name for name in os.environ if name.startswith(("OMPI_", "PRTE_"))]:
        monkeypatch.delenv(name)
    mpich, other = Starter("/a/mpiexec", "MPICH"), Starter("/b/mpiexec", "Open MPI")
    assert mpich.command(3, ["-m", "x"]) == ["/a/mpiexec", "-n", "3", sys.executable, "-m", "x"]
    assert other.command(3, ["-m", "x"])[:5] == ["/b/mpiexec", "--bind-to", "none", "-n", "3"]
    assert "PMI_RANK" not in mpich.environment()
    assert "OMPI_ALLOW_RUN_AS_ROOT" not in mpich.environment()
    assert other.environment()["OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"] == "1"
    assert other.environment()["OMPI_MCA_rmaps_base_oversubscribe"] == "1"
