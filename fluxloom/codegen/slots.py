"""The argument block of a generated function: one 8-byte word for everything it needs."""

from __future__ import annotations

from collections.abc import Callable

from fluxloom.codegen.group import Group
from fluxloom.codegen.member import Member
from fluxloom.codegen.spec import ArgSpec, Slot
from fluxloom.core.access import Access
from fluxloom.core.layout import SoA

__all__ = ["slots_of"]

_Add = Callable[[str, str, str, "int | str"], None]


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


def _arg_slots(arg: ArgSpec, group: Group, member: Member, add: _Add) -> None:
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
        parts = {"start": "int64_t *", "length": "int32_t *", "index": "int32_t *", "rows": "int64_t"}
        for part, ctype in parts.items():
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
            names = [("int64_t", "n_colours"), ("int64_t *", "colour_off")]
            names += [("int32_t *", "blocks"), ("int64_t *", "block_off")]
            return names + ([("int32_t *", "perm")] if group.strategy == "block_permute" else [])
        case "element_colour":
            return [("int64_t", "n_colours"), ("int64_t *", "colour_off"), ("int32_t *", "perm")]
        case "gather" if group.tile == 1:
            names = [("int64_t", "targets"), ("int64_t *", "inv_ptr")]
            return [*names, ("int32_t *", "inv_elem"), ("uint8_t *", "inv_leg")]
        case "gather":
            names = [("int64_t", "targets"), ("int64_t", "tiles")]
            for m in group.scatter:
                k = m.number
                names += [("int64_t *", f"seg_ptr{k}"), ("int64_t *", f"seg_pos{k}"), ("int32_t *", f"seg_len{k}")]
                names.append(("int32_t *", f"elem{k}"))
            return names
    return []
