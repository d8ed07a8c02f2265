"""Pieces of text that all kernels for tridiagonal systems share: which system, its diagonals, pivots that vanish."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from string import Template
from types import MappingProxyType

from fluxloom.codegen.primitive import Function
from fluxloom.linalg.direct.tridiagonal.form import Code, Form, Lines, parameters

__all__ = [
    "LOCAL_BYTES", "ROOM", "TINY", "Body", "bordered", "code", "defined", "diagonals", "fill", "lost",
    "named_diagonals", "report", "system", "up_to_power",
]  # fmt: skip

ROOM = "fluxloom.linalg.direct.tridiagonal"
"""Where the source files are."""

LOCAL_BYTES = 49152
"""Bytes of memory that the items of a group can share without asking for more, on every device that we know."""

_NARROW = 1 << 31
_NO_NAMES: Mapping[str, object] = MappingProxyType({})

TINY = {"double": 2.0**-51, "float": 2.0**-22}
"""Part of a diagonal value, times the number of rows, that is left where a periodic matrix is singular."""


@dataclass(frozen=True)
class Body:
    """A kernel before it has parameters.

    Attributes
    ----------
    symbol
        Its name.
    shared
        Declarations of memory of the group, which have to be the first lines.
    text
        The statements; they use the names of `parameters`.
    block
        Work items of a group.
    groups
        Groups that are needed.
    registers
        See `Function`.
    before
        Declarations that give parameters another meaning, as pointers into ``work``, which is ``memory`` then.
    """

    symbol: str
    shared: str
    text: str
    block: int
    groups: int
    registers: int = 0
    before: tuple[str, ...] = ()

    def function(self, form: Form) -> Function:
        """Return the kernel with the parameters that all have."""
        text = self.text
        if self.before:
            inside = "".join(f"        {line}\n" for line in self.before)
            text = f"    FL_GLOBAL REAL *const memory = work;\n    {{\n{inside}{text}    }}\n"
        return Function(self.symbol, parameters(form), self.shared + text, self.block, self.registers)


def fill(text: str, **values: object) -> str:
    """Return text with ``$name`` replaced by values."""
    return Template(text).substitute({name: str(value) for name, value in values.items()})


def defined(names: Mapping[str, object]) -> str:
    """Return the definitions of names in a source file."""
    return "".join(f"#define {name} {value}\n" for name, value in names.items())


def up_to_power(n: int) -> int:
    """Return the smallest power of two that is not less than ``n``."""
    return 1 << max(0, n - 1).bit_length()


def bordered(form: Form, lines: Lines) -> bool:
    """Whether the last row is kept apart: the rows before it are tridiagonal once its unknown is known.

    A periodic system of one row is the number ``a + b + c``; in one of two rows both couplings of a row lead to the
    other row.
    """
    return form.periodic and lines.rows > 1


def code(form: Form, *bodies: Body, words: int = 1, names: Mapping[str, object] = _NO_NAMES) -> Code:
    """Return kernels that are called in order.

    Parameters
    ----------
    words
        Values of working memory, where anything leaves the chip.
    names
        What the names in a source file stand for.
    """
    every = {
        "REAL": form.real, "FL_BAD(pivot)": "((pivot) == 0 || (pivot) - (pivot) != 0)",
        "FL_LOST(pivot, whole)": f"(FL_BAD(pivot) || {lost(form)})",
    }  # fmt: skip
    helpers = defined({**every, **names})
    functions = tuple(body.function(form) for body in bodies)
    return Code(functions, tuple(body.block * body.groups for body in bodies), helpers, words)


def lost(form: Form) -> str:
    """Return the condition for what is left of a diagonal value, the last pivot of a periodic system, to be rounding.

    A pivot that is less than ``2 n eps`` of it is that of a singular matrix; not so in systems with shifts, whose
    equations are settled by whoever gives these.
    """
    tiny = 0.0 if form.coefficients == "shifted" else TINY[form.real]
    return f"((pivot) < 0 ? -(pivot) : (pivot)) <= (REAL){tiny!r} * rows * ((whole) < 0 ? -(whole) : (whole))"


def system(form: Form, lines: Lines, number: str) -> str:
    """Return the declarations of what belongs to one system.

    ``there`` is zero beyond the last system; such items repeat what is done for the last one, and write nothing.

    Parameters
    ----------
    number
        Which system: an expression.
    """
    narrow = lines.systems < _NARROW
    outer = "0" if lines.outer == 1 else "(int64_t)((uint32_t)q / (uint32_t)inner)" if narrow else "q / inner"
    each, shifted = form.coefficients == "each", form.coefficients == "shifted"
    given = [
        "const int64_t systems = inner * outer;",
        f"const int64_t number = {number};",
        "const int there = number < systems;",
        "const int64_t q = there ? number : systems - 1;",
        f"const int64_t o = {outer}, s = q - o * inner;",
        "const int64_t y_at = y_first + o * outer_step + s * inner_step;",
        "const int64_t x_at = x_first + o * outer_step + s * inner_step;",
        "const int64_t c_at = o * c_outer + s * c_inner;" if each else "",
        "const REAL shift = inner_shift[s] + outer_shift[o];" if shifted else "",
        "const REAL factor = (REAL)scale, doubled = q == pinned ? (REAL)2 : (REAL)1;",
        "int bad = 0;",
    ]
    return "".join(f"    {line}\n" for line in given if line)


def named_diagonals(form: Form, lines: Lines) -> dict[str, object]:
    """Return `diagonals` as source files name them."""
    return dict(zip(("LOW(i)", "MAIN(i)", "HIGH(i)"), diagonals(form, lines, "i"), strict=True))


def diagonals(form: Form, lines: Lines, row: str) -> tuple[str, str, str]:
    """Return the expressions of the three diagonal values of a row; ``row`` is the name of its number.

    Values beyond the ends are zero, not read, unless the systems are periodic.
    """
    at = f"c_at + {row} * c_row" if form.coefficients == "each" else f"{row} * c_row"
    main = f"b[{at}]" + (f" + mass[{row}] * shift" if form.coefficients == "shifted" else "")
    if form.periodic and lines.rows == 1:
        return "(REAL)0", f"(a[{at}] + ({main}) * doubled + c[{at}])", "(REAL)0"
    main = f"(({main}) * ({row} == 0 ? doubled : (REAL)1))"
    if form.periodic:
        return f"a[{at}]", main, f"c[{at}]"
    return f"({row} > 0 ? a[{at}] : (REAL)0)", main, f"({row} < rows - 1 ? c[{at}] : (REAL)0)"


def report() -> str:
    """Return the statement that tells of a system with a pivot that vanished, or values that are no numbers."""
    return "    if (bad && there) FL_ATOMIC_MAX(status, (int)(q < INT32_MAX - 1 ? q + 1 : (int64_t)INT32_MAX));\n"
