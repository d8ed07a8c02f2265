"""One translation unit: the prelude, the helpers that its loops need, and the loops."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fluxloom.codegen.language.dialect import DIALECTS, C, Dialect
from fluxloom.codegen.language.frame import fixed_part, prelude
from fluxloom.codegen.language.group import Group
from fluxloom.codegen.language.printer import table_source
from fluxloom.codegen.language.spec import Entry
from fluxloom.codegen.packs.rows import RowShape, helper_source, stream_source, vector, vector_types
from fluxloom.codegen.packs.wrapper import Driver
from fluxloom.core.dtypes import FLOAT16

if TYPE_CHECKING:
    from fluxloom.codegen.grids.grid import GridDriver

__all__ = ["Unit", "generate"]

_INTRINSICS = """#if defined(__AVX__)
#include <immintrin.h>
#endif
"""
"""For units that name vector instructions: the header alone takes a compiler 0.15 s."""


@dataclass(frozen=True)
class Unit:
    """Generated source: the text, and the entry point of each group in order."""

    text: str
    entries: tuple[Entry, ...]

    @property
    def symbols(self) -> list[str]:
        """Every function that is called from outside."""
        return [s for e in self.entries for s in ([x.symbol for x in e.launches] or [e.symbol])]


def generate(groups: Sequence[Group], dialect: str = "c", *, contract: bool = True) -> Unit:
    """Generate the source of some groups as one translation unit; the same groups have the same one.

    Parameters
    ----------
    dialect
        Name of the target language.
    contract
        Whether the compiler may contract ``a * b + c``; some languages say so in the source.
    """
    return _generated(tuple(groups), dialect, contract)


@functools.lru_cache(maxsize=128)  # a solver that is made anew, on another mesh or level, has the loops of the last
def _generated(groups: tuple[Group, ...], dialect: str, contract: bool) -> Unit:
    """Return the unit of some groups."""
    if dialect != "c":
        return generate_kernels(groups, DIALECTS[dialect], contract=contract)
    helpers: set[RowShape] = set()
    bodies, entries = [], []
    for group in groups:
        driver = _driver(group)
        bodies.append(driver.write())
        entries.append(driver.entry())
        helpers |= driver.helpers
    return Unit(whole([*tables_of(groups, C), row_helpers(helpers), *bodies]), tuple(entries))


def _driver(group: Group) -> Driver | GridDriver:
    """Return what writes the function of a group."""
    if group.members[0].spec.grid is None:
        return Driver(group, C)
    from fluxloom.codegen.grids.grid import GridDriver
    from fluxloom.codegen.grids.lists import ListDriver
    from fluxloom.codegen.grids.stream import StreamDriver
    from fluxloom.codegen.grids.stream_places import streams

    return (ListDriver if group.listed else StreamDriver if streams(group) else GridDriver)(group, C)


def whole(parts: Sequence[str]) -> str:
    """Return the source of a unit: what every one begins with, and its own parts."""
    body = "\n".join(parts)
    return "\n".join([*([_INTRINSICS] if "_mm" in body else []), fixed_part(), body])


def generate_kernels(groups: Sequence[Group], dialect: Dialect, *, contract: bool = True) -> Unit:
    """Generate the source of some groups for a device of work items."""
    from fluxloom.codegen.grids.kernels import GridKernels
    from fluxloom.codegen.items.kernels import KernelDriver

    drivers = [GridKernels(g, dialect) if g.members[0].spec.grid else KernelDriver(g, dialect) for g in groups]
    half = any(a.scalar is FLOAT16 for g in groups for m in g.members for a in m.spec.args)
    texts = [prelude(dialect, contract, half=half), *tables_of(groups, dialect), *(d.write() for d in drivers)]
    return Unit("\n".join(texts), tuple(d.entry() for d in drivers))


def tables_of(groups: Sequence[Group], dialect: Dialect) -> list[str]:
    """Return the constant tables that some groups read, and functions by which they find entries, if there are any."""
    specs = [member.spec for group in groups for member in group.members]
    codes = [arg.ragged.code for spec in specs for arg in spec.args if arg.ragged is not None and arg.ragged.code]
    return [text for text in (*dict.fromkeys(code.functions for code in codes), table_source(specs, dialect)) if text]


def row_helpers(shapes: set[RowShape]) -> str:
    """Return the functions that move rows, of the shapes that some loops need."""
    types: dict[str, str] = {}
    streams: dict[str, str] = {}
    for shape in sorted(shapes, key=lambda s: s.name):
        for scalar in (shape.storage, shape.compute):
            n = shape.width
            while n <= shape.lanes:
                if n > 1:
                    types[vector(scalar, n)] = vector_types(scalar, n)
                n *= 2
        if shape.stream:
            width = shape.width if shape.width > 1 else shape.lanes
            streams[vector(shape.storage, width)] = stream_source(shape.storage, width)
    functions = [helper_source(s) for s in sorted(shapes, key=lambda s: s.name)]
    return "\n".join(["/* Rows in, rows out. */", *types.values(), *streams.values(), *functions])
