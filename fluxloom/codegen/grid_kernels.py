"""Loops over the elements of a grid as kernels of work items: one item a lattice site, or some, no tables."""

from __future__ import annotations

from fluxloom.codegen.grid_site import Site
from fluxloom.codegen.grid_sites import Sites
from fluxloom.codegen.kernels import KernelDriver
from fluxloom.codegen.member import Member
from fluxloom.codegen.spans import bounds, chunks, loop_over

__all__ = ["GridKernels"]


class GridKernels(KernelDriver):
    """Writes the kernel of one loop over a grid, or over some of its elements.

    The lattice is treated as ``(n0, n1, n2)`` with the last axis contiguous; missing axes have one
    element. Neighbouring items are neighbours along the last axis, or in the list of elements.
    """

    def _direct(self) -> list[str]:
        group = self.group
        (member,) = group.members
        item = Site(group, self.dialect, self.constants)
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
        if group.work.sites > 1:
            return self._several(member, group.work.sites)
        with self._elements(item, "n", group.members):
            item.site(member)
        self._launch("_run", "n")
        return [*item.lines, *self.close("item", "n", group.members), "}", ""]

    def _several(self, member: Member, count: int) -> list[str]:
        """Write the kernel of which each item handles some sites of a row."""
        item = Sites(self.group, self.dialect, self.constants, count=count)
        first = f"{'(int)from + ' if self.group.ranged else ''}{count} * "
        item.lines = [*self._open("_run"), self._thread("item", start=first)]
        with item.block("if (item < n)"):
            item.sites(member)
        self._launch("_run", "n", over=count)
        return [*item.lines, "}", ""]

    def _rows(self, item: Site, member: Member) -> None:
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

    def _site(self, item: Site, member: Member, *, wrap: bool) -> None:
        """Write the body of the site ``x`` of a row; ``wrap``: its neighbours may be at the other end."""
        site = Site(self.group, self.dialect, self.constants, lines=item.lines, pad=item.pad, ends=wrap)
        site.add(self.sums.declare((member,)))
        site.offsets(member, (2,), wrap=wrap)
        site.body(member)
        site.add(self.sums.keep((member,), "row - x0 + x - part"))


