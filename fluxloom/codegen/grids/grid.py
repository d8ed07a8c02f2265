"""Loops over the elements of a grid: rows of neighbouring elements, arithmetic instead of tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

from fluxloom.codegen.language.dialect import Dialect
from fluxloom.codegen.language.frame import PARALLEL, argument_block, beginning, slots_of
from fluxloom.codegen.language.group import Group, Member
from fluxloom.codegen.language.lane import LaneLoop, address, touched
from fluxloom.codegen.language.reduce import combine, finish, neutral
from fluxloom.codegen.language.spec import ArgSpec, Entry, LoopSpec, Slot
from fluxloom.codegen.packs.rows import RowShape
from fluxloom.core.access import Access

__all__ = ["GridDriver", "beyond"]


def beyond(shift: int, x: str = "x") -> str:
    """Return the C expression of whether such a leg of element ``x`` leaves the row."""
    return f"{x} < {-shift}" if shift < 0 else f"{x} >= A->n2 - {shift}"


@dataclass
class GridDriver:
    """Writes the C text of one loop over a grid.

    The lattice is treated as ``(n0, n1, n2)`` with the last axis contiguous; missing axes have one
    element. A row along the last axis is cut in three: only the ends, whose neighbours may wrap
    round, compute indices with a test. Elements that begin at the slot ``from`` are whole rows.
    """

    how: ClassVar[str] = "grid"
    """How the grid is gone through, for the comment before the text."""

    group: Group
    dialect: Dialect
    helpers: set[RowShape] = field(default_factory=set)
    constants: list[str] = field(default_factory=list)
    """Declarations of the run-time constants that the kernel reads."""

    @property
    def spec(self) -> LoopSpec:
        """The one loop."""
        return self.group.members[0].spec

    def entry(self) -> Entry:
        """Return the symbol and the argument block."""
        sizes = [Slot("int64_t", f"n{k}", "grid", f"n{k}") for k in range(3)]
        return Entry(self.group.symbol, (*slots_of(self.group), *sizes))

    def write(self) -> str:
        """Return the C text."""
        member = self.group.members[0]
        lines = [f"/* {member.spec.name}: {self.how} */", *argument_block(self.group.symbol, self.entry().slots), ""]
        return "\n".join([*lines, *self._functions(member), ""])

    def _functions(self, member: Member) -> list[str]:
        """Return the functions of the loop, the one that is called last."""
        return self._row(member) + self._driver(member)

    # ---------------------------------------------------------------------------------- geometry
    def rows(self, member: Member) -> dict[tuple[int, int], str]:
        """Name the base of every row of neighbours that is read: one an outer offset."""
        rows: dict[tuple[int, int], str] = {(0, 0): "row0"}
        for arg in member.spec.args:
            for z, y, _ in arg.offsets:
                rows.setdefault((z, y), f"row{len(rows)}")
        return rows

    def _reach(self, member: Member) -> int:
        """Return how far from the ends of a row neighbours may be at its other end, or legs lead back."""
        joined = self.spec.box.periodic[2]
        legs = ((a, x) for a in member.spec.args for _, _, x in a.offsets)
        return max((abs(x) for a, x in legs if joined or a.turns(x)), default=0)

    # -------------------------------------------------------------------------------------- text
    def body(
        self, member: Member, rows: dict[tuple[int, int], str], shifted: Callable[[int], str], ends: str = ""
    ) -> list[str]:
        """Return the kernel for the site ``x``, and before it in `constants` what it needs once.

        ``shifted`` gives the C expression of the place in its row at some distance from ``x``; ``ends`` one that is
        true where ``x`` may be near an end of the row, empty: anywhere.
        """

        def element(arg: ArgSpec, leg: str, component: str, _member: int) -> str:
            if arg.kind == "global":
                if arg.access is Access.READ:
                    return f"A->d{arg.dat}[{component}]"
                return f"g_{arg.parameter}_{component}"
            z, y, x = arg.offsets[int(leg)]
            place = f"{rows[(z, y)]} + {shifted(x) if x else 'x'}"
            if arg.turns(x):
                back = f"{ends}({beyond(x)})"
                place = f"({back} ? row0 + x : {place})"
                component = f"({back} ? {arg.mirrored(int(component))} : {component})"
            return f"A->d{arg.dat}[{address(arg, place, component)}]"

        loop = LaneLoop(member.spec, member.number, self.dialect, member.spec.compute, element)
        body = loop.write()
        self.constants = loop.constants
        return body

    def _row(self, member: Member) -> list[str]:
        rows = self.rows(member)
        turned = self._reach(member) and not self.spec.box.periodic[2]
        near = "x + {0}" if turned else "(wrap ? fl_wrap(x + {0}, A->n2) : x + {0})"
        body = self.body(member, rows, near.format, "wrap && ")
        names = "".join(f", const int64_t {r}" for r in rows.values())
        partial = self.partial_parameters(member)
        lines = [
            f"AI void {self.group.symbol}_row(const {self.group.symbol}_args *restrict A, const int64_t begin, "
            f"const int64_t end, const int wrap{names}{partial}) {{",
            *self.constants,
        ]
        heading = "for (int64_t x = begin; x < end; x++)"
        return [*lines, *self.sites(member, heading, body), "}", ""]

    def partial_parameters(self, member: Member) -> str:
        """Return the parameters of the function of some sites that are its partial results."""
        reductions = self.group.reductions((member,))
        return "".join(f", {a.total} *restrict acc_{a.parameter}" for _, a in reductions)

    def sites(self, member: Member, heading: str, body: list[str]) -> list[str]:
        """Return the loop over some sites, none of which touches what another one changes, and its reductions."""
        reductions = self.group.reductions((member,))
        lines: list[str] = []
        clauses = ""
        for _, a in reductions:
            op = {Access.INC: "+", Access.MIN: "min", Access.MAX: "max"}[a.access]
            for c in range(a.dim):
                lines.append(f"    {a.total} t_{a.parameter}_{c} = acc_{a.parameter}[{c}];")
                clauses += f" reduction({op}:t_{a.parameter}_{c})"
        lanes = f" simdlen({self.group.lanes})" if self.group.lanes > 1 else ""
        lines.append(f"#pragma omp simd{lanes}{clauses}")
        lines.append(f"    {heading} {{ /* lanes {self.group.lanes}: {member.spec.name} */")
        for _, a in reductions:
            used = touched(member.spec, a, 0)
            starts = ["" if c in used else f" = {neutral(a)}" for c in range(a.dim)]
            lines += [f"        {a.total} g_{a.parameter}_{c}{start};" for c, start in enumerate(starts)]
        lines += body
        for _, a in reductions:
            for c in range(a.dim):
                t, g = f"t_{a.parameter}_{c}", f"g_{a.parameter}_{c}"
                lines.append(f"        {t} = {combine(a, t, g)};")
        lines.append(f"    }} /* end lanes {self.group.lanes}: {member.spec.name} */")
        lines += [f"    acc_{a.parameter}[{c}] = t_{a.parameter}_{c};" for _, a in reductions for c in range(a.dim)]
        return lines

    def _driver(self, member: Member) -> list[str]:
        symbol, rows, lines = self.group.symbol, self.rows(member), beginning(self.group.symbol)
        reductions = self.group.reductions((member,))
        count, first = ("(A->n - A->from) / A->n2", "A->from / A->n2") if self.group.ranged else ("A->n0 * A->n1", "0")
        lines.append(f"    const int64_t rows = {count}, nx = A->n2;")
        reach = self._reach(member)
        lines.append(f"    const int64_t low = nx < {reach} ? nx : {reach};")
        lines.append(f"    const int64_t high = nx - {reach} > low ? nx - {reach} : low;")
        lines.append(PARALLEL)
        lines.append("    for (int64_t r = 0; r < rows; r++) {")
        row = f"({first} + r)" if self.group.ranged else "r"
        lines.append(f"        const int64_t z = {row} / A->n1, y = {row} % A->n1;")
        for (dz, dy), name in rows.items():
            lines.append(f"        const int64_t {name} = {self.row_base(dz, dy)};")
        lines += self.partials(member)
        tail = "".join(f", {r}" for r in rows.values()) + "".join(f", acc_{a.parameter}" for _, a in reductions)
        for begin, end, wrap in (("0", "low", 1), ("low", "high", 0), ("high", "nx", 1)):
            lines.append(f"        {symbol}_row(A, {begin}, {end}, {wrap}{tail});")
        lines += [*self.keep(member, "r"), "    }", *finish(self.group, (member,), "rows")]
        return [*lines, "}"]

    def partials(self, member: Member) -> list[str]:
        """Declare the partial results of some sites."""
        lines = []
        for _, a in self.group.reductions((member,)):
            start = ", ".join([neutral(a)] * a.dim)
            lines.append(f"        {a.total} acc_{a.parameter}[{a.dim}] = {{{start}}};")
        return lines

    def keep(self, member: Member, place: str) -> list[str]:
        """Keep the partial results of some sites in their place."""
        return [
            f"        for (int c = 0; c < {a.dim}; c++) "
            f"A->part{m.number}_{a.parameter}[{place} * {a.dim} + c] = acc_{a.parameter}[c];"
            for m, a in self.group.reductions((member,))
        ]

    def row_base(self, dz: int, dy: int) -> str:
        """Return the C expression of the storage place before a row, of ``z`` and ``y`` and a distance from them."""
        grid = self.spec.box

        def place(axis: int, name: str, shift: int) -> str:
            text = f"{name} + {shift}" if shift else name
            if shift and grid.periodic[axis]:
                text = f"fl_wrap({text}, A->n{axis})"
            return f"({text} + {grid.ghost[axis]})"

        inner = f"(A->n2 + {2 * grid.ghost[2]})"
        middle = f"(A->n1 + {2 * grid.ghost[1]})"
        return f"({place(0, 'z', dz)} * {middle} + {place(1, 'y', dy)}) * {inner} + {grid.ghost[2]}"
