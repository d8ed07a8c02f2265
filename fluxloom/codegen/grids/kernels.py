"""Loops over the elements of a grid as kernels of work items: one item a lattice site, or some, no tables."""

from __future__ import annotations

from fluxloom.codegen.grids.site import Site
from fluxloom.codegen.grids.sites import Sites
from fluxloom.codegen.items.kernels import KernelDriver
from fluxloom.codegen.language.group import Member

__all__ = ["GridKernels"]


class GridKernels(KernelDriver):
    """Writes the kernel of one loop over a grid, or over some of its elements.

    The lattice is treated as ``(n0, n1, n2)`` with the last axis contiguous; missing axes have one
    element. Neighbouring items are neighbours along the last axis, or in the list of elements.
    """

    def _direct(self) -> list[str]:
        group = self.group
        (member,) = group.members
        if group.work.sites > 1 and not group.listed:
            return self._several(member, group.work.sites)
        item = Site(group, self.dialect, self.constants)
        item.lines = self.open("_run")
        with self._elements(item, "n", group.members, "const int e = list[item];" if group.listed else ""):
            item.site(member, "e" if group.listed else "item")
        self.launch("_run", "n")
        return [*item.lines, *self.sums.reduce(group.members, "item", "n"), "}", ""]

    def _several(self, member: Member, count: int) -> list[str]:
        """Write the kernel of which each item handles some sites of a row."""
        item = Sites(self.group, self.dialect, self.constants, count=count)
        first = f"{'(int)from + ' if self.group.ranged else ''}{count} * "
        item.lines = [*self.open("_run"), self.thread("item", start=first)]
        with item.block("if (item < n)"):
            item.sites(member)
        self.launch("_run", "n", over=count)
        return [*item.lines, "}", ""]
