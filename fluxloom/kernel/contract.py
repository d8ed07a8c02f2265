"""The access contract, as far as it can be checked without shapes: at decoration, by names.

What needs shapes (a ``Write`` component left unwritten on some path, a view against a scalar) is
checked while lowering. The walk follows parameters through local aliases (``q1 = q[0]``) and into
``@func`` helpers.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from fluxloom.core.access import Access
from fluxloom.core.errors import AccessError
from fluxloom.kernel.intrinsics import Intrinsic
from fluxloom.kernel.ir import Parameter
from fluxloom.kernel.record_fields import Helper
from fluxloom.kernel.source import FunctionSource, child_nodes

__all__ = ["REDUCTION_HINTS", "check_contract", "reduction_operands", "refusal"]

REDUCTION_HINTS: Mapping[Access, str] = MappingProxyType(
    {
        Access.INC: "an Inc parameter is changed by += and -= only",
        Access.MIN: "a Min parameter is changed by p[0] = min(p[0], value) only",
        Access.MAX: "a Max parameter is changed by p[0] = max(p[0], value) only",
    }
)


def check_contract(source: FunctionSource, parameters: tuple[Parameter, ...]) -> None:
    """Raise `AccessError` for a use of a parameter that its access mode forbids.

    Raises
    ------
    AccessError
        A ``Read`` assigned, a reduction read or assigned, a ``Write`` that is never written.
    """
    walk = _Walk(source, {item.name: item for item in parameters}, set())
    walk.statements(source.node.body)
    for item in parameters:
        if item.access is Access.WRITE and item.name not in walk.stored:
            raise source.error(item.location, f"{item.name!r} is Write but never written",
                               "assign every component, or change its access mode", kind=AccessError)  # fmt: skip


def refusal(name: str, access: Access, op: ast.operator | None = None) -> tuple[str, str] | None:
    """Say why a parameter may not be assigned, or updated by an operator, with a hint; None where it may."""
    if access is Access.READ:
        return f"{name!r} is Read but is assigned", f"annotate it RW or {'Inc' if op else 'Write'}, or use a local"
    if not access.reduces or (access is Access.INC and isinstance(op, (ast.Add, ast.Sub))):
        return None
    what = ": this update is not allowed" if op else " but is assigned"
    return f"{name!r} is {access.value}{what}", REDUCTION_HINTS[access]


def base_name(node: ast.expr) -> str:
    """Return the name under a chain of subscripts, or an empty string."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def reduction_operands(source: FunctionSource, target: ast.expr, value: ast.expr, name: str) -> list[ast.expr] | None:
    """Return the other operands of ``p[0] = min(p[0], ...)``, or ``None`` when it is not that form."""
    if not isinstance(value, ast.Call):
        return None
    called = source.resolve(value.func)
    if not (isinstance(called, Intrinsic) and called.name == name):
        return None
    text = ast.unparse(target)
    others = [item for item in value.args if ast.unparse(item) != text]
    return others if len(others) == len(value.args) - 1 else None


@dataclass
class _Walk:
    """The walk over one function with the parameters its names stand for."""

    source: FunctionSource
    names: dict[str, Parameter]
    stored: set[str]
    active: tuple[FunctionSource, ...] = field(default=())

    def parameter(self, node: ast.expr) -> Parameter | None:
        return self.names.get(base_name(node))

    def fail(self, node: ast.AST, message: str, hint: str = "") -> AccessError:
        error = self.source.error(node, message, hint, kind=AccessError)
        assert isinstance(error, AccessError)
        return error

    def statements(self, nodes: list[ast.stmt]) -> None:
        for node in nodes:
            self.statement(node)

    def statement(self, node: ast.stmt) -> None:
        if isinstance(node, ast.Assign):
            self.assign(node.targets[0], node.value)
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            self.assign(node.target, node.value)
        elif isinstance(node, ast.AugAssign):
            self.augmented(node)
        elif isinstance(node, ast.For):
            self.expression(node.iter)
            self.statements(node.body)
        elif isinstance(node, (ast.If, ast.While)):
            self.expression(node.test)
            self.statements(node.body)
            self.statements(node.orelse)
        elif isinstance(node, (ast.Expr, ast.Return)) and node.value is not None:
            self.expression(node.value)

    def assign(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Tuple):
            pairs = value.elts if isinstance(value, ast.Tuple) and len(value.elts) == len(target.elts) else None
            if pairs is None:
                self.expression(value)
            for index, item in enumerate(target.elts):
                if pairs is None:
                    self.store(item)
                else:
                    self.assign(item, pairs[index])
            return
        parameter = self.parameter(target) if isinstance(target, ast.Subscript) else None
        if parameter is not None and parameter.access in (Access.MIN, Access.MAX):
            others = reduction_operands(self.source, target, value, parameter.access.value.lower())
            if others is None:
                raise self.fail(target, f"{parameter.name!r} is {parameter.access.value} but is assigned",
                                REDUCTION_HINTS[parameter.access])  # fmt: skip
            for item in others:
                self.expression(item)
            self.stored.add(parameter.name)
            return
        self.store(target)
        source = self.parameter(value) if isinstance(value, (ast.Subscript, ast.Name)) else None
        if isinstance(target, ast.Name):
            self.names.pop(target.id, None)
            if source is not None:
                # a view or a scalar, which only the shapes tell: later subscripts are followed either way
                self.names[target.id] = source
                self.indices(value)
                return
        self.expression(value)

    def store(self, target: ast.expr, node: ast.AST | None = None, op: ast.operator | None = None) -> None:
        """Check an assignment to one target, an augmented one with its operator."""
        if not isinstance(target, ast.Subscript):
            return
        self.indices(target)
        parameter = self.parameter(target)
        if parameter is None:
            return
        problem = refusal(parameter.name, parameter.access, op)
        if problem is not None:
            raise self.fail(node or target, *problem)
        self.stored.add(parameter.name)

    def augmented(self, node: ast.AugAssign) -> None:
        self.expression(node.value)
        self.store(node.target, node, node.op)

    def indices(self, node: ast.expr) -> None:
        while isinstance(node, ast.Subscript):
            self.expression(node.slice)
            node = node.value

    def expression(self, node: ast.expr) -> None:
        """Check the reads in an expression."""
        if isinstance(node, ast.Call):
            self.call(node)
            return
        if isinstance(node, ast.Subscript):
            self.indices(node)
            parameter = self.parameter(node)
            if parameter is not None and parameter.access.reduces:
                raise self.fail(node, f"{parameter.name!r} is {parameter.access.value} but is read",
                                REDUCTION_HINTS[parameter.access])  # fmt: skip
            return
        for child in child_nodes(node):
            if isinstance(child, ast.expr):
                self.expression(child)

    def call(self, node: ast.Call) -> None:
        called = self.source.resolve(node.func)
        helper = called.source if isinstance(called, Helper) else None
        passed: dict[str, Parameter] = {}
        for index, argument in enumerate(node.args):
            parameter = self.parameter(argument) if isinstance(argument, (ast.Subscript, ast.Name)) else None
            if parameter is not None and called is None:
                # a formula that is known when the kernel is lowered, and checked then
                self.indices(argument)
                self.stored.add(parameter.name)
            elif parameter is not None and helper is not None:
                self.indices(argument)
                passed[helper.parameter_names[index]] = parameter
            elif not isinstance(argument, ast.Name):
                self.expression(argument)
        if helper is not None and passed and helper not in self.active:
            walk = _Walk(helper, passed, self.stored, (*self.active, helper))
            walk.statements(helper.node.body)
