"""What the cuda device says where something is missing or does not fit together; NVRTC where it is installed."""

from __future__ import annotations

import os
import sys
from importlib import resources
from pathlib import Path

import pytest

from fluxloom.core.errors import DeviceUnavailable
from fluxloom.device.cuda import support as cuda_support
from fluxloom.device.cuda.device import CudaDevice
from fluxloom.device.cuda.errors import error_key, gibibytes, is_fatal
from fluxloom.device.cuda.program import compile_options, compile_text
from fluxloom.device.cuda.support import choose_architecture, release
from tests.unit.device.cuda_fake import CUDARuntimeError, FakeCupy


@pytest.fixture(autouse=True)
def cache_of_cupy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Keep the environment as it is."""
    monkeypatch.setenv("CUPY_CACHE_DIR", str(tmp_path))


@pytest.fixture
def cupy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> FakeCupy:
    fake = FakeCupy()
    monkeypatch.setitem(sys.modules, "cupy", fake)
    monkeypatch.setenv("FLUXLOOM_CACHE", str(tmp_path / "cache"))
    return fake


def refused(number: int = 0) -> str:
    """Return why there is no device."""
    with pytest.raises(DeviceUnavailable) as caught:
        CudaDevice(number)
    return str(caught.value)


@pytest.mark.parametrize(("driver", "extra"), [(0, "cuda"), (12080, "cuda"), (13000, "cuda13")])
def test_no_cupy(monkeypatch: pytest.MonkeyPatch, driver: int, extra: str) -> None:
    def find(name: str) -> None:
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    monkeypatch.setattr("fluxloom.core.packages.import_module", find)
    monkeypatch.setattr(cuda_support, "_driver_version", lambda: driver)
    assert refused() == f"the cuda device needs cupy, which is not installed: pip install 'fluxloom[{extra}]'"


def test_broken_cupy(monkeypatch: pytest.MonkeyPatch) -> None:
    reason = "libcublas.so.12: cannot open shared object file"

    def fail(_name: str) -> None:
        raise ImportError(f"\n====\nFailed to import CuPy.\n\nOriginal error:\n  ImportError: {reason}\n====\n")

    monkeypatch.setattr("fluxloom.core.packages.import_module", fail)
    assert f"CuPy is installed but cannot be imported (ImportError: {reason})" in refused()
    reason = "libcuda.so.1: cannot open shared object file"
    assert "no driver is loaded" in refused()
    monkeypatch.setattr("fluxloom.core.packages.import_module", lambda _name: 1 / 0)
    assert "cannot be imported (division by zero)" in refused()


def test_old_cupy(cupy: FakeCupy) -> None:
    cupy.__version__ = "12.3.0"
    assert refused().startswith("CuPy 12.3.0 is too old for the cuda device: pip install --upgrade 'fluxloom[cuda")


def test_no_driver(cupy: FakeCupy) -> None:
    cupy.driver_version = 0
    assert "no driver is loaded: install the driver" in refused()


def test_old_driver(cupy: FakeCupy) -> None:
    cupy.driver_version = 12040
    cupy.count = CUDARuntimeError(
        "cudaErrorInsufficientDriver: CUDA driver version is insufficient for CUDA runtime version"
    )
    assert refused() == (
        "the NVIDIA driver supports CUDA 12.4, and CuPy was built for CUDA 13.2: update the driver, or use CuPy for "
        "CUDA 12 (pip uninstall cupy-cuda13x, then pip install 'fluxloom[cuda]')"
    )
    cupy.driver_version = 11040
    assert refused().endswith("update the driver")


def test_driver_that_fails(cupy: FakeCupy) -> None:
    cupy.count = CUDARuntimeError("cudaErrorSystemNotReady: system not yet initialized")
    assert "cannot be used (cudaErrorSystemNotReady: system not yet initialized): see whether nvidia-smi" in refused()


def test_no_gpu(cupy: FakeCupy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    cupy.count = 0
    assert refused() == "the NVIDIA driver sees no GPU: see what nvidia-smi lists"
    cupy.count = CUDARuntimeError("cudaErrorNoDevice: no CUDA-capable device is detected")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert "sees no GPU (CUDA_VISIBLE_DEVICES is '')" in refused()


def test_wrong_number(cupy: FakeCupy) -> None:
    assert refused(2) == "there is no GPU 2: this process sees 0 (Fake 0), 1 (Fake 1)"
    assert "there is no GPU -1" in refused(-1)
    assert CudaDevice(1).number == 1


def test_compiler(cupy: FakeCupy) -> None:
    cupy.nvrtc_version = (12, 8)
    assert "built for CUDA 13 but finds the run-time compiler of CUDA 12" in refused()

    def missing() -> None:
        raise RuntimeError("libnvrtc.so.13 cannot be loaded")

    cupy.cuda.nvrtc.getVersion = missing
    assert "does not find the run-time compiler of CUDA 13 (NVRTC): pip install nvidia-cuda-nvrtc," in refused()
    cupy.build_version = 12080
    assert "pip install nvidia-cuda-nvrtc-cu12," in refused()


def test_old_gpu(cupy: FakeCupy) -> None:
    cupy.capability = "70"
    assert "GPU 0 has compute capability 7.0, and the run-time compiler of CUDA 13 begins at 7.5" in refused()


def test_busy_gpu(cupy: FakeCupy) -> None:
    def busy(non_blocking: bool) -> None:
        raise CUDARuntimeError("cudaErrorDevicesUnavailable: CUDA-capable device(s) is/are busy or unavailable")

    cupy.cuda.Stream = busy
    assert "GPU 0 cannot be used (cudaErrorDevicesUnavailable" in refused()


def test_architectures() -> None:
    known = (75, 80, 86, 89, 90, 100, 103, 120)
    assert choose_architecture(90, known) == "sm_90"
    assert choose_architecture(87, known) == "sm_86"
    assert choose_architecture(120, (75, 80, 90)) == "compute_90"
    assert choose_architecture(70, known) is None
    assert [release(version) for version in (12040, 13000, 12080)] == ["12.4", "13.0", "12.8"]


def test_error_names() -> None:
    for text in ("CUDA_ERROR_ILLEGAL_ADDRESS: an illegal", "cudaErrorIllegalAddress: an illegal"):
        assert error_key(RuntimeError(text)) == "illegaladdress"
        assert is_fatal(RuntimeError(text))
    assert not is_fatal(RuntimeError("cudaErrorMemoryAllocation: out of memory"))
    assert [gibibytes(n) for n in (3 << 30, 5 << 20)] == ["3.00 GiB", "5.0 MiB"]


def test_cache_of_cupy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """CuPy's own kernels go below our cache, where the user has chosen one and CuPy is not loaded yet."""
    share = cuda_support._share_cache
    monkeypatch.delitem(sys.modules, "cupy", raising=False)
    monkeypatch.setenv("FLUXLOOM_CACHE", str(tmp_path / "named"))
    share()
    assert os.environ["CUPY_CACHE_DIR"] == str(tmp_path)
    monkeypatch.delenv("CUPY_CACHE_DIR")
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "cupy", sys)
        share()
    assert "CUPY_CACHE_DIR" not in os.environ
    share()
    assert os.environ.pop("CUPY_CACHE_DIR") == str(tmp_path / "named" / "cupy")
    monkeypatch.delenv("FLUXLOOM_CACHE")
    share()
    assert "CUPY_CACHE_DIR" not in os.environ


# ----------------------------------------------------------------------------------- the real compiler

KERNEL = """extern "C" __global__ void fl_a(float *a, double *b, long long n)
{
    a[n] = a[0] * 1.5f;
    b[n] = b[0] * b[1] + b[2];
}
"""


@pytest.fixture(scope="module")
def nvrtc():
    """Return CuPy's NVRTC; no GPU is needed to compile."""
    cupy = pytest.importorskip("cupy")
    try:
        cupy.cuda.nvrtc.getVersion()
    except (RuntimeError, ImportError, OSError) as error:
        pytest.skip(f"NVRTC cannot be loaded: {error}")
    return cupy.cuda.nvrtc


@pytest.mark.parametrize("name", ["runtime.cu", "bandwidth.cu", "peer.cu"])
@pytest.mark.parametrize("architecture", ["sm_90", "compute_80"])
def test_our_kernels_compile(nvrtc, name: str, architecture: str) -> None:
    text = resources.files("fluxloom.device.cuda").joinpath(name).read_text()
    binary, log = compile_text(nvrtc, text, compile_options(architecture, True), name)
    assert binary, log
    assert not log.strip()
    assert binary.startswith(b"\x7fELF") == architecture.startswith("sm")


def test_arithmetic_is_exact(nvrtc) -> None:
    """Subnormal numbers are kept, and contraction happens only where it is allowed."""
    for contract in (True, False):
        binary, log = compile_text(nvrtc, KERNEL, compile_options("compute_90", contract))
        assert binary, log
        assert b".ftz" not in binary
        assert (b"fma.rn.f64" in binary) == contract


def test_errors_show_lines(nvrtc) -> None:
    binary, log = compile_text(nvrtc, KERNEL.replace("b[2]", "c"), compile_options("sm_90", True), "chain.cu")
    assert not binary
    assert 'chain.cu(4): error: identifier "c" is undefined' in log
    assert "b[n] = b[0] * b[1] + c;" in log
    binary, log = compile_text(nvrtc, KERNEL, ("--gpu-architecture=sm_1",))
    assert not binary
    assert "gpu-architecture" in log
