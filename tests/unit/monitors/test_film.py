"""Films of flows that have values at points, and of lattices."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.app.loading import load_case
from fluxloom.comm.base import Comm
from fluxloom.comm.threads import run_threads
from fluxloom.core.errors import CaseError, SolverError
from fluxloom.dsl.context import Context
from fluxloom.flows.lattice_start import Start
from fluxloom.flows.lattice_units import Units
from fluxloom.monitors.film import Film
from fluxloom.run.results.folder import ResultFolder

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


def test_what_films_refuse(tmp_path: Path) -> None:
    """By the table of the case."""
    comm = run_threads(1, lambda comm: comm)[0]
    with pytest.raises(CaseError, match=r"movie: no field 'spede' at points; did you mean 'speed'"):
        film_of(comm, tmp_path, "spede")
    with pytest.raises(CaseError, match=r"movie: the largest value of 'u' .* is not known"):
        film_of(comm, tmp_path, "u", "")
    with pytest.raises(SolverError, match="every: steps between two pictures"):
        Film("speed", 0)
    flow = fl.Lattice((8, 8), Units.of(0.1, reynolds=20), Context("reference"))
    with pytest.raises(SolverError, match=r"no pictures of 'w'.*there are: speed, vorticity, p, u, v\)"):
        fl.run(flow, fl.Steps(1), [Film("w", 1)])
