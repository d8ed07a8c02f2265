"""The one printer of expressions and statements for the C family, and tables that kernels index at run time."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from fluxloom.codegen.language.dialect import Dialect
from fluxloom.codegen.language.spec import LoopSpec
from fluxloom.core.dtypes import Scalar
from fluxloom.kernel import ir
from fluxloom.kernel.analysis import walk
from fluxloom.kernel.check.tests import HIGH, LOW, Range, integer_range
from fluxloom.kernel.ir import Kind, Table

__all__ = ["TABLE_BYTES", "Printer", "literal", "table_name", "table_source"]

TABLE_BYTES = 48 << 10
"""Bytes of the tables of a unit in the memory for constants, of which devices have 64 KiB; the rest lies outside it."""

_DIGITS = 16
_PER_LINE = 8


def literal(value: float | int | bool, kind: Kind, compute: Scalar) -> str:
    """Return the C literal of a constant; float32 literals are rounded here, exactly once."""
    if kind is Kind.BOOL:
        return "1" if value else "0"
    if kind is Kind.INT:
        if value == -(2**63):  # no literal: 2**63 is none of a signed integer
            return "(-INT64_C(9223372036854775807) - 1)"
        return str(int(value)) if -(2**31) < value < 2**31 else f"INT64_C({int(value)})"
    real = float(value)
    if math.isnan(real):
        return "NAN"
    if math.isinf(real):
        return "INFINITY" if real > 0 else "(-INFINITY)"
    if compute.size == 4:
        with np.errstate(over="ignore"):
            rounded = float(np.float32(real))
        text = repr(rounded) + "f" if math.isfinite(rounded) else "INFINITY"
    else:
        text = repr(real)
    return f"({text})" if real < 0 or text.startswith("-") else text


def table_name(table: Table, compute: Scalar) -> str:
    """Return the name of a table in generated code, which tells its content: equal tables are one."""
    content = f"{table.kind} {table.shape} {table.values!r} {_ctype(table.kind, compute)}"
    return f"fl_table_{hashlib.sha256(content.encode()).hexdigest()[:_DIGITS]}"


def table_source(specs: Iterable[LoopSpec], dialect: Dialect) -> str:
    """Return the declarations of the tables of some loops, each once; empty when they have none."""
    found = {table_name(table, spec.compute): (table, spec.compute) for spec in specs for table in spec.kernel.tables}
    lines, used = [], 0
    for name, (table, compute) in found.items():
        kind = _ctype(table.kind, compute)
        size = len(table.values) * (8 if kind == "int64_t" else 4 if kind == "int" else compute.size)
        fits = used + size <= TABLE_BYTES
        used += size if fits else 0
        words = dialect.words
        qualifier = "static const" if words is None else words.table if fits else words.large_table
        dims = "".join(f"[{n}]" for n in table.shape)
        lines.append(f"{qualifier} {kind} {name}{dims} = {_rows(table, compute)}; /* {table.name} */")
    return "\n".join([*lines, ""]) if lines else ""


def _ctype(kind: Kind, compute: Scalar) -> str:
    return {Kind.REAL: compute.c, Kind.INT: "int64_t", Kind.BOOL: "int"}[kind]


def _rows(table: Table, compute: Scalar) -> str:
    """Return the values in nested braces, a few a line."""
    texts = [literal(value, table.kind, compute) for value in table.values]
    for level, extent in enumerate(reversed(table.shape)):
        groups = [texts[first : first + extent] for first in range(0, len(texts), extent)]
        texts = ["{" + (_broken(group) if level == 0 else ",\n".join(group)) + "}" for group in groups]
    return texts[0]


def _broken(texts: list[str]) -> str:
    lines = [", ".join(texts[first : first + _PER_LINE]) for first in range(0, len(texts), _PER_LINE)]
    return ",\n".join(lines)


AccessPrinter = Callable[[str, "ir.Expression | None", tuple["ir.Expression", ...]], str]
"""(parameter, leg, index) -> the C expression of that component."""


@dataclass
class Printer:
    """Prints kernel IR in one dialect.

    Parameters
    ----------
    dialect, compute
        The target language and the type of ``REAL`` values.
    read
        How a component of a data parameter is read.
    write
        How it is assigned (an lvalue).
    length
        C expression of ``len(parameter)`` of a ragged argument.
    unroll
        Line in front of loops over the entries of a row, whose loads the compiler may then start together.
    update
        How a contribution to an Inc, Min or Max parameter is printed (a full statement).
    across
        Locals of which each lane of a pack has its own, kept in an array with the lane ``l`` last.
    stored
        Between which values the integers of each parameter are.
    """

    dialect: Dialect
    compute: Scalar
    read: AccessPrinter
    write: AccessPrinter
    length: Callable[[str], str]
    update: Callable[[ir.Update, str], str]
    store_cast: Callable[[str, str], str] = field(default=lambda _parameter, value: value)
    arrays: dict[str, tuple[int, ...]] = field(default_factory=dict)
    unroll: str = ""
    across: frozenset[str] = frozenset()
    stored: Mapping[str, Range] = field(default_factory=dict)

    def lane(self, name: str) -> str:
        """Return the index of the lane behind a local that is kept for all lanes."""
        return "[l]" if name in self.across else ""

    def ctype(self, kind: Kind) -> str:
        """Return the C type of a kind of value."""
        return {Kind.REAL: self.compute.c, Kind.INT: "int64_t", Kind.BOOL: "int"}[kind]

    def expression(self, node: ir.Expression) -> str:
        """Return the C text of an expression."""
        method = getattr(self, "_" + type(node).__name__.lower())
        return method(node)

    def real(self, node: ir.Expression) -> str:
        """Return the C text of an expression, converted to a real when it is not one."""
        text = self.expression(node)
        if node.kind is Kind.REAL:
            return text
        if isinstance(node, ir.Constant):
            return literal(node.value, Kind.REAL, self.compute)
        return f"(({self.compute.c}){text})"

    def convert(self, node: ir.Expression, kind: Kind) -> str:
        """Return the C text of an expression as a value of ``kind``."""
        return self.real(node) if kind is Kind.REAL else self.expression(node)

    # ------------------------------------------------------------------------------ expressions
    def _constant(self, node: ir.Constant) -> str:
        return literal(node.value, node.kind, self.compute)

    def _local(self, node: ir.Local) -> str:
        return f"{node.name}_{self.lane(node.name)}"

    def _localelement(self, node: ir.LocalElement) -> str:
        return f"{node.name}_" + "".join(f"[{self.expression(i)}]" for i in node.index) + self.lane(node.name)

    def _tableelement(self, node: ir.TableElement) -> str:
        return self.tables[node.name] + "".join(f"[{self.expression(i)}]" for i in node.index)

    def _readconstant(self, node: ir.ReadConstant) -> str:
        return f"k_{node.name}"

    def _read(self, node: ir.Read) -> str:
        return self.read(node.parameter, node.leg, node.index)

    def _length(self, node: ir.Length) -> str:
        return self.length(node.parameter)

    def _fits(self, node: ir.Expression) -> bool:
        """Whether an operation on integers is seen to need no more than 64 bits: others wrap round by a helper."""
        low, high = integer_range(node, self.counters, self.stored)
        return low >= LOW and high <= HIGH

    def _negate(self, node: ir.Negate) -> str:
        if node.kind is Kind.INT and not self._fits(node):
            return f"{self.dialect.integer_function('negate')}({self.expression(node.operand)})"
        return f"(-{self.expression(node.operand)})"

    def _not(self, node: ir.Not) -> str:
        return f"(!{self.expression(node.operand)})"

    def _binary(self, node: ir.Binary) -> str:
        both_int = node.left.kind is Kind.INT and node.right.kind is Kind.INT
        if both_int and node.op != "/" and (node.op in ("//", "%") or not self._fits(node)):
            name = self.dialect.integer_function(node.op)
            return f"{name}({self.expression(node.left)}, {self.expression(node.right)})"
        if node.op in ("//", "%"):
            name = self.dialect.function(node.op, self.compute)
            return f"{name}({self.real(node.left)}, {self.real(node.right)})"
        if both_int and node.op != "/":
            return f"({self.expression(node.left)} {node.op} {self.expression(node.right)})"
        return f"({self.real(node.left)} {node.op} {self.real(node.right)})"

    def _compare(self, node: ir.Compare) -> str:
        if Kind.REAL in (node.left.kind, node.right.kind):
            return f"({self.real(node.left)} {node.op} {self.real(node.right)})"
        return f"({self.expression(node.left)} {node.op} {self.expression(node.right)})"

    def _boolean(self, node: ir.Boolean) -> str:
        # Bitwise: operands are 0 or 1 and have no side effects, so no branch is needed.
        op = " & " if node.op == "and" else " | "
        return "(" + op.join(self.expression(v) for v in node.values) + ")"

    def _conditional(self, node: ir.Conditional) -> str:
        yes, no = self.convert(node.yes, node.kind), self.convert(node.no, node.kind)
        return f"({self.expression(node.test)} ? {yes} : {no})"

    def _cast(self, node: ir.Cast) -> str:
        text = self.expression(node.operand)
        if node.kind is Kind.BOOL:
            return f"({text} != 0)"
        if node.kind is Kind.INT and node.operand.kind is Kind.REAL:
            return f"{self.dialect.function('int', self.compute)}({text})"
        return f"(({self.ctype(node.kind)}){text})"

    def _call(self, node: ir.Call) -> str:
        if node.function in ("floor", "ceil") and node.kind is Kind.INT:
            name = self.dialect.function(node.function, self.compute)
            whole = self.dialect.function("int", self.compute)
            return f"{whole}({name}({self.real(node.arguments[0])}))"
        if node.kind is Kind.INT:
            name = self.dialect.integer_function(node.function)
            texts = [self.expression(a) for a in node.arguments]
        else:
            name = self.dialect.function(node.function, self.compute)
            texts = [self.real(a) for a in node.arguments]
        return f"{name}({', '.join(texts)})"

    # ------------------------------------------------------------------------------- statements
    def block(self, body: tuple[ir.Statement, ...], indent: int) -> list[str]:
        """Return the lines of a sequence of statements."""
        lines: list[str] = []
        for statement in body:
            lines += self._statement(statement, indent)
        return lines

    def _statement(self, node: ir.Statement, indent: int) -> list[str]:
        pad = "    " * indent
        match node:
            case ir.Assign():
                kind = self.kinds[node.name]
                return [f"{pad}{node.name}_{self.lane(node.name)} = {self.convert(node.value, kind)};"]
            case ir.StoreLocal():
                index = "".join(f"[{self.expression(i)}]" for i in node.index) + self.lane(node.name)
                kind = self.array_kinds[node.name]
                return [f"{pad}{node.name}_{index} = {self.convert(node.value, kind)};"]
            case ir.Store():
                kind = self.parameter_kinds[node.parameter]
                target = self.write(node.parameter, node.leg, node.index)
                value = self.store_cast(node.parameter, self.convert(node.value, kind))
                return [f"{pad}{target} = {value};"]
            case ir.Update():
                kind = self.parameter_kinds[node.parameter]
                return [pad + self.update(node, self.convert(node.value, kind))]
            case ir.If():
                lines = [f"{pad}if ({self.expression(node.test)}) {{", *self.block(node.body, indent + 1)]
                if node.orelse:
                    lines += [f"{pad}}} else {{", *self.block(node.orelse, indent + 1)]
                return [*lines, f"{pad}}}"]
            case ir.For():
                return self._for(node, indent)
            case ir.While():
                head = f"{pad}while ({self.expression(node.test)}) {{"
                return [head, *self.block(node.body, indent + 1), f"{pad}}}"]
        raise TypeError(f"no C form of {type(node).__name__}")

    def _for(self, node: ir.For, indent: int) -> list[str]:
        return [*self.loop_head(node, indent), *self.block(node.body, indent + 1), f"{'    ' * indent}}}"]

    def loop_head(self, node: ir.For, indent: int) -> list[str]:
        """Return the lines that open a loop and set its counter."""
        pad = "    " * indent
        name = f"{node.name}_"
        compare = "<" if node.step > 0 else ">"
        # A hidden counter keeps Python's rule that assigning the loop variable does not change the trips.
        # Locals end in an underscore, constants begin with k_: this name is neither.
        hidden = f"for_{name}t"
        head = (
            f"{pad}for (int64_t {hidden} = {self.expression(node.start)}, {hidden}e = {self.expression(node.stop)}; "
            f"{hidden} {compare} {hidden}e; {hidden} += {node.step}) {{"
        )
        if self.unroll and isinstance(node.stop, ir.Length):
            head = f"{pad}{self.unroll}\n{head}"
        counter = f"{pad}    {name}{self.lane(node.name)} = {hidden};"
        self._count(node)
        return [head, counter]

    def _count(self, node: ir.For) -> None:
        """Note between which values the counter of a loop is."""
        self.counters.pop(node.name, None)
        if not any(isinstance(s, (ir.Assign, ir.For)) and s.name == node.name for s in walk(node.body)):
            first, last = (integer_range(bound, self.counters, self.stored) for bound in (node.start, node.stop))
            self.counters[node.name] = (first[0], last[1] - 1) if node.step > 0 else (last[0] + 1, first[1])

    def declare(self, kernel: ir.LoweredKernel, indent: int) -> list[str]:
        """Return the declarations of a kernel's locals and remember their kinds."""
        self.kinds = dict(kernel.scalars)
        self.counters: dict[str, Range] = {}
        self.array_kinds = {a.name: a.kind for a in kernel.arrays}
        self.tables = {t.name: table_name(t, self.compute) for t in kernel.tables}
        self.parameter_kinds = {p.name: s.kind for p, s in zip(kernel.parameters, kernel.shapes, strict=True)}
        pad = "    " * indent
        lines = [f"{pad}{self.ctype(kind)} {name}_;" for name, kind in kernel.scalars]
        for array in kernel.arrays:
            dims = "".join(f"[{n}]" for n in array.shape)
            lines.append(f"{pad}{self.ctype(array.kind)} {array.name}_{dims};")
        return lines
