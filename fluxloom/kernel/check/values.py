"""Expressions of the checking mode: what may go wrong is tested before it is done, in statements of its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from math import isfinite, isnan

from fluxloom.core.dtypes import Scalar
from fluxloom.core.errors import KernelError
from fluxloom.kernel import ir
from fluxloom.kernel.check.tests import (
    HIGH,
    LOW,
    Range,
    Site,
    both,
    compare,
    finite,
    integer,
    integer_range,
    not_an_integer,
    outside,
    overflows,
    stop_of,
)
from fluxloom.kernel.ir import Kind

__all__ = ["SITES", "Place", "ValueChecker"]

SITES = 2**16
"""An element's number times this, plus the number of the site."""

Index = tuple[ir.Expression, ...]
Place = tuple[ir.Expression | None, Index]


class ValueChecker:
    """Rewrites expressions; statements are left to the class above it.

    Parameters
    ----------
    kernel
        What is checked.
    stored
        In which type the values of each parameter are stored.
    indices_only
        Find only indices that may be negative.
    """

    def __init__(
        self, kernel: ir.LoweredKernel, stored: Mapping[str, Scalar], indices_only: bool
    ) -> None:
        self.kernel, self.stored, self.indices_only = kernel, stored, indices_only
        self.shapes = {p.name: s for p, s in zip(kernel.parameters, kernel.shapes, strict=True)}
        self.access = {p.name: p.access for p in kernel.parameters}
        self.dims = {a.name: a.shape for a in (*kernel.arrays, *kernel.tables)}
        self.kinds = dict(kernel.scalars)
        self._counts: dict[str, int] = {}
        self._taken = {*self.shapes, *self.kinds, *self.dims, *(c.name for c in kernel.constants)}
        self.number, self.first = self._fresh("element"), self._fresh("first")
        self.site = self._local(Kind.INT, "site")
        self.excused = self._local(Kind.INT, "excused")
        """1: the element met an infinite constant; 2: a value that it read was infinite or NaN."""
        self.ranges = {name: s.range for name, s in stored.items() if not s.floating}
        self.counters: dict[str, Range] = {}
        self.sites: list[Site] = []
        self.out: list[ir.Statement] = []
        self.location = ir.Location()
        self.mirrors: dict[str, str] = {}
        """The local array that stands for each parameter which the kernel writes and reads."""

    # ------------------------------------------------------------------------------ names, blocks
    def _fresh(self, name: str) -> str:
        while True:
            count = self._counts[name] = self._counts.get(name, 0) + 1
            text = f"check_{name}{count}"
            if text not in self._taken:
                return text

    def _local(self, kind: Kind, name: str = "t") -> ir.Local:
        text = self._fresh(name)
        self.kinds[text] = kind
        return ir.Local(kind, text)

    @contextmanager
    def _block(self) -> Iterator[list[ir.Statement]]:
        outer, self.out = self.out, []
        try:
            yield self.out
        finally:
            self.out = outer

    def _kept(self, value: ir.Expression) -> ir.Expression:
        """Return a value that can be named again without being computed again."""
        if isinstance(value, (ir.Constant, ir.Local)):
            return value
        local = self._local(value.kind)
        self.out.append(ir.Assign(local.name, value))
        return local

    def _fails(self, what: str, *values: ir.Expression) -> ir.Statement:
        """Return the statement that remembers a site, if it is the first of the element."""
        self.sites.append(Site(what, self.location, values))
        if len(self.sites) >= SITES:
            raise KernelError(f"{self.kernel.name}: more than {SITES - 1:,} operations to check", hint="write loops")
        found = ir.Assign(self.site.name, integer(len(self.sites)), location=self.location)
        return ir.If(compare(self.site, "==", 0), (found,), ())

    def _guarded(
        self, test: ir.Expression, failure: ir.Statement, value: ir.Expression, harmless: ir.Constant
    ) -> ir.Expression:
        """Return ``value``, computed only where ``test`` does not hold."""
        local = self._local(value.kind)
        self.out.append(ir.If(test, (failure, ir.Assign(local.name, harmless)), (ir.Assign(local.name, value),)))
        return local

    # ------------------------------------------------------------------------------------ places
    def _range(self, node: ir.Expression) -> Range:
        return integer_range(node, self.counters, self.ranges)

    def _index(self, what: str, node: ir.Expression, stop: ir.Expression) -> ir.Expression:
        """Return an index that can be used, whatever the given one is."""
        low, high = self._range(node)
        if low >= 0 and (self.indices_only or (isinstance(stop, ir.Constant) and high < stop.value)):
            return self._value(node)
        index = self._kept(self._value(node))
        failure = self._fails(f"{what} is outside 0 ... {{1}}", index, ir.Binary(Kind.INT, "-", stop, integer(1)))
        return self._guarded(outside(index, stop), failure, index, integer(0))

    def _indices(self, name: str, index: Index, shape: tuple[int, ...]) -> Index:
        return tuple(
            self._index(f"index {{0}} of {name!r}" + (f", dimension {k}," if k else ""), node, integer(n))
            for k, (node, n) in enumerate(zip(index, shape, strict=False))
        )

    def _place(self, node: ir.Read | ir.Store | ir.Update) -> Place:
        """Return leg and index of an access, checked."""
        shape = self.shapes[node.parameter]
        leg = node.leg
        if leg is not None:
            leg = self._index(f"leg {{0}} of {node.parameter!r}", leg, stop_of(shape, node.parameter))
        return leg, self._indices(node.parameter, node.index, shape.components)

    def _mirrored(self, leg: ir.Expression | None, index: Index) -> Index:
        """Return the place in the local array that stands for a parameter."""
        return (*(() if leg is None else (leg,)), *index) or (integer(0),)

    # ------------------------------------------------------------------------------- expressions
    def _value(self, node: ir.Expression) -> ir.Expression:
        """Return an expression that can be evaluated without harm, after the statements emitted for it."""
        match node:
            case ir.Constant() | ir.ReadConstant():
                return self._constant(node)
            case ir.Local() | ir.Length():
                return node
            case ir.LocalElement() | ir.TableElement():
                return replace(node, index=self._indices(node.name, node.index, self.dims[node.name]))
            case ir.Read():
                return self._read(node)
            case ir.Negate():
                return self._negate(node)
            case ir.Not():
                return ir.Not(node.kind, self._value(node.operand))
            case ir.Binary():
                return self._binary(node)
            case ir.Compare():
                return ir.Compare(node.kind, node.op, self._value(node.left), self._value(node.right))
            case ir.Boolean():
                return self._boolean(node)
            case ir.Conditional():
                return self._conditional(node)
            case ir.Call():
                return self._call(node)
            case ir.Cast():
                return self._cast(node)
        raise TypeError(f"no check of {type(node).__name__}")

    def _excuse(self, test: ir.Expression | None, level: int) -> None:
        """Note that what is not finite may come from outside."""
        note = ir.Assign(self.excused.name, integer(level))
        lower = ir.If(compare(self.excused, "<", level), (note,), ())
        self.out.append(lower if test is None else ir.If(test, (lower,), ()))

    def _constant(self, node: ir.Constant | ir.ReadConstant) -> ir.Expression:
        if node.kind is not Kind.REAL or self.indices_only:
            return node
        if isinstance(node, ir.ReadConstant):
            self._excuse(ir.Call(Kind.BOOL, "isinf", (node,)), 1)
            self._excuse(ir.Call(Kind.BOOL, "isnan", (node,)), 2)
        elif not isfinite(node.value):
            self._excuse(None, 2 if isnan(node.value) else 1)
        return node

    def _read(self, node: ir.Read) -> ir.Expression:
        leg, index = self._place(node)
        name = self.mirrors.get(node.parameter)
        value: ir.Expression = ir.Read(node.kind, node.parameter, leg, index)
        if name is not None:
            value = ir.LocalElement(node.kind, name, self._mirrored(leg, index))
        if node.kind is Kind.REAL and not self.indices_only:
            value = self._kept(value)
            self._excuse(ir.Not(Kind.BOOL, finite(value)), 2)
        return value

    def _negate(self, node: ir.Negate) -> ir.Expression:
        value = self._value(node.operand)
        if node.kind is not Kind.INT or self.indices_only or self._range(node.operand)[0] > LOW:
            return ir.Negate(node.kind, value)
        value = self._kept(value)
        failure = self._fails("integer overflow: -({0})", value)
        return self._guarded(compare(value, "==", LOW), failure, ir.Negate(Kind.INT, value), integer(0))

    def _binary(self, node: ir.Binary) -> ir.Expression:
        a, b = self._value(node.left), self._value(node.right)
        whole = node.kind is Kind.INT
        if self.indices_only or not (whole or node.op in ("/", "//", "%")):
            return ir.Binary(node.kind, node.op, a, b)
        if node.op in ("/", "//", "%") and not (isinstance(b, ir.Constant) and b.value):
            a, b = self._kept(a), self._kept(b)
            test = ir.Compare(Kind.BOOL, "==", b, ir.Constant(b.kind, 0 if b.kind is Kind.INT else 0.0))
            failure = self._fails(f"division by zero: {{0}} {node.op} {{1}}", a, b)
            harmless = ir.Constant(b.kind, 1 if b.kind is Kind.INT else 1.0)
            b = self._guarded(test, failure, b, harmless)
        if not whole:
            return ir.Binary(node.kind, node.op, a, b)
        return self._whole(node, a, b)

    def _whole(self, node: ir.Binary, a: ir.Expression, b: ir.Expression) -> ir.Expression:
        """Return an operation on integers; the quotient of the least integer and -1 is too large by one."""
        low, high = self._range(node)
        value = ir.Binary(node.kind, node.op, a, b)
        if low >= LOW and high <= HIGH and node.op in ("+", "-", "*"):
            return value
        if node.op in ("//", "%") and isinstance(b, ir.Constant) and b.value != -1:
            return value
        a, b = self._kept(a), self._kept(b)
        value = ir.Binary(node.kind, node.op, a, b)
        if node.op == "%":
            local = self._local(Kind.INT)
            minus_one = compare(b, "==", -1)
            self.out.append(ir.If(minus_one, (ir.Assign(local.name, integer(0)),), (ir.Assign(local.name, value),)))
            return local
        failure = self._fails(f"integer overflow: {{0}} {node.op} {{1}}", a, b)
        return self._guarded(overflows(node.op, a, b), failure, value, integer(0))

    def _boolean(self, node: ir.Boolean) -> ir.Expression:
        """Python stops at the first value that decides."""
        values, goes_on = [self._value(node.values[0])], node.op == "and"
        for k, item in enumerate(node.values[1:], 1):
            with self._block() as statements:
                last = k == len(node.values) - 1
                rest = self._value(item if last else ir.Boolean(Kind.BOOL, node.op, node.values[k:]))
            if statements:
                found = self._local(Kind.BOOL)
                before = both(node.op, *values)
                self.out.append(ir.Assign(found.name, before))
                test = found if goes_on else ir.Not(Kind.BOOL, found)
                self.out.append(ir.If(test, (*statements, ir.Assign(found.name, rest)), ()))
                return found
            # the last is often a Boolean in its turn: it is rewritten once
            values.append(rest if last else self._value(item))
        return ir.Boolean(Kind.BOOL, node.op, tuple(values))

    def _conditional(self, node: ir.Conditional) -> ir.Expression:
        test = self._value(node.test)
        with self._block() as before:
            yes = self._value(node.yes)
        with self._block() as other:
            no = self._value(node.no)
        if not before and not other:
            return ir.Conditional(node.kind, test, yes, no)
        local = self._local(node.kind)
        yes, no = (v if v.kind is node.kind else ir.Cast(node.kind, v) for v in (yes, no))
        self.out.append(ir.If(test, (*before, ir.Assign(local.name, yes)), (*other, ir.Assign(local.name, no))))
        return local

    def _call(self, node: ir.Call) -> ir.Expression:
        arguments = tuple(self._value(a) for a in node.arguments)
        value = ir.Call(node.kind, node.function, arguments)
        if node.function == "pow" and not self.indices_only:
            return self._power(node, *arguments)
        if node.kind is not Kind.INT or self.indices_only:
            return value
        if node.function in ("floor", "ceil"):
            real = self._kept(arguments[0])
            failure = self._fails(f"integer overflow: {node.function}({{0}})", real)
            return self._guarded(not_an_integer(real), failure, replace(value, arguments=(real,)), integer(0))
        if node.function == "abs":
            whole = self._kept(arguments[0])
            failure = self._fails("integer overflow: abs({0})", whole)
            return self._guarded(compare(whole, "==", LOW), failure, replace(value, arguments=(whole,)), integer(0))
        return value

    def _power(self, node: ir.Call, base: ir.Expression, exponent: ir.Expression) -> ir.Expression:
        """Zero has no negative power in Python."""
        base, exponent = self._kept(base), self._kept(exponent)
        zero = ir.Constant(Kind.REAL, 0.0)
        test = both("and", ir.Compare(Kind.BOOL, "==", base, zero), ir.Compare(Kind.BOOL, "<", exponent, zero))
        failure = self._fails("division by zero: {0} ** {1}", base, exponent)
        return self._guarded(test, failure, replace(node, arguments=(base, exponent)), zero)

    def _cast(self, node: ir.Cast) -> ir.Expression:
        value = self._value(node.operand)
        if node.kind is not Kind.INT or value.kind is not Kind.REAL or self.indices_only:
            return ir.Cast(node.kind, value)
        value = self._kept(value)
        failure = self._fails("integer overflow: int({0})", value)
        return self._guarded(not_an_integer(value), failure, ir.Cast(Kind.INT, value), integer(0))
