"""The kernel itself inside generated code: its locals, constant places inside its arguments, its updates."""

from __future__ import annotations

from collections.abc import Callable, Collection

from fluxloom.codegen.language.dialect import Dialect
from fluxloom.codegen.language.printer import Printer
from fluxloom.codegen.language.reduce import combine
from fluxloom.codegen.language.spec import ArgSpec, LoopSpec
from fluxloom.core.access import Access
from fluxloom.core.dtypes import AoS, Blocked, Scalar, SoA
from fluxloom.kernel import ir
from fluxloom.kernel.analysis import constant_index, reads, walk

__all__ = [
    "MANY", "MEMORY", "ElementPrinter", "LaneLoop", "Place", "address", "begins_with_updates", "constant_place",
    "entry_place", "first_updates", "flatten", "identity", "leg_components", "looped", "opposite_legs", "row_place",
    "stored_length", "touched", "updates",
]  # fmt: skip

MANY = 32
"""Legs, or components, up to which each has statements of its own; more of them are gone through in a loop."""

Place = tuple[str, int, int]
"""Parameter, leg and flat component."""


def flatten(index: tuple[int, ...], shape: tuple[int, ...]) -> int:
    """Return the flat component number of a constant component index."""
    flat = 0
    for k, n in zip(index, shape, strict=False):
        flat = flat * n + k
    return flat


def touched(spec: LoopSpec, arg: ArgSpec, leg: int) -> set[int]:
    """Return the flat components of one leg that the body touches (all when an index is dynamic)."""
    used = spec.used[arg.parameter]
    if used is None:
        return set(range(arg.dim))
    places = used.get(None, frozenset()) | used.get(leg, frozenset())
    return {flatten(index, arg.components) for index in places}


def looped(spec: LoopSpec, arg: ArgSpec) -> bool:
    """Whether code goes through the legs of an argument in a loop.

    There are many, and the kernel touches the same components of each, or only reads: then more may be read than it
    needs. Loops over ragged rows are left as they are.
    """
    if arg.kind != "table" or arg.legs <= MANY or spec.ragged:
        return False
    if spec.used[arg.parameter] is None or arg.access is Access.READ:
        return True
    first = touched(spec, arg, 0)
    return bool(first) and all(touched(spec, arg, leg) == first for leg in range(1, arg.legs))


def leg_components(spec: LoopSpec, arg: ArgSpec) -> set[int]:
    """Return the components that are moved of each leg of an argument with many."""
    if spec.used[arg.parameter] is None:
        return set(range(arg.dim))
    return set[int]().union(*(touched(spec, arg, leg) for leg in range(arg.legs)))


def constant_place(arg: ArgSpec, leg: ir.Expression | None, index: tuple[ir.Expression, ...]) -> Place:
    """Return the place behind a constant leg and index."""
    number = int(leg.value) if isinstance(leg, ir.Constant) else 0
    return arg.parameter, number, flatten(constant_index(index) or (), arg.components)


def first_updates(spec: LoopSpec, parameters: Collection[str]) -> dict[Place, ir.Update]:
    """Find updates of some parameters, used at constant places alone, that come first and without a condition.

    They may set an increment instead of adding to it.
    """
    first: dict[Place, ir.Update] = {}
    seen: set[Place] = set()
    args = {arg.parameter: arg for arg in spec.args}
    for statement in spec.kernel.body:
        for update in updates(statement):
            if update.parameter not in parameters:
                continue
            place = constant_place(args[update.parameter], update.leg, update.index)
            if place not in seen and update is statement and update.op == "+":
                first[place] = update
            seen.add(place)
    return first


def begins_with_updates(spec: LoopSpec, arg: ArgSpec) -> bool:
    """Whether each place that a kernel increments has a first update that may set it."""
    if arg.access is not Access.INC or spec.used[arg.parameter] is None:
        return False
    places = sum(len(touched(spec, arg, leg)) for leg in range(arg.legs))
    return len(first_updates(spec, (arg.parameter,))) == places


def updates(statement: ir.Statement) -> list[ir.Update]:
    """Return every update inside a statement, in order."""
    return [node for node in walk([statement]) if isinstance(node, ir.Update)]


def opposite_legs(spec: LoopSpec) -> dict[tuple[str, int], int]:
    """Find legs whose increments are exactly the negatives of another leg's.

    A conservative flux adds ``f`` to one side and ``-f`` to the other; then one transpose serves both
    sides, and ``r -= f`` equals ``r += -f`` to the last bit.
    """
    every = [u for s in spec.kernel.body for u in updates(s)]
    values: dict[tuple[str, int, tuple[int, ...]], tuple[int, ir.Expression]] = {}
    for position, u in enumerate(spec.kernel.body):
        if isinstance(u, ir.Update) and u.op == "+" and isinstance(u.leg, ir.Constant):
            values[(u.parameter, int(u.leg.value), constant_index(u.index) or ())] = (position, u.value)
    out: dict[tuple[str, int], int] = {}
    for arg in spec.args:
        if arg.kind != "table" or arg.access is not Access.INC or arg.legs != 2:
            continue
        count = sum(u.parameter == arg.parameter for u in every)
        indices = {i for p, _, i in values if p == arg.parameter}
        # One unconditional update a leg and component, nothing else.
        if count == 2 * len(indices) and all(_negated(values, arg.parameter, i) for i in indices):
            out[(arg.parameter, 1)] = 0
    return out


def _negated(
    values: dict[tuple[str, int, tuple[int, ...]], tuple[int, ir.Expression]], parameter: str, index: tuple[int, ...]
) -> bool:
    first, second = values.get((parameter, 0, index)), values.get((parameter, 1, index))
    if first is None or second is None or abs(first[0] - second[0]) != 1:
        return False  # not neighbours: the local could have changed in between
    return second[1] == ir.Negate(second[1].kind, first[1]) and isinstance(first[1], (ir.Local, ir.Constant))


ElementPrinter = Callable[[ArgSpec, str, str, int], str]
"""(argument, leg, component, member) -> the C lvalue of one component of the current element."""

MEMORY = ("ragged", "entries")
"""Kinds of arguments whose values are used where they are: a row has too many to be loaded first."""

ROW_UNROLL = 2
"""Entries of a row that a work item has under way at a time."""


def address(arg: ArgSpec, index: str, component: int | str, field: str = "A->") -> str:
    """Return the C offset of a component of one element in a dat's storage; ``field`` is the prefix of slots."""
    match arg.layout:
        case AoS():
            return f"({index}) * {arg.dim} + {component}" if arg.dim > 1 else f"({index})"
        case SoA():
            return f"({component}) * {field}s{arg.dat} + ({index})" if arg.dim > 1 else f"({index})"
        case Blocked(size=size):
            return f"(({index}) / {size}) * {size * arg.dim} + ({component}) * {size} + ({index}) % {size}"
    raise TypeError(arg.layout)


def identity(arg: ArgSpec) -> str:
    """Return the C value that changes nothing when it is added to, or compared with, a stored one."""
    if arg.access is Access.INC:
        return "0"
    low = arg.access is Access.MAX
    if arg.scalar.floating:
        return "-INFINITY" if low else "INFINITY"
    kind = arg.scalar.name.upper()
    return "0" if low and kind == "UINT8" else f"{kind}_MIN" if low else f"{kind}_MAX"


def entry_place(arg: ArgSpec, entry: str, lane: str = "") -> str:
    """Return the C expression of the place of an entry of a row; ``lane`` is how many rows further on the row is."""
    row = f"row{arg.map}"
    if arg.ragged is not None and arg.ragged.code is not None:
        return arg.ragged.code.place.format(row=row, entry=entry)
    first = f"{row}_start + {lane}" if lane else f"{row}_start"
    return f"({first} + ({entry}) * {row}_stride)"


def row_place(arg: ArgSpec, element: str, field: str = "") -> list[str]:
    """Return the declarations of where the row of an element starts, and how far apart its entries are."""
    store, row, name = arg.ragged, f"row{arg.map}", f"{field}r{arg.map}"
    assert store is not None
    if store.column_major:
        start = f"{name}_start[{element} / {store.slice}] + {element} % {store.slice}" if store.slice else element
        stride = str(store.slice) if store.slice else f"{name}_rows"
    else:
        start, stride = f"{name}_start[{element}]", "1" if store.code is None else store.code.stride
    lines = [f"const int64_t {row}_start = {start};", f"const int64_t {row}_stride = {stride};"]
    if store.code is None:
        return lines
    return [text.format(row=row, table=f"{name}_table", element=element) for text in (*lines, *store.code.declarations)]


def _stays_array(spec: LoopSpec, arg: ArgSpec) -> bool:
    """Whether the kernel works on an argument where it is, not on scalars."""
    many = arg.kind == "direct" and arg.access is Access.WRITE and arg.dim > MANY and spec.grid is None
    return arg.kind in MEMORY or many or looped(spec, arg)


class LaneLoop:
    """Writes the statements of one kernel for the element at hand.

    Components that the kernel assigns at constant places become C scalars, set at the start and
    stored at the end, so that a conditional assignment does not keep the compiler from vectorising.
    Of arguments with many places they stay where they are; what surrounds the kernel gives increments through many
    legs their start, unless the kernel's first updates do.
    """

    lane = ""
    """Index of the lane behind what a pack keeps for all of its lanes."""

    def __init__(
        self,
        spec: LoopSpec,
        number: int,
        dialect: Dialect,
        compute: Scalar,
        element: ElementPrinter,
        atomic: bool = False,
        constant: Callable[[int, str], str] | None = None,
    ) -> None:
        self.spec, self.number, self.compute, self.atomic = spec, number, compute, atomic
        self.forwards = True
        """Whether another loop may read what this one stores, without memory in between."""
        self._place = element
        self._field = dialect.field
        self._constant = constant or (lambda number, name: f"A->c{number}_{name}")
        self._scalars: dict[str, frozenset[tuple[int, int]]] = {}
        for arg in spec.args:
            used = spec.used[arg.parameter]
            if arg.access is not Access.READ and used is not None and not _stays_array(spec, arg):
                self._scalars[arg.parameter] = frozenset(
                    (leg or 0, flatten(index, arg.components)) for leg, indices in used.items() for index in indices
                )
        begun = [a.parameter for a in spec.args if looped(spec, a) and begins_with_updates(spec, a)]
        self._first = first_updates(spec, {*self._scalars, *begun})
        self.printer = Printer(dialect, compute, self._read, self._access, self._length, self._update, self._round)
        self.printer.stored = {a.parameter: a.scalar.range for a in spec.args if not a.scalar.floating}
        if dialect.words is not None:
            self.printer.unroll = dialect.words.unroll.format(n=ROW_UNROLL)
        self.constants: list[str] = []

    def write(self, indent: int = 2) -> list[str]:
        """Return the statements; the constants they use are left in `constants`."""
        kernel, pad = self.spec.kernel, "    " * indent
        declarations = self.printer.declare(kernel, indent)
        self.declare_constants()
        return [
            *declarations,
            *(pad + line for line in self._prologue()),
            *self.body(indent),
            *(pad + line for line in self._epilogue()),
        ]

    def declare_constants(self) -> None:
        """Put the declarations of the run-time constants that the kernel reads into `constants`."""
        for c in self.spec.kernel.constants:
            kind = self.printer.ctype(c.kind)
            self.constants.append(f"    const {kind} k_{c.name} = ({kind}){self._constant(self.number, c.name)};")

    def body(self, indent: int) -> list[str]:
        """Return the statements of the kernel's body."""
        return self.printer.block(self.spec.kernel.body, indent)

    # -------------------------------------------------------------------------- component access
    def kind(self, arg: ArgSpec) -> str:
        """Return the C type in which the kernel sees an argument."""
        return self.compute.c if arg.scalar.floating else "int64_t"

    def _element(self, arg: ArgSpec, leg: str, component: str) -> str:
        return self._place(arg, leg, component, self.number)

    def _component(self, arg: ArgSpec, index: tuple[ir.Expression, ...]) -> str:
        text = ""
        for node, n in zip(index, arg.components or (1,), strict=False):
            piece = self.printer.expression(node)
            text = piece if not text else f"({text}) * {n} + {piece}"
        return text or "0"

    def _access(self, parameter: str, leg: ir.Expression | None, index: tuple[ir.Expression, ...]) -> str:
        arg = self.spec.arg(parameter)
        if arg.kind in MEMORY:
            return self._ragged_access(arg, leg, index)
        if parameter in self._scalars:
            _, number, flat = constant_place(arg, leg, index)
            return f"v_{parameter}_{number}_{flat}{self.lane}"
        leg_text = self.printer.expression(leg) if leg is not None else "0"
        return self._element(arg, leg_text, self._component(arg, index))

    def _read(self, parameter: str, leg: ir.Expression | None, index: tuple[ir.Expression, ...]) -> str:
        text = self._access(parameter, leg, index)
        arg = self.spec.arg(parameter)
        return f"(({self.kind(arg)}){text})" if arg.scalar.c != self.kind(arg) else text

    def _ragged_access(self, arg: ArgSpec, leg: ir.Expression | None, index: tuple[ir.Expression, ...]) -> str:
        assert leg is not None
        entry = self._entry(arg, leg)
        place = entry if arg.kind == "entries" else self._target(arg, leg, entry)
        return f"{self._field}d{arg.dat}[{address(arg, place, self._component(arg, index), self._field)}]"

    def _entry(self, arg: ArgSpec, leg: ir.Expression) -> str:
        """Return the C expression of the place of an entry."""
        return entry_place(arg, self.printer.expression(leg))

    def _target(self, arg: ArgSpec, leg: ir.Expression, entry: str) -> str:
        """Return the C expression of the element that an entry leads to."""
        return f"(size_t){self._field}r{arg.map}_index[{entry}]"

    def _length(self, parameter: str) -> str:
        return f"row{self.spec.arg(parameter).map}_length{self.lane}"

    def _round(self, parameter: str, value: str) -> str:
        """Round a stored value to the storage type, so that forwarding it changes nothing."""
        arg = self.spec.arg(parameter)
        if arg.scalar.floating and arg.scalar.size < self.compute.size:
            alone = not self.forwards and sum(a.dat == arg.dat for a in self.spec.args) == 1
            if alone and not reads(self.spec.kernel, parameter):
                return value  # the store itself rounds
            return f"({self.compute.c})({arg.scalar.c})({value})"
        if not arg.scalar.floating and arg.scalar.size < 8:
            return f"(int64_t)({arg.scalar.c})({value})"
        return value

    # ---------------------------------------------------------------------------------- updates
    def _update(self, node: ir.Update, value: str) -> str:
        arg = self.spec.arg(node.parameter)
        target = self._access(node.parameter, node.leg, node.index)
        if node.op == "+":
            if self._first.get(constant_place(arg, node.leg, node.index)) is node:
                return f"{target} = {value};"
            if self.atomic and arg.kind in MEMORY:
                return self._atomic_update(arg, target, value)
            return f"{target} += {value};"
        return f"{target} = fl_{node.op}_{self.kind(arg)}({target}, {value});"

    def _atomic_update(self, arg: ArgSpec, target: str, value: str) -> str:
        if self.printer.dialect.words is None:
            return f'_Pragma("omp atomic") {target} += {value};'
        return f"fl_atomic_add_{arg.scalar.c}(&{target}, ({arg.scalar.c})({value}));"

    def _neutral(self, arg: ArgSpec) -> str:
        return identity(arg)

    def _prologue(self) -> list[str]:
        lines = []
        for arg in self.spec.args:
            if arg.parameter in self._scalars:
                lines += [self._declare_scalar(arg, leg, c) for leg, c in sorted(self._scalars[arg.parameter])]
            elif arg.access.reduces and arg.kind in ("table", "global", "stencil") and not looped(self.spec, arg):
                for leg in range(arg.legs):
                    lines += [f"{self._element(arg, str(leg), str(c))} = {self._neutral(arg)};" for c in range(arg.dim)]
        return lines

    def _declare_scalar(self, arg: ArgSpec, leg: int, c: int) -> str:
        name, kind = f"v_{arg.parameter}_{leg}_{c}", self.kind(arg)
        if arg.access is Access.RW:
            return f"{kind} {name} = {self._element(arg, str(leg), str(c))};"
        if arg.access.reduces and (arg.parameter, leg, c) not in self._first:
            return f"{kind} {name} = {self._neutral(arg)};"
        return f"{kind} {name};"

    def _epilogue(self) -> list[str]:
        lines = []
        for arg in self.spec.args:
            for leg, c in sorted(self._scalars.get(arg.parameter, ())):
                name = f"v_{arg.parameter}_{leg}_{c}{self.lane}"
                target = self._element(arg, str(leg), str(c))
                if arg.kind == "direct" and arg.access.reduces:
                    name = self._combine_direct(arg, target, name)
                lines.append(f"{target} = {name};")
        return lines

    def _combine_direct(self, arg: ArgSpec, target: str, name: str) -> str:
        whole = combine(arg, target, name, self.kind(arg))
        return self._round(arg.parameter, whole) if arg.access is Access.INC else whole


def stored_length(arg: ArgSpec, element: str, where: str = "") -> str:
    """Return the C expression of the entries of a row; ``where`` is what the names of arrays begin with."""
    name, store = f"{where}r{arg.map}", arg.ragged
    if store is not None and store.compact and store.narrow:  # one table less to read
        return f"{name}_start[{element} + 1] - {name}_start[{element}]"
    return f"{name}_length[{element}]"
