"""Lowering of indexed things: parameters, local arrays, constant arrays, and what a scalar must be."""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from fluxloom.core.access import Access
from fluxloom.core.errors import AccessError
from fluxloom.kernel import fold
from fluxloom.kernel.analysis import expressions
from fluxloom.kernel.contract import REDUCTION_HINTS
from fluxloom.kernel.fold import FoldError
from fluxloom.kernel.ir import RAGGED, Constant, Expression, For, Kind, Local, LocalElement, Read
from fluxloom.kernel.source import FunctionSource
from fluxloom.kernel.state import Builder, Scope, Slot
from fluxloom.kernel.values import (
    ArrayView,
    ConstantArray,
    FunctionValue,
    ListValue,
    NoneValue,
    OpaqueValue,
    ParameterView,
    RecordValue,
    TupleValue,
    Value,
)  # fmt: skip

__all__ = ["IndexLowerer"]

DEEPEST = 64
"""Expressions inside each other that are printed as one; some compilers know 256 brackets, and each needs several."""

UNIFORM_ELEMENTS = 64  # larger arrays of one value are filled by a loop, not element by element


class IndexLowerer(ABC):
    """Lowers subscripts and arrays; other expressions are left to the expression lowerer.

    Parameters
    ----------
    source
        The kernel.
    builder
        Where statements go and what is known.
    """

    def __init__(self, source: FunctionSource, builder: Builder) -> None:
        self.source = source
        self.builder = builder

    @abstractmethod
    def value(self, scope: Scope, node: ast.expr) -> Value:
        """Lower any expression."""

    @contextmanager
    def located(self, scope: Scope, node: ast.AST) -> Iterator[None]:
        """Give the location of ``node`` to a `FoldError` raised in the ``with`` body."""
        try:
            yield
        except FoldError as problem:
            raise scope.source.error(node, problem.message, problem.hint) from None

    # --------------------------------------------------------------------------------- entries

    def scalar(self, scope: Scope, node: ast.expr) -> Expression:
        """Lower an expression that must be a scalar."""
        return self.number(scope, node, self.value(scope, node))

    def number(self, scope: Scope, node: ast.expr, value: Value) -> Expression:
        """Return a value that must be a scalar."""
        if isinstance(value, Expression):
            return self.shallow(value)
        raise scope.source.error(node, *self.not_scalar(value))

    def shallow(self, value: Expression) -> Expression:
        """Return an expression, in a local of its own where it is deeper than compilers like."""
        return value if value.depth <= DEEPEST else self.builder.temporary(value)

    def not_scalar(self, value: Value) -> tuple[str, str]:
        """Return the message and the hint for a value used as if it were a scalar."""
        if isinstance(value, ParameterView):
            return f"{value.parameter!r} is used without all its indices", self.how_to_index(value.parameter)
        if isinstance(value, (ArrayView, ConstantArray)):
            name = value.array if isinstance(value, ArrayView) else value.name
            return f"the array {name!r} is used without all its indices", "index it, or loop over its elements"
        if isinstance(value, NoneValue):
            return f"{value.name!r} is None here", f"let what needs it depend on it: if {value.name} is not None:"
        if isinstance(value, RecordValue):
            return f"a number is needed here, not a record ({value.kind.__name__})", "take one of its fields"
        if isinstance(value, FunctionValue):
            return f"the function {value.helper.source.name!r} is used as a value", "call it"
        if isinstance(value, OpaqueValue):
            hint = "let a property make numbers of it, which are part of the code"
            return f"{value.name!r} is {value.content!r}, which a kernel cannot use", hint
        return "a number is needed here, not a tuple or a list", "take one of its elements"

    def integer(self, scope: Scope, node: ast.expr, what: str) -> Expression:
        """Lower an expression that must be an integer."""
        value = self.scalar(scope, node)
        if value.kind is not Kind.INT:
            raise scope.source.error(node, f"{what} must be an integer", "convert with int(...)")
        return value

    def condition(self, scope: Scope, node: ast.expr) -> Expression:
        """Lower a test, which must be a boolean."""
        value = self.scalar(scope, node)
        if value.kind is not Kind.BOOL:
            kind = "an integer" if value.kind is Kind.INT else "a real"
            raise scope.source.error(node, f"{kind} is used as a test", "compare explicitly: n != 0")
        return value

    # ---------------------------------------------------------------------------------- arrays

    def materialise(self, value: ListValue, owner: str) -> ArrayView:
        """Give storage to a list and fill it."""
        builder = self.builder
        elements = value.elements
        if len(set(map(repr, elements))) > 1 or len(elements) <= 1:
            # an earlier array of this name may be read by the elements: take their values first
            elements = tuple(
                builder.temporary(item) if self._reads_array(item) and builder.owners.get(owner) else item
                for item in elements
            )
        slot = builder.slot(owner, value.shape, value.commas)
        if len(elements) > UNIFORM_ELEMENTS and len(set(map(repr, elements))) == 1:
            self._fill(slot.name, value.shape, elements[0])
        else:
            for position, element in enumerate(elements):
                builder.store_local(slot.name, _unravel(position, value.shape), element)
        return ArrayView(slot.name)

    def _reads_array(self, value: Expression) -> bool:
        return any(isinstance(item, LocalElement) for item in expressions(value))

    def _fill(self, name: str, shape: tuple[int, ...], element: Expression) -> None:
        builder = self.builder
        variables = [builder.unique(f"{name}_i") for _ in shape]
        index = tuple(Local(Kind.INT, variable) for variable in variables)
        with builder.block() as statements:
            builder.store_local(name, index, element)
        for variable, extent in zip(reversed(variables), reversed(shape), strict=True):
            builder.kinds[variable] = Kind.INT
            loop = For(variable, fold.integer(0), fold.integer(extent), 1, tuple(statements), location=builder.where)
            statements = [loop]
        builder.emit(statements[0])

    def table(self, constant: ConstantArray) -> ArrayView:
        """Return a constant array as a table of the kernel: for indices known at run time only."""
        builder = self.builder
        name = next((known for known, given in builder.tables.items() if _same(given, constant)), None)
        if name is None:
            name = builder.unique(constant.name.replace(".", "_"))
            builder.tables[name] = constant
            builder.slots[name] = Slot(name, constant.shape, constant.commas)
        return ArrayView(name)

    # ------------------------------------------------------------------------------- subscripts

    def visit_Subscript(self, scope: Scope, node: ast.Subscript) -> Value:
        """Lower a subscript; a complete index is read through."""
        return self.through(scope, node, self.subscripted(scope, node))

    def through(self, scope: Scope, node: ast.expr, value: Value) -> Value:
        """Return the number in the place of a view whose index is complete; anything else as it is."""
        if not isinstance(value, (ParameterView, ArrayView)) or self.extents(value):
            return value
        if isinstance(value, ArrayView):
            return self.builder.element(value.array, value.path)
        return self.read(scope, node, value)

    def extents(self, value: Value) -> tuple[int, ...]:
        """Return the extents of a view, an array or a list along the indices that are still missing."""
        if isinstance(value, ParameterView):
            return self.builder.extents(value.parameter)[len(value.path) :]
        if isinstance(value, ArrayView):
            return self.builder.slots[value.array].shape[len(value.path) :]
        return value.shape if isinstance(value, (ConstantArray, ListValue)) else ()

    def subscripted(self, scope: Scope, node: ast.Subscript) -> Value:
        """Lower a subscript without reading through a complete index."""
        inner = node.value
        base = self.subscripted(scope, inner) if isinstance(inner, ast.Subscript) else self.value(scope, inner)
        if isinstance(node.slice, ast.Tuple):
            self._check_commas(scope, node, base)
            indices = node.slice.elts
        else:
            indices = [node.slice]
        for index in indices:
            base = self._indexed(scope, node, base, index)
        return base

    def _check_commas(self, scope: Scope, node: ast.Subscript, base: Value) -> None:
        if isinstance(base, ParameterView):
            if base.path or self.builder.shapes[base.parameter].legs is None:
                return
            hint = self.how_to_index(base.parameter)
            raise scope.source.error(node, "a leg and a component are two subscripts", hint)
        if isinstance(base, ArrayView):
            allowed = self.builder.slots[base.array].commas
        else:
            allowed = isinstance(base, ConstantArray) and base.commas
        if not allowed:
            raise scope.source.error(node, "a nested list is indexed a[i][j]", "fluxloom.zeros(n, m) allows a[i, j]")

    def _indexed(self, scope: Scope, node: ast.Subscript, base: Value, index_node: ast.expr) -> Value:
        if isinstance(base, Expression):
            raise scope.source.error(node, "a number is indexed", self._hint_for_scalar(scope, node))
        if isinstance(base, (NoneValue, OpaqueValue, RecordValue, FunctionValue)):
            raise scope.source.error(node, *self.not_indexed(base))
        index = self.integer(scope, index_node, "an index")
        if isinstance(base, ListValue):
            base = self.materialise(base, self.builder.unique("list"))
        if isinstance(base, TupleValue):
            if not isinstance(index, Constant):
                raise scope.source.error(index_node, "a tuple is indexed with a constant", _tuple_hint(base))
            self._check_bounds(scope, index_node, index, len(base.items), "the tuple")
            return base.items[int(index.value)]
        if isinstance(base, ConstantArray):
            self._check_bounds(scope, index_node, index, base.shape[0], base.name)
            if isinstance(index, Constant):
                return base.item(int(index.value))
            base = self.table(base)
        assert isinstance(base, (ParameterView, ArrayView))
        name = base.parameter if isinstance(base, ParameterView) else base.array
        extents, shapes = self.extents(base), self.builder.slots
        if not extents:
            hint = f"its shape is {shapes[name].shape}" if isinstance(base, ArrayView) else self.how_to_index(name)
            raise scope.source.error(node, f"{name!r} has too many indices", hint)
        self._check_bounds(scope, index_node, index, extents[0], name)
        return replace(base, path=(*base.path, index))

    def not_indexed(self, value: Value) -> tuple[str, str]:
        """Return the message and the hint for an index of what has none."""
        if isinstance(value, RecordValue):
            return f"a record ({value.kind.__name__}) is indexed", "take one of its fields by name"
        return self.not_scalar(value)

    def count(self, value: Value) -> int | None:
        """Return the number of items of a view, array or list; ``None`` when it is not fixed."""
        extents = self.extents(value)
        return extents[0] if extents and extents[0] != RAGGED else None

    def item(self, scope: Scope, node: ast.expr, value: Value, index: int) -> Value:
        """Return one item of a view, array or list."""
        if isinstance(value, ListValue):
            value = self.materialise(value, self.builder.unique("list"))
        if isinstance(value, ConstantArray):
            return value.item(index)
        assert isinstance(value, (ParameterView, ArrayView))
        return self.through(scope, node, replace(value, path=(*value.path, fold.integer(index))))

    def _hint_for_scalar(self, scope: Scope, node: ast.Subscript) -> str:
        root: ast.expr = node.value
        while isinstance(root, ast.Subscript):
            root = root.value
        value = self.value(scope, root) if isinstance(root, ast.Name) else None
        return self.how_to_index(value.parameter) if isinstance(value, ParameterView) else ""

    def _check_bounds(self, scope: Scope, node: ast.expr, index: Expression, extent: int, name: str) -> None:
        low = high = None
        if isinstance(index, Constant):
            low = high = int(index.value)
        elif isinstance(index, Local):
            trips = self.builder.loops.get(index.name)
            if trips:
                low, high = min(trips[0], trips[-1]), max(trips[0], trips[-1])
        if low is None or high is None:
            return
        if low < 0:
            raise scope.source.error(node, f"the index {low} is negative", "count from the start: x[len(x) - 1]")
        if extent != RAGGED and high >= extent:
            hint = self.how_to_index(name) if name in self.builder.shapes else ""
            raise scope.source.error(node, f"the index {high} of {name!r} is out of bounds (extent {extent})", hint)

    def how_to_index(self, parameter: str) -> str:
        """Say how a parameter is indexed in this loop."""
        shape = self.builder.shapes[parameter]
        text, parts = parameter, []
        if shape.legs is not None:
            text += "[leg]"
            parts.append(f"leg below len({parameter})" if shape.legs == RAGGED else f"leg in 0..{shape.legs - 1}")
        elif not shape.components:
            return f"here {parameter!r} is a scalar: write {parameter}[0]"
        for letter, extent in zip("ijklmn", shape.components, strict=False):
            text += f"[{letter}]"
            parts.append(f"{letter} in 0..{extent - 1}")
        return f"here {parameter!r} is indexed {text} with {', '.join(parts)}"

    def read(self, scope: Scope, node: ast.expr, view: ParameterView) -> Expression:
        """Return the value of one component of a parameter, if its access mode allows reading it."""
        name = view.parameter
        access = self.builder.parameters[name].access
        if access.reduces:
            raise scope.source.error(node, f"{name!r} is {access.value} but is read", REDUCTION_HINTS[access],
                                     kind=AccessError)  # fmt: skip
        if access is Access.WRITE and self.builder.first_unwritten(name, view.path) is not None:
            raise scope.source.error(node, f"{name!r} is Write but is read before it is written",
                                     "assign it first on every path, or annotate it RW", kind=AccessError)  # fmt: skip
        leg, index = self.builder.split(name, view.path)
        return Read(self.builder.shapes[name].kind, name, leg, index)


def _tuple_hint(value: TupleValue) -> str:
    if any(isinstance(item, (RecordValue, FunctionValue)) for item in value.items):
        return "try each of them: for k in range(len(them)): if kind == k: them[k](...)"
    return "use a list"


def _same(one: ConstantArray, other: ConstantArray) -> bool:
    """Whether two constant arrays are the same to the last bit, the signs of zeros included."""
    return one is other or (one == other and repr(one.values) == repr(other.values))


def _unravel(position: int, shape: tuple[int, ...]) -> tuple[Expression, ...]:
    index: list[Expression] = []
    for extent in reversed(shape):
        position, digit = divmod(position, extent)
        index.insert(0, fold.integer(digit))
    return tuple(index)
