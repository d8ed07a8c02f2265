"""How the private increments of a pack reach memory."""

from __future__ import annotations

from typing import Protocol

from fluxloom.codegen.lane import address, identity
from fluxloom.codegen.member import Member, PackStyle
from fluxloom.codegen.places import opposite_legs, touched
from fluxloom.codegen.rows import RowShape, chunks, vector
from fluxloom.codegen.spec import ArgSpec
from fluxloom.core.access import Access
from fluxloom.core.dtypes import Scalar
from fluxloom.core.layout import AoS

__all__ = ["Commit", "PackLike"]


class PackLike(Protocol):
    """What a commit needs of the pack it belongs to."""

    style: PackStyle
    compute: Scalar
    lines: list[str]

    def line(self, text: str) -> None:
        """Add one line."""
        ...

    def helper(self, shape: RowShape) -> str:
        """Ask for a row helper; returns its C name."""
        ...

    def need_ids(self, arg: ArgSpec, leg: int) -> str:
        """Load the targets of one leg; returns the name of the array."""
        ...

    def real(self, arg: ArgSpec) -> str:
        """Return the C type in which the kernel sees an argument."""
        ...


class Commit:
    """Adds the private increments of a pack to memory, element by element, leg by leg."""

    def __init__(self, pack: PackLike, member: Member, args: list[ArgSpec]) -> None:
        self.pack, self.member, self.args = pack, member, args

    def write(self) -> None:
        """Add the statements to the pack."""
        commit = self.pack.style.commit
        if commit == "scratch":
            self._scratch()
        elif commit == "pick":
            self._pick()
        elif self._vectorisable():
            self._rows()
        else:
            self._scalar()

    def _vectorisable(self) -> bool:
        style = self.pack.style
        return (
            style.lanes >= 4
            and style.commit in ("serial", "tile", "inside")
            and all(
                isinstance(a.layout, AoS) and a.access is Access.INC and a.scalar.floating and a.scalar.size > 2
                for a in self.args
            )
        )

    def _legs(self, arg: ArgSpec) -> list[tuple[int, set[int]]]:
        out = []
        for leg in range(arg.legs):
            used = touched(self.member.spec, arg, leg)
            if used:
                out.append((leg, used))
        return out

    def _target(self, arg: ArgSpec, ids: str, lane: str) -> str:
        """Return the C expression of a pointer to the target's first component (AoS)."""
        local = arg.dat in self.pack.style.tile_dats
        if self.pack.style.commit == "tile":
            base = f"b{arg.dat}" if local else f"(A->d{arg.dat} + t0 * {arg.dim})"
            number = f"({ids}[{lane}] - (uint32_t)t0)"
            # Targets of other tiles go to a dummy row: no branch in the loop.
            return f"({number} < tn ? {base} + (size_t){number} * {arg.dim} : w{arg.dat})"
        if local:
            return f"(b{arg.dat} + (size_t)({ids}[{lane}] - (uint32_t)t0) * {arg.dim})"
        return f"(A->d{arg.dat} + (size_t){ids}[{lane}] * {arg.dim})"

    def _rows(self) -> None:
        pack, lanes = self.pack, self.pack.style.lanes
        moves: list[list[str]] = [[] for _ in range(lanes)]
        opposite = opposite_legs(self.member.spec)
        for arg in self.args:
            name = f"p{self.member.number}_{arg.parameter}"
            for leg, used in self._legs(arg):
                ids = pack.need_ids(arg, arg.leg if arg.leg >= 0 else leg)
                source = opposite.get((arg.parameter, leg))
                sign = "-" if source is not None else "+"
                for offset, width in chunks(arg.dim, lanes, arg.scalar):
                    inside = set(range(offset, offset + width))
                    if not inside & used:
                        continue
                    rows = f"x{arg.dat}_{arg.parameter}_{leg if source is None else source}_{offset}"
                    if source is None:
                        self._declare_rows(arg, name, leg, offset, width, rows, inside - used)
                    for lane in range(lanes):
                        moves[lane].append(self._move(arg, ids, lane, offset, width, rows, sign))
        for lane in range(lanes):
            for move in moves[lane]:
                pack.line(move)

    def _declare_rows(
        self, arg: ArgSpec, name: str, leg: int, offset: int, width: int, rows: str, unused: set[int]
    ) -> None:
        pack, lanes = self.pack, self.pack.style.lanes
        for c in sorted(unused):
            pack.line(f"for (int l = 0; l < {lanes}; l++) {name}[{leg}][{c}][l] = 0;")
        if width == 1:
            pack.line(f"const {pack.compute.c} *const {rows} = {name}[{leg}][{offset}];")
            return
        shape = pack.helper(RowShape("unpack", arg.scalar, pack.compute, width, lanes))
        pack.line(f"{vector(arg.scalar, width)} {rows}[{lanes}];")
        pack.line(f"{shape}({rows}, {name}[{leg}] + {offset});")

    def _move(self, arg: ArgSpec, ids: str, lane: int, offset: int, width: int, rows: str, sign: str) -> str:
        target = self._target(arg, ids, str(lane))
        place = f"{target} + {offset}" if offset else target
        if width == 1:
            return f"*({place}) {sign}= ({arg.scalar.c}){rows}[{lane}];"
        return f"*({vector(arg.scalar, width)}u *)({place}) {sign}= {rows}[{lane}];"

    def _scalar(self) -> None:
        pack, lanes = self.pack, self.pack.style.lanes
        atomic = pack.style.commit == "atomic"
        ids = {
            (arg.parameter, leg): pack.need_ids(arg, arg.leg if arg.leg >= 0 else leg)
            for arg in self.args
            for leg, _ in self._legs(arg)
        }
        pack.line(f"for (int l = 0; l < {lanes}; l++) {{")
        for arg in self.args:
            name = f"p{self.member.number}_{arg.parameter}"
            for leg, used in self._legs(arg):
                lane_ids = ids[(arg.parameter, leg)]
                guard = f"if (({lane_ids}[l] - (uint32_t)t0) < tn) " if pack.style.commit == "tile" else ""
                for c in sorted(used):
                    index = f"(size_t){lane_ids}[l]"
                    base = f"A->d{arg.dat}"
                    if arg.dat in pack.style.tile_dats:
                        base, index = f"b{arg.dat}", f"(size_t)({lane_ids}[l] - (uint32_t)t0)"
                    target = f"{base}[{address(arg, index, c)}]"
                    self._scalar_update(arg, target, f"{name}[{leg}][{c}][l]", guard, atomic)
        pack.line("}")

    def _scalar_update(self, arg: ArgSpec, target: str, value: str, guard: str, atomic: bool) -> None:
        pack = self.pack
        if arg.access is Access.INC:
            if atomic:
                pack.lines.append("#pragma omp atomic")
            pack.line(f"    {guard}{target} += ({arg.scalar.c}){value};")
            return
        function = ("fl_min" if arg.access is Access.MIN else "fl_max") + f"_{pack.real(arg)}"
        if atomic:
            pack.lines.append("#pragma omp critical(fluxloom)")
        pack.line(f"    {guard}{target} = ({arg.scalar.c}){function}({target}, {value});")

    def _pick(self) -> None:
        """Keep only the increments of the leg through which the current target is met."""
        for arg in self.args:
            name = f"p{self.member.number}_{arg.parameter}"
            for leg, used in self._legs(arg):
                self.pack.line(f"if (leg == {leg}) {{")
                for c in sorted(used):
                    target = f"A->d{arg.dat}[{address(arg, 'target', c)}]"
                    self._scalar_update(arg, target, f"{name}[{leg}][{c}][0]", "", False)
                self.pack.line("}")

    def _scratch(self) -> None:
        pack, lanes = self.pack, self.pack.style.lanes
        for arg in self.args:
            name = f"p{self.member.number}_{arg.parameter}"
            stride = arg.legs * arg.dim
            element = "(size_t)e[l]" if pack.style.listed else "(i + l)"
            for leg in range(arg.legs):
                used = touched(self.member.spec, arg, leg)
                for c in range(arg.dim):
                    value = f"({arg.scalar.c}){name}[{leg}][{c}][l]" if c in used else identity(arg)
                    pack.line(
                        f"for (int l = 0; l < {lanes}; l++) "
                        f"A->x{arg.dat}_{arg.parameter}[{element} * {stride} + {leg * arg.dim + c}] = {value};"
                    )
