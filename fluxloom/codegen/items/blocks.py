"""Block colours: groups of one colour share no target; inside a group, items of one colour add at a time."""

from __future__ import annotations

from fluxloom.codegen.items.item import Item
from fluxloom.codegen.items.kernel_writer import KernelWriter
from fluxloom.codegen.language.group import Member
from fluxloom.codegen.language.lane import address, looped, touched
from fluxloom.codegen.language.reduce import combine
from fluxloom.codegen.language.spec import ArgSpec

__all__ = ["write_block_colour"]

_TAIL = ("begin", "end", "partials")


def write_block_colour(driver: KernelWriter) -> list[str]:
    """Return the kernel, launched once a colour of blocks; one group handles one block."""
    group, words = driver.group, driver.words
    block, staged = group.work.block, bool(group.work.stage)
    (member,) = group.members
    item = _Deferred(group, driver.dialect, driver.constants)
    item.lines = [*driver.open("_run", _TAIL), f"    const int l = {words.member};"]
    item.line(f"const int b = blocks[begin + {words.group}];")
    item.line("const int first = (int)block_off[b], count = (int)block_off[b + 1] - first;")
    item.lines += driver.sums.declare(group.members)
    item.line("int colour = -1;")
    for arg in member.spec.increments:
        item.line(f"{item.real(arg)} v{arg.dat}_{arg.parameter}[{arg.legs}][{arg.dim}];")
    for name in _target_names(member):
        item.line(f"int {name} = 0;")
    if any(looped(member.spec, arg) for arg in member.spec.increments):
        item.line("int element = 0;")
    if staged:
        _open_stage(driver, item, member)
    with item.block("if (l < count)"):
        item.line("const int i = perm[first + l];" if group.listed else "const int i = first + l;")
        if any(looped(member.spec, arg) for arg in member.spec.increments):
            item.line("element = i;")
        item.line("colour = item_colour[first + l];")
        item.declare_own()
        item.member(member, "i", "defer")
        item.store_own()
    with item.block("for (int c = 0; c < item_colours[b]; c++)"):
        with item.block("if (c == colour)"):
            for arg in member.spec.increments:
                _add(item, member, arg, staged)
        item.line(words.barrier)
    for dat, arg in _staged_dats(member).items() if staged else ():
        _move_stage(driver, item, dat, arg, f"{{stored}} = ({arg.scalar.c}){{staged}};")
    where = f"{words.group} * {block} + l"
    sums = driver.sums.reduce(group.members, f"({where})", f"({words.group} + 1) * {block}", "partials + ")
    driver.launch("_run", per=block, colours=True)
    return [*item.lines, *(line for line in sums if not line.startswith("    const int l =")), "}", ""]


class _Deferred(Item):
    """The body of an element whose increments wait for the colour of its item."""

    def _increments(self, member: Member, arg: ArgSpec, commit: str, element: str) -> None:
        for leg, target, used in self.legs(member, arg):
            for c in sorted(used):
                self.line(f"v{arg.dat}_{arg.parameter}[{leg}][{c}] = p{member.number}_{arg.parameter}[{leg}][{c}];")
            if used and leg != "g":
                self.line(f"t{target[1:]} = {target};")


def _target_names(member: Member) -> list[str]:
    names: dict[str, None] = {}
    for arg in member.spec.increments:
        for leg in range(0 if looped(member.spec, arg) else arg.legs):
            if touched(member.spec, arg, leg):
                names[f"t{arg.map}_{arg.column(leg)}"] = None
    return list(names)


def _add(item: Item, member: Member, arg: ArgSpec, staged: bool) -> None:
    """Add the increments of one argument to memory, or to what the group holds of its targets."""
    for leg, target, used in item.legs(member, arg, "" if staged else "element"):
        target = target if leg == "g" else f"t{target[1:]}"
        for c in sorted(used):
            value = f"v{arg.dat}_{arg.parameter}[{leg}][{c}]"
            if staged:
                place = f"S{arg.dat}[tgt_loc[(first + l) * {arg.legs} + {leg}] * {arg.dim} + {c}]"
                item.line(f"{place} = {combine(arg, place, value, item.real(arg))};")
            else:
                where = f"d{arg.dat}[{address(arg, f'(int64_t){target}', c, '')}]"
                item.line(item.combined(arg, where, value))


def _staged_dats(member: Member) -> dict[int, ArgSpec]:
    return {a.dat: a for a in member.spec.increments}


def _open_stage(driver: KernelWriter, item: Item, member: Member) -> None:
    """Bring the group's targets into its memory."""
    for dat, arg in _staged_dats(member).items():
        item.line(f"{driver.words.shared} {item.real(arg)} S{dat}[{max(1, driver.group.work.stage) * arg.dim}];")
        _move_stage(driver, item, dat, arg, "{staged} = {stored};")
    item.line(driver.words.barrier)


def _move_stage(driver: KernelWriter, item: Item, dat: int, arg: ArgSpec, move: str) -> None:
    """Go through the group's targets; ``move`` is made of each component."""
    with item.block(f"for (int k = l; k < tgt_ptr[b + 1] - tgt_ptr[b]; k += {driver.group.work.block})"):
        for c in range(arg.dim):
            stored = f"d{dat}[{address(arg, '(int64_t)tgt[tgt_ptr[b] + k]', c, '')}]"
            item.line(move.format(staged=f"S{dat}[k * {arg.dim} + {c}]", stored=stored))
