"""Gathering through the memory of a group: each element of a tile is computed once, then summed target by target."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fluxloom.codegen.item import Item, scratch_legs
from fluxloom.codegen.lane import identity
from fluxloom.codegen.member import Member
from fluxloom.codegen.places import looped, touched
from fluxloom.codegen.reduce import combine
from fluxloom.codegen.spec import ArgSpec

if TYPE_CHECKING:
    from fluxloom.codegen.kernels import KernelDriver

__all__ = ["increment_tables", "increments", "stage_bytes", "staged_kind", "write_staged_gather"]


def increments(member: Member) -> list[ArgSpec]:
    """Return the arguments that add to targets of a map."""
    return [a for a in member.spec.args if a.kind == "table" and a.access.reduces]


def increment_tables(member: Member) -> list[tuple[int, int]]:
    """Return the tables (map, leg) of the increments of a loop, in the order of the plan."""
    return list(dict.fromkeys((a.map, a.leg) for a in increments(member)))


def stage_bytes(member: Member, capacity: int) -> int:
    """Return the bytes of group memory that the increments of ``capacity`` elements take."""
    return sum(len(scratch_legs(member, a)) * a.dim * a.scalar.size for a in increments(member)) * capacity


def write_staged_gather(driver: KernelDriver) -> list[str]:
    """Return the kernel: a group handles as many neighbouring targets as it has items."""
    group, words = driver.group, driver.words
    block = group.work.block
    lines = [*driver._open("_run"), f"    const int l = {words.member};", f"    const int tile = {words.group};"]
    first = "(int)from + " if group.ranged else ""
    lines += [f"    const int t = {first}tile * {block} + l;", *driver.sums.declare(group.direct)]
    for member, capacity in zip(group.scatter, group.work.stage, strict=True):
        for arg in increments(member):
            size = len(scratch_legs(member, arg)) * arg.dim * capacity
            kind = staged_kind(driver, arg)
            lines.append(f"    {words.shared} {kind} S{member.number}_{arg.parameter}[{max(1, size)}];")
    item = _Staging(group, driver.dialect, driver.constants, "t")
    for member, capacity in zip(group.scatter, group.work.stage, strict=True):
        k = member.number
        with item.block(f"for (int k = l; k < seg{k}[tile + 1] - seg{k}[tile]; k += {block})"):
            item.line(f"const int e = elem{k}[seg{k}[tile] + k];")
            item.capacity = capacity
            item.member(member, "e", "stage")
    item.line(words.barrier)
    with item.block("if (t < targets)"):
        item.declare_own()
        item.declare_increments()
        for member, capacity in zip(group.scatter, group.work.stage, strict=True):
            for position, table in enumerate(increment_tables(member)):
                _sum(driver, item, member, position, table, capacity)
        for member in group.direct:
            item.member(member, "t", "none")
        item.store_own()
    driver._launch("_run", "targets")
    sums = driver.sums.reduce(group.direct, "t", "targets")
    return [*lines, *item.lines, *(line for line in sums if not line.startswith("    const int l =")), "}", ""]


def staged_kind(driver: KernelDriver, arg: ArgSpec) -> str:
    """Return the C type of staged increments."""
    return driver.group.members[0].spec.compute.c if arg.scalar.floating else "int64_t"


class _Staging(Item):
    """The body of an element whose increments stay in the memory of the group."""

    capacity = 0

    def _increments(self, member: Member, arg: ArgSpec, commit: str, element: str) -> None:
        if commit != "stage":
            super()._increments(member, arg, commit, element)
            return
        if looped(member.spec, arg):
            used = touched(member.spec, arg, 0)
            with self.each_leg(arg):
                for c in range(arg.dim):
                    value = f"p{member.number}_{arg.parameter}[g][{c}]" if c in used else identity(arg)
                    place = f"(g * {arg.dim} + {c}) * {self.capacity} + k"
                    self.line(f"S{member.number}_{arg.parameter}[{place}] = {value};")
            return
        for position, leg in enumerate(scratch_legs(member, arg)):
            used = touched(member.spec, arg, leg)
            for c in range(arg.dim):
                row = (position * arg.dim + c) * self.capacity
                value = f"p{member.number}_{arg.parameter}[{leg}][{c}]" if c in used else identity(arg)
                self.line(f"S{member.number}_{arg.parameter}[{row} + k] = {value};")


def _sum(
    driver: KernelDriver, item: Item, member: Member, position: int, table: tuple[int, int], capacity: int
) -> None:
    """Write the loop that adds the staged increments of one table to the target's own values."""
    k = member.number
    name = f"loc{k}_{position}"
    args = [a for a in increments(member) if (a.map, a.leg) == table]
    arity = args[0].legs
    with item.block(f"for (int k = {name}_ptr[t]; k < {name}_ptr[t + 1]; k++)"):
        item.line(f"const int p = {name}[k];")
        item.line(f"const int at = p / {arity}, leg = p % {arity};" if arity > 1 else "const int at = p;")
        for arg in args:
            legs = scratch_legs(member, arg)
            for c in range(arg.dim):
                row = f"(leg * {arg.dim} + {c}) * {capacity}" if len(legs) > 1 else str(c * capacity)
                value = f"S{k}_{arg.parameter}[{row} + at]"
                if len(legs) == 1 and arity > 1:
                    value = f"(leg == 0 ? {value} : -{value})"
                own = f"o{arg.dat}[{c}]"
                item.line(f"{own} = {combine(arg, own, value, item.real(arg))};")
