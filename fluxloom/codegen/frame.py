"""What surrounds generated code: the fixed part of a unit, argument blocks, first lines of functions and kernels."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources

from fluxloom.codegen.dialect import Dialect, KernelWords
from fluxloom.codegen.spec import Slot

__all__ = ["PARALLEL", "argument_block", "beginning", "fixed_part", "head", "opening", "prelude"]

_REGISTERS = 65536

PARALLEL = "#pragma omp parallel for schedule(static) num_threads(fl_threads(A->threads)) if (A->threads != 1)"
"""Before a loop whose trips go to threads."""


def fixed_part() -> str:
    """Return the beginning of every unit of plain functions."""
    folder = resources.files("fluxloom.codegen")
    return "\n".join(folder.joinpath(name).read_text() for name in ("prelude.c", "semantics.c"))


def prelude(dialect: Dialect, contract: bool, *, half: bool = False) -> str:
    """Return the fixed part of a unit; ``half``: it stores float16."""
    assert dialect.words is not None
    folder = resources.files("fluxloom.codegen")
    texts = [folder.joinpath(name).read_text() for name in (dialect.words.prelude, "semantics.c")]
    if not contract and dialect.words.contraction_off:
        texts.insert(0, dialect.words.contraction_off)
    if half:
        texts.insert(0, "#define FL_HALF")
    return "\n".join(texts)


def opening(
    words: KernelWords, name: str, slots: Sequence[Slot], written: frozenset[str], block: int, registers: int = 0,
    tail: Sequence[str] = (), meeting: frozenset[str] = frozenset(), counted: bool = False,
) -> list[str]:  # fmt: skip
    """Return the first lines of a kernel: its name, limits and parameters.

    Parameters
    ----------
    written
        Names of the pointers that the kernel writes through.
    tail
        Names of trailing 64-bit parameters.
    meeting
        Names of the pointers that may lead to the same values.
    counted
        Whether ``n`` counts the places of a list, behind which the number of its elements lies.
    """
    limit = words.limit.format(groups=max(1, _REGISTERS // (registers * block))) if registers else ""
    lines = [words.kernel.format(block=block, limit=limit, name=name)]
    parameters = []
    for slot in slots:
        if slot.ctype.endswith("*"):
            const = "" if slot.name in written else "const "
            kind, alone = slot.ctype.removesuffix(" *"), "" if slot.name in meeting else words.alone
            parameters.append(words.pointer.format(const=const, type=kind, alone=alone, name=slot.name))
        else:
            const = "" if counted and slot.name == "n" else "const "
            parameters.append(f"{const}{slot.ctype} {slot.name}")
    parameters += [f"const int64_t {name}" for name in tail]
    lines += [f"    {p}," for p in parameters[:-1]]
    return [*lines, f"    {parameters[-1]})", "{", *(["    n = list[n];"] if counted else [])]


def head(dialect: Dialect, contract: bool = True) -> str:
    """Return the fixed part of a unit in any language."""
    return fixed_part() if dialect.words is None else prelude(dialect, contract)


def argument_block(symbol: str, slots: Sequence[Slot]) -> list[str]:
    """Return the type of the argument block of a plain function."""
    return ["typedef struct {", *(f"    {s.ctype} {s.name};" for s in slots), f"}} {symbol}_args;"]


def beginning(symbol: str) -> list[str]:
    """Return the first lines of a plain function that is called with an argument block."""
    return [f"void {symbol}(const int64_t *S) {{", f"    const {symbol}_args *const A = (const {symbol}_args *)S;"]
