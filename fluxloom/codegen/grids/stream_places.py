"""What a loop over a grid moves when it is driven line by line, and the kernel in terms of it."""

from __future__ import annotations

from dataclasses import dataclass

from fluxloom.codegen.language.dialect import Dialect
from fluxloom.codegen.language.group import Group, Member
from fluxloom.codegen.language.lane import LaneLoop, address, constant_place, flatten
from fluxloom.codegen.language.spec import ArgSpec, LoopSpec
from fluxloom.core.access import Access
from fluxloom.core.dtypes import FLOAT16, Scalar, SoA
from fluxloom.kernel import ir
from fluxloom.kernel.analysis import expressions, walk

__all__ = ["LINE", "LineLoop", "Places", "Row", "Source", "Target", "streams", "width_of"]

LINE = 64
"""Bytes that move together between memory and the caches."""

_MOST = 32
"""Elements at a time: a line of numbers of two bytes."""

Row = tuple[int, int]
"""Distance of a row of neighbours along the two outer axes."""


@dataclass(frozen=True)
class Source:
    """One row of numbers that a kernel reads: a component of a dat, some elements away."""

    arg: ArgSpec
    component: int
    row: Row
    shift: int


@dataclass(frozen=True)
class Target:
    """One row of numbers that a kernel changes; all but written ones are read before."""

    arg: ArgSpec
    leg: int
    component: int
    row: Row
    shift: int

    @property
    def read(self) -> bool:
        """Whether the kernel starts from what is stored."""
        return self.arg.access is not Access.WRITE


def streams(group: Group) -> bool:
    """Return whether a group is one loop that `fluxloom.codegen.grids.stream.StreamDriver` can drive, and is to.

    Components have to lie apart in memory, legs and components to be known when code is generated, and a dat that is
    changed to be the dat of no other argument.
    """
    if not group.stream or len(group.members) != 1 or group.listed or group.lanes <= 1:
        return False
    spec = group.members[0].spec
    changed = [a.dat for a in spec.args if a.kind != "global" and a.access is not Access.READ]
    every = [a.dat for a in spec.args if a.kind != "global"]
    return all(_fits(spec, arg) for arg in spec.args) and all(every.count(dat) == 1 for dat in changed)


def _fits(spec: LoopSpec, arg: ArgSpec) -> bool:
    if arg.kind == "global":
        return arg.access is Access.READ or spec.used[arg.parameter] is not None
    if arg.kind not in ("direct", "stencil") or spec.used[arg.parameter] is None:
        return False
    return arg.dim == 1 or isinstance(arg.layout, SoA)


def width_of(group: Group) -> int:
    """Return the elements at a time: a whole line of each dat, if they are not too many."""
    floats = [a.scalar.size for m in group.members for a in m.spec.args if a.kind != "global" and a.scalar.floating]
    return max(group.lanes, min(_MOST, LINE // min(floats, default=8)))


class Places:
    """The rows of numbers that one loop moves.

    Parameters
    ----------
    spec
        The loop.
    """

    def __init__(self, spec: LoopSpec) -> None:
        self.sources: list[Source] = []
        self.targets: list[Target] = []
        self._read: dict[tuple[str, int, int], int] = {}
        self._changed: dict[tuple[str, int, int], int] = {}
        known: dict[tuple[int, int, Row, int], int] = {}
        for arg in spec.args:
            used = spec.used[arg.parameter]
            if arg.kind == "global" or used is None:
                continue
            for leg, c in sorted((leg or 0, flatten(i, arg.components)) for leg, found in used.items() for i in found):
                z, y, x = arg.offsets[leg]
                if arg.access is not Access.READ:
                    self._changed[arg.parameter, leg, c] = len(self.targets)
                    self.targets.append(Target(arg, leg, c, (z, y), x))
                    continue
                number = known.setdefault((arg.dat, c, (z, y), x), len(self.sources))
                if number == len(self.sources):
                    self.sources.append(Source(arg, c, (z, y), x))
                self._read[arg.parameter, leg, c] = number

    def source(self, parameter: str, leg: int, component: int) -> int:
        """Return the number of the row that a place reads."""
        return self._read[parameter, leg, component]

    def target(self, parameter: str, leg: int, component: int) -> int:
        """Return the number of the row that a place changes."""
        return self._changed[parameter, leg, component]


def base(item: Source | Target, row: str) -> str:
    """Return the C expression of the address of the first element of a row."""
    return f"A->d{item.arg.dat} + {address(item.arg, row, item.component)}"


def held(scalar: Scalar) -> str:
    """Return the C type in which the kernel sees numbers of a dat: half precision is converted line by line."""
    return "float" if scalar is FLOAT16 else scalar.c


class LineLoop(LaneLoop):
    """The kernel for element ``x`` of some neighbouring ones, whose numbers are in arrays."""

    def __init__(self, member: Member, dialect: Dialect, places: Places) -> None:
        def element(arg: ArgSpec, leg: str, component: str, _member: int) -> str:
            if arg.kind == "global":
                reads = arg.access is Access.READ
                return f"A->d{arg.dat}[{component}]" if reads else f"g_{arg.parameter}_{component}[x]"
            return f"o{places.target(arg.parameter, int(leg), int(component))}[x]"

        super().__init__(member.spec, member.number, dialect, member.spec.compute, element)
        self._places = places
        self._forwarded = {a.parameter for a in member.spec.args if _forwards(member.spec, a.parameter)}

    def _access(self, parameter: str, leg: ir.Expression | None, index: tuple[ir.Expression, ...]) -> str:
        arg = self.spec.arg(parameter)
        if arg.kind == "global" or arg.access is not Access.READ:
            return super()._access(parameter, leg, index)
        _, number, component = constant_place(arg, leg, index)
        return f"i{self._places.source(parameter, number, component)}[x]"

    def _round(self, parameter: str, value: str) -> str:
        """Leave half precision to the conversion of the line, unless the kernel reads what it has stored."""
        if self.spec.arg(parameter).scalar is FLOAT16 and parameter not in self._forwarded:
            return value
        return super()._round(parameter, value)


def _forwards(spec: LoopSpec, parameter: str) -> bool:
    """Whether a kernel may read a number after it has stored it."""
    stored: set[tuple[object, object]] = set()
    for statement in spec.kernel.body:
        nested = list(walk([statement]))
        writes = {(s.leg, s.index) for s in nested if isinstance(s, ir.Store) and s.parameter == parameter}
        reads = {
            (e.leg, e.index) for s in nested for e in expressions(s)
            if isinstance(e, ir.Read) and e.parameter == parameter
        }  # fmt: skip
        if reads & stored or (len(nested) > 1 and reads & writes):
            return True
        stored |= writes
    return False
