"""Packs of neighbouring rows of a ragged loop, where entries are stored column by column.

Entry ``j`` of neighbouring rows then lies side by side, so that one vector load brings it for all of them::

    for j < shortest:                for lane: body(j)
    for shortest <= j < longest:     for lane: if (j < length[lane]) body(j)

A loop over the entries of a row becomes one loop over places around a loop over lanes; what the kernel keeps from
one statement to the next it keeps for every lane. Each row sees its entries in their order, as if it were alone.
CPUs have a pack of rows, work items a pair (`fluxloom.codegen.items.pairs`).

Source: the kernel of two rows a work item, in the portable algebra-based CFD code of a PhD thesis (TermoFluids,
section 3.4.1); its slices are those of A. Monakov, A. Lokhmotov, A. Avetisyan, "Automatically tuning sparse
matrix-vector multiplication for GPU architectures", HiPEAC 2010.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from fluxloom.codegen.language.lane import MEMORY, LaneLoop, entry_place
from fluxloom.codegen.language.row_cooperation import exposed_locals
from fluxloom.codegen.language.spec import ArgSpec, LoopSpec
from fluxloom.core.access import Access
from fluxloom.kernel import ir
from fluxloom.kernel.analysis import expressions, walk

__all__ = ["Part", "RowPackLoop", "mentioned", "why_no_row_packs"]


def why_no_row_packs(spec: LoopSpec) -> str:
    """Return why neighbouring rows of a loop cannot be handled as a pack; empty when they can."""
    rows = [a for a in spec.args if a.kind in MEMORY]
    if not rows:
        return "no argument goes through a ragged map"
    if spec.listed:
        return "it runs over a subset, whose rows are no neighbours"
    if not all(a.ragged is not None and a.ragged.column_major for a in rows):
        return "its entries are not stored column by column: take the layout ELL() or SlicedELL(...)"
    for arg in rows:
        if arg.kind == "ragged" and arg.access is not Access.READ:
            return f"neighbouring rows may change the same target through {arg.parameter!r}"
        others = [a for a in spec.args if a.dat == arg.dat and a is not arg]
        if any(a.access is not Access.READ for a in (arg, *others)) and others:
            return f"{arg.parameter!r} and {others[0].parameter!r} are the same dat, which changes"
    if not any(_over_entries(s) for s in spec.kernel.body):
        return "the kernel has no loop over the entries of a row outside conditions and other loops"
    return ""


def _over_entries(statement: ir.Statement) -> bool:
    """Whether a statement is a loop whose number of trips differs from row to row."""
    if not isinstance(statement, ir.For) or statement.step <= 0:
        return False
    return isinstance(statement.start, ir.Constant) and not isinstance(statement.stop, ir.Constant)


def mentioned(statements: Iterable[ir.Statement]) -> set[str]:
    """Return the names of the locals that some statements read or assign."""
    out: set[str] = set()
    for node in walk(statements):
        if isinstance(node, (ir.Assign, ir.StoreLocal, ir.For)):
            out.add(node.name)
        out |= {n.name for n in expressions(node) if isinstance(n, (ir.Local, ir.LocalElement))}
    return out


@dataclass(frozen=True)
class Part:
    """Statements between loops over entries, or one such loop; ``own`` are the locals that no other part needs."""

    statements: tuple[ir.Statement, ...]
    loop: ir.For | None = None
    own: frozenset[str] = frozenset()


class RowPackLoop(LaneLoop):
    """Writes a kernel for neighbouring rows: ``lanes`` of them, lane ``l`` being row ``l``.

    What surrounds it declares ``row<map>_start`` and ``row<map>_stride`` of the first row, and the array
    ``row<map>_length``; elements of dats are those of lane ``l``.
    """

    lane = "[l]"
    lanes: int
    before: Sequence[str] = ()
    """Lines in front of each loop over lanes."""
    align = ""
    """Qualifier of arrays of lanes."""
    note = ""
    """Comment that marks loops over lanes for the report of what was vectorised."""

    def write(self, indent: int = 2) -> list[str]:
        """Return all statements, the loops over lanes included; the constants are left in `constants`."""
        kernel, pad = self.spec.kernel, "    " * indent
        self.printer.declare(kernel, indent)
        parts = self._parts()
        kept = {n for n, _ in kernel.scalars} | {a.name for a in kernel.arrays}
        kept -= {name for part in parts for name in part.own}
        self.printer.across = frozenset(kept)
        self.declare_constants()
        lines = [pad + line for line in self._declarations(kept, f"[{self.lanes}]", self.align)]
        lines += self._lane_scalars(pad)
        for position, part in enumerate(parts):
            first, last = position == 0, position == len(parts) - 1
            head = [line for line in self._prologue() if line] if first else []
            tail = self._epilogue() if last else []
            if part.loop is None:
                body = [*self._own(part), *head, *self.printer.block(part.statements, 0), *tail]
                lines += self._lanes(body, pad)
                continue
            lines += self._lanes(head, pad) + self._rows(part.loop, part, pad, position) + self._lanes(tail, pad)
        return lines

    def _lane_scalars(self, pad: str) -> list[str]:
        """Return the declarations of the values of arguments that are kept for all lanes."""
        lines = []
        for parameter, places in self._scalars.items():
            kind = self.kind(self.spec.arg(parameter))
            lines += [f"{pad}{self.align}{kind} v_{parameter}_{g}_{c}[{self.lanes}];" for g, c in sorted(places)]
        return lines

    def _parts(self) -> list[Part]:
        """Cut the body at its loops over entries, and find what each part keeps to itself."""
        cut: list[Part] = []
        for statement in self.spec.kernel.body:
            if _over_entries(statement):
                assert isinstance(statement, ir.For)
                cut.append(Part((statement,), statement))
            elif cut and cut[-1].loop is None:
                cut[-1] = Part((*cut[-1].statements, statement))
            else:
                cut.append(Part((statement,)))
        out = []
        for part in cut:
            inside = part.statements if part.loop is None else part.loop.body
            own = mentioned(part.statements)
            for other in cut:
                own -= mentioned(other.statements) if other is not part else set()
            if part.loop is not None:  # it is needed in the next trip, or to know when to end
                own -= exposed_locals(self.spec, inside, part.loop.name)
                own -= {n.name for n in expressions(part.loop.stop) if isinstance(n, (ir.Local, ir.LocalElement))}
            out.append(Part(part.statements, part.loop, frozenset(own)))
        return out

    def _declarations(self, names: Iterable[str], dims: str, align: str = "") -> list[str]:
        kernel, chosen = self.spec.kernel, set(names)
        scalars = [
            f"{align}{self.printer.ctype(kind)} {name}_{dims};" for name, kind in kernel.scalars if name in chosen
        ]
        for array in kernel.arrays:
            if array.name in chosen:
                shape = "".join(f"[{n}]" for n in array.shape)
                scalars.append(f"{align}{self.printer.ctype(array.kind)} {array.name}_{shape}{dims};")
        return scalars

    def _own(self, part: Part) -> list[str]:
        return self._declarations(part.own, "")

    def _lanes(self, body: list[str], pad: str, condition: str = "") -> list[str]:
        """Return a loop over the lanes around some lines."""
        if not body:
            return []
        begin, end = (f" /* lanes {self.note} */", f" /* end lanes {self.note} */") if self.note else ("", "")
        opening = f"for (int l = 0; l < {self.lanes}; l++) {f'if ({condition}) ' if condition else ''}{{{begin}"
        return [*(pad + b for b in self.before), pad + opening, *(f"{pad}    {line}" for line in body), f"{pad}}}{end}"]

    def _rows(self, loop: ir.For, part: Part, pad: str, number: int) -> list[str]:
        """Return a loop over entries: trips that all rows have, then those of the longer ones."""
        place, ends = f"for_{loop.name}_t{number}", f"for_{loop.name}_e{number}"
        start, inner = self.printer.expression(loop.start), pad + "    "
        counter = f"{loop.name}_{self.printer.lane(loop.name)} = {place};"
        body = [*self._own(part), counter, *self.printer.block(loop.body, 0)]
        limits = [f"{ends}[l] = (int)({self.printer.expression(loop.stop)});"]
        low, high = f"{place}_least", f"{place}_most"
        return [
            f"{pad}{self.align}int {ends}[{self.lanes}];",
            *self._lanes(limits, pad),
            f"{pad}int {place} = {start}, {low} = {ends}[0], {high} = {ends}[0];",
            f"{pad}for (int l = 1; l < {self.lanes}; l++) {{",
            f"{inner}{low} = {ends}[l] < {low} ? {ends}[l] : {low};",
            f"{inner}{high} = {ends}[l] > {high} ? {ends}[l] : {high};",
            f"{pad}}}",
            f"{pad}for (; {place} < {low}; {place} += {loop.step}) {{",
            *self._lanes(body, inner),
            f"{pad}}}",
            f"{pad}for (; {place} < {high}; {place} += {loop.step}) {{",
            *self._lanes(body, inner, f"{place} < {ends}[l]"),
            f"{pad}}}",
        ]

    def _declare_scalar(self, arg: ArgSpec, leg: int, c: int) -> str:
        """Return the statement that gives a value its start; it has been declared for all lanes."""
        _, _, value = super()._declare_scalar(arg, leg, c).partition(" = ")
        return f"v_{arg.parameter}_{leg}_{c}[l] = {value}" if value else ""

    def _entry(self, arg: ArgSpec, leg: ir.Expression) -> str:
        return entry_place(arg, self.printer.expression(leg), "l")
