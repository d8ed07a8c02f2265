"""What is said about GPUs and OpenCL devices, with drivers and commands that are made up."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fluxloom.core.errors import DeviceUnavailable
from fluxloom.core.registry import Registry
from fluxloom.device.opencl.platform import Candidate
from fluxloom.machine import drivers, gpus
from fluxloom.machine.gpus import Survey, compiler_survey, cuda_survey, opencl_survey

Call = Callable[..., SimpleNamespace]
Machine = Callable[..., None]

ROOT = Path(__file__).resolve().parents[3]
GIB = 1 << 30
H100 = {"name": "NVIDIA H100", "capability": "9.0", "total": 80 * GIB, "free": 79 * GIB}
POCL = {"name": "cpu-skylake", "platform": "Portable Computing Language", "platform_version": "OpenCL 3.0 PoCL 3.1",
        "kind": "CPU", "version": "OpenCL 3.0 PoCL HSTR: x", "units": 2, "memory": 4 * GIB, "fp64": True,
        "int64_atomics": True}  # fmt: skip
ARC = POCL | {"name": "Arc", "platform": "Intel", "platform_version": "OpenCL 3.0", "kind": "GPU", "fp64": False,
              "version": "OpenCL 3.0 NEO"}  # fmt: skip
OLD = {"name": "old", "platform": "Intel", "platform_version": "OpenCL 3.0", "error": "it does not start"}


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    """Return a function that sets what is installed, what the drivers answer and what commands say."""

    def make(packages: Sequence[str] = (), commands: Mapping[str, str] | None = None, **answers: Any) -> None:
        said = dict(commands or {})

        def command_says(command: Sequence[str], *_: object) -> str:
            query = next((word for word in command if word.startswith("--")), "")
            return said.get(f"{command[0]} {query}".strip(), said.get(command[0], ""))

        def python_says(arguments: Sequence[str], **_: object) -> str:
            answer = answers.get(arguments[-1])
            return answer if isinstance(answer, str) else f"noise\n{json.dumps(answer)}" if answer is not None else ""

        versions = dict.fromkeys(packages, "1.2")
        monkeypatch.setattr(gpus, "package_version", lambda name: versions.get(name, ""))
        monkeypatch.setattr(gpus, "find_spec", lambda _name: None)
        monkeypatch.setattr(gpus.shutil, "which", lambda name: name if any(c.startswith(name) for c in said) else None)
        monkeypatch.setattr(gpus, "command_says", command_says)
        monkeypatch.setattr(gpus, "python_says", python_says)

    return make


# ------------------------------------------------------------------------------------------------- CUDA


def test_cuda_ready(machine: Machine) -> None:
    smi = {"nvidia-smi --query-gpu=driver_version": "580.1\n580.1", "nvcc": "Cuda compilation tools, release 13.0, V1"}
    machine(["cupy-cuda13x"], smi, cuda={"driver": 13000, "runtime": 13020, "nvrtc": "13.5", "gpus": [H100, H100]})
    found = cuda_survey()
    assert found.text == "cupy-cuda13x 1.2, driver 580.1 (CUDA 13.0), runtime 13.2, NVRTC 13.5, nvcc 13.0"
    assert (found.problem, found.advice, found.default) == ("", "", "cuda:0")
    assert [name for name, _ in found.devices] == ["cuda:0", "cuda:1"]
    assert found.devices[0][1] == "NVIDIA H100, 80.0 GiB (79.0 GiB free), compute capability 9.0"


@pytest.mark.parametrize(
    ("packages", "answer", "problem", "advice"),
    [
        (["cupy-cuda13x"], {"gpus": [], "error": "the driver is too old (12.4: old): update it, or: not"},
         "the driver is too old (12.4: old)", "update it, or: not"),
        (["cupy-cuda13x"], {"gpus": [], "error": "it is broken"}, "it is broken", ""),
        (["cupy-cuda13x", "cupy-cuda12x"], {"driver": 13000, "runtime": 13000, "nvrtc": "13", "gpus": [H100]},
         "cupy-cuda13x and cupy-cuda12x are in each other's way",
         "pip uninstall cupy-cuda13x cupy-cuda12x, then install the one for the driver"),
        (["cupy-cuda12x"], None, "CuPy does not answer",
         "see what 'python -c \"import cupy; cupy.show_config()\"' says"),
    ],
)  # fmt: skip
def test_cuda_problems(machine: Machine, packages: list[str], answer: Any, problem: str, advice: str) -> None:
    machine(packages, cuda=answer)
    found = cuda_survey()
    assert (found.problem, found.advice) == (problem, advice)


def test_old_driver_in_one_line(machine: Machine) -> None:
    error = "the NVIDIA driver supports CUDA 12.4, and CuPy was built for CUDA 13.2: update the driver"
    machine(["cupy-cuda13x"], cuda={"driver": 12040, "runtime": 13020, "gpus": [], "error": error})
    assert cuda_survey() == Survey(
        "cupy-cuda13x 1.2, driver of CUDA 12.4, runtime 13.2, no NVRTC",
        "the NVIDIA driver supports CUDA 12.4, and CuPy was built for CUDA 13.2", "update the driver", (), "cuda:0",
    )  # fmt: skip


@pytest.mark.parametrize(("version", "extra"), [("12.8", "cuda"), ("13.0", "cuda13")])
def test_gpu_without_cupy(machine: Machine, version: str, extra: str) -> None:
    said = {
        "nvidia-smi --query-gpu=name,memory.total,memory.free,compute_cap": "NVIDIA A100, 81920, 81000, 8.0",
        "nvidia-smi": f"| NVIDIA-SMI 580.1   Driver Version: 580.1   CUDA Version: {version}  |",
        "nvidia-smi --query-gpu=driver_version": "580.1",
    }
    machine(commands=said)
    found = cuda_survey()
    assert found.text == f"driver 580.1 (CUDA {version})"
    assert (found.problem, found.advice) == ("CuPy is not installed", f"pip install 'fluxloom[{extra}]'")
    assert found.devices == (("cuda:0", "NVIDIA A100, 80.0 GiB (79.1 GiB free), compute capability 8.0"),)


def test_nothing_of_cuda(machine: Machine) -> None:
    machine()
    found = cuda_survey()
    assert found.problem == "no NVIDIA driver, and CuPy is not installed"
    assert "fluxloom[cuda]" in found.advice
    assert "fluxloom[cuda13]" in found.advice
    assert not found.devices


def test_compilers(machine: Machine) -> None:
    machine(commands={"nvcc": "release 12.4, V12"})
    assert compiler_survey() == Survey("nvcc 12.4")
    machine(compiler={"nvrtc": "13.5"})
    assert compiler_survey() == Survey("NVRTC 13.5")
    machine(compiler={"error": "no module"})
    found = compiler_survey()
    assert found.problem == "neither nvcc nor NVRTC"
    assert "nvidia-cuda-nvrtc" in found.advice


# ----------------------------------------------------------------------------------------------- OpenCL


def test_opencl_ready(machine: Machine) -> None:
    machine(["pyopencl"], opencl={"devices": [POCL, ARC, OLD], "default": 1})
    found = opencl_survey()
    assert found.text == "pyopencl 1.2: Portable Computing Language (OpenCL 3.0 PoCL 3.1); Intel (OpenCL 3.0)"
    assert (found.problem, found.default) == ("", "opencl:1")
    assert dict(found.devices) == {
        "opencl:0": "cpu-skylake (CPU, Portable Computing Language, OpenCL 3.0), 2 units, 4.0 GiB, "
                    "fp64 yes, int64 atomics yes",
        "opencl:1": "Arc (GPU, Intel, OpenCL 3.0), 2 units, 4.0 GiB, fp64 no, int64 atomics yes",
        "opencl:2": "old (Intel): it does not start",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("packages", "answer", "problem", "advice"),
    [
        ([], None, "pyopencl is not installed", "pip install 'fluxloom[opencl]'"),
        (["pyopencl"], {"error": "no platform: install one (apt: pocl)"}, "no platform", "install one (apt: pocl)"),
        (["pyopencl"], "not JSON", "asking the OpenCL drivers ended the process", "POCL_CACHE_DIR"),
    ],
)
def test_opencl_problems(machine: Machine, packages: list[str], answer: Any, problem: str, advice: str) -> None:
    machine(packages, opencl=answer)
    found = opencl_survey()
    assert found.problem == problem
    assert advice in found.advice
    assert not found.devices


# ---------------------------------------------------------------------------------------------- drivers


def test_cupy_is_asked(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    class Device:
        def __init__(self, number: int) -> None:
            self.number = number

        def __enter__(self) -> None: ...

        def __exit__(self, *_: object) -> None: ...

    runtime = SimpleNamespace(
        driverGetVersion=lambda: 13000, runtimeGetVersion=lambda: 13020, getDeviceCount=lambda: 1,
        getDeviceProperties=lambda _number: {"name": b"NVIDIA H100", "major": 9, "minor": 0},
        memGetInfo=lambda: (79 * GIB, 80 * GIB),
    )  # fmt: skip
    nvrtc = SimpleNamespace(getVersion=lambda: (13, 5))
    cupy = SimpleNamespace(cuda=SimpleNamespace(runtime=runtime, Device=Device, nvrtc=nvrtc))
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    monkeypatch.setattr("fluxloom.device.cuda.support.open_cuda", lambda _number: cupy)
    drivers.main(["cuda"])
    assert json.loads(capsys.readouterr().out) == {
        "driver": 13000, "runtime": 13020, "nvrtc": "13.5", "gpus": [H100],
    }  # fmt: skip

    def fails(*_: object) -> Any:
        raise RuntimeError("cudaErrorNoDevice: no CUDA-capable device is detected\nmore")

    def refuses(*_: object) -> Any:
        raise DeviceUnavailable("no GPU: buy one")

    runtime.getDeviceCount = nvrtc.getVersion = fails
    assert drivers.cuda() == {
        "driver": 13000, "runtime": 13020, "gpus": [],
        "error": "cudaErrorNoDevice: no CUDA-capable device is detected",
    }  # fmt: skip
    monkeypatch.setattr("fluxloom.device.cuda.support.open_cuda", refuses)
    assert drivers.cuda()["error"] == "no GPU: buy one"
    monkeypatch.setitem(sys.modules, "cupy", None)
    assert drivers.cuda() == {"gpus": [], "error": "no GPU: buy one"}


def test_pyopencl_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    handle = SimpleNamespace(platform=SimpleNamespace(version="OpenCL 3.0 PoCL 3.1  Linux, RELOC"))
    intel = SimpleNamespace(platform=SimpleNamespace(version="OpenCL 3.0"))
    found = [
        Candidate(0, POCL["platform"], POCL["name"], False, handle),
        Candidate(1, ARC["platform"], ARC["name"], True, intel),
        Candidate(2, OLD["platform"], OLD["name"], False, intel),
    ]

    def device(choice: str) -> SimpleNamespace:
        if choice == "2":
            raise DeviceUnavailable("it does not start")
        known = (POCL, ARC)[int(choice)]
        return SimpleNamespace(
            is_cpu=choice == "0", version=known["version"], compute_units=2, memory=lambda: (0, 4 * GIB),
            fp64=known["fp64"], int64_atomics=True,
        )  # fmt: skip

    def refuses(*_: object) -> Any:
        raise DeviceUnavailable("no platform: install one")

    where = "fluxloom.device.opencl.platform"
    monkeypatch.setattr(f"{where}.import_pyopencl", lambda: None)
    monkeypatch.setattr(f"{where}.candidates", lambda _module: found)
    monkeypatch.setattr("fluxloom.device.opencl.device.OpenClDevice", device)
    assert drivers.opencl() == {"devices": [POCL, ARC, OLD], "default": 1}  # the first GPU
    monkeypatch.setattr(f"{where}.candidates", refuses)
    assert drivers.opencl() == {"error": "no platform: install one"}


@pytest.mark.parametrize("question", ["cuda", "opencl", "compiler"])
def test_drivers_run_as_a_program(question: str) -> None:
    command = [sys.executable, "-m", "fluxloom.machine.drivers", question]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120, env=environment)
    assert isinstance(json.loads(done.stdout.splitlines()[-1]), dict)


@pytest.mark.opencl
def test_a_platform_is_found() -> None:
    found = opencl_survey()
    assert found.problem == ""
    assert found.devices[0][0] == "opencl:0"
    assert found.default in dict(found.devices)


@pytest.mark.nvcc
def test_a_compiler_of_cuda_is_found() -> None:
    assert any(name in compiler_survey().text for name in ("nvcc", "NVRTC"))


# ---------------------------------------------------------------------------------- the verbs that show it

TWO_GPUS = Survey("cupy-cuda13x 1.2", devices=(("cuda:0", "first"), ("cuda:1", "second")), default="cuda:0")
NO_OPENCL = Survey("pyopencl 1.2", "no OpenCL platform", "a driver")


@pytest.fixture
def surveyed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let there be two GPUs and no OpenCL, and one device of another package."""
    registry: Registry[Any] = Registry("device")
    for name in ("cpu", "cuda", "opencl", "other", "reference"):
        registry.register(name, None)
    described = SimpleNamespace(device=SimpleNamespace(describe=lambda: "hardware"))
    monkeypatch.setattr("fluxloom.machine.probe.device_registry", lambda: registry)
    monkeypatch.setattr("fluxloom.machine.probe.Context", lambda _name: described)
    monkeypatch.setattr("fluxloom.machine.probe.cuda_survey", lambda: TWO_GPUS)
    monkeypatch.setattr("fluxloom.machine.probe.opencl_survey", lambda: NO_OPENCL)


@pytest.mark.usefixtures("surveyed")
def test_devices(fluxloom: Call) -> None:
    assert [line.split(None, 2) for line in fluxloom("devices").out.splitlines()] == [
        ["yes", "cpu", "hardware"],
        ["yes", "reference", "hardware"],
        ["yes", "cuda", "cuda:0 unless a number says otherwise (cupy-cuda13x 1.2)"],
        ["yes", "cuda:0", "first"],
        ["yes", "cuda:1", "second"],
        ["no", "opencl", "no OpenCL platform -> a driver"],
        ["yes", "other", "hardware"],
    ]


@pytest.mark.usefixtures("surveyed")
def test_doctor(fluxloom: Call) -> None:
    lines = [" ".join(line.split()) for line in fluxloom("doctor", "--no-bandwidth").out.splitlines()]
    start = lines.index("ok CUDA cupy-cuda13x 1.2")
    assert lines[start + 1 : start + 5] == [
        "ok cuda:0 first",
        "ok cuda:1 second",
        "absent OpenCL pyopencl 1.2: no OpenCL platform",
        "-> a driver",
    ]


# ------------------------------------------------------------------------------- before the tests: PoCL


def fake(folder: Path, name: str, text: str) -> None:
    """Write a command."""
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


@pytest.mark.parametrize(
    ("tools", "pocl", "said"),
    [
        ({"python": "exit 1"}, "yes", "OpenCL: pyopencl is not installed; tests marked opencl will be skipped"),
        ({"python": "exit 0"}, "yes", ""),
        ({}, "no", "OpenCL: no platform, and POCL=no; tests marked opencl will be skipped"),
        ({}, "yes", "OpenCL: no platform; tests marked opencl will be skipped unless a driver is installed"),
        ({"apt-get": "exit 100"}, "yes", "OpenCL: pocl-opencl-icd did not install; tests"),
        ({"apt-get": "exit 0"}, "yes", "OpenCL: pocl-opencl-icd did not install; tests"),  # yet there is no platform
        ({"apt-get": 'echo "$@" >>"$LOG"; touch "$LOG.done"'}, "yes", "OpenCL: installed pocl-opencl-icd"),
        ({"apt-get": "exit 0", "id": "echo 1000", "sudo": "exit 1"}, "yes", "OpenCL: no platform; tests marked"),
        ({"apt-get": 'touch "$LOG.done"', "id": "echo 1000", "sudo": 'shift; "$@"'}, "yes", "OpenCL: installed pocl"),
    ],
)  # fmt: skip
def test_pocl_is_installed_where_allowed(tmp_path: Path, tools: dict[str, str], pocl: str, said: str) -> None:
    log = tmp_path / "log"
    # pyopencl is there; it finds a platform once "apt-get" has done its work
    platform_later = 'case "$2" in *get_platforms*) test -e "$LOG.done";; *) exit 0;; esac'
    for name, text in ({"python": platform_later, "id": "echo 0", "env": 'shift; "$@"'} | tools).items():
        fake(tmp_path, name, text)
    fake(tmp_path, "touch", f'exec {shutil.which("touch")} "$@"')
    environment = {"PATH": str(tmp_path), "LOG": str(log), "POCL": pocl}
    sh = "/bin/sh"
    done = subprocess.run(
        [sh, str(ROOT / "tests" / "pocl.sh"), "python"], capture_output=True, text=True, env=environment, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(said)
    assert len(done.stdout.splitlines()) == (1 if said else 0)
    if log.exists():
        assert log.read_text().endswith("install -y --no-install-recommends ocl-icd-libopencl1 pocl-opencl-icd\n")


def test_pocl_has_a_folder() -> None:
    """Where the home cannot be written, the tests name a folder to PoCL."""
    program = (
        "import os, types\nfrom tests.conftest import pytest_configure as configure\n"
        "os.environ.pop('POCL_CACHE_DIR', None); os.environ.pop('XDG_CACHE_HOME', None)\n"
        "option = types.SimpleNamespace(markexpr='')\n"
        "ends = []; config = types.SimpleNamespace(add_cleanup=ends.append, option=option)\n"
        "os.environ['HOME'] = '/tmp'; configure(config); assert 'POCL_CACHE_DIR' not in os.environ\n"
        "os.environ['HOME'] = '/no/such/folder'; configure(config); folder = os.environ['POCL_CACHE_DIR']\n"
        "assert os.path.isdir(folder); ends[0](); assert not os.path.isdir(folder)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-c", program], env=environment, check=True, timeout=120)
