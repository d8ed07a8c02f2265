"""How the private increments of a pack reach memory, and what bodies of generated functions are written with."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from fluxloom.codegen.language.dialect import Dialect
from fluxloom.codegen.language.group import Member, PackStyle
from fluxloom.codegen.language.lane import address, identity, looped, opposite_legs, touched
from fluxloom.codegen.language.reduce import combine
from fluxloom.codegen.language.spec import ArgSpec
from fluxloom.codegen.packs.rows import RowShape, chunks, vector
from fluxloom.core.access import Access
from fluxloom.core.dtypes import AoS, Scalar

__all__ = ["Body", "Commit", "PackBody"]


@dataclass
class Body:
    """Lines of a body, what has been declared in it, and which components of the element's own dats are there."""

    lines: list[str] = field(default_factory=list[str], init=False)
    pad: int = field(default=1, init=False)
    compute: Scalar = field(init=False)
    _own: dict[int, ArgSpec] = field(default_factory=dict[int, ArgSpec], init=False)
    _available: dict[int, set[int]] = field(default_factory=dict[int, set[int]], init=False)
    _dirty: dict[int, set[int]] = field(default_factory=dict[int, set[int]], init=False)
    _ids: set[str] = field(default_factory=set[str], init=False)

    def line(self, text: str) -> None:
        """Add one line."""
        self.lines.append("    " * self.pad + text)

    def add(self, lines: list[str]) -> None:
        """Add some lines, indented."""
        for text in lines:
            self.line(text.strip())

    def real(self, arg: ArgSpec) -> str:
        """Return the C type in which the kernel sees an argument."""
        return self.compute.c if arg.scalar.floating else "int64_t"

    def fresh(self, name: str) -> bool:
        """Whether a name has to be declared; from now on it is."""
        known = name in self._ids
        self._ids.add(name)
        return not known

    def new_own(self, members: Iterable[Member]) -> Iterator[ArgSpec]:
        """Yield arguments of the element's own dats that have to be declared; from now on they are."""
        for member in members:
            for arg in member.spec.args:
                if arg.kind == "direct" and arg.dat not in self._own:
                    self._own[arg.dat] = arg
                    yield arg

    def changed(self, arg: ArgSpec, components: set[int]) -> None:
        """Note that components of the element's own value have been changed."""
        self._available.setdefault(arg.dat, set()).update(components)
        self._dirty.setdefault(arg.dat, set()).update(components)


@dataclass
class PackBody(Body):
    """What the body of a pack function asks for: the targets of legs, and helpers that move rows."""

    members: tuple[Member, ...]
    style: PackStyle
    dialect: Dialect
    helpers: set[RowShape] = field(default_factory=set[RowShape])

    def __post_init__(self) -> None:
        self.compute = self.members[0].spec.compute

    def helper(self, shape: RowShape) -> str:
        """Ask for a row helper; returns its C name."""
        self.helpers.add(shape)
        return shape.name

    def need_ids(self, arg: ArgSpec, leg: int | str) -> str:
        """Load the targets of one leg, once; returns the name of the array."""
        name = f"m{arg.map}_{leg}"
        if self.fresh(name):
            lanes = self.style.lanes
            row = "(size_t)e[l]" if self.style.listed else "(i + l)"
            kind = "uint64_t" if arg.wide else "uint32_t"
            self.line(f"{kind} {name}[{lanes}];")
            self.line(
                f"for (int l = 0; l < {lanes}; l++) {name}[l] = ({kind})A->m{arg.map}[{row} * {arg.arity} + {leg}];"
            )
        return name

    @contextmanager
    def each_leg(self, arg: ArgSpec) -> Iterator[str]:
        """Write what follows for each leg ``g`` of an argument with many; gives the array of its targets."""
        self.line(f"for (int g = 0; g < {arg.legs}; g++) {{")
        name = self.need_ids(arg, "g")
        yield name
        self._ids.discard(name)
        self.line("}")

    def legs(self, member: Member, arg: ArgSpec) -> Iterator[tuple[int | str, str, set[int]]]:
        """Yield the legs of an argument, in a loop if there are many, with arrays of their targets, and components."""
        if looped(member.spec, arg):
            with self.each_leg(arg) as ids:
                yield "g", ids, touched(member.spec, arg, 0)
            return
        for leg in range(arg.legs):
            yield leg, self.need_ids(arg, arg.column(leg)), touched(member.spec, arg, leg)


class Commit:
    """Adds the private increments of a pack to memory, element by element, leg by leg."""

    def __init__(self, pack: PackBody, member: Member, args: list[ArgSpec]) -> None:
        self.pack, self.member, self.args = pack, member, args
        self.looped = frozenset(a.parameter for a in args if looped(member.spec, a))

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
        found = [(leg, touched(self.member.spec, arg, leg)) for leg in range(arg.legs)]
        return [(leg, used) for leg, used in found if used]

    def _each_leg(self, arg: ArgSpec) -> str:
        """Return the head of a loop over the legs of an argument with many, which names the target of lane ``l``."""
        row = "(size_t)e[l]" if self.pack.style.listed else "(i + l)"
        target = f"const uint32_t t = (uint32_t)A->m{arg.map}[{row} * {arg.arity} + g];"
        return f"for (int g = 0; g < {arg.legs}; g++) {{ {target}"

    def _target(self, arg: ArgSpec, target: str) -> str:
        """Return the C expression of a pointer to the target's first component (AoS)."""
        local = arg.dat in self.pack.style.tile_dats
        if self.pack.style.commit == "tile":
            base = f"b{arg.dat}" if local else f"(A->d{arg.dat} + t0 * {arg.dim})"
            number = f"({target} - (uint32_t)t0)"
            # Targets of other tiles go to a dummy row: no branch in the loop.
            return f"({number} < tn ? {base} + (size_t){number} * {arg.dim} : w{arg.dat})"
        if local:
            return f"(b{arg.dat} + (size_t)({target} - (uint32_t)t0) * {arg.dim})"
        return f"(A->d{arg.dat} + (size_t){target} * {arg.dim})"

    def _rows(self) -> None:
        pack, numbers = self.pack, ["l"] if self.looped else [str(lane) for lane in range(self.pack.style.lanes)]
        moves: list[list[str]] = [[] for _ in numbers]
        opposite = opposite_legs(self.member.spec)
        for arg in self.args:
            name = f"p{self.member.number}_{arg.parameter}"
            if arg.parameter in self.looped:
                moves[0] += self._leg_rows(arg, name)
                continue
            for leg, used in self._legs(arg):
                ids = pack.need_ids(arg, arg.column(leg))
                source = opposite.get((arg.parameter, leg))
                sign = "-" if source is not None else "+"
                for offset, width in chunks(arg.dim, pack.style.lanes, arg.scalar):
                    inside = set(range(offset, offset + width))
                    if not inside & used:
                        continue
                    rows = f"x{arg.dat}_{arg.parameter}_{leg if source is None else source}_{offset}"
                    if source is None:
                        self._declare_rows(arg, name, leg, offset, width, rows, inside - used)
                    for found, lane in zip(moves, numbers, strict=True):
                        found.append(self._move(arg, f"{ids}[{lane}]", offset, width, f"{rows}[{lane}]", sign))
        self._write_moves(moves)

    def _write_moves(self, moves: list[list[str]]) -> None:
        """Add rows to memory lane by lane: one after the other, or in a loop where there is a list for all."""
        pack = self.pack
        if self.looped:
            pack.line(f"for (int l = 0; l < {pack.style.lanes}; l++) {{")
        for found in moves:
            for move in found:
                pack.line(move)
        if self.looped:
            pack.line("}")

    def _leg_rows(self, arg: ArgSpec, name: str) -> list[str]:
        """Return what adds the rows of all legs of one lane to memory."""
        pack, lanes = self.pack, self.pack.style.lanes
        used = touched(self.member.spec, arg, 0)
        legs, out = f"for (int g = 0; g < {arg.legs}; g++)", [self._each_leg(arg)]
        for offset, width in chunks(arg.dim, lanes, arg.scalar):
            inside = set(range(offset, offset + width))
            if not inside & used:
                continue
            for c in sorted(inside - used):
                pack.line(f"{legs} for (int l = 0; l < {lanes}; l++) {name}[g][{c}][l] = 0;")
            value = f"{name}[g][{offset}][l]"
            if width > 1:
                shape = pack.helper(RowShape("unpack", arg.scalar, pack.compute, width, lanes))
                rows = f"x{name}_{offset}"
                pack.line(f"{vector(arg.scalar, width)} {rows}[{arg.legs}][{lanes}];")
                pack.line(f"{legs} {shape}({rows}[g], {name}[g] + {offset});")
                value = f"{rows}[g][l]"
            out.append(f"    {self._move(arg, 't', offset, width, value, '+')}")
        return [*out, "}"]

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

    def _move(self, arg: ArgSpec, number: str, offset: int, width: int, value: str, sign: str) -> str:
        target = self._target(arg, number)
        place = f"{target} + {offset}" if offset else target
        if width == 1:
            return f"*({place}) {sign}= ({arg.scalar.c}){value};"
        return f"*({vector(arg.scalar, width)}u *)({place}) {sign}= {value};"

    def _scalar(self) -> None:
        pack, lanes = self.pack, self.pack.style.lanes
        ids = {
            (arg.parameter, leg): pack.need_ids(arg, arg.column(leg))
            for arg in self.args
            if arg.parameter not in self.looped
            for leg, _ in self._legs(arg)
        }
        pack.line(f"for (int l = 0; l < {lanes}; l++) {{")
        for arg in self.args:
            name = f"p{self.member.number}_{arg.parameter}"
            if arg.parameter in self.looped:
                pack.line(self._each_leg(arg))
                self._scalar_leg(arg, "t", f"{name}[g]", touched(self.member.spec, arg, 0))
                pack.line("}")
                continue
            for leg, used in self._legs(arg):
                self._scalar_leg(arg, f"{ids[(arg.parameter, leg)]}[l]", f"{name}[{leg}]", used)
        pack.line("}")

    def _scalar_leg(self, arg: ArgSpec, number: str, value: str, used: set[int]) -> None:
        style = self.pack.style
        guard = f"if (({number} - (uint32_t)t0) < tn) " if style.commit == "tile" else ""
        for c in sorted(used):
            base, index = f"A->d{arg.dat}", f"(size_t){number}"
            if arg.dat in style.tile_dats:
                base, index = f"b{arg.dat}", f"(size_t)({number} - (uint32_t)t0)"
            target = f"{base}[{address(arg, index, c)}]"
            self._scalar_update(arg, target, f"{value}[{c}][l]", guard, style.commit == "atomic")

    def _scalar_update(self, arg: ArgSpec, target: str, value: str, guard: str, atomic: bool) -> None:
        pack = self.pack
        adds, cast = arg.access is Access.INC, f"({arg.scalar.c})"
        if atomic:
            pack.lines.append(f"#pragma omp {'atomic' if adds else 'critical(fluxloom)'}")
        change = f"+= {cast}{value}" if adds else f"= {cast}{combine(arg, target, value, pack.real(arg))}"
        pack.line(f"    {guard}{target} {change};")

    def _pick(self) -> None:
        """Keep only the increments of the leg through which the current target is met."""
        for arg in self.args:
            name = f"p{self.member.number}_{arg.parameter}"
            legs: list[tuple[int | str, set[int]]] = list(self._legs(arg))
            if arg.parameter in self.looped:
                legs = [("leg", touched(self.member.spec, arg, 0))]
            for leg, used in legs:
                self.pack.line("{" if leg == "leg" else f"if (leg == {leg}) {{")
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
            wide = arg.parameter in self.looped
            for leg in range(1 if wide else arg.legs):
                used, loop = touched(self.member.spec, arg, leg), f"for (int l = 0; l < {lanes}; l++)"
                for c in range(arg.dim):
                    place = f"g * {arg.dim} + {c}" if wide else str(leg * arg.dim + c)
                    value = f"({arg.scalar.c}){name}[{'g' if wide else leg}][{c}][l]" if c in used else identity(arg)
                    head = f"{loop} for (int g = 0; g < {arg.legs}; g++)" if wide else loop
                    pack.line(f"{head} A->x{arg.dat}_{arg.parameter}[{element} * {stride} + {place}] = {value};")
