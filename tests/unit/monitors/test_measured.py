"""Forces and walls of a flow that is given: means, the Strouhal number, and places where the shear changes its sign."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

import fluxloom as fl
from fluxloom.core.errors import SolverError
from fluxloom.mesh.data.mesh import MeshData
from fluxloom.mesh.generate.boxes import box2d, box3d
from fluxloom.mesh.geometry.metrics import face_geometry
from fluxloom.mesh.io.su2 import read_su2
from fluxloom.mesh.ranks.wall_distance import wall_faces
from fluxloom.monitors.forces import Forces, Reference
from fluxloom.monitors.walls import Walls
from fluxloom.run.flow import Flow, Until
from fluxloom.run.flow_run import FlowRun
from fluxloom.run.measures import Loads
from fluxloom.run.results.results import ResultFolder
from tests.unit.monitors.surface_cases import ring, table

Array = npt.NDArray[np.float64]


class Given(Flow):
    """A lift of frequency 0.2 over a drag, and a shear that is 0 at ``x = 0.3`` and ``x = 0.7``."""

    def __init__(self, mesh: MeshData, nodes: bool = False) -> None:
        self.grid, self.nodes, self.context = mesh, nodes, fl.Context("cpu", tuning=False)
        self._steps = 0

    def mesh(self) -> MeshData:
        return self.grid

    @property
    def dimension(self) -> int:
        return self.grid.dimension

    @property
    def steps(self) -> int:
        return self._steps

    @property
    def time(self) -> float | None:
        return 0.1 * self._steps

    def advance(self, until: Until) -> float:
        self._steps += 1
        return 0.0

    def surface(self, patches: Sequence[str], about: Sequence[float] = ()) -> GivenSurface:
        return GivenSurface(self, tuple(patches))


class GivenSurface:
    """What `Given` says."""

    def __init__(self, flow: Given, patches: tuple[str, ...]) -> None:
        self.flow, self.patches, self._time = flow, patches, 0.0

    def take(self) -> None:
        self._time = self.flow.time or 0.0

    def collect(self) -> Loads:
        force = np.zeros(self.flow.dimension)
        force[:2] = 3.0, np.sin(2 * np.pi * 0.2 * self._time)
        return Loads(force, 0 * force, np.array([0.0, 0.0, -0.5]), 0.0, 1.0)

    def carried(self) -> Mapping[str, tuple[float, float]]:
        return {}

    def faces(self) -> Mapping[str, Array]:
        faces, nodes = wall_faces(self.flow.grid, self.patches)
        _, places = face_geometry(nodes, faces)
        if self.flow.nodes:
            places = nodes[np.unique(faces.indices)]
        places = places[::-1]  # in another order than the mesh
        found = {name: places[:, k] for k, name in enumerate("xyz"[: self.flow.dimension])}
        x, zero = places[:, 0], np.zeros(len(places))
        shear = {f"tau_{name}": zero for name in found} | {"tau_x": np.where(x < 0.5, 0.3 - x, x - 0.7)}
        return found | {"area": np.full(len(places), 1.0 / len(places)), "p": 2.0 - x} | shear | {"y_plus": zero + 2.0}


def watched(flow: Given, *monitors: Forces | Walls, steps: int = 0, folder: Path | None = None) -> FlowRun[Given]:
    run = FlowRun(flow, "given", Until(), monitors)
    run.begin(ResultFolder(folder))
    for _ in range(steps):
        run.advance()
    run.finish(pictures=False)
    return run


def test_means_and_strouhal_number() -> None:
    forces = Forces("body", reference=Reference(2.0, 0.5, 0.25), every=2)
    run = watched(Given(box2d(2, 2)), forces, steps=801)
    assert forces.series.time.size == 401
    assert forces.series.time[-1] == pytest.approx(80.1)  # the last step too
    assert forces.series.drag == pytest.approx(3.0)
    rows = dict(run.summary())
    assert re.match(r"drag 3, lift \S+, pitch 2 \(last half", rows["body, mean"])
    assert forces.series.moment[-1].tolist() == [0.0, 0.0, -0.5]
    assert "pitch 2" in rows["body"]  # it lifts the nose, against the torque about z
    assert rows["body, force"].endswith("; moment -0.5")
    assert forces.strouhal is not None
    assert forces.strouhal[0] == pytest.approx(0.2 * 0.25 / 2.0, rel=1e-3)
    assert "Strouhal number 0.025" in rows["body, lift"]
    quiet = Forces("body", every=2)
    rows = dict(watched(Given(box2d(2, 2)), quiet, steps=20).summary())
    assert re.match(r"force 3, \S+; moment -0\.5 \(last half", rows["body, mean"])
    assert quiet.strouhal is None
    with pytest.raises(SolverError, match="there are no coefficients"):
        _ = quiet.cl


def test_samples_are_fetched_later() -> None:
    """A sample is that of the step in which the device was asked for it."""
    forces = Forces("body", every=3)
    watched(Given(box2d(2, 2)), forces, steps=7)
    lift = np.sin(2 * np.pi * 0.2 * np.array([0.3, 0.6, 0.7]))
    assert forces.series.force[:, 1] == pytest.approx(lift)


@pytest.mark.parametrize("nodes", [False, True])
@pytest.mark.parametrize("cells", [7, 10, 16])
def test_separation_in_the_plane(nodes: bool, cells: int, tmp_path: Path) -> None:
    """Where a shear that is linear changes its sign, whatever the mesh; the wall beside is none that has a sign."""
    walls = Walls("floor", ["ymin", "xmax"], Reference(2.0), pressure=1.0)
    run = watched(Given(box2d(cells, 5), nodes), walls, folder=tmp_path)
    assert walls.separation[:, 0] == pytest.approx([0.3], abs=1e-12)
    assert walls.reattachment[:, 0] == pytest.approx([0.7], abs=1e-12)
    assert walls.reattachment[:, 1] == pytest.approx([0.0], abs=1e-12)
    rows = dict(run.summary())
    assert rows["floor, reattachment"] == "(0.7, 0)"
    assert rows["floor, y+"] == "mean 2, 2 to 2"
    found = table(tmp_path / "wall_floor.csv")
    assert found["cp"] == pytest.approx((1.0 - found["x"]) / 2.0)
    assert found["cf_x"] == pytest.approx(found["tau_x"] / 2.0)


class Round(Given):
    """The shear on a circle of radius 1 round (2, 0), in a stream along x, which leaves it at 110 degrees."""

    moving = False

    def surface(self, patches: Sequence[str], about: Sequence[float] = ()) -> GivenSurface:
        return RoundSurface(self, tuple(patches))


class RoundSurface(GivenSurface):
    """What `Round` says."""

    def faces(self) -> Mapping[str, Array]:
        faces, nodes = wall_faces(self.flow.grid, self.patches)
        _, places = face_geometry(nodes, faces)
        angle = np.arctan2(places[:, 1], 2.0 - places[:, 0])  # from the front
        shear = np.sin(angle) * (np.cos(angle) - np.cos(np.radians(110.0)))
        zero, (x, y) = np.zeros(len(places)), places.T
        found = {"x": x, "y": y, "nx": 2.0 - x, "ny": -y, "area": zero + 1.0, "p": zero}
        found |= {"tau_x": shear * np.sin(angle), "tau_y": shear * np.cos(angle), "y_plus": zero}
        return found | ({"moves": zero + 1.0} if isinstance(self.flow, Round) and self.flow.moving else {})


def test_separation_of_a_round_body(tmp_path: Path) -> None:
    """Both places and their angles from the front, the stagnation point, and that behind; nothing where it turns."""
    ring(tmp_path / "ring.su2", 2, 90, shift=2.0)
    flow, walls = Round(read_su2(tmp_path / "ring.su2")), Walls("inner")
    rows = dict(watched(flow, walls).summary())
    wanted = 2.0 - np.cos(np.radians(110.0))
    assert walls.separation[:, 0] == pytest.approx(wanted, abs=1e-3)
    assert sorted(walls.separation[:, 1]) == pytest.approx([-0.9397, 0.9397], abs=1e-3)
    assert walls.reattachment == pytest.approx(np.array([[1.0, 0.0], [3.0, 0.0]]), abs=2e-3)
    assert re.fullmatch(r"(\(2\.34\S*, -?0\.93\S*\) at 110\.0 deg(, )?){2}", rows["inner, separation"])
    assert re.search(r"at 0\.0 deg, .* at 180\.0 deg", rows["inner, reattachment"])
    flow.moving = True
    rows = dict(watched(flow, walls).summary())
    assert not len(walls.separation) + len(walls.reattachment)
    assert rows["inner, moving wall: separation"].startswith("not told where the wall moves")
    assert "inner, separation" not in rows


@pytest.mark.parametrize("kind", ["hexahedron", "tetra"])
def test_separation_along_cuts(kind: str, tmp_path: Path) -> None:
    walls = Walls("top", ["zmax"], axis="y", cuts=[0.27, 0.5])
    watched(Given(box3d(5, 4, 3, kind=kind)), walls, folder=tmp_path)
    assert sorted(walls.separation[:, 1].tolist()) == pytest.approx([0.27, 0.5])
    assert walls.separation[:, 2] == pytest.approx(1.0)
    assert walls.separation[:, 0] == pytest.approx(0.3, abs=0.06)  # values are those of whole faces
    assert walls.reattachment[:, 0] == pytest.approx(0.7, abs=0.06)
    assert len(table(tmp_path / "wall_top_y_0.27.csv")["x"]) == (5 if kind == "hexahedron" else 10)


def test_a_flow_without_surfaces() -> None:
    class Bare(Given):
        surface = Flow.surface  # pyright: ignore[reportAssignmentType]

    for monitor in (Forces("ymin"), Walls("ymin")):
        with pytest.raises(SolverError, match="no surfaces to measure"):
            watched(Bare(box2d(2, 2)), monitor)


def test_a_cut_that_misses_is_told_before_the_run() -> None:
    with pytest.raises(SolverError, match="a cut at y = 2 misses zmax: 0 to 1 there"):
        watched(Given(box3d(2, 2, 2)), Walls("zmax", cuts=[2.0]))


def test_nothing_is_there_before_a_run() -> None:
    with pytest.raises(SolverError, match="axis: x, y or z is wanted"):
        watched(Given(box2d(2, 2)), Walls("ymin", axis="w"))
    with pytest.raises(SolverError, match="a direction of 2 components"):
        watched(Given(box2d(2, 2)), Walls("ymin", along=(0.0,)))
