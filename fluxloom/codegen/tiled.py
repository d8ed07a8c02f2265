"""A chain of loops tile by tile: one native function that copies in, runs the loops and copies out.

A tile has numbers of its own for the elements that it meets. Its values lie in the memory of the thread that
runs it, its rows of maps in tables of the plan; the pack functions are those of ordinary loops, called with argument
blocks that point there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from importlib import resources

from fluxloom.codegen.language.dialect import C
from fluxloom.codegen.language.frame import argument_block, slots_of
from fluxloom.codegen.language.group import Group
from fluxloom.codegen.language.reduce import declare, finish, store
from fluxloom.codegen.language.spec import ArgSpec, Entry
from fluxloom.codegen.packs.wrapper import Driver
from fluxloom.codegen.unit import row_helpers, tables_of, whole

__all__ = ["TileDat", "TilePass", "TiledUnit", "generate_tiled"]


@dataclass(frozen=True)
class TileDat:
    """A dat of the chain as far as copying depends on it.

    Attributes
    ----------
    set
        Number of its set.
    size, dim
        Bytes of a component, number of components.
    soa
        Whether the components of an element lie apart.
    loaded, stored
        Whether values are copied in and out.
    zero
        Whether it starts as zero instead.
    """

    set: int
    size: int
    dim: int
    soa: bool
    loaded: bool
    stored: bool
    zero: bool

    @property
    def parts(self) -> int:
        """Pieces of memory in which its values lie."""
        return self.dim if self.soa else 1

    @property
    def row(self) -> int:
        """Bytes of an element in one of them."""
        return self.size if self.soa else self.size * self.dim


@dataclass(frozen=True)
class TilePass:
    """Loops that run together over the elements of a tile.

    Attributes
    ----------
    group
        The loops, as a group of strategy ``"serial"``.
    dats, maps
        Number in the group and number in the chain.
    live
        Reductions (loop and parameter) that count; others are left out.
    """

    group: Group
    dats: tuple[tuple[int, int], ...]
    maps: tuple[tuple[int, int], ...]
    live: frozenset[tuple[int, str]]


@dataclass(frozen=True)
class TiledUnit:
    """Generated source.

    Attributes
    ----------
    text, symbol
        The source and its one function.
    words
        Names of the words of the function's argument block, in order.
    entries
        Argument block of each pass.
    """

    text: str
    symbol: str
    words: tuple[str, ...]
    entries: tuple[Entry, ...]


@dataclass
class _PassDriver(Driver):
    """Writes the functions of one pass; the range function takes an argument block of the tile."""

    names: list[str] = field(default_factory=list)

    def text(self, narrow: bool) -> list[str]:
        """Return the argument block and the functions; tables are of 16 bits when ``narrow``."""
        group = self.group
        slots = [replace(s, ctype="uint16_t *") if narrow and s.origin == "map" else s for s in slots_of(group)]
        lines = [f"/* {' + '.join(m.spec.name for m in group.members)} */", *argument_block(group.symbol, slots)]
        style = self._style("serial", direct=True)
        text, self.names = self._range("run", group.members, style)[0], self._parameters(group.members, style)[1]
        return [*lines, "", *text]


def generate_tiled(
    symbol: str, passes: Sequence[TilePass], dats: Sequence[TileDat], sets: int, maps: int, *, narrow: bool
) -> TiledUnit:
    """Generate the source of a tiled chain.

    Parameters
    ----------
    symbol
        Name of the function.
    passes
        In order; equal groups share their functions.
    sets, maps
        How many there are.
    narrow
        Whether every local number fits into 16 bits.
    """
    distinct: dict[Group, _PassDriver] = {}
    for item in passes:
        plain = replace(item.group, symbol="")
        if plain not in distinct:
            distinct[plain] = _PassDriver(replace(item.group, symbol=f"{symbol}_{len(distinct)}"), C)
    bodies = [line for driver in distinct.values() for line in driver.text(narrow)]
    helpers = {shape for driver in distinct.values() for shape in driver.helpers}
    drivers = [distinct[replace(p.group, symbol="")] for p in passes]
    words = _words(passes, dats, maps)
    main = _Main(symbol, tuple(passes), tuple(drivers), tuple(dats), sets, maps).write(words, narrow)
    copies = resources.files("fluxloom.codegen").joinpath("tiled.c").read_text(encoding="utf-8")
    tables = tables_of([item.group for item in passes], C)
    text = whole([*tables, row_helpers(helpers), copies, *bodies, *main, ""])
    return TiledUnit(text, symbol, tuple(name for _, name in words), tuple(d.entry() for d in drivers))


def _words(passes: Sequence[TilePass], dats: Sequence[TileDat], maps: int) -> list[tuple[str, str]]:
    """Return C type and name of each word of the argument block."""
    fixed = ["tiles", "threads", "stream", "scratch_bytes"]
    words = [("int64_t", name) for name in fixed]
    words += [("char *", "scratch"), ("int64_t *", "at"), ("int64_t *", "room"), ("int64_t *", "counts")]
    for d, dat in enumerate(dats):
        if dat.loaded or dat.stored:
            words += [("char *", f"from{d}"), ("char *", f"to{d}"), ("int64_t", f"stride{d}")]
        for wanted, name in ((dat.loaded, "in"), (dat.stored, "out")):
            words += [("int64_t *", f"{name}_first{d}"), ("int32_t *", f"{name}{d}")] if wanted else []
    for p in range(len(passes)):
        words += [("int64_t *", f"block{p}"), ("int64_t *", f"run_first{p}"), ("int32_t *", f"run{p}")]
    for m in range(maps):
        words += [("int64_t *", f"row_first{m}"), ("void *", f"rows{m}")]
    return words


@dataclass(frozen=True)
class _Main:
    """Writes the function that goes through the tiles."""

    symbol: str
    passes: tuple[TilePass, ...]
    drivers: tuple[_PassDriver, ...]
    dats: tuple[TileDat, ...]
    sets: int
    maps: int

    def write(self, words: list[tuple[str, str]], narrow: bool) -> list[str]:
        """Return the lines of the function."""
        name = f"{self.symbol}_words"
        table = "uint16_t" if narrow else "int32_t"
        lines = ["typedef struct {", *(f"    {ctype} {word};" for ctype, word in words), f"}} {name};", ""]
        lines += [f"void {self.symbol}(const int64_t *S) {{", f"    const {name} *const W = (const {name} *)S;"]
        lines += ["#pragma omp parallel num_threads(fl_threads(W->threads)) if (W->threads != 1)", "    {"]
        lines += ["    int64_t me = 0;", "#ifdef _OPENMP", "    me = omp_get_thread_num();", "#endif"]
        lines.append("    char *const mine = W->scratch + me * W->scratch_bytes;")
        for k in range(len(self.passes)):
            lines += self._point(k)
        lines += ["#pragma omp for schedule(static)", "    for (int64_t tile = 0; tile < W->tiles; tile++) {"]
        lines.append(f"        const int64_t *const n = W->counts + tile * {self.sets};")
        for m in range(self.maps):
            lines.append(f"        {table} *const t{m} = ({table} *)W->rows{m} + W->row_first{m}[tile];")
        for d in range(len(self.dats)):
            lines += self._copy_in(d)
        for k in range(len(self.passes)):
            lines += self._pass(k)
        for d in range(len(self.dats)):
            lines += self._copy_out(d)
        lines += ["        if (W->stream) fl_fence();", "        (void)n;", "    }", "    }"]
        for k, item in enumerate(self.passes):
            lines += self._finish(k, item)
        return [*lines, "}"]

    def _point(self, k: int) -> list[str]:
        """Declare the argument block of a pass and point its dats to the memory of the thread."""
        item, group = self.passes[k], self.drivers[k].group
        kind = f"{group.symbol}_args"
        types = {s.name: s.ctype for s in slots_of(group)}
        lines = [f"    {kind} a{k} = *(const {kind} *)W->block{k};"]
        for own, dat in item.dats:
            lines.append(f"    a{k}.d{own} = ({types[f'd{own}']})(void *)(mine + W->at[{dat}]);")
            if f"s{own}" in types:
                lines.append(f"    a{k}.s{own} = W->room[{self.dats[dat].set}];")
        return lines

    def _copy_in(self, d: int) -> list[str]:
        dat = self.dats[d]
        to = f"mine + W->at[{d}]"
        if dat.zero:
            row, set_ = dat.row, dat.set
            return [
                f"        for (int64_t c = 0; c < {dat.parts}; c++)",
                f"            memset({to} + c * W->room[{set_}] * {row}, 0, (size_t)(n[{set_}] + 1) * {row});",
            ]
        if not dat.loaded:
            return []
        first = f"W->in_first{d}[tile]"
        lines = [f"        for (int64_t c = 0; c < {dat.parts}; c++)"]
        lines.append(f"            fl_tile_in({to} + c * W->room[{dat.set}] * {dat.row},")
        lines.append(f"                W->from{d} + c * W->stride{d} * {dat.row}, W->in{d} + 3 * {first},")
        lines.append(f"                W->in_first{d}[tile + 1] - {first}, {dat.row});")
        return lines

    def _copy_out(self, d: int) -> list[str]:
        dat = self.dats[d]
        if not dat.stored:
            return []
        first = f"W->out_first{d}[tile]"
        lines = [f"        for (int64_t c = 0; c < {dat.parts}; c++)"]
        lines.append(f"            fl_tile_out(W->to{d} + c * W->stride{d} * {dat.row},")
        lines.append(f"                mine + W->at[{d}] + c * W->room[{dat.set}] * {dat.row},")
        lines.append(f"                W->out{d} + 3 * {first}, W->out_first{d}[tile + 1] - {first}, {dat.row},")
        lines.append("                W->stream);")
        return lines

    def _pass(self, k: int) -> list[str]:
        item, driver = self.passes[k], self.drivers[k]
        group = driver.group
        reductions = group.reductions(group.members)
        lines = [f"        {{ /* {' + '.join(m.spec.name for m in group.members)} */"]
        lines += [f"        a{k}.m{own} = t{number};" for own, number in item.maps]
        lines.append(f"        const {group.symbol}_args *const A = &a{k};")
        if reductions:
            lines += declare(group, group.members, "        ")
            lines += [f"        FL_ALIGN {_left_out(m.number, a)}" for m, a in reductions]
        counted = {f"acc{m.number}_{a.parameter}": (m.number, a.parameter) in item.live for m, a in reductions}
        owned = "".join(f", {n if counted.get(n, True) else 'no' + n}" for n in driver.names)
        other = "".join(f", {'no' + n if n in counted else n}" for n in driver.names)
        lines.append(f"        const int32_t *r = W->run{k} + 3 * W->run_first{k}[tile];")
        lines.append(f"        for (int64_t i = W->run_first{k}[tile]; i < W->run_first{k}[tile + 1]; i++, r += 3)")
        if any(counted.values()):
            lines += [f"            if (r[2]) {group.symbol}_run(A, r[0], r[1]{owned});", "            else"]
        lines.append(f"            {group.symbol}_run(A, r[0], r[1]{other});")
        if any(counted.values()):
            lines += store(group, group.members, "tile", "        ")
        return [*lines, "        }"]

    def _finish(self, k: int, item: TilePass) -> list[str]:
        """Add the partial results of the tiles, in order, for each reduction that counts."""
        group = self.drivers[k].group
        if not item.live:
            return []
        kind = f"{group.symbol}_args"
        lines = [f"    {{ const {kind} *const A = (const {kind} *)W->block{k};"]
        return [*lines, *finish(group, group.members, "W->tiles"), "    }"]


def _left_out(number: int, arg: ArgSpec) -> str:
    return f"{arg.total} noacc{number}_{arg.parameter}[{arg.dim}][16] = {{{{0}}}};"
