"""Loops over grids at the speed of memory: whole lines of every row, asked for ahead, stored past the caches.

A kernel such as a lattice Boltzmann step moves tens of rows at once. What costs time then is not the arithmetic:
a plain store first loads the line that it overwrites, and the processor does not see that so many rows follow on.
So neighbouring elements are taken a line of 64 bytes at a time. For each memory is asked for what is needed some
lines further on, the kernel computes from the rows into small arrays, and these leave as whole lines past the caches.
Reading ahead, computing and storing of different lines then overlap.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from fluxloom.codegen.grids.grid import GridDriver, beyond
from fluxloom.codegen.grids.stream_helpers import helpers
from fluxloom.codegen.grids.stream_places import LINE, LineLoop, Places, Source, Target, base, held, width_of
from fluxloom.codegen.language.frame import beginning
from fluxloom.codegen.language.group import Member
from fluxloom.codegen.language.lane import address
from fluxloom.codegen.language.reduce import combine, finish, neutral
from fluxloom.codegen.language.spec import ArgSpec
from fluxloom.core.dtypes import FLOAT16

__all__ = ["StreamDriver"]

_AHEAD = 512
"""Bytes of a row between what is computed and what memory is asked for. On a Zen 5, 256 to 1024 are within a tenth."""


@dataclass
class StreamDriver(GridDriver):
    """Writes the C text of one loop over a grid whose rows are moved line by line.

    Lines begin where the number of the element is a multiple of their length, so that they are lines of memory. What is
    before the first whole line of a row, behind the last one, or reads round the end of the row, is computed by the
    same code from copies (``edge``).
    """

    how = "grid, line by line"

    width: int = field(init=False)
    places: Places = field(init=False)

    def __post_init__(self) -> None:
        self.width = width_of(self.group)
        self.places = Places(self.spec)

    def _functions(self, member: Member) -> list[str]:
        scalars = list(dict.fromkeys(item.arg.scalar for item in (*self.places.sources, *self.places.targets)))
        functions = self._pack(member) + self._inner(member) + self._edge(member) + self._rows(member)
        return [helpers(scalars, self.width), *functions]

    # ------------------------------------------------------------------------------------ pieces
    def _joined(self, item: Source | Target) -> int:
        """Return whether what is beyond the ends of a row is found at the other one.

        Where legs lead back it is copied from there for nothing, to be replaced.
        """
        return int(self.spec.box.periodic[2] or item.arg.turns(item.shift))

    def _past(self, target: Target) -> bool:
        """Whether whole lines of a row are stored past the caches."""
        whole = self.width * target.arg.scalar.size % LINE == 0
        return target.arg.dat in self.group.stream and not target.read and target.shift == 0 and whole

    def _reductions(self, member: Member) -> list[tuple[ArgSpec, int]]:
        """Return the components of the globals that the loop reduces into."""
        return [(a, c) for _, a in self.group.reductions((member,)) for c in range(a.dim)]

    def _parameters(self, member: Member) -> str:
        rows = "".join(f", const int64_t {r}" for r in self.rows(member).values())
        sums = [a for _, a in self.group.reductions((member,))]
        return rows + "".join(f", {a.total} (*restrict acc_{a.parameter})[{self.width}]" for a in sums)

    def _passed(self, member: Member) -> str:
        sums = [a for _, a in self.group.reductions((member,))]
        return "".join(f", {r}" for r in self.rows(member).values()) + "".join(f", acc_{a.parameter}" for a in sums)

    # -------------------------------------------------------------------------------- the kernel
    def _pack(self, member: Member) -> list[str]:
        """Write the kernel for neighbouring elements, from arrays to arrays."""
        loop = LineLoop(member, self.dialect, self.places)
        body = loop.write()
        arrays = [f"const {held(s.arg.scalar)} *restrict i{k}" for k, s in enumerate(self.places.sources)]
        arrays += [f"{held(t.arg.scalar)} *restrict o{k}" for k, t in enumerate(self.places.targets)]
        arrays += [f"{a.total} *restrict g_{a.parameter}_{c}" for a, c in self._reductions(member)]
        name, lanes = member.spec.name, self.group.lanes
        return [
            f"AI void {self.group.symbol}_pack(const {self.group.symbol}_args *restrict A, {', '.join(arrays)}) {{",
            *loop.constants,
            f"#pragma omp simd simdlen({lanes})",
            f"    for (int x = 0; x < {self.width}; x++) {{ /* lanes {lanes}: {name} */",
            *body,
            f"    }} /* end lanes {lanes}: {name} */",
            "}",
            "",
        ]

    def _call(self, member: Member, sources: list[str]) -> str:
        arrays = [*sources, *(f"b{k}" for k in range(len(self.places.targets)))]
        arrays += [f"g_{a.parameter}_{c}" for a, c in self._reductions(member)]
        return f"        {self.group.symbol}_pack(A, {', '.join(arrays)});"

    def _arrays(self, member: Member) -> list[str]:
        """Declare the arrays that the kernel computes into."""
        lines = [f"{held(t.arg.scalar)} b{k}[{self.width}] FL_ALIGN;" for k, t in enumerate(self.places.targets)]
        lines += [f"{a.total} g_{a.parameter}_{c}[{self.width}] FL_ALIGN;" for a, c in self._reductions(member)]
        return [f"        {line}" for line in lines]

    def _sums(self, member: Member, count: str) -> list[str]:
        """Add the contributions of some elements to the partial results, each place of a line to its own."""
        lines = []
        for a, c in self._reductions(member):
            place = f"acc_{a.parameter}[{c}][k]"
            total = combine(a, place, f"g_{a.parameter}_{c}[k]")
            lines.append(f"        for (int k = 0; k < {count}; k++) {place} = {total};")
        return lines

    # --------------------------------------------------------------------------------- the lines
    def _inner(self, member: Member) -> list[str]:
        """Write the whole lines of a row, none of which reads round its end."""
        w, sources, targets = self.width, self.places.sources, self.places.targets
        rows = self.rows(member)
        lines = [
            f"static __attribute__((noinline)) void {self.group.symbol}_inner(const {self.group.symbol}_args *restrict "
            f"A, const int64_t begin, const int64_t end{self._parameters(member)}) {{",
        ]
        for k, s in enumerate(sources):
            lines.append(f"    const {s.arg.scalar.c} *const restrict p{k} = {base(s, rows[s.row])} + ({s.shift});")
        for k, t in enumerate(targets):
            lines.append(f"    {t.arg.scalar.c} *const restrict q{k} = {base(t, rows[t.row])} + ({t.shift});")
        for k in self._shifted():
            lines.append(f"    const int whole{k} = ({rows[targets[k].row]} - row0) % {w} == 0;")
        lines += [f"    for (int64_t x = begin; x < end; x += {w}) {{", *self._ahead("p", "q"), *self._arrays(member)]
        lines += [self._begin(k, f"q{k} + x") for k, t in enumerate(targets) if t.read]
        lines += self._widened([f"p{k} + x" for k in range(len(sources))])
        passed = [f"w{k}" if s.arg.scalar is FLOAT16 else f"p{k} + x" for k, s in enumerate(sources)]
        lines.append(self._call(member, passed))
        lines += [line for k in range(len(targets)) for line in self._end(k)]
        return [*lines, *self._sums(member, str(w)), "    }", "}", ""]

    def _shifted(self) -> list[int]:
        """Return the rows that are stored past the caches, of neighbours: their lines may begin elsewhere."""
        return [k for k, t in enumerate(self.places.targets) if self._past(t) and t.row != (0, 0)]

    def _ahead(self, source: str, target: str) -> list[str]:
        """Ask memory for each line once, whatever the number of shifts at which it is read."""
        asked: dict[tuple[object, ...], str] = {}
        for letter, items in ((source, self.places.sources), (target, self.places.targets)):
            for k, item in enumerate(items):
                if isinstance(item, Target) and self._past(item):
                    continue
                asked.setdefault((item.arg.dat, item.component, item.row), self._ask(letter, k, item))
        return list(asked.values())

    def _ask(self, letter: str, k: int, item: Source | Target) -> str:
        size = item.arg.scalar.size
        places = range(0, max(1, self.width * size), LINE)
        write = ", 1" if isinstance(item, Target) else ""
        asks = [f"__builtin_prefetch({letter}{k} + x + {(_AHEAD + b) // size}{write});" for b in places]
        return "        " + " ".join(asks)

    def _begin(self, k: int, place: str) -> str:
        """Return the statement that gives a row the kernel changes its stored numbers."""
        if self.places.targets[k].arg.scalar is FLOAT16:
            return f"        fl_widen(b{k}, {place}, {self.width});"
        return f"        memcpy(b{k}, {place}, sizeof b{k});"

    def _widened(self, places: list[str]) -> list[str]:
        """Convert the rows of half precision."""
        return [
            f"        float w{k}[{self.width}] FL_ALIGN; fl_widen(w{k}, {places[k]}, {self.width});"
            for k, s in enumerate(self.places.sources) if s.arg.scalar is FLOAT16
        ]  # fmt: skip

    def _end(self, k: int) -> list[str]:
        """Store a line."""
        target = self.places.targets[k]
        size = self.width * target.arg.scalar.size
        lines, array = self._narrowed(k)
        plain = f"memcpy(q{k} + x, {array}, {size});"
        if not self._past(target):
            return [*lines, f"        {plain}"]
        past = self._lines(f"q{k} + x", target, array)
        if target.row == (0, 0):
            return [*lines, f"        {past}"]
        return [*lines, f"        if (whole{k}) {{ {past} }} else {plain}"]

    def _lines(self, place: str, target: Target, array: str) -> str:
        """Return the stores of whole lines past the caches."""
        pieces = range(0, self.width * target.arg.scalar.size, LINE)
        return " ".join(f"fl_line((char *)({place}) + {b}, (const char *){array} + {b});" for b in pieces)

    def _narrowed(self, k: int) -> tuple[list[str], str]:
        """Return what converts a computed row to its storage type, and the array in which it then is."""
        if self.places.targets[k].arg.scalar is not FLOAT16:
            return [], f"b{k}"
        line = f"        _Float16 h{k}[{self.width}] FL_ALIGN; fl_narrow(h{k}, b{k}, {self.width});"
        return [line], f"h{k}"

    # ----------------------------------------------------------------------------------- the ends
    def _edge(self, member: Member) -> list[str]:
        """Write some elements at an end of a row, from copies of what they read."""
        w, rows = self.width, self.rows(member)
        lines = [
            f"static __attribute__((noinline)) void {self.group.symbol}_edge(const {self.group.symbol}_args *restrict "
            f"A, const int64_t x, const int64_t count{self._parameters(member)}) {{",
            *self._arrays(member),
        ]
        items: list[tuple[str, Source | Target]] = [(f"p{k}", s) for k, s in enumerate(self.places.sources)]
        items += [(f"q{k}", t) for k, t in enumerate(self.places.targets) if t.read]
        for k, t in enumerate(self.places.targets):
            lines.append(f"    {t.arg.scalar.c} *const restrict t{k} = {base(t, rows[t.row])} + ({t.shift});")
        for k, s in enumerate(self.places.sources):
            lines.append(f"    const {s.arg.scalar.c} *const restrict s{k} = {base(s, rows[s.row])} + ({s.shift});")
        lines += self._ahead("s", "t")
        for name, item in items:
            c, kind = item.arg.scalar.c, f"{item.arg.scalar.name}_{w}"
            lines.append(
                f"    {c} e{name}[{3 * w}] FL_ALIGN; const {c} *const {name} = fl_edge_{kind}(e{name}, "
                f"{base(item, rows[item.row])}, x + ({item.shift}), count, A->n2, {self._joined(item)});"
            )
            lines += self._led_back(name, item)
        lines += [self._begin(k, f"q{k}") for k, t in enumerate(self.places.targets) if t.read]
        lines += self._widened([f"p{k}" for k in range(len(self.places.sources))])
        passed = [f"w{k}" if s.arg.scalar is FLOAT16 else f"p{k}" for k, s in enumerate(self.places.sources)]
        lines.append(self._call(member, passed))
        for k, t in enumerate(self.places.targets):
            before, array = self._narrowed(k)
            place = f"{base(t, rows[t.row])}, {array}, x + ({t.shift})"
            leave = f"fl_leave_{t.arg.scalar.name}_{w}({place}, count, A->n2, {self._joined(t)});"
            if t.arg.turns(t.shift):
                back = f"if ({beyond(t.shift, 'x + k')}) ({self._home(t)})[x + k] = {array}[k]; "
                leave = f"for (int64_t k = 0; k < count; k++) {{ {back}else t{k}[x + k] = {array}[k]; }}"
            if self._past(t):
                test = f"count == {w}" + (f" && ({rows[t.row]} - row0) % {w} == 0" if t.row != (0, 0) else "")
                leave = f"if ({test}) {{ {self._lines(f't{k} + x', t, array)} }} else {leave}"
            lines += [*before, f"        {leave}"]
        return [*lines, *self._sums(member, "count"), "}", ""]

    @staticmethod
    def _home(item: Source | Target) -> str:
        """Return the C expression of the row of the elements themselves that legs which lead back reach."""
        return f"A->d{item.arg.dat} + {address(item.arg, 'row0', item.arg.mirrored(item.component))}"

    def _led_back(self, name: str, item: Source | Target) -> list[str]:
        """Write what replaces copies from beyond the ends of a row by what legs that lead back reach."""
        if not item.arg.turns(item.shift):
            return []
        test = beyond(item.shift, "x + k")
        found = f"e{name}[{self.width} + k] = ({self._home(item)})[x + k];"
        return [f"    for (int64_t k = 0; k < count; k++) if ({test}) {found}"]

    # ----------------------------------------------------------------------------------- the rows
    def _rows(self, member: Member) -> list[str]:
        """Write the function that is called: rows on threads, each thread those it always has."""
        symbol, w = self.group.symbol, self.width
        count, first = ("(A->n - A->from) / A->n2", "A->from / A->n2") if self.group.ranged else ("A->n0 * A->n1", "0")
        reach = self._reach(member)
        passed = self._passed(member)
        lines = [
            *beginning(symbol),
            f"    const int64_t rows = {count}, nx = A->n2;",
            "#pragma omp parallel num_threads(fl_threads(A->threads)) if (A->threads != 1)",
            "    {",
            "#pragma omp for schedule(static)",
            "    for (int64_t r = 0; r < rows; r++) {",
            f"        const int64_t z = ({first} + r) / A->n1, y = ({first} + r) % A->n1;",
            *(f"        const int64_t {n} = {self.row_base(*r)};" for r, n in self.rows(member).items()),
            *self._partials(member),
            f"        int64_t begin = ({w} - row0 % {w}) % {w};",
            f"        while (begin < {reach}) begin += {w};",
            f"        int64_t end = begin + (nx - {reach} - begin) / {w} * {w};",
            f"        if (nx - {reach} - begin < {w}) begin = end = nx;",
            *self._pieces("0", "begin", passed),
            f"        if (begin < end) {symbol}_inner(A, begin, end{passed});",
            *self._pieces("end", "nx", passed),
            *self._folded(member),
            "    }",
            "    fl_fence();",
            "    }",
        ]
        return [*lines, *finish(self.group, (member,), "rows"), "}", ""]

    def _pieces(self, begin: str, end: str, passed: str) -> list[str]:
        """Cut the elements between two places of a row where lines begin."""
        return [
            f"        for (int64_t x = {begin}; x < {end};) {{",
            f"            int64_t count = {self.width} - (row0 + x) % {self.width};",
            "            if (count > nx - x) count = nx - x;",
            f"            {self.group.symbol}_edge(A, x, count{passed});",
            "            x += count;",
            "        }",
        ]

    def _partials(self, member: Member) -> list[str]:
        """Declare the partial results of a row, one a place of a line."""
        lines = []
        for _, a in self.group.reductions((member,)):
            name = f"acc_{a.parameter}"
            lines.append(f"        {a.total} {name}[{a.dim}][{self.width}] FL_ALIGN;")
            each = f"{name}[c][k] = {neutral(a)}"
            lines.append(f"        for (int c = 0; c < {a.dim}; c++) for (int k = 0; k < {self.width}; k++) {each};")
        return lines

    def _folded(self, member: Member) -> list[str]:
        """Combine the partial results of a row pairwise, and keep that of the row."""
        lines = []
        for m, a in self.group.reductions((member,)):
            name = f"acc_{a.parameter}"
            lines += [
                f"        for (int c = 0; c < {a.dim}; c++) {{",
                f"            for (int h = {self.width // 2}; h > 0; h /= 2)",
                f"                for (int k = 0; k < h; k++) {name}[c][k] = "
                f"{combine(a, f'{name}[c][k]', f'{name}[c][k + h]')};",
                f"            A->part{m.number}_{a.parameter}[r * {a.dim} + c] = {name}[c][0];",
                "        }",
            ]
        return lines
