"""Lowering of expressions: syntax to typed, folded IR, or to a view, an array or a tuple.

Among them attributes of records and calls: of helpers, of formulas and records, of the class of a record.
"""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Callable, Mapping
from math import prod
from types import MappingProxyType
from typing import Any, TypeVar

from fluxloom.kernel import fold, ir
from fluxloom.kernel.analysis import expressions
from fluxloom.kernel.indexing import IndexLowerer
from fluxloom.kernel.intrinsics import Intrinsic
from fluxloom.kernel.ir import RAGGED, Expression, Kind
from fluxloom.kernel.record_fields import Helper, RecordProblem, built_fields, named_arguments
from fluxloom.kernel.state import Branch, Scope
from fluxloom.kernel.values import (
    FunctionValue,
    Known,
    ListValue,
    NoneValue,
    ParameterView,
    RecordValue,
    StoredField,
    TupleValue,
    Value,
    called_method,
    default_value,
    member,
    number,
)  # fmt: skip  # fmt: skip

__all__ = ["ExpressionLowerer", "StrategyLowerer"]

V = TypeVar("V")


class StrategyLowerer(IndexLowerer):
    """Lowers what belongs to records and formulas; inlining is left to the kernel lowerer."""

    @abstractmethod
    def inline(self, scope: Scope, node: ast.Call, called: FunctionValue) -> Value | None:
        """Inline a call of a helper and return what it returns."""

    @abstractmethod
    def stable(self, value: Value) -> Value:
        """Return a value that later assignments do not change (views stay views, as in Python)."""

    @abstractmethod
    def joined(self, scope: Scope, node: ast.AST, test: Expression, yes: Branch[Any], no: Branch[Any]) -> Value | None:
        """Emit a conditional whose branches have been lowered; return what both give, copied to common locals."""

    def visit_Attribute(self, scope: Scope, node: ast.Attribute) -> Value:
        """Lower an attribute of a module, or of a record."""
        if scope.source.resolve(node) is not None:
            return self.captured(scope, node)
        record = self.value(scope, node.value)
        if not isinstance(record, RecordValue):
            raise scope.source.error(node, *self.no_attributes(record))
        found = self.of_record(scope, node, lambda: member(record, node.attr))
        if isinstance(found, FunctionValue) and found.at_once:
            return self.called(scope, ast.copy_location(ast.Call(node, [], []), node), found)
        return self.builder.local(found.name) if isinstance(found, StoredField) else found

    def no_attributes(self, value: Value) -> tuple[str, str]:
        """Return the message and the hint for an attribute of something that has none."""
        if isinstance(value, NoneValue):
            return self.not_scalar(value)
        return "attribute access on what is no record is not part of the kernel language", "index data: x[0]"

    def of_record(self, scope: Scope, node: ast.AST, find: Callable[[], V]) -> V:
        """Return what is found in a record; a `RecordProblem` gets the location of ``node``."""
        try:
            return find()
        except RecordProblem as problem:
            raise scope.source.error(node, problem.message, problem.hint) from None

    def callee(self, scope: Scope, node: ast.expr) -> Intrinsic | FunctionValue | type:
        """Return what a call calls: a formula, an intrinsic, or the class of a record that is built."""
        found = scope.source.resolve(node)
        if isinstance(found, Helper):
            return FunctionValue(found)
        if isinstance(found, (Intrinsic, type)):
            return found
        value = self.value(scope, node)
        if isinstance(value, RecordValue):
            return self.of_record(scope, node, lambda: called_method(value))
        if isinstance(value, FunctionValue):
            return value
        what = ast.unparse(node)
        if isinstance(value, NoneValue):
            raise scope.source.error(node, *self.not_scalar(value))
        raise scope.source.error(node, f"{what!r} is not a function", "call a @func, a record or one of its methods")

    def captured(self, scope: Scope, node: ast.Name | ast.Attribute) -> Value:
        """Lower a name from outside."""
        found = scope.source.resolve(node)
        if isinstance(found, Helper):
            return FunctionValue(found)
        if isinstance(found, Known):
            return found
        raise scope.source.error(node, "this name cannot be used as a value")

    def result(self, scope: Scope, node: ast.Call, called: FunctionValue) -> Value:
        """Lower a call of a helper that has to return something; it may write to its arguments."""
        value = self.inline(scope, node, called)
        if value is None:
            raise scope.source.error(node, f"{called.helper.source.name!r} returns nothing", "call it as a statement")
        return value

    def called(self, scope: Scope, node: ast.Call, called: FunctionValue) -> Value:
        """Lower a call of a helper inside an expression."""
        outside, mark = {*self.builder.slots, *self.builder.shapes}, len(self.builder.effects)
        value, name = self.result(scope, node, called), called.helper.source.name
        if not outside.isdisjoint(self.builder.effects[mark:]):
            # its stores would be moved before the rest of the expression, which may read the same data
            raise scope.source.error(node, f"{name!r} writes to its arguments inside an expression",
                                     "assign its result to a local on a line of its own")  # fmt: skip
        return value

    def built(self, scope: Scope, node: ast.Call, kind: type) -> Value:
        """Lower a call of the class of a record."""
        names, defaults = built_fields(kind)
        given = {name: self.stable(self.value(scope, item)) for name, item in named_arguments(kind, node).items()}
        for name in names:
            if name not in given:
                given[name] = self.of_record(scope, node, lambda n=name: default_value(kind, n, defaults[n]))
        return RecordValue(kind, tuple((name, given[name]) for name in names))


BINARY: Mapping[type[ast.operator], str] = MappingProxyType({
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%",
})  # fmt: skip
COMPARE: Mapping[type[ast.cmpop], str] = MappingProxyType({
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
})  # fmt: skip

LONGEST = 64
"""Operands of `and` or `or`, and conditional expressions in a row, that become one expression."""


class ExpressionLowerer(StrategyLowerer):
    """Lowers expressions; inlining of helpers is left to the statement lowerer."""

    # ----------------------------------------------------------------------------------- atoms

    def value(self, scope: Scope, node: ast.expr) -> Value:
        """Lower any expression."""
        handler: Callable[[Scope, ast.expr], Value] | None = getattr(self, f"visit_{type(node).__name__}", None)
        if handler is None:
            raise scope.source.error(node, f"{type(node).__name__} is not part of the kernel language")
        return handler(scope, node)

    def visit_Constant(self, scope: Scope, node: ast.Constant) -> Value:
        """Lower a literal."""
        value = number(node.value)
        if value is None:
            raise scope.source.error(node, f"{node.value!r} is not part of the kernel language")
        return value

    def visit_Name(self, scope: Scope, node: ast.Name) -> Value:
        """Lower a name."""
        name = scope.names.get(node.id)
        if name is None:
            return self.captured(scope, node)
        flow = self.builder.flow
        if name in flow.bound:
            return flow.bound[name]
        if name in flow.assigned:
            return self.builder.local(name)
        if name in flow.parted:
            raise scope.source.error(
                node, f"{node.id!r} stands for different things on the paths that lead here",
                "call it inside each branch or loop, or copy its numbers to locals",
            )  # fmt: skip
        raise scope.source.error(
            node, f"{node.id!r} may be used before it is assigned", "give it a value on every path that leads here"
        )

    def visit_Tuple(self, scope: Scope, node: ast.Tuple) -> Value:
        """Lower a tuple display."""
        return TupleValue(tuple(self.value(scope, item) for item in node.elts))

    # ----------------------------------------------------------------------------------- lists

    def visit_List(self, scope: Scope, node: ast.List) -> Value:
        """Lower a list display."""
        return self._stacked(scope, node, [self.value(scope, item) for item in node.elts])

    def _stacked(self, scope: Scope, node: ast.expr, items: list[Value]) -> Value:
        if not items:
            raise scope.source.error(node, "an empty list has no kind", "say how long it is: [0.0] * n")
        if all(isinstance(item, ir.Expression) for item in items):
            return ListValue((len(items),), tuple(item for item in items if isinstance(item, ir.Expression)))
        shapes = {item.shape if isinstance(item, ListValue) else None for item in items}
        shape = shapes.pop()
        if shapes or shape is None:
            raise scope.source.error(node, "a list holds numbers, or lists of equal lengths")
        elements = [element for item in items if isinstance(item, ListValue) for element in item.elements]
        return ListValue((len(items), *shape), tuple(elements))

    def visit_ListComp(self, scope: Scope, node: ast.ListComp) -> Value:
        """Lower an array of zeros written as a comprehension."""
        call = node.generators[0].iter
        assert isinstance(call, ast.Call)
        count = self._size(scope, call.args[0])
        return self._stacked(scope, node, [self.value(scope, node.elt)] * count)

    def _size(self, scope: Scope, node: ast.expr) -> int:
        value = self.integer(scope, node, "the size of an array")
        if not isinstance(value, ir.Constant) or value.value < 1:
            raise scope.source.error(node, "the size of a local array must be a positive constant",
                                     "use a literal, a module constant or a Const[int] parameter")  # fmt: skip
        return int(value.value)

    # ------------------------------------------------------------------------------- operators

    def visit_BinOp(self, scope: Scope, node: ast.BinOp) -> Value:
        """Lower an arithmetic operation."""
        if isinstance(node.op, ast.Mult) and isinstance(node.left, ast.List):
            items = self.visit_List(scope, node.left)
            assert isinstance(items, ListValue)
            if len(items.shape) != 1:
                raise scope.source.error(node, "a repeated list holds scalars only", "use fluxloom.zeros(n, m)")
            elements = items.elements * self._size(scope, node.right)
            return ListValue((len(elements),), elements)
        left, right = self.scalar(scope, node.left), self.scalar(scope, node.right)
        return self.arithmetic(scope, node, node.op, left, right)

    def arithmetic(
        self, scope: Scope, node: ast.AST, op: ast.operator, left: ir.Expression, right: ir.Expression
    ) -> ir.Expression:
        """Return ``left op right``."""
        with self.located(scope, node):
            if not isinstance(op, ast.Pow):
                return fold.binary(BINARY[type(op)], left, right)
            if isinstance(right, ir.Constant) and right.value not in (0, 1, -1, 0.5) and abs(right.value) <= 8:
                left = left if _is_cheap(left) else self.builder.temporary(left)
            return fold.power(left, right)

    def visit_UnaryOp(self, scope: Scope, node: ast.UnaryOp) -> Value:
        """Lower a sign or a negation."""
        value = self.scalar(scope, node.operand)
        with self.located(scope, node):
            if isinstance(node.op, ast.Not):
                return fold.negation(value)
            return fold.negate(value) if isinstance(node.op, ast.USub) else fold.binary("-", value, fold.integer(0))

    def visit_Compare(self, scope: Scope, node: ast.Compare) -> Value:
        """Lower a comparison, perhaps chained."""
        if isinstance(node.ops[0], (ast.Is, ast.IsNot)):
            absent = isinstance(self.value(scope, node.left), NoneValue)
            return ir.Constant(Kind.BOOL, absent is isinstance(node.ops[0], ast.Is))
        left = self.scalar(scope, node.left)
        tests: list[ir.Expression] = []
        with self.located(scope, node):
            for position, (op, operand) in enumerate(zip(node.ops, node.comparators, strict=True)):
                right = self.scalar(scope, operand)
                if position < len(node.ops) - 1 and not _is_cheap(right):
                    right = self.builder.temporary(right)
                tests.append(fold.compare(COMPARE[type(op)], left, right))
                left = right
            return fold.boolean("and", tuple(tests))

    def visit_BoolOp(self, scope: Scope, node: ast.BoolOp) -> Value:
        """Lower ``and`` or ``or``."""
        op, builder = "and" if isinstance(node.op, ast.And) else "or", self.builder
        if len(node.values) <= LONGEST:
            return self._short_circuit(scope, op, node.values)
        name = builder.unique("t")
        for first in range(0, len(node.values), LONGEST):
            found = builder.local(name) if first else ir.Constant(Kind.BOOL, op == "and")
            if isinstance(found, ir.Constant) and found.value is (op == "or"):
                return found
            before = builder.flow.copy()
            with builder.block() as statements:
                builder.assign(name, self._short_circuit(scope, op, node.values[first : first + LONGEST]))
            if isinstance(found, ir.Constant):
                for statement in statements:
                    builder.emit(statement)
                continue
            test = found if op == "and" else fold.negation(found)
            builder.emit(ir.If(test, tuple(statements), (), location=builder.where))
            builder.flow = before.meet(builder.flow)
            builder.flow.known.pop((name, ()), None)
        return builder.local(name)

    def _short_circuit(self, scope: Scope, op: str, nodes: list[ast.expr]) -> ir.Expression:
        """Lower ``and``/``or``; what follows a deciding constant is not looked at, as in Python."""
        first = self.condition(scope, nodes[0])
        if len(nodes) == 1 or (isinstance(first, ir.Constant) and first.value is (op == "or")):
            return first
        builder = self.builder
        before = builder.flow.copy()
        with builder.block() as statements:
            rest = self.shallow(self._short_circuit(scope, op, nodes[1:]))
        if not statements:
            if _needs_guard(rest) and not isinstance(first, ir.Constant):
                # `Boolean` may evaluate every operand, `Conditional` evaluates one branch
                decided = ir.Constant(Kind.BOOL, op == "or")
                return fold.conditional(first, *((rest, decided) if op == "and" else (decided, rest)))
            return fold.boolean(op, (first, rest))
        if isinstance(first, ir.Constant):
            for statement in statements:
                builder.emit(statement)
            return rest
        # the rest needs statements of its own, which must not run when the first value decides
        after, builder.flow = builder.flow, before
        name = builder.unique("t")
        builder.assign(name, first)
        with builder.block() as tail:
            builder.assign(name, rest)
        local = ir.Local(Kind.BOOL, name)
        test = local if op == "and" else fold.negation(local)
        builder.emit(ir.If(test, (*statements, *tail), (), location=builder.where))
        builder.flow = before.meet(after)
        builder.flow.known.pop((name, ()), None)
        return local

    def visit_IfExp(self, scope: Scope, node: ast.IfExp) -> Value:
        """Lower a conditional expression."""
        last, count = node.orelse, 1
        while isinstance(last, ast.IfExp):
            last, count = last.orelse, count + 1
        if count > LONGEST:
            name = self.builder.unique("t")
            self._choice(scope, node, name)
            return self.builder.local(name)
        test = self.condition(scope, node.test)
        if isinstance(test, ir.Constant):
            return self.value(scope, node.body if test.value else node.orelse)
        builder = self.builder
        yes_branch = builder.branch(lambda: self._scalar_or_record(scope, node.body))
        no_branch = builder.branch(lambda: self._scalar_or_record(scope, node.orelse))
        (yes, yes_block, after), (no, no_block, other) = yes_branch, no_branch
        if isinstance(yes, RecordValue) or isinstance(no, RecordValue):
            record = self.joined(scope, node, test, yes_branch, no_branch)
            assert record is not None
            return record
        builder.flow = after.meet(other)
        with self.located(scope, node):
            if not yes_block and not no_block:
                return fold.conditional(test, yes, no)
            name = builder.unique("t")
            with builder.block() as yes_tail:
                builder.assign(name, yes)
            with builder.block() as no_tail:
                builder.assign(name, no)
        builder.emit(ir.If(test, (*yes_block, *yes_tail), (*no_block, *no_tail), location=builder.where))
        builder.flow.known.pop((name, ()), None)
        return builder.local(name)

    def _scalar_or_record(self, scope: Scope, node: ast.expr) -> ir.Expression | RecordValue:
        value = self.value(scope, node)
        return value if isinstance(value, RecordValue) else self.number(scope, node, value)

    def _choice(self, scope: Scope, node: ast.expr, name: str) -> None:
        """Assign the value of a long chain of conditional expressions, by statements."""
        builder = self.builder
        if not isinstance(node, ast.IfExp):
            with self.located(scope, node):
                builder.assign(name, self.scalar(scope, node))
            return
        test = self.condition(scope, node.test)
        if isinstance(test, ir.Constant):
            self._choice(scope, node.body if test.value else node.orelse, name)
            return
        where = builder.where
        yes = builder.branch(lambda: self._choice(scope, node.body, name))
        builder.choose(test, yes, builder.branch(lambda: self._choice(scope, node.orelse, name)), where)
        builder.flow.known.pop((name, ()), None)

    # ----------------------------------------------------------------------------------- calls

    def visit_Call(self, scope: Scope, node: ast.Call) -> Value:
        """Lower a call."""
        called = self.callee(scope, node.func)
        if isinstance(called, FunctionValue):
            return self.called(scope, node, called)
        if isinstance(called, type):
            return self.built(scope, node, called)
        if called.result == "form":
            return self._form(scope, node, called)
        arguments = [self.scalar(scope, item) for item in node.args]
        with self.located(scope, node):
            while len(arguments) > 2:  # of min and max, which take them in turn
                arguments[:2] = [self.shallow(fold.call(called, tuple(arguments[:2])))]
            return fold.call(called, tuple(arguments))

    def _form(self, scope: Scope, node: ast.Call, called: Intrinsic) -> Value:
        if called.name == "len":
            return self._length(scope, node, self.value(scope, node.args[0]))
        if called.name == "zeros":
            arguments = node.args
            if len(arguments) == 1 and isinstance(arguments[0], ast.Tuple):
                arguments = arguments[0].elts
            shape = tuple(self._size(scope, item) for item in arguments)
            return ListValue(shape, (fold.real(0.0),) * prod(shape), commas=True)
        arguments = [self.scalar(scope, item) for item in node.args]
        with self.located(scope, node):
            if called.name == "select":
                return fold.conditional(arguments[0], arguments[1], arguments[2])
            kinds = {"float": Kind.REAL, "int": Kind.INT, "bool": Kind.BOOL}
            return fold.cast(kinds[called.name], arguments[0])

    def _length(self, scope: Scope, node: ast.Call, value: Value) -> ir.Expression:
        if isinstance(value, TupleValue):
            return fold.integer(len(value.items))
        if extents := self.extents(value):
            if isinstance(value, ParameterView) and extents[0] == RAGGED:
                return ir.Length(Kind.INT, value.parameter)
            return fold.integer(extents[0])
        if not isinstance(value, ir.Expression):
            raise scope.source.error(node, *self.not_scalar(value))
        raise scope.source.error(node, "len of a number", "len takes a parameter, an array or a tuple")


def _is_cheap(value: ir.Expression) -> bool:
    """Whether repeating an expression costs nothing worth a local."""
    if isinstance(value, ir.Negate):
        return _is_cheap(value.operand)
    if isinstance(value, (ir.Read, ir.LocalElement)):
        return all(isinstance(item, ir.Constant) for item in value.index)
    return isinstance(value, (ir.Constant, ir.Local, ir.ReadConstant, ir.Length))


def _needs_guard(value: ir.Expression) -> bool:
    """Whether evaluating an expression could go out of bounds or divide an integer by zero."""
    for node in expressions(value):
        if isinstance(node, (ir.Read, ir.LocalElement, ir.TableElement)):
            leg = node.leg if isinstance(node, ir.Read) else None
            parts = node.index if leg is None else (leg, *node.index)
            if not all(isinstance(item, ir.Constant) for item in parts):
                return True
        elif isinstance(node, ir.Binary) and _may_divide_by_zero(node):
            return True
    return False


def _may_divide_by_zero(node: ir.Binary) -> bool:
    return node.kind is Kind.INT and node.op in ("//", "%") and not isinstance(node.right, ir.Constant)
