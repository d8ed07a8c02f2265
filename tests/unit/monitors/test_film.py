"""Films of flows that have values at points, and of lattices."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.cases.files.loading import load_case
from fluxloom.comm.base import Comm
from fluxloom.comm.threads import run_threads
from fluxloom.core.errors import CaseError, SolverError
from fluxloom.dsl.context import Context
from fluxloom.dsl.declare.schedule import Schedule
from fluxloom.flows.lattice.given.start import Start
from fluxloom.flows.lattice.given.units import Units
from fluxloom.flows.shallow.flow import Plan
from fluxloom.fv.shallow.scheme import ShallowScheme
from fluxloom.mesh import box2d
from fluxloom.mesh.geometry.metrics import cell_geometry
from fluxloom.monitors.film import Film
from fluxloom.run.results.results import ResultFolder

STAGGERED = """
[case]
name = "box"
solver = "staggered"
[mesh]
x = [0.0, 2.0]
y = [0.0, 1.0]
nx = 16
ny = 8
[fluid]
viscosity = 0.1
[boundary]
xmin.type = "wall"
xmax.type = "wall"
ymin.type = "wall"
ymax = {{ type = "wall", velocity = [1.0, 0.0] }}
[time]
dt = 0.01
[movie]
every = 2
field = "{field}"
{range}
[run]
iterations = 4
"""


def film_of(comm: Comm, folder: Path, field: str, most: str = "range = 1.0") -> Film:
    """Return the film of four steps in a box with a lid."""
    path = folder / f"box{comm.rank}.toml"
    path.write_text(STAGGERED.format(field=field, range=most))
    case, application = load_case(path)
    run = application.build(case, Context("cpu", threads=1, tuning=False, comm=comm))
    (folder / "out").mkdir(exist_ok=True)
    run.begin(ResultFolder(folder / "out" if comm.rank == 0 else None))
    for _ in range(4):
        run.advance()
    run.finish(pictures=False)
    return next(one for one in run.monitors if isinstance(one, Film))


@pytest.mark.parametrize(("field", "most"), [("speed", 1.0), ("vorticity", 20.0), ("u", 1.0)])
def test_films_of_values_at_points(field: str, most: float, tmp_path: Path) -> None:
    """The start and each second step; what the lid moves spreads downwards; the mesh fills the picture."""
    image = pytest.importorskip("PIL.Image")
    film = film_of(run_threads(1, lambda comm: comm)[0], tmp_path, field, f"range = {most}")
    assert image.open(tmp_path / "out" / f"{field}.gif").n_frames == 3
    assert film.movie is not None
    first, last = (np.asarray(film.movie.pictures[k], dtype=int) for k in (0, -1))
    rows, columns = last.shape
    assert columns == 2 * rows
    middle = (slice(None), columns // 2)
    assert (last[middle] != 255).all()
    changed = np.abs(last - first)[:, columns // 2]
    assert changed[rows // 10] > 15, "the first row is above"
    assert changed[rows // 2 :].max() < changed[rows // 10]


def test_ranks_make_one_film(tmp_path: Path) -> None:
    """Staggered flow runs on one rank; a lattice draws its own layers: on two ranks the same as on one."""
    pytest.importorskip("PIL.Image")

    def filmed(comm: Comm) -> Any:
        units = Units.of(0.1, reynolds=20)
        flow = fl.Lattice(
            (20, 10), units, Context("cpu", threads=1, tuning=False, comm=comm),
            start=Start(lambda at: np.stack([np.sin(at[:, 1]), 0.0 * at[:, 0]], axis=1)),
        )  # fmt: skip
        film = Film("speed", 2)
        fl.run(flow, fl.Steps(4), [film], directory=tmp_path / str(comm.size), overwrite=True)
        return [] if film.movie is None else film.movie.pictures

    one, two = run_threads(1, filmed)[0], run_threads(2, filmed)[0]
    assert len(one) == len(two) == 3
    for mine, theirs in zip(one, two, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    assert np.ptp(np.asarray(one[0], dtype=int)) > 20


END = {"airfoil": fl.Steps(4), "water": fl.Time(0.4)}


def made(kind: str, comm: Comm) -> fl.Airfoil | fl.ShallowWater:
    """Return a flow whose values at points are those of cells."""
    context = Context("cpu", threads=1, tuning=False, comm=comm)
    if kind == "airfoil":
        return fl.Airfoil((16, 10), context)
    return fl.ShallowWater(
        box2d(8, 4, (2.0, 1.0), "triangle", perturb=0.2), context, plan=Plan(0.4, 4), bed=-1.0,
        velocity=(lambda x, y: np.sin(3 * y), lambda x, y: np.cos(2 * x)),
        scheme=ShallowScheme(order=1), schedule=Schedule(deterministic="global"),
    )  # fmt: skip


@pytest.mark.parametrize("field", ["speed", "vorticity", "velocity_x", "u"])
@pytest.mark.parametrize("kind", ["airfoil", "water"])
def test_films_of_cells(kind: str, field: str, tmp_path: Path) -> None:
    """A pixel is the field in its cell, on any ranks; what is outside of the mesh is hidden."""
    pytest.importorskip("PIL.Image")

    def filmed(comm: Comm) -> list[np.ndarray]:
        flow, shown = made(kind, comm), []
        film = Film(field, 2, most=4.0)
        fl.run(flow, END[kind], [film], directory=tmp_path / str(comm.size), overwrite=True)
        assert film._pictures is not None
        film._pictures.ask(lambda picture: shown.append(picture))
        if comm.size > 1:
            return [*shown, *(() if film.movie is None else film.movie.pictures)]
        fields, mesh = flow.fields(), flow.mesh()
        known = {"velocity_x": "u"}.get(field, field)
        values = fields.chosen([known])[known]
        centres, here = cell_geometry(mesh)[1], shown[0]
        low, high = mesh.points.min(axis=0), mesh.points.max(axis=0)
        rows, columns = here.shape
        at = ((centres - low) / (high - low) * (columns, rows)).astype(int)
        found = here[at[:, 1], at[:, 0]]
        large = np.isclose(found, values, rtol=1e-9, atol=1e-12)
        assert large.mean() > (0.9 if kind == "water" else 0.2), "cells much smaller than a pixel are not seen"
        assert np.ptp(values) > 0.01
        assert film._pictures.hidden.any() == (kind == "airfoil")
        assert np.isfinite(here[~film._pictures.hidden]).all()
        return [here, *(() if film.movie is None else film.movie.pictures)]

    one, two = run_threads(1, filmed)[0], run_threads(2, filmed)[0]
    assert len(one) == len(two) == 4
    for mine, theirs in zip(one, two, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-12)


def test_films_of_cells_say_what_there_is(tmp_path: Path) -> None:
    for kind in ("airfoil", "water"):
        flow = made(kind, run_threads(1, lambda comm: comm)[0])
        with pytest.raises(SolverError, match=r"no field 'velocity' at points.*\(there are .*velocity_x, .*vorticity"):
            fl.run(flow, END[kind], [Film("velocity", 1, most=1.0)], directory=tmp_path / kind)


def test_what_films_refuse(tmp_path: Path) -> None:
    """By the table of the case."""
    comm = run_threads(1, lambda comm: comm)[0]
    with pytest.raises(CaseError, match=r"movie: no field 'spede' at points; did you mean 'speed'"):
        film_of(comm, tmp_path, "spede")
    with pytest.raises(CaseError, match=r"movie: the largest value of 'u' .* is not known"):
        film_of(comm, tmp_path, "u", "")
    with pytest.raises(SolverError, match="shallow water flows up to a time"):
        fl.run(made("water", comm), fl.Steps(4))
    with pytest.raises(SolverError, match="every: steps between two pictures"):
        Film("speed", 0)
    flow = fl.Lattice((8, 8), Units.of(0.1, reynolds=20), Context("reference"))
    with pytest.raises(SolverError, match=r"no pictures of 'w'.*there are: speed, vorticity, p, u, v\)"):
        fl.run(flow, fl.Steps(1), [Film("w", 1)])
