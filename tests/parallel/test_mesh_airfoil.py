"""The Airfoil mesh in slices, and divided among ranks."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest

from fluxloom.comm.threads import run_threads
from fluxloom.core.errors import DatError, MeshError
from fluxloom.mesh import DistributedMesh, airfoil_mesh, airfoil_slice, distribute
from fluxloom.mesh.generate.airfoil import AIRFOIL_LINKS, AIRFOIL_VALUES, AirfoilMesh, cut_airfoil


def assert_divided(parts: list[DistributedMesh], whole: AirfoilMesh) -> None:
    """Check owners, tables and values of all ranks."""
    for name, size in whole.sets.items():
        owned = np.concatenate([p.parts[name].numbers[: p.parts[name].owned] for p in parts])
        np.testing.assert_array_equal(np.sort(owned), np.arange(size))
    for name, (source, target) in AIRFOIL_LINKS.items():
        table = whole.tables[name].reshape(whole.sets[source], -1)
        for part in parts:
            rows = part.parts[source].numbers[: part.parts[source].executed]
            assert len(part.tables[name]) == len(rows)
            np.testing.assert_array_equal(part.parts[target].numbers[part.tables[name]], table[rows])
    for name, over in AIRFOIL_VALUES.items():
        for part in parts:
            owned = part.parts[over].numbers[: part.parts[over].owned]
            np.testing.assert_array_equal(part.values[name], whole.values[name][owned])


@pytest.mark.parametrize(("ranks", "method"), [(1, "auto"), (2, "kway"), (3, "rcb"), (5, "block"), (7, "auto")])
def test_slices_are_divided_like_the_whole(ranks: int, method: str) -> None:
    whole = airfoil_mesh(12, 17)

    def sliced(comm):  # type: ignore[no-untyped-def]
        return distribute(airfoil_slice(12, 17, comm.rank, comm.size), comm, method=method)

    parts = run_threads(ranks, sliced)
    assert_divided(parts, whole)
    again = run_threads(ranks, lambda comm: distribute(whole, comm, method=method))  # type: ignore[arg-type]
    for one, two in zip(parts, again, strict=True):
        for name in AIRFOIL_LINKS:
            np.testing.assert_array_equal(one.tables[name], two.tables[name])
    assert parts[0].sets is parts[0].parts


def test_shares_and_weights() -> None:
    whole = airfoil_mesh(10, 12)
    weights = np.where(np.arange(360) < 180, 3.0, 1.0)

    def weighted(comm):  # type: ignore[no-untyped-def]
        mine = weights[360 * comm.rank // 2 : 360 * (comm.rank + 1) // 2]
        return distribute(whole, comm, method="rcb", shares=(0.75, 0.25), weights=mine)

    parts = run_threads(2, weighted)
    assert_divided(parts, whole)
    loads = [weights[p.parts["cells"].numbers[: p.parts["cells"].owned]].sum() for p in parts]
    assert loads[0] / sum(loads) == pytest.approx(0.75, abs=0.01)


@pytest.mark.parametrize("ranks", [1, 2, 3, 7, 50])
def test_slices_of_the_tables(ranks: int) -> None:
    whole = airfoil_mesh(3, 4)
    slices = [airfoil_slice(3, 4, rank, ranks) for rank in range(ranks)]
    views = [cut_airfoil(whole, rank, ranks) for rank in range(ranks)]
    for item in fields(AirfoilMesh):
        for parts in (slices, views):
            rows = np.concatenate([getattr(part.rows, item.name) for part in parts])
            np.testing.assert_array_equal(rows, getattr(whole, item.name))
            assert rows.dtype == getattr(whole, item.name).dtype
    assert all(part.sizes == whole.sets for part in slices + views)


def test_what_cannot_be_sliced_or_divided() -> None:
    with pytest.raises(MeshError, match=r"has slices 0 \.\.\. 2, not 3"):
        airfoil_slice(3, 4, 3, 3)
    with pytest.raises(MeshError, match="needs i >= 2 and j >= 1"):
        airfoil_slice(1, 4, 0, 3)
    with pytest.raises(DatError, match="'cells' has 6 elements, too few for 7 ranks: use at most 6"):
        run_threads(7, lambda comm: distribute(airfoil_slice(2, 1, comm.rank, comm.size), comm))
