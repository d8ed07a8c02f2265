"""Loops over the elements of a grid: rows of neighbouring elements, arithmetic instead of tables."""

from __future__ import annotations

from dataclasses import dataclass, field

from fluxloom.codegen.dialect import Dialect
from fluxloom.codegen.group import Group
from fluxloom.codegen.lane import LaneLoop, address
from fluxloom.codegen.member import Member
from fluxloom.codegen.reduce import combine, neutral
from fluxloom.codegen.rows import RowShape
from fluxloom.codegen.slots import slots_of
from fluxloom.codegen.spec import ArgSpec, Entry, GridSpec, Slot
from fluxloom.core.access import Access

__all__ = ["GridDriver"]


@dataclass
class GridDriver:
    """Writes the C text of one loop over a grid.

    The lattice is treated as ``(n0, n1, n2)`` with the last axis contiguous; missing axes have one
    element. A row along the last axis is cut in three: only the ends, whose neighbours may wrap
    round, compute indices with a test. Elements that begin at the slot ``from`` are whole rows.
    """

    group: Group
    dialect: Dialect
    helpers: set[RowShape] = field(default_factory=set)

    def entry(self) -> Entry:
        """Return the symbol and the argument block."""
        sizes = [Slot("int64_t", f"n{k}", "grid", f"n{k}") for k in range(3)]
        return Entry(self.group.symbol, (*slots_of(self.group), *sizes))

    def write(self) -> str:
        """Return the C text."""
        member = self.group.members[0]
        lines = [f"/* {member.spec.name}: grid */", "typedef struct {"]
        lines += [f"    {s.ctype} {s.name};" for s in self.entry().slots]
        lines += [f"}} {self.group.symbol}_args;", ""]
        lines += self._row(member) + self._driver(member)
        return "\n".join([*lines, ""])

    # ---------------------------------------------------------------------------------- geometry
    def _spec(self) -> GridSpec:
        grid = self.group.members[0].spec.grid
        assert grid is not None
        missing = 3 - len(grid.ghost)
        return GridSpec((False,) * missing + grid.periodic, (0,) * missing + grid.ghost)

    @staticmethod
    def _offset(offset: tuple[int, ...]) -> tuple[int, int, int]:
        full = (0,) * (3 - len(offset)) + offset
        return full[0], full[1], full[2]

    def _legs(self, arg: ArgSpec) -> list[tuple[int, int, int]]:
        if arg.kind != "stencil" or arg.stencil is None:
            return [(0, 0, 0)]
        offsets = arg.stencil.offsets if arg.leg < 0 else (arg.stencil.offsets[arg.leg],)
        return [self._offset(o) for o in offsets]

    def _rows(self, member: Member) -> dict[tuple[int, int], str]:
        """Name the base of every row of neighbours that is read: one an outer offset."""
        rows: dict[tuple[int, int], str] = {(0, 0): "row0"}
        for arg in member.spec.args:
            for z, y, _ in self._legs(arg):
                rows.setdefault((z, y), f"row{len(rows)}")
        return rows

    def _reach(self, member: Member) -> int:
        return max((abs(x) for a in member.spec.args for _, _, x in self._legs(a)), default=0)

    # -------------------------------------------------------------------------------------- text
    def _row(self, member: Member) -> list[str]:
        rows = self._rows(member)

        def element(arg: ArgSpec, leg: str, component: str, _member: int) -> str:
            if arg.kind == "global":
                if arg.access is Access.READ:
                    return f"A->d{arg.dat}[{component}]"
                return f"g_{arg.parameter}_{component}"
            z, y, x = self._legs(arg)[int(leg)]
            shift = "x" if x == 0 else f"(wrap ? fl_wrap(x + {x}, A->n2) : x + {x})"
            return f"A->d{arg.dat}[{address(arg, f'{rows[(z, y)]} + {shift}', component)}]"

        loop = LaneLoop(member.spec, member.number, self.dialect, member.spec.compute, element)
        body = loop.write()
        reductions = self.group.reductions((member,))
        names = "".join(f", const int64_t {r}" for r in rows.values())
        partial = "".join(f", {_kind(a)} *restrict acc_{a.parameter}" for _, a in reductions)
        lines = [
            f"AI void {self.group.symbol}_row(const {self.group.symbol}_args *restrict A, const int64_t begin, "
            f"const int64_t end, const int wrap{names}{partial}) {{",
            *loop.constants,
        ]
        clauses = ""
        for _, a in reductions:
            op = {Access.INC: "+", Access.MIN: "min", Access.MAX: "max"}[a.access]
            for c in range(a.dim):
                lines.append(f"    {_kind(a)} t_{a.parameter}_{c} = acc_{a.parameter}[{c}];")
                clauses += f" reduction({op}:t_{a.parameter}_{c})"
        lanes = f" simdlen({self.group.lanes})" if self.group.lanes > 1 else ""
        lines.append(f"#pragma omp simd{lanes}{clauses}")
        lines.append(f"    for (int64_t x = begin; x < end; x++) {{ /* lanes {self.group.lanes}: {member.spec.name} */")
        for _, a in reductions:
            lines += [f"        {_kind(a)} g_{a.parameter}_{c};" for c in range(a.dim)]
        lines += body
        for _, a in reductions:
            for c in range(a.dim):
                t, g = f"t_{a.parameter}_{c}", f"g_{a.parameter}_{c}"
                lines.append(f"        {t} = {combine(a, t, g)};")
        lines.append(f"    }} /* end lanes {self.group.lanes}: {member.spec.name} */")
        lines += [f"    acc_{a.parameter}[{c}] = t_{a.parameter}_{c};" for _, a in reductions for c in range(a.dim)]
        return [*lines, "}", ""]

    def _driver(self, member: Member) -> list[str]:
        symbol, grid, rows = self.group.symbol, self._spec(), self._rows(member)
        reductions = self.group.reductions((member,))
        lines = [f"void {symbol}(const int64_t *S) {{", f"    const {symbol}_args *const A = (const {symbol}_args *)S;"]
        count, first = ("(A->n - A->from) / A->n2", "A->from / A->n2") if self.group.ranged else ("A->n0 * A->n1", "0")
        lines.append(f"    const int64_t rows = {count}, nx = A->n2;")
        reach = self._reach(member) if grid.periodic[2] else 0
        lines.append(f"    const int64_t low = nx < {reach} ? nx : {reach};")
        lines.append(f"    const int64_t high = nx - {reach} > low ? nx - {reach} : low;")
        lines.append(
            "#pragma omp parallel for schedule(static) num_threads(fl_threads(A->threads)) if (A->threads != 1)"
        )
        lines.append("    for (int64_t r = 0; r < rows; r++) {")
        row = f"({first} + r)" if self.group.ranged else "r"
        lines.append(f"        const int64_t z = {row} / A->n1, y = {row} % A->n1;")
        for (dz, dy), name in rows.items():
            lines.append(f"        const int64_t {name} = {self._row_base(grid, dz, dy)};")
        for _, a in reductions:
            start = ", ".join([neutral(a)] * a.dim)
            lines.append(f"        {_kind(a)} acc_{a.parameter}[{a.dim}] = {{{start}}};")
        tail = "".join(f", {r}" for r in rows.values()) + "".join(f", acc_{a.parameter}" for _, a in reductions)
        for begin, end, wrap in (("0", "low", 1), ("low", "high", 0), ("high", "nx", 1)):
            lines.append(f"        {symbol}_row(A, {begin}, {end}, {wrap}{tail});")
        for m, a in reductions:
            lines.append(
                f"        for (int c = 0; c < {a.dim}; c++) "
                f"A->part{m.number}_{a.parameter}[r * {a.dim} + c] = acc_{a.parameter}[c];"
            )
        lines.append("    }")
        for m, a in reductions:
            part = f"A->part{m.number}_{a.parameter}[p * {a.dim} + c]"
            lines.append(f"    for (int c = 0; c < {a.dim}; c++) {{")
            lines.append(f"        {_kind(a)} total = {neutral(a)};")
            lines.append(f"        for (int64_t p = 0; p < rows; p++) total = {combine(a, 'total', part)};")
            lines.append(f"        A->d{a.dat}[c] = ({a.scalar.c})({combine(a, f'A->d{a.dat}[c]', 'total')});")
            lines.append("    }")
        return [*lines, "}"]

    def _row_base(self, grid: GridSpec, dz: int, dy: int) -> str:
        def place(axis: int, name: str, shift: int) -> str:
            text = f"{name} + {shift}" if shift else name
            if shift and grid.periodic[axis]:
                text = f"fl_wrap({text}, A->n{axis})"
            return f"({text} + {grid.ghost[axis]})"

        inner = f"(A->n2 + {2 * grid.ghost[2]})"
        middle = f"(A->n1 + {2 * grid.ghost[1]})"
        return f"({place(0, 'z', dz)} * {middle} + {place(1, 'y', dy)}) * {inner} + {grid.ghost[2]}"


def _kind(arg: ArgSpec) -> str:
    return "double" if arg.scalar.floating else "int64_t"
