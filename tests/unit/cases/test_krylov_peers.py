"""PETSc beside the benchmark of iterative solvers: files, messages, programs; PETSc itself where it is installed."""

from __future__ import annotations

import json
import os
import stat
import struct
import subprocess
import sys
import time
from pathlib import Path
from textwrap import dedent

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.cli.commands import build
from fluxloom.comm.base import Comm
from fluxloom.comm.threads import run_threads
from fluxloom.core.errors import CaseError, CommError, CompileError, DeviceUnavailable, FluxloomError
from fluxloom.linalg.precond.jacobi import Jacobi
from fluxloom_lab.bench.linear import krylov
from fluxloom_lab.bench.linear.krylov import KrylovOptions
from fluxloom_lab.bench.registry import benches
from fluxloom_lab.options import options_of
from fluxloom_lab.peers import krylov_peers
from fluxloom_lab.peers.krylov_peers import LinearSystem
from fluxloom_lab.peers.petsc import Petsc, find_petsc, read_vector, write_system
from fluxloom_lab.peers.programs import build_program, launched, peers_from_text, run_program
from fluxloom_lab.problems.matrices import lattice_laplacian

FAKE = """
    import json, sys
    import numpy as np
    words = dict(zip(sys.argv[1::2], sys.argv[2::2]))
    with open(words["-system"], "rb") as file:
        kind, n, _, entries = np.fromfile(file, ">i4", 4)
        lengths, columns = np.fromfile(file, ">i4", n), np.fromfile(file, ">i4", entries)
        values, head, b = np.fromfile(file, ">f8", entries), np.fromfile(file, ">i4", 2), np.fromfile(file, ">f8")
    assert (kind, head[0], head[1], b.size) == (1211216, 1211214, n, n)
    matrix = np.zeros((n, n))
    matrix[np.repeat(np.arange(n), lengths), columns] = values
    x = np.linalg.solve(matrix, b) * (1.0 + 1e-3 * (words["-pc_type"] == "jacobi"))
    with open(words["-solution"], "wb") as file:
        np.array([1211214, n], ">i4").tofile(file)
        x.astype(">f8").tofile(file)
    print("a line that is no result")
    print(json.dumps(dict(setup_seconds=0.5, seconds=[9.0] + [1.0, 3.0, 2.0][: int(words["-rounds"]) - 1], iterations=4,
                          converged=True, reason="CONVERGED_RTOL", relative=1e-9, processes=1)))
"""


def script(path: Path, text: str) -> Path:
    path.write_text(f"#!{sys.executable}\n{dedent(text)}")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def system(shape: tuple[int, ...] = (3, 4, 2)) -> LinearSystem:
    matrix = lattice_laplacian(shape)
    wanted = np.random.default_rng(3).standard_normal(matrix.shape[0])
    return LinearSystem(matrix, matrix @ wanted, wanted, 1e-8, 100)


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Petsc:
    found = Petsc(script(tmp_path / "fake_petsc", FAKE), "9.9.9", False, np.dtype(">i4"), "Open MPI")
    monkeypatch.setattr(krylov_peers, "find_petsc", lambda: found)
    return found


# ----------------------------------------------------------------------------------------------- files


@pytest.mark.parametrize(("index", "letter"), [(">i4", "i"), (">i8", "q")])
def test_a_system_in_a_file(tmp_path: Path, index: str, letter: str) -> None:
    given = system((2, 2))
    write_system(tmp_path, given.matrix, given.b, np.dtype(index))
    rows = struct.unpack(f">4{letter}4{letter}12{letter}12d2{letter}4d", (tmp_path / "system").read_bytes())
    assert rows[:4] == (1211216, 4, 4, 12)
    assert rows[4:8] == (3, 3, 3, 3)
    dense = np.zeros((4, 4))
    dense[np.repeat(np.arange(4), rows[4:8]), rows[8:20]] = rows[20:32]
    assert np.array_equal(dense, given.matrix.toarray())
    assert rows[32:34] == (1211214, 4)
    assert np.array_equal(rows[34:], given.b)


def test_a_vector_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(struct.pack(">2i3d", 1211214, 3, 1.0, -2.5, 1e300))
    assert read_vector(path, np.dtype(">i4")).tolist() == [1.0, -2.5, 1e300]
    for wrong in (struct.pack(">2i3d", 1211216, 3, 1.0, 2.0, 3.0), struct.pack(">2i2d", 1211214, 3, 1.0, 2.0), b""):
        path.write_bytes(wrong)
        with pytest.raises(FluxloomError, match="no vector of PETSc"):
            read_vector(path, np.dtype(">i4"))


# ---------------------------------------------------------------------------------------------- choices


def test_names_of_peers() -> None:
    assert peers_from_text("", ("petsc",)) == ()
    assert peers_from_text(" petsc,petsc ", ("petsc",)) == ("petsc",)
    with pytest.raises(CaseError, match=r"--peers 'petcs'; did you mean 'petsc'\? \(allowed: petsc\)"):
        peers_from_text("petcs", ("petsc",))


def test_only_benchmarks_with_peers_take_them() -> None:
    known = benches()
    taking = {name for name in known.names() if "peers" in dict(options_of(known[name].options))}
    assert taking == {"cavity", "krylov", "lbm"}
    with pytest.raises(CaseError, match="the benchmark airfoil has no option --peers"):
        build(["bench", "airfoil", "--peers", "petsc"])(args=["bench", "airfoil", "--peers", "petsc"])


def test_peers_work_on_the_cores_of_one_rank() -> None:
    def run(comm: Comm) -> None:
        with pytest.raises(CaseError, match="on one rank"):
            krylov_peers.krylov_peers("petsc", fl.Context("cpu", threads=1, comm=comm), 1, print)

    run_threads(2, run)
    with pytest.raises(CaseError, match="--device cpu"):
        krylov_peers.krylov_peers("petsc", fl.Context("reference"), 1, print)


def test_without_petsc(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("PKG_CONFIG_PATH", raising=False)
    monkeypatch.setenv("PKG_CONFIG_LIBDIR", str(tmp_path))
    with pytest.raises(DeviceUnavailable, match=r"apt install pkg-config libpetsc-real-dev`, which brings hypre"):
        find_petsc()
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(DeviceUnavailable, match=r"pkg-config, which is not here: .*apt install pkg-config"):
        find_petsc()


def test_a_missing_peer_is_said_before_anything_is_measured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("PKG_CONFIG_PATH", raising=False)
    monkeypatch.setenv("PKG_CONFIG_LIBDIR", str(tmp_path))
    told: list[str] = []
    with pytest.raises(DeviceUnavailable, match="libpetsc-real-dev"):
        krylov.KrylovBench().run(KrylovOptions(cells="4", threads=1, peers="petsc"), told.append)
    assert told == []


# -------------------------------------------------------------------------------------------- the table


def test_rows_of_a_peer(fake: Petsc, monkeypatch: pytest.MonkeyPatch) -> None:
    methods = {name: krylov_peers.PETSC_METHODS[name] for name in ("none", "jacobi", "boomeramg")}
    monkeypatch.setattr(krylov_peers, "PETSC_METHODS", methods)
    told: list[str] = []
    measure = krylov_peers.krylov_peers("petsc", fl.Context("cpu", threads=1), 3, told.append)
    assert measure is not None
    none, jacobi, boomeramg = measure(system())
    assert told[0] == "PETSc 9.9.9 without hypre, 1 process of Open MPI"
    assert none["converged"]
    assert none["preconditioner"] == "petsc none"
    assert (none["seconds"], none["seconds_best"], none["first_seconds"], none["setup_seconds"]) == (2.0, 1.0, 9.0, 0.5)
    assert none["ms_per_iteration"] == 500.0
    assert max(none["true_residual"], none["error"]) < 1e-12
    assert not jacobi["converged"]
    assert "claims to have converged to 1e-09, but |b - A x| / |b| is 0.001" in jacobi["error"]
    assert "without hypre" in boomeramg["error"]


def test_the_record_has_both(fake: Petsc, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(krylov, "RECIPES", {"jacobi": Jacobi()})
    monkeypatch.setattr(krylov_peers, "PETSC_METHODS", {"none": ("-pc_type", "none")})
    record = krylov.KrylovBench().run(KrylovOptions(cells="4,3,2", threads=1, rounds=1, peers="petsc"), lambda _: None)
    (ours,), (peer,) = record.metrics["methods"], record.metrics["peers"]
    assert ours["true_residual"] == pytest.approx(ours["relative_residual"], rel=1e-3)
    assert peer["error"] < 1e-12
    assert record.metrics["best_peer"] == "petsc none"
    assert record.metrics["best_peer_over_best"] == pytest.approx(1.0 / record.seconds)


def test_a_program_without_a_result(tmp_path: Path) -> None:
    silent = Petsc(script(tmp_path / "silent", "print('nothing')"), "1", True, np.dtype(">i4"), "Open MPI")
    with pytest.raises(FluxloomError, match="without a result; it said:\nnothing"):
        silent.solve(tmp_path, (), 1, 1, 60.0)
    told = json.dumps({"processes": 3})
    other = Petsc(script(tmp_path / "other", f"print('{told}')"), "1", True, np.dtype(">i4"), "Open MPI")
    with pytest.raises(FluxloomError, match="as 3 processes instead of 1"):
        other.solve(tmp_path, (), 1, 1, 60.0)


# ---------------------------------------------------------------------------------------------- programs


def test_a_program_is_built_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLUXLOOM_CACHE", str(tmp_path))
    source = '#include <stdio.h>\nint main(void) { printf("%d\\n", NUMBER); return 0; }'
    program = build_program(source, "number", ("-DNUMBER=42",))
    made = program.stat().st_mtime_ns
    assert run_program([str(program)], name="number") == ["42"]
    assert build_program(source, "number", ("-DNUMBER=42",)).stat().st_mtime_ns == made
    assert run_program([str(build_program(source, "number", ("-DNUMBER=43",)))], name="number") == ["43"]
    with pytest.raises(CompileError, match="cannot build 'number'"):
        build_program(source, "number", ())


def test_a_program_that_fails(tmp_path: Path) -> None:
    seen: list[str] = []
    with pytest.raises(FluxloomError, match=r"(?s)tool failed with status 3: .*two"):
        run_program([sys.executable, "-c", "print('one\\ntwo'); exit(3)"], name="tool", line=seen.append)
    assert seen == ["one", "two"]
    with pytest.raises(FluxloomError, match=r"tool ended after 0\.2 s, as it took too long"):
        run_program([sys.executable, "-c", "import time; time.sleep(60)"], name="tool", seconds=0.2)
    with pytest.raises(FluxloomError, match="could not be started"):
        run_program([str(tmp_path / "nothing")], name="tool")


def test_a_program_ends_with_this_process(tmp_path: Path) -> None:
    """The child says its number and sleeps; whoever started it is ended by a signal."""
    child = tmp_path / "child"
    code = (
        "import pathlib, sys; from fluxloom_lab.peers.programs import run_program;"
        f"run_program([sys.executable, '-c', 'import os, time; print(os.getpid(), flush=True); time.sleep(60)'],"
        f" name='child', line=pathlib.Path({str(child)!r}).write_text)"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], cwd=Path(fl.__file__).parents[1])
    while not (child.exists() and child.read_text()) and parent.poll() is None:
        time.sleep(0.02)
    parent.terminate()
    assert parent.wait(timeout=30) == 143
    with pytest.raises(ProcessLookupError):
        os.kill(int(child.read_text()), 0)


def test_launchers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "2")
    command, environment = launched(["solve", "-x"], 1, "Open MPI")
    assert command == ["solve", "-x"]
    assert environment["OMP_NUM_THREADS"] == "1"
    assert "OMPI_COMM_WORLD_SIZE" not in environment
    with pytest.raises(CommError, match=r"built with Open MPI: none of mpiexec\.openmpi, .* is here"):
        launched(["solve"], 2, "Open MPI")
    with pytest.raises(CommError, match="an unknown MPI"):
        launched(["solve"], 2, "")
    for name in ("mpiexec", "mpiexec.openmpi", "mpiexec.hydra"):
        script(tmp_path / name, "")
    command, environment = launched(["solve"], 2, "Open MPI")
    assert command == [str(tmp_path / "mpiexec.openmpi"), "--bind-to", "none", "-n", "2", "solve"]
    assert environment["OMPI_ALLOW_RUN_AS_ROOT"] == "1"
    assert launched(["solve"], 3, "MPICH")[0] == [str(tmp_path / "mpiexec.hydra"), "-n", "3", "solve"]


# --------------------------------------------------------------------------------------- PETSc itself


@pytest.mark.parametrize("threads", [pytest.param(1, marks=pytest.mark.long), 2])
def test_petsc(monkeypatch: pytest.MonkeyPatch, threads: int) -> None:
    try:
        find_petsc()
    except DeviceUnavailable as error:
        pytest.skip(str(error))
    monkeypatch.setattr(krylov, "RECIPES", {"jacobi": Jacobi()})
    if threads > 1:
        few = {name: krylov_peers.PETSC_METHODS[name] for name in ("none", "jacobi", "boomeramg")}
        monkeypatch.setattr(krylov_peers, "PETSC_METHODS", few)
    options = KrylovOptions(cells="9,8,7", threads=threads, rounds=1, peers="petsc")
    metrics = krylov.KrylovBench().run(options, lambda _: None).metrics
    (ours,), peers = metrics["methods"], {row["preconditioner"]: row for row in metrics["peers"]}
    assert list(peers) == [f"petsc {name}" for name in krylov_peers.PETSC_METHODS]
    for row in peers.values():
        assert row["converged"]
        assert row["true_residual"] <= 1e-8 * (1 + 1e-6)
        assert row["error"] < 1e-6
    # The same method on the same system, to the same end: the diagonal is the same everywhere.
    assert peers["petsc none"]["iterations"] == peers["petsc jacobi"]["iterations"] == ours["iterations"]
    assert peers["petsc none"]["relative_residual"] == pytest.approx(ours["relative_residual"], rel=1e-3)
    assert peers["petsc boomeramg"]["iterations"] < ours["iterations"] / 2
