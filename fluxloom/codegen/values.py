"""What a work item holds and moves: its lines of text, the values of its own element, rows of memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from fluxloom.codegen.body import Body
from fluxloom.codegen.dialect import Dialect, KernelWords
from fluxloom.codegen.group import Group
from fluxloom.codegen.lane import address
from fluxloom.codegen.spec import ArgSpec
from fluxloom.core.layout import AoS

__all__ = ["Values"]


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
