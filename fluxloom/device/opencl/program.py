"""OpenCL programs: built by the driver, with its complaints shown beside the generated source."""

from __future__ import annotations

import os
import re
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from fluxloom.core.activity import activity
from fluxloom.core.errors import CompileError, FluxloomError
from fluxloom.device.base import Program, Resources
from fluxloom.device.opencl.queue import OpenClQueue
from fluxloom.toolchain import open_cache
from fluxloom.toolchain.cache import content_digest

__all__ = ["OpenClProgram", "build", "build_options", "keep_source", "read_log", "read_registers"]

_NAME_LENGTH = 60
_LOG_LINES = 40
_UNSAFE = frozenset("-cl-fast-relaxed-math -cl-unsafe-math-optimizations -cl-finite-math-only -cl-no-signed-zeros "
                    "-cl-denorms-are-zero -cl-single-precision-constant".split())  # fmt: skip
_NO_CONTRACTION = "#pragma OPENCL FP_CONTRACT OFF"
_PLACE = re.compile(
    r"^(?:(?P<before>error|warning|note): )?(?P<file>[^\n:]*):(?P<line>\d+):(?P<column>\d+): "
    r"(?:(?:fatal )?(?P<after>error|warning|note): )?(?P<text>.*)$"
)
_ENTRY = re.compile(r"(?:Compiling entry function|Function properties for) '?(\w+)'?")
_USED = re.compile(r"Used (\d+) registers(?:.*?(\d+)(?:\+\d+)? bytes smem)?")
_SPILLED = re.compile(r"(\d+) bytes stack frame")


@dataclass(frozen=True, eq=False)
class OpenClProgram(Program):
    """A program built for one device.

    Attributes
    ----------
    name
        What it is, for messages.
    text
        Its source.
    handle
        The ``pyopencl.Program``.
    device
        Where it runs.
    registers
        For each kernel what the build log told.
    """

    name: str
    text: str
    handle: Any
    device: OpenClQueue
    registers: Mapping[str, Resources]
    compiled: bool
    seconds: float
    vectorised: Mapping[int, str] = field(default_factory=lambda: MappingProxyType({}))

    def kernel(self, symbol: str) -> Any:
        """Return a kernel object of its own for a function; arguments set on one do not show on another.

        Raises
        ------
        CompileError
            When the program has no such kernel.
        """
        cl = self.device.cl
        try:
            kernel = cl.Kernel(self.handle, symbol)
            int(kernel.num_args)  # some drivers notice a wrong name only now
            return kernel
        except cl.Error as error:
            path = keep_source(self.text, self.name)
            raise CompileError(f"{self.name!r} has no kernel {symbol!r}: {error}", source_path=path) from error

    def resources(self, symbol: str) -> Resources | None:
        """Return what a kernel needs: from the build log, else what a GPU's driver reports (no registers)."""
        if symbol in self.registers or self.device.is_cpu:
            return self.registers.get(symbol)
        kernel, info, handle = self.kernel(symbol), self.device.cl.kernel_work_group_info, self.device.handle
        local = int(kernel.get_work_group_info(info.PRIVATE_MEM_SIZE, handle))
        return Resources(local=local, shared=int(kernel.get_work_group_info(info.LOCAL_MEM_SIZE, handle)))


def build_options(device: OpenClQueue) -> list[str]:
    """Return the options of every build: IEEE division and square root, and no fast arithmetic."""
    options = ["-cl-std=CL1.2"]
    if device.handle.single_fp_config & device.cl.device_fp_config.CORRECTLY_ROUNDED_DIVIDE_SQRT:
        options.append("-cl-fp32-correctly-rounded-divide-sqrt")
    if device.reports_registers:
        options.append("-cl-nv-verbose")
    return options


def _refuse_unsafe_options() -> None:
    """Raise for options that pyopencl adds and that change values."""
    given = os.environ.get("PYOPENCL_BUILD_OPTIONS", "").split()
    if unsafe := [word for word in given if word in _UNSAFE]:
        raise FluxloomError(
            f"PYOPENCL_BUILD_OPTIONS has {unsafe[0]}, which changes what kernels mean (NaN, infinities, the order of "
            "sums): leave it out"
        )


def build(device: OpenClQueue, text: str, symbols: Sequence[str], name: str, *, contract: bool) -> OpenClProgram:
    """Build a program and look up its kernels.

    Raises
    ------
    CompileError
        With the path of the source, what the driver said, and the lines it speaks of.
    """
    if not contract and not re.search(r"^\s*#pragma\s+OPENCL\s+FP_CONTRACT\s+OFF\b", text, re.MULTILINE):
        text = f"{_NO_CONTRACTION}\n{text}"
    _refuse_unsafe_options()
    cl, options, start = device.cl, build_options(device), time.perf_counter()
    handle = cl.Program(device.context, text)
    try:
        with activity("compiling", name, again=True), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # "non-empty compiler output": remarks of a successful build
            handle = handle.build(options=options)
    except cl.Error as error:
        log = read_log(str(error), text)
        message = f"the OpenCL compiler of {device.platform} cannot compile {name!r} ({' '.join(options)})"
        raise CompileError(message, source_path=keep_source(text, name), log=log) from error
    log = str(handle.get_build_info(device.handle, cl.program_build_info.LOG) or "")
    seconds = time.perf_counter() - start
    program = OpenClProgram(name, text, handle, device, read_registers(log), True, seconds)
    for symbol in symbols:
        program.kernel(symbol)
    return program


def keep_source(text: str, name: str) -> str:
    """Write a source into the cache folder; returns its path, empty when that cannot be written."""
    stem = re.sub(r"[^\w-]", "_", name, flags=re.ASCII)[:_NAME_LENGTH]
    try:
        return str(open_cache().write(f"{stem}-{content_digest(['opencl', text])[:40]}.cl", text.encode()))
    except FluxloomError:
        return ""


def read_log(report: str, text: str) -> str:
    """Return a build log with the source line under each complaint.

    Parameters
    ----------
    report
        What the binding says: reasons, the driver's log, options.
    text
        The source; lines of it that the log shows already are not repeated.
    """
    source, lines, shown = text.splitlines(), report.splitlines(), []
    for number, line in enumerate(lines):
        if "BUILD_PROGRAM_FAILURE" in line or line.startswith(("Build on <", "(options:", "(source saved")):
            continue
        place = _PLACE.match(line)
        if place is None:
            shown += [line] if line.strip() else []
            continue
        row, column = int(place["line"]), int(place["column"])
        shown.append(f"line {row}, column {column}: {place['before'] or place['after'] or 'error'}: {place['text']}")
        quoted = number + 1 < len(lines) and 0 < row <= len(source) and source[row - 1].strip() in lines[number + 1]
        if 0 < row <= len(source) and not quoted:
            shown += [f"    {source[row - 1]}", "    " + " " * (column - 1) + "^"]
    rest = len(shown) - _LOG_LINES
    return "\n".join(shown[:_LOG_LINES] + ([f"... {rest} more lines"] if rest > 0 else []))


def read_registers(log: str) -> dict[str, Resources]:
    """Return what NVIDIA's assembler says about each kernel (build option ``-cl-nv-verbose``).

    Returns
    -------
    dict
        From kernel to its registers, bytes of stack an item and bytes of local memory a group.
    """
    found: dict[str, Resources] = {}
    name, stack = "", 0
    for line in log.splitlines():
        if entry := _ENTRY.search(line):
            stack = stack if entry[1] == name else 0
            name = entry[1]
        if spilled := _SPILLED.search(line):
            stack = int(spilled[1])
        if (used := _USED.search(line)) and name:
            found[name] = Resources(int(used[1]), stack, int(used[2] or 0))
    return found
