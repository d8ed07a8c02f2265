"""Lowering of statements: assignments, conditions, definite assignment, the access contract."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable
from dataclasses import replace

from fluxloom.core.access import Access
from fluxloom.core.errors import AccessError
from fluxloom.kernel import fold, ir
from fluxloom.kernel.contract import REDUCTION_HINTS, base_name, refusal
from fluxloom.kernel.evaluate import ExpressionLowerer
from fluxloom.kernel.intrinsics import INTRINSICS, Intrinsic
from fluxloom.kernel.ir import Kind
from fluxloom.kernel.state import Scope
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

__all__ = ["StatementLowerer"]


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
