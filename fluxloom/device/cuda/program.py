"""Generated CUDA: compiled by NVRTC, kept in the cache of compiled code, loaded into the GPU.

CuPy's own `cupy.RawModule` is not used for compiling: it always flushes subnormal float32 numbers to zero
(``-ftz=true`` comes last in its options), which no other device does.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import Any

from fluxloom.core.activity import activity
from fluxloom.core.errors import CompileError
from fluxloom.device.base import Program, Resources
from fluxloom.device.cuda.errors import is_fatal
from fluxloom.toolchain import Cache, open_cache
from fluxloom.toolchain.build import nameless, renaming
from fluxloom.toolchain.cache import content_digest

__all__ = ["CudaProgram", "compile_options", "compile_text", "failing_kernel", "load_program"]

_LAYOUT = "1"  # of cache entries; another number makes old entries void
_NAME_LENGTH = 60
_DIGITS = 40
"""Of the digest, in the names of entries."""
_LOG_LINES = 40
_HALF = "cuda_fp16.h"


class CudaProgram(Program):
    """A module on the GPU.

    Attributes
    ----------
    compiled, seconds
        Whether it had to be compiled now, and how long that took.
    """

    def __init__(
        self, cupy: Any, module: Any, symbols: Mapping[str, str], *, compiled: bool, seconds: float
    ) -> None:
        self._driver = cupy.cuda.driver
        self._functions: dict[str, Any] = {}
        for symbol, inside in symbols.items():
            try:
                self._functions[symbol] = module.get_function(inside)
            except self._driver.CUDADriverError as error:
                if is_fatal(error):
                    raise
                raise CompileError(f'{symbol} is no kernel (extern "C" __global__) of the text: {error}') from error
        self._limits: dict[str, int] = {}
        self.vectorised: Mapping[int, str] = MappingProxyType({})
        self.compiled = compiled
        self.seconds = seconds

    def function(self, symbol: str) -> int:
        """Return the handle of a kernel.

        Raises
        ------
        CompileError
            When the program was compiled without naming it.
        """
        try:
            return int(self._functions[symbol].ptr)
        except KeyError:
            known = ", ".join(self._functions)
            raise CompileError(f"the program has no kernel {symbol!r} (it has {known})") from None

    def resources(self, symbol: str) -> Resources:
        """Return registers and local bytes a work item, and shared bytes a group."""
        driver = self._driver
        return Resources(
            registers=self._attribute(symbol, driver.CU_FUNC_ATTRIBUTE_NUM_REGS),
            local=self._attribute(symbol, driver.CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES),
            shared=self._attribute(symbol, driver.CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES),
        )

    def most_threads(self, symbol: str) -> int:
        """Return the largest group that the kernel can run in."""
        if symbol not in self._limits:
            self._limits[symbol] = self._attribute(symbol, self._driver.CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)
        return self._limits[symbol]

    def _attribute(self, symbol: str, attribute: int) -> int:
        return int(self._driver.funcGetAttribute(attribute, self.function(symbol)))


@dataclass(frozen=True)
class _Job:
    """One text to compile, and where it goes."""

    text: str
    symbols: tuple[str, ...]
    name: str
    options: tuple[str, ...]
    version: str
    cache: Cache
    digest: str

    @property
    def stem(self) -> str:
        """Name of the entry's files, without their endings."""
        return f"{self.name}-{self.digest[:_DIGITS]}"

    @cached_property
    def alias(self) -> str:
        """Digest of the text without its names."""
        return content_digest([_LAYOUT, "cuda", nameless(self.text)[0], self.version, *self.options])


def load_program(
    cupy: Any, architecture: str, text: str, symbols: Sequence[str], name: str, *, contract: bool = True
) -> CudaProgram:
    """Compile a translation unit, or find it in the cache, and load it into the current GPU.

    Parameters
    ----------
    cupy
        The package.
    architecture
        ``sm_90``, or ``compute_90`` for code that the driver translates.
    text, symbols, name
        The source, its kernels, and what it is for files and messages.
    contract
        Whether ``a * b + c`` may become one instruction.

    Raises
    ------
    CompileError
        When the compiler refuses the text, which is kept, or the driver the result.
    """
    start = time.perf_counter()
    job = _job(cupy, architecture, text, symbols, name, contract)
    own = {symbol: symbol for symbol in symbols}
    binary, names, compiled = _cached(job, job.stem), own, False
    if binary is None:
        with activity("compiling", name, again=True), job.cache.lock(job.alias):
            binary = _cached(job, job.stem)
            if binary is None:
                binary, names = _twin(job)
            if binary is None:
                binary, names, compiled = _build(cupy, job), own, True
    module = cupy.cuda.function.Module()
    try:
        module.load(binary)
        return CudaProgram(cupy, module, names, compiled=compiled, seconds=time.perf_counter() - start)
    except cupy.cuda.driver.CUDADriverError as error:
        if is_fatal(error):
            raise
        raise CompileError(
            f"the driver cannot load {name!r}, compiled for {architecture}: {error}",
            source_path=str(job.cache.find(f"{job.stem}.cu") or ""),
        ) from error


def compile_options(architecture: str, contract: bool) -> tuple[str, ...]:
    """Return the options of the run-time compiler."""
    return (
        "--std=c++17",
        f"--gpu-architecture={architecture}",
        f"--fmad={'true' if contract else 'false'}",
        "--device-as-default-execution-space",
    )


def compile_text(nvrtc: Any, text: str, options: Sequence[str], title: str = "unit.cu") -> tuple[bytes, str]:
    """Run NVRTC.

    Parameters
    ----------
    nvrtc
        CuPy's module of that name.
    text, options
        Source and options; machine code comes back for ``sm_*``, PTX text for ``compute_*``.
    title
        Name of the source in messages.

    Returns
    -------
    binary, log
        The binary is empty when the compiler refused the text.
    """
    program = nvrtc.createProgram(text, title, (), ())
    try:
        try:
            nvrtc.compileProgram(program, tuple(options))
        except nvrtc.NVRTCError as error:
            return b"", str(nvrtc.getProgramLog(program)).strip() or str(error)
        real = any("architecture=sm_" in option for option in options)
        binary = nvrtc.getCUBIN(program) if real else nvrtc.getPTX(program).rstrip(b"\0") + b"\0"
        return bytes(binary), str(nvrtc.getProgramLog(program))
    finally:
        nvrtc.destroyProgram(program)


def failing_kernel(text: str, log: str, title: str, symbols: Sequence[str]) -> str:
    """Return the kernel in which the first error of a log lies, or an empty string.

    Parameters
    ----------
    text
        The source.
    log
        Lines ``title(line): error: ...``.
    title
        Name of the source in the log.
    symbols
        Kernels of the source.
    """
    found = re.search(rf"{re.escape(title)}\((\d+)\): (?:catastrophic )?error", log)
    if found is None:
        return ""
    before = "\n".join(text.splitlines()[: int(found[1])])
    starts = {}
    for symbol in symbols:
        head = re.search(rf"__global__[^;{{}}]*\b{re.escape(symbol)}\s*\(", before)
        if head is not None:
            starts[head.end()] = symbol
    return starts[max(starts)] if starts else ""


# ------------------------------------------------------------------------------------------- one text


def _job(cupy: Any, architecture: str, text: str, symbols: Sequence[str], name: str, contract: bool) -> _Job:
    """Collect what the result depends on."""
    version = ".".join(str(part) for part in cupy.cuda.nvrtc.getVersion())
    options = compile_options(architecture, contract)
    if _HALF in text:
        options += tuple(f"--include-path={folder}" for folder in _header_folders(cupy, int(version.split(".")[0])))
    short = re.sub(r"[^\w-]", "_", name, flags=re.ASCII)[:_NAME_LENGTH]
    digest = _digest(text, version, options)
    return _Job(text, tuple(symbols), short, options, version, open_cache(), digest)


def _digest(text: str, version: str, options: Sequence[str]) -> str:
    """Return the digest of all that a binary depends on."""
    return content_digest([_LAYOUT, "cuda", text, version, *options])


def _cached(job: _Job, stem: str) -> bytes | None:
    """Return an entry of the cache; None when it is missing, or not sealed by this user."""
    entry = job.cache.entry(f"{stem}.cubin")
    return None if entry is None else entry.content


def _twin(job: _Job) -> tuple[bytes | None, dict[str, str]]:
    """Return code that differs by names alone, and what each kernel is called there; None where there is none."""
    stem = job.cache.alias(job.alias)
    path = job.cache.find(f"{stem}.cu") if stem else None
    if path is None:
        return None, {}
    try:
        text = path.read_text(encoding="utf-8")
        inside = renaming(job.text, text)
    except (OSError, ValueError):
        return None, {}
    if not stem.endswith(_digest(text, job.version, job.options)[:_DIGITS]):  # the name is sealed, the source is not
        return None, {}
    return _cached(job, stem), {s: inside.get(s, s) for s in job.symbols}


def _build(cupy: Any, job: _Job) -> bytes:
    """Compile a text and put source and result into the cache."""
    source = job.cache.write(f"{job.stem}.cu", job.text.encode())
    binary, log = compile_text(cupy.cuda.nvrtc, job.text, job.options, source.name)
    if not binary:
        kernel = failing_kernel(job.text, log, source.name, job.symbols)
        inside = f", in kernel {kernel}" if kernel else ""
        note = f"; float16 needs {_HALF}: {_half_advice(job.version)}" if _HALF in log else ""
        raise CompileError(
            f"NVRTC {job.version} cannot compile {job.name!r}{inside} ({' '.join(job.options)}){note}",
            source_path=str(source),
            log=_first_lines(log),
        )
    job.cache.put(f"{job.stem}.cubin", binary)
    job.cache.set_alias(job.alias, job.stem)
    return binary


def _first_lines(log: str) -> str:
    """Return the beginning of a compiler's output: what follows is mostly the consequence."""
    lines = log.strip().splitlines()
    rest = len(lines) - _LOG_LINES
    return "\n".join(lines[:_LOG_LINES] + ([f"... {rest} more lines"] if rest > 0 else []))


# -------------------------------------------------------------------------------------------- headers


def _header_folders(cupy: Any, major: int) -> list[str]:
    """Return the first folder that has the header of float16, in a list; empty when none has."""
    for folder in _places(cupy, major):
        if (folder / _HALF).is_file():
            return [str(folder)]
    return []


def _places(cupy: Any, major: int) -> Iterator[Path]:
    """Yield where headers of the toolkit of one major version may be."""
    spec = find_spec("nvidia")
    for place in (spec.submodule_search_locations or ()) if spec is not None else ():
        yield Path(place, f"cu{major}", "include")
        if major == 12:
            yield Path(place, "cuda_runtime", "include")
    roots = [cupy.cuda.get_cuda_path(), os.environ.get("CUDA_PATH"), os.environ.get("CUDA_HOME")]
    for root in [*(Path(root) for root in roots if root), *_toolkits(major)]:
        yield root / "include"
        yield from sorted(root.glob("targets/*/include"))
    bundled = Path(cupy.__file__ or "").parent / "_core" / "include" / "cupy" / "_cuda"
    yield from sorted(bundled.glob(f"cuda-{major}.*"), reverse=True)


def _toolkits(major: int) -> list[Path]:
    """Return toolkits in the usual place, those of the major version first."""
    base = Path("/usr/local")
    return [*sorted(base.glob(f"cuda-{major}.*"), reverse=True), base / "cuda"]


def _half_advice(version: str) -> str:
    """Return what to install for the headers."""
    major = version.split(".")[0]
    package = "nvidia-cuda-runtime-cu12" if major == "12" else "nvidia-cuda-runtime"
    return f"pip install {package}, or let CUDA_PATH name a CUDA toolkit {major}"
