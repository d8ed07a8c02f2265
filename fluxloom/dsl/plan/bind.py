"""Binding a kernel to arguments: every check, and the spec that code generation works from.

Writes through a stencil are allowed where no two elements can meet, which the kernel itself proves. Leg ``k`` of a
stencil on a lattice whose ends are joined leads each element to another one. If a kernel reaches every component of an
argument through one leg only, then each place of the dat (element and component) is read and written by exactly one
element, and the loop has no races: push streaming ``out[k][k] = ...``, and the in-place scheme that reads ``f[k'][k']``
and writes ``f[k][k]``. The same holds for a table each leg of which leads no two elements to the same target, though
different legs do: cells in a list, whose neighbours are in a table (`parts_ways`).
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fluxloom.codegen.language.spec import ArgSpec, GridSpec, LoopSpec, RaggedStorage, StencilSpec, comment_text
from fluxloom.core.access import Access
from fluxloom.core.dtypes import FLOAT32, FLOAT64, AoS, Scalar
from fluxloom.core.errors import LoopError, did_you_mean
from fluxloom.device.base import Device
from fluxloom.dsl.declare.dats import Dat, Global
from fluxloom.dsl.declare.incoming import unmasked
from fluxloom.dsl.declare.maps import Argument, BoundArgument, EntriesMap, Map, OffsetMap, RaggedMap, TableMap
from fluxloom.dsl.declare.ragged import CSR
from fluxloom.dsl.declare.sets import Grid, Set, Subset
from fluxloom.dsl.declare.slots import SlotMap
from fluxloom.graph import is_injective
from fluxloom.kernel.analysis import used_components
from fluxloom.kernel.frontend import Kernel
from fluxloom.kernel.ir import RAGGED, ArgShape, Kind, LoweredKernel, SpreadShape
from fluxloom.kernel.record_fields import run_time_fields, with_fields

__all__ = [
    "Bound", "Numbering", "bind", "check_changing", "check_stencil_writes", "executes_halo", "leads_away",
    "parts_ways", "specialise", "spreads",
]  # fmt: skip

def spreads(arg: BoundArgument) -> bool:
    """Whether an argument is written through a stencil, or through a table whose legs meet."""
    if arg.access not in (Access.WRITE, Access.RW):
        return False
    return isinstance(arg.map, OffsetMap) or (isinstance(arg.map, TableMap) and arg.leg < 0 and not arg.map.distinct)


def parts_ways(over: Set, arg: BoundArgument, lowered: LoweredKernel) -> bool:
    """Whether no two elements of a loop meet in a component that they reach through a table.

    Each component is reached through one leg only, and none of these legs leads two elements to the same target.
    """
    through = arg.map
    assert isinstance(through, TableMap)
    legs = _legs_by_component(lowered, arg.name)
    if arg.leg >= 0 or legs is None or any(len(found) > 1 for found in legs.values()):
        return False
    table = through.table[over.indices] if isinstance(over, Subset) else through.table
    columns = {leg for found in legs.values() for leg in found}
    return all(is_injective(np.ascontiguousarray(table[:, leg : leg + 1]), through.target.stored) for leg in columns)


def _legs_by_component(lowered: LoweredKernel, parameter: str) -> dict[tuple[int, ...], list[int]] | None:
    """Return the legs through which a kernel reaches each component, ascending; None: it computes some of them."""
    used = used_components(lowered, parameter)
    if used is None:
        return None
    found: dict[tuple[int, ...], list[int]] = {}
    for leg, component in sorted(used, key=lambda place: (place[1], place[0] or 0)):
        found.setdefault(component, []).append(leg or 0)
    return found


def check_stencil_writes(
    name: str, over: Set, arguments: Sequence[BoundArgument], lowered: LoweredKernel
) -> None:
    """Check that no two elements of a loop meet where it writes through stencils.

    Raises
    ------
    LoopError
        If the lattice has ghosts, or some component is reached through several legs; if the kernel computes
        components of a stencil that turns round at ends.
    """
    for arg in arguments:
        if isinstance(arg.map, OffsetMap) and arg.map.mirror:
            where = f"{name}: argument {arg.name!r}, through stencil {arg.map.name!r} that turns round at ends,"
            _check_mirror(where, arg, _legs_by_component(lowered, arg.name), spreads(arg))
        if isinstance(arg.map, OffsetMap) and spreads(arg):
            where = f"{name}: argument {arg.name!r} is {arg.access.value} through stencil {arg.map.name!r}"
            _check_lattice(where, over)
            _check_legs(where, arg.name, lowered)


def _check_lattice(where: str, over: Set) -> None:
    """Check that every leg leads each element to one of its own; a lattice without ghosts is joined where one leads.

    On several ranks a leg may lead to the copy of another rank's element: what is written there goes back to that rank
    (`fluxloom.dsl.ranks.task`).
    """
    grid = over.parent
    assert isinstance(grid, Grid)
    if any(grid.beyond):
        raise LoopError(f"{where}, and {grid} has ghosts {grid.beyond}; declare it without, periodic along each axis")


def _check_legs(where: str, parameter: str, lowered: LoweredKernel) -> None:
    legs = _legs_by_component(lowered, parameter)
    if legs is None:
        raise LoopError(
            f"{where}, and the kernel computes a leg or a component of it; use numbers, or loops over range() that can "
            "be written out"
        )
    for component, found in legs.items():
        if len(found) > 1:
            text = f"component {component[0] if len(component) == 1 else component}" if component else "it"
            raise LoopError(
                f"{where}, and the kernel reaches {text} through legs {found[0]} and {found[1]}: elements would "
                "meet; reach each component through one leg, or write another dat"
            )


def _check_mirror(where: str, arg: BoundArgument, legs: dict[tuple[int, ...], list[int]] | None, written: bool) -> None:
    """Check that components are known, and that no two elements meet in one where legs lead back.

    Through the leg of component ``c`` an element at an end reaches its own component ``c'``. Through the leg of ``c'``
    only the element beyond that end would, if that leg leads the other way along the last axis.
    """
    assert isinstance(arg.map, OffsetMap)
    if legs is None:
        raise LoopError(f"{where} has a leg or a component that the kernel computes; use numbers, or range()")
    if not written:
        return
    along = {c: arg.map.offsets[arg.leg if arg.leg >= 0 else found[0]][-1] for (c,), found in legs.items()}
    for c, shift in along.items():
        back = arg.map.mirror[c]
        if shift and along.get(back, -shift) != -shift:
            raise LoopError(
                f"{where} is written, and the legs of components {c} and {back}, which change places at ends, do not "
                "lead opposite ways along the last axis: elements would meet"
            )


def check_changing(name: str, over: Set, arguments: Sequence[BoundArgument]) -> None:
    """Check that no plan of a loop depends on the members of its subset.

    Writes and reductions through tables and slots need plans, or a proof, made for given members; of stencils and of
    an element's own values the proof holds for any.

    Raises
    ------
    LoopError
        If the members may change and an argument needs to know them.
    """
    if over.most is None:
        return
    written = [a.data for a in arguments if a.access.writes and isinstance(a.data, Dat)]
    advice = "declare the subset without capacity"
    for arg in arguments:
        if arg.map is None or isinstance(arg.map, OffsetMap):
            continue
        where = f"{name}: argument {arg.name!r}"
        if isinstance(arg.map, RaggedMap | EntriesMap):
            raise LoopError(f"{where} goes through a ragged map, and the members of {over} may change; {advice}")
        if arg.access is not Access.READ:
            raise LoopError(
                f"{where} is {arg.access.value} through {arg.map.name!r}, and the members of {over} may change: "
                f"that needs a plan made for them; {advice}"
            )
        if any(arg.data is data for data in written):
            raise LoopError(
                f"{where} reads {arg.data.name!r}, which the loop writes, and the members of {over} may change; write "
                f"another dat, or {advice}"
            )


@dataclass
class Numbering:
    """Numbers for dats and maps: the same object gets the same number."""

    dats: list[Dat | Global] = field(default_factory=list)
    maps: list[Map] = field(default_factory=list)

    def dat(self, data: Dat | Global) -> int:
        """Return the number of a dat or global."""
        return _number(self.dats, data)

    def map(self, through: Map) -> int:
        """Return the number of a map; a row-to-entries map shares the number of its ragged map."""
        return _number(self.maps, through.ragged if isinstance(through, EntriesMap) else through)


def _number(items: list[Any], item: Any) -> int:
    for k, known in enumerate(items):
        if known is item:
            return k
    items.append(item)
    return len(items) - 1


@dataclass(frozen=True, eq=False)
class Bound:
    """A kernel with its arguments, checked."""

    name: str
    kernel: Kernel
    lowered: LoweredKernel
    over: Set
    arguments: tuple[BoundArgument, ...]
    constants: dict[str, float | int | bool]
    constants_baked: dict[str, Any]
    compute: Scalar

    @property
    def reduces(self) -> bool:
        """Whether it reduces into a global."""
        return any(isinstance(a.data, Global) and a.access is not Access.READ for a in self.arguments)

    def globals(self, *, reads: bool) -> list[tuple[Global, Access]]:
        """Return the globals that it reads, or those that it reduces into, and how."""
        found = ((a.data, a.access) for a in self.arguments if isinstance(a.data, Global))
        return [(data, access) for data, access in found if (access is Access.READ) is reads]

    def declared(self, constants: Mapping[str, float | int | bool]) -> dict[str, Any]:
        """Return the constants by the names of the kernel's parameters, with the values of run-time ones given.

        ``constants`` are those of a loop: ``loop.constants``.
        """
        return {
            c.name: with_fields(c.name, self.constants_baked[c.name], constants) if c.baked else constants[c.name]
            for c in self.kernel.constants
        }


def bind(
    kernel: Kernel,
    over: Set,
    arguments: Sequence[Argument | Dat | Global | None],
    constants: Mapping[str, Any],
    name: str = "",
) -> Bound:
    """Check the arguments of a loop against its kernel and its set.

    Raises
    ------
    LoopError
        With the loop, the parameter and what does not fit.
    """
    if not isinstance(kernel, Kernel):
        raise LoopError(f"{kernel!r} is not a kernel: decorate the function with @fl.kernel")
    name = name or kernel.name
    if len(arguments) != len(kernel.parameters):
        wanted = ", ".join(p.name for p in kernel.parameters)
        raise LoopError(f"{name}: {len(arguments)} arguments given, the kernel has {len(kernel.parameters)}: {wanted}")
    kernel = kernel.leaving_out(_absent(name, kernel, arguments))
    given = [a if isinstance(a, Argument) else Argument(a) for a in arguments if a is not None]
    args = tuple(
        BoundArgument(a.data, a.map, a.leg, name=p.name, access=p.access)
        for p, a in zip(kernel.parameters, given, strict=True)
    )
    for arg in args:
        _check_argument(name, arg, over)
    _check_covers(name, args)
    values = _constants(name, kernel, constants)
    # what is baked stays as it is now, whatever becomes of a list
    strategies = kernel.signature.strategies
    baked = {c.name: values[c.name] for c in kernel.constants if c.baked}
    baked = {key: value if key in strategies else copy.deepcopy(value) for key, value in baked.items()}
    shapes = {a.name: _shape(a) for a in args}
    lowered = kernel.lower(shapes, baked)
    check_stencil_writes(name, over, args, lowered)
    check_changing(name, over, args)
    run_time = {c.name: kernel.number(c.name, values[c.name]) for c in kernel.constants if not c.baked}
    for key in strategies:
        kernel.check_strategy(key, baked[key])  # code that is found again says nothing of these numbers
        run_time |= dict(run_time_fields(key, baked[key]))
    return Bound(name, kernel, lowered, over, args, run_time, baked, _compute(args, over.context.device))


def _absent(name: str, kernel: Kernel, arguments: Sequence[object]) -> list[str]:
    """Return the parameters that a loop leaves out."""
    absent = [p for p, given in zip(kernel.parameters, arguments, strict=True) if given is None]
    for parameter in absent:
        if not parameter.optional:
            mode = parameter.access.value
            raise LoopError(f"{name}: argument {parameter.name!r} is None; the kernel would have to annotate it "
                            f"{mode} | None, and do without it")  # fmt: skip
    return [parameter.name for parameter in absent]


def _constants(name: str, kernel: Kernel, given: Mapping[str, Any]) -> dict[str, Any]:
    known = [c.name for c in kernel.constants]
    for key in given:
        if key not in known:
            raise LoopError(f"{name}: unknown constant {key!r}{did_you_mean(key, known)} (the kernel has: {known})")
    values = {**kernel.defaults, **given}
    missing = [k for k in known if k not in values]
    if missing:
        raise LoopError(f"{name}: no value for constant {missing[0]!r}; pass {missing[0]}=...")
    for key, value in values.items():
        unmasked(value, f"{name}: constant {key!r}")
    return values


def _check_argument(name: str, arg: BoundArgument, over: Set) -> None:
    where = f"{name}: argument {arg.name!r}"
    data, through, access = arg.data, arg.map, arg.access
    if not isinstance(data, (Dat, Global)):
        raise LoopError(f"{where} is a {type(data).__name__}; pass a dat, a dat through a map, or a global")
    if data.context is not over.context:
        raise LoopError(f"{where} belongs to another context than {over}")
    if isinstance(data, Global):
        if access in (Access.WRITE, Access.RW):
            raise LoopError(f"{where} is a global: every element would write it; use Read, Inc, Min or Max")
        return
    if through is None:
        if data.set is not over.parent:
            raise LoopError(f"{where} lives on {data.set}, the loop runs over {over}; go through a map, or use its set")
        return
    if through.source is not over.parent:
        raise LoopError(f"{where}: map {through.name!r} starts at {through.source}, the loop runs over {over}")
    if isinstance(through, OffsetMap) and access.reduces:
        raise LoopError(
            f"{where} is {access.value} through a stencil: elements would race; write the kernel from the target's side"
        )
    if isinstance(through, RaggedMap) and access in (Access.WRITE, Access.RW):
        raise LoopError(f"{where} is {access.value} through a ragged map; only Read and Inc, Min, Max are possible")
    if isinstance(through, SlotMap) and access.writes:
        _check_slots(where, access, through)


def _check_slots(where: str, access: Access, through: SlotMap) -> None:
    """Check that a rank changes its own elements only, and that nobody else would have to add to them."""
    if access.reduces and through.target.part is not None:
        raise LoopError(
            f"{where} is {access.value} through slots, on several ranks: elements of other ranks may add to the same; "
            "let a loop over the targets read"
        )
    if not through.stays:
        raise LoopError(
            f"{where} is {access.value} through slots {through.name!r}: {through.foreign_entry()} leads to an element "
            "of another rank; a rank may only change its own"
        )


def _check_covers(name: str, args: Sequence[BoundArgument]) -> None:
    """Check that a loop which has to run over elements of other ranks too has their rows in every map."""
    short = [a.map for a in args if isinstance(a.map, RaggedMap | EntriesMap | SlotMap) and not a.map.covers]
    for arg in args:
        if not (arg.access.writes and isinstance(arg.data, Dat) and arg.map is not None and changes_away(arg)):
            continue
        _check_no_slots(name, args)
        if not arg.map.covers or short:
            through = short[0] if arg.map.covers else arg.map
            raise LoopError(
                f"{name}: on several ranks a loop that changes {arg.data.name!r} through a map runs over elements of "
                f"other ranks too, but map {through.name!r} has rows for those of this rank only: give it "
                "source.executed rows, or let a loop over the targets read"
            )


def _check_no_slots(name: str, args: Sequence[BoundArgument]) -> None:
    """Check that a loop which runs over elements of other ranks too writes through no slots: these are their own."""
    for arg in args:
        if isinstance(arg.map, SlotMap) and arg.access.writes and arg.map.source.part is not None:
            raise LoopError(
                f"{name}: on several ranks a loop may not change {arg.data.name!r} through slots and another dat "
                "through a map: write two loops"
            )


def leads_away(argument: Argument) -> bool:
    """Whether an argument may lead to elements of other ranks; a row and its entries are always together."""
    return argument.map is not None and not isinstance(argument.map, EntriesMap)


def changes_away(argument: Argument) -> bool:
    """Whether what changes through an argument may be changed by elements of other ranks.

    Not so through slots, which are a rank's own, and through stencils, where each number belongs to one element.
    """
    return leads_away(argument) and not isinstance(argument.map, SlotMap | OffsetMap)


def executes_halo(bound: Bound) -> bool:
    """Whether a loop runs over the execute halo too: it changes what maps lead to."""
    return any(changes_away(a) and a.access.writes for a in bound.arguments if isinstance(a.data, Dat))


def _shape(arg: BoundArgument) -> ArgShape:
    kind = Kind.REAL if arg.data.scalar.floating else Kind.INT
    if isinstance(arg.data, Global):
        return ArgShape(None, arg.data.shape, kind, is_global=True)
    legs: int | None = None
    if arg.map is not None and arg.leg < 0:
        legs = RAGGED if arg.map.legs < 0 else arg.map.legs
    if isinstance(arg.map, SlotMap):
        return ArgShape(legs, (), kind)
    spread = legs is not None and arg.access is Access.WRITE and spreads(arg)
    return (SpreadShape if spread else ArgShape)(legs, arg.data.shape, kind)


def _compute(args: Sequence[Argument], device: Device) -> Scalar:
    """Return the type of the arithmetic.

    It is float64 as soon as one dat is; loops on float32 and float16 dats compute in float32. Loops without
    reals compute in float64 where the device can.
    """
    sizes = [a.data.scalar.size for a in args if isinstance(a.data, Dat) and a.data.scalar.floating]
    if not sizes:
        sizes = [a.data.scalar.size for a in args if a.data.scalar.floating]
    if not sizes:
        return FLOAT32 if device.refuses_double else FLOAT64
    return FLOAT64 if max(sizes) == 8 else FLOAT32


# --------------------------------------------------------------------------------------- the spec


def specialise(bound: Bound, numbering: Numbering) -> LoopSpec:
    """Return what the generated code depends on, with dats and maps numbered."""
    args = tuple(_arg_spec(a, numbering) for a in bound.arguments)
    over = bound.over
    listed, lattice, grid = isinstance(over, Subset), over.parent, None
    reached = any(a.kind == "stencil" for a in args)
    plain = all(a.kind in ("direct", "stencil", "global") for a in args)
    if isinstance(lattice, Grid) and plain and (reached or not listed):
        grid = GridSpec(lattice.periodic, lattice.ghost)
    elif reached:
        raise LoopError(
            f"{bound.name}: beside a stencil argument no other one may go through a table, slots or entries; copy what "
            "it needs to a dat on the grid in a loop of its own"
        )
    name, counted = comment_text(bound.name), over.most is not None
    return LoopSpec(name, bound.lowered, args, bound.compute, grid, listed, counted)


def _arg_spec(arg: BoundArgument, numbering: Numbering) -> ArgSpec:
    data, through, parameter, access = arg.data, arg.map, arg.name, arg.access
    number = numbering.dat(data)
    if isinstance(data, Global):
        return ArgSpec(parameter, access, "global", number, data.scalar, data.shape, AoS())
    if isinstance(through, SlotMap):  # a table to the numbers of the dat's storage, each an element of one component
        places = through.places(data)
        return ArgSpec(parameter, access, "table", number, data.scalar, (), AoS(), map=numbering.map(places),
                       arity=places.legs, leg=arg.leg, wide=places.wide)  # fmt: skip
    common: dict[str, Any] = {"scalar": data.scalar, "components": data.shape, "layout": data.layout}
    if through is None:
        placed = data.set.position is not None
        return ArgSpec(parameter, access, "direct", number, positioned=placed, wide=_wide(data), **common)
    mapped = numbering.map(through)
    if isinstance(through, OffsetMap):
        stencil = StencilSpec(through.offsets, through.mirror, through.ends)
        return ArgSpec(parameter, access, "stencil", number, map=mapped, arity=through.legs, leg=arg.leg,
                       stencil=stencil, wide=_wide(data), **common)  # fmt: skip
    if isinstance(through, TableMap):
        return ArgSpec(parameter, access, "table", number, map=mapped, arity=through.legs, leg=arg.leg, **common)
    assert arg.ragged is not None
    store = arg.ragged.store
    compact, narrow = isinstance(store.layout, CSR), store.places < 2**31
    storage = RaggedStorage(store.column_major, store.slice, compact, narrow, store.layout.code(), store.short)
    kind = "entries" if isinstance(through, EntriesMap) else "ragged"
    return ArgSpec(parameter, access, kind, number, map=mapped, ragged=storage, **common)


def _wide(dat: Dat) -> bool:
    """Whether places in the storage of a dat on a lattice need more than 32 bits."""
    return isinstance(dat.set.parent, Grid) and dat.stride * dat.dim >= 2**32
