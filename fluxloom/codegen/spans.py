"""Kernels of which an item handles the elements of a whole group, one after the other, for CPUs behind OpenCL.

A CPU's OpenCL compiler makes a loop of the items of a group and vectorises it only where nothing stands around
the body: no barrier, no test for the end of the set, no vector types. What is written here are plain loops over
neighbouring elements, which it vectorises as it would in C: for each piece of `PIECE` elements one loop fetches
the values that lie anywhere, the next one computes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING

from fluxloom.codegen.item import PIECE, Item, scratch_legs
from fluxloom.codegen.lane import identity
from fluxloom.codegen.member import Member
from fluxloom.codegen.places import looped, touched
from fluxloom.codegen.reduce import combine
from fluxloom.codegen.spec import ArgSpec
from fluxloom.codegen.staged import increment_tables, increments, staged_kind
from fluxloom.codegen.sums import PART
from fluxloom.core.access import Access
from fluxloom.core.layout import AoS

if TYPE_CHECKING:
    from fluxloom.codegen.kernels import KernelDriver

__all__ = ["apart", "bounds", "chunks", "loop_over", "span", "sum_bytes", "write_tiles"]

_ONE_BY_ONE = "#pragma clang loop vectorize(disable)"
"""Before a loop that fetches: gathers by vector instructions are slower than loads one by one."""

_APART = "#pragma clang loop vectorize(assume_safety)"
"""Before a loop that computes: what its pointers have in common is values of the same element."""


def apart(driver: KernelDriver) -> bool:
    """Whether the compiler has to be told that elements do not meet, and may be told so.

    It finds out by itself at run time for a few pointers, not for those to every component of a dat, and not for
    dats that have moved to where another one lies. A private array that is indexed by a variable is one array for
    all elements to it: it may not be told so.
    """
    args = [(m, a) for m in driver.group.members for a in m.spec.args]
    if any(m.spec.kernel.arrays for m in driver.group.members) or any(looped(m.spec, a) for m, a in args):
        return False
    if any(m.spec.used[a.parameter] is None for m, a in args if a.kind not in ("ragged", "entries")):
        return False
    stores = [a for _, a in args if a.kind in ("direct", "stencil") and a.access is not Access.READ]
    return bool(driver.group.renamed) or any(a.dim > 1 and not isinstance(a.layout, AoS) for a in stores)


def loop_over(driver: KernelDriver, item: Item, opening: str) -> AbstractContextManager[None]:
    """Write a loop that computes around what follows."""
    if apart(driver):
        item.lines.append(_APART)
    return item.block(opening)


@contextmanager
def chunks(driver: KernelDriver, item: Item, members: tuple[Member, ...], limits: tuple[str, str]) -> Iterator[None]:
    """Write a loop over the chunks of partial results around what follows, where some loops reduce."""
    sums = driver.sums
    if not driver.group.reductions(members):
        item.line(f"const int part = {limits[0]}, upto = {limits[1]};")
        yield
        return
    with item.block(f"for (int part = {limits[0]}; part < {limits[1]}; part += {PART})"):
        item.line(f"const int upto = {limits[1]} - part < {PART} ? {limits[1]} : part + {PART};")
        item.add(sums.keepers(members))
        yield
        item.add(sums.trees(members))


@contextmanager
def pieces(
    driver: KernelDriver, item: Item, name: str, element: str, limits: tuple[str, str] = ("begin", "end"),
    members: tuple[Member, ...] = (),
) -> Iterator[None]:  # fmt: skip
    """Write what follows for each ``name`` between two bounds, piece by piece, after a loop that fetches.

    Parameters
    ----------
    element
        The line that names the element; empty: nothing is fetched in a loop of its own.
    members
        Loops whose reductions are kept, and combined chunk by chunk.
    """
    loop = f"for (int {name} = first; {name} < stop; {name}++)"
    outer = f"for (int first = part; first < upto; first += {PIECE})" if element else ""
    with item.block(""), chunks(driver, item, members, limits), item.block(outer):
        if element:
            item.line(f"const int stop = upto - first < {PIECE} ? upto : first + {PIECE};")
        else:
            item.line("const int first = part, stop = upto;")
        start, item.place = len(item.lines), f"{name} - first" if element else ""
        with loop_over(driver, item, loop):
            if element:
                item.line(element)
            item.add(driver.sums.declare(members))
            yield
            item.add(driver.sums.keep(members, f"{name} - part"))
        _around(item, start, loop, element)


def _around(item: Item, start: int, loop: str, element: str) -> None:
    """Write the loops before and behind the one that computes, which begins at some line."""
    pad = "    " * item.pad
    early = [pad + line for line in item.kept]
    if any("=" in line for line in item.fetches):
        early += [_ONE_BY_ONE, f"{pad}{loop} {{", f"{pad}    {element}", *item.fetches, pad + "}"]
    item.lines[start:start] = early
    if item.after:
        item.lines += [_ONE_BY_ONE, f"{pad}{loop} {{", *(f"{pad}    {line}" for line in item.after), pad + "}"]
    item.kept, item.fetches, item.after, item.place = [], [], [], ""


def bounds(driver: KernelDriver, item: Item, count: str) -> None:
    """Write the first element of the group and the one behind its last."""
    block = driver.group.work.block
    first = "(int)from + " if driver.group.ranged else ""
    item.line(f"const int begin = {first}{driver.words.group} * {block};")
    item.line(f"const int end = {count} - begin < {block} ? (int){count} : begin + {block};")


@contextmanager
def span(
    driver: KernelDriver, item: Item, count: str, members: tuple[Member, ...], element: str = ""
) -> Iterator[None]:
    """Write what follows for each element ``item`` of the group, and the partial results of its reductions."""
    bounds(driver, item, count)
    far = fetches(driver.group.members)
    with pieces(driver, item, "item", element if far else "", members=members):
        if element and not far:
            item.line(element)
        yield


def fetches(members: tuple[Member, ...]) -> bool:
    """Whether some loops read what lies anywhere."""
    return any(a.kind == "table" and a.access is Access.READ for m in members for a in m.spec.args)


def sum_bytes(members: Sequence[Member], tile: int) -> int:
    """Return the bytes of group memory that the sums of ``tile`` targets take, and of one more for all others."""
    sums = {a.dat: a.dim * 8 for m in members for a in increments(m)}
    return sum(sums.values()) * (tile + 1)


def write_tiles(driver: KernelDriver) -> list[str]:
    """Return the kernel of a gather in tiles: a group computes each element of its tile once and adds to its targets.

    The sums lie in the memory of the group, and the loops over the targets follow in a loop of their own, which
    is vectorised. Increments of targets of other tiles go to a place that nobody reads.
    """
    group, words = driver.group, driver.words
    sums = {a.dat: a for m in group.scatter for a in increments(m)}
    item = _Tile(group, driver.dialect, driver.constants, "t")
    item.lines = [*driver._open("_run"), f"    const int tile = {words.group};"]
    for dat, arg in sums.items():
        item.line(f"{words.shared} {staged_kind(driver, arg)} T{dat}[{arg.dim * (group.work.block + 1)}];")
    bounds(driver, item, "targets")
    with item.block("for (int t = begin; t < end; t++)"):
        item.declare_increments()
        for dat, arg in sums.items():
            for c in range(arg.dim):
                item.line(f"{_sum(arg, c)} = o{dat}[{c}];")
    for member in group.scatter:
        k = member.number
        item.line(f"const int count{k} = seg{k}[tile + 1] - seg{k}[tile];")
        with pieces(driver, item, "k", f"const int e = elem{k}[seg{k}[tile] + k];", ("0", f"count{k}")):
            item.member(member, "e", "stage")
            item.after = _additions(item, member)
    rest = driver._item("t")
    rest.lines = item.lines
    far = fetches(group.direct)
    with pieces(driver, rest, "item", "const int t = item;" if far else "", members=group.direct):
        if not far:
            rest.line("const int t = item;")
        rest.declare_own()
        for arg in sums.values():
            rest.take(arg, lambda c, arg=arg: _sum(arg, c))
        for member in group.direct:
            rest.member(member, "t", "none")
        rest.store_own()
    driver._launch("_run", "targets")
    return [*item.lines, "}", ""]


def _sum(arg: ArgSpec, c: int) -> str:
    """Return the C name of a component of a target's sum."""
    return f"T{arg.dat}[(t - begin) * {arg.dim} + {c}]"


class _Tile(Item):
    """The body of an element whose increments wait for the end of the piece."""

    def _increments(self, member: Member, arg: ArgSpec, commit: str, element: str) -> None:
        name, legs = f"{member.number}_{arg.parameter}", scratch_legs(member, arg)
        self.kept.append(f"{self.real(arg)} v{name}[{PIECE}][{len(legs) * arg.dim}];")
        if looped(member.spec, arg):
            used = touched(member.spec, arg, 0)
            with self.each_leg(arg):
                for c in range(arg.dim):
                    value = f"p{name}[g][{c}]" if c in used else identity(arg)
                    self.line(f"v{name}[{self.place}][g * {arg.dim} + {c}] = {value};")
            return
        for position, leg in enumerate(legs):
            used = touched(member.spec, arg, leg)
            for c in range(arg.dim):
                value = f"p{name}[{leg}][{c}]" if c in used else identity(arg)
                self.line(f"v{name}[{self.place}][{position * arg.dim + c}] = {value};")


def _additions(item: Item, member: Member) -> list[str]:
    """Return the statements that add the increments of an element of the piece to the sums of its targets."""
    lines, k, tables = [], member.number, increment_tables(member)
    for arg in increments(member):
        legs, position = scratch_legs(member, arg), tables.index((arg.map, arg.leg))
        if looped(member.spec, arg):
            at = f"loc{k}_{position}_at[(seg{k}[tile] + k) * {arg.legs} + g]"
            lines.append(f"for (int g = 0; g < {arg.legs}; g++) {{ const int at = {at} * {arg.dim};")
            for c in range(arg.dim):
                value, target = f"v{k}_{arg.parameter}[{item.place}][g * {arg.dim} + {c}]", f"T{arg.dat}[at + {c}]"
                lines.append(f"  {target} = {combine(arg, target, value, item.real(arg))};")
            lines.append("}")
            continue
        for leg in range(arg.legs):
            at = f"loc{k}_{position}_at[(seg{k}[tile] + k) * {arg.legs} + {leg}]"
            lines.append(f"{{ const int at = {at} * {arg.dim};")
            for c in range(arg.dim):
                row = (legs.index(leg) if leg in legs else 0) * arg.dim + c
                value, target = f"v{k}_{arg.parameter}[{item.place}][{row}]", f"T{arg.dat}[at + {c}]"
                if arg.access is Access.INC:
                    lines.append(f"  {target} = {target} {'+' if leg in legs else '-'} {value};")
                else:
                    lines.append(f"  {target} = {combine(arg, target, value, item.real(arg))};")
            lines.append("}")
    return lines
