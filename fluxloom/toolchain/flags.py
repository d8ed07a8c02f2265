"""The compiler flags of generated code."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Sequence

from fluxloom.core.errors import FluxloomError
from fluxloom.toolchain.compiler import Compiler

__all__ = ["LONG_FUNCTION", "compile_flags", "level_flags", "longest_function", "optimises", "report_flags"]

_WIDTHS = (0, 128, 256, 512)
_EXTRA = "FLUXLOOM_CFLAGS"
_UNSAFE = frozenset(
    "-Ofast -ffast-math -funsafe-math-optimizations -ffinite-math-only -fassociative-math -freciprocal-math "
    "-fno-signed-zeros -fno-honor-nans -fno-honor-infinities -fapprox-func -ffp-model=fast -ffp-model=aggressive "
    "-mdaz-ftz -fsingle-precision-constant -fdenormal-fp-math=preserve-sign".split()
)
"""Flags that change values: NaN and infinity do not occur, sums are reordered, small numbers are zero, in the whole
process from then on."""


LONG_FUNCTION = 8000
"""Lines of a function above which time to compile, which grows with their square, counts more than its speed. The
longest kernels of the package have 6500."""


def compile_flags(
    compiler: Compiler,
    *,
    contract: bool = True,
    openmp: bool = True,
    vector_width: int = 0,
    signed_zeros: bool = True,
    extra: Sequence[str] = (),
) -> tuple[str, ...]:
    """Return the flags for a shared object of generated code.

    No flag lets the compiler reorder sums or assume that NaN and infinity do not occur. ``-fno-math-errno``
    and ``-fno-trapping-math`` change no value: they say that nobody reads ``errno`` or the exception flags.
    The words of the environment variable ``FLUXLOOM_CFLAGS`` come behind these flags and so overrule them:
    ``-g -fsanitize=undefined`` to look for a fault, ``-O1`` to compile in half the time, ``-O0`` in a fifth
    (loops then handle one element at a time).

    Parameters
    ----------
    compiler
        From :func:`find_compiler`.
    contract
        Whether ``a * b + c`` may be rounded once (FMA). Without it every operation rounds as IEEE 754 says,
        and results are bitwise the same on every processor and at every vector width.
    openmp
        Whether to compile all OpenMP directives, where the compiler can; else only ``omp simd`` is.
    vector_width
        Preferred bits of a vector: 128, 256, 512, or 0 for the compiler's choice; where it can be told.
    signed_zeros
        Whether -0 is told from +0; False permits ``x + 0`` to become ``x``.
    extra
        Flags added at the end.

    Raises
    ------
    FluxloomError
        For another vector width, where ``FLUXLOOM_CFLAGS`` is no list of words, or has flags that change values.
    """
    if vector_width not in _WIDTHS:
        raise FluxloomError(
            f"vector_width={vector_width}: choose one of {', '.join(map(str, _WIDTHS))} (bits)"
        )
    flags = [*_fixed_flags(compiler), f"-ffp-contract={'fast' if contract else 'off'}"]
    if not signed_zeros:
        flags.append("-fno-signed-zeros")
    if vector_width and compiler.vector_width:
        flags.append(f"-mprefer-vector-width={vector_width}")
    flags.append("-fopenmp" if openmp and compiler.openmp else "-fopenmp-simd")
    given = _environment_flags()
    for name, words in ((_EXTRA, given), ("the compiler's command, FLUXLOOM_CC or CC,", compiler.command[1:])):
        if unsafe := [word for word in words if word in _UNSAFE]:
            raise FluxloomError(
                f"{name} has {unsafe[0]}, which changes what kernels mean (NaN, infinities, the order of sums): leave "
                "it out; -O3 and all instructions of the processor are used anyway"
            )
    return (*flags, *given, *extra)


def _fixed_flags(compiler: Compiler) -> list[str]:
    """Return what every compilation by a compiler has on this system."""
    flags = ["-O3", *compiler.native, "-std=gnu11", "-fPIC", "-shared", "-fno-math-errno", "-fno-trapping-math",
             "-Werror=implicit-function-declaration"]  # fmt: skip
    if compiler.family == "gcc":
        flags.append("-fno-semantic-interposition")
    if compiler.name == "zig":
        flags.append("-fno-sanitize=undefined")
    if sys.platform == "linux":
        flags.append("-Wl,-z,defs")
    return flags


def _environment_flags() -> list[str]:
    """Return the words of ``FLUXLOOM_CFLAGS``."""
    given = os.environ.get(_EXTRA)
    try:
        return shlex.split(given) if given else []
    except ValueError as error:
        raise FluxloomError(f"{_EXTRA}={os.environ[_EXTRA]!r}: {error}; close the quotation or unset it") from error


def longest_function(source: str) -> int:
    """Return the lines of the longest function of generated C, which begins and ends at the margin."""
    longest = start = 0
    for number, line in enumerate(source.splitlines()):
        if line.startswith("}"):
            longest = max(longest, number - start)
        elif line[:1] not in ("", " ", "#", "}"):
            start = number
    return longest


def level_flags(source: str) -> tuple[str, ...]:
    """Return flags for a source with a function so long that ``-O3`` would take many minutes, unless the user chose."""
    chosen = any(word.startswith("-O") for word in _environment_flags())
    return ("-O1",) if not chosen and longest_function(source) > LONG_FUNCTION else ()


def optimises() -> bool:
    """Return whether ``FLUXLOOM_CFLAGS`` leaves code optimised: without, packs of elements are no vectors."""
    levels = [word for word in _environment_flags() if word.startswith("-O")]
    return levels[-1:] != ["-O0"]


def report_flags(compiler: Compiler, path: str) -> tuple[str, ...]:
    """Return the flags that ask for the vectoriser's report.

    gcc writes it to ``path``; clang and zig write it to the error output whatever ``path`` is.
    """
    if compiler.family == "gcc":
        return (f"-fopt-info-vec-optimized-missed={path}",)
    return tuple(f"-R{kind}=loop-vectorize" for kind in ("pass", "pass-missed", "pass-analysis"))
