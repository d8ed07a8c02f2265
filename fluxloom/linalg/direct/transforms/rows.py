"""Transforms by a library that has Fourier transforms of rows alone, with kernels before and after them."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import fields
from functools import cached_property
from typing import Any

import numpy as np

from fluxloom.core.dtypes import scalar
from fluxloom.core.errors import PlanError
from fluxloom.device.base import Call, Device, Enqueued
from fluxloom.device.transforms.dft import merged
from fluxloom.dsl.declare.arrays import DeviceArray
from fluxloom.dsl.run.primitive import Operand, Primitive
from fluxloom.linalg.direct.transforms.kernels import BLOCK, ROWS, TILE, WIDTHS, copy_functions, helpers, row_functions
from fluxloom.linalg.direct.transforms.lines import blocks_of
from fluxloom.linalg.direct.transforms.recipes import Collect, Combine, Mix, Recipe, Spread

__all__ = ["Copies", "Rows"]

_MOST = 2**31 - 1


def _width(entries: int) -> int:
    """Return the exponent of the number of items along a line."""
    return next((k for k, width in enumerate(WIDTHS) if width >= entries), len(WIDTHS) - 1)


def _items(entries: int, lanes: int, outers: int, *, along: bool, name: str) -> int:
    """Return the work items of a kernel."""
    if along:
        width = WIDTHS[_width(entries)]
        groups = -(-entries // width) * -(-lanes * outers // (ROWS * (BLOCK // width)))
    else:
        groups = -(-entries // TILE) * -(-lanes // TILE) * outers
    if max(groups, lanes * outers, entries) > _MOST:
        raise PlanError(f"{name}: {lanes * outers} lines are too many for one kernel: transform parts of the array")
    return groups * BLOCK


class Rows:
    """Real transforms along an axis by a recipe: into rows, the library's transform of these, out of them.

    Parameters
    ----------
    device
        Runs the kernels.
    dtype
        Of the values.
    """

    def __init__(self, device: Device, dtype: np.dtype[Any]) -> None:
        self._device, self._dtype = device, dtype

    @cached_property
    def _primitive(self) -> Primitive:
        real = scalar(self._dtype).c
        return Primitive(self._device, row_functions(real), "transforms", helpers(real))

    def calls(
        self, recipe: Recipe, axis: int, source: DeviceArray, target: DeviceArray, slab: int,
        transform: Callable[[int, int], tuple[DeviceArray, Enqueued]], name: str,
    ) -> list[Call | Enqueued]:  # fmt: skip
        """Return the calls of a transform: of some lines, then of the next ones in the same working memory.

        Parameters
        ----------
        source, target
            Real arrays of one shape, maybe the same.
        slab
            Bytes of the rows of one part, about.
        transform
            Is told how many rows there are and the largest number of rows of any part, and returns them and what
            transforms them in place.
        """
        before, after = recipe.before, recipe.after
        kinds = (
            "spread" if isinstance(before, Spread) else "mix",
            "collect" if isinstance(after, Collect) else "combine",
        )
        tables = self._tables(before), self._tables(after)
        most = max(1, slab // (recipe.reals * self._dtype.itemsize))
        parts = [part for block in blocks_of(source, target, axis) for part in block.parts(most)]
        largest = max(part.lines for part in parts)
        calls: list[Call | Enqueued] = []
        for part in parts:
            work, transformed = transform(part.lines, largest)
            places = [
                {
                    "lanes": part.lanes, "outers": part.outers, "first": part.firsts[k],
                    "row_step": array.strides[axis], "lane_step": part.lane_steps[k],
                    "outer_step": part.outer_steps[k], "pitch": recipe.reals,
                }
                for k, array in enumerate((source, target))
            ]  # fmt: skip
            calls.append(self._call(kinds[0], tables[0], places[0], source, work, f"{name} before"))
            calls.append(transformed)
            calls.append(self._call(kinds[1], tables[1], places[1], work, target, f"{name} after"))
        return calls

    def _tables(self, step: Spread | Mix | Combine | Collect) -> tuple[int, dict[str, DeviceArray]]:
        """Return the entries of a step, and its tables in the memory of the device, as kernels name them."""
        names = {"real": "re", "imaginary": "im"}
        found: dict[str, DeviceArray] = {}
        entries = 0
        for field in fields(step):
            table = getattr(step, field.name)
            entries = table.shape[-1]
            kind = np.dtype(np.int32) if table.dtype.kind == "i" else self._dtype
            array = DeviceArray.zeros(self._device, (table.size,), kind)
            array.assign(table.ravel().astype(kind))
            array.buffer.device()
            found[names.get(field.name, field.name)] = array
        return entries, found

    def _call(
        self, kind: str, tables: tuple[int, dict[str, DeviceArray]], place: dict[str, int], x: DeviceArray,
        y: DeviceArray, name: str,
    ) -> Call:  # fmt: skip
        entries, lanes, outers = tables[0], place["lanes"], place["outers"]
        along = lanes == 1 or abs(place["row_step"]) <= abs(place["lane_step"])
        items = _items(entries, lanes, outers, along=along, name=name)
        values = {"x": x, "y": y, "entries": entries, "shift": _width(entries), **place, **tables[1]}
        return self._primitive.call(f"{kind}_{'along' if along else 'across'}", values, items, name)


class Copies:
    """Copies between arrays whose values lie differently.

    Parameters
    ----------
    device
        Runs the kernels.
    dtype
        Of real values, or of the parts of complex ones.
    """

    def __init__(self, device: Device, dtype: np.dtype[Any]) -> None:
        self._device, self._dtype = device, dtype

    @cached_property
    def _primitive(self) -> Primitive:
        real = scalar(self._dtype).c
        return Primitive(self._device, copy_functions(real), "copies", helpers(real))

    def calls(self, source: DeviceArray, target: DeviceArray, name: str = "copy") -> list[Call]:
        """Return the calls that copy the values of an array to another one of its shape, real or complex."""
        parts = 2 if source.dtype.kind == "c" else 1
        axes = [(1, 0, 0)] * 3 + merged(source.shape, source.strides, target.strides)
        near = min(range(1, len(axes)), key=lambda k: (axes[k][0] == 1, abs(axes[k][1])))
        entry = min(range(1, len(axes)), key=lambda k: (axes[k][0] == 1, abs(axes[k][2])))
        along = near == entry
        lane = near
        if along:  # any other axis
            lane = max((k for k in range(len(axes)) if k != entry), key=lambda k: axes[k][0])
        rest = [axes[k] for k in range(len(axes)) if k not in (entry, lane)]
        outer = max(rest, key=lambda item: item[0])
        rest.remove(outer)
        found = []
        entries, lanes, outers = axes[entry][0], axes[lane][0], outer[0]
        for place in itertools.product(*(range(length) for length, _, _ in rest)):
            firsts = [a.first + sum(i * item[1 + m] for i, item in zip(place, rest, strict=True))
                      for m, a in enumerate((source, target))]  # fmt: skip
            values: dict[str, Operand] = {
                "x": source, "y": target, "entries": entries, "lanes": lanes, "outers": outers, "parts": parts,
                "shift": _width(entries),
            }  # fmt: skip
            for m, side in enumerate("xy"):
                steps = {"entry": axes[entry], "lane": axes[lane], "outer": outer}
                values[f"{side}_first"] = parts * firsts[m]
                values |= {f"{side}_{key}": parts * item[1 + m] for key, item in steps.items()}
            items = _items(entries, lanes, outers, along=along, name=name)
            found.append(self._primitive.call(f"copy_{'along' if along else 'across'}", values, items, name))
        return found
