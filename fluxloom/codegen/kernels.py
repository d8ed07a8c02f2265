"""Kernels of work items: one template a race strategy, reductions, parameters, launches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib import resources

from fluxloom.codegen.contributions import Contributions
from fluxloom.codegen.dialect import Dialect, KernelWords
from fluxloom.codegen.group import Group
from fluxloom.codegen.item import Item, scratch_legs
from fluxloom.codegen.lane import address
from fluxloom.codegen.member import Member
from fluxloom.codegen.pairs import in_pairs, pair_partials, write_pairs
from fluxloom.codegen.reduce import combine
from fluxloom.codegen.slots import constants_of, inverse_name, kernel_slots
from fluxloom.codegen.spec import ArgSpec, Entry, LaunchSpec, Slot
from fluxloom.codegen.sums import PART, GroupSums
from fluxloom.codegen.teams import in_teams, team_partials, write_teams
from fluxloom.core.access import Access

__all__ = ["FINISH", "KernelDriver", "opening", "prelude"]

FINISH = "_finish"
"""End of the name of the kernel that combines partial results: the last one of a call."""

_COLOURED = ("begin", "end", "partials")
_REGISTERS = 65536
_WARP = 32


def prelude(dialect: Dialect, contract: bool, *, half: bool = False) -> str:
    """Return the fixed part of a unit; ``half``: it stores float16."""
    assert dialect.words is not None
    folder = resources.files("fluxloom.codegen")
    texts = [folder.joinpath(name).read_text() for name in (dialect.words.prelude, "semantics.c")]
    if not contract and dialect.words.contraction_off:
        texts.insert(0, dialect.words.contraction_off)
    if half:
        texts.insert(0, "#define FL_HALF")
    return "\n".join(texts)


def opening(
    words: KernelWords, name: str, slots: Sequence[Slot], written: frozenset[str], block: int, registers: int = 0,
    tail: Sequence[str] = (), meeting: frozenset[str] = frozenset(), counted: bool = False,
) -> list[str]:  # fmt: skip
    """Return the first lines of a kernel: its name, limits and parameters.

    Parameters
    ----------
    written
        Names of the pointers that the kernel writes through.
    tail
        Names of trailing 64-bit parameters.
    meeting
        Names of the pointers that may lead to the same values.
    counted
        Whether ``n`` counts the places of a list, behind which the number of its elements lies.
    """
    limit = words.limit.format(groups=max(1, _REGISTERS // (registers * block))) if registers else ""
    lines = [words.kernel.format(block=block, limit=limit, name=name)]
    parameters = []
    for slot in slots:
        if slot.ctype.endswith("*"):
            const = "" if slot.name in written else "const "
            kind, alone = slot.ctype.removesuffix(" *"), "" if slot.name in meeting else words.alone
            parameters.append(words.pointer.format(const=const, type=kind, alone=alone, name=slot.name))
        else:
            const = "" if counted and slot.name == "n" else "const "
            parameters.append(f"{const}{slot.ctype} {slot.name}")
    parameters += [f"const int64_t {name}" for name in tail]
    lines += [f"    {p}," for p in parameters[:-1]]
    return [*lines, f"    {parameters[-1]})", "{", *(["    n = list[n];"] if counted else [])]


@dataclass
class KernelDriver:
    """Writes the kernels of one group."""

    group: Group
    dialect: Dialect

    def __post_init__(self) -> None:
        assert self.dialect.words is not None
        self.words: KernelWords = self.dialect.words
        self.constants = constants_of(self.group)
        self.slots = kernel_slots(self.group, self.constants)
        self.launches: list[LaunchSpec] = []
        self.sums = GroupSums(self.group, self.words)
        self._text = self._write()

    def entry(self) -> Entry:
        """Return parameters, launches and constants."""
        return Entry(self.group.symbol, self.slots, tuple(self.launches), self.constants)

    def write(self) -> str:
        """Return the source of the kernels."""
        return self._text

    def _write(self) -> str:
        group = self.group
        if group.work.components > 1:
            return self._split()
        lines = [f"/* {' + '.join(m.spec.name for m in group.members)}: {group.strategy} */"]
        lines += write_teams(self) if in_teams(group) else getattr(self, f"_{group.strategy}")()
        if self.sums.present:
            lines += self._finish()
        return "\n".join([*lines, ""])

    def _split(self) -> str:
        """Write a kernel for each component; what the others would compute is left to the compiler to drop."""
        texts = []
        for c in range(self.group.work.components):
            work = replace(self.group.work, components=1, component=c)
            driver = type(self)(replace(self.group, symbol=f"{self.group.symbol}_c{c}", work=work), self.dialect)
            texts.append(driver.write())
            self.launches += driver.launches
        return "\n".join(texts)

    # ---------------------------------------------------------------------------------- pieces
    def _written(self) -> frozenset[str]:
        """Names of the pointers that some kernel of the group writes through."""
        names: set[str] = set()
        for member in self.group.members:
            for arg in member.spec.args:
                if arg.access is not Access.READ:
                    names.add(f"d{arg.dat}o" if arg.dat in self.group.renamed else f"d{arg.dat}")
                    names |= {f"part{member.number}_{arg.parameter}", f"x{arg.dat}_{arg.parameter}"}
        return frozenset(names)

    def _meeting(self) -> frozenset[str]:
        """Names of the pointers that may lead to the same values.

        A dat that moves may move to where another one lies whose values nobody but the same element needs.
        """
        if not self.group.renamed:
            return frozenset()
        own = [a for m in self.group.direct for a in m.spec.args if a.kind == "direct"]
        far = {a.dat for m in self.group.members for a in m.spec.args if a.kind != "direct" or m in self.group.scatter}
        return frozenset({f"d{k}o" for k in self.group.renamed} | {f"d{a.dat}" for a in own if a.dat not in far})

    def _open(self, suffix: str, tail: Sequence[str] = (), block: int = 0) -> list[str]:
        work, name = self.group.work, self.group.symbol + suffix
        return opening(self.words, name, self.slots, self._written(), block or work.block, work.registers, tail,
                       self._meeting(), self.group.counted)  # fmt: skip

    def _launch(self, suffix: str, extent: str = "", **more: int | bool) -> None:
        block = self.group.work.block
        self.launches.append(LaunchSpec(self.group.symbol + suffix, block, extent, chunk=PART, **more))  # type: ignore[arg-type]

    def _item(self, own: str = "i", limit: str = "") -> Item:
        return Item(self.group, self.dialect, self.constants, own, limit)

    def _thread(self, name: str, start: str = "") -> str:
        return f"    const int {name} = {start}{self.words.item.format(block=self.group.work.block)};"

    # ------------------------------------------------------------------------------ strategies
    def _per_element(self, suffix: str, commit: str) -> list[str]:
        """Write the kernel of which each item handles one element of the driving set."""
        group = self.group
        side_by_side = not group.listed and group.work.block % _WARP == 0 and not (group.ranged and group.scatter)
        item = self._item(limit="n" if side_by_side else "")
        item.lines = self._open(suffix)
        element = "const int i = list[item];" if group.listed else "const int i = item;"
        with self._elements(item, "n", group.members, element):
            item.declare_own()
            for member in group.members:
                item.member(member, "i", commit)
            item.store_own()
        self._launch(suffix, "n")
        return [*item.lines, *self.sums.reduce(group.members, "item", "n"), "}", ""]

    @contextmanager
    def _elements(self, item: Item, count: str, members: tuple[Member, ...], element: str = "") -> Iterator[None]:
        """Write what follows for the element ``item`` of a work item; ``element`` is a line that names it anew."""
        item.lines += [self._thread("item", start="(int)from + " if self.group.ranged else ""),
                       *self.sums.declare(members)]
        with item.block(f"if (item < {count})"):
            if element:
                item.line(element)
            yield

    def _direct(self) -> list[str]:
        if in_pairs(self.group):
            return write_pairs(self)
        return self._per_element("_run", "none")

    def _atomic(self) -> list[str]:
        return self._per_element("_run", "atomic")

    def _element_colour(self) -> list[str]:
        group = self.group
        lines = [*self._open("_run", _COLOURED), self._thread("item"), *self.sums.declare(group.members)]
        item = self._item()
        with item.block("if (begin + item < end)"):
            item.line("const int i = perm[begin + item];")
            item.declare_own()
            for member in group.members:
                item.member(member, "i", "add")
            item.store_own()
        self._launch("_run", colours=True)
        return [*lines, *item.lines, *self.sums.reduce(group.members, "item", "end - begin", "partials + "), "}", ""]

    def _block_colour(self) -> list[str]:
        from fluxloom.codegen.blocks import write_block_colour

        return write_block_colour(self)

    def _two_pass(self) -> list[str]:
        lines = self._per_element("_run", "scratch")
        for member in self.group.members:
            for arg in member.spec.args:
                if arg.kind == "table" and arg.access.reduces:
                    lines += self._second_pass(member, arg)
        return lines

    def _second_pass(self, member: Member, arg: ArgSpec) -> list[str]:
        """Write the kernel that adds what a first pass has kept, target by target."""
        suffix = f"_sum{member.number}_{arg.parameter}"
        legs = scratch_legs(member, arg)
        arity = arg.legs
        inverse = inverse_name(arg)
        found = Contributions(self.group, inverse)
        item = self._item("t")
        item.lines = self._open(suffix)
        with self._elements(item, f"{inverse}_n", ()):
            item.line(found.target("item"))
            kind = item.real(arg)
            item.line(f"{kind} o[{arg.dim}];")
            for c in range(arg.dim):
                item.line(f"o[{c}] = d{arg.dat}[{address(arg, '(int64_t)t', c, '')}];")
            with found.loop(item):
                item.line(f"const int e = p / {arity}, leg = p % {arity};" if arity > 1 else "const int e = p;")
                sign, row = "", "0"
                if len(legs) == 1 and arity > 1:
                    sign = "(leg == 0 ? s : -s)"
                elif arity > 1:
                    row = "leg"
                for c in range(arg.dim):
                    where = f"({row} * {arg.dim} + {c}) * n + e" if row != "0" else f"{c} * n + e"
                    item.line(f"{{ const {kind} s = x{arg.dat}_{arg.parameter}[{where}]; "
                              f"o[{c}] = {combine(arg, f'o[{c}]', sign or 's', kind)}; }}")
            for c in range(arg.dim):
                item.line(f"d{arg.dat}[{address(arg, '(int64_t)t', c, '')}] = ({arg.scalar.c})o[{c}];")
        self._launch(suffix, f"{inverse}_n")
        return [*item.lines, "}", ""]

    def _gather(self) -> list[str]:
        """Drive the loops target by target; an element is computed once for each of its targets."""
        group = self.group
        if group.work.single:
            return self._per_element("_run", "add")
        item = self._item("t")
        item.lines = self._open("_run")
        found = Contributions(group, "inv")
        with self._elements(item, "targets", group.direct):
            item.line(found.target("item"))
            item.declare_own()
            item.declare_increments()
            with found.loop(item):
                self._choose(item)
            for member in group.direct:
                item.member(member, "t", "none")
            item.store_own()
        self._launch("_run", "targets")
        return [*item.lines, *self.sums.reduce(group.direct, "item", "targets"), "}", ""]

    def _choose(self, item: Item) -> None:
        """Find the loop, the element and the leg behind a contribution."""
        scatter = self.group.scatter
        for position, member in enumerate(scatter):
            last = position == len(scatter) - 1
            test = "" if last else f"if (p < base{scatter[position + 1].number})"
            with item.block(" ".join(w for w in ("else" if position else "", test) if w)):
                arity = increment_arity(member)
                start = f" - (int)base{member.number}" if position else ""
                item.line(f"const int q = p{start};")
                item.line(f"const int e = q / {arity}, leg = q % {arity};" if arity > 1 else "const int e = q;")
                item.member(member, "e", "pick")

    def _finish(self) -> list[str]:
        lines = [*self._open(FINISH, block=self.words.finish), *self.sums.finish(self._partials()), "}", ""]
        self.launches.append(LaunchSpec(self.group.symbol + FINISH, self.words.finish))
        return lines

    def _partials(self) -> str:
        """Return the C expression of the number of partial results."""
        if in_teams(self.group):
            return team_partials(self.group)
        if in_pairs(self.group):
            return pair_partials()
        match self.group.strategy:
            case "element_colour" | "block_colour":
                return "n_partials"
            case "gather":
                count = "targets"
            case _:
                count = "n"
        return f"({count} + {PART - 1}) / {PART}"


def increment_arity(member: Member) -> int:
    """Return the columns of the table of contributions of a loop."""
    return max((a.legs for a in member.spec.args if a.kind == "table" and a.access.reduces), default=1)
