"""What the environment says about launchers, and what the MPI library says about the memory of GPUs."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

from fluxloom.comm.launchers import Launcher, find_launcher, without_launcher
from fluxloom.comm.mpi import device_memory_support

HYDRA = {"PMI_RANK": "1", "PMI_SIZE": "3", "PMI_FD": "9", "MPI_LOCALNRANKS": "3", "MPI_LOCALRANKID": "1"}
OPEN_MPI = {"OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_RANK": "0", "PMIX_RANK": "0"}
SLURM_STEP = {"SLURM_NTASKS": "8", "SLURM_PROCID": "3", "SLURM_STEP_ID": "0", "SLURM_STEP_NUM_TASKS": "8"}


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, None),
        ({"SLURM_NTASKS": "8", "SLURM_PROCID": "0"}, None),  # a batch script: nothing was launched
        ({"SLURM_STEP_NUM_TASKS": "1"}, None),  # a shell inside an allocation
        (SLURM_STEP, ("srun of Slurm", 8, "")),
        (HYDRA, ("mpiexec of MPICH or Intel MPI", 3, "MPICH")),
        (HYDRA | SLURM_STEP, ("mpiexec of MPICH or Intel MPI", 3, "MPICH")),  # mpiexec reaches nodes by srun
        (OPEN_MPI, ("mpiexec of Open MPI", 4, "Open MPI")),
        (SLURM_STEP | {"PMI_RANK": "0", "PMI_SIZE": "8"}, ("srun of Slurm", 8, "")),
        ({"PMI_RANK": "0", "PMI_SIZE": "2"}, ("a launcher that speaks PMI", 2, "")),
        ({"PMI_RANK": "0"}, ("a launcher that speaks PMI", 0, "")),
        ({"PMIX_RANK": "0"}, ("a launcher that speaks PMIx", 0, "")),
        ({"PMIX_RANK": "5"}, ("a launcher that speaks PMIx", 6, "")),
        ({"MV2_COMM_WORLD_SIZE": "2", "PMI_SIZE": "2", "PMI_RANK": "0"}, ("mpiexec of MVAPICH", 2, "MPICH")),
    ],
)
def test_find_launcher(environment: dict[str, str], expected: tuple[str, int, str] | None) -> None:
    assert find_launcher(environment) == (Launcher(*expected) if expected else None)


def test_without_launcher() -> None:
    kept = {"PATH": "/bin", "SLURM_JOB_NODELIST": "n[1-2]", "OMP_NUM_THREADS": "2"}
    assert without_launcher(HYDRA | OPEN_MPI | kept | {"FLUXLOOM_RANKS": "cpu", "FLUXLOOM_RANKS_STATUS": "x"}) == kept
    settings = {"OMPI_MCA_btl": "self,vader", "PMIX_MCA_gds": "hash", "PRTE_MCA_x": "1"}
    assert without_launcher(HYDRA | settings) == settings


@pytest.mark.parametrize(
    ("source", "version", "environment", "expected"),
    [
        ("int unrelated(void) { return 1; }", "Some MPI 1.0", {}, False),
        ("int MPIX_Query_cuda_support(void) { return 1; }", "Open MPI v5.0.6", {}, True),
        ("int MPIX_Query_cuda_support(void) { return 0; }", "Open MPI v5.0.6", {}, False),
        ("int MPIX_Query_cuda_support(void) { return 1; }", "MPICH Version: 4.2", {"MPIR_CVAR_ENABLE_GPU": "0"}, False),
        ("int MPIX_GPU_query_support(int t, int *f) { *f = t == 0; return 0; }", "MPICH Version: 4.2", {}, True),
        ("int MPIX_GPU_query_support(int t, int *f) { *f = 0; return 0; }", "MPICH Version: 4.2", {}, False),
        ("int MPIX_GPU_query_support(int t, int *f) { *f = 1; return 5; }", "MPICH Version: 4.2", {}, False),
        ("int MPIX_Query_cuda_support(void) { return 1; }", "MPI VERSION : CRAY MPICH version 8", {}, False),
        ("int MPIX_Query_cuda_support(void) { return 1; }", "MPI VERSION : CRAY MPICH version 8",
         {"MPICH_GPU_SUPPORT_ENABLED": "1"}, True),
    ],
)  # fmt: skip
def test_device_memory_support(
    source: str, version: str, environment: dict[str, str], expected: bool, tmp_path: Path, monkeypatch
) -> None:
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("no C compiler for a library that answers")
    for name in ("MPIR_CVAR_ENABLE_GPU", "MPICH_GPU_SUPPORT_ENABLED"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    (tmp_path / "mpi.c").write_text(source)
    library = tmp_path / "libmpi.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, tmp_path / "mpi.c"], check=True)
    mpi = SimpleNamespace(__file__=str(library), Get_library_version=lambda: version)
    assert device_memory_support(mpi) is expected
