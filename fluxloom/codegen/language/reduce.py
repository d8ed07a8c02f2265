"""Global reductions: partial results of fixed chunks, combined in a fixed order; of packs, and of work items.

A chunk is 128 neighbouring elements whatever the size of a group, and every tree has one shape, so that the
result depends neither on the block size nor on which groups run first, nor on the language. A second kernel,
of one group, combines the partial results: letting the group that ends last do it costs a fence in every group,
50 us on an H200 where this kernel costs 3.
"""

from __future__ import annotations

from dataclasses import dataclass

from fluxloom.codegen.language.dialect import KernelWords
from fluxloom.codegen.language.group import REDUCTION_LANES, Group, Member
from fluxloom.codegen.language.spec import ArgSpec
from fluxloom.core.access import Access

__all__ = ["PART", "SHARES", "GroupSums", "combine", "declare", "finish", "neutral", "store"]


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


PART = 128
"""Items a partial result; blocks of kernels with reductions are multiples of it."""

SHARES = 1024
"""Shares into which the partial results are dealt; the items of the one group that combines them take them in turn."""

_BATCH = 16
"""Partial results an item has under way at a time."""

_WARP = 32


@dataclass(frozen=True)
class GroupSums:
    """Writes the reductions of a group's kernels."""

    group: Group
    words: KernelWords

    @property
    def present(self) -> bool:
        """Whether the group reduces anything."""
        return bool(self.group.reductions(self.group.members))

    def kind(self, arg: ArgSpec) -> str:
        """Return the C type of partial results."""
        if not arg.scalar.floating:
            return "int64_t"
        return "double" if self.group.work.wide else "float"

    def combined(self, arg: ArgSpec, left: str, right: str) -> str:
        """Return the C expression that combines two results."""
        return combine(arg, left, right, self.kind(arg))

    def declare(self, members: tuple[Member, ...]) -> list[str]:
        """Declare each item's own contribution; items without an element keep the neutral one."""
        lines = []
        for member, arg in self.group.reductions(members):
            start = ", ".join([neutral(arg)] * arg.dim)
            name = f"g{member.number}_{arg.parameter}"
            lines.append(f"    {self._private(member, arg)} {name}[{arg.dim}] = {{{start}}};")
        return lines

    @staticmethod
    def _private(member: Member, arg: ArgSpec) -> str:
        return member.spec.compute.c if arg.scalar.floating else "int64_t"

    def reduce(self, members: tuple[Member, ...], item: str, count: str, first: str = "") -> list[str]:
        """Combine the items of each chunk and keep its partial result."""
        found = self.group.reductions(members)
        if not found:
            return []
        work = self.group.work
        lines = [f"    const int l = {self.words.member};"]
        kinds = sorted({self.kind(arg) for _, arg in found})
        lines += [f"    {self.words.shared} {kind} s_{kind}[{work.block}];" for kind in kinds]
        live, chunk = f"l % {PART} == 0 && {item} < {count}", f"{first}{item} / {PART}"
        for member, arg in found:
            kind = self.kind(arg)
            for c in range(arg.dim):
                lines += self._tree(arg, f"g{member.number}_{arg.parameter}[{c}]", kind)
                total = f"s_{kind}[l]"
                for k in range(1, PART // _WARP):
                    total = self.combined(arg, total, f"s_{kind}[l + {k * _WARP}]")
                name = f"part{member.number}_{arg.parameter}"
                lines.append(f"    if ({live}) {name}[({chunk}) * {arg.dim} + {c}] = {total};")
                if (member, arg, c) != (*found[-1], found[-1][1].dim - 1):
                    lines.append(f"    {self.words.barrier}")
        return lines

    def _tree(self, arg: ArgSpec, value: str, kind: str) -> list[str]:
        """Leave the combination of each 32 items in the first one's place of the shared array."""
        if self.words.down:
            lines = [f"    {kind} w = {value};"]
            half = _WARP // 2
            while half:
                down = self.words.down.format(kind=kind, value="w", distance=half)
                lines.append(f"    w = {self.combined(arg, 'w', down)};")
                half //= 2
            body = [*lines, f"    if (l % {_WARP} == 0) s_{kind}[l] = w;"]
            return ["    {", *("    " + line for line in body), "    }", f"    {self.words.barrier}"]
        lines = [f"    s_{kind}[l] = {value};", f"    {self.words.barrier}"]
        half = _WARP // 2
        while half:
            both = self.combined(arg, f"s_{kind}[l]", f"s_{kind}[l + {half}]")
            lines.append(f"    if (l % {_WARP} < {half}) s_{kind}[l] = {both};")
            lines.append(f"    {self.words.barrier}")
            half //= 2
        return lines

    def finish(self, count: str) -> list[str]:
        """Combine the partial results of all chunks in one group."""
        found = self.group.reductions(self.group.members)
        kinds = sorted({self.kind(arg) for _, arg in found})
        lines = [f"    const int l = {self.words.member};"]
        lines += [f"    {self.words.shared} {kind} s_{kind}[{SHARES}];" for kind in kinds]
        return [*lines, *self._combine(count)]

    def _combine(self, count: str) -> list[str]:
        """Combine partial results: each item its share, then in a tree."""
        lines = []
        for member, arg in self.group.reductions(self.group.members):
            kind = self.kind(arg)
            part = f"part{member.number}_{arg.parameter}[(int64_t)p * {arg.dim} + c]"
            lines += [
                f"    for (int c = 0; c < {arg.dim}; c++) {{",
                f"        const int count = (int)({count});",
                f"        for (int v = l; v < {SHARES}; v += {self.words.finish}) {{",
                f"            {kind} total = {neutral(arg)};",
                f"            for (int first = v; first < count; first += {_BATCH * SHARES}) {{",
                f"                {kind} w[{_BATCH}];",  # all under way before the first is needed
                f"                for (int k = 0; k < {_BATCH}; k++) {{",
                f"                    const int p = first + k * {SHARES};",
                f"                    w[k] = p < count ? {part} : {neutral(arg)};",
                "                }",
                f"                for (int k = 0; k < {_BATCH}; k++) total = {self.combined(arg, 'total', 'w[k]')};",
                "            }",
                f"            s_{kind}[v] = total;",
                "        }",
                f"        {self.words.barrier}",
                f"        for (int h = {SHARES // 2}; h > 0; h /= 2) {{",
                f"            for (int v = l; v < h; v += {self.words.finish})",
                f"                s_{kind}[v] = {self.combined(arg, f's_{kind}[v]', f's_{kind}[v + h]')};",
                f"            {self.words.barrier}",
                "        }",
                f"        if (l == 0) d{arg.dat}[c] = "
                f"({arg.scalar.c}){self.combined(arg, f'd{arg.dat}[c]', f's_{kind}[0]')};",
                f"        {self.words.barrier}",
                "    }",
            ]
        return lines
