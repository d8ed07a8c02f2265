"""Kernels in which a work item handles two neighbouring rows that are stored column by column.

The values of both, and their places in the tables, come with one load of a vector of two. Each row adds up in its own
order, so that results are those of one row an item to the last bit (`fluxloom.codegen.packs.row_packs`).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from fluxloom.codegen.items.item import Item
from fluxloom.codegen.items.kernel_writer import KernelWriter
from fluxloom.codegen.language.group import Group, Member
from fluxloom.codegen.language.lane import ROW_UNROLL, ElementPrinter, LaneLoop, entry_place, stored_length
from fluxloom.codegen.language.reduce import PART, combine
from fluxloom.codegen.language.spec import ArgSpec, LoopSpec
from fluxloom.codegen.packs.row_packs import Part, RowPackLoop, why_no_row_packs
from fluxloom.core.access import Access
from fluxloom.kernel import ir
from fluxloom.kernel.analysis import walk

__all__ = ["in_pairs", "pair_partials", "why_not_paired", "write_pairs"]

ROWS = 2
"""Rows a work item: two doubles are the widest load of a work item."""


def why_not_paired(spec: LoopSpec) -> str:
    """Return why a work item cannot handle two neighbouring rows of a loop; empty when it can."""
    reason = why_no_row_packs(spec)
    if reason:
        return reason
    for arg in spec.args:
        if arg.ragged is not None and (arg.ragged.slice == 0 or arg.ragged.slice % ROWS):
            return "pairs of rows need slices of an even number of rows: take SlicedELL(32)"
        if arg.kind not in ("direct", "global", "ragged", "entries"):
            return f"{arg.parameter!r} goes through another map than that of the rows"
        if arg.kind == "entries" and arg.access is not Access.READ:
            return f"it changes the entries {arg.parameter!r}"
    return ""


def in_pairs(group: Group) -> bool:
    """Whether the work items of a group have two rows each."""
    return group.work.pairs and group.strategy == "direct" and len(group.members) == 1


def pair_partials() -> str:
    """Return the C expression of the number of partial results."""
    return f"((n + 1) / {ROWS} + {PART - 1}) / {PART}"


def write_pairs(driver: KernelWriter) -> list[str]:
    """Return the kernel of a group in pairs; note its launch."""
    group, words = driver.group, driver.words
    (member,) = group.members
    item = _PairItem(group, driver.dialect, driver.constants)
    item.lines = driver.open("_run")
    item.line(f"const int item = {words.item.format(block=group.work.block)};")
    first = "((int)from & ~1) + " if group.ranged else ""
    item.line(f"const int i = {first}{ROWS} * item;")
    item.lines += driver.sums.declare(group.members)
    with item.block("if (i < n)"):
        begins = "i >= from" if group.ranged else "1"
        item.line(f"const int live[{ROWS}] = {{{begins}, i + 1 < n}};")
        item.line(f"const int at[{ROWS}] = {{i, live[1] ? i + 1 : i}};")
        item.declare_own()
        item.member(member, "i", "none")
        item.store_own()
    lines = [*item.lines, *driver.sums.reduce(group.members, "item", f"(n + 1) / {ROWS}")]
    # a range that begins inside a pair needs an item more than half its rows: there, one a row
    over = 1 if group.ranged else ROWS
    driver.launch("_run", "n", over=over)
    return [*lines, "}", ""]


@dataclass
class _PairItem(Item):
    """The body of two rows: what belongs to a row is an array of two."""

    _fetched: dict[str, str] = field(default_factory=dict, kw_only=True)

    # ------------------------------------------------------------------------------ own elements
    def declare_own(self) -> None:
        """Declare the values of both rows."""
        for arg in self.new_own(self.group.members):
            self.line(f"{self.real(arg)} o{arg.dat}[{ROWS}][{arg.dim}];")

    def load_own(self, arg: ArgSpec, components: set[int]) -> None:
        """Load what is not there yet, for both rows."""
        have = self._available.setdefault(arg.dat, set())
        needed = components - have
        for k in range(ROWS) if needed else ():
            self._load(arg, f"o{arg.dat}[{k}]", f"d{arg.dat}", self._row(arg, k), needed, have)
        have |= needed

    def store_own(self) -> None:
        """Store what the loop has changed, two scalars at once where they are neighbours."""
        for dat, components in sorted(self._dirty.items()):
            arg, cast = self._own[dat], ""
            if arg.scalar.c != self.real(arg):
                cast = f"({arg.scalar.c})"
            if _neighbours(arg) and not arg.positioned:
                vector = f"{arg.scalar.c}{ROWS}"
                both = ", ".join(f"{cast}o{dat}[{k}][0]" for k in range(ROWS))
                pointed = self.words.cast.format(const="", type=vector)
                value = self.words.vector.format(type=vector, values=both)
                with self.block("if (live[0] && live[1])"):
                    self.line(f"*{pointed}(d{dat} + i) = {value};")
                opening = "else if"
            else:
                opening = "if"
            for k in range(ROWS):
                with self.block(f"{opening} (live[{k}])"):
                    self._store(arg, f"o{dat}[{k}]", f"d{dat}", self._row(arg, k), components)

    def _row(self, arg: ArgSpec, k: int) -> str:
        return f"z{arg.dat}[at[{k}]]" if arg.positioned else f"at[{k}]"

    # ------------------------------------------------------------------------------------- the rows
    def _row_length(self, arg: ArgSpec, element: str) -> None:
        lengths = ", ".join(f"live[{k}] ? {stored_length(arg, f'at[{k}]')} : 0" for k in range(ROWS))
        self.line(f"const int row{arg.map}_length[{ROWS}] = {{{lengths}}};")

    def _global(self, member: Member, arg: ArgSpec) -> None:
        super()._global(member, arg)
        if arg.access is not Access.READ:
            self.line(f"{self.real(arg)} e{member.number}_{arg.parameter}[{ROWS}][{arg.dim}];")

    def lane_loop(self, member: Member, place: ElementPrinter, atomic: bool) -> LaneLoop:
        """Return what writes the kernel for both rows."""

        def of_row(arg: ArgSpec, leg: str, component: str, number: int) -> str:
            if arg.kind == "direct":
                return f"o{arg.dat}[l][{component}]"
            if arg.access is Access.READ:
                return f"p{number}_{arg.parameter}[{component}]"
            return f"e{number}_{arg.parameter}[l][{component}]"

        loop = _PairLoop(member.spec, member.number, self.dialect, self.compute, of_row, constant=self.constant)
        loop.lanes, loop.before = ROWS, (self.words.unroll.format(n=ROWS),)
        return loop

    def _commit(self, member: Member, commit: str, element: str) -> None:
        super()._commit(member, commit, element)
        for _, arg in self.group.reductions((member,)):
            for k in range(ROWS):
                with self.block(f"if (live[{k}])"):
                    for c in range(arg.dim):
                        total, value = (f"{x}{member.number}_{arg.parameter}" for x in "ge")
                        whole = combine(arg, f"{total}[{c}]", f"{value}[{k}][{c}]", self.real(arg))
                        self.line(f"{total}[{c}] = {whole};")


def _neighbours(arg: ArgSpec) -> bool:
    """Whether the values of neighbouring elements lie side by side and can be moved as a vector."""
    return arg.dim == 1 and arg.scalar.floating and arg.scalar.size in (4, 8)


class _PairLoop(RowPackLoop):
    """Writes a kernel for two rows: one loop over entries, whose tables and values come in pairs."""

    _counter = ""
    """The counter that is the number of the entries at hand, where no statement changes it."""

    def _rows(self, loop: ir.For, part: Part, pad: str, number: int) -> list[str]:
        place, ends = f"for_{loop.name}_t{number}", f"for_{loop.name}_e{number}"
        start, inner = self.printer.expression(loop.start), pad + "    "
        changed = any(isinstance(n, (ir.Assign, ir.For)) and n.name == loop.name for n in walk(loop.body))
        self._counter = "" if changed else loop.name
        counter = f"{loop.name}_{self.printer.lane(loop.name)} = {place};"
        body = [*self._own(part), counter, *self.printer.block(loop.body, 0)]
        self._counter = ""
        limit = f"{ends}[l] = live[l] ? (int)({self.printer.expression(loop.stop)}) : 0;"
        return [
            f"{pad}int {ends}[{self.lanes}];",
            *self._lanes([limit], pad),
            f"{pad}const int {place}_most = {ends}[0] > {ends}[1] ? {ends}[0] : {ends}[1];",
            f"{pad}{self._unroll()}",
            f"{pad}for (int {place} = {start}; {place} < {place}_most; {place} += {loop.step}) {{",
            *(inner + line for line in ([] if changed else self._fetches(place))),
            *self._lanes(body, inner, f"{place} < {ends}[l]"),
            f"{pad}}}",
        ]

    def _unroll(self) -> str:
        assert self.printer.dialect.words is not None
        return self.printer.dialect.words.unroll.format(n=ROW_UNROLL)

    def _fetches(self, place: str) -> list[str]:
        """Return the loads of what both rows have at a place; padding is loaded too, and not used."""
        words = self.printer.dialect.words
        assert words is not None
        found: dict[str, tuple[str, str, str]] = {}
        for arg in self.spec.args:
            if arg.kind == "ragged":
                found[f"q{arg.map}"] = ("int", f"r{arg.map}_index", entry_place(arg, place))
            elif arg.kind == "entries" and _neighbours(arg):
                found[f"q{arg.map}_d{arg.dat}"] = (arg.scalar.c, f"d{arg.dat}", entry_place(arg, place))
        lines = []
        for name, (kind, pointer, where) in found.items():
            pointed = words.cast.format(const="const ", type=f"{kind}{ROWS}")
            lines.append(f"const {kind}{ROWS} {name}_w = *{pointed}({pointer} + {where});")
            lines.append(f"const {kind} {name}[{ROWS}] = {{{name}_w.x, {name}_w.y}};")
        return lines

    def _ragged_access(self, arg: ArgSpec, leg: ir.Expression | None, index: tuple[ir.Expression, ...]) -> str:
        own = isinstance(leg, ir.Local) and leg.name == self._counter
        if own and arg.kind == "entries" and _neighbours(arg):
            return f"q{arg.map}_d{arg.dat}[l]"
        return super()._ragged_access(arg, leg, index)

    def _target(self, arg: ArgSpec, leg: ir.Expression, entry: str) -> str:
        if isinstance(leg, ir.Local) and leg.name == self._counter:
            return f"(size_t)q{arg.map}[l]"
        return super()._target(arg, leg, entry)
