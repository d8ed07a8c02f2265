"""Kernels of work items: one template a race strategy, reductions, parameters, launches."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from fluxloom.codegen.items.blocks import write_block_colour
from fluxloom.codegen.items.cooperative_rows import has_cooperative_rows, team_partials, write_cooperative_rows
from fluxloom.codegen.items.item import Item, scratch_legs
from fluxloom.codegen.items.kernel_writer import KernelWriter
from fluxloom.codegen.items.pairs import in_pairs, pair_partials, write_pairs
from fluxloom.codegen.language.frame import inverse_name
from fluxloom.codegen.language.group import Member
from fluxloom.codegen.language.lane import address
from fluxloom.codegen.language.reduce import PART, combine
from fluxloom.codegen.language.spec import ArgSpec, Entry, LaunchSpec
from fluxloom.codegen.packs.contributions import Contributions

__all__ = ["FINISH", "KernelDriver"]

FINISH = "_finish"
"""End of the name of the kernel that combines partial results: the last one of a call."""

_COLOURED = ("begin", "end", "partials")
_WARP = 32


class KernelDriver(KernelWriter):
    """Writes the kernels of one group."""

    def __post_init__(self) -> None:
        super().__post_init__()
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
        lines += write_cooperative_rows(self) if has_cooperative_rows(group) else getattr(self, f"_{group.strategy}")()
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

    # ------------------------------------------------------------------------------ strategies
    def _per_element(self, suffix: str, commit: str) -> list[str]:
        """Write the kernel of which each item handles one element of the driving set."""
        group = self.group
        side_by_side = not group.listed and group.work.block % _WARP == 0 and not (group.ranged and group.scatter)
        item = self.item(limit="n" if side_by_side else "")
        item.lines = self.open(suffix)
        element = "const int i = list[item];" if group.listed else "const int i = item;"
        with self._elements(item, "n", group.members, element):
            item.declare_own()
            for member in group.members:
                item.member(member, "i", commit)
            item.store_own()
        self.launch(suffix, "n")
        return [*item.lines, *self.sums.reduce(group.members, "item", "n"), "}", ""]

    @contextmanager
    def _elements(self, item: Item, count: str, members: tuple[Member, ...], element: str = "") -> Iterator[None]:
        """Write what follows for the element ``item`` of a work item; ``element`` is a line that names it anew."""
        item.lines += [self.thread("item", start="(int)from + " if self.group.ranged else ""),
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
        lines = [*self.open("_run", _COLOURED), self.thread("item"), *self.sums.declare(group.members)]
        item = self.item()
        with item.block("if (begin + item < end)"):
            item.line("const int i = perm[begin + item];")
            item.declare_own()
            for member in group.members:
                item.member(member, "i", "add")
            item.store_own()
        self.launch("_run", colours=True)
        return [*lines, *item.lines, *self.sums.reduce(group.members, "item", "end - begin", "partials + "), "}", ""]

    def _block_colour(self) -> list[str]:
        return write_block_colour(self)

    def _two_pass(self) -> list[str]:
        lines = self._per_element("_run", "scratch")
        for member in self.group.members:
            for arg in member.spec.increments:
                lines += self._second_pass(member, arg)
        return lines

    def _second_pass(self, member: Member, arg: ArgSpec) -> list[str]:
        """Write the kernel that adds what a first pass has kept, target by target."""
        suffix = f"_sum{member.number}_{arg.parameter}"
        legs = scratch_legs(member, arg)
        arity = arg.legs
        inverse = inverse_name(arg)
        found = Contributions(self.group, inverse)
        item = self.item("t")
        item.lines = self.open(suffix)
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
        self.launch(suffix, f"{inverse}_n")
        return [*item.lines, "}", ""]

    def _gather(self) -> list[str]:
        """Drive the loops target by target; an element is computed once for each of its targets."""
        group = self.group
        if group.work.single:
            return self._per_element("_run", "add")
        item = self.item("t")
        item.lines = self.open("_run")
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
        self.launch("_run", "targets")
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
        lines = [*self.open(FINISH, block=self.words.finish), *self.sums.finish(self._partials()), "}", ""]
        self.launches.append(LaunchSpec(self.group.symbol + FINISH, self.words.finish))
        return lines

    def _partials(self) -> str:
        """Return the C expression of the number of partial results."""
        if has_cooperative_rows(self.group):
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
    return max((a.legs for a in member.spec.increments), default=1)
