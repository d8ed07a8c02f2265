"""Loops over the elements of a grid as kernels of work items: one item a lattice site, no tables."""

from __future__ import annotations

from fluxloom.codegen.item import Item
from fluxloom.codegen.kernels import KernelDriver
from fluxloom.codegen.member import Member
from fluxloom.codegen.places import touched
from fluxloom.codegen.spans import bounds, chunks, loop_over
from fluxloom.codegen.spec import ArgSpec, GridSpec
from fluxloom.core.access import Access

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


class _Site(Item):
    """The body for one lattice site."""

    def site(self, member: Member, number: str = "item") -> None:
        """Write places of the site of that number and its neighbours, the kernel, and the stores."""
        self.line(f"const int x = {number} % (int)n2, y = {number} / (int)n2 % (int)n1, "
                  f"z = {number} / (int)n2 / (int)n1;")  # fmt: skip
        grid = self._grid(member)
        self.line(f"const int i = {self._place3(grid, ('z', 'y', 'x'))};")
        self.offsets(member, (0, 1, 2))
        self._work(member, grid)

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

    def offsets(self, member: Member, axes: tuple[int, ...], *, wrap: bool = True) -> None:
        """Write the coordinates of neighbours along some axes, wrapped where an axis is periodic."""
        grid = self._grid(member)
        wanted: set[tuple[int, int]] = set()
        for arg in member.spec.args:
            if arg.kind == "stencil":
                for k, leg in enumerate(self._legs(arg)):
                    if touched(member.spec, arg, k):
                        wanted |= {(axis, shift) for axis, shift in enumerate(leg) if shift and axis in axes}
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
            names = [_shifted(axis, shift) for axis, shift in enumerate(leg)]
            place = _place_name(member, arg, k)
            self.line(f"const int {place} = {self._place3(grid, (names[0], names[1], names[2]))};")
            if arg.access is not Access.WRITE:
                self._load(arg, f"{name}[{k}]", f"d{arg.dat}", place, used, set())

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


def _place_name(member: Member, arg: ArgSpec, leg: int) -> str:
    """Return the C name of the place to which a leg leads."""
    return f"i{member.number}_{arg.parameter}_{leg}"


def _shifted(axis: int, shift: int) -> str:
    """Return the C name of a shifted coordinate."""
    base = "zyx"[axis]
    return base if not shift else f"{base}_{'p' if shift > 0 else 'm'}{abs(shift)}"
