"""A kernel specialised to one loop: shapes and baked constants in, a `LoweredKernel` out, with its digest.

Helpers are inlined: their parameters become locals or views, several returns one value.

The digest of a kernel is the key of its tunings, so names must not change it: those of the kernel and of its file,
of parameters and constants, locals, helpers and tables. Each name is replaced by its kind and the place at which it
comes first. All that computes is kept: shapes, kinds, accesses, operations, numbers and their order.

Folding and unrolling happen while lowering; passes over the lowered body then make scalars of arrays, and leave out
locals that nothing reads.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from dataclasses import replace
from enum import Enum
from math import prod
from typing import Any, final

from fluxloom.core.access import Access
from fluxloom.core.errors import AccessError, KernelError, did_you_mean
from fluxloom.kernel import ir
from fluxloom.kernel.analysis import (
    constant_index,
    count_flops,
    expressions,
    field_names,
    map_blocks,
    map_expressions,
    nodes,
    walk,
)
from fluxloom.kernel.ir import RAGGED, Constant, Expression, Kind, Local
from fluxloom.kernel.reading import Signature, contains_return, returning_block, run_time_constants
from fluxloom.kernel.source import FunctionSource
from fluxloom.kernel.state import Branch, Builder, Scope
from fluxloom.kernel.statements import LoopLowerer
from fluxloom.kernel.values import (
    FunctionValue,
    ListValue,
    NoneValue,
    ParameterView,
    RecordValue,
    StoredField,
    TupleValue,
    Value,
    inner_values,
)

__all__ = [
    "KernelLowerer", "cut_chains", "kernel_digest", "lower", "remove_dead_locals",
    "rewrite_statements", "scalarise",
]  # fmt: skip

_SPACES: dict[type, str] = {
    **dict.fromkeys((ir.Parameter, ir.Read, ir.Length, ir.Store, ir.Update), "p"),
    **dict.fromkeys((ir.ConstantParameter, ir.ReadConstant), "k"),
    **dict.fromkeys((ir.Local, ir.Assign, ir.For), "s"),
    **dict.fromkeys((ir.LocalArray, ir.LocalElement, ir.StoreLocal), "a"),
    **dict.fromkeys((ir.Table, ir.TableElement), "t"),
}
"""What a name stands for: equal names of different kinds are different things."""

_NAMES = ("name", "parameter")
"""Fields of nodes that hold names."""


def kernel_digest(
    parameters: tuple[ir.Parameter, ...],
    shapes: tuple[ir.ArgShape, ...],
    constants: tuple[ir.ConstantParameter, ...],
    scalars: tuple[tuple[str, Kind], ...],
    arrays: tuple[ir.LocalArray, ...],
    body: tuple[ir.Statement, ...],
    tables: tuple[ir.Table, ...],
) -> str:
    """Return the SHA-256 of all that a kernel computes; the arguments are the fields of `LoweredKernel`."""
    numbers: dict[tuple[str, str], int] = {}
    seen = [_canonical(part, numbers) for part in (parameters, shapes, constants, body)]
    # what is declared is listed in the order in which the body meets it, not in that of the names
    kinds = [(_number("s", name, numbers), kind.name) for name, kind in scalars]
    declared = [_canonical(item, numbers) for item in (*arrays, *tables)]
    return hashlib.sha256("\n".join([*seen, repr(sorted(kinds)), *sorted(declared)]).encode()).hexdigest()


def _number(space: str, name: str, numbers: dict[tuple[str, str], int]) -> int:
    return numbers.setdefault((space, name), len(numbers))


def _canonical(value: object, numbers: dict[tuple[str, str], int]) -> str:
    """Return a text of content alone: no locations, no addresses, no names."""
    if isinstance(value, tuple):
        return "(" + ",".join([_canonical(item, numbers) for item in value]) + ")"
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, (str, bool, int, float)) or value is None:
        return repr(value)
    kind = type(value)
    parts = list(_parts(value, kind, numbers))
    return f"{kind.__name__}({','.join(parts)})" if parts else str(value)


def _parts(value: object, kind: type, numbers: dict[tuple[str, str], int]) -> Iterable[str]:
    for field in field_names(kind):
        item = getattr(value, field)
        if field == "location":
            continue
        if field in _NAMES:
            yield str(_number(_SPACES[kind], item, numbers))
        else:
            yield _canonical(item, numbers)


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


MOST_LOCAL = 128 << 10
"""Bytes of the local arrays of an element: stacks of threads hold those of a pack, registers and caches far less."""

MOST_PASSES = 20  # each pass can only widen a local from integer to real


def lower(
    source: FunctionSource, signature: Signature, shapes: Mapping[str, ir.ArgShape], baked: Mapping[str, Any]
) -> ir.LoweredKernel:
    """Specialise a kernel.

    Parameters
    ----------
    source, signature
        The kernel.
    shapes
        How each data parameter is indexed.
    baked
        Values of constants that are folded into the code: every ``Const[...]`` parameter without a
        default, and any run-time constant that is to be fixed as well.

    Raises
    ------
    KernelError
        Wrong indices or kinds, a use before assignment, a missing or wrong baked value.
    AccessError
        A ``Write`` component read too early or not written on some path.
    """
    _check_shapes(source, signature, shapes)
    signature, bindings = _bindings(source, signature, shapes, baked)
    kinds: dict[str, Kind] = {}
    for _ in range(MOST_PASSES):
        builder = _run(source, signature, shapes, bindings, kinds)
        kinds = builder.kinds
        if not builder.changed:
            return _finish(source, signature, shapes, builder)
    raise source.error(source.node, "the kinds of the locals do not settle", "initialise reals with 0.0, not 0")


def _check_shapes(source: FunctionSource, signature: Signature, shapes: Mapping[str, ir.ArgShape]) -> None:
    names = [item.name for item in signature.parameters]
    for name in shapes:
        if name not in names:
            raise KernelError(f"{source.name!r} has no data parameter {name!r}{did_you_mean(name, names)}",
                              filename=source.filename, line=source.first_line)  # fmt: skip
    for item in signature.parameters:
        if item.name not in shapes and item.optional:
            continue
        if item.name not in shapes:
            raise source.error(item.location, f"no shape is given for {item.name!r}")
        shape = shapes[item.name]
        if shape.kind is Kind.BOOL or any(extent < 1 for extent in shape.components):
            raise source.error(item.location, f"{item.name!r} cannot have the shape {shape}")
        if shape.legs is not None and shape.legs != RAGGED and shape.legs < 1:
            raise source.error(item.location, f"{item.name!r} cannot have {shape.legs} legs")


def _bindings(
    source: FunctionSource, signature: Signature, shapes: Mapping[str, ir.ArgShape], baked: Mapping[str, Any]
) -> tuple[Signature, dict[str, Value]]:
    """Return the signature of this specialisation, and what each parameter name stands for at the start of the body.

    Data that the loop leaves out are not in it, and run-time fields of strategies are constants of it.
    """
    names = [item.name for item in signature.constants]
    for name in baked:
        if name not in names:
            raise KernelError(f"{source.name!r} has no constant {name!r}{did_you_mean(name, names)}",
                              filename=source.filename, line=source.first_line)  # fmt: skip
    bindings: dict[str, Value] = {
        item.name: ParameterView(item.name) if item.name in shapes else NoneValue(item.name)
        for item in signature.parameters
    }
    constants: list[ir.ConstantParameter] = []
    for item in signature.constants:
        constants.append(item)
        given = baked.get(item.name, signature.defaults.get(item.name)) if item.baked else baked.get(item.name)
        if item.name in baked or (item.baked and item.name in signature.defaults):
            bindings[item.name] = signature.value(source, item, given)
        elif not item.baked:
            bindings[item.name] = ir.ReadConstant(item.kind, item.name)
        else:
            raise source.error(item.location, f"the constant {item.name!r} has no value",
                               "give it when the loop is built, or give it a default")  # fmt: skip
        if item.name in signature.strategies:
            constants += run_time_constants(item, given)
    _check_names(source, constants)
    parameters = tuple(item for item in signature.parameters if item.name in shapes)
    return replace(signature, parameters=parameters, constants=tuple(constants)), bindings


def _check_names(source: FunctionSource, constants: list[ir.ConstantParameter]) -> None:
    """Check that no run-time field of a strategy is called like another constant."""
    known: set[str] = set()
    for item in constants:
        if item.name in known:
            raise source.error(item.location, f"two constants are called {item.name!r}: one of them is a field of a "
                               "strategy, which is called by its path", "rename the other one")  # fmt: skip
        known.add(item.name)


def _run(
    source: FunctionSource,
    signature: Signature,
    shapes: Mapping[str, ir.ArgShape],
    bindings: Mapping[str, Value],
    kinds: Mapping[str, Kind],
) -> Builder:
    names = {name: name for name in (*bindings, *sorted(source.assigned))}
    parameters = {item.name: item for item in signature.parameters}
    builder = Builder(parameters, shapes, kinds, names)
    builder.flow.bound.update(bindings)
    KernelLowerer(source, builder).block(Scope(source, names), source.node.body)
    for item in signature.parameters:
        missing = builder.first_unwritten(item.name) if item.access is Access.WRITE else None
        if missing is None:
            continue
        if isinstance(shapes[item.name], ir.SpreadShape):
            _check_spread(source, item, builder)
            continue
        text = item.name + "".join("[j]" if index == RAGGED else f"[{index}]" for index in missing)
        raise source.error(item.location, f"{item.name!r} is Write but {text} is not written on every path",
                           "assign it on every path, or annotate it RW", kind=AccessError)  # fmt: skip
    return builder


def _check_spread(source: FunctionSource, item: ir.Parameter, builder: Builder) -> None:
    """Check that every component of a ``Write`` through a stencil is written on every path, through whatever leg."""
    missing = builder.first_unspread(item.name)
    if missing is not None:
        text = "it" if not missing else f"component {missing[0] if len(missing) == 1 else missing}"
        raise source.error(item.location, f"{item.name!r} is Write through a stencil but {text} is not written on "
                           "every path", "assign it through one leg on every path, or annotate it RW",
                           kind=AccessError)  # fmt: skip


def _finish(
    source: FunctionSource, signature: Signature, shapes: Mapping[str, ir.ArgShape], builder: Builder
) -> ir.LoweredKernel:
    body = remove_dead_locals(tuple(builder.blocks[0]))
    slots = [slot for slot in builder.slots.values() if slot.name not in builder.tables]
    arrays = [ir.LocalArray(slot.name, builder.kinds[slot.name], slot.shape) for slot in slots]
    body, arrays, added = scalarise(body, arrays, builder.used | builder.kinds.keys())
    body = remove_dead_locals(body)
    body, flags = cut_chains(body, builder.used | builder.kinds.keys() | added.keys())
    kinds = builder.kinds | added | flags
    every = nodes(body)
    arrays = tuple(array for array in arrays if any(getattr(node, "name", None) == array.name for node in every))
    _check_room(source, arrays, body)
    scalars = tuple((name, kinds[name]) for name in dict.fromkeys(_scalar_names(every)))
    read = {node.name for node in every if isinstance(node, ir.ReadConstant)}
    constants: tuple[ir.ConstantParameter, ...] = tuple(item for item in signature.constants if item.name in read)
    ordered = tuple(shapes[item.name] for item in signature.parameters)
    used = {node.name for node in every if isinstance(node, ir.TableElement)}
    tables = tuple(
        ir.Table(name, item.kind, item.shape, item.values) for name, item in builder.tables.items() if name in used
    )
    digest = kernel_digest(signature.parameters, ordered, constants, scalars, arrays, body, tables)
    return ir.LoweredKernel(
        source.name, signature.parameters, ordered, constants, scalars, arrays, body, digest, count_flops(body), tables
    )


def _check_room(source: FunctionSource, arrays: tuple[ir.LocalArray, ...], body: tuple[ir.Statement, ...]) -> None:
    """Raise for local arrays that threads have no room for."""
    used = 8 * sum(prod(array.shape) for array in arrays)
    if used > MOST_LOCAL:
        large = max(arrays, key=lambda array: prod(array.shape))
        places = (item.location for item in walk(body) if isinstance(item, ir.StoreLocal) and item.name == large.name)
        raise source.error(
            next(places, source.location(source.node)),
            f"the local arrays of an element need {used:,} bytes, {large.name!r} of shape {large.shape} the most: "
            f"at most {MOST_LOCAL:,} are possible",
            "make it a dat with these components, or another set with a map",
        )


def _scalar_names(nodes: list[ir.Expression | ir.Statement]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, (ir.Assign, ir.For, ir.Local)):
            yield node.name


Body = tuple[ir.Statement, ...]

_LONGEST = 32
"""Branches of a chain of `elif` that are inside each other; some compilers know 256 brackets."""


def rewrite_statements(statements: Body, change: Callable[[ir.Statement], ir.Statement | None]) -> Body:
    """Return statements with ``change`` applied bottom-up to each; ``None`` removes it.

    Where nothing changes it is the same tuple.
    """

    def inside(block: Body) -> Body:
        return rewrite_statements(block, change)

    found = [change(map_blocks(statement, inside)) for statement in statements]
    if all(new is old for new, old in zip(found, statements, strict=True)):
        return statements
    return tuple([statement for statement in found if statement is not None])


def scalarise(
    body: Body, arrays: Iterable[ir.LocalArray], used: Iterable[str]
) -> tuple[Body, tuple[ir.LocalArray, ...], dict[str, Kind]]:
    """Replace local arrays whose every index is constant by scalar locals ``name_0``, ``name_1_2``.

    Parameters
    ----------
    body, arrays
        The statements and their local arrays.
    used
        Names that the new locals may not take.

    Returns
    -------
    body, arrays, scalars
        The new body, the arrays that remain, and the kinds of the new locals.
    """
    declared = {array.name: array for array in arrays}
    candidates = declared.keys() - _dynamically_indexed(body)
    taken = set(used) | declared.keys()
    names: dict[tuple[str, tuple[int, ...]], str] = {}
    kinds: dict[str, Kind] = {}

    def scalar(name: str, index: tuple[ir.Expression, ...]) -> str:
        position = constant_index(index) or ()
        if (name, position) not in names:
            candidate = "_".join([name, *map(str, position)])
            while candidate in taken:
                candidate += "_"
            taken.add(candidate)
            names[name, position] = candidate
            kinds[candidate] = declared[name].kind
        return names[name, position]

    def change_expression(node: ir.Expression) -> ir.Expression:
        if isinstance(node, ir.LocalElement) and node.name in candidates:
            return ir.Local(node.kind, scalar(node.name, node.index))
        return node

    def change_statement(node: ir.Statement) -> ir.Statement:
        if isinstance(node, ir.StoreLocal) and node.name in candidates:
            return ir.Assign(scalar(node.name, node.index), node.value, location=node.location)
        return node

    new_body = map_expressions(rewrite_statements(body, change_statement), change_expression)
    return new_body, tuple(array for array in declared.values() if array.name not in candidates), kinds


def _dynamically_indexed(body: Body) -> set[str]:
    accesses = (node for node in nodes(body) if isinstance(node, (ir.LocalElement, ir.StoreLocal)))
    return {node.name for node in accesses if constant_index(node.index) is None}


def remove_dead_locals(body: Body) -> Body:
    """Remove assignments to locals and arrays that nothing reads, and control flow left empty."""
    while True:
        read = _read_names(body)

        def change(node: ir.Statement, read: Set[str] = read) -> ir.Statement | None:
            if isinstance(node, (ir.Assign, ir.StoreLocal)):
                return node if node.name in read else None
            if isinstance(node, ir.If) and not node.body and not node.orelse:
                return None
            return None if isinstance(node, ir.For) and not node.body else node

        shorter = rewrite_statements(body, change)
        if shorter is body:
            return body
        body = shorter


def _read_names(body: Body) -> set[str]:
    """Return the locals that are read; an assignment does not keep its own target alive."""
    found: set[str] = set()
    for statement in walk(body):
        own = statement.name if isinstance(statement, (ir.Assign, ir.StoreLocal)) else ""
        names = [node.name for node in expressions(statement) if isinstance(node, (ir.Local, ir.LocalElement))]
        found.update(name for name in names if name != own)
    return found


def cut_chains(body: Body, used: Iterable[str]) -> tuple[Body, dict[str, Kind]]:
    """Replace long chains of ``elif`` by several, of which each runs where those before it have found nothing.

    Parameters
    ----------
    body
        The statements.
    used
        Names that the flags between the chains may not take.

    Returns
    -------
    body, flags
        The new body, and the kinds of the flags.
    """
    taken, flags = set(used), dict[str, Kind]()

    def flag() -> str:
        name = f"rest_{len(flags)}"
        while name in taken:
            name += "_"
        taken.add(name)
        flags[name] = Kind.BOOL
        return name

    def cut(block: Body) -> Body:
        found: list[ir.Statement] = []
        for statement in block:
            found += _pieces(map_blocks(statement, cut), flag)
        return tuple(found)

    return cut(body), flags


def _pieces(statement: ir.Statement, flag: Callable[[], str]) -> list[ir.Statement]:
    """Return a statement, a long chain in pieces."""
    chain: list[ir.If] = []
    node: ir.Statement | None = statement
    while isinstance(node, ir.If) and len(chain) <= _LONGEST:
        chain.append(node)
        node = node.orelse[-1] if node.orelse else None
    if len(chain) <= _LONGEST:
        return [statement]
    name, last = flag(), chain[_LONGEST - 1]
    piece = replace(last, orelse=(ir.Assign(name, ir.Constant(Kind.BOOL, True), location=last.location),))
    for outer in reversed(chain[: _LONGEST - 1]):
        piece = replace(outer, orelse=(*outer.orelse[:-1], piece))
    start = ir.Assign(name, ir.Constant(Kind.BOOL, False), location=piece.location)
    rest = ir.If(ir.Local(Kind.BOOL, name), last.orelse, (), location=last.location)
    return [start, piece, rest]
