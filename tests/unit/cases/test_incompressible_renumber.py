"""``[mesh] renumber`` of flow cases: other numbers, the same flow."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fluxloom.cases.files.loading import load_case
from fluxloom.comm.base import Comm
from fluxloom.comm.threads import run_threads
from fluxloom.core.errors import CaseError
from fluxloom.dsl.context import Context
from fluxloom.flows.incompressible.flow import Incompressible
from fluxloom.mesh import box2d, write
from fluxloom.mesh.data.mesh import MeshData

CASE = """
[case]
name = "mixed"
solver = "incompressible"
[mesh]
{mesh}
[fluid]
viscosity = 0.02
[initial]
velocity_x = "sin(3 * y)"
noise = 0.1
[boundary.xmin]
type = "inflow"
velocity_x = "1 + y"
[boundary.xmax]
type = "outflow"
{boundary}
[statistics]
every = 1
[les]
model = "qr"
[pressure]
rtol = 1e-12
preconditioner = "jacobi"
[time]
dt = 0.01
[run]
iterations = 5
threads = 1
"""
WALLS = '[boundary.ymin]\ntype = "wall"\n[boundary.ymax]\ntype = "wall"'
BOX = 'nx = 7\nny = 6\nkind = "triangle"\nperturb = 0.1'


def scattered(path: Path) -> str:
    """Write a mesh of triangles whose cells have numbers without order, and return the key that names it."""
    data = box2d(7, 6, kind="triangle", perturb=0.1)
    cells = np.random.default_rng(3).permutation(data.cells["triangle"])
    write(path, MeshData(data.points, {"triangle": cells}, data.patches))
    return f'file = "{path.as_posix()}"'


def fields(comm: Comm, path: Path) -> dict[str, np.ndarray]:
    """Return fields after some steps in the order of the places of the cells, and these."""
    model, application = load_case(path)
    runner = application.build(model, Context("cpu", threads=1, comm=comm, tuning=False))
    assert isinstance(runner.flow, Incompressible)
    for _ in range(5):
        runner.advance()
        assert np.isfinite(runner.residual())
    cv = runner.flow.solver.volumes
    found = {"places": cv.centres[: cv.owned]} | dict(runner.fields())
    whole = {name: np.concatenate(comm.allgather(values)) for name, values in found.items()}
    order = np.lexsort(np.round(whole["places"], 9).T)
    return {name: values[order] for name, values in whole.items()}


@pytest.mark.parametrize("method", ["rcm", "gps"])
@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.parametrize("kind", ["file", "periodic"])
def test_same_flow(kind: str, ranks: int, method: str, tmp_path: Path) -> None:
    mesh = scattered(tmp_path / "mesh.su2") if kind == "file" else f'{BOX}\nperiodic = [["ymin", "ymax"]]'
    texts = {name: f'{mesh}\nrenumber = "{name}"' for name in ("none", method)}
    found = {}
    for name, text in texts.items():
        path = tmp_path / f"{name}.toml"
        path.write_text(CASE.format(mesh=text, boundary=WALLS if kind == "file" else ""), encoding="utf-8")
        found[name] = run_threads(ranks if name == method else 1, fields, path)[0]
    for name, wanted in found["none"].items():
        np.testing.assert_allclose(found[method][name], wanted, rtol=1e-9, atol=1e-9, err_msg=name)


def test_neighbours_have_near_numbers(tmp_path: Path) -> None:
    """Also those of the mesh that files of fields get."""
    farthest = {}
    for name in ("none", "rcm"):
        path = tmp_path / "case.toml"
        path.write_text(
            CASE.format(mesh=f'{scattered(tmp_path / "mesh.su2")}\nrenumber = "{name}"', boundary=WALLS),
            encoding="utf-8",
        )
        model, application = load_case(path)
        runner = application.build(model, Context("cpu", threads=1, tuning=False))
        assert isinstance(runner.flow, Incompressible)
        cv = runner.flow.solver.volumes
        pairs = cv.faces[: cv.interior]
        farthest[name] = int(np.abs(pairs[:, 0] - pairs[:, 1]).max())
        data = runner.mesh()
        np.testing.assert_allclose(data.points[data.cells["triangle"]].mean(axis=1), cv.centres[: cv.cells], atol=1e-14)
    assert farthest["rcm"] < 20 < farthest["none"]


def test_unknown_order(tmp_path: Path) -> None:
    path = tmp_path / "case.toml"
    path.write_text(CASE.format(mesh=f'{BOX}\nrenumber = "amd"', boundary=WALLS), encoding="utf-8")
    with pytest.raises(CaseError, match=r"mesh.renumber.*rcm.*gps"):
        load_case(path)
