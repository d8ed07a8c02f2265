"""Random meshes cut into odd parts, and running the same program on one rank and on several ranks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import fluxloom as fl
from fluxloom.comm.base import Comm
from fluxloom.comm.threads import run_threads
from fluxloom.device.base import Device
from fluxloom.dsl.declare.parts import Part
from fluxloom.dsl.declare.sets import Subset
from fluxloom.dsl.ranks.decompose import Link, decompose

Values = dict[str, np.ndarray]


@dataclass(frozen=True, eq=False)
class Mesh:
    """Sets by name, and tables as (source, target, rows)."""

    sizes: Mapping[str, int]
    tables: Mapping[str, tuple[str, str, np.ndarray]]


def random_mesh(seed: int, cells: int = 60, *, local: bool = False) -> Mesh:
    """Return points, edges, cells and border elements; ``local``: maps join elements of like numbers.

    Consecutive cells of a local mesh have an interior, those of the others hardly ever.
    """
    rng = np.random.default_rng(seed)
    points, edges, border = cells // 2 + 3, 2 * cells, max(1, cells // 6)
    first = np.sort(rng.integers(0, cells, edges)) if local else rng.integers(0, cells, edges)
    second = (first + rng.integers(0, 5, edges)) % cells if local else rng.integers(0, cells, edges)
    corners, ends = rng.integers(0, points, (cells, 3)), rng.integers(0, points, (edges, 2))
    if local:
        corners = np.arange(cells)[:, None] // 2 + rng.integers(0, 4, (cells, 3))
        ends = first[:, None] // 2 + rng.integers(0, 4, (edges, 2))
    tables = {
        "edge_cells": ("edges", "cells", np.stack([first, second], 1)),
        "edge_points": ("edges", "points", ends % points),
        "cell_points": ("cells", "points", corners % points),
        "near": ("cells", "cells", (np.arange(cells)[:, None] + rng.integers(0, 9, (cells, 3))) % cells),
        "border_cell": ("border", "cells", rng.permutation(cells)[:border, None]),
    }
    return Mesh({"points": points, "edges": edges, "cells": cells, "border": border}, tables)


OWNERS = ("random", "blocks", "gap", "lonely", "one")


def owners(kind: str, cells: int, ranks: int, seed: int = 0) -> np.ndarray:
    """Return the rank of each cell.

    ``random``; ``blocks`` of consecutive cells; ``gap``: rank 0 has none; ``lonely``: the last rank has one cell;
    ``one``: rank 1 has everything.
    """
    rng = np.random.default_rng(seed)
    match kind:
        case "random":
            return rng.integers(0, ranks, cells)
        case "gap":
            return rng.integers(1, ranks, cells)
        case "lonely":
            found = np.arange(cells) * (ranks - 1) // cells
            found[cells // 3] = ranks - 1
            return found
        case "one":
            return np.full(cells, min(1, ranks - 1))
    return np.arange(cells) * ranks // cells


class World:
    """A mesh on a context: all of it, or one rank's part. Values are given and compared for all of a set."""

    def __init__(
        self,
        mesh: Mesh,
        comm: Comm | None = None,
        owner: np.ndarray | None = None,
        device: str | Device = "cpu",
        *,
        layout: Any = None,
        dtype: str = "float64",
        **choices: Any,
    ) -> None:
        self.mesh, self.layout, self.dtype = mesh, layout, dtype
        self.rank = 0 if comm is None else comm.rank
        parts: Mapping[str, Part] = {}
        tables = {name: table for name, (_, _, table) in mesh.tables.items()}
        if comm is not None:
            parts, tables = _decompose(mesh, comm, owner)
            if comm.size == 1:
                parts = {}
        self.ctx = fl.Context(device, tuning=False, comm=comm, **choices)
        self.sets = {name: self.ctx.set(parts.get(name, size), name) for name, size in mesh.sizes.items()}
        self.maps = {
            name: self.ctx.map(self.sets[source], self.sets[target], tables[name], name)
            for name, (source, target, _) in mesh.tables.items()
        }

    def numbers(self, name: str) -> np.ndarray:
        """Return the global numbers of the elements that the rank owns."""
        part = self.sets[name].part
        return np.arange(self.sets[name].size) if part is None else part.numbers[: part.owned]

    def dat(self, over: str, values: Any, name: str, *, dtype: str | None = None) -> fl.Dat:
        """Declare a dat by the values of all elements."""
        array = np.asarray(values)[self.numbers(over)]
        return self.ctx.dat(self.sets[over], array, name, dtype=dtype or self.dtype, layout=self.layout)

    def subset(self, over: str, mask: np.ndarray, name: str = "") -> Subset:
        """Declare a subset by a mask over all elements."""
        return self.ctx.subset(self.sets[over], mask[self.numbers(over)], name)

    def found(self, outputs: Mapping[str, Any]) -> dict[str, tuple[np.ndarray | None, np.ndarray]]:
        """Return what the rank has of each output: the numbers of its elements, None for a global; the values."""
        return {
            name: (None, np.array(item.value))
            if isinstance(item, fl.Global)
            else (self.numbers(item.set.name), item.read())
            for name, item in outputs.items()
        }


def _decompose(mesh: Mesh, comm: Comm, owner: np.ndarray | None) -> tuple[Mapping[str, Part], dict[str, np.ndarray]]:
    """Give each rank its part; the slices are even."""

    def mine(rows: np.ndarray) -> np.ndarray:
        return rows[len(rows) * comm.rank // comm.size : len(rows) * (comm.rank + 1) // comm.size]

    links = {name: Link(source, target, mine(table)) for name, (source, target, table) in mesh.tables.items()}
    found = decompose(comm, mesh.sizes, links, on="cells", owner=None if owner is None else mine(owner))
    return found.parts, {name: found.table(name) for name in links}


Body = Callable[[World], Mapping[str, Any]]
"""Builds and runs something; returns the dats and globals to look at."""


def alone(body: Body, mesh: Mesh, device: str | Device = "cpu", **options: Any) -> Values:
    """Return what one rank leaves."""
    world = World(mesh, device=device, **options)
    return {name: values for name, (_, values) in world.found(body(world)).items()}


def together(
    body: Body,
    mesh: Mesh,
    ranks: int,
    owner: np.ndarray | None = None,
    device: str | Device | Sequence[Any] = "cpu",
    **options: Any,
) -> Values:
    """Return what several ranks leave, put together; globals must be the same on all.

    ``device`` may be one a rank: a name, or a name and threads.
    """

    def rank(comm: Comm) -> dict[str, tuple[np.ndarray | None, np.ndarray]]:
        mine: Any = device[comm.rank] if isinstance(device, list | tuple) else device
        more = dict(options)
        if isinstance(mine, tuple):
            mine, more["threads"] = mine
        made: Any = mine() if callable(mine) else mine
        world = World(mesh, comm, owner, made, **more)
        return world.found(body(world))

    return join(run_threads(ranks, rank))


def join(pieces: Sequence[Mapping[str, tuple[np.ndarray | None, np.ndarray]]]) -> Values:
    """Put together what the ranks have."""
    out: Values = {}
    for name, (numbers, first) in pieces[0].items():
        if numbers is None:
            assert all(piece[name][1].tobytes() == first.tobytes() for piece in pieces), f"{name} differs by rank"
            out[name] = first
            continue
        whole = np.concatenate([piece[name][0] for piece in pieces])  # type: ignore[misc]
        assert np.array_equal(np.sort(whole), np.arange(whole.size)), f"{name}: every element has one owner"
        out[name] = np.empty((whole.size, *first.shape[1:]), dtype=first.dtype)
        out[name][whole] = np.concatenate([piece[name][1] for piece in pieces])
    return out


def difference(got: Values, want: Values, tolerance: float, exact: Sequence[str] = ()) -> str:
    """Return where two results differ by more than a share of the largest value; those in ``exact`` to the last bit."""
    assert set(got) == set(want)
    for name, right in want.items():
        left = got[name]
        assert left.dtype == right.dtype
        assert left.shape == right.shape
        if tolerance == 0 or name in exact or right.dtype.kind != "f":
            if left.tobytes() != right.tobytes():
                return f"{name}: {np.count_nonzero(left != right)} of {left.size} values differ"
            continue
        scale = float(np.abs(right.astype(np.float64)).max(initial=0.0)) or 1.0
        worst = float(np.abs(left.astype(np.float64) - right.astype(np.float64)).max(initial=0.0)) / scale
        if not worst <= tolerance:
            return f"{name}: largest difference {worst:.2e}"
    return ""
