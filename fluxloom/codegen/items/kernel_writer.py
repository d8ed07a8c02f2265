"""What all kernels of a group share: parameters, first lines, launches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fluxloom.codegen.items.item import Item
from fluxloom.codegen.language.dialect import Dialect, KernelWords
from fluxloom.codegen.language.frame import constants_of, kernel_slots, opening
from fluxloom.codegen.language.group import Group
from fluxloom.codegen.language.reduce import PART, GroupSums
from fluxloom.codegen.language.spec import LaunchSpec
from fluxloom.core.access import Access

__all__ = ["KernelWriter"]


@dataclass
class KernelWriter:
    """Opens the kernels of a group and notes their launches."""

    group: Group
    dialect: Dialect

    def __post_init__(self) -> None:
        assert self.dialect.words is not None
        self.words: KernelWords = self.dialect.words
        self.constants = constants_of(self.group)
        self.slots = kernel_slots(self.group, self.constants)
        self.launches: list[LaunchSpec] = []
        self.sums = GroupSums(self.group, self.words)

    def _written(self) -> frozenset[str]:
        """Names of the pointers that some kernel of the group writes through."""
        names: set[str] = set()
        for member in self.group.members:
            for arg in member.spec.args:
                if arg.access is not Access.READ:
                    names.add(f"d{arg.dat}o" if arg.dat in self.group.renamed else f"d{arg.dat}")
                    names |= {f"part{member.number}_{arg.parameter}", f"x{arg.dat}_{arg.parameter}"}
        return frozenset(names)

    def _meeting(self) -> frozenset[str]:
        """Names of the pointers that may lead to the same values.

        A dat that moves may move to where another one lies whose values nobody but the same element needs.
        """
        if not self.group.renamed:
            return frozenset()
        own = [a for m in self.group.direct for a in m.spec.args if a.kind == "direct"]
        far = {a.dat for m in self.group.members for a in m.spec.args if a.kind != "direct" or m in self.group.scatter}
        return frozenset({f"d{k}o" for k in self.group.renamed} | {f"d{a.dat}" for a in own if a.dat not in far})

    def open(self, suffix: str, tail: Sequence[str] = (), block: int = 0) -> list[str]:
        """Return the first lines of a kernel of the group; ``tail`` are trailing parameters."""
        work, name = self.group.work, self.group.symbol + suffix
        return opening(self.words, name, self.slots, self._written(), block or work.block, work.registers, tail,
                       self._meeting(), self.group.counted)  # fmt: skip

    def launch(self, suffix: str, extent: str = "", **more: int | bool) -> None:
        """Note that a kernel is launched, for the elements that a slot counts; empty: for one group."""
        block = self.group.work.block
        self.launches.append(LaunchSpec(self.group.symbol + suffix, block, extent, chunk=PART, **more))  # type: ignore[arg-type]

    def item(self, own: str = "i", limit: str = "") -> Item:
        """Return what writes the body for a work item."""
        return Item(self.group, self.dialect, self.constants, own, limit)

    def thread(self, name: str, start: str = "") -> str:
        """Return the line that names the number of the work item."""
        return f"    const int {name} = {start}{self.words.item.format(block=self.group.work.block)};"
