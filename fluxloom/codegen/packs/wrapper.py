"""The driver around packs: one template a race strategy, reductions, and the argument block."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import gcd

from fluxloom.codegen.language.dialect import Dialect
from fluxloom.codegen.language.frame import PARALLEL, argument_block, beginning, slots_of
from fluxloom.codegen.language.group import CHUNK, REDUCTION_LANES, Group, Member, PackStyle
from fluxloom.codegen.language.lane import address
from fluxloom.codegen.language.reduce import combine, declare, finish, store
from fluxloom.codegen.language.spec import ArgSpec, Entry
from fluxloom.codegen.packs.pack import Pack
from fluxloom.codegen.packs.row_packs import why_no_row_packs
from fluxloom.codegen.packs.rows import RowShape

__all__ = ["Driver", "rows_in_pack"]


def rows_in_pack(group: Group) -> int:
    """Return how many neighbouring rows a pack of a group with ragged loops has; 1: they are handled one by one."""
    rows = [m.spec for m in group.members if m.spec.ragged]
    if group.strategy != "direct" or group.scatter or any(why_no_row_packs(spec) for spec in rows):
        return 1
    slices = [a.ragged.slice for spec in rows for a in spec.args if a.ragged is not None]
    return gcd(group.lanes, *slices)  # the one slice of ELL counts as 0


@dataclass
class Driver:
    """Writes the C text of one group."""

    group: Group
    dialect: Dialect
    helpers: set[RowShape] = field(default_factory=set)

    def entry(self) -> Entry:
        """Return the symbol and the argument block."""
        return Entry(self.group.symbol, slots_of(self.group))

    def write(self) -> str:
        """Return the C text: the argument block, the pack functions, the driver."""
        group = self.group
        lines = [f"/* {' + '.join(m.spec.name for m in group.members)}: {group.strategy} */"]
        lines += [*argument_block(group.symbol, slots_of(group)), ""]
        lines += getattr(self, f"_{group.strategy}")()
        return "\n".join([*lines, ""])

    # ------------------------------------------------------------------------- pack and range
    def _parameters(self, members: tuple[Member, ...], style: PackStyle) -> tuple[list[str], list[str]]:
        """Return the extra parameters of a pack function, and the names that a caller passes on."""
        declared, names = [], []
        if style.listed:
            declared.append("const int32_t *restrict L")
            names.append("L")
        if style.commit in ("tile", "inside") or style.tile_dats:
            declared += ["const int64_t t0", "const uint32_t tn"]
            names += ["t0", "tn"]
        if style.commit == "pick":
            declared += ["const int64_t target", "const int leg"]
            names += ["target", "leg"]
        for arg in self._distinct_increments():
            if arg.dat in style.tile_dats:
                declared.append(f"{arg.scalar.c} *restrict b{arg.dat}")
                names.append(f"b{arg.dat}")
            if style.commit in ("tile", "inside"):
                declared.append(f"{arg.scalar.c} *restrict w{arg.dat}")
                names.append(f"w{arg.dat}")
        for member, arg in self.group.reductions(members):
            name = f"acc{member.number}_{arg.parameter}"
            declared.append(f"{arg.total} (*restrict {name})[{REDUCTION_LANES}]")
            names.append(name)
        return declared, names

    def _distinct_increments(self) -> list[ArgSpec]:
        out: dict[int, ArgSpec] = {}
        for arg in (a for member in self.group.scatter for a in member.spec.increments):
            out.setdefault(arg.dat, arg)
        return list(out.values())

    def _range(self, tag: str, members: tuple[Member, ...], style: PackStyle) -> tuple[list[str], str]:
        """Write the pack functions and a range function that strings them together."""
        symbol = f"{self.group.symbol}_{tag}"
        declared, names = self._parameters(members, style)
        tail = "".join(", " + p for p in declared)
        passed = "".join(", " + p for p in names)
        lines: list[str] = []
        widths = [style.lanes, 1] if style.lanes > 1 else [1]
        for lanes in widths:
            pack = Pack(members, replace(style, lanes=lanes), self.dialect)
            body = pack.write()
            self.helpers |= pack.helpers
            block = f"const {self.group.symbol}_args *restrict A"
            lines.append(f"AI void {symbol}_{lanes}({block}, const int64_t i{tail}) {{")
            lines += [*body, "}", ""]
        lines.append(
            f"static __attribute__((noinline)) void {symbol}("
            f"const {self.group.symbol}_args *restrict A, int64_t i, const int64_t end{tail}) {{"
        )
        if style.lanes > 1:
            w = style.lanes
            if self.group.ranged and any(m.spec.ragged for m in members):  # a pack is part of one slice
                lines.append(f"    for (; i < end && i % {w}; i++) {symbol}_1(A, i{passed});")
            lines.append(f"    for (; i + {w} <= end; i += {w}) {symbol}_{w}(A, i{passed});")
        lines += [f"    for (; i < end; i++) {symbol}_1(A, i{passed});", "}", ""]
        return lines, passed

    def _style(self, commit: str, *, listed: bool = False, direct: bool = False) -> PackStyle:
        group = self.group
        lanes = group.direct_lanes if direct and group.scatter and group.direct_lanes else group.lanes
        if any(m.spec.ragged for m in group.members):
            lanes = rows_in_pack(group)
        return PackStyle(
            lanes=lanes,
            listed=listed,
            commit=commit,
            tile_dats=group.buffered,
            elide=group.elide if direct else frozenset(),
            stream=group.stream if direct else frozenset(),
            renamed=group.renamed if direct else frozenset(),
        )

    # ------------------------------------------------------------------------------ strategies
    def _chunks(self, commit: str = "serial", *, parallel: bool = True) -> list[str]:
        """Write the loops of the group for chunks of elements, up to what follows their last."""
        members = self.group.members
        text, passed = self._range("run", members, self._style(commit, listed=self.group.listed, direct=True))
        lines = text + beginning(self.group.symbol)
        if self.group.listed:
            lines.append("    const int32_t *const L = A->list;")
        lines.append(f"    const int64_t n = {'A->list[A->n]' if self.group.counted else 'A->n'};")
        if parallel:
            lines.append(PARALLEL)
        first = "A->from" if self.group.ranged else "0"
        lines.append(f"    for (int64_t b = {first}; b < n; b += {CHUNK}) {{")
        place = f"{self.group.since('b', 'A->')} / {CHUNK}"
        lines += self._run("run", members, _chunk("n") + passed, place, "        ")
        if self.group.stream:
            lines.append("        fl_fence();")
        lines.append("    }")
        return lines

    def _run(self, tag: str, members: tuple[Member, ...], passed: str, place: str, pad: str) -> list[str]:
        """Write a call of a range function, whose partial results go to a place."""
        call = f"{pad}{self.group.symbol}_{tag}(A, {passed});"
        return [*declare(self.group, members, pad), call, *store(self.group, members, place, pad)]

    def _finish(self) -> list[str]:
        return [*finish(self.group, self.group.members, self._partials("n")), "}"]

    def _direct(self) -> list[str]:
        return self._chunks() + self._finish()

    def _partials(self, end: str) -> str:
        """Return the C expression of the number of partial results of elements up to ``end``."""
        return f"({self.group.since(end, 'A->')} + {CHUNK - 1}) / {CHUNK}"

    def _serial(self) -> list[str]:
        return self._chunks(parallel=False) + self._finish()

    def _atomic(self) -> list[str]:
        return self._chunks("atomic") + self._finish()

    def _block_colour(self) -> list[str]:
        return self._blocks(permuted=self.group.listed, source="list")

    def _block_permute(self) -> list[str]:
        return self._blocks(permuted=True, source="perm")

    def _blocks(self, *, permuted: bool, source: str) -> list[str]:
        members = self.group.members
        text, passed = self._range("run", members, self._style("serial", listed=permuted, direct=True))
        lines = text + beginning(self.group.symbol)
        if permuted:
            lines.append(f"    const int32_t *const L = A->{source};")
        lines.append("    for (int64_t colour = 0; colour < A->n_colours; colour++) {")
        lines.append(PARALLEL)
        lines.append("        for (int64_t k = A->colour_off[colour]; k < A->colour_off[colour + 1]; k++) {")
        lines.append("            const int64_t block = A->blocks[k];")
        lines += self._run("run", members, f"A->block_off[block], A->block_off[block + 1]{passed}", "block", " " * 12)
        lines += ["        }", "    }"]
        return [*lines, *finish(self.group, members, "A->colour_off[A->n_colours]"), "}"]

    def _element_colour(self) -> list[str]:
        members = self.group.members
        text, passed = self._range("run", members, self._style("serial", listed=True, direct=True))
        lines = text + beginning(self.group.symbol)
        lines += ["    const int32_t *const L = A->perm;", "    int64_t done = 0;"]
        lines.append("    for (int64_t colour = 0; colour < A->n_colours; colour++) {")
        lines.append("        const int64_t begin = A->colour_off[colour], end = A->colour_off[colour + 1];")
        lines.append(PARALLEL)
        lines.append(f"        for (int64_t b = begin; b < end; b += {CHUNK}) {{")
        lines += self._run("run", members, _chunk("end") + passed, f"done + (b - begin) / {CHUNK}", " " * 12)
        lines += ["        }", f"        done += (end - begin + {CHUNK - 1}) / {CHUNK};", "    }"]
        return [*lines, *finish(self.group, members, "done"), "}"]

    def _two_pass(self) -> list[str]:
        passes = [line for m in self.group.members for a in m.spec.increments for line in self._second_pass(a)]
        return [*self._chunks("scratch"), *passes, *self._finish()]

    def _second_pass(self, arg: ArgSpec) -> list[str]:
        inverse, stride = f"A->i{arg.map}", arg.legs * arg.dim
        leg = f"{inverse}_leg[k]" if arg.leg < 0 else "0"
        skip = f"        if ({inverse}_leg[k] != {arg.leg}) continue;" if arg.leg >= 0 else ""
        value = f"A->x{arg.dat}_{arg.parameter}[(size_t){inverse}_elem[k] * {stride} + {leg} * {arg.dim} + c]"
        target = f"A->d{arg.dat}[{address(arg, 't', 'c')}]"
        summed = combine(arg, target, value)
        return [
            PARALLEL,
            f"    for (int64_t t = 0; t < {inverse}_n; t++)",
            f"        for (int64_t k = {inverse}_ptr[t]; k < {inverse}_ptr[t + 1]; k++) {{",
            *([skip] if skip else []),
            f"            for (int c = 0; c < {arg.dim}; c++) {target} = {summed};",
            "        }",
        ]

    def _gather(self) -> list[str]:
        return self._gather_elements() if self.group.tile == 1 else self._gather_tiles()

    def _gather_elements(self) -> list[str]:
        """Drive the loop target by target; every element is computed once for each of its targets."""
        members = self.group.members
        style = PackStyle(lanes=1, listed=False, commit="pick")
        text, _ = self._range("run", members, style)
        lines = text + beginning(self.group.symbol)
        lines.append(PARALLEL)
        lines.append(f"    for (int64_t t = {'A->from' if self.group.ranged else '0'}; t < A->targets; t++)")
        lines.append("        for (int64_t k = A->inv_ptr[t]; k < A->inv_ptr[t + 1]; k++)")
        lines.append(f"            {self.group.symbol}_run_1(A, A->inv_elem[k], t, A->inv_leg[k]);")
        return [*lines, "}"]

    def _gather_tiles(self) -> list[str]:
        """Drive the loops tile by tile of targets; only elements across tiles are computed twice."""
        group = self.group
        lines: list[str] = []
        for member in group.scatter:
            for tag, commit in (("run", "inside"), ("list", "tile")):
                style = self._style(commit, listed=commit == "tile")
                lines += self._range(f"{tag}{member.number}", (member,), style)[0]
        direct = ""
        if group.direct:
            text, direct = self._range("cells", group.direct, self._style("none", direct=True))
            lines += text
        lines += beginning(self.group.symbol)
        lines.append(PARALLEL)
        lines.append("    for (int64_t tile = 0; tile < A->tiles; tile++) {")
        first = "A->from + " if group.ranged else ""
        lines.append(f"        const int64_t t0 = {first}tile * {group.tile};")
        lines.append(f"        const int64_t t1 = t0 + {group.tile} < A->targets ? t0 + {group.tile} : A->targets;")
        lines.append("        const uint32_t tn = (uint32_t)(t1 - t0);")
        lines += self._tile_buffers()
        for member in group.scatter:
            lines += self._tile_scatter(member)
        if group.direct:
            lines += self._tile_direct(direct)
        lines.append("    }")
        return [*lines, *finish(self.group, group.direct, self._partials("A->targets")), "}"]

    def _tile_scatter(self, member: Member) -> list[str]:
        """Walk the elements of a tile in ascending order: inner runs as ranges, the rest from the list."""
        k, symbol = member.number, self.group.symbol
        names = self._parameters((member,), self._style("tile"))[1]
        passed = "".join(", " + p for p in names)
        return [
            f"        for (int64_t s = A->seg_ptr{k}[tile]; s < A->seg_ptr{k}[tile + 1]; s++) {{",
            f"            const int64_t pos = A->seg_pos{k}[s], length = A->seg_len{k}[s];",
            f"            const int32_t *const L = A->elem{k};",
            "            if (length > 0)",
            f"                {symbol}_run{k}(A, L[pos], L[pos] + length{passed});",
            "            else",
            f"                {symbol}_list{k}(A, pos, pos - length, L{passed});",
            "        }",
        ]

    def _tile_direct(self, passed: str) -> list[str]:
        group, place = self.group, f"{self.group.since('b', 'A->')} / {CHUNK}"
        return [
            f"        for (int64_t b = t0; b < t1; b += {CHUNK}) {{",
            *self._run("cells", group.direct, _chunk("t1") + passed, place, " " * 12),
            "        }",
            *(["        fl_fence();"] if group.stream else []),
        ]

    def _tile_buffers(self) -> list[str]:
        lines = []
        for arg in self._distinct_increments():
            kind, dat, dim = arg.scalar.c, arg.dat, arg.dim
            lines.append(f"        FL_ALIGN {kind} w{dat}[{max(dim, 8)}] = {{0}};")
            if dat not in self.group.buffered:
                continue
            lines.append(f"        FL_ALIGN {kind} b{dat}[{self.group.tile * dim}];")
            if dat in self.group.zero:
                lines.append(f"        memset(b{dat}, 0, (size_t)tn * sizeof({kind}) * {dim});")
            else:
                lines.append(f"        memcpy(b{dat}, A->d{dat} + t0 * {dim}, (size_t)tn * sizeof({kind}) * {dim});")
        return lines


def _chunk(end: str) -> str:
    """Return where a chunk begins and ends, as arguments."""
    return f"b, b + {CHUNK} < {end} ? b + {CHUNK} : {end}"
