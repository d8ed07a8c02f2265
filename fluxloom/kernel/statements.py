"""Lowering of statements: assignments, conditions, definite assignment, the access contract; and of loops.

Loops are unrolled where that is short and the trips are known, kept otherwise.
"""

from __future__ import annotations

import ast
import functools
import math
from collections.abc import Callable
from dataclasses import replace

from fluxloom.core.access import Access
from fluxloom.core.errors import AccessError
from fluxloom.kernel import fold, ir
from fluxloom.kernel.analysis import Counted, is_counted
from fluxloom.kernel.contract import REDUCTION_HINTS, base_name, refusal
from fluxloom.kernel.evaluate import ExpressionLowerer
from fluxloom.kernel.intrinsics import INTRINSICS, Intrinsic
from fluxloom.kernel.ir import RAGGED, Constant, Expression, For, Kind, Length, Local, Statement, While
from fluxloom.kernel.source import assigned_names, dotted_name
from fluxloom.kernel.state import ALL, Rebound, Scope, UnrollOverflow
from fluxloom.kernel.values import (
    ArrayView,
    FunctionValue,
    ListValue,
    ParameterView,
    RecordValue,
    StoredField,
    TupleValue,
    Value,
    inner_values,
)  # fmt: skip

__all__ = ["LoopLowerer", "StatementLowerer"]


def _is_fresh(value: Value) -> bool:
    """Whether no field of a record is that of a variable."""
    return not isinstance(value, StoredField) and all(map(_is_fresh, inner_values(value)))


class StatementLowerer(ExpressionLowerer):
    """Lowers the statements of a kernel; loops and the inlining of helpers are left to the classes above it."""

    def block(self, scope: Scope, nodes: list[ast.stmt]) -> None:
        """Lower statements into the current block."""
        for node in nodes:
            self.statement(scope, node)

    def statement(self, scope: Scope, node: ast.stmt) -> None:
        """Lower one statement."""
        if isinstance(node, ast.Pass) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
            return
        self.builder.where = scope.place(node)
        handler: Callable[[Scope, ast.stmt], None] | None = getattr(self, f"visit_{type(node).__name__}", None)
        if handler is None:
            raise scope.source.error(node, f"{type(node).__name__} is not part of the kernel language")
        handler(scope, node)

    def visit_Expr(self, scope: Scope, node: ast.Expr) -> None:
        """Lower a call of a procedure."""
        assert isinstance(node.value, ast.Call)
        called = self.callee(scope, node.value.func)
        if not isinstance(called, FunctionValue):
            raise scope.source.error(node, "this expression has no effect", "assign it, or remove it")
        self.inline(scope, node.value, called)

    # ------------------------------------------------------------------------------ assignments

    def visit_Assign(self, scope: Scope, node: ast.Assign) -> None:
        """Lower an assignment."""
        self.assign(scope, node.targets[0], node.value)

    def visit_AnnAssign(self, scope: Scope, node: ast.AnnAssign) -> None:
        """Lower an annotated assignment."""
        assert node.value is not None
        self.assign(scope, node.target, node.value)

    def right_side(self, scope: Scope, node: ast.expr) -> Value:
        """Lower the whole right side of an assignment; a helper called here may write to its arguments."""
        called = self.callee(scope, node.func) if isinstance(node, ast.Call) else None
        if isinstance(node, ast.Call) and isinstance(called, FunctionValue):
            return self.result(scope, node, called)
        return self.value(scope, node)

    def assign(self, scope: Scope, target: ast.expr, value_node: ast.expr) -> None:
        """Lower ``target = value``."""
        if isinstance(target, ast.Tuple):
            self._assign_tuple(scope, target, value_node)
        elif isinstance(target, ast.Subscript) and self._reduction(scope, target, value_node):
            return
        else:
            self.bind(scope, target, self.right_side(scope, value_node))

    def _assign_tuple(self, scope: Scope, target: ast.Tuple, value_node: ast.expr) -> None:
        value = self.right_side(scope, value_node)
        items: list[Value]
        if isinstance(value, TupleValue):
            items = list(value.items)
        else:
            count = self.count(value)
            if count is None:
                raise scope.source.error(value_node, "a tuple is needed on the right side")
            items = [self.item(scope, value_node, value, index) for index in range(count)]
        if len(items) != len(target.elts):
            raise scope.source.error(target, f"{len(target.elts)} names for {len(items)} values")
        if len(items) > 1:
            # all values are taken before the first assignment
            items = [self.stable(item) for item in items]
        for item, part in zip(target.elts, items, strict=True):
            if isinstance(item, ast.Tuple):
                raise scope.source.error(item, "nested tuples of targets are not part of the kernel language")
            self.bind(scope, item, part)

    def stable(self, value: Value) -> Value:
        """Return a value that later assignments do not change (views stay views, as in Python)."""
        if isinstance(value, StoredField):
            value = self.builder.local(value.name)
        if isinstance(value, ir.Expression):
            return self._stable_scalar(value)
        if isinstance(value, TupleValue):
            return TupleValue(tuple(self.stable(item) for item in value.items))
        if isinstance(value, RecordValue) and value.given is None:
            return replace(value, fields=tuple((name, self.stable(item)) for name, item in value.fields))
        if isinstance(value, FunctionValue) and value.record is not None:
            record = self.stable(value.record)
            return replace(value, record=record) if isinstance(record, RecordValue) else value
        if isinstance(value, ListValue):
            return self.materialise(value, self.builder.unique("list"))
        if isinstance(value, ParameterView):
            return ParameterView(value.parameter, self._stable_path(value.path))
        return ArrayView(value.array, self._stable_path(value.path)) if isinstance(value, ArrayView) else value

    def _stable_path(self, path: tuple[ir.Expression, ...]) -> tuple[ir.Expression, ...]:
        return tuple(self._stable_scalar(item) for item in path)

    def _stable_scalar(self, value: ir.Expression) -> ir.Expression:
        fixed = isinstance(value, (ir.ReadConstant, ir.Length))
        fixed = fixed or (isinstance(value, ir.Local) and value.name in self.builder.loops)
        return value if fixed else self.builder.temporary(value)

    def bind(self, scope: Scope, target: ast.expr, value: Value) -> None:
        """Assign a lowered value to a name or an element."""
        if isinstance(target, ast.Subscript):
            if not isinstance(value, ir.Expression):
                raise scope.source.error(target, *self.not_scalar(value))
            self.store(scope, target, value)
            return
        assert isinstance(target, ast.Name)
        name = scope.names[target.id]
        with self.located(scope, target):
            if isinstance(value, ir.Expression):
                self.builder.assign(name, value)
                return
            if isinstance(value, RecordValue) and value.given is None:
                value = self._stored(name, value if _is_fresh(value) else self.stable(value))
            else:
                value = self.materialise(value, name) if isinstance(value, ListValue) else self.stable(value)
        self.builder.flow.assigned.discard(name)
        self.builder.flow.bound[name] = value

    def _stored(self, owner: str, value: Value) -> Value:
        """Give the fields of a record, which nothing changes meanwhile, to locals of the variable ``owner``."""
        if not (isinstance(value, RecordValue) and value.given is None):
            return self.stable(value)
        parts: list[tuple[str, Value]] = []
        for name, item in value.fields:
            local = self.builder.field(owner, name)
            scalar = isinstance(item, ir.Expression)
            parts.append((name, self.builder.store_field(local, item) if scalar else self._stored(local, item)))
        return replace(value, fields=tuple(parts))

    def _place(self, scope: Scope, target: ast.Subscript) -> ParameterView | ArrayView:
        """Lower the target of an assignment to a complete place."""
        place = self.subscripted(scope, target)
        table = isinstance(place, ArrayView) and place.array in self.builder.tables
        if isinstance(place, (ParameterView, ArrayView)) and not table:
            if not self.extents(place):
                return place
            raise scope.source.error(target, *self.not_scalar(place))
        raise scope.source.error(target, "this cannot be assigned to", "copy it to a local array first")

    def store(self, scope: Scope, target: ast.Subscript, value: ir.Expression) -> None:
        """Lower ``place = value``."""
        place = self._place(scope, target)
        builder = self.builder
        if isinstance(place, ArrayView):
            with self.located(scope, target):
                builder.store_local(place.array, place.path, value)
            return
        name = place.parameter
        self._allow(scope, target, name)
        with self.located(scope, target):
            value = fold.convert(builder.shapes[name].kind, value)
        leg, index = builder.split(name, place.path)
        builder.effects.append(name)
        builder.emit(ir.Store(name, leg, index, value, location=builder.where))
        builder.mark_written(name, place.path)

    def _allow(self, scope: Scope, node: ast.AST, name: str, op: ast.operator | None = None) -> None:
        """Raise `AccessError` where a parameter may not be assigned, or updated by an operator."""
        problem = refusal(name, self.builder.parameters[name].access, op)
        if problem is not None:
            raise scope.source.error(node, *problem, kind=AccessError)

    def visit_AugAssign(self, scope: Scope, node: ast.AugAssign) -> None:
        """Lower an augmented assignment."""
        target = node.target
        if isinstance(target, ast.Name):
            old = self.scalar(scope, ast.copy_location(ast.Name(target.id, ast.Load()), target))
            value = self.arithmetic(scope, node, node.op, old, self.scalar(scope, node.value))
            self.bind(scope, target, value)
            return
        assert isinstance(target, ast.Subscript)
        value = self.scalar(scope, node.value)
        place = self._place(scope, target)
        if isinstance(place, ParameterView):
            self._allow(scope, node, place.parameter, node.op)
            if self.builder.parameters[place.parameter].access.reduces:
                with self.located(scope, node):
                    self._update(place, "+", fold.negate(value) if isinstance(node.op, ast.Sub) else value)
                return
            old = self.read(scope, target, place)
        else:
            old = self.builder.element(place.array, place.path)
        self.store(scope, target, self.arithmetic(scope, node, node.op, old, value))

    def _update(self, place: ParameterView, op: str, value: ir.Expression) -> None:
        builder = self.builder
        value = fold.convert(builder.shapes[place.parameter].kind, value)
        leg, index = builder.split(place.parameter, place.path)
        builder.effects.append(place.parameter)
        builder.emit(ir.Update(place.parameter, leg, index, op, value, location=builder.where))

    def _reduction(self, scope: Scope, target: ast.Subscript, value_node: ast.expr) -> bool:
        """Lower ``p[0] = min(p[0], value)`` for a ``Min`` or ``Max`` parameter; False when it is none."""
        base = base_name(target)
        bound = self.builder.flow.bound.get(scope.names.get(base, ""))
        if not isinstance(bound, ParameterView):
            return False
        name = bound.parameter
        access = self.builder.parameters[name].access
        if access not in (Access.MIN, Access.MAX):
            return False
        place = self._place(scope, target)
        op = access.value.lower()
        called = scope.source.resolve(value_node.func) if isinstance(value_node, ast.Call) else None
        others: list[ast.expr] = []
        if isinstance(value_node, ast.Call) and isinstance(called, Intrinsic) and called.name == op:
            others = [item for item in value_node.args if not self._is_place(scope, item, place)]
            if len(others) != len(value_node.args) - 1:
                others = []
        if not others:
            raise scope.source.error(target, f"{name!r} is {access.value} but is assigned", REDUCTION_HINTS[access],
                                     kind=AccessError)  # fmt: skip
        values = tuple(self.scalar(scope, item) for item in others)
        with self.located(scope, value_node):
            assert isinstance(place, ParameterView)
            assert isinstance(value_node, ast.Call)
            if len(values) > 1 and self._is_place(scope, value_node.args[0], place):
                # it is compared with each in turn: a NaN among them hides none that follows
                kind = self.builder.shapes[place.parameter].kind
                values = ((fold.real(math.inf if op == "min" else -math.inf), *values) if kind is Kind.REAL else values)
            self._update(place, op, values[0] if len(values) == 1 else fold.call(INTRINSICS[op], values))
        return True

    def _is_place(self, scope: Scope, node: ast.expr, place: Value) -> bool:
        root = self.builder.flow.bound.get(scope.names.get(base_name(node), ""))
        return (
            isinstance(node, ast.Subscript)
            and isinstance(root, ParameterView)
            and isinstance(place, ParameterView)
            and root.parameter == place.parameter
            and self.subscripted(scope, node) == place
        )

    # ------------------------------------------------------------------------------ conditions

    def visit_If(self, scope: Scope, node: ast.If) -> None:
        """Lower a conditional statement; one with a constant test disappears."""
        test = self.condition(scope, node.test)
        if isinstance(test, ir.Constant):
            self.block(scope, node.body if test.value else node.orelse)
            return
        where = self.builder.where
        yes = self.builder.branch(lambda: self.block(scope, node.body))
        no = self.builder.branch(lambda: self.block(scope, node.orelse))
        self.builder.choose(test, yes, no, where)


UNROLLED_TRIPS = 64

ROLLED_NODES = 2000
"""The same of a loop over `rolled`: writing out one that is so short costs the compiler little, and runs faster."""

UNROLLED_NODES = 8000
"""Most IR nodes that one unrolled loop nest may produce; beyond, the loop stays a loop."""


@functools.lru_cache(maxsize=1024)  # a loop inside another one is lowered again and again
def _indexed(node: ast.For) -> tuple[ast.expr, ...]:
    """Return the names and attributes that the counter of a loop indexes."""
    found: list[ast.expr] = []
    for item in (inner for statement in node.body for inner in ast.walk(statement)):
        if isinstance(item, ast.Subscript) and isinstance(item.value, (ast.Name, ast.Attribute)):
            used = {part.id for part in ast.walk(item.slice) if isinstance(part, ast.Name)}
            if isinstance(node.target, ast.Name) and node.target.id in used:
                found.append(item.value)
    return tuple(found)


class LoopLowerer(StatementLowerer):
    """Lowers the statements of a kernel, loops included; inlining of helpers is left to the kernel lowerer."""

    def _repeat(self, scope: Scope, nodes: list[ast.stmt], lower: Callable[[frozenset[str]], None]) -> None:
        """Lower a loop that stays a loop with ``lower``, which gets the names taken to be the same on each trip.

        A name that the body binds to an array is first taken to stand for the same storage before
        and after the body; when that proves wrong the name is dropped at the start of the body.
        """
        names = {scope.names[name] for name in assigned_names(nodes)}
        kept = frozenset(names & self.builder.flow.bound.keys())
        if kept:
            try:
                with self.builder.attempt():
                    lower(kept)
                return
            except Rebound:
                pass
        lower(frozenset())

    def _body(self, scope: Scope, nodes: list[ast.stmt], kept: frozenset[str]) -> tuple[Statement, ...]:
        """Lower the body of a loop that stays a loop."""
        builder = self.builder
        before = {name: builder.flow.bound[name] for name in kept}
        with builder.block() as body:
            self.block(scope, nodes)
        if any(builder.flow.bound.get(name) != value for name, value in before.items()):
            raise Rebound
        return tuple(body)

    def visit_While(self, scope: Scope, node: ast.While) -> None:
        """Lower a while loop."""
        builder, where = self.builder, self.builder.where

        def lower(kept: frozenset[str]) -> None:
            builder.flow.forget((scope.names[name] for name in assigned_names(node.body)), kept)
            with builder.block() as needed:
                test = self.condition(scope, node.test)
            if needed:
                hint = "keep the condition in a local, computed before the loop and at the end of its body"
                raise scope.source.error(node.test, "the test of a while loop is too complex", hint)
            if test == Constant(Kind.BOOL, False):
                return
            before = builder.flow.copy()
            body = self._body(scope, node.body, kept)
            builder.flow = before.meet(builder.flow)
            builder.emit(While(test, body, location=where))

        self._repeat(scope, node.body, lower)

    def visit_For(self, scope: Scope, node: ast.For) -> None:
        """Lower a counted loop: unrolled when short and known, else kept."""
        assert isinstance(node.target, ast.Name)
        assert isinstance(node.iter, ast.Call)
        called = scope.source.resolve(node.iter.func)
        rolled = isinstance(called, Intrinsic) and called.name == "rolled"
        arguments = [self.integer(scope, item, "an argument of range") for item in node.iter.args]
        start = arguments[0] if len(arguments) > 1 else fold.integer(0)
        stop = arguments[min(1, len(arguments) - 1)]
        step = arguments[2] if len(arguments) == 3 else fold.integer(1)
        if not isinstance(step, Constant) or step.value == 0:
            raise scope.source.error(node.iter.args[-1], "the step of range must be a constant other than zero")
        trips: range | None = None
        if isinstance(start, Constant) and isinstance(stop, Constant):
            trips = range(int(start.value), int(stop.value), int(step.value))
        if trips is not None and self._chooses(scope, node):
            self._unroll(scope, node, trips)
            return
        if trips is not None and len(trips) <= UNROLLED_TRIPS:
            depth = len(self.builder.limits)
            try:
                with self.builder.attempt(ROLLED_NODES if rolled else UNROLLED_NODES):
                    self._unroll(scope, node, trips)
                return
            except UnrollOverflow as overflow:
                if overflow.depth != depth:
                    raise
        if trips is not None and not trips:
            return
        # `range` takes its arguments once, a C loop looks at its bound before every trip
        loop = For(scope.names[node.target.id], self._bound(start), self._bound(stop), int(step.value), (),
                   location=self.builder.where)  # fmt: skip
        self._repeat(scope, node.body, lambda kept: self._loop(scope, node, loop, trips, kept))

    def _chooses(self, scope: Scope, node: ast.For) -> bool:
        """Whether the counter of a loop chooses among records or formulas: only one that is written out can."""
        return any(isinstance(self._strategy(scope, item), TupleValue) for item in _indexed(node))

    def _strategy(self, scope: Scope, node: ast.expr) -> Value | None:
        """Return the tuple or record that a name or an attribute stands for, None if it is something else."""
        if isinstance(node, ast.Attribute) and (base := self._strategy(scope, node.value)) is not None:
            return base.part(node.attr) if isinstance(base, RecordValue) else None
        found = self.builder.flow.bound.get(scope.names.get(dotted_name(node), "")) or scope.source.resolve(node)
        return found if isinstance(found, (RecordValue, TupleValue)) else None

    def _bound(self, value: Expression) -> Expression:
        """Return a bound that the body of its loop does not change."""
        return value if is_counted(value, self.builder.loops) else self._stable_scalar(value)

    def _unroll(self, scope: Scope, node: ast.For, trips: range) -> None:
        assert isinstance(node.target, ast.Name)
        name = scope.names[node.target.id]
        for trip in trips:
            self.builder.flow.bound[name] = fold.integer(trip)
            self.block(scope, node.body)
        self.builder.flow.bound.pop(name, None)

    def _loop(self, scope: Scope, node: ast.For, loop: For, trips: range | None, kept: frozenset[str]) -> None:
        """Lower a loop that stays a loop."""
        builder, name = self.builder, loop.name
        builder.flow.forget((scope.names[item] for item in assigned_names(node.body)), kept)
        before = builder.flow.copy()
        builder.kinds[name] = Kind.INT
        builder.flow.bound[name] = Local(Kind.INT, name)
        builder.loops[name] = trips
        try:
            body = self._body(scope, node.body, kept)
        finally:
            del builder.loops[name]
        ragged = isinstance(loop.stop, Length) and loop.start == fold.integer(0) and loop.step == 1
        after = builder.flow
        if trips or ragged:
            after.end_loop(name, trips, builder.extents)
        else:
            after.end_counted(Counted.of(loop), before.written, frozenset(builder.loops))
        builder.flow = after if trips else before.meet(after)
        if not trips and not ragged:
            builder.flow.written = after.written  # in all trips there are, none included
        if ragged:
            # an element without legs has nothing to write
            legs = {
                item for item in after.written if builder.extents(item.parameter)[0] == RAGGED and item.path[0] == ALL
            }
            builder.flow.written |= legs
        builder.flow.bound.pop(name, None)
        builder.emit(replace(loop, body=body))
