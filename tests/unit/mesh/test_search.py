"""Groups of places, each with the cells that it may be in."""

from __future__ import annotations

import numpy as np

from fluxloom.mesh.geometry.search import search

Array = np.ndarray


def test_every_place_has_the_cells_around_it() -> None:
    """Of intervals of any length: each place comes once, with all that it is in; far from all of them few are left."""
    random = np.random.default_rng(3)
    low = random.random((200, 2))
    high = low + random.random((200, 2)) ** 6
    places = random.uniform(-0.2, 1.2, (300, 2))

    def keep(rows: Array, least: Array, most: Array) -> Array:
        return rows[((most >= low[rows]) & (least <= high[rows])).all(axis=1)]

    met, looked = [], 0
    for rows, cells in search(places, np.arange(200), keep):
        looked += len(rows) * len(cells)
        for row in rows.tolist():
            inside = np.flatnonzero(((places[row] >= low) & (places[row] <= high)).all(axis=1))
            assert set(inside.tolist()) <= set(cells.tolist())
            met.append(row)
    assert sorted(met) == list(range(300))
    assert looked < 0.2 * 300 * 200
    assert not list(search(places[:0], np.arange(200), keep))
