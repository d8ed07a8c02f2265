"""The body of a loop over a grid for one lattice site: places by arithmetic, the kernel, the stores."""

from __future__ import annotations

from dataclasses import dataclass

from fluxloom.codegen.items.item import Item
from fluxloom.codegen.language.group import Member
from fluxloom.codegen.language.lane import address, touched
from fluxloom.codegen.language.spec import ArgSpec, GridSpec
from fluxloom.core.access import Access
from fluxloom.core.dtypes import SoA

__all__ = ["Site", "shifted"]

_MANY = 8
"""Numbers that are read and written by one item, from which on their places are found twice."""


@dataclass
class Site(Item):
    """The body for one lattice site.

    Attributes
    ----------
    again
        What the names of the site and of distances begin with when places are found a second time.
    count
        Sites of an item, next to each other; distances along the last axis are then those of the outermost ones.
    """

    again: str = ""
    count: int = 1

    def site(self, member: Member, number: str = "item") -> None:
        """Write places of the site of that number and its neighbours, the kernel, and the stores.

        Neighbours are found by what lies between: one sum each. All offsets fit 32 bits, unless an argument says so.
        """
        self._coordinates(member, number)
        self.declare_own()
        for arg in member.spec.args:
            if arg.kind == "direct" and arg.access is not Access.WRITE:
                self.load_own(arg, touched(member.spec, arg, 0))
            elif arg.kind == "stencil":
                self._load_stencil(member, arg)
            elif arg.kind == "global":
                self._global(member, arg)
        self._compute(member, "none", "i")
        self._places_again(member)
        self._commit(member, "none", "i")
        self.store_own()

    def _coordinates(self, member: Member, number: str) -> None:
        """Write coordinates and place of the site of that number, and the distances of neighbours."""
        self.line(f"const uint32_t row = {_quotient(number, 2)}, layer = {_quotient('row', 1)};")
        self.line(f"const int x = {number} - (int)row * (int)n2, y = (int)row - (int)layer * (int)n1, z = (int)layer;")
        grid = member.spec.box
        self.line(f"const int i = {self._with_ghosts(grid) if any(grid.ghost) else number};")
        self._distances(member, grid)

    def _distances(self, member: Member, grid: GridSpec) -> None:
        """Write how far away in the storage neighbours along each axis are."""
        wanted = self._shifts(member)
        size = [f"((int)n{k} + {2 * g})" if g else f"(int)n{k}" for k, g in enumerate(grid.ghost)]
        if any(axis == 0 for axis, _ in wanted):
            self.line(f"const int plane = {size[1]} * {size[2]};")
        step = ["plane", size[2], "1"]
        for axis, shift in sorted(wanted):
            base, length, last = "zyx"[axis], f"(int)n{axis}", self.count - 1 if axis == 2 else 0
            text = f"{shift} * {step[axis]}" if step[axis] != "1" else str(shift)
            if grid.periodic[axis]:
                inside = f"{base} < {length} - {shift + last}" if shift > 0 else f"{base} >= {-shift}"
                round_ = f"({shift} - {length})" if shift > 0 else f"({length} - {-shift})"
                text = f"{inside} ? {text} : {round_} * {step[axis]}"
            self.line(f"const int to_{shifted(axis, shift)} = {text};")
        self._turns(member)

    def _turns(self, member: Member) -> None:
        """Write whether legs along the row lead back, as they would leave it where their stencil turns round."""
        through = [a for a in member.spec.args if a.kind == "stencil"]
        legs = [(a, leg) for a in through for k, leg in enumerate(a.offsets) if touched(member.spec, a, k)]
        wanted = {leg[2] for a, leg in legs if self._turn(a, leg)}
        for shift in sorted(wanted):
            beyond = f"x < {-shift}" if shift < 0 else f"x >= (int)n2 - {shift + self.count - 1}"
            self.line(f"const int {_turn_name(shift)} = {beyond};")

    @staticmethod
    def _turn(arg: ArgSpec, leg: tuple[int, int, int]) -> str:
        """Return the C name of what tells whether a leg leads back; empty: it never does here."""
        return _turn_name(leg[2]) if arg.turns(leg[2]) else ""

    @staticmethod
    def _through(arg: ArgSpec, turn: str, component: int) -> int | str:
        """Return the component in memory of one that is seen through a leg."""
        return f"({turn} ? {arg.mirrored(component)}u : {component}u)" if turn else component

    def where(self, arg: ArgSpec, index: str, component: int | str) -> str:
        """Return the C offset of a component of an element: of 32 bits without sign, where that is enough."""
        if arg.wide:
            return super().where(arg, index, component)
        if isinstance(arg.layout, SoA) and arg.dim > 1:
            number = component if isinstance(component, str) else f"{component}u"
            return f"{number} * (uint32_t)s{arg.dat} + (uint32_t){index}"
        return address(arg, f"(uint32_t){index}", component, "")

    def _places_again(self, member: Member) -> None:
        """Let the places of many stores be found anew, out of what the compiler cannot know to be the same numbers.

        It would keep each place of what is read and written, of 64 bits, while the kernel computes: with a lattice of
        19 velocities 38 registers, and half the items in flight.
        """
        if not self.words.afresh or _moved_twice(member) < _MANY:
            return
        self.again = "again_"
        names = [f"to_{shifted(axis, shift)}" for axis, shift in sorted(self._shifts(member))]
        for name in (self.own, *names):
            self.line(f"int {self.again}{name} = {name};")
            self.line(self.words.afresh.format(name=self.again + name))
        self.own = self.again + self.own

    def _place(self, arg: ArgSpec) -> str:
        """Ghost layers are part of the arithmetic: no table of positions."""
        return self.own

    def _shifts(self, member: Member) -> set[tuple[int, int]]:
        """Return along which axes, and how far, neighbours lie that the kernel touches."""
        wanted: set[tuple[int, int]] = set()
        for arg in member.spec.args:
            if arg.kind == "stencil":
                for k, leg in enumerate(arg.offsets):
                    if touched(member.spec, arg, k):
                        wanted |= {(axis, shift) for axis, shift in enumerate(leg) if shift}
        return wanted

    @staticmethod
    def _with_ghosts(grid: GridSpec) -> str:
        """Return the storage place of a site from its coordinates."""
        at = [f"({name} + {g})" if g else name for name, g in zip("zyx", grid.ghost, strict=True)]
        size = [f"((int)n{k} + {2 * g})" if g else f"(int)n{k}" for k, g in enumerate(grid.ghost)]
        return f"({at[0]} * {size[1]} + {at[1]}) * {size[2]} + {at[2]}"

    def _load_stencil(self, member: Member, arg: ArgSpec) -> None:
        name = f"p{member.number}_{arg.parameter}"
        legs = arg.offsets
        self.line(f"{self.real(arg)} {name}[{len(legs)}][{arg.dim}];")
        for k, leg in enumerate(legs):
            used = touched(member.spec, arg, k)
            if not used:
                continue
            place, turn = _place_name(member, arg, k), self._turn(arg, leg)
            self.line(f"const int {place} = {self._neighbour(leg, turn)};")
            if arg.access is Access.WRITE:
                continue
            if not turn:
                self._load(arg, f"{name}[{k}]", f"d{arg.dat}", place, used, set())
                continue
            for c in sorted(used):
                where = self.where(arg, place, self._through(arg, turn, c))
                self.line(f"{name}[{k}][{c}] = {self._cast(arg, self.real(arg))}d{arg.dat}[{where}];")

    def _cast(self, arg: ArgSpec, to: str) -> str:
        """Return the conversion between what is stored of an argument and what the kernel sees, where they differ."""
        return "" if arg.scalar.c == self.real(arg) else f"({to})"

    def _neighbour(self, leg: tuple[int, int, int], turn: str = "") -> str:
        """Return the storage place of a neighbour, or of the element itself where the leg leads back."""
        ways = [f"{self.again}to_{shifted(axis, shift)}" for axis, shift in enumerate(leg) if shift]
        away = " + ".join([self.own, *ways])
        return f"{turn} ? {self.own} : {away}" if turn else away

    def _commit(self, member: Member, commit: str, element: str) -> None:
        """Also store what the kernel writes through stencils: no other site reads or writes those places."""
        super()._commit(member, commit, element)
        for arg in member.spec.args:
            if arg.kind != "stencil" or arg.access is Access.READ:
                continue
            for k, leg in enumerate(arg.offsets):
                used = self.mine(touched(member.spec, arg, k))
                value, place = f"p{member.number}_{arg.parameter}[{k}]", _place_name(member, arg, k)
                turn = self._turn(arg, leg)
                if self.again and used:
                    place = self.again + place
                    self.line(f"const int {place} = {self._neighbour(leg, turn)};")
                if not turn:
                    self._store(arg, value, f"d{arg.dat}", place, used)
                    continue
                for c in sorted(used):
                    where = self.where(arg, place, self._through(arg, turn, c))
                    self.line(f"d{arg.dat}[{where}] = {self._cast(arg, arg.scalar.c)}{value}[{c}];")


def _moved_twice(member: Member) -> int:
    """Return how many numbers of a site are read and written in the same places."""
    both = [a for a in member.spec.args if a.access is Access.RW]
    direct = sum(len(touched(member.spec, a, 0)) for a in both if a.kind == "direct")
    legs = ((a, k) for a in both if a.kind == "stencil" for k in range(len(a.offsets)))
    return direct + sum(len(touched(member.spec, a, k)) for a, k in legs)


def _quotient(number: str, axis: int) -> str:
    """Return a number below 2^31 divided by the length of an axis; see `fluxloom.dsl.plan.executable.divisor`."""
    return f"(uint32_t)((uint64_t)(uint32_t){number} * (uint32_t)q{axis} >> (int)h{axis})"


def _place_name(member: Member, arg: ArgSpec, leg: int) -> str:
    """Return the C name of the place to which a leg leads."""
    return f"i{member.number}_{arg.parameter}_{leg}"


def _turn_name(shift: int) -> str:
    """Return the C name of whether legs that lead so far along the row lead back."""
    return f"turn_{shifted(2, shift)}"


def shifted(axis: int, shift: int) -> str:
    """Return the C name of a shifted coordinate."""
    base = "zyx"[axis]
    return base if not shift else f"{base}_{'p' if shift > 0 else 'm'}{abs(shift)}"
