"""Loops over the elements of a grid as kernels of work items: one item a lattice site, no tables."""

from __future__ import annotations

from dataclasses import dataclass

from fluxloom.codegen.item import Item
from fluxloom.codegen.kernels import KernelDriver
from fluxloom.codegen.lane import address
from fluxloom.codegen.member import Member
from fluxloom.codegen.places import touched
from fluxloom.codegen.spans import bounds, chunks, loop_over
from fluxloom.codegen.spec import ArgSpec, GridSpec
from fluxloom.core.access import Access
from fluxloom.core.layout import SoA

__all__ = ["GridKernels"]


class GridKernels(KernelDriver):
    """Writes the kernel of one loop over a grid, or over some of its elements.

    The lattice is treated as ``(n0, n1, n2)`` with the last axis contiguous; missing axes have one
    element. Neighbouring items are neighbours along the last axis, or in the list of elements.
    """

    def _direct(self) -> list[str]:
        group = self.group
        (member,) = group.members
        item = _Site(group, self.dialect, self.constants)
        item.lines = self._open("_run")
        if group.listed:
            with self._elements(item, "n", group.members, "const int e = list[item];"):
                item.site(member, "e")
            self._launch("_run", "n")
            return [*item.lines, *self.close("item", "n", group.members), "}", ""]
        if group.work.serial:
            bounds(self, item, "n")
            with chunks(self, item, group.members, ("begin", "end")):
                self._rows(item, member)
            self._launch("_run", "n")
            return [*item.lines, "}", ""]
        with self._elements(item, "n", group.members):
            item.site(member)
        self._launch("_run", "n")
        return [*item.lines, *self.close("item", "n", group.members), "}", ""]

    def _rows(self, item: _Site, member: Member) -> None:
        """Write a loop over the rows of a span, and in it one over the sites that wrap and one over all others."""
        with item.block("for (int row = part, far = 0; row < upto; row += far)"):
            item.line("const int x0 = row % (int)n2, y = row / (int)n2 % (int)n1, z = row / (int)n2 / (int)n1;")
            item.line("const int x1 = upto - row < (int)n2 - x0 ? x0 + upto - row : (int)n2;")
            item.line("far = x1 - x0;")
            item.offsets(member, (0, 1))
            reach = item.reach(member)
            item.line(f"const int low = {reach} < (int)n2 ? {reach} : (int)n2;")
            item.line(f"const int high = (int)n2 - {reach} > low ? (int)n2 - {reach} : low;")
            if reach:
                with item.block("for (int x = x0; x < x1; x++)"):
                    item.line("if (x >= low && x < high) { x = high - 1; continue; }")
                    self._site(item, member, wrap=True)
            with loop_over(self, item, "for (int x = x0 > low ? x0 : low; x < (x1 < high ? x1 : high); x++)"):
                self._site(item, member, wrap=False)

    def _site(self, item: _Site, member: Member, *, wrap: bool) -> None:
        """Write the body of the site ``x`` of a row; ``wrap``: its neighbours may be at the other end."""
        site = _Site(self.group, self.dialect, self.constants, lines=item.lines, pad=item.pad)
        site.add(self.sums.declare((member,)))
        site.offsets(member, (2,), wrap=wrap)
        site.body(member)
        site.add(self.sums.keep((member,), "row - x0 + x - part"))


@dataclass
class _Site(Item):
    """The body for one lattice site.

    Attributes
    ----------
    near
        Whether neighbours are found by what lies between, and offsets have 32 bits: where each item has a site of its
        own. Items that go through rows leave wraps to the ends of rows, and signed sums to the compiler.
    """

    near: bool = False

    def site(self, member: Member, number: str = "item") -> None:
        """Write places of the site of that number and its neighbours, the kernel, and the stores.

        Neighbours are found by what lies between: one sum each. All offsets fit 32 bits, unless an argument says so.
        """
        grid = self._grid(member)
        self.near = True
        self.line(f"const uint32_t row = {_quotient(number, 2)}, layer = {_quotient('row', 1)};")
        self.line(f"const int x = {number} - (int)row * (int)n2, y = (int)row - (int)layer * (int)n1, z = (int)layer;")
        self.line(f"const int i = {self._place3(grid, ('z', 'y', 'x')) if any(grid.ghost) else number};")
        self._distances(member, grid)
        self._work(member, grid)

    def _distances(self, member: Member, grid: GridSpec) -> None:
        """Write how far away in the storage neighbours along each axis are."""
        wanted = self._shifts(member, (0, 1, 2))
        size = [f"((int)n{k} + {2 * g})" if g else f"(int)n{k}" for k, g in enumerate(grid.ghost)]
        if any(axis == 0 for axis, _ in wanted):
            self.line(f"const int plane = {size[1]} * {size[2]};")
        step = ["plane", size[2], "1"]
        for axis, shift in sorted(wanted):
            base, length = "zyx"[axis], f"(int)n{axis}"
            text = f"{shift} * {step[axis]}" if step[axis] != "1" else str(shift)
            if grid.periodic[axis]:
                inside = f"{base} < {length} - {shift}" if shift > 0 else f"{base} >= {-shift}"
                round_ = f"({shift} - {length})" if shift > 0 else f"({length} - {-shift})"
                text = f"{inside} ? {text} : {round_} * {step[axis]}"
            self.line(f"const int to_{_shifted(axis, shift)} = {text};")

    def where(self, arg: ArgSpec, index: str, component: int) -> str:
        """Return the C offset of a component of an element: of 32 bits without sign, where that is enough."""
        if not self.near or arg.wide:
            return super().where(arg, index, component)
        if isinstance(arg.layout, SoA) and arg.dim > 1:
            return f"{component}u * (uint32_t)s{arg.dat} + (uint32_t){index}"
        return address(arg, f"(uint32_t){index}", component, "")

    def body(self, member: Member) -> None:
        """Write the same where the coordinates, also those of neighbours, have names already."""
        grid = self._grid(member)
        self.line(f"const int i = {self._place3(grid, ('z', 'y', 'x'))};")
        self._work(member, grid)

    def reach(self, member: Member) -> int:
        """Return how far along the last axis the neighbours lie that may be at the other end."""
        if not self._grid(member).periodic[2]:
            return 0
        return max((abs(leg[2]) for a in member.spec.args if a.kind == "stencil" for leg in self._legs(a)), default=0)

    def _work(self, member: Member, grid: GridSpec) -> None:
        self.declare_own()
        for arg in member.spec.args:
            if arg.kind == "direct" and arg.access is not Access.WRITE:
                self.load_own(arg, touched(member.spec, arg, 0))
            elif arg.kind == "stencil":
                self._load_stencil(member, arg, grid)
            elif arg.kind == "global":
                self._global(member, arg)
        self._compute(member, "none", "i")
        self._commit(member, "none", "i")
        self.store_own()

    def _place(self, arg: ArgSpec) -> str:
        """Ghost layers are part of the arithmetic: no table of positions."""
        return self.own

    @staticmethod
    def _grid(member: Member) -> GridSpec:
        grid = member.spec.grid
        assert grid is not None
        missing = 3 - len(grid.ghost)
        return GridSpec((False,) * missing + grid.periodic, (0,) * missing + grid.ghost)

    @staticmethod
    def _legs(arg: ArgSpec) -> list[tuple[int, int, int]]:
        assert arg.stencil is not None
        offsets = arg.stencil.offsets if arg.leg < 0 else (arg.stencil.offsets[arg.leg],)
        full = [(0,) * (3 - len(o)) + o for o in offsets]
        return [(o[0], o[1], o[2]) for o in full]

    def _shifts(self, member: Member, axes: tuple[int, ...]) -> set[tuple[int, int]]:
        """Return along which of some axes, and how far, neighbours lie that the kernel touches."""
        wanted: set[tuple[int, int]] = set()
        for arg in member.spec.args:
            if arg.kind == "stencil":
                for k, leg in enumerate(self._legs(arg)):
                    if touched(member.spec, arg, k):
                        wanted |= {(axis, shift) for axis, shift in enumerate(leg) if shift and axis in axes}
        return wanted

    def offsets(self, member: Member, axes: tuple[int, ...], *, wrap: bool = True) -> None:
        """Write the coordinates of neighbours along some axes, wrapped where an axis is periodic."""
        grid, wanted = self._grid(member), self._shifts(member, axes)
        for axis, shift in sorted(wanted):
            base, name = "zyx"[axis], _shifted(axis, shift)
            text = f"{base} + {shift}" if shift > 0 else f"{base} - {-shift}"
            if grid.periodic[axis] and wrap:
                edge = f"n{axis}"
                text = (
                    f"{base} < (int){edge} - {shift} ? {text} : {text} - (int){edge}"
                    if shift > 0
                    else f"{base} >= {-shift} ? {text} : {text} + (int){edge}"
                )
            self.line(f"const int {name} = {text};")

    @staticmethod
    def _place3(grid: GridSpec, names: tuple[str, str, str]) -> str:
        """Return the storage place of a site from its coordinates."""
        at = [f"({name} + {g})" if g else name for name, g in zip(names, grid.ghost, strict=True)]
        size = [f"((int)n{k} + {2 * g})" if g else f"(int)n{k}" for k, g in enumerate(grid.ghost)]
        return f"({at[0]} * {size[1]} + {at[1]}) * {size[2]} + {at[2]}"

    def _load_stencil(self, member: Member, arg: ArgSpec, grid: GridSpec) -> None:
        name = f"p{member.number}_{arg.parameter}"
        legs = self._legs(arg)
        self.line(f"{self.real(arg)} {name}[{len(legs)}][{arg.dim}];")
        for k, leg in enumerate(legs):
            used = touched(member.spec, arg, k)
            if not used:
                continue
            place = _place_name(member, arg, k)
            self.line(f"const int {place} = {self._neighbour(grid, leg)};")
            if arg.access is not Access.WRITE:
                self._load(arg, f"{name}[{k}]", f"d{arg.dat}", place, used, set())

    def _neighbour(self, grid: GridSpec, leg: tuple[int, int, int]) -> str:
        """Return the storage place of a neighbour."""
        if self.near:
            return " + ".join([self.own, *(f"to_{_shifted(axis, shift)}" for axis, shift in enumerate(leg) if shift)])
        z, y, x = (_shifted(axis, shift) for axis, shift in enumerate(leg))
        return self._place3(grid, (z, y, x))

    def _commit(self, member: Member, commit: str, element: str) -> None:
        """Also store what the kernel writes through stencils: no other site reads or writes those places."""
        super()._commit(member, commit, element)
        for arg in member.spec.args:
            if arg.kind != "stencil" or arg.access is Access.READ:
                continue
            for k in range(len(self._legs(arg))):
                used = self.mine(touched(member.spec, arg, k))
                value, place = f"p{member.number}_{arg.parameter}[{k}]", _place_name(member, arg, k)
                self._store(arg, value, f"d{arg.dat}", place, used)


def _quotient(number: str, axis: int) -> str:
    """Return a number below 2^31 divided by the length of an axis; see `fluxloom.dsl.executable.divisor`."""
    return f"(uint32_t)((uint64_t)(uint32_t){number} * (uint32_t)q{axis} >> (int)h{axis})"


def _place_name(member: Member, arg: ArgSpec, leg: int) -> str:
    """Return the C name of the place to which a leg leads."""
    return f"i{member.number}_{arg.parameter}_{leg}"


def _shifted(axis: int, shift: int) -> str:
    """Return the C name of a shifted coordinate."""
    base = "zyx"[axis]
    return base if not shift else f"{base}_{'p' if shift > 0 else 'm'}{abs(shift)}"
