"""Lowering of attributes of records, and of calls: of helpers, of formulas and records, of the class of a record."""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Callable
from typing import Any, TypeVar

from fluxloom.kernel.indexing import IndexLowerer
from fluxloom.kernel.intrinsics import Intrinsic
from fluxloom.kernel.ir import Expression
from fluxloom.kernel.marks import Helper
from fluxloom.kernel.record_fields import RecordProblem, built_fields, named_arguments
from fluxloom.kernel.records import called_method, default_value, member
from fluxloom.kernel.state import Branch, Scope
from fluxloom.kernel.values import (
    FunctionValue,
    Known,
    NoneValue,
    RecordValue,
    StoredField,
    Value,
)  # fmt: skip

__all__ = ["StrategyLowerer"]

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
