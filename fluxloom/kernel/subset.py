"""Checks that a function stays inside the kernel language; needs no shapes, so it runs at decoration."""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping
from types import MappingProxyType, ModuleType

from fluxloom.core.errors import KernelError, did_you_mean
from fluxloom.kernel.intrinsics import Intrinsic
from fluxloom.kernel.ir import Constant
from fluxloom.kernel.record_fields import Helper, RecordProblem, build_problem, named_arguments
from fluxloom.kernel.source import FunctionSource, assigned_names, child_nodes, dotted_name, statements
from fluxloom.kernel.values import FunctionValue, RecordValue, TupleValue

__all__ = ["check_subset"]

OPERATORS: Mapping[type[ast.AST], str] = MappingProxyType({
    ast.MatMult: "'@'", ast.BitAnd: "'&'", ast.BitOr: "'|'", ast.BitXor: "'^'", ast.LShift: "'<<'", ast.RShift: "'>>'",
    ast.Invert: "'~'", ast.Is: "'is'", ast.IsNot: "'is not'", ast.In: "'in'", ast.NotIn: "'not in'",
})  # fmt: skip

LOOPS = ("range", "rolled")
"""Intrinsics that a for loop runs over."""

ALLOWED = (
    ast.Assign, ast.AugAssign, ast.AnnAssign, ast.For, ast.While, ast.If, ast.Expr, ast.Pass, ast.Return,
    ast.Name, ast.Constant, ast.Subscript, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.Call,
    ast.Attribute, ast.Tuple, ast.List, ast.ListComp, ast.operator, ast.unaryop, ast.boolop, ast.cmpop,
    ast.expr_context,
)  # fmt: skip


def check_subset(source: FunctionSource, *, is_kernel: bool, strategies: Collection[str] = ()) -> None:
    """Raise a located `KernelError` for anything in the body outside the kernel language.

    ``strategies`` are the constants of a kernel that may be records or formulas; in a helper every name may be one.
    """
    _Checker(source, is_kernel, strategies).run()


class _Checker:
    """One walk over the body; the state is the set of loop variables in scope."""

    def __init__(self, source: FunctionSource, is_kernel: bool, strategies: Collection[str]) -> None:
        self.source = source
        self.is_kernel = is_kernel
        arguments = source.node.args
        self.positional = set(source.parameter_names)
        self.constants = {argument.arg for argument in arguments.kwonlyargs}
        self.local = source.assigned | self.positional | self.constants
        self.strategies = {*strategies, *self._named()} if is_kernel else self.positional | self._named()
        self.records = self.strategies if is_kernel else self.local
        self.loop_variables = self._loop_variables()
        self.active: list[str] = []

    def fail(self, node: ast.AST, message: str, hint: str = "") -> KernelError:
        return self.source.error(node, message, hint)

    def _loop_variables(self) -> frozenset[str]:
        loops = [node for node in statements(self.source.node.body) if isinstance(node, ast.For)]
        return frozenset(loop.target.id for loop in loops if isinstance(loop.target, ast.Name))

    def _named(self) -> set[str]:
        """Return the locals that may stand for a record or a formula: they are given something that has a name."""
        found: set[str] = set()
        for node in statements(self.source.node.body):
            if isinstance(node, ast.Assign):
                target, value = node.targets[0], node.value
                pairs = [(target, value)]
                if isinstance(target, ast.Tuple):
                    each = value.elts if isinstance(value, ast.Tuple) else [value] * len(target.elts)
                    pairs = list(zip(target.elts, each, strict=False))
                named = (ast.Name, ast.Attribute, ast.Subscript, ast.Call, ast.IfExp)
                found |= {item.id for item, given in pairs if isinstance(item, ast.Name) and isinstance(given, named)}
        return found

    def run(self) -> None:
        body = self.source.node.body
        if isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant) and isinstance(
            body[0].value.value, str
        ):  # fmt: skip
            body = body[1:]
        self.block(body)

    def block(self, statements: list[ast.stmt]) -> None:
        for statement in statements:
            self.visit(statement)

    def visit(self, node: ast.AST) -> None:
        """Reject or descend into one node."""
        if not isinstance(node, ALLOWED):
            raise self.fail(node, f"{type(node).__name__} is not part of the kernel language")
        special = getattr(self, f"visit_{type(node).__name__}", None)
        if special is not None:
            special(node)
        else:
            self.children(node)

    def children(self, node: ast.AST) -> None:
        for child in child_nodes(node):
            self.visit(child)

    # ------------------------------------------------------------------------------ statements

    def visit_Return(self, node: ast.Return) -> None:
        if self.is_kernel:
            hint = "results leave through Write, RW and Inc parameters"
            raise self.fail(node, "return is not part of a kernel", hint)
        self.children(node)

    def visit_Expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Call):
            if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
                raise self.fail(node, "a string is not part of the kernel language",
                                "use a # comment; a docstring comes first")  # fmt: skip
            raise self.fail(node, "this expression has no effect", "assign it, or remove it")
        if isinstance(node.value, ast.Call) and isinstance(self.source.resolve(node.value.func), Intrinsic):
            raise self.fail(node, "the result of this call is not used", "assign it, or remove it")
        self.visit(node.value)

    def visit_Assign(self, node: ast.Assign) -> None:
        if len(node.targets) > 1:
            hint = "write one assignment a line"
            raise self.fail(node, "chained assignment is not part of the kernel language", hint)
        self.target(node.targets[0])
        self.visit(node.value)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self.target(node.target)
        self.operator(node, node.op)
        self.visit(node.value)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is None:
            raise self.fail(node, "a declaration without a value", "give it a value")
        self.target(node.target)
        self.visit(node.value)

    def target(self, node: ast.expr) -> None:
        if isinstance(node, ast.Tuple):
            for item in node.elts:
                self.target(item)
        elif isinstance(node, ast.Name):
            self._name_target(node)
        elif isinstance(node, ast.Subscript):
            self.visit(node)
        elif isinstance(node, ast.Attribute):
            raise self.fail(node, "attribute assignment is not part of the kernel language")
        else:
            self.visit(node)
            raise self.fail(node, "this cannot be assigned to", "assign to a name, an element or a tuple of them")

    def _name_target(self, node: ast.Name) -> None:
        if node.id in self.constants:
            raise self.fail(node, f"the constant {node.id!r} is assigned", "use another name for the new value")
        if self.is_kernel and node.id in self.positional:
            raise self.fail(node, f"the parameter {node.id!r} itself is assigned",
                            f"assign its components: {node.id}[0] = ...")  # fmt: skip
        if node.id in self.loop_variables:
            raise self.fail(node, f"the loop variable {node.id!r} is assigned", "use another name")

    def visit_For(self, node: ast.For) -> None:
        if node.orelse:
            raise self.fail(node.orelse[0], "else on a loop is not part of the kernel language")
        if not isinstance(node.target, ast.Name):
            raise self.fail(node.target, "a loop has one variable", "for i in range(n)")
        name = node.target.id
        if name in self.positional or name in self.constants:
            raise self.fail(node.target, f"the loop variable {name!r} is a parameter", "use another name")
        if name in self.active:
            raise self.fail(node.target, f"two nested loops share the variable {name!r}", "use another name")
        called = self.source.resolve(node.iter.func) if isinstance(node.iter, ast.Call) else None
        if not (isinstance(called, Intrinsic) and called.name in LOOPS):
            raise self.fail(node.iter, "a for loop runs over range(...)", "for i in range(len(x)), or rolled(len(x))")
        assert isinstance(node.iter, ast.Call)
        self.arguments(node.iter, called.least, called.most, called.name)
        self.active.append(name)
        self.block(node.body)
        self.active.pop()

    def visit_While(self, node: ast.While) -> None:
        if node.orelse:
            raise self.fail(node.orelse[0], "else on a loop is not part of the kernel language")
        self.children(node.test)
        self.block(node.body)
        conjunction = isinstance(node.test, ast.BoolOp) and isinstance(node.test.op, ast.And)
        tests = node.test.values if conjunction else [node.test]  # type: ignore[union-attr]
        if not any(self._is_bound(test, node.body) for test in tests):
            raise self.fail(
                node,
                "a while loop needs a bound that can be seen",
                "count the trips: while k < 50 and ...: with k += 1 at the top level of the body"
                " and no other change of k",
            )  # fmt: skip

    def _is_bound(self, test: ast.expr, body: list[ast.stmt]) -> bool:
        """Whether a test is ``k < N`` with ``N`` fixed and ``k`` counted up once, unconditionally, in the body."""
        if not (isinstance(test, ast.Compare) and len(test.ops) == 1):
            return False
        counter, limit = test.left, test.comparators[0]
        if isinstance(test.ops[0], (ast.Gt, ast.GtE)):
            counter, limit = limit, counter
        elif not isinstance(test.ops[0], (ast.Lt, ast.LtE)):
            return False
        if not (isinstance(counter, ast.Name) and counter.id in self.local and self._is_fixed(limit)):
            return False
        steps = [item for item in body if isinstance(item, ast.AugAssign) and self._is_step(item, counter.id)]
        others = [item for item in body if item not in steps]
        return len(steps) == 1 and counter.id not in assigned_names(others)

    def _is_step(self, node: ast.AugAssign, name: str) -> bool:
        if not (isinstance(node.target, ast.Name) and node.target.id == name and isinstance(node.op, ast.Add)):
            return False
        value = node.value if isinstance(node.value, ast.Constant) else self.source.resolve(node.value)
        return isinstance(value, (ast.Constant, Constant)) and type(value.value) is int and value.value > 0

    def _is_fixed(self, node: ast.expr) -> bool:
        """Whether an expression is made of literals, captured numbers, constant parameters and ``len``."""
        if isinstance(node, ast.Name):
            return node.id in self.constants or isinstance(self.source.resolve(node), Constant)
        if isinstance(node, ast.Attribute):  # records do not change
            root = dotted_name(node).split(".")[0]
            given = root in (self.constants | self.positional) and root not in self.source.assigned
            return given or isinstance(self.source.resolve(node), Constant)
        if isinstance(node, ast.BinOp):
            return self._is_fixed(node.left) and self._is_fixed(node.right)
        if isinstance(node, ast.Call):
            called = self.source.resolve(node.func)
            return isinstance(called, Intrinsic) and called.name == "len"
        return isinstance(node, ast.Constant)

    # ----------------------------------------------------------------------------- expressions

    def visit_Name(self, node: ast.Name) -> None:
        if node.id in self.local:
            if node.id in self.loop_variables and node.id not in self.active:
                raise self.fail(node, f"the loop variable {node.id!r} is read outside its loop",
                                "keep what you need in another local")  # fmt: skip
            return
        found = self.source.resolve(node)
        if isinstance(found, (Intrinsic, Helper)):
            raise self.fail(node, f"the function {node.id!r} is used as a value", "call it")
        if isinstance(found, ModuleType):
            raise self.fail(node, f"the module {node.id!r} is used as a value")

    def may_be_strategy(self, node: ast.expr) -> bool:
        """Whether attributes and subscripts may lead to a record or a formula: data of a kernel have none."""
        while isinstance(node, (ast.Attribute, ast.Subscript)):
            node = node.value
        if not isinstance(node, ast.Name):
            return isinstance(node, ast.Call)
        captured = self.source.captured.get(node.id)
        return node.id in self.records or isinstance(captured, (RecordValue, TupleValue))

    def visit_Attribute(self, node: ast.Attribute) -> None:
        found = self.source.resolve(node)
        if found is None:
            if self.may_be_strategy(node):
                self.visit(node.value)
                return
            root = dotted_name(node).split(".")[0]
            what = f" on {root!r}" if root else ""
            raise self.fail(node, f"attribute access{what} is not part of the kernel language",
                            "index the parameter: x[0]")  # fmt: skip
        if not isinstance(found, Constant) and isinstance(found, (Intrinsic, Helper, ModuleType)):
            raise self.fail(node, f"{dotted_name(node)!r} is used as a value", "call it")

    def visit_Constant(self, node: ast.Constant) -> None:
        value = node.value
        if isinstance(value, str):
            raise self.fail(node, "a string is not part of the kernel language",
                            "let an int, a bool or a record of another class say it")  # fmt: skip
        if isinstance(value, complex):
            raise self.fail(node, "complex numbers are not part of the kernel language",
                            "keep the real and imaginary parts as two components")  # fmt: skip
        if value is None:
            raise self.fail(node, "None is not part of the kernel language",
                            "what may be left out is tested with: x is None, x is not None")  # fmt: skip
        if not isinstance(value, (bool, int, float)):
            raise self.fail(node, f"{value!r} is not part of the kernel language")
        if isinstance(value, int) and abs(value) >= 2**63:
            raise self.fail(node, "an integer literal does not fit in 64 bits", "use a real: 1e20")

    def visit_Subscript(self, node: ast.Subscript) -> None:
        self.visit(node.value)
        indices = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        for index in indices:
            if isinstance(index, ast.UnaryOp) and isinstance(index.op, ast.USub) and isinstance(
                index.operand, ast.Constant
            ):  # fmt: skip
                raise self.fail(index, "a negative index is not part of the kernel language",
                                "count from the start: x[len(x) - 1]")  # fmt: skip
            self.visit(index)

    def operator(self, node: ast.AST, op: ast.AST) -> None:
        if type(op) in OPERATORS:
            raise self.fail(node, f"{OPERATORS[type(op)]} is not part of the kernel language")

    def visit_BinOp(self, node: ast.BinOp) -> None:
        self.operator(node, node.op)
        repeated = node.left.elts if isinstance(node.op, ast.Mult) and isinstance(node.left, ast.List) else []
        scalars = (ast.Constant, ast.Name, ast.UnaryOp, ast.BinOp, ast.Attribute, ast.Subscript, ast.Call)
        if any(not isinstance(item, scalars) or _is_repeated_list(item) for item in repeated):
            raise self.fail(node, "a repeated list holds scalars only (Python would alias its rows)",
                            "use fluxloom.zeros(n, m) or [[0.0] * m for _ in range(n)]")  # fmt: skip
        self.children(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        self.operator(node, node.op)
        self.children(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        if len(node.ops) == 1 and isinstance(node.ops[0], (ast.Is, ast.IsNot)):
            other = node.comparators[0]
            if isinstance(other, ast.Constant) and other.value is None:
                self.visit(node.left)
                return
        for op in node.ops:
            self.operator(node, op)
        self.children(node)

    def visit_ListComp(self, node: ast.ListComp) -> None:
        call = node.generators[0].iter
        assert isinstance(call, ast.Call)
        called = self.source.resolve(call.func)
        if not (isinstance(called, Intrinsic) and called.name == "range") or len(call.args) != 1:
            raise self.fail(call, "this comprehension runs over range(n) only")
        self.visit(node.elt)
        self.visit(call.args[0])

    def visit_Call(self, node: ast.Call) -> None:
        if node.keywords and not isinstance(self.source.resolve(node.func), type):
            raise self.fail(node.keywords[0], "keyword arguments are not part of the kernel language",
                            "pass the arguments by position")  # fmt: skip
        dotted = dotted_name(node.func)
        root = dotted.split(".")[0]
        if not dotted or (root in self.local):
            self.visit(node.func)
            may_be = isinstance(node.func, (ast.Attribute, ast.Subscript)) and self.may_be_strategy(node.func)
            if not (may_be or dotted in self.strategies):
                raise self.fail(node, f"{dotted or 'this expression'!r} is not a function")
            self.visit_all(node.args)  # what it is, and how many arguments it takes, is known when lowered
            return
        found = self.source.resolve(node.func)
        if isinstance(found, type):
            self.built(node, found)
        elif isinstance(found, (RecordValue, FunctionValue)):
            self.visit_all(node.args)
        elif isinstance(found, Helper):
            self.visit_all(node.args)
            count = len(found.source.parameter_names)
            self.count(node, count, count, dotted)
        elif isinstance(found, Intrinsic):
            if found.name in LOOPS:
                raise self.fail(node, f"{found.name} is used outside a for loop")
            self.arguments(node, found.least, found.most, dotted)
        else:
            raise self.fail(node, f"{dotted!r} is not a function{did_you_mean(dotted, self.source.captured)}")

    def visit_all(self, nodes: list[ast.expr]) -> None:
        for node in nodes:  # arguments, which may be functions
            if not isinstance(self.source.resolve(node), Helper):
                self.visit(node)

    def built(self, node: ast.Call, kind: type) -> None:
        """Check the call of the class of a record."""
        try:
            if (problem := build_problem(kind)) is not None:
                raise problem
            given = named_arguments(kind, node)
        except RecordProblem as problem:
            raise self.fail(node, problem.message, problem.hint) from None
        self.visit_all(list(given.values()))

    def arguments(self, node: ast.Call, least: int, most: int | None, name: str) -> None:
        for argument in node.args:
            self.visit(argument)
        self.count(node, least, most, name)

    def count(self, node: ast.Call, least: int, most: int | None, name: str) -> None:
        count = len(node.args)
        if count < least or (most is not None and count > most):
            wanted = f"{least}" if most == least else f"{least} or more" if most is None else f"{least} to {most}"
            raise self.fail(node, f"{name} takes {wanted} arguments, not {count}")


def _is_repeated_list(node: ast.expr) -> bool:
    return isinstance(node, ast.BinOp) and isinstance(node.left, ast.List)
