"""Lists of fluid cells: how they are numbered, what they cost, what is refused, saving and going on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fluxloom as fl
from fluxloom import RW, Loop, Read, Write
from fluxloom.core.errors import LoopError, SolverError
from fluxloom.lbm.boundaries import Body
from fluxloom.lbm.cells.box import Box
from fluxloom.lbm.cells.labels import labels_of
from fluxloom.lbm.cells.lists import CellList
from fluxloom.lbm.lattices import D2Q9, D3Q19, D3Q27, Lattice
from fluxloom.lbm.shapes.shapes import Circle, Sphere
from fluxloom.solvers.lattice.flow import LatticeBoltzmann
from tests.lattice_names import lattice_flow

DISK = [Body("disk", Circle((3.0, 4.0), 2.6))]


def context() -> fl.Context:
    return fl.Context("cpu", threads=1, tuning=False)


def flow(streaming: str = "in-place", cells: str = "fluid", **options: Any) -> LatticeBoltzmann:
    """Return a plane with a disk in it, in a force."""
    given: dict[str, Any] = {"lattice": D2Q9, "force": (0.0, 1e-3), "bodies": DISK, "dtype": "float64"} | options
    return lattice_flow(context(), (8, 10), viscosity=0.1, streaming=streaming, cells=cells, **given)


# ---------------------------------------------------------------------------------------- the list


@pytest.mark.parametrize("lattice", [D2Q9, D3Q19, D3Q27], ids=lambda lattice: lattice.name)
@pytest.mark.parametrize("joined", [True, False])
def test_neighbours(lattice: Lattice, joined: bool) -> None:
    """Legs lead to the neighbours that the grid has, or to places of their own; each leg leads to a place once."""
    d = lattice.dimensions
    shape, shapes = ((7, 9), [Circle((3.1, 4.2), 2.3)]) if d == 2 else ((5, 6, 7), [Sphere((2.1, 2.6, 3.3), 1.9)])
    box = Box(shape, (joined,) * d)
    labels = labels_of(box, shapes)
    found = CellList(box, lattice, labels)
    fluid = labels.ravel() == 0
    n = int(fluid.sum())
    assert found.cells.tolist() == np.flatnonzero(fluid).tolist()
    links = 0
    for k, c in enumerate(lattice.velocities):
        there = box.shifted(found.cells, np.broadcast_to(np.array(c), (n, d)))
        inside = fluid[there]
        np.testing.assert_array_equal(found.cells[found.ahead[inside, k]], there[inside])
        beyond = found.ahead[~inside, k]
        assert beyond.tolist() == list(range(n, n + beyond.size))
        assert len(set(found.ahead[:, k].tolist())) == n
        links = max(links, beyond.size)
        # what leaves along k and what arrives against it are in one place, in different components
        shifts = np.broadcast_to(np.array(c), (n, d))
        np.testing.assert_array_equal(found.shifted(found.cells, shifts), found.ahead[:, k])
        np.testing.assert_array_equal(found.behind[:, lattice.opposite[k]], found.ahead[:, k])
    assert found.spare == links > 0


def test_only_fluid_is_known() -> None:
    box = Box((7, 9), (True, True))
    cells = CellList(box, D2Q9, labels_of(box, [Circle((3.0, 4.0), 2.5)]))
    solid = np.array([3 * 9 + 4])
    with pytest.raises(SolverError, match="cell 31 of the grid is not stored: it is no fluid"):
        cells.numbers(solid)
    with pytest.raises(SolverError, match="neighbours along velocities only"):
        cells.shifted(np.array([0]), np.array([[0, 2]]))


# ---------------------------------------------------------------------------------------- the rule


@fl.kernel
def crossed(u: Read, f: Write):
    f[0][1] = u[0]
    f[1][0] = u[1]


@fl.kernel
def turned(f: RW):
    a = f[0][0]
    f[0][0] = f[1][1]
    f[1][1] = a


@fl.kernel
def twice(u: Read, f: Write):
    f[0][0] = u[0]
    f[1][0] = u[1]
    f[1][1] = u[1]


def ring(table: list[list[int]]) -> tuple[fl.Context, Any, Any, Any]:
    ctx = context()
    cells = ctx.set(4, "cells")
    values = np.arange(8.0).reshape(4, 2)
    return ctx, cells, ctx.map(cells, cells, np.array(table), "ring"), ctx.dat(cells, values, "f")


AROUND = [[1, 3], [2, 0], [3, 1], [0, 2]]


def test_writes_through_legs_that_part() -> None:
    """Two legs meet in every cell, but not in a component: that may be written, and exchanged in place."""
    ctx, cells, legs, f = ring(AROUND)
    out = ctx.dat(cells, np.zeros((4, 2)), "out")
    Loop(crossed, cells, f, out[legs])()
    np.testing.assert_array_equal(out.read(), [[3.0, 6.0], [5.0, 0.0], [7.0, 2.0], [1.0, 4.0]])
    Loop(turned, cells, f[legs])()
    np.testing.assert_array_equal(f.read(), [[5.0, 4.0], [7.0, 6.0], [1.0, 0.0], [3.0, 2.0]])


@pytest.mark.parametrize(
    ("kernel", "table"), [(twice, AROUND), (crossed, [[1, 3], [1, 0], [3, 1], [0, 2]])], ids=["component", "leg"]
)
def test_writes_that_meet(kernel: Any, table: list[list[int]]) -> None:
    """A component through two legs, or a leg that leads two cells to one."""
    ctx, cells, legs, f = ring(table)
    out = ctx.dat(cells, np.zeros((4, 2)), "out")
    with pytest.raises(LoopError, match="written through map 'ring', which leads two elements to the same target"):
        Loop(kernel, cells, f, out[legs])


# ---------------------------------------------------------------------------------------- the flow


def test_values_over_the_box() -> None:
    """Arrays go in and come out over the box; where there is no fluid the density is one, the velocity zero."""
    sparse = flow(force=())
    rng = np.random.default_rng(0)
    density, velocity = 1 + 0.1 * rng.random((8, 10)), 0.01 * rng.standard_normal((8, 10, 2))
    sparse.initialise(density, velocity)
    solid = ~sparse.fluid
    assert solid.sum() == sparse.box.cells - sparse.cells == 21
    np.testing.assert_allclose(sparse.density(), np.where(solid, 1.0, density), atol=1e-14)
    np.testing.assert_allclose(sparse.velocity(), np.where(solid[..., None], 0.0, velocity), atol=1e-14)
    np.testing.assert_allclose(sparse.mass(), density[~solid].sum(), rtol=1e-13)


def test_cost() -> None:
    """Bytes go by the fluid: in single precision 152 of D3Q19 go in and out of a cell, a row of neighbours has 76."""
    options: dict[str, Any] = {
        "lattice": D3Q19,
        "bodies": [Body("ball", Sphere((5.0, 6.0, 7.0), 5.3))],
        "viscosity": 0.1,
    }
    found = {
        (cells, scheme): lattice_flow(context(), (11, 12, 14), streaming=scheme, cells=cells, **options).cost
        for cells in ("all", "fluid")
        for scheme in ("pull", "in-place")
    }
    assert found["all", "pull"].moved == found["all", "in-place"].moved == 152
    # a little more is counted for the spare places that are read
    assert 152 + 76 <= found["fluid", "pull"].moved < 1.05 * (152 + 76)
    assert 152 + 38 <= found["fluid", "in-place"].moved < 1.05 * (152 + 38)
    sparse = found["fluid", "pull"]
    assert found["all", "pull"].cells == 11 * 12 * 14
    assert sparse.table == 76 * sparse.cells
    assert sparse.memory < (152 + 76 + 16) * 1.25 * sparse.cells + 4096


@pytest.mark.parametrize("streaming", ["in-place", pytest.param("push", marks=pytest.mark.long)])
def test_saved_and_restored(streaming: str) -> None:
    """What has left towards walls is in spare places: with them a flow goes on to the same bits."""
    one, other = flow(streaming), flow(streaming)
    one.initialise()
    one.step(4)
    kept = [dat.read_places() for dat in one.space.buffers]
    assert np.abs(kept[0][one.cells :]).max() > 0
    one.step(3)
    other.initialise()
    for dat, values in zip(other.space.buffers, kept, strict=True):
        dat.write_places(values)
    other.steps = 4
    other.step(3)
    np.testing.assert_array_equal(other.velocity(), one.velocity())
    assert one.velocity().max() > 1e-4


# ---------------------------------------------------------------------------------------- refused


def test_wrong_word() -> None:
    with pytest.raises(SolverError, match=r"AllCells, FluidCells, .*not 'fluids'; write cells=FluidCells\(\)"):
        LatticeBoltzmann(context(), (8, 10), viscosity=0.1, cells="fluids")  # pyright: ignore[reportArgumentType]


def test_immersed_boundaries_need_all_cells() -> None:
    with pytest.raises(SolverError, match=r"needs all cells of the box: make the flow with cells=AllCells\(\)"):
        flow(force=()).immerse(object())
