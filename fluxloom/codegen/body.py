"""What bodies of generated functions are written with: lines of text, and what is at hand of the own elements."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from fluxloom.codegen.member import Member
from fluxloom.codegen.spec import ArgSpec
from fluxloom.core.dtypes import Scalar

__all__ = ["Body"]


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
