"""Kernels in which a team of neighbouring work items handles a row, or an item several rows, of a ragged loop.

The entries of a row are dealt out to the lanes of its team in turn. What the lanes have accumulated is
combined in a tree of fixed shape, whose result every lane gets, so that all of them hold the same values
again; results depend on the number of lanes and on nothing else. The first lane stores.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace

from fluxloom.codegen.items.item import Item
from fluxloom.codegen.items.kernel_writer import KernelWriter
from fluxloom.codegen.language.dialect import KernelWords
from fluxloom.codegen.language.group import Group, Member
from fluxloom.codegen.language.lane import ElementPrinter, LaneLoop, flatten, stored_length
from fluxloom.codegen.language.printer import literal
from fluxloom.codegen.language.reduce import PART, combine, neutral
from fluxloom.codegen.language.row_cooperation import Accumulator, Cooperation, cooperation
from fluxloom.codegen.language.spec import ArgSpec, LaunchSpec
from fluxloom.core.access import Access
from fluxloom.kernel import ir
from fluxloom.kernel.analysis import constant_index
from fluxloom.kernel.lowering import remove_dead_locals, rewrite_statements

__all__ = ["LONG_LANES", "SHARING", "has_cooperative_rows", "team_partials", "write_cooperative_rows"]

SHARING = ("direct", "atomic", "element_colour")
"""Strategies that handle the rows of a ragged loop row by row, so that rows can be grouped."""

_COMMITS = {"direct": "none", "atomic": "atomic", "element_colour": "add"}
_COLOURED = ("begin", "end", "partials")

_MEETING = 2048
"""Values of one type that meet in the memory of a group at a time."""


LONG_LANES = 32
"""Items that share a long row."""


def has_cooperative_rows(group: Group) -> bool:
    """Whether the rows of a group are shared by lanes, or handled several an item, or sorted by length."""
    grouped = group.work.lanes * group.work.repeat > 1 or group.work.long > 0
    return grouped and group.strategy in SHARING and len(group.members) == 1 and group.members[0].spec.ragged


def _rows(group: Group) -> int:
    """Return the rows of a group of work items."""
    return group.work.repeat * group.work.block // group.work.lanes


def team_partials(group: Group) -> str:
    """Return the C expression of the number of partial results; those of colours are counted by the plan."""
    if group.strategy == "element_colour":
        return "n_partials"
    return f"((n + {_rows(group) - 1}) / {_rows(group)} * {group.work.block // PART})"


def write_cooperative_rows(driver: KernelWriter) -> list[str]:
    """Return the kernels of a group with cooperative rows: one, and one for rows that are too long for it."""
    lines = _write_cooperative_rows(driver)
    if driver.group.work.long:
        whole = driver.group
        work = replace(whole.work, lanes=LONG_LANES, repeat=1, block=4 * LONG_LANES, long=0)
        driver.group = replace(whole, work=work)
        lines += _write_cooperative_rows(driver, long=True)
        driver.group = whole
    return lines


def _write_cooperative_rows(driver: KernelWriter, *, long: bool = False) -> list[str]:
    """Return one kernel of a group with cooperative rows; note its launch."""
    group, words, work = driver.group, driver.words, driver.group.work
    (member,) = group.members
    coloured = group.strategy == "element_colour"
    suffix, extent = ("_long", "n_long") if long else ("_run", "n")
    shared = cooperation(member.spec) if work.lanes > 1 else None
    if shared is not None and work.component >= 0:
        part = _part(member, work.component)
        found = cooperation(part.spec)
        shared, member = (shared, member) if isinstance(found, str) else (found, part)
    assert not isinstance(shared, str)
    item = _TeamItem(group, driver.dialect, driver.constants, shared=shared)
    item.lines = driver.open(suffix, _COLOURED if coloured else ())
    item.line(f"const int me = {words.member};")
    item.line(f"const int count = (int)({'end - begin' if coloured else extent});")
    item.open_team()
    item.lines += driver.sums.declare(group.members)
    teams = work.block // work.lanes
    with item.block(f"for (int k = 0; k < {work.repeat}; k++)"):
        team = f"me / {work.lanes}" if work.lanes > 1 else "me"
        first = "(int)from + " if group.ranged and not long else ""  # long rows have a list, the same for all spans
        item.line(f"const int row = {first}({words.group} * {work.repeat} + k) * {teams} + {team};")
        listed = "perm[begin + {}]" if coloured else "list[{}]" if group.listed else "{}"
        if long:
            listed = "long_rows[{}]"
        with item.rows(listed, long):
            place = "row" if work.lanes == 1 else "(live ? row : count - 1)"
            item.line(f"const int i = {listed.format(place)};")
            item.declare_own()
            item.member(member, "i", _COMMITS[group.strategy])
            item.store_own()
    lines = [*item.lines, *_reduce(driver, coloured)]
    launch = LaunchSpec(
        group.symbol + suffix, work.block, "" if coloured else extent, per=work.lanes, over=work.repeat,
        colours=coloured, chunk=work.block,
    )  # fmt: skip
    driver.launches.append(launch)
    return [*lines, "}", ""]


def _part(member: Member, component: int) -> Member:
    """Return a loop without what it does for other components than one."""
    kernel = member.spec.kernel

    def keep(node: ir.Statement) -> ir.Statement | None:
        index = constant_index(node.index) if isinstance(node, (ir.Store, ir.Update)) else None
        if not isinstance(node, (ir.Store, ir.Update)) or index is None:
            return node
        return node if flatten(index, member.spec.arg(node.parameter).components) == component else None

    body = remove_dead_locals(rewrite_statements(kernel.body, keep))
    return replace(member, spec=replace(member.spec, kernel=replace(kernel, body=body)))


def _reduce(driver: KernelWriter, coloured: bool) -> list[str]:
    """Return the partial results of whole groups, whichever of their items have rows."""
    group, block = driver.group, driver.group.work.block
    place = f"({driver.words.group} * {block} + me)"
    first = f"partials * {block // PART} + " if coloured else ""
    every = f"((count + {_rows(group) - 1}) / {_rows(group)} * {block})"
    return driver.sums.reduce(group.members, place, every, first)


@dataclass
class _TeamItem(Item):
    """The body of a row for one of its lanes."""

    shared: Cooperation | None = field(default=None, kw_only=True)

    @property
    def lanes(self) -> int:
        """Items a row."""
        return self.group.work.lanes

    def open_team(self) -> None:
        """Declare the place in the team, and the memory in which its lanes meet where nothing else serves."""
        if self.shared is None:
            return
        self.line(f"const int lane = me % {self.lanes};")
        if self.words.swap:
            return
        sizes: dict[str, int] = {}
        for _, found in self.shared.loops:
            for kind, batch in _batches(found, self.compute.c, self.group.work.block):
                sizes[kind] = max(sizes.get(kind, 0), len(batch))
        for kind, most in sorted(sizes.items()):
            self.line(f"{self.words.shared} {kind} meet_{kind}[{most * self.group.work.block}];")

    def rows(self, listed: str, long: bool) -> AbstractContextManager[None]:
        """Write what follows for a row. All lanes of a group take part in it, whether they have one or not."""
        live = "row < count"
        if long and self.group.ranged:  # there is one list of long rows for all spans
            place = listed.format("row")
            live += f" && {place} >= from && {place} < n"
        if self.group.work.long:
            (member,) = self.group.members
            arg = next(a for a in member.spec.args if a.ragged is not None)
            live += f" && {stored_length(arg, listed.format('row'))} <= {self.group.work.long}"
        if self.lanes == 1:
            return self.block(f"if ({live})")
        self.line(f"const int live = {live};")
        self.line("const int owner = live && lane == 0;")
        return nullcontext()

    def row_length(self, stored: str) -> str:
        """Return the length of a row; lanes without a row have an empty one."""
        return stored if self.lanes == 1 else f"live ? {stored} : 0"

    def _owned(self, write: Callable[[], None]) -> None:
        """Write statements for the lane that stores."""
        if self.lanes == 1:
            write()
            return
        mark = len(self.lines)
        with self.block("if (owner)"):
            write()
        if len(self.lines) == mark + 2:
            del self.lines[mark:]

    def store_own(self) -> None:
        """Store what the loop has changed of the row's own values."""
        self._owned(super().store_own)

    def _global(self, member: Member, arg: ArgSpec) -> None:
        super()._global(member, arg)
        if arg.access is not Access.READ:
            start = ", ".join([neutral(arg)] * arg.dim)
            self.line(f"{self.real(arg)} e{member.number}_{arg.parameter}[{arg.dim}] = {{{start}}};")

    def lane_loop(self, member: Member, place: ElementPrinter, atomic: bool) -> LaneLoop:
        """Return what writes the kernel; reductions of a row go to values of their own."""

        def put(arg: ArgSpec, leg: str, component: str, number: int) -> str:
            if arg.kind == "global" and arg.access is not Access.READ:
                return f"e{number}_{arg.parameter}[{component}]"
            return place(arg, leg, component, number)

        if self.shared is None:
            return LaneLoop(member.spec, member.number, self.dialect, self.compute, put, atomic, self.constant)
        loop = _TeamLoop(member.spec, member.number, self.dialect, self.compute, put, atomic, self.constant)
        loop.shared, loop.lanes, loop.group = self.shared, self.lanes, self.group.work.block
        return loop

    def _commit(self, member: Member, commit: str, element: str) -> None:
        def write() -> None:
            super(_TeamItem, self)._commit(member, commit, element)
            for _, arg in self.group.reductions((member,)):
                for c in range(arg.dim):
                    name = f"{member.number}_{arg.parameter}[{c}]"
                    self.line(f"g{name} = {combine(arg, 'g' + name, 'e' + name, self.real(arg))};")

        self._owned(write)


class _TeamLoop(LaneLoop):
    """Writes a kernel whose loops over entries are dealt out to the lanes of a team."""

    shared: Cooperation
    lanes: int
    group: int

    @property
    def _words(self) -> KernelWords:
        assert self.printer.dialect.words is not None
        return self.printer.dialect.words

    def body(self, indent: int) -> list[str]:
        """Return the statements of the body, those of shared loops for one lane."""
        lines: list[str] = []
        found = dict(self.shared.loops)
        for position, statement in enumerate(self.spec.kernel.body):
            if position in found:
                assert isinstance(statement, ir.For)
                lines += self._shared_loop(statement, found[position], indent)
            else:
                lines += self.printer.block((statement,), indent)
        return lines

    def _shared_loop(self, loop: ir.For, found: tuple[Accumulator, ...], indent: int) -> list[str]:
        pad, chunk = "    " * indent, ""
        resets = " ".join(f"{self._value(a)} = {self._start(a)};" for a in found)
        if self.printer.expression(loop.start) == "0" and loop.step == 1:
            chunk = self._chunk()
        return [
            *([f"{pad}if (lane) {{ {resets} }}"] if found else []),
            *(self._by_chunks(loop, indent, chunk) if chunk else self._one_by_one(loop, indent)),
            *(pad + line for line in (self._swapped(found) if self._words.swap else self._met(found))),
            *(pad + line for line in self._rounded(found)),
        ]

    def _one_by_one(self, loop: ir.For, indent: int) -> list[str]:
        pad, hidden = "    " * indent, f"for_{loop.name}_t"
        start, step = self.printer.expression(loop.start), f"lane * {loop.step}" if loop.step > 1 else "lane"
        return [
            pad + self.printer.unroll,
            f"{pad}for (int {hidden} = {step if start == '0' else f'{start} + {step}'}; "
            f"{hidden} < {self.printer.expression(loop.stop)}; {hidden} += {loop.step * self.lanes}) {{",
            f"{pad}    {loop.name}_ = {hidden};",
            *self.printer.block(loop.body, indent + 1),
            f"{pad}}}",
        ]

    def _chunk(self) -> str:
        """Return the C expression of how many entries go to a lane at once, where the one ragged map has such."""
        maps = {arg.map: arg for arg in self.spec.args if arg.ragged is not None}
        (arg, *others) = maps.values()
        code = None if others or arg.ragged is None else arg.ragged.code
        return "" if code is None else code.dealt.format(row=f"row{arg.map}")

    def _by_chunks(self, loop: ir.For, indent: int, chunk: str) -> list[str]:
        """Deal out whole chunks, which lie side by side: entry after entry of them is loaded together."""
        pad, hidden = "    " * indent, f"for_{loop.name}_t"
        end, first, last = f"{hidden}e", f"{hidden}c", f"{hidden}l"
        return [
            f"{pad}const int {end} = {self.printer.expression(loop.stop)};",
            f"{pad}for (int {first} = lane * {chunk}; {first} < {end}; {first} += {self.lanes} * {chunk}) {{",
            f"{pad}    const int {last} = {first} + {chunk} < {end} ? {first} + {chunk} : {end};",
            f"{pad}    {self.printer.unroll}",
            f"{pad}    for (int {hidden} = {first}; {hidden} < {last}; {hidden} += 1) {{",
            f"{pad}        {loop.name}_ = {hidden};",
            *self.printer.block(loop.body, indent + 2),
            f"{pad}    }}",
            f"{pad}}}",
        ]

    def _value(self, item: Accumulator) -> str:
        """Return the C name of an accumulator."""
        if item.parameter:
            return f"v_{item.name}_{item.index[0]}_{item.index[1]}"
        return f"{item.name}_" + "".join(f"[{i}]" for i in item.index)

    def _start(self, item: Accumulator) -> str:
        """Return the C value that changes nothing: other lanes than the first start from it."""
        real = item.kind is ir.Kind.REAL
        match item.op:
            case "+":
                return literal(-0.0, item.kind, self.compute) if real else "0"
            case "min":
                return "INFINITY" if real else "INT64_MAX"
            case "max":
                return "-INFINITY" if real else "INT64_MIN"
        return "0" if item.op == "or" else "1"

    def _swapped(self, found: tuple[Accumulator, ...]) -> Iterator[str]:
        """Yield the tree of lanes that read each other's registers; operands are in the order of lanes."""
        distance = self.lanes // 2
        while distance:
            for item in found:
                kind, value = _exchanged(item, self.compute.c), self._value(item)
                other = self._words.swap.format(
                    kind=kind, value=value, distance=distance, width=self.lanes
                )
                if item.op not in ("min", "max"):
                    yield f"{value} = {_combined(item.op, kind, value, other)};"
                    continue
                low, high = _combined(item.op, kind, value, "w"), _combined(item.op, kind, "w", value)
                yield f"{{ const {kind} w = {other}; {value} = lane & {distance} ? {high} : {low}; }}"
            distance //= 2

    def _met(self, found: tuple[Accumulator, ...]) -> Iterator[str]:
        """Yield the same tree in the memory of the group."""
        barrier = self._words.barrier
        for kind, batch in _batches(found, self.compute.c, self.group):
            names = [f"meet_{kind}[{f'{k * self.group} + ' if k else ''}me{{}}]" for k in range(len(batch))]
            yield " ".join(f"{name.format('')} = {self._value(a)};" for name, a in zip(names, batch, strict=True))
            yield barrier
            distance = self.lanes // 2
            while distance:
                yield f"if (lane < {distance}) {{"
                for name, item in zip(names, batch, strict=True):
                    mine, other = name.format(""), name.format(f" + {distance}")
                    yield f"    {mine} = {_combined(item.op, kind, mine, other)};"
                yield "}"
                yield barrier
                distance //= 2
            own = [name.format(" - lane") for name in names]
            yield " ".join(f"{self._value(a)} = {name};" for name, a in zip(own, batch, strict=True))
            yield barrier

    def _rounded(self, found: tuple[Accumulator, ...]) -> Iterator[str]:
        for item in found:
            value = self._value(item)
            if item.rounded and self._round(item.name, value) != value:
                yield f"{value} = {self._round(item.name, value)};"


def _combined(op: str, kind: str, left: str, right: str) -> str:
    """Return the C expression of an operation."""
    if op in ("min", "max"):
        return f"fl_{op}_{kind}({left}, {right})"
    return f"{left} {({'or': '|', 'and': '&'}).get(op, op)} {right}"


def _exchanged(item: Accumulator, real: str) -> str:
    """Return the C type in which lanes exchange a value."""
    return real if item.kind is ir.Kind.REAL else "int64_t"


def _batches(found: tuple[Accumulator, ...], real: str, block: int) -> Iterator[tuple[str, list[Accumulator]]]:
    """Yield values that meet at a time: of one type, and not too many for the memory of a group."""
    most = max(1, _MEETING // block)
    kinds: dict[str, list[Accumulator]] = {}
    for item in found:
        kinds.setdefault(_exchanged(item, real), []).append(item)
    for kind, items in kinds.items():
        for first in range(0, len(items), most):
            yield kind, items[first : first + most]
