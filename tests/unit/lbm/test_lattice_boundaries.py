"""Conditions of lattices: formulas of cells, what is refused, values that change."""

from __future__ import annotations

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.core.errors import SolverError
from fluxloom.core.strategies import strategy_name
from fluxloom.lbm.boundaries import (
    AntiBounceBack,
    Body,
    BounceBack,
    OpeningScheme,
    Outflow,
    Pressure,
    RegularisedCells,
    Slip,
    Velocity,
    Wall,
    ZouHe,
)
from fluxloom.lbm.boundaries.cell_kernels import Normal, complete
from fluxloom.lbm.lattices import D2Q9, D3Q19, D3Q27, Lattice
from fluxloom.lbm.shapes.shapes import Circle
from tests.lattice_boundaries_flow import Flow


def box(**sides: object) -> Flow:
    return Flow((6, 6), sides, context=fl.Context("reference"))  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("lattice", [D2Q9, D3Q19, D3Q27])
@pytest.mark.parametrize("scheme", [ZouHe(), RegularisedCells()], ids=strategy_name)
def test_cells_get_what_is_set(lattice: Lattice, scheme: OpeningScheme) -> None:
    """Density and velocity are met to round-off on every side, half of the force included."""
    rng = np.random.default_rng(2)
    d, c = lattice.dimensions, np.array(lattice.velocities)
    for axis, inward in [(a, n) for a in range(d) for n in (-1, 1)]:
        constants = {"lattice": lattice, "scheme": scheme, "side": Normal(axis, inward), "unit": 1.0}
        f, u, pull = 0.01 * rng.standard_normal(lattice.q), 0.05 * rng.standard_normal(d), 1e-3 * rng.standard_normal(d)
        g = f.copy()
        complete(g, None, u, pull, **constants)
        np.testing.assert_allclose(c.T @ g + pull / 2, (1 + g.sum()) * u, atol=1e-15)
        g = f.copy()
        complete(g, np.array([0.013]), u, pull, **constants)
        assert g.sum() == pytest.approx(0.013, abs=1e-15)
        along = np.arange(d) != axis
        np.testing.assert_allclose(((c.T @ g + pull / 2) / 1.013)[along], u[along], atol=1e-15)
        if isinstance(scheme, ZouHe):
            known = c[:, axis] * inward != 1
            np.testing.assert_array_equal(g[known], f[known])


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Wall(center=(1.0, 2.0)), "measure=True"),
        (lambda: Velocity((0, 0), "regularized"), r"write scheme=RegularisedCells\(\)"),
        (lambda: Pressure(1.0, "zouhe"), r"ZouHe, .*not 'zouhe'"),
        (lambda: Pressure(1.0, BounceBack()), "a scheme of a pressure is wanted"),
        (lambda: AntiBounceBack(rate=2.0), "about 0.001"),
        (lambda: AntiBounceBack(absorbing=False, rate=0.01), "absorbs no waves"),
        (lambda: Pressure(velocity=(0, 0)), "leave it out"),
        (lambda: Outflow(speed=-1.0), "must be positive"),
        (lambda: Outflow(rate=2.0), "about 0.01"),
        (lambda: box(xmin=Velocity((0.0, 0.7)), xmax=Pressure()), "speed of sound"),
        (lambda: box(xmin=Velocity((0.0, 0.1, 0.2)), xmax=Pressure()), "xmin: the velocity has the shape"),
        (lambda: box(xmin=Velocity(lambda x: x[:2]), xmax=Pressure()), "xmin: the function"),
        (lambda: box(xmin=Velocity(lambda x: np.nan * x), xmax=Pressure()), "not finite"),
        (lambda: box(xmin=Pressure(-1.0), xmax=Pressure()), "xmin: a density of -1"),
        (lambda: box(ymin=Wall(measure=True, center=(1.0,)), ymax=Wall()), "ymin: center"),
    ],
)
def test_what_does_not_fit_is_refused(make: object, words: str) -> None:
    with pytest.raises(SolverError, match=words):
        make()  # pyright: ignore[reportCallIssue]


def test_bodies_take_walls_only() -> None:
    ctx = fl.Context("reference")
    with pytest.raises(SolverError, match="body 'disc': only sides"):
        Flow((6, 6), {}, [Body("disc", Circle((3.0, 3.0), 1.2), Slip())], context=ctx)


def test_plain_walls_are_one_and_others_have_names() -> None:
    flow = box(ymin=Wall(), ymax=Wall(), xmin=Wall(measure=True), xmax=Wall(velocity=(0.01, 0.0)))
    assert set(flow.parts) == {"walls", "xmin", "xmax", "xmin corners"}
    assert flow.parts["walls"].force is None
    assert flow.parts["xmin"].force is not None
    # 3 populations a cell arrive from a side; those through a corner belong to one of its sides
    assert sum(part.links for part in flow.parts.values()) == 4 * 6 * 3 - 4


def test_links_without_a_second_cell_are_counted() -> None:
    """In a slit one cell wide there is nothing to interpolate with where the wall is nearer than half-way."""
    wall = Wall(interpolated=True, measure=True)
    bodies = [Body("low", Circle((0.0, 3.0), 1.7), wall), Body("high", Circle((4.0, 3.0), 1.7), wall)]
    flow = Flow((6, 7), {}, bodies, context=fl.Context("reference"))
    assert flow.parts["low"].halfway > 0


def test_values_change_and_edges_follow() -> None:
    flow = box(xmin=Velocity((0.0, 0.01)), ymin=Velocity((0.0, 0.01)), xmax=Wall(), ymax=Wall())
    assert "ymin+xmin" in flow.parts or "xmin+ymin" in flow.parts
    name = next(n for n in flow.parts if "+" in n)
    first = name.split("+")[0]
    flow.parts[first].assign((0.0, 0.03))
    flow.step()
    c = np.array(D2Q9.velocities)
    corner = flow.g[0, 0]
    np.testing.assert_allclose(corner @ c / (1 + corner.sum()), [0.0, 0.03], atol=1e-12)
    with pytest.raises(SolverError, match="walls: this condition sets no values"):
        flow.parts["walls"].assign(1.0)
