"""A kernel that changes nothing and finds what goes wrong in another one: the checking mode as a rewriting of the IR.

The rewritten kernel reads what the kernel reads, computes the same, and keeps in locals what the kernel would write.
Each operation that may go wrong is tested before it is done, and done with a harmless value where the test fails; the
first such *site* of an element is remembered. The element's number and its site together are reduced to their least
value over all elements. As the result is an ordinary kernel, every device runs it, over every kind of set.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from itertools import product
from types import MappingProxyType

import numpy as np

from fluxloom.core.access import Access
from fluxloom.core.dtypes import FLOAT64, Scalar
from fluxloom.kernel import ir
from fluxloom.kernel.analysis import count_flops, nodes, used_components, walk
from fluxloom.kernel.check.tests import (
    Site,
    both,
    compare,
    finite,
    integer,
    stop_of,
)
from fluxloom.kernel.check.values import SITES, Place, ValueChecker
from fluxloom.kernel.ir import RAGGED, Kind
from fluxloom.kernel.lowering import kernel_digest

__all__ = ["SITES", "Checked", "checked_kernel", "index_checks"]

_WRITTEN_OUT = 64
"""Values of an element that are copied one by one."""


@dataclass(frozen=True)
class Checked:
    """The kernel that finds what goes wrong, and its sites: site ``k`` is ``sites[k - 1]``.

    Attributes
    ----------
    number, first, site
        Names of the parameter with the element's number, of the one that is reduced, and of the local with the site.
    """

    kernel: ir.LoweredKernel
    sites: tuple[Site, ...]
    number: str
    first: str
    site: str


def checked_kernel(
    kernel: ir.LoweredKernel,
    stored: Mapping[str, Scalar],
    longest: Mapping[str, int] = MappingProxyType({}),
    *,
    indices_only: bool = False,
) -> Checked | None:
    """Return the kernel that finds what goes wrong in another one; None if nothing in it can.

    Parameters
    ----------
    stored
        In which type the values of each parameter are stored.
    longest
        The longest row of each ragged parameter.
    indices_only
        Find only indices that may be negative: Python itself finds the rest.
    """
    return _Rewriter(kernel, stored, longest, indices_only).result()


def index_checks(
    kernel: ir.LoweredKernel, stored: Mapping[str, Scalar], longest: Mapping[str, int]
) -> Checked | None:
    """Return the checks of indices that may be negative, kept with the kernel; None if there are none."""
    kept: dict[Hashable, Checked | None] = vars(kernel).setdefault("_index_checks", {})
    key = (tuple(sorted((name, s.name) for name, s in stored.items())), tuple(sorted(longest.items())))
    if key not in kept:
        kept[key] = checked_kernel(kernel, stored, longest, indices_only=True)
    return kept[key]


class _Rewriter(ValueChecker):
    def __init__(
        self, kernel: ir.LoweredKernel, stored: Mapping[str, Scalar], longest: Mapping[str, int], indices_only: bool
    ) -> None:
        super().__init__(kernel, stored, indices_only)
        self.longest = longest
        self.mirrors = self._mirrors()

    def result(self) -> Checked | None:
        """Rewrite the body."""
        start: list[ir.Statement] = [ir.Assign(self.site.name, integer(0)), ir.Assign(self.excused.name, integer(0))]
        with self._block() as body:
            self._copy_in()
            self._statements(self.kernel.body)
        if not self.sites:
            return None
        key = ir.Binary(
            Kind.INT, "+", ir.Binary(Kind.INT, "*", ir.Read(Kind.INT, self.number, None, ()), integer(SITES)), self.site
        )
        found = ir.Update(self.first, None, (), "min", key)
        end = ir.If(compare(self.site, ">", 0), (found,), ())
        return Checked(self._kernel((*start, *body, end)), tuple(self.sites), self.number, self.first, self.site.name)

    def _kernel(self, body: tuple[ir.Statement, ...]) -> ir.LoweredKernel:
        old = self.kernel
        every = nodes(body)
        needed = {n.parameter for n in every if isinstance(n, (ir.Read, ir.Length))}
        pairs = [
            (replace(p, access=Access.READ), ir.ArgShape(s.legs, s.components, s.kind, s.is_global))
            for p, s in zip(old.parameters, old.shapes, strict=True) if p.name in needed
        ]  # fmt: skip
        pairs.append((ir.Parameter(self.number, Access.READ), ir.ArgShape(None, (), Kind.INT)))
        pairs.append((ir.Parameter(self.first, Access.MIN), ir.ArgShape(None, (), Kind.INT, is_global=True)))
        parameters, shapes = tuple(p for p, _ in pairs), tuple(s for _, s in pairs)
        named = {n.name for n in every if isinstance(n, (ir.Assign, ir.For, ir.Local))}
        scalars = tuple((name, kind) for name, kind in self.kinds.items() if name in named)
        mirrors = [
            ir.LocalArray(name, self.shapes[p].kind, self._mirror_shape(p)) for p, name in self.mirrors.items()
        ]
        arrays, name = (*old.arrays, *mirrors), f"{old.name}_checked"
        digest = kernel_digest(parameters, shapes, old.constants, scalars, arrays, body, old.tables)
        return ir.LoweredKernel(
            name, parameters, shapes, old.constants, scalars, arrays, body, digest, count_flops(body), old.tables
        )

    # -------------------------------------------------------------------------- what is written
    def _mirrors(self) -> dict[str, str]:
        """Return the local array that stands for each parameter which the kernel writes and reads."""
        every = nodes(self.kernel.body)
        read = {n.parameter for n in every if isinstance(n, ir.Read)}
        written = {n.parameter for n in every if isinstance(n, ir.Store)}
        return {name: self._fresh(f"of_{name}") for name in self.shapes if name in read & written}

    def _mirror_shape(self, parameter: str) -> tuple[int, ...]:
        shape = self.shapes[parameter]
        legs = () if shape.legs is None else (self.longest[parameter],) if shape.legs == RAGGED else (shape.legs,)
        return (*legs, *shape.components) or (1,)

    def _copy_in(self) -> None:
        """Give the stand-ins of ``RW`` parameters their values."""
        for parameter, name in self.mirrors.items():
            if self.access[parameter] is not Access.RW:
                continue
            shape, kind = self.shapes[parameter], self.shapes[parameter].kind
            used = used_components(self.kernel, parameter)
            if used is None and shape.legs != RAGGED and np.prod(self._mirror_shape(parameter)) <= _WRITTEN_OUT:
                legs = [None] if shape.legs is None else range(shape.legs)
                used = frozenset(product(legs, product(*map(range, shape.components))))
            if used is not None:
                places: list[Place] = [
                    (None if leg is None else integer(leg), tuple(map(integer, index)))
                    for leg, index in sorted(used, key=str)
                ]
                for leg, index in places:
                    self._copy(parameter, name, kind, leg, index)
            else:
                self._copy_all(parameter, name, kind)

    def _copy(
        self, parameter: str, name: str, kind: Kind, leg: ir.Expression | None, index: tuple[ir.Expression, ...]
    ) -> None:
        value = ir.Read(kind, parameter, leg, index)
        if isinstance(leg, ir.Constant) and self.shapes[parameter].legs == RAGGED:
            length = ir.Length(Kind.INT, parameter)
            store = ir.StoreLocal(name, self._mirrored(leg, index), value)
            self.out.append(ir.If(compare(leg, "<", length), (store,), ()))
            return
        self.out.append(ir.StoreLocal(name, self._mirrored(leg, index), value))

    def _copy_all(self, parameter: str, name: str, kind: Kind) -> None:
        shape = self.shapes[parameter]
        stops: list[ir.Expression] = [integer(n) for n in shape.components]
        if shape.legs is not None:
            stops.insert(0, stop_of(shape, parameter))
        counters = [self._local(Kind.INT, "c") for _ in stops]
        leg, index = (counters[0], counters[1:]) if shape.legs is not None else (None, counters)
        places = self._mirrored(leg, tuple(index))
        body: tuple[ir.Statement, ...] = (ir.StoreLocal(name, places, ir.Read(kind, parameter, leg, tuple(index))),)
        for counter, stop in zip(reversed(counters), reversed(stops), strict=True):
            body = (ir.For(counter.name, integer(0), stop, 1, body),)
        self.out += body

    # -------------------------------------------------------------------------------- statements
    def _statements(self, body: tuple[ir.Statement, ...]) -> None:
        for node in body:
            self.location = node.location
            self._statement(node)

    def _statement(self, node: ir.Statement) -> None:
        match node:
            case ir.Assign():
                self.out.append(replace(node, value=self._value(node.value)))
            case ir.StoreLocal():
                value = self._value(node.value)
                index = self._indices(node.name, node.index, self.dims[node.name])
                self.out.append(replace(node, value=value, index=index))
            case ir.Store():
                self._store(node)
            case ir.Update():
                self._place(node)
                self._written(node.parameter, self._value(node.value))
            case ir.If():
                test = self._value(node.test)
                with self._block() as yes:
                    self._statements(node.body)
                with self._block() as no:
                    self._statements(node.orelse)
                self.out.append(ir.If(test, tuple(yes), tuple(no)))
            case ir.For():
                self._for(node)
            case ir.While():
                self._while(node)
            case _:
                raise TypeError(f"no check of {type(node).__name__}")

    def _store(self, node: ir.Store) -> None:
        value = self._written(node.parameter, self._value(node.value))
        leg, index = self._place(node)
        if (name := self.mirrors.get(node.parameter)) is not None:
            self.out.append(ir.StoreLocal(name, self._mirrored(leg, index), value))

    def _written(self, parameter: str, value: ir.Expression) -> ir.Expression:
        """Check a value that goes to a parameter; return it."""
        stored = self.stored[parameter]
        if self.indices_only:
            return value
        if self.shapes[parameter].kind is Kind.INT:
            low, high = self.ranges[parameter]
            known = self._range(value)
            if known[0] < low or known[1] > high:
                value = self._kept(value)
                test = both("or", compare(value, "<", low), compare(value, ">", high))
                failure = self._fails(f"integer overflow: {{0}} is written to {parameter!r}, of {stored.name}", value)
                return self._guarded(test, failure, value, integer(0))
            return value
        value = self._kept(value if value.kind is Kind.REAL else ir.Cast(Kind.REAL, value))
        unlike: ir.Expression = ir.Not(Kind.BOOL, finite(value))
        if stored.size < FLOAT64.size:
            most = float(np.finfo(stored.name).max)
            unlike = both("or", unlike, ir.Compare(Kind.BOOL, ">", value, ir.Constant(Kind.REAL, most)),
                          ir.Compare(Kind.BOOL, "<", value, ir.Constant(Kind.REAL, -most)))  # fmt: skip
        text = f"{{0}} is written to {parameter!r}: not finite in {stored.name}, but all that the element read is"
        failure = self._fails(text, value)
        excused = ir.Conditional(Kind.INT, ir.Call(Kind.BOOL, "isnan", (value,)), integer(2), integer(1))
        self.out.append(ir.If(unlike, (ir.If(compare(self.excused, "<", excused), (failure,), ()),), ()))
        return value

    def _for(self, node: ir.For) -> None:
        start, stop = self._value(node.start), self._value(node.stop)
        assigned = {s.name for s in walk(node.body) if isinstance(s, (ir.Assign, ir.For))}
        before = self.counters.pop(node.name, None)
        if node.name not in assigned:
            first, last = self._range(start), self._range(stop)
            self.counters[node.name] = (first[0], last[1] - 1) if node.step > 0 else (last[0] + 1, first[1])
        with self._block() as body:
            self._statements(node.body)
        self.counters.pop(node.name, None)
        if before is not None:
            self.counters[node.name] = before
        self.out.append(replace(node, start=start, stop=stop, body=tuple(body)))

    def _while(self, node: ir.While) -> None:
        """A loop ends at the first thing that goes wrong: it may never end otherwise."""
        going = self._local(Kind.BOOL, "going")
        self._go_on(going, node.test)
        with self._block() as body:
            self._statements(node.body)
            self.location = node.location
            self._go_on(going, node.test)
        self.out.append(ir.While(going, tuple(body)))

    def _go_on(self, going: ir.Local, test: ir.Expression) -> None:
        self.out.append(ir.Assign(going.name, self._value(test)))
        self.out.append(ir.If(compare(self.site, ">", 0), (ir.Assign(going.name, ir.Constant(Kind.BOOL, False)),), ()))
