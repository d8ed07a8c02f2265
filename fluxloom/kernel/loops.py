"""Lowering of loops: unrolled where that is short and the trips are known, kept otherwise."""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable
from dataclasses import replace

from fluxloom.kernel import fold
from fluxloom.kernel.counters import Counted, is_counted
from fluxloom.kernel.flow import ALL
from fluxloom.kernel.intrinsics import Intrinsic
from fluxloom.kernel.ir import RAGGED, Constant, Expression, For, Kind, Length, Local, Statement, While
from fluxloom.kernel.source import assigned_names, dotted_name
from fluxloom.kernel.state import Rebound, Scope, UnrollOverflow
from fluxloom.kernel.statements import StatementLowerer
from fluxloom.kernel.values import RecordValue, TupleValue, Value

__all__ = ["LoopLowerer"]

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
