"""Global reductions: partial results of fixed chunks, combined in a fixed order."""

from __future__ import annotations

from fluxloom.codegen.group import Group
from fluxloom.codegen.member import REDUCTION_LANES, Member
from fluxloom.codegen.spec import ArgSpec
from fluxloom.core.access import Access

__all__ = ["combine", "declare", "finish", "neutral", "store"]


def neutral(arg: ArgSpec) -> str:
    """Return the C value that changes nothing when combined."""
    if arg.access is Access.INC:
        return "0"
    if arg.scalar.floating:
        return "INFINITY" if arg.access is Access.MIN else "-INFINITY"
    return "INT64_MAX" if arg.access is Access.MIN else "INT64_MIN"


def combine(arg: ArgSpec, left: str, right: str, kind: str = "") -> str:
    """Return the C expression that combines two contributions of a C type; by default that of global reductions."""
    kind = kind or arg.total
    match arg.access:
        case Access.MIN:
            return f"fl_min_{kind}({left}, {right})"
        case Access.MAX:
            return f"fl_max_{kind}({left}, {right})"
    return f"{left} + {right}"


def declare(group: Group, members: tuple[Member, ...], pad: str) -> list[str]:
    """Return declarations of the partial sums of one chunk, set to the neutral value."""
    lines = []
    for member, arg in group.reductions(members):
        name = f"acc{member.number}_{arg.parameter}"
        start = neutral(arg)
        lines.append(f"{pad}FL_ALIGN {arg.total} {name}[{arg.dim}][{REDUCTION_LANES}];")
        lines.append(
            f"{pad}for (int c = 0; c < {arg.dim}; c++) "
            f"for (int l = 0; l < {REDUCTION_LANES}; l++) {name}[c][l] = {start};"
        )
    return lines

def store(group: Group, members: tuple[Member, ...], index: str, pad: str) -> list[str]:
    """Fold the lanes of a chunk pairwise and keep the partial result of the chunk."""
    lines = []
    for member, arg in group.reductions(members):
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

def finish(group: Group, members: tuple[Member, ...], count: str) -> list[str]:
    """Combine the partial results in order: the same sum for any number of threads."""
    lines = []
    for member, arg in group.reductions(members):
        part = f"A->part{member.number}_{arg.parameter}[p * {arg.dim} + c]"
        lines.append(f"    for (int c = 0; c < {arg.dim}; c++) {{")
        lines.append(f"        {arg.total} total = {neutral(arg)};")
        lines.append(f"        for (int64_t p = 0; p < {count}; p++) total = {combine(arg, 'total', part)};")
        lines.append(f"        A->d{arg.dat}[c] = ({arg.scalar.c})({combine(arg, f'A->d{arg.dat}[c]', 'total')});")
        lines.append("    }")
    return lines
