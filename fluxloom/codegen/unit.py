"""One translation unit: the prelude, the helpers that its loops need, and the loops."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources

from fluxloom.codegen.dialect import C
from fluxloom.codegen.grid import GridDriver
from fluxloom.codegen.group import Group
from fluxloom.codegen.rows import RowShape, helper_source, stream_source, vector, vector_types
from fluxloom.codegen.spec import Entry
from fluxloom.codegen.wrapper import Driver

__all__ = ["Unit", "generate"]


@dataclass(frozen=True)
class Unit:
    """Generated C: the text, and the entry point of each group in order."""

    text: str
    entries: tuple[Entry, ...]


def generate(groups: Sequence[Group]) -> Unit:
    """Generate the C source of some groups as one translation unit."""
    helpers: set[RowShape] = set()
    bodies, entries = [], []
    for group in groups:
        driver = GridDriver(group, C) if group.members[0].spec.grid else Driver(group, C)
        bodies.append(driver.write())
        entries.append(driver.entry())
        helpers |= driver.helpers
    prelude = resources.files("fluxloom.codegen").joinpath("prelude.c").read_text()
    return Unit("\n".join([prelude, _helpers(helpers), *bodies]), tuple(entries))


def _helpers(shapes: set[RowShape]) -> str:
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
