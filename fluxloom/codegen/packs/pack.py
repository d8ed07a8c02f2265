"""The body of a loop for one pack of elements: load, compute, combine, store.

Kernels with loops that stay loops have the loops outside and the lanes inside.

The compiler makes vectors of a loop over lanes if nothing in it loops, so a loop of the kernel whose trips are the same
for every element goes round the lanes::

    for lane: for q < 25: body(q)    becomes    for q < 25: for lane: body(q)

What the kernel keeps from one statement to the next it keeps for every lane. What is the same for all of them stays one
number: counters, what is computed from them, elements of tables. Each element sees its statements in their order.

Source: for loops over the elements of a batch inside those over shape functions and points, T. Sun, L. Mitchell,
K. Kulkarni, A. Kloeckner, D. A. Ham, P. H. J. Kelly: "A study of vectorization for matrix-free finite element methods",
Int. J. High Perform. Comput. Appl. 34 (2020) 629-644, section 3 (cross-element vectorization).

A pack function handles ``lanes`` elements of one or more fused loops. Direct arguments of the same
dat share one local array, so a value written by one loop is read by the next from registers and
travels to memory once. The kernel itself runs in a lane loop that the C compiler turns into vector
instructions; what surrounds it (rows in, rows out) is written with vector types.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from fluxloom.codegen.language.group import REDUCTION_LANES, Member
from fluxloom.codegen.language.lane import (
    MEMORY,
    LaneLoop,
    address,
    begins_with_updates,
    identity,
    leg_components,
    looped,
    row_place,
    stored_length,
    touched,
)
from fluxloom.codegen.language.reduce import combine
from fluxloom.codegen.language.row_cooperation import exposed_locals
from fluxloom.codegen.language.spec import ArgSpec, LoopSpec
from fluxloom.codegen.packs.commit import Commit, PackBody
from fluxloom.codegen.packs.row_packs import RowPackLoop, mentioned
from fluxloom.codegen.packs.rows import RowShape, chunks, runs
from fluxloom.core.access import Access
from fluxloom.core.dtypes import AoS, Blocked, SoA
from fluxloom.kernel import ir
from fluxloom.kernel.analysis import children, node_count, statement_blocks, walk

__all__ = ["Pack", "RolledLoop", "has_uniform_loop"]

_LONGEST = 800
"""Nodes after which a loop over lanes ends and another begins: compilers do not look at very long ones."""

_ALONE = (ir.LocalElement, ir.Length)
"""Values of which each element has its own."""


@dataclass(frozen=True)
class _Piece:
    """Statements for each lane, or one statement for all lanes with the pieces of its blocks."""

    statements: tuple[ir.Statement, ...]
    common: bool = False
    blocks: tuple[tuple[_Piece, ...], ...] = ()


def has_uniform_loop(spec: LoopSpec) -> bool:
    """Whether a kernel has a loop whose trips are the same for all elements, outside conditions that are not."""
    if not any(isinstance(node, ir.For) for node in walk(spec.kernel.body)):
        return False
    names = _uniform_scalars(spec)

    def found(statements: Iterable[ir.Statement]) -> bool:
        common = [node for node in statements if _is_common(spec, names, node)]
        inside = [block for node in common for block in statement_blocks(node)]
        return any(isinstance(node, ir.For) for node in common) or any(found(block) for block in inside)

    return found(spec.kernel.body)


def _every(pieces: Iterable[_Piece]) -> Iterator[_Piece]:
    for piece in pieces:
        yield piece
        for block in piece.blocks:
            yield from _every(block)


# ------------------------------------------------------------------------------------------- what is uniform
def _is_uniform(spec: LoopSpec, names: Collection[str], node: ir.Expression) -> bool:
    """Whether an expression has one value for all elements; ``names`` are the locals that have."""
    if isinstance(node, ir.Local):
        return node.name in names
    if isinstance(node, ir.Read):
        arg = spec.arg(node.parameter)
        if arg.kind != "global" or arg.access is not Access.READ:
            return False
    return not isinstance(node, _ALONE) and all(_is_uniform(spec, names, child) for child in children(node))


def _is_common(spec: LoopSpec, names: Collection[str], node: ir.Statement) -> bool:
    """Whether a loop or a condition goes the same way for all elements."""
    return isinstance(node, (ir.For, ir.If)) and all(_is_uniform(spec, names, item) for item in children(node))


def _uniform_scalars(spec: LoopSpec) -> frozenset[str]:
    """Return the scalar locals that always have one value for all elements."""
    names = {name for name, _ in spec.kernel.scalars}

    def differing(statements: Iterable[ir.Statement], common: bool) -> Iterator[str]:
        for node in statements:
            inside = common and _is_common(spec, names, node)
            if isinstance(node, ir.For) and not inside:
                yield node.name
            if isinstance(node, ir.Assign) and not (common and _is_uniform(spec, names, node.value)):
                yield node.name
            for block in statement_blocks(node):
                yield from differing(block, inside)

    while lost := names & set(differing(spec.kernel.body, True)):
        names -= lost
    return frozenset(names)


# --------------------------------------------------------------------------------------------------- pieces
def _cut(spec: LoopSpec, names: frozenset[str], body: tuple[ir.Statement, ...] | None = None) -> tuple[_Piece, ...]:
    """Cut a body into what is done for each lane and what is done once for all."""
    pieces: list[_Piece] = []
    pending: list[ir.Statement] = []
    length = 0

    def flush() -> None:
        if pending:
            pieces.append(_Piece(tuple(pending)))
            pending.clear()

    for node in spec.kernel.body if body is None else body:
        if _is_common(spec, names, node):
            flush()
            blocks = tuple(_cut(spec, names, block) for block in statement_blocks(node))
            pieces.append(_Piece((node,), True, blocks))
        elif isinstance(node, ir.Assign) and node.name in names:
            if node.name in mentioned(pending):
                flush()
            pieces.append(_Piece((node,), True))  # ahead of what is pending, which neither reads nor changes it
        else:
            length = _size(node) + (length if pending else 0)
            pending.append(node)
            if length > _LONGEST:
                flush()
    flush()
    return tuple(pieces)


def _size(statement: ir.Statement) -> int:
    return sum(node_count(item) for item in walk([statement]))


class RolledLoop(RowPackLoop):
    """Writes a kernel for a pack of ``lanes`` elements with its loops outside the loops over lanes.

    What is written stands outside any loop over lanes; elements of dats are those of lane ``l``.
    """

    def write(self, indent: int = 2) -> list[str]:
        """Return all statements, the loops over lanes included; the constants are left in `constants`."""
        kernel, pad = self.spec.kernel, "    " * indent
        self.printer.declare(kernel, indent)
        names = _uniform_scalars(self.spec)
        pieces = _cut(self.spec, names)
        self._private = self._private_scalars(pieces, names)
        kept = {name for name, _ in kernel.scalars} | {array.name for array in kernel.arrays}
        kept -= names.union(*self._private.values())
        self.printer.across = frozenset(kept)
        self.declare_constants()
        lines = [pad + line for line in self._declarations(names, "")]
        lines += [pad + line for line in self._declarations(kept, f"[{self.lanes}]", self.align)]
        lines += self._lane_scalars(pad)
        lines += self._lanes([line for line in self._prologue() if line], pad)
        lines += self._pieces(pieces, pad)
        return lines + self._lanes(self._epilogue(), pad)

    def _private_scalars(self, pieces: tuple[_Piece, ...], names: frozenset[str]) -> dict[int, frozenset[str]]:
        """Return the locals whose values no other piece needs, by the identity of the piece."""
        lanes = [piece for piece in _every(pieces) if not piece.common]
        scalars = {name for name, _ in self.spec.kernel.scalars}
        kept = {name for piece in lanes for name in exposed_locals(self.spec, piece.statements, "")}
        return {id(piece): frozenset((mentioned(piece.statements) & scalars) - names - kept) for piece in lanes}

    def _pieces(self, pieces: tuple[_Piece, ...], pad: str) -> list[str]:
        lines: list[str] = []
        for piece in pieces:
            node = piece.statements[0]
            if not piece.common:
                body = [*self._declarations(self._private[id(piece)], ""), *self.printer.block(piece.statements, 0)]
                lines += self._lanes(body, pad)
            elif isinstance(node, ir.For):
                head = self.printer.loop_head(node, 0)
                lines += [*(pad + line for line in head), *self._pieces(piece.blocks[0], pad + "    "), f"{pad}}}"]
            elif isinstance(node, ir.If):
                lines += [f"{pad}if ({self.printer.expression(node.test)}) {{"]
                lines += self._pieces(piece.blocks[0], pad + "    ")
                if piece.blocks[1]:
                    lines += [f"{pad}}} else {{", *self._pieces(piece.blocks[1], pad + "    ")]
                lines.append(f"{pad}}}")
            else:
                lines += [pad + line for line in self.printer.block(piece.statements, 0)]
        return lines


_AHEAD = 2048
"""Bytes by which rows of entries are fetched ahead, of each array: some thirty rows of a mesh."""


class Pack(PackBody):
    """Writes the statements of one pack function."""

    # ---------------------------------------------------------------------------------- the body
    def write(self) -> list[str]:
        """Return the lines of the function's body."""
        lanes = self.style.lanes
        if self.style.listed:
            self.line(f"uint32_t e[{lanes}];")
            self.line(f"for (int l = 0; l < {lanes}; l++) e[l] = (uint32_t)L[i + l];")
        for arg in self.new_own(self.members):
            self.line(f"FL_ALIGN {self.real(arg)} o{arg.dat}[{arg.dim}][{lanes}];")
        for member in self.members:
            self._member(member)
        self._store_own()
        return self.lines

    def _member(self, member: Member) -> None:
        spec = member.spec
        self._ids = set()  # what follows is declared inside this block
        self.line(f"{{ /* {spec.name} */")
        for arg in spec.args:
            if arg.kind == "direct" and arg.access is not Access.WRITE:
                self._load_own(arg, touched(spec, arg, 0))
        for arg in spec.args:
            if arg.kind == "table":
                self._load_table(spec, member, arg)
            elif arg.kind == "global":
                self._global(member, arg)
            elif arg.kind in ("ragged", "entries"):
                self._ragged(member, arg)
        self._lane_loop(member)
        self._commit(member)
        self.line("}")

    def _lane_loop(self, member: Member) -> None:
        lanes = self.style.lanes
        if lanes > 1 and (member.spec.ragged or has_uniform_loop(member.spec)):
            self._abreast(member)
            return
        if lanes > 1:
            self.lines.append(f"#pragma omp simd simdlen({lanes})")
        loop = LaneLoop(
            member.spec, member.number, self.dialect, self.compute, self._element, self.style.commit == "atomic"
        )
        body = loop.write()
        self.lines[-1:] = [*loop.constants, *self.lines[-1:]] if lanes > 1 else [*self.lines[-1:], *loop.constants]
        self.line(f"for (int l = 0; l < {lanes}; l++) {{ /* lanes {lanes}: {member.spec.name} */")
        self.lines += body
        self.line(f"}} /* end lanes {lanes}: {member.spec.name} */")

    def _abreast(self, member: Member) -> None:
        """Write the kernel for a pack of neighbouring rows, or with its loops round those over lanes."""
        kind = RowPackLoop if member.spec.ragged else RolledLoop
        loop = kind(member.spec, member.number, self.dialect, self.compute, self._element)
        loop.lanes, loop.before = self.style.lanes, (f"#pragma omp simd simdlen({self.style.lanes})",)
        loop.note, loop.align = f"{self.style.lanes}: {member.spec.name}", "FL_ALIGN "
        body = loop.write(1)
        self.lines += [*loop.constants, *body]

    def _element(self, arg: ArgSpec, leg: str, component: str, member: int) -> str:
        lane = "l" if self.style.lanes > 1 else "0"
        if arg.kind == "direct":
            return f"o{arg.dat}[{component}][{lane}]"
        if arg.kind == "global" and arg.access is Access.READ:
            return f"p{member}_{arg.parameter}[{component}]"
        return f"p{member}_{arg.parameter}[{leg}][{component}][{lane}]"

    # ------------------------------------------------------------------------------------- loads
    def _base(self, arg: ArgSpec, output: bool = False) -> tuple[str, str]:
        """Return the base pointer of a dat and the number of its element 0 relative to ``i``."""
        if output and arg.dat in self.style.renamed:
            return f"A->d{arg.dat}o", "i"
        if arg.dat in self.style.tile_dats and not output:
            return f"b{arg.dat}", "i - t0"
        return f"A->d{arg.dat}", "i"

    def _load_own(self, arg: ArgSpec, components: set[int]) -> None:
        have = self._available.setdefault(arg.dat, set())
        needed = components - have
        if not needed:
            return
        base, first = self._base(arg)
        if arg.positioned:
            ids = self._need_positions(arg)
            self._load_rows(arg, f"o{arg.dat}", base, needed, have, ids=ids)
        elif self.style.listed:
            self._load_rows(arg, f"o{arg.dat}", base, needed, have, ids="e")
        else:
            self._load_rows(arg, f"o{arg.dat}", base, needed, have, first=first)
        have |= needed

    def _need_positions(self, arg: ArgSpec) -> str:
        name = f"z{arg.dat}"
        if self.fresh(name):
            element = "e[l]" if self.style.listed else "i + l"
            self.line(f"uint32_t {name}[{self.style.lanes}];")
            self.line(f"for (int l = 0; l < {self.style.lanes}; l++) {name}[l] = (uint32_t)A->z{arg.dat}[{element}];")
        return name

    def _load_table(self, spec: LoopSpec, member: Member, arg: ArgSpec) -> None:
        lanes, name = self.style.lanes, f"p{member.number}_{arg.parameter}"
        self.line(f"FL_ALIGN {self.real(arg)} {name}[{arg.legs}][{arg.dim}][{lanes}];")
        if looped(spec, arg):
            self._load_legs(spec, arg, name)
            return
        for leg in range(arg.legs):
            used = touched(spec, arg, leg)
            if not used:
                continue
            ids = self.need_ids(arg, arg.column(leg))
            if arg.access in (Access.READ, Access.RW):
                self._load_rows(arg, f"{name}[{leg}]", f"A->d{arg.dat}", used, set(), ids=ids)

    def _load_legs(self, spec: LoopSpec, arg: ArgSpec, name: str) -> None:
        """Load an argument leg by leg in a loop, or give its increments their start."""
        if arg.access in (Access.READ, Access.RW):
            with self.each_leg(arg) as ids:
                self._load_rows(arg, f"{name}[g]", f"A->d{arg.dat}", leg_components(spec, arg), set(), ids=ids)
        elif arg.access.reduces and not begins_with_updates(spec, arg):
            legs, parts = f"for (int g = 0; g < {arg.legs}; g++)", f"for (int c = 0; c < {arg.dim}; c++)"
            self.line(f"{legs} {parts} for (int l = 0; l < {self.style.lanes}; l++) {name}[g][c][l] = {identity(arg)};")

    def _load_rows(
        self, arg: ArgSpec, out: str, base: str, needed: set[int], have: set[int], *, ids: str = "", first: str = "i"
    ) -> None:
        """Load the needed components of a pack's elements into ``out[component][lane]``, leaving those in ``have``."""
        lanes = self.style.lanes
        rows = not isinstance(arg.layout, Blocked) and not (arg.wide and arg.kind == "table")
        vectors = lanes >= 4 and arg.scalar.floating and arg.scalar.size > 2 and rows
        if not vectors:
            index = f"{ids}[l]" if ids else f"({first} + l)"
            for loop, c in self._singly(needed):
                where = address(arg, f"(size_t){index}" if ids else index, c)
                move = f"{out}[{c}][l] = ({self.real(arg)}){base}[{where}];"
                self.line(f"{loop}for (int l = 0; l < {lanes}; l++) {move}")
            return
        mode = "load" if ids else "loadseq"
        where = ids or first
        if isinstance(arg.layout, SoA):
            for loop, c in self._singly(needed):
                shape = self.helper(RowShape(mode, arg.scalar, self.compute, 1, lanes))
                offset = f" + {c} * A->s{arg.dat}" if c != "0" else ""
                self.line(f"{loop}{shape}({out} + {c}, {base}{offset}, 1, {where});")
            return
        moved: list[tuple[int, int]] = []
        for offset, width in chunks(arg.dim, lanes, arg.scalar):
            inside = set(range(offset, offset + width))
            parts = [(offset, width)] if not inside & have else [(c, 1) for c in sorted(inside)]
            moved += [(c, n) for c, n in parts if needed & set(range(c, c + n))]
        for start, n, count in runs(moved):
            shape = self.helper(RowShape(mode, arg.scalar, self.compute, n, lanes))
            loop, c = self._over(start, n, count)
            self.line(f"{loop}{shape}({out} + {c}, {base} + {c}, {arg.dim}, {where});")

    @staticmethod
    def _over(first: int, width: int, count: int) -> tuple[str, str]:
        """Return the head of a loop over rows of neighbouring components, if there are several, and the component."""
        if count == 1:
            return "", str(first)
        return f"for (int64_t c = {first}; c < {first + width * count}; c += {width}) ", "c"

    def _singly(self, components: set[int]) -> list[tuple[str, str]]:
        """Return the components, many neighbours as a loop: its head, or nothing, and the C text of the component."""
        return [self._over(*part) for part in runs((c, 1) for c in sorted(components))]

    def _global(self, member: Member, arg: ArgSpec) -> None:
        name, kind = f"p{member.number}_{arg.parameter}", self.real(arg)
        if arg.access is not Access.READ:
            self.line(f"FL_ALIGN {kind} {name}[1][{arg.dim}][{self.style.lanes}];")
            return
        # Loaded outside the lane loop: a load inside a branch would keep it from being vectorised.
        values = ", ".join(f"({kind})A->d{arg.dat}[{c}]" for c in range(arg.dim))
        self.line(f"const {kind} {name}[{arg.dim}] = {{{values}}};")

    def _ragged(self, member: Member, arg: ArgSpec) -> None:
        """Declare the row of a ragged map: its length, first position and stride."""
        assert arg.ragged is not None
        name = f"r{arg.map}"
        if not self.fresh(name):
            return
        row = "(int64_t)e[0]" if self.style.listed else "i"
        store = arg.ragged
        self.add(row_place(arg, row, "A->"))
        lanes = self.style.lanes
        if lanes > 1:
            self.line(f"FL_ALIGN int32_t row{arg.map}_length[{lanes}];")
            self.line(f"for (int l = 0; l < {lanes}; l++) row{arg.map}_length[l] = A->{name}_length[i + l];")
            if store.slice == lanes:
                self._ahead(member, arg.map)
            return
        stored = stored_length(arg, row, "A->")
        self.line(f"const int64_t row{arg.map}_length = {stored};")
        if not store.column_major and store.code is None and not self.style.listed:
            self._ahead(member, arg.map)

    def _ahead(self, member: Member, number: int) -> None:
        """Fetch ahead what consecutive entries read, those of a row or of a slice: their targets and their values."""
        lanes = self.style.lanes
        start, length = f"row{number}_start", f"row{number}_length" + (f"[0] * {lanes}" if lanes > 1 else "")
        args = [a for a in member.spec.args if a.map == number and a.kind in MEMORY]
        if any(a.kind == "ragged" for a in args):
            self.line(f"fl_ahead(A->r{number}_index + {start} + {_AHEAD // 4}, {length} * 4);")
        rows = {a.dat: a for a in args if a.kind == "entries" and (a.dim == 1 or a.layout == AoS())}
        for dat, a in rows.items():
            size = a.dim * a.scalar.size
            self.line(f"fl_ahead(A->d{dat} + ({start} + {max(1, _AHEAD // size)}) * {a.dim}, {length} * {size});")

    # ------------------------------------------------------------------------------------ commit
    def _commit(self, member: Member) -> None:
        spec, number = member.spec, member.number
        for arg in spec.args:
            name = f"p{number}_{arg.parameter}"
            if arg.kind == "global" and arg.access is not Access.READ:
                self._reduce(arg, name, number, touched(spec, arg, 0))
            elif arg.kind == "direct" and arg.access is not Access.READ:
                self.changed(arg, touched(spec, arg, 0))
            elif arg.kind == "table" and arg.access in (Access.WRITE, Access.RW):
                for leg, ids, used in self.legs(member, arg):
                    self._store_table(arg, f"{name}[{leg}]", ids, used)
        if spec.increments:
            Commit(self, member, spec.increments).write()

    def _reduce(self, arg: ArgSpec, name: str, number: int, components: set[int]) -> None:
        lanes = self.style.lanes
        # A range may start anywhere: the slots of a pack must stay inside the row.
        slot = f"(i & {REDUCTION_LANES - lanes})" if lanes < REDUCTION_LANES else "0"
        for c in sorted(components):
            target = f"acc{number}_{arg.parameter}[{c}][{slot} + l]"
            value = f"{name}[0][{c}][l]"
            self.line(f"for (int l = 0; l < {lanes}; l++) {target} = {combine(arg, target, value)};")

    def _store_table(self, arg: ArgSpec, value: str, ids: str, components: set[int]) -> None:
        for c in sorted(components):
            where = address(arg, f"(size_t){ids}[l]", c)
            self.line(
                f"for (int l = 0; l < {self.style.lanes}; l++) "
                f"A->d{arg.dat}[{where}] = ({arg.scalar.c}){value}[{c}][l];"
            )

    def _store_own(self) -> None:
        self._ids = set()
        for dat, components in sorted(self._dirty.items()):
            if dat not in self.style.elide:
                self._store_own_dat(self._own[dat], components)

    def _store_own_dat(self, arg: ArgSpec, components: set[int]) -> None:
        lanes, out = self.style.lanes, f"o{arg.dat}"
        base, first = self._base(arg, output=True)
        plain = isinstance(arg.layout, Blocked) or arg.positioned or self.style.listed
        moved = arg.dat in self.style.renamed or arg.dat in self.style.tile_dats
        if moved and len(components) < arg.dim:
            self._load_own(arg, set(range(arg.dim)))
            components = set(range(arg.dim))
        if plain or lanes < 4 or not arg.scalar.floating or arg.scalar.size == 2:
            index = self._need_positions(arg) + "[l]" if arg.positioned else ("e[l]" if self.style.listed else "i + l")
            for loop, c in self._singly(components):
                where = address(arg, f"(size_t)({index})", c)
                self.line(f"{loop}for (int l = 0; l < {lanes}; l++) {base}[{where}] = ({arg.scalar.c}){out}[{c}][l];")
            return
        if isinstance(arg.layout, SoA):
            for loop, c in self._singly(components):
                shape = self.helper(RowShape("storeseq", arg.scalar, self.compute, 1, lanes))
                self.line(f"{loop}{shape}({base} + {c} * A->s{arg.dat}, 1, {first}, {out} + {c});")
            return
        rows: list[tuple[int, int]] = []
        for offset, width in chunks(arg.dim, lanes, arg.scalar):
            inside = set(range(offset, offset + width))
            rows += [(offset, width)] if inside <= components else [(c, 1) for c in sorted(inside & components)]
        for start, width, count in runs(rows):
            stream = arg.dat in self.style.stream and width == arg.dim
            shape = self.helper(RowShape("storeseq", arg.scalar, self.compute, width, lanes, stream))
            loop, c = self._over(start, width, count)
            self.line(f"{loop}{shape}({base} + {c}, {arg.dim}, {first}, {out} + {c});")
