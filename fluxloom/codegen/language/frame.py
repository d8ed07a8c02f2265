"""What surrounds generated code: the fixed part of a unit, argument blocks, first lines of functions and kernels.

An argument block has one 8-byte word for everything that a function needs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from importlib import resources

from fluxloom.codegen.language.dialect import Dialect, KernelWords
from fluxloom.codegen.language.group import Group, Member
from fluxloom.codegen.language.spec import ArgSpec, Slot
from fluxloom.core.access import Access
from fluxloom.core.dtypes import SoA

__all__ = [
    "PARALLEL", "argument_block", "beginning", "constants_of", "fixed_part", "head", "inverse_name", "kernel_slots",
    "opening", "prelude", "slots_of",
]  # fmt: skip

_REGISTERS = 65536

PARALLEL = "#pragma omp parallel for schedule(static) num_threads(fl_threads(A->threads)) if (A->threads != 1)"
"""Before a loop whose trips go to threads."""


def fixed_part() -> str:
    """Return the beginning of every unit of plain functions."""
    folder = resources.files("fluxloom.codegen")
    return "\n".join(folder.joinpath(name).read_text() for name in ("prelude.c", "semantics.c"))


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


def head(dialect: Dialect, contract: bool = True) -> str:
    """Return the fixed part of a unit in any language."""
    return fixed_part() if dialect.words is None else prelude(dialect, contract)


def argument_block(symbol: str, slots: Sequence[Slot]) -> list[str]:
    """Return the type of the argument block of a plain function."""
    return ["typedef struct {", *(f"    {s.ctype} {s.name};" for s in slots), f"}} {symbol}_args;"]


def beginning(symbol: str) -> list[str]:
    """Return the first lines of a plain function that is called with an argument block."""
    return [f"void {symbol}(const int64_t *S) {{", f"    const {symbol}_args *const A = (const {symbol}_args *)S;"]


class _Slots(dict[str, Slot]):
    """The words of an argument block by their names, each name once."""

    def add(self, ctype: str, name: str, origin: str, key: int | str = "") -> None:
        """Add a word; ``key`` is its name where none is given."""
        self.setdefault(name, Slot(ctype, name, origin, name if key == "" else key))


def slots_of(group: Group) -> tuple[Slot, ...]:
    """Return the argument block of a group: pointers, sizes, constants and plan tables, in order."""
    out = _Slots()
    out.add("int64_t", "n", "size")
    out.add("int64_t", "threads", "size")
    if group.ranged:
        out.add("int64_t", "from", "size")
    for member in group.members:
        for arg in member.spec.args:
            _arg_slots(arg, group, member, out)
        for constant in member.spec.kernel.constants:
            kind = {"real": "double", "int": "int64_t", "bool": "int64_t"}[constant.kind.value]
            name = f"c{member.number}_{constant.name}"
            out.add(kind, name, "constant")
    if group.listed:
        out.add("int32_t *", "list", "plan")
    for ctype, name in _plan_slots(group):
        out.add(ctype, name, "plan")
    return tuple(out.values())


def inverse_name(arg: ArgSpec) -> str:
    """Return the name of the inverse of the legs that an argument uses."""
    return f"i{arg.map}_{arg.leg}" if arg.leg >= 0 else f"i{arg.map}"


def _arg_slots(arg: ArgSpec, group: Group, member: Member, out: _Slots) -> None:
    pointer = f"{arg.scalar.c} *"
    out.add(pointer, f"d{arg.dat}", "global" if arg.kind == "global" else "dat", arg.dat)
    if arg.dat in group.renamed:
        out.add(pointer, f"d{arg.dat}o", "output", arg.dat)
    if isinstance(arg.layout, SoA):
        out.add("int64_t", f"s{arg.dat}", "stride", arg.dat)
    if arg.positioned:
        out.add("int32_t *", f"z{arg.dat}", "position", arg.dat)
    if arg.kind == "table":
        out.add("int64_t *" if arg.wide else "int32_t *", f"m{arg.map}", "map", arg.map)
    if arg.kind in ("ragged", "entries"):
        assert arg.ragged is not None
        start = "int32_t *" if arg.ragged.narrow else "int64_t *"
        length = "uint8_t *" if arg.ragged.short else "int32_t *"
        parts = {"start": start, "length": length, "index": "int32_t *", "rows": "int64_t"}
        for part, ctype in parts.items():
            out.add(ctype, f"r{arg.map}_{part}", "ragged_" + part, arg.map)
        if arg.ragged.code is not None:
            out.add("int64_t *", f"r{arg.map}_table", "ragged_table", arg.map)
    if arg.kind == "global" and arg.access is not Access.READ:
        out.add(f"{arg.total} *", f"part{member.number}_{arg.parameter}", "partial", f"{member.number}_{arg.parameter}")
    if group.strategy == "two_pass" and arg.kind == "table" and arg.access.reduces:
        out.add(pointer, f"x{arg.dat}_{arg.parameter}", "scratch", arg.parameter)


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
        case "two_pass":
            types = {"ptr": "int64_t *", "elem": "int32_t *", "leg": "uint8_t *", "n": "int64_t"}
            maps = {a.map: None for m in group.members for a in m.spec.increments}
            return [(ctype, f"i{k}_{part}") for k in maps for part, ctype in types.items()]
        case "gather":
            names = [("int64_t", "targets"), ("int64_t", "tiles")]
            for m in group.scatter:
                k = m.number
                names += [("int64_t *", f"seg_ptr{k}"), ("int64_t *", f"seg_pos{k}"), ("int32_t *", f"seg_len{k}")]
                names.append(("int32_t *", f"elem{k}"))
            return names
    return []


# ----------------------------------------------------------------------------------- work items


def constants_of(group: Group) -> tuple[tuple[str, str], ...]:
    """Return the run-time constants of a group's kernels: C type and name, in the order of their words."""
    out = []
    for member in group.members:
        for constant in member.spec.kernel.constants:
            real = constant.kind.value == "real"
            out.append((member.spec.compute.c if real else "int64_t", f"{member.number}_{constant.name}"))
    return tuple(out)


def kernel_slots(group: Group, constants: tuple[tuple[str, str], ...]) -> tuple[Slot, ...]:
    """Return the parameters of a group's kernels; all of them take the same ones."""
    out = _Slots()
    out.add("int64_t", "n", "size")
    if group.ranged:
        out.add("int64_t", "from", "size")
    if constants:
        out.add("int64_t *", "K", "constants")
    for member in group.members:
        for arg in member.spec.args:
            _arg_slots(arg, group, member, out)
    if group.listed:
        out.add("int32_t *", "list", "plan")
    if any(m.spec.grid for m in group.members):
        for k in range(3):
            out.add("int64_t", f"n{k}", "grid")
        for k in (1, 2):  # i / nk is i * qk >> hk: see `fluxloom.dsl.plan.executable.divisor`
            out.add("int64_t", f"q{k}", "grid")
            out.add("int64_t", f"h{k}", "grid")
    for ctype, name in _kernel_plan(group):
        out.add(ctype, name, "plan")
    if group.work.long:
        out.add("int32_t *", "long_rows", "plan")
        out.add("int64_t", "n_long", "plan")
    wide = group.work.wide
    return tuple(s if wide else replace(s, ctype=s.ctype.replace("double *", "float *")) if s.origin == "partial" else s
                 for s in out.values())


def _kernel_plan(group: Group) -> list[tuple[str, str]]:
    """Return the tables of a race strategy."""
    reduces = bool(group.reductions(group.members))
    match group.strategy:
        case "element_colour":
            names = [("int32_t *", "perm")]
            return names + ([("int64_t", "n_partials")] if reduces else [])
        case "block_colour":
            return _block_plan(group, reduces)
        case "gather" if group.work.single:
            return []
        case "gather":
            names = [("int64_t", "targets"), *_contributions(group, "inv")]
            return names + [("int64_t", f"base{m.number}") for m in group.scatter[1:]]
        case "two_pass":
            tables = {inverse_name(a): None for m in group.members for a in m.spec.increments}
            return [p for k in tables for p in (("int64_t", f"{k}_n"), *_contributions(group, k))]
    return []


def _contributions(group: Group, name: str) -> list[tuple[str, str]]:
    names = [("int32_t *", f"{name}_met")] if group.work.sparse else []
    if group.work.degree:
        return [*names, ("int32_t *", f"{name}_pos"), ("int64_t", f"{name}_stride")]
    return [*names, ("int32_t *", f"{name}_ptr"), ("int32_t *", f"{name}_pos")]


def _block_plan(group: Group, reduces: bool) -> list[tuple[str, str]]:
    names = [("int32_t *", "blocks"), ("int64_t *", "block_off")]
    names += [("int32_t *", "item_colour"), ("int32_t *", "item_colours")]
    if group.listed:
        names.append(("int32_t *", "perm"))
    if group.work.stage:
        names += [("int32_t *", "tgt_ptr"), ("int32_t *", "tgt"), ("uint16_t *", "tgt_loc")]
    return names + ([("int64_t", "n_partials")] if reduces else [])
