"""Functions that are no loops over independent elements: what surrounds a body that its module writes.

A body is text of the C family. In the languages of kernels it uses ``FL_SHARED``, ``FL_BARRIER()``, ``FL_GROUP``,
``FL_MEMBER`` and ``FL_ITEM`` (number of the group, of the item in it, of the item), and ``FL_GLOBAL`` before the type
of a pointer to a parameter's values; in C it is a plain function that may have OpenMP pragmas, and ``FL_THREAD`` is the
number of the thread. A body for groups of any size is a plain function too: there a group is one member, number 0.
``FL_SIMD`` stands before loops over lanes. Parameters have their names in every language.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources

from fluxloom.codegen.language.dialect import DIALECTS, Dialect
from fluxloom.codegen.language.frame import head, opening
from fluxloom.codegen.language.spec import Entry, LaunchSpec, Slot
from fluxloom.codegen.unit import Unit

__all__ = ["Function", "Parameter", "primitive_unit", "source_of"]

_WORDS = {"c": "primitive.c", "cuda": "primitive.cu", "opencl": "primitive.cl"}


@dataclass(frozen=True)
class Parameter:
    """One 8-byte word that a function is given.

    Attributes
    ----------
    ctype
        ``"int64_t"``, ``"double"``, or a pointer as ``"double *"``, ``"float *"``, ``"int64_t *"``.
    name
        In the body.
    written
        Whether values are written through the pointer.
    shared
        Whether another pointer may lead to the same values, as where a solution replaces its right-hand side.
    """

    ctype: str
    name: str
    written: bool = False
    shared: bool = False


@dataclass(frozen=True)
class Function:
    """A function of a primitive.

    Attributes
    ----------
    symbol
        Its name.
    parameters
        What it is given.
    body
        Its statements.
    block
        Work items of a group, in the languages of kernels.
    registers
        Registers that an item may have, where the language lets one say so; 0: the compiler chooses.
    """

    symbol: str
    parameters: tuple[Parameter, ...]
    body: str
    block: int = 1
    registers: int = 0


def source_of(package: str, name: str) -> str:
    """Return a source file of a package, without line breaks at its ends: a body, or text before the functions."""
    return resources.files(package).joinpath(name).read_text(encoding="utf-8").strip("\n")


def primitive_unit(functions: Sequence[Function], dialect: str, helpers: str = "", *, contract: bool = True) -> Unit:
    """Return the source of some functions as one translation unit.

    Parameters
    ----------
    dialect
        Name of the language.
    helpers
        Text before the functions: types, macros, functions that the bodies call.
    contract
        Whether the compiler may contract ``a * b + c``; some languages say so in the source.
    """
    language = DIALECTS[dialect]
    words = source_of("fluxloom.codegen", _WORDS[dialect])
    texts = [_text(function, language) for function in functions]
    source = "\n".join([head(language, contract), words, helpers, *texts])
    return Unit(source, tuple(_entry(f, language) for f in functions))


def _slots(function: Function) -> tuple[Slot, ...]:
    return tuple(Slot(p.ctype, p.name, "primitive", p.name) for p in function.parameters)


def _entry(function: Function, language: Dialect) -> Entry:
    launches = () if language.words is None else (LaunchSpec(function.symbol, function.block),)
    return Entry(function.symbol, _slots(function), launches)


def _text(function: Function, language: Dialect) -> str:
    """Return a function: its head, and its parameters as the body names them."""
    if language.words is not None:
        written = frozenset(p.name for p in function.parameters if p.written)
        meeting = frozenset(p.name for p in function.parameters if p.shared)
        slots = _slots(function)
        lines = opening(
            language.words, function.symbol, slots, written, function.block, function.registers, meeting=meeting
        )
        return "\n".join([*lines, function.body.strip("\n"), "}", ""])
    kind = f"{function.symbol}_args"
    lines = ["typedef struct {", *(f"    {_field(p)} {p.name};" for p in function.parameters), f"}} {kind};"]
    lines += [f"void {function.symbol}(const int64_t *S)", "{", f"    const {kind} *const A = (const {kind} *)S;"]
    lines += [f"    {_local(p)}{p.name} = A->{p.name};" for p in function.parameters]
    return "\n".join([*lines, function.body.strip("\n"), "}", ""])


def _field(parameter: Parameter) -> str:
    const = "const " if parameter.ctype.endswith("*") and not parameter.written else ""
    return f"{const}{parameter.ctype}"


def _local(parameter: Parameter) -> str:
    """Return the opening of the declaration of a parameter inside a plain function."""
    if not parameter.ctype.endswith("*"):
        return f"const {parameter.ctype} "
    return f"{_field(parameter)}{'' if parameter.shared else 'restrict '}const "
