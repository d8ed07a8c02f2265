"""Walking the contributions of a target: positions in the tables of its loops, in the order of the sum."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Protocol

from fluxloom.codegen.language.group import Group

__all__ = ["Contributions"]


class _Writer(Protocol):
    def line(self, text: str) -> None: ...

    def block(self, opening: str) -> AbstractContextManager[None]: ...


@dataclass(frozen=True)
class Contributions:
    """A table of contributions: padded columns that neighbouring items read together, or compressed rows.

    The slots are ``{name}_pos`` and ``{name}_stride`` (padded to ``degree`` columns) or ``{name}_ptr``, and
    ``{name}_met``, the list of targets, when few are met.
    """

    group: Group
    name: str

    def target(self, item: str) -> str:
        """Return the line that names the target ``t`` of a work item."""
        return f"const int t = {self.name}_met[{item}];" if self.group.work.sparse else f"const int t = {item};"

    @contextmanager
    def loop(self, out: _Writer) -> Iterator[None]:
        """Write a loop over the contributions ``p`` of the target of ``item`` around what follows."""
        work, name = self.group.work, self.name
        if not work.degree:
            with out.block(f"for (int k = {name}_ptr[item]; k < {name}_ptr[item + 1]; k++)"):
                out.line(f"const int p = {name}_pos[k];")
                yield
            return
        with out.block(f"for (int k = 0; k < {work.degree}; k++)"):
            out.line(f"const int p = {name}_pos[k * {name}_stride + item];")
            with out.block("if (p >= 0)"):
                yield
