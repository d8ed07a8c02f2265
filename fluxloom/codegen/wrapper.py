"""The driver around packs: one template a race strategy, reductions, and the argument block."""

from __future__ import annotations

from dataclasses import dataclass, field

from fluxloom.codegen.dialect import Dialect
from fluxloom.codegen.group import CHUNK, Group
from fluxloom.codegen.lane import address
from fluxloom.codegen.member import REDUCTION_LANES, Member, PackStyle
from fluxloom.codegen.pack import Pack
from fluxloom.codegen.rows import RowShape
from fluxloom.codegen.spec import ArgSpec, Entry, Slot
from fluxloom.core.access import Access
from fluxloom.core.layout import SoA

__all__ = ["Driver", "combine", "neutral", "slots_of"]


def slots_of(group: Group) -> tuple[Slot, ...]:
    """Return the argument block of a group: pointers, sizes, constants and plan tables, in order."""
    out: dict[str, Slot] = {}

    def add(ctype: str, name: str, origin: str, key: int | str) -> None:
        out.setdefault(name, Slot(ctype, name, origin, key))

    add("int64_t", "n", "size", "n")
    add("int64_t", "threads", "size", "threads")
    for member in group.members:
        for arg in member.spec.args:
            _arg_slots(arg, group, member, add)
        for constant in member.spec.kernel.constants:
            kind = {"real": "double", "int": "int64_t", "bool": "int64_t"}[constant.kind.value]
            name = f"c{member.number}_{constant.name}"
            add(kind, name, "constant", name)
    if group.listed:
        add("int32_t *", "list", "plan", "list")
    for ctype, name in _plan_slots(group):
        add(ctype, name, "plan", name)
    return tuple(out.values())


def _arg_slots(arg: ArgSpec, group: Group, member: Member, add) -> None:  # noqa: ANN001
    pointer = f"{arg.scalar.c} *"
    add(pointer, f"d{arg.dat}", "global" if arg.kind == "global" else "dat", arg.dat)
    if arg.dat in group.renamed:
        add(pointer, f"d{arg.dat}o", "output", arg.dat)
    if isinstance(arg.layout, SoA):
        add("int64_t", f"s{arg.dat}", "stride", arg.dat)
    if arg.positioned:
        add("int32_t *", f"z{arg.dat}", "position", arg.dat)
    if arg.kind == "table":
        add("int32_t *", f"m{arg.map}", "map", arg.map)
    if arg.kind in ("ragged", "entries"):
        for part, ctype in (("start", "int64_t *"), ("length", "int32_t *"), ("index", "int32_t *"), ("rows", "int64_t")):
            add(ctype, f"r{arg.map}_{part}", "ragged_" + part, arg.map)
    if arg.kind == "global" and arg.access is not Access.READ:
        ctype = "double *" if arg.scalar.floating else "int64_t *"
        add(ctype, f"part{member.number}_{arg.parameter}", "partial", f"{member.number}_{arg.parameter}")
    if group.strategy == "two_pass" and arg.kind == "table" and arg.access.reduces:
        add(pointer, f"x{arg.dat}_{arg.parameter}", "scratch", arg.parameter)
        add("int64_t *", f"i{arg.map}_ptr", "plan", f"i{arg.map}_ptr")
        add("int32_t *", f"i{arg.map}_elem", "plan", f"i{arg.map}_elem")
        add("uint8_t *", f"i{arg.map}_leg", "plan", f"i{arg.map}_leg")
        add("int64_t", f"i{arg.map}_n", "plan", f"i{arg.map}_n")


def _plan_slots(group: Group) -> list[tuple[str, str]]:
    match group.strategy:
        case "block_colour" | "block_permute":
            names = [("int64_t", "n_colours"), ("int64_t *", "colour_off"), ("int32_t *", "blocks"), ("int64_t *", "block_off")]
            return names + ([("int32_t *", "perm")] if group.strategy == "block_permute" else [])
        case "element_colour":
            return [("int64_t", "n_colours"), ("int64_t *", "colour_off"), ("int32_t *", "perm")]
        case "gather" if group.tile == 1:
            return [("int64_t", "targets"), ("int64_t *", "inv_ptr"), ("int32_t *", "inv_elem"), ("uint8_t *", "inv_leg")]
        case "gather":
            names = [("int64_t", "targets"), ("int64_t", "tiles")]
            for m in group.scatter:
                k = m.number
                names += [("int64_t *", f"seg_ptr{k}"), ("int64_t *", f"seg_pos{k}"), ("int32_t *", f"seg_len{k}")]
                names.append(("int32_t *", f"elem{k}"))
            return names
    return []


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
        lines.append("typedef struct {")
        lines += [f"    {s.ctype} {s.name};" for s in slots_of(group)]
        lines += [f"}} {group.symbol}_args;", ""]
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
            kind = "double" if arg.scalar.floating else "int64_t"
            name = f"acc{member.number}_{arg.parameter}"
            declared.append(f"{kind} (*restrict {name})[{REDUCTION_LANES}]")
            names.append(name)
        return declared, names

    def _distinct_increments(self) -> list[ArgSpec]:
        out: dict[int, ArgSpec] = {}
        for member in self.group.scatter:
            for arg in member.spec.args:
                if arg.kind == "table" and arg.access.reduces:
                    out.setdefault(arg.dat, arg)
        return list(out.values())

    def _range(self, tag: str, members: tuple[Member, ...], style: PackStyle) -> tuple[list[str], list[str]]:
        """Write the pack functions and a range function that strings them together."""
        symbol = f"{self.group.symbol}_{tag}"
        declared, names = self._parameters(members, style)
        tail = "".join(", " + p for p in declared)
        passed = "".join(", " + p for p in names)
        lines: list[str] = []
        compute = members[0].spec.compute
        widths = [style.lanes, 1] if style.lanes > 1 else [1]
        for lanes in widths:
            pack = Pack(members, PackStyle(**{**style.__dict__, "lanes": lanes}), self.dialect, compute)
            body = pack.write()
            self.helpers |= pack.helpers
            lines.append(f"AI void {symbol}_{lanes}(const {self.group.symbol}_args *restrict A, const int64_t i{tail}) {{")
            lines += [*body, "}", ""]
        lines.append(f"AI void {symbol}(const {self.group.symbol}_args *restrict A, int64_t i, const int64_t end{tail}) {{")
        if style.lanes > 1:
            lines.append(f"    for (; i + {style.lanes} <= end; i += {style.lanes}) {symbol}_{style.lanes}(A, i{passed});")
        lines += [f"    for (; i < end; i++) {symbol}_1(A, i{passed});", "}", ""]
        return lines, names

    def _style(self, commit: str, *, listed: bool = False, direct: bool = False) -> PackStyle:
        group = self.group
        lanes = group.direct_lanes if direct and group.scatter and group.direct_lanes else group.lanes
        if any(m.spec.ragged for m in group.members):
            lanes = 1
        return PackStyle(
            lanes=lanes,
            listed=listed,
            commit=commit,
            tile_dats=group.buffered,
            elide=group.elide if direct else frozenset(),
            stream=group.stream if direct else frozenset(),
            renamed=group.renamed if direct else frozenset(),
        )

    # ------------------------------------------------------------------------------ reductions
    def _acc_declare(self, members: tuple[Member, ...], pad: str) -> list[str]:
        lines = []
        for member, arg in self.group.reductions(members):
            kind = "double" if arg.scalar.floating else "int64_t"
            name = f"acc{member.number}_{arg.parameter}"
            start = neutral(arg)
            lines.append(f"{pad}FL_ALIGN {kind} {name}[{arg.dim}][{REDUCTION_LANES}];")
            lines.append(
                f"{pad}for (int c = 0; c < {arg.dim}; c++) "
                f"for (int l = 0; l < {REDUCTION_LANES}; l++) {name}[c][l] = {start};"
            )
        return lines

    def _acc_store(self, members: tuple[Member, ...], index: str, pad: str) -> list[str]:
        """Fold the lanes of a chunk pairwise and keep the partial result of the chunk."""
        lines = []
        for member, arg in self.group.reductions(members):
            name = f"acc{member.number}_{arg.parameter}"
            folded = combine(arg, f"{name}[c][l]", f"{name}[c][l + h]")
            lines.append(f"{pad}for (int c = 0; c < {arg.dim}; c++) {{")
            lines.append(
                f"{pad}    for (int h = {REDUCTION_LANES // 2}; h > 0; h /= 2) "
                f"for (int l = 0; l < h; l++) {name}[c][l] = {folded};"
            )
            lines.append(f"{pad}    A->part{member.number}_{arg.parameter}[({index}) * {arg.dim} + c] = {name}[c][0];")
            lines.append(f"{pad}}}")
        return lines

    def _acc_finish(self, members: tuple[Member, ...], count: str) -> list[str]:
        """Combine the partial results in order: the same sum for any number of threads."""
        lines = []
        for member, arg in self.group.reductions(members):
            kind = "double" if arg.scalar.floating else "int64_t"
            part = f"A->part{member.number}_{arg.parameter}[p * {arg.dim} + c]"
            lines.append(f"    for (int c = 0; c < {arg.dim}; c++) {{")
            lines.append(f"        {kind} total = {neutral(arg)};")
            lines.append(f"        for (int64_t p = 0; p < {count}; p++) total = {combine(arg, 'total', part)};")
            lines.append(f"        A->d{arg.dat}[c] = ({arg.scalar.c})({combine(arg, f'A->d{arg.dat}[c]', 'total')});")
            lines.append("    }")
        return lines

    # ------------------------------------------------------------------------------ strategies
    def _open(self, extra: str = "") -> list[str]:
        symbol = self.group.symbol
        return [f"void {symbol}(const int64_t *S) {{", f"    const {symbol}_args *const A = (const {symbol}_args *)S;"]

    def _parallel(self) -> str:
        return "#pragma omp parallel for schedule(static) num_threads(fl_threads(A->threads)) if (A->threads != 1)"

    def _chunks(self, tag: str, members: tuple[Member, ...], names: list[str], *, parallel: bool) -> list[str]:
        lines = self._open()
        if self.group.listed:
            lines.append("    const int32_t *const L = A->list;")
        lines.append("    const int64_t n = A->n;")
        if parallel:
            lines.append(self._parallel())
        lines.append(f"    for (int64_t b = 0; b < n; b += {CHUNK}) {{")
        lines += self._acc_declare(members, "        ")
        passed = "".join(", " + p for p in names)
        lines.append(f"        {self.group.symbol}_{tag}(A, b, b + {CHUNK} < n ? b + {CHUNK} : n{passed});")
        lines += self._acc_store(members, f"b / {CHUNK}", "        ")
        if self.group.stream:
            lines.append("        fl_fence();")
        lines.append("    }")
        return lines

    def _direct(self) -> list[str]:
        group = self.group
        members = group.members
        text, names = self._range("run", members, self._style("serial", listed=group.listed, direct=True))
        lines = text + self._chunks("run", members, names, parallel=True)
        return [*lines, *self._acc_finish(members, f"(n + {CHUNK - 1}) / {CHUNK}"), "}"]

    def _serial(self) -> list[str]:
        group = self.group
        text, names = self._range("run", group.members, self._style("serial", listed=group.listed, direct=True))
        lines = text + self._chunks("run", group.members, names, parallel=False)
        return [*lines, *self._acc_finish(group.members, f"(n + {CHUNK - 1}) / {CHUNK}"), "}"]

    def _atomic(self) -> list[str]:
        group = self.group
        text, names = self._range("run", group.members, self._style("atomic", listed=group.listed, direct=True))
        lines = text + self._chunks("run", group.members, names, parallel=True)
        return [*lines, *self._acc_finish(group.members, f"(n + {CHUNK - 1}) / {CHUNK}"), "}"]

    def _block_colour(self) -> list[str]:
        return self._blocks(permuted=self.group.listed, source="list")

    def _block_permute(self) -> list[str]:
        return self._blocks(permuted=True, source="perm")

    def _blocks(self, *, permuted: bool, source: str) -> list[str]:
        members = self.group.members
        text, names = self._range("run", members, self._style("serial", listed=permuted, direct=True))
        lines = text + self._open()
        if permuted:
            lines.append(f"    const int32_t *const L = A->{source};")
        lines.append("    for (int64_t colour = 0; colour < A->n_colours; colour++) {")
        lines.append(self._parallel())
        lines.append("        for (int64_t k = A->colour_off[colour]; k < A->colour_off[colour + 1]; k++) {")
        lines.append("            const int64_t block = A->blocks[k];")
        lines += self._acc_declare(members, "            ")
        passed = "".join(", " + p for p in names)
        lines.append(f"            {self.group.symbol}_run(A, A->block_off[block], A->block_off[block + 1]{passed});")
        lines += self._acc_store(members, "block", "            ")
        lines += ["        }", "    }"]
        return [*lines, *self._acc_finish(members, "A->colour_off[A->n_colours]"), "}"]

    def _element_colour(self) -> list[str]:
        members = self.group.members
        text, names = self._range("run", members, self._style("serial", listed=True, direct=True))
        lines = text + self._open()
        lines += ["    const int32_t *const L = A->perm;", "    int64_t done = 0;"]
        lines.append("    for (int64_t colour = 0; colour < A->n_colours; colour++) {")
        lines.append("        const int64_t begin = A->colour_off[colour], end = A->colour_off[colour + 1];")
        lines.append(self._parallel())
        lines.append(f"        for (int64_t b = begin; b < end; b += {CHUNK}) {{")
        lines += self._acc_declare(members, "            ")
        passed = "".join(", " + p for p in names)
        lines.append(f"            {self.group.symbol}_run(A, b, b + {CHUNK} < end ? b + {CHUNK} : end{passed});")
        lines += self._acc_store(members, f"done + (b - begin) / {CHUNK}", "            ")
        lines += ["        }", f"        done += (end - begin + {CHUNK - 1}) / {CHUNK};", "    }"]
        return [*lines, *self._acc_finish(members, "done"), "}"]

    def _two_pass(self) -> list[str]:
        members = self.group.members
        text, names = self._range("run", members, self._style("scratch", listed=self.group.listed, direct=True))
        lines = text + self._chunks("run", members, names, parallel=True)
        for member in members:
            for arg in member.spec.args:
                if arg.kind == "table" and arg.access.reduces:
                    lines += self._second_pass(arg)
        return [*lines, *self._acc_finish(members, f"(n + {CHUNK - 1}) / {CHUNK}"), "}"]

    def _second_pass(self, arg: ArgSpec) -> list[str]:
        inverse, stride = f"A->i{arg.map}", arg.legs * arg.dim
        leg = f"{inverse}_leg[k]" if arg.leg < 0 else "0"
        skip = f"        if ({inverse}_leg[k] != {arg.leg}) continue;" if arg.leg >= 0 else ""
        value = f"A->x{arg.dat}_{arg.parameter}[(size_t){inverse}_elem[k] * {stride} + {leg} * {arg.dim} + c]"
        target = f"A->d{arg.dat}[{address(arg, 't', 'c')}]"
        summed = combine(arg, target, value)
        return [
            self._parallel(),
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
        lines = text + self._open()
        lines.append(self._parallel())
        lines.append("    for (int64_t t = 0; t < A->targets; t++)")
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
        direct_names: list[str] = []
        if group.direct:
            text, direct_names = self._range("cells", group.direct, self._style("none", direct=True))
            lines += text
        lines += self._open()
        lines.append(self._parallel())
        lines.append("    for (int64_t tile = 0; tile < A->tiles; tile++) {")
        lines.append(f"        const int64_t t0 = tile * {group.tile};")
        lines.append(f"        const int64_t t1 = t0 + {group.tile} < A->targets ? t0 + {group.tile} : A->targets;")
        lines.append("        const uint32_t tn = (uint32_t)(t1 - t0);")
        lines += self._tile_buffers()
        for member in group.scatter:
            lines += self._tile_scatter(member)
        if group.direct:
            lines += self._tile_direct(direct_names)
        lines.append("    }")
        return [*lines, *self._acc_finish(group.direct, f"(A->targets + {CHUNK - 1}) / {CHUNK}"), "}"]

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

    def _tile_direct(self, names: list[str]) -> list[str]:
        group, passed = self.group, "".join(", " + p for p in names)
        lines = [f"        for (int64_t b = t0; b < t1; b += {CHUNK}) {{"]
        lines += self._acc_declare(group.direct, "            ")
        lines.append(f"            {group.symbol}_cells(A, b, b + {CHUNK} < t1 ? b + {CHUNK} : t1{passed});")
        lines += self._acc_store(group.direct, f"b / {CHUNK}", "            ")
        lines.append("        }")
        if group.stream:
            lines.append("        fl_fence();")
        return lines

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


def neutral(arg: ArgSpec) -> str:
    if arg.access is Access.INC:
        return "0"
    if arg.scalar.floating:
        return "INFINITY" if arg.access is Access.MIN else "-INFINITY"
    return "INT64_MAX" if arg.access is Access.MIN else "INT64_MIN"


def combine(arg: ArgSpec, left: str, right: str) -> str:
    kind = "double" if arg.scalar.floating else "int64_t"
    match arg.access:
        case Access.MIN:
            return f"fl_min_{kind}({left}, {right})"
        case Access.MAX:
            return f"fl_max_{kind}({left}, {right})"
    return f"{left} + {right}"
