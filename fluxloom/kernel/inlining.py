"""Inlining of helpers: parameters become locals or views, several returns one value."""

from __future__ import annotations

import ast
from typing import Any, final

from fluxloom.core.errors import KernelError
from fluxloom.kernel.ir import Constant, Expression, Local
from fluxloom.kernel.loops import LoopLowerer
from fluxloom.kernel.returns import contains_return, returning_block
from fluxloom.kernel.state import Branch, Scope
from fluxloom.kernel.values import FunctionValue, ListValue, RecordValue, StoredField, TupleValue, Value, inner_values

__all__ = ["KernelLowerer"]


@final
class KernelLowerer(LoopLowerer):
    """Lowers whole kernels: statements, with helpers inlined where they are called."""

    def inline(self, scope: Scope, node: ast.Call, called: FunctionValue) -> Value | None:
        """Inline a call of a helper and return what it returns, or ``None`` for a procedure."""
        source, builder = called.helper.source, self.builder
        if any(item.helper.source is source and _depth(item.record) <= _depth(called.record) for item in scope.active):
            message = f"{source.name!r} calls itself: recursion is not part of the kernel language"
            raise scope.source.error(node, message, "write a bounded loop")
        arguments = [self.value(scope, item) for item in node.args]
        arguments = arguments if called.record is None else [called.record, *arguments]
        if len(arguments) != len(source.parameter_names):
            own = called.record is not None
            raise scope.source.error(
                node, f"{ast.unparse(node.func)} takes {len(source.parameter_names) - own} arguments here, "
                f"not {len(node.args)}", f"it is {source.name!r} of {source.filename}:{source.node.lineno}",
            )  # fmt: skip
        local = [*source.parameter_names, *sorted(source.assigned - set(source.parameter_names))]
        names = {name: builder.unique(f"{_prefix(called)}_{name}") for name in local}
        call = scope.call or scope.source.location(node)
        inner = Scope(source, names, call, (*scope.active, called))
        for name, argument in zip(source.parameter_names, arguments, strict=True):
            if isinstance(argument, Expression):
                builder.assign(names[name], argument)
            elif isinstance(argument, ListValue):
                builder.flow.bound[names[name]] = self.materialise(argument, names[name])
            else:
                builder.flow.bound[names[name]] = self.stable(argument)
        try:
            result = self._returned(inner, returning_block(source))
        except KernelError as problem:
            problem.add_note(f"in a call from {scope.source.filename}:{node.lineno}")
            raise
        for name in names.values():
            builder.flow.bound.pop(name, None)
        builder.where = scope.place(node)
        return result

    def _returned(self, scope: Scope, nodes: list[ast.stmt]) -> Value | None:
        """Lower a block that ends in a return, or in an ``if`` whose branches both do."""
        if not nodes or not contains_return(nodes[-1:]):
            self.block(scope, nodes)
            return None
        self.block(scope, nodes[:-1])
        last = nodes[-1]
        self.builder.where = scope.place(last)
        if isinstance(last, ast.Return):
            if last.value is None:
                return None
            value = self.right_side(scope, last.value)
            if isinstance(value, ListValue):
                value = self.materialise(value, self.builder.unique("list"))
            return value
        assert isinstance(last, ast.If)
        return self._returned_if(scope, last)

    def _returned_if(self, scope: Scope, node: ast.If) -> Value | None:
        test = self.condition(scope, node.test)
        if isinstance(test, Constant):
            return self._returned(scope, node.body if test.value else node.orelse)
        where = self.builder.where
        yes = self.builder.branch(lambda: self._returned(scope, node.body))
        no = self.builder.branch(lambda: self._returned(scope, node.orelse))
        self.builder.where = where
        return self.joined(scope, node, test, yes, no)

    def joined(self, scope: Scope, node: ast.AST, test: Expression, yes: Branch[Any], no: Branch[Any]) -> Value | None:
        """Emit a conditional whose branches have been lowered; return what both give, copied to common locals."""
        where, self.builder.flow = self.builder.where, no[2]
        with self.located(scope, node):
            result = self._join_values(scope, node, yes, no)
        self.builder.choose(test, yes, no, where)
        return result

    def _join_values(self, scope: Scope, node: ast.AST, yes: Branch[Any], no: Branch[Any]) -> Value | None:
        """Return one value for what two branches return, copied to common locals inside each branch."""
        first, second = self._loaded(yes[0]), self._loaded(no[0])
        if first is None and second is None:
            return None
        if isinstance(first, Expression) and isinstance(second, Expression):
            if first == second and isinstance(first, Constant):
                return first
            name = self.builder.unique("result")
            for value, statements, flow in ((first, *yes[1:]), (second, *no[1:])):
                self.builder.flow = flow
                with self.builder.block() as tail:
                    self.builder.assign(name, value)
                flow.known.pop((name, ()), None)
                statements.extend(tail)
            return Local(self.builder.kinds[name], name)
        if isinstance(first, TupleValue) and isinstance(second, TupleValue) and len(first.items) == len(second.items):
            parts = [
                self._join_values(scope, node, (one, *yes[1:]), (other, *no[1:]))
                for one, other in zip(first.items, second.items, strict=True)
            ]
            return TupleValue(tuple(part for part in parts if part is not None))
        if first == second and first is not None:
            return first
        if isinstance(first, RecordValue) and isinstance(second, RecordValue) and first.kind is second.kind:
            joined = [
                (name, self._join_values(scope, node, (one, *yes[1:]), (other, *no[1:])))
                for (name, one), (_, other) in zip(first.fields, second.fields, strict=True)
            ]
            return RecordValue(first.kind, tuple((name, part) for name, part in joined if part is not None))
        raise scope.source.error(node, "the branches return different things",
                                 "return numbers, tuples of as many, or records of one class, in both")  # fmt: skip

    def _loaded(self, value: Value | None) -> Value | None:
        return self.builder.local(value.name) if isinstance(value, StoredField) else value


def _prefix(called: FunctionValue) -> str:
    """Return how the names of the locals of an inlined helper begin."""
    name, record = called.helper.source.name, called.record
    return name if record is None else f"{record.kind.__name__.lower()}_{name.strip('_')}"


def _depth(value: Value | None) -> int:
    """Return how many records are inside each other; a method may be called again for what has fewer, which ends."""
    inside = [] if value is None else [_depth(item) for item in inner_values(value)]
    return max(inside, default=0) + isinstance(value, RecordValue)
