"""The compiler flags of generated code."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from fluxloom.core.errors import FluxloomError
from fluxloom.toolchain.compiler import Compiler

__all__ = ["compile_flags", "report_flags"]

_WIDTHS = (0, 128, 256, 512)


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
        For another vector width.
    """
    if vector_width not in _WIDTHS:
        raise FluxloomError(
            f"vector_width={vector_width}: choose one of {', '.join(map(str, _WIDTHS))} (bits)"
        )
    flags = [
        "-O3",
        *compiler.native,
        "-std=gnu11",
        "-fPIC",
        "-shared",
        "-fno-math-errno",
        "-fno-trapping-math",
    ]
    flags += [f"-ffp-contract={'fast' if contract else 'off'}", "-Werror=implicit-function-declaration"]
    if compiler.family == "gcc":
        flags.append("-fno-semantic-interposition")
    if compiler.name == "zig":
        flags.append("-fno-sanitize=undefined")
    if sys.platform == "linux":
        flags.append("-Wl,-z,defs")
    if not signed_zeros:
        flags.append("-fno-signed-zeros")
    if vector_width and compiler.vector_width:
        flags.append(f"-mprefer-vector-width={vector_width}")
    flags.append("-fopenmp" if openmp and compiler.openmp else "-fopenmp-simd")
    return (*flags, *extra)


def report_flags(compiler: Compiler, path: str) -> tuple[str, ...]:
    """Return the flags that ask for the vectoriser's report.

    gcc writes it to ``path``; clang and zig write it to the error output whatever ``path`` is.
    """
    if compiler.family == "gcc":
        return (f"-fopt-info-vec-optimized-missed={path}",)
    return tuple(f"-R{kind}=loop-vectorize" for kind in ("pass", "pass-missed", "pass-analysis"))
