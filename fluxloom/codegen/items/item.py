"""The body of a loop for one work item: load, compute, combine, store; its lines of text, and what it holds and moves.

One item handles one element of one or more fused loops. Direct arguments of the same dat share one
set of private values, so that a value written by one loop is read by the next from registers and
travels to memory once. Private arrays are indexed by constants wherever the kernel is, which lets
every compiler keep them in registers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from fluxloom.codegen.language.dialect import Dialect, KernelWords
from fluxloom.codegen.language.group import Group, Member
from fluxloom.codegen.language.lane import (
    ElementPrinter,
    LaneLoop,
    address,
    begins_with_updates,
    identity,
    leg_components,
    looped,
    opposite_legs,
    row_place,
    stored_length,
    touched,
)
from fluxloom.codegen.language.reduce import combine
from fluxloom.codegen.language.spec import ArgSpec
from fluxloom.codegen.packs.commit import Body
from fluxloom.core.access import Access
from fluxloom.core.dtypes import AoS

__all__ = ["Item", "Values", "scratch_legs"]


@dataclass
class Values(Body):
    """Writes the values of a work item: those of its own element, and rows in memory.

    Parameters
    ----------
    group, dialect
        What, and in which language.
    constants
        Names of the run-time constants in the order of their words.
    own
        C name of the element whose direct arguments are meant.
    limit
        Number of elements, when neighbouring items handle neighbouring elements; else empty.
    """

    group: Group
    dialect: Dialect
    constants: tuple[tuple[str, str], ...]
    own: str = "i"
    limit: str = ""

    def __post_init__(self) -> None:
        self.compute = self.group.members[0].spec.compute

    @property
    def words(self) -> KernelWords:
        """Spellings of the dialect."""
        assert self.dialect.words is not None
        return self.dialect.words

    @contextmanager
    def block(self, opening: str) -> Iterator[None]:
        """Write what follows inside braces."""
        self.line(opening + " {")
        self.pad += 1
        yield
        self.pad -= 1
        self.line("}")

    def mine(self, components: set[int]) -> set[int]:
        """Return those of some components that this kernel handles."""
        only = self.group.work.component
        return components if only < 0 else components & {only}

    # ------------------------------------------------------------------------------ own elements
    def declare_own(self) -> None:
        """Declare the private values of the element's own dats."""
        for arg in self.new_own(self.group.members):
            self.line(f"{self.real(arg)} o{arg.dat}[{arg.dim}];")

    def declare_increments(self) -> None:
        """Declare the values that scattering loops add to; start from memory or from a known zero."""
        for member in self.group.scatter:
            for arg in member.spec.increments:
                if arg.dat not in self._available:
                    if arg.dat not in self._own:
                        self._own[arg.dat] = arg
                        self.line(f"{self.real(arg)} o{arg.dat}[{arg.dim}];")
                    whole = self.mine(set(range(arg.dim)))
                    if arg.dat in self.group.zero:
                        for c in sorted(whole):
                            self.line(f"o{arg.dat}[{c}] = 0;")
                        self._available[arg.dat] = whole
                    else:
                        self.load_own(arg, whole)
                    self._dirty[arg.dat] = set(whole)

    def load_own(self, arg: ArgSpec, components: set[int]) -> None:
        """Load components of the element's own value that are not there yet."""
        have = self._available.setdefault(arg.dat, set())
        needed = components - have
        if needed:
            self._load(arg, f"o{arg.dat}", f"d{arg.dat}", self._place(arg), needed, have)
            have |= needed

    def _place(self, arg: ArgSpec) -> str:
        if not arg.positioned:
            return self.own
        name = f"z{arg.dat}_{self.own}"
        if self.fresh(name):
            self.line(f"const int {name} = z{arg.dat}[{self.own}];")
        return name

    def store_own(self) -> None:
        """Store what the loops have changed of the element's own values."""
        for dat, components in sorted(self._dirty.items()):
            if dat in self.group.elide:
                continue
            arg = self._own[dat]
            renamed = dat in self.group.renamed
            if renamed and len(components) < arg.dim:
                self.load_own(arg, set(range(arg.dim)))
                components = set(range(arg.dim))
            self._store(arg, f"o{dat}", f"d{dat}o" if renamed else f"d{dat}", self._place(arg), components)

    # ------------------------------------------------------------------------------ memory rows
    def where(self, arg: ArgSpec, index: str, component: int | str) -> str:
        """Return the C offset of a component of an element in a dat's storage."""
        return address(arg, f"(int64_t){index}", component, "")

    def _width(self, arg: ArgSpec) -> int:
        """Return how many neighbouring components one access moves."""
        if not isinstance(arg.layout, AoS) or not arg.scalar.floating:
            return 1
        if arg.scalar.size == 8:
            return 2 if arg.dim % 2 == 0 else 1
        if arg.scalar.size == 4:
            return 4 if arg.dim % 4 == 0 else 2 if arg.dim % 2 == 0 else 1
        return 1

    def _load(self, arg: ArgSpec, out: str, pointer: str, index: str, needed: set[int], have: set[int]) -> None:
        width, kind = self._width(arg), self.real(arg)
        cast = "" if arg.scalar.c == kind else f"({kind})"
        for first in range(0, arg.dim, width):
            inside = set(range(first, first + width))
            if width > 1 and len(inside & needed) > 1 and not inside & have:
                vector = f"{arg.scalar.c}{width}"
                pointed = self.words.cast.format(const="const ", type=vector)
                where = self.where(arg, index, first)
                moves = " ".join(f"{out}[{first + k}] = {cast}w.{'xyzw'[k]};" for k in range(width))
                self.line(f"{{ const {vector} w = *{pointed}({pointer} + {where}); {moves} }}")
                continue
            for c in sorted(inside & needed):
                self.line(f"{out}[{c}] = {cast}{pointer}[{self.where(arg, index, c)}];")

    def _store(self, arg: ArgSpec, value: str, pointer: str, index: str, components: set[int]) -> None:
        width = self._width(arg)
        cast = "" if arg.scalar.c == self.real(arg) else f"({arg.scalar.c})"
        whole = width > 1 and width * 2 == arg.dim == len(components)
        if self.words.rows and self.limit and whole and index == self.own:
            values = ", ".join(f"{cast}{value}[{k}]" for k in range(arg.dim))
            name = self.words.rows.format(type=arg.scalar.c, dim=arg.dim)
            self.line(f"{name}({pointer}, {index}, ({index} | 31) < {self.limit}, {values});")
            return
        for first in range(0, arg.dim, width):
            inside = set(range(first, first + width))
            if width > 1 and inside <= components:
                vector = f"{arg.scalar.c}{width}"
                pointed = self.words.cast.format(const="", type=vector)
                where = self.where(arg, index, first)
                values = ", ".join(f"{cast}{value}[{first + k}]" for k in range(width))
                whole = self.words.vector.format(type=vector, values=values)
                self.line(f"*{pointed}({pointer} + {where}) = {whole};")
                continue
            for c in sorted(inside & components):
                self.line(f"{pointer}[{self.where(arg, index, c)}] = {cast}{value}[{c}];")


def scratch_legs(member: Member, arg: ArgSpec) -> list[int]:
    """Return the legs whose increments are kept for a second pass: not those that negate another one."""
    opposite = opposite_legs(member.spec)
    return [leg for leg in range(arg.legs) if (arg.parameter, leg) not in opposite]


class Item(Values):
    """Writes the statements of one work item."""

    # ---------------------------------------------------------------------------------- members
    def member(self, member: Member, element: str, commit: str) -> None:
        """Write one loop for the element of C name ``element``; its increments go where ``commit`` says."""
        spec = member.spec
        kept, self._ids = self._ids, set()
        with self.block(f"/* {spec.name} */"):
            for arg in spec.args:
                if arg.kind == "direct" and arg.access is not Access.WRITE:
                    if element == self.own:
                        self.load_own(arg, touched(spec, arg, 0))
                    else:
                        self._load_foreign(member, arg, element)
            self._load_ids(member, element)
            for arg in spec.args:
                if arg.kind == "table":
                    self._load_table(member, arg, element)
                elif arg.kind == "global":
                    self._global(member, arg)
                elif arg.kind in ("ragged", "entries"):
                    self._ragged(arg, element)
            self._compute(member, commit, element)
            self._commit(member, commit, element)
        self._ids = kept

    def _load_foreign(self, member: Member, arg: ArgSpec, element: str) -> None:
        """Load a direct argument of an element of another set than the work item's."""
        name = f"p{member.number}_{arg.parameter}"
        self.line(f"{self.real(arg)} {name}[1][{arg.dim}];")
        place = element
        if arg.positioned:
            place = f"z{arg.dat}_{element}"
            self.line(f"const int {place} = z{arg.dat}[{element}];")
        self._load(arg, f"{name}[0]", f"d{arg.dat}", place, touched(member.spec, arg, 0), set())

    def _load_ids(self, member: Member, element: str) -> None:
        """Load the targets of the element, a whole row at once where its width allows."""
        used: dict[int, tuple[ArgSpec, set[int]]] = {}
        for arg in member.spec.args:
            if arg.kind == "table" and not looped(member.spec, arg):
                legs = {arg.leg} if arg.leg >= 0 else {k for k in range(arg.legs) if touched(member.spec, arg, k)}
                used.setdefault(arg.map, (arg, set()))[1].update(legs)
        for number, (arg, legs) in used.items():
            name = f"m{number}"
            kind = "int64_t" if arg.wide else "int"
            if arg.arity in (2, 4) and 2 * len(legs) > arg.arity and not arg.wide:
                vector = f"int{arg.arity}"
                pointed = self.words.cast.format(const="const ", type=vector)
                self.line(f"const {vector} {name}_row = *{pointed}({name} + (int64_t){element} * {arg.arity});")
                for leg in sorted(legs):
                    self.line(f"const int {name}_{leg} = {name}_row.{'xyzw'[leg]};")
                continue
            for leg in sorted(legs):
                row = f"(int64_t){element} * {arg.arity} + {leg}" if arg.arity > 1 else element
                self.line(f"const {kind} {name}_{leg} = {name}[{row}];")

    def _load_table(self, member: Member, arg: ArgSpec, element: str) -> None:
        name = f"p{member.number}_{arg.parameter}"
        self.line(f"{self.real(arg)} {name}[{arg.legs}][{arg.dim}];")
        if looped(member.spec, arg):
            self._load_legs(member, arg, element)
            return
        if arg.access in (Access.READ, Access.RW):
            for leg in range(arg.legs):
                target = f"m{arg.map}_{arg.column(leg)}"
                self._load(arg, f"{name}[{leg}]", f"d{arg.dat}", target, touched(member.spec, arg, leg), set())

    def legs(self, member: Member, arg: ArgSpec, element: str = "") -> Iterator[tuple[str, str, set[int]]]:
        """Yield the legs of an argument, in a loop if there are many, with their targets and components to handle."""
        if looped(member.spec, arg):
            with self.each_leg(arg, element):
                yield "g", f"m{arg.map}_g", self.mine(touched(member.spec, arg, 0))
            return
        for leg in range(arg.legs):
            yield str(leg), f"m{arg.map}_{arg.column(leg)}", self.mine(touched(member.spec, arg, leg))

    @contextmanager
    def each_leg(self, arg: ArgSpec, element: str = "") -> Iterator[None]:
        """Write what follows for each leg ``g`` of an argument with many; of an element, with its target."""
        with self.block(f"for (int g = 0; g < {arg.legs}; g++)"):
            if element:
                kind = "int64_t" if arg.wide else "int"
                self.line(f"const {kind} m{arg.map}_g = m{arg.map}[(int64_t){element} * {arg.arity} + g];")
            yield

    def _load_legs(self, member: Member, arg: ArgSpec, element: str) -> None:
        """Load an argument leg by leg in a loop, or give its increments their start."""
        name, used = f"p{member.number}_{arg.parameter}", leg_components(member.spec, arg)
        if arg.access in (Access.READ, Access.RW):
            with self.each_leg(arg, element):
                self._load(arg, f"{name}[g]", f"d{arg.dat}", f"m{arg.map}_g", used, set())
        elif arg.access.reduces and not begins_with_updates(member.spec, arg):
            with self.each_leg(arg):
                for c in range(arg.dim):
                    self.line(f"{name}[g][{c}] = {identity(arg)};")

    def _global(self, member: Member, arg: ArgSpec) -> None:
        name, kind = f"p{member.number}_{arg.parameter}", self.real(arg)
        if arg.access is Access.READ:
            values = ", ".join(f"({kind})d{arg.dat}[{c}]" for c in range(arg.dim))
            self.line(f"const {kind} {name}[{arg.dim}] = {{{values}}};")

    def _ragged(self, arg: ArgSpec, element: str) -> None:
        """Declare the row of a ragged map: its length, first position and stride."""
        assert arg.ragged is not None
        name = f"r{arg.map}"
        if not self.fresh(name):
            return
        self.add(row_place(arg, element))
        self._row_length(arg, element)

    def _row_length(self, arg: ArgSpec, element: str) -> None:
        self.line(f"const int row{arg.map}_length = {self.row_length(stored_length(arg, element))};")

    def row_length(self, stored: str) -> str:
        """Return the C length of a row from the stored one."""
        return stored

    def _compute(self, member: Member, commit: str, element: str) -> None:
        """Write the kernel itself."""
        foreign = element != self.own

        def place(arg: ArgSpec, leg: str, component: str, number: int) -> str:
            if arg.kind == "direct" and not foreign:
                return f"o{arg.dat}[{component}]"
            if arg.kind == "global" and arg.access is Access.READ:
                return f"p{number}_{arg.parameter}[{component}]"
            if arg.kind == "global":
                return f"g{number}_{arg.parameter}[{component}]"
            return f"p{number}_{arg.parameter}[{leg}][{component}]"

        loop = self.lane_loop(member, place, commit == "atomic")
        body = loop.write(self.pad)
        self.lines += ["    " * (self.pad - 1) + c for c in loop.constants]
        self.lines += body

    def lane_loop(self, member: Member, place: ElementPrinter, atomic: bool) -> LaneLoop:
        """Return what writes the kernel itself."""
        loop = LaneLoop(member.spec, member.number, self.dialect, self.compute, place, atomic, self.constant)
        loop.forwards = len(self.group.members) > 1
        return loop

    def constant(self, number: int, name: str) -> str:
        """Return the C expression of a run-time constant."""
        wanted = f"{number}_{name}"
        place = next(k for k, (_, known) in enumerate(self.constants) if known == wanted)
        return self.words.bits[self.constants[place][0]].format(word=f"K[{place}]")

    # ----------------------------------------------------------------------------------- commit
    def _commit(self, member: Member, commit: str, element: str) -> None:
        spec = member.spec
        for arg in spec.args:
            if arg.kind == "direct" and arg.access is not Access.READ:
                self.changed(arg, self.mine(touched(spec, arg, 0)))
            elif arg.kind == "table" and arg.access in (Access.WRITE, Access.RW):
                for leg, target, used in self.legs(member, arg, element):
                    self._store(arg, f"p{member.number}_{arg.parameter}[{leg}]", f"d{arg.dat}", target, used)
            elif arg.kind == "table" and arg.access.reduces:
                self._increments(member, arg, commit, element)

    def _increments(self, member: Member, arg: ArgSpec, commit: str, element: str) -> None:
        if commit == "scratch":
            self._scratch(member, arg, element)
            return
        name = f"p{member.number}_{arg.parameter}"
        if commit == "pick":
            self._pick(member, arg, name)
            return
        for leg, target, used in self.legs(member, arg, element):
            for c in sorted(used):
                where, value = f"d{arg.dat}[{address(arg, f'(int64_t){target}', c, '')}]", f"{name}[{leg}][{c}]"
                if commit == "atomic":
                    self.line(f"fl_atomic_add_{arg.scalar.c}(&{where}, ({arg.scalar.c}){value});")
                else:
                    self.line(self.combined(arg, where, value))

    def _pick(self, member: Member, arg: ArgSpec, name: str) -> None:
        """Add what the leg at hand has to the values of the element that the work item is for."""
        many = looped(member.spec, arg)
        for leg in ("leg",) if many else range(arg.legs):
            used = sorted(self.mine(touched(member.spec, arg, 0 if many else int(leg))))
            only = "" if many or arg.legs == 1 else f"if (leg == {leg}) "
            if used:
                added = (self.combined(arg, f"o{arg.dat}[{c}]", f"{name}[{leg}][{c}]") for c in used)
                self.line(f"{only}{{ {' '.join(added)} }}")

    def combined(self, arg: ArgSpec, target: str, value: str) -> str:
        """Return the statement that adds an increment to a private value or to memory."""
        kind = self.real(arg)
        narrow = not target.startswith("o") and arg.scalar.c != kind
        cast, old = (f"({arg.scalar.c})", f"({kind}){target}") if narrow else ("", target)
        total = combine(arg, old, value, kind)
        return f"{target} = {cast}({total});" if arg.access is Access.INC else f"{target} = {cast}{total};"

    def _scratch(self, member: Member, arg: ArgSpec, element: str) -> None:
        """Keep increments for a second pass, component after component, so that neighbours meet."""

        def keep(leg: str, used: set[int], row: Callable[[int], int | str]) -> None:
            for c in range(arg.dim):
                value = f"({arg.scalar.c})p{member.number}_{arg.parameter}[{leg}][{c}]" if c in used else identity(arg)
                self.line(f"x{arg.dat}_{arg.parameter}[{row(c)} * n + {element}] = {value};")

        if looped(member.spec, arg):
            with self.each_leg(arg):
                keep("g", touched(member.spec, arg, 0), lambda c: f"(int64_t)(g * {arg.dim} + {c})")
            return
        for position, leg in enumerate(scratch_legs(member, arg)):
            keep(str(leg), touched(member.spec, arg, leg), lambda c, first=position * arg.dim: first + c)
