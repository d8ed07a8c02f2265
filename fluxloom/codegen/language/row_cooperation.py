"""Whether work items may share the rows of a ragged loop, and what they have to combine afterwards.

A loop over the entries of a row is *separable* when its iterations can be dealt out to several items:
each iteration works on temporaries of its own, adds to (or compares with) values that the loop does not
look at otherwise, and changes no entries but its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import product

from fluxloom.codegen.language.lane import MEMORY, flatten
from fluxloom.codegen.language.spec import ArgSpec, LoopSpec
from fluxloom.core.access import Access
from fluxloom.kernel import ir
from fluxloom.kernel.analysis import constant_index, expressions, used_components, walk

__all__ = ["Accumulator", "Cooperation", "cooperation", "exposed_locals"]

_Key = tuple[str, tuple[int, ...]]
"""A scalar local (empty index), or an element of a local array."""

_Test = Callable[[ir.Expression], bool]


@dataclass(frozen=True)
class Accumulator:
    """A value that the iterations of a separable loop add to, or compare with.

    Attributes
    ----------
    name, index
        A scalar local (empty index), an element of a local array, or a parameter with ``(leg, component)``.
    parameter
        Whether it is a parameter.
    op
        ``"+"``, ``"min"``, ``"max"``, ``"or"`` or ``"and"``.
    kind
        Kind of its value.
    rounded
        Whether the loop stores it, so that it has to be rounded to the type of its dat.
    """

    name: str
    index: tuple[int, ...]
    parameter: bool
    op: str
    kind: ir.Kind
    rounded: bool = False


@dataclass(frozen=True)
class Cooperation:
    """How the rows of a ragged loop are shared.

    Attributes
    ----------
    loops
        Position in the body of each loop that is dealt out, and what is combined after it.
    scattered
        Parameters whose targets the loops add to; without atomics the targets of a row must differ.
    contended
        Why the items of one row may meet at a target that is not changed by atomics; empty: they do not.
    """

    loops: tuple[tuple[int, tuple[Accumulator, ...]], ...]
    scattered: tuple[str, ...] = ()
    contended: str = ""


def cooperation(spec: LoopSpec) -> Cooperation | str:
    """Return how the rows of a loop are shared, or why they cannot be."""
    try:
        return _Analysis(spec).run()
    except _Alone as reason:
        return str(reason)


def exposed_locals(spec: LoopSpec, body: tuple[ir.Statement, ...], counter: str) -> set[str]:
    """Return the locals that a trip of a loop may read before it has given them a value."""
    return _Analysis(spec)._exposed(body, {(counter, ())})


class _Alone(Exception):
    """The loop has to be run by one item a row."""


class _Analysis:
    """Examines the body of one kernel."""

    def __init__(self, spec: LoopSpec) -> None:
        self.spec, self.kernel = spec, spec.kernel
        self.kinds = dict(spec.kernel.scalars)
        self.arrays = {a.name: a for a in spec.kernel.arrays}
        self._lengths, self._derived = _lengths(spec.kernel)
        self._written = {a.parameter for a in spec.args if a.kind == "entries" and a.access is not Access.READ}
        self._deals: dict[str, set[tuple[int | float | bool, int]]] = {}
        self._contended = ""

    def run(self) -> Cooperation:
        """Return what was found."""
        body = self.kernel.body
        found: list[tuple[int, tuple[Accumulator, ...]]] = []
        for position, statement in enumerate(body):
            if isinstance(statement, ir.For) and self._measured(statement):
                found.append((position, self._loop(statement, body[position + 1 :])))
            else:
                self._outside(statement)
        if not found:
            raise _Alone("the kernel has no loop over the entries of a row")
        for name in sorted(self._written):
            if len(self._deals.get(name, ())) > 1:
                raise _Alone(f"two loops deal out the entries of {name!r} differently")
        scattered = tuple(sorted(n for n in self._deals if self.spec.arg(n).kind == "ragged"))
        return Cooperation(tuple(found), scattered, self._contended or self._shared_targets(scattered))

    def _shared_targets(self, scattered: tuple[str, ...]) -> str:
        """Return why two items of a row may meet at a target although each follows its own entries."""
        for name in scattered:
            arg = self.spec.arg(name)
            if len(self._deals[name]) > 1:
                return f"two loops deal out the updates of {name!r} differently"
            others = [a for a in self.spec.args if a.dat == arg.dat and a.map != arg.map]
            if others:
                return f"{name!r} and {others[0].parameter!r} are the same dat"
        return ""

    def _length(self, node: ir.Expression) -> bool:
        """Whether an expression is the number of entries of a row."""
        return isinstance(node, ir.Length) or (isinstance(node, ir.Local) and node.name in self._lengths)

    def _measured(self, loop: ir.For) -> bool:
        """Whether the number of entries bounds a loop."""
        nodes = list(expressions(loop))
        return any(isinstance(n, ir.Length) or (isinstance(n, ir.Local) and n.name in self._derived) for n in nodes)

    # ----------------------------------------------------------------------------- outside the loops
    def _outside(self, statement: ir.Statement) -> None:
        """Check a statement that every item repeats: it may change nothing but values of its own."""
        for node in walk((statement,)):
            if isinstance(node, ir.For) and self._measured(node):
                raise _Alone("a loop over the entries of a row is inside a condition or another loop")
            if isinstance(node, (ir.Store, ir.Update)) and self._arg(node).kind in MEMORY:
                raise _Alone(f"{node.parameter!r} is changed outside the loops over its entries")
            for item in expressions(node):
                if isinstance(item, ir.Read) and item.parameter in self._written:
                    raise _Alone(f"{item.parameter!r} is read outside the loop that changes it")

    # ------------------------------------------------------------------------------------- one loop
    def _loop(self, loop: ir.For, rest: tuple[ir.Statement, ...]) -> tuple[Accumulator, ...]:
        """Check one loop over entries; return what its iterations accumulate."""
        if not (isinstance(loop.start, ir.Constant) and self._length(loop.stop) and loop.step > 0):
            raise _Alone("a loop over the entries of a row does not run upwards to their number")
        self._memory(loop)
        exposed = self._exposed(loop.body, {(loop.name, ())})
        later = self._exposed(rest, set())
        if loop.name in later:
            raise _Alone(f"{loop.name!r} is used after the loop")
        out: list[Accumulator] = []
        for name in sorted(_assigned(loop.body) - {loop.name}):
            if name in exposed:
                out += self._accumulated_local(loop.body, name)
            elif name in later:
                out.append(self._flag(loop.body, name))
        return (*out, *self._accumulated_parameters(loop.body))

    def _memory(self, loop: ir.For) -> None:
        """Check accesses to entries that the kernel changes, and updates of targets."""
        reassigned = loop.name in _assigned(loop.body)
        own = ir.Local(ir.Kind.INT, loop.name)
        assert isinstance(loop.start, ir.Constant)
        deal = (loop.start.value, loop.step)
        for node in walk(loop.body):
            accesses: list[ir.Read | ir.Store | ir.Update] = [n for n in expressions(node) if isinstance(n, ir.Read)]
            if isinstance(node, (ir.Store, ir.Update)):
                accesses.append(node)
            for access in accesses:
                name, follows = access.parameter, access.leg == own and not reassigned
                if name in self._written:
                    if not follows:
                        raise _Alone(f"an iteration uses other entries of {name!r} than its own")
                    self._deals.setdefault(name, set()).add(deal)
                elif isinstance(access, ir.Update) and self._arg(access).kind == "ragged":
                    self._deals.setdefault(name, set()).add(deal)
                    if not follows:
                        self._contended = f"an iteration updates other targets of {name!r} than its own"

    def _exposed(self, statements: Iterable[ir.Statement], defined: set[_Key]) -> set[str]:
        """Return the locals that may be read before they have a value; ``defined`` grows by those that surely have."""
        out: set[str] = set()
        for statement in statements:
            for node in expressions(statement):
                if (isinstance(node, ir.Local) and (node.name, ()) not in defined) or (
                    isinstance(node, ir.LocalElement) and not self._keys(node) <= defined
                ):
                    out.add(node.name)
            match statement:
                case ir.Assign(name=name):
                    defined.add((name, ()))
                case ir.StoreLocal(name=name, index=index) if (place := constant_index(index)) is not None:
                    defined.add((name, place))
                case ir.If(body=body, orelse=orelse):
                    yes, no = set(defined), set(defined)
                    out |= self._exposed(body, yes) | self._exposed(orelse, no)
                    defined |= yes & no
                case ir.For(name=name, body=body):
                    inside = defined | {(name, ())}
                    out |= self._exposed(body, inside)
                    if _surely_runs(statement):
                        defined |= inside
                case ir.While(body=body):
                    out |= self._exposed(body, set(defined))
        return out

    def _keys(self, node: ir.LocalElement) -> set[_Key]:
        """Return the elements that an access may mean."""
        place = constant_index(node.index)
        if place is not None:
            return {(node.name, place)}
        return {(node.name, index) for index in product(*map(range, self.arrays[node.name].shape))}

    # --------------------------------------------------------------------------------- accumulators
    def _flag(self, body: tuple[ir.Statement, ...], name: str) -> Accumulator:
        """Return a boolean local that some entry may set, always to the same value."""
        values = [n.value for n in walk(body) if isinstance(n, ir.Assign) and n.name == name]
        constants = {v.value for v in values if isinstance(v, ir.Constant) and v.kind is ir.Kind.BOOL}
        if len(constants) != 1 or not all(isinstance(v, ir.Constant) for v in values):
            raise _Alone(f"the value of {name!r} from the last entry is used after the loop")
        return Accumulator(name, (), False, "or" if constants.pop() else "and", ir.Kind.BOOL)

    def _accumulated_local(self, body: tuple[ir.Statement, ...], name: str) -> list[Accumulator]:
        """Return a local, or the elements of a local array, as accumulators."""

        def mentions(node: ir.Expression) -> bool:
            return isinstance(node, (ir.Local, ir.LocalElement)) and node.name == name

        ops: set[str] = set()
        elements: set[tuple[int, ...]] = set()
        for node in walk(body):
            used = any(mentions(n) for n in expressions(node))
            if isinstance(node, ir.Assign) and node.name == name:
                ops.add(self._operation(name, node.value, ir.Local(self.kinds[name], name), mentions))
                elements.add(())
            elif isinstance(node, ir.StoreLocal) and node.name == name:
                own = ir.LocalElement(self.arrays[name].kind, name, node.index)
                ops.add(self._operation(name, node.value, own, mentions))
                if any(mentions(n) for i in node.index for n in expressions(i)):
                    raise _Alone(f"{name!r} is read in the loop that adds to it")
                elements |= {index for _, index in self._keys(own)}
            elif used or (isinstance(node, ir.For) and node.name == name):
                raise _Alone(f"{name!r} is read in the loop that adds to it")
        kind = self.arrays[name].kind if name in self.arrays else self.kinds[name]
        op = self._one(name, ops)
        return [Accumulator(name, index, False, op, kind) for index in sorted(elements)]

    def _accumulated_parameters(self, body: tuple[ir.Statement, ...]) -> list[Accumulator]:
        """Return the components of parameters that a loop updates, or stores in the form of an update."""
        found: dict[tuple[str, tuple[int, int]], tuple[set[str], ir.Kind, bool]] = {}
        for node in walk(body):
            if not isinstance(node, (ir.Store, ir.Update)) or self._arg(node).kind in MEMORY:
                continue
            arg, name = self._arg(node), node.parameter
            if used_components(self.kernel, name) is None:
                raise _Alone(f"{name!r} is changed at a computed component")
            place = (int(node.leg.value) if isinstance(node.leg, ir.Constant) else 0,
                     flatten(constant_index(node.index) or (), arg.components))  # fmt: skip
            kind = ir.Kind.REAL if arg.scalar.floating else ir.Kind.INT
            stored = isinstance(node, ir.Store)
            op = self._stored(body, node, kind) if isinstance(node, ir.Store) else node.op
            found.setdefault((name, place), (set(), kind, stored))[0].add(op)
        return [
            Accumulator(name, place, True, self._one(name, ops), kind, stored)
            for (name, place), (ops, kind, stored) in sorted(found.items())
        ]

    def _stored(self, body: tuple[ir.Statement, ...], store: ir.Store, kind: ir.Kind) -> str:
        """Return the operation of a store such as ``y[0] = y[0] + e``."""
        own = ir.Read(kind, store.parameter, store.leg, store.index)

        def same(node: ir.Statement) -> bool:
            place = (store.parameter, store.leg, store.index)
            return isinstance(node, ir.Store) and (node.parameter, node.leg, node.index) == place

        for node in walk(body):
            if not same(node) and any(n == own for n in expressions(node)):
                raise _Alone(f"{store.parameter!r} is read in the loop that adds to it")
        return self._operation(store.parameter, store.value, own, lambda n: n == own)

    def _operation(self, name: str, value: ir.Expression, own: ir.Expression, mentions: _Test) -> str:
        op = _operation(value, own, mentions)
        if op is None:
            raise _Alone(f"{name!r} is neither set anew for each entry nor a sum, a minimum or a maximum")
        return op

    @staticmethod
    def _one(name: str, ops: set[str]) -> str:
        """Return the one operation of several updates of a value."""
        different = sorted(ops - {""})
        if len(different) > 1:
            raise _Alone(f"{name!r} is combined in different ways: {' and '.join(different)}")
        return different[0] if different else "+"

    def _arg(self, node: ir.Store | ir.Update) -> ArgSpec:
        return self.spec.arg(node.parameter)


def _operation(value: ir.Expression, own: ir.Expression, mentions: _Test) -> str | None:
    """Return how a new value follows from the old one, ``""`` when it is the old one; None: not by one operation."""
    if value == own:
        return ""
    parts: tuple[ir.Expression, ...] = ()
    op = ""
    match value:
        case ir.Binary(op="+", left=left, right=right):
            op, parts = "+", (left, right)
        case ir.Binary(op="-", left=left, right=right) if not _holds(right, mentions):
            op, parts = "+", (left,)
        case ir.Call(function="min" | "max" as function, arguments=arguments):
            op, parts = function, arguments
        case ir.Boolean(op=word, values=values):
            op, parts = word, values
        case ir.Conditional(test=left, yes=ir.Constant(value=True), no=right) if value.kind is ir.Kind.BOOL:
            op, parts = "or", (left, right)
        case ir.Conditional(test=left, yes=right, no=ir.Constant(value=False)) if value.kind is ir.Kind.BOOL:
            op, parts = "and", (left, right)
        case ir.Conditional(test=test, yes=yes, no=no) if not _holds(test, mentions):
            both = {_operation(yes, own, mentions), _operation(no, own, mentions)}
            if None in both or len(both - {""}) > 1:
                return None
            return max((b for b in both if b), default="")
    inside = [p for p in parts if _holds(p, mentions)]
    if len(inside) != 1 or _operation(inside[0], own, mentions) not in ("", op):
        return None
    return op


def _holds(node: ir.Expression, mentions: _Test) -> bool:
    return any(mentions(n) for n in expressions(node))


def _lengths(kernel: ir.LoweredKernel) -> tuple[set[str], set[str]]:
    """Return the locals that always hold the number of entries, and those that follow from it."""
    times = Counter(n.name for n in walk(kernel.body) if isinstance(n, (ir.Assign, ir.For)))
    exact: set[str] = set()
    derived: set[str] = set()
    for node in kernel.body:
        if not isinstance(node, ir.Assign):
            continue
        value = node.value
        if any(isinstance(n, ir.Length) or (isinstance(n, ir.Local) and n.name in derived) for n in expressions(value)):
            derived.add(node.name)
            same = isinstance(value, ir.Length) or (isinstance(value, ir.Local) and value.name in exact)
            exact |= {node.name} if same and times[node.name] == 1 else set()
    return exact, derived


def _surely_runs(loop: ir.For) -> bool:
    start, stop = loop.start, loop.stop
    if not (isinstance(start, ir.Constant) and isinstance(stop, ir.Constant)):
        return False
    return bool(range(int(start.value), int(stop.value), loop.step))


def _assigned(body: tuple[ir.Statement, ...]) -> set[str]:
    """Return the locals that a loop body assigns."""
    return {n.name for n in walk(body) if isinstance(n, (ir.Assign, ir.StoreLocal, ir.For))}
