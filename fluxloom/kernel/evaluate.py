"""Lowering of expressions: syntax to typed, folded IR, or to a view, an array or a tuple."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from math import prod
from types import MappingProxyType

from fluxloom.kernel import fold, ir
from fluxloom.kernel.analysis import expressions
from fluxloom.kernel.intrinsics import Intrinsic
from fluxloom.kernel.ir import RAGGED, Kind
from fluxloom.kernel.lower_strategies import StrategyLowerer
from fluxloom.kernel.state import Scope
from fluxloom.kernel.values import (
    FunctionValue,
    ListValue,
    NoneValue,
    ParameterView,
    RecordValue,
    TupleValue,
    Value,
    number,
)  # fmt: skip

__all__ = ["ExpressionLowerer"]

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
