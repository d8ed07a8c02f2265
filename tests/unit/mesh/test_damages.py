"""Damages x kinds of cells x what takes a mesh: never a wrong answer without a word.

Each pair of a damage and a taker ends in one of three ways: the mesh is refused by an error that names a cell, a node
or a face of a patch; it is taken with a warning; or what comes out is right, by numbers of the mesh before the damage.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

import fluxloom as fl
from fluxloom.comm.base import Comm
from fluxloom.comm.threads import run_threads
from fluxloom.core.errors import FluxloomError
from fluxloom.fe.edges.operators import EdgeOperators
from fluxloom.fe.edges.point_mesh import point_mesh
from fluxloom.fe.poisson import MatrixFree
from fluxloom.fe.spaces import LagrangeSpace
from fluxloom.fv.compressible.boundary import FarField
from fluxloom.fv.compressible.gas import Gas
from fluxloom.fv.geometry.control_volumes import control_volumes
from fluxloom.fv.incompressible.boundary import Inflow, NoSlip
from fluxloom.mesh import bind, check, write
from fluxloom.mesh.data.mesh import MeshData
from fluxloom.mesh.geometry.metrics import cell_measures
from fluxloom.solvers.compressible.flow import CompressibleFlow
from fluxloom.solvers.edges.flow import EdgeFlow
from fluxloom.solvers.incompressible.flow import Incompressible
from tests.unit.mesh import damages as make
from tests.unit.mesh.damages import AT_CORNERS, KINDS, Damage, cells_of, kind_of, middle

Array = npt.NDArray[np.float64]
CONTEXT = fl.Context("reference")
SLOPE = np.array([2.0, -1.0, 0.5])
ROUND = 1e-12
ALL = {**KINDS, **AT_CORNERS}
ELEMENTS = ("triangle", "quad", "tetra", "hexahedron")

REFUSED, RIGHT = frozenset({"refused"}), frozenset({"right"})
LOOSE = frozenset({"refused", "right", "told"})
"""A hole without a patch: who asks for patches refuses it, others say so or take the mesh as it is, rightly."""

MIRRORED = frozenset({"refused", "right"})
"""Some take it, and are right: elements may turn either way, control volumes not."""

DAMAGES: Mapping[str, tuple[Damage, frozenset[str]]] = {
    "none": (lambda mesh: mesh, RIGHT),
    "node repeated along an edge": (make.one(lambda m, c: make.repeated(make.edge_of(c), c)), REFUSED),
    "node repeated across": (make.one(lambda m, c: make.repeated(make.across(c), c)), REFUSED),
    "edge gone in all cells": (make.merged, REFUSED),
    "nodes in one place": (make.places(make.coincide), MIRRORED),  # of polyhedra whose sides have areas it is right
    "flat cell": (make.places(make.flatten), REFUSED),
    "nodes swapped along an edge": (make.one(lambda m, c: make.swapped(make.edge_of(c), c)), MIRRORED),
    "nodes swapped across": (make.one(lambda m, c: make.swapped(make.across(c), c)), MIRRORED),
    "places swapped along an edge": (make.places(lambda p, c: make.exchange(p, make.edge_of(c))), REFUSED),
    "places swapped across": (make.places(lambda p, c: make.exchange(p, make.across(c))), REFUSED),
    "node through the cells round it": (make.places(make.through), REFUSED),
    "mirrored": (make.one(make.mirrored), MIRRORED),
    "numbered from another node": (make.one(lambda m, c: c[1:] + c[:1] if m.dimension == 2 else None), RIGHT),
    "top turned by one": (make.turned_top(1), LOOSE),
    "top turned by two": (make.turned_top(2), LOOSE),
    "face dropped": (make.faces_of(lambda c: c[1:]), REFUSED),
    "face twice": (make.faces_of(lambda c: [*c, c[0]]), REFUSED),
    "face twice, one dropped": (make.faces_of(lambda c: [*c[1:], c[1]]), REFUSED),
    "face both ways": (make.faces_of(lambda c: [*c, c[0], c[0][::-1]]), REFUSED),
    "face turned": (make.faces_of(lambda c: [c[0][::-1], *c[1:]]), REFUSED),
    "face crossed": (make.faces_of(make.crossed), REFUSED),
    "cell twice": (make.again(None), REFUSED),
    "cell twice, nodes of its own": (make.again(0.0), REFUSED),
    "cell again, by a half": (make.again(0.5), REFUSED),
    "cell again, by a half, named": (make.again(0.5, True), REFUSED),
    "cell missing": (make.without_cell, LOOSE),
    "hanging": (make.hanging, REFUSED),
    "halved": (make.halved, REFUSED),
    "not a number": (make.lost(np.nan), REFUSED),
    "infinite": (make.lost(np.inf), REFUSED),
    "unused, not a number": (make.more_points(np.nan), REFUSED),
    "unused": (make.more_points(0.3), MIRRORED),
    "node beyond": (make.one(lambda m, c: make.renamed(c, {make.nodes_of(c)[0]: m.n_points})), REFUSED),
    "node beyond 32 bits": (
        make.one(lambda m, c: make.renamed(c, {make.nodes_of(c)[0]: 2**32 + make.nodes_of(c)[0]})), REFUSED,
    ),
    "node -1": (make.one(lambda m, c: make.renamed(c, {make.nodes_of(c)[0]: -1})), REFUSED),
    "node -2": (make.one(lambda m, c: make.renamed(c, {make.nodes_of(c)[0]: -2})), REFUSED),
    "patch between cells": (make.patch(lambda m, n: None, inside=True), REFUSED),
    "patch of another's face": (make.patch(lambda m, n: None), REFUSED),
    "patch of no face": (make.patch(lambda m, n: make.put(n, m.n_points // 2)), REFUSED),
    "patch, node -3": (make.patch(lambda m, n: make.put(n, -3)), REFUSED),
    "patch, node -1": (make.patch(lambda m, n: make.put(n, -1)), REFUSED),
    "patch, node beyond": (make.patch(lambda m, n: make.put(n, m.n_points + 3)), REFUSED),
    "face listed twice": (make.listed_twice, REFUSED),
}  # fmt: skip


def taken_by_check(mesh: MeshData) -> float:
    report = check(mesh)
    assert report.n_cells == len(cells_of(mesh))
    return report.volume_total


def taken_by_volumes(mesh: MeshData) -> float:
    """Finite volumes: those of both flows."""
    cv = control_volumes(mesh)
    closed(cv.volumes, cv.faces[: cv.interior], cv.faces[cv.interior :, 0], cv.areas)
    return float(cv.volumes.sum())


def taken_by_loops(mesh: MeshData) -> float:
    """A loop of the user over cells and their nodes, and what belongs to faces."""
    bound = bind(mesh, CONTEXT)
    assert bound.cell_nodes.source is bound.cells
    areas = np.concatenate([bound.face_normals.read(), bound.boundary_normals.read()])
    volumes = bound.volumes.read()
    closed(volumes, bound.links.interior_cells, bound.links.boundary_cells, areas)
    return float(volumes.sum())


def closed(volumes: Array, pairs: npt.NDArray[np.integer], outer: npt.NDArray[np.integer], areas: Array) -> None:
    """Expect positive volumes, and area vectors of each cell that add up to nothing."""
    total = np.zeros((volumes.size, areas.shape[1]))
    np.add.at(total, np.concatenate([pairs[:, 0], outer]), areas)
    np.subtract.at(total, pairs[:, 1], areas[: len(pairs)])
    assert volumes.min() > 0.0
    assert np.abs(total).max() < ROUND


def taken_by_elements(mesh: MeshData) -> float:
    """A linear function has no residual within; the volume is that of the quadrature."""
    bound = bind(mesh, CONTEXT)
    space = LagrangeSpace.on(bound, 1)
    linear = mesh.points @ SLOPE[: mesh.dimension]
    x, y = (CONTEXT.dat(space.rows, values) for values in (linear, np.zeros(mesh.n_points)))
    for step in MatrixFree(space, CONTEXT.dat(bound.cells, np.ones(mesh.n_cells)), None).product(x, y):
        step()
    low, high = mesh.points.min(axis=0), mesh.points.max(axis=0)
    inside = ((mesh.points > low + 1e-3) & (mesh.points < high - 1e-3)).all(axis=1)
    assert np.abs(y.read()[inside]).max(initial=0.0) < ROUND
    return float(linear @ y.read()) / float((SLOPE[: mesh.dimension] ** 2).sum())  # |slope|^2 times the volume


def taken_by_edges(mesh: MeshData) -> float:
    """Flow on edges, and the operators by themselves."""
    EdgeFlow(point_mesh(CONTEXT, mesh), 0.01, dict.fromkeys(mesh.patches, NoSlip()))
    return float(EdgeOperators.of(CONTEXT, mesh).mass.read().sum())


def taken_by_ranks(mesh: MeshData) -> float:
    def run(comm: Comm) -> float:
        bound = bind(mesh if comm.rank == 0 else None, fl.Context("reference", comm=comm))
        return float(bound.volumes.read().sum())

    return sum(run_threads(2, run))


def takers(kind: str) -> dict[str, Callable[[MeshData], float]]:
    """Return what takes meshes of this kind of cells."""
    found = {"check": taken_by_check, "volumes": taken_by_volumes, "loops": taken_by_loops}
    if kind_of(kind) in ELEMENTS:
        found["elements"] = taken_by_elements
    if kind_of(kind) in ("triangle", "tetra"):
        found["edges"] = taken_by_edges
    return found


NAMES = re.compile(
    r"(element|cell|cells|node|nodes|point|face|triangle|quad|line|polygon\d) -?\d+"
    r"|faces of the boundary are in no patch|cells of one kind|cells alone|VTK cell type"
)
"""What errors have to name: the place, or that these are cells of another kind than the taker's."""


def outcome(take: Callable[[MeshData], float], mesh: MeshData, volume: float) -> str:
    """Return how a taker ends: ``"refused"``, ``"told"``, ``"right"``, or what is wrong."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            found, wrong = take(mesh), ""
        except FluxloomError as error:
            return "refused" if NAMES.search(str(error)) else f"names nothing: {error}"
        except AssertionError as error:
            found, wrong = volume, f"wrong: {str(error).splitlines()[0]}"
    if any("bound a hole" in str(item.message) for item in said):
        return "told"
    assert not said, said[0].message
    return wrong or ("right" if abs(found - volume) < ROUND else f"wrong: the volume is {found}, not {volume}")


def damaged(kind: str, damage: str) -> tuple[MeshData, float] | None:
    """Return a damaged mesh and the volume that it has to have."""
    sound = ALL[kind]()
    mesh = DAMAGES[damage][0](sound)
    gone = cell_measures(sound)[0][middle(sound, cells_of(sound))] if damage == "cell missing" else 0.0
    return None if mesh is None else (mesh, 1.0 - float(gone))


@pytest.mark.parametrize("kind", [*KINDS, *(pytest.param(kind, marks=pytest.mark.long) for kind in AT_CORNERS)])
def test_never_a_wrong_answer_without_a_word(kind: str) -> None:
    bad = []
    for damage, (_, expected) in DAMAGES.items():
        if (found := damaged(kind, damage)) is not None:
            ends = {name: outcome(take, *found) for name, take in takers(kind).items()}
            bad += [f"{damage}, {name}: {end}" for name, end in ends.items() if end not in expected]
    assert not bad, "\n".join(bad)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if KINDS[kind]().polyhedra is None])
def test_nor_on_ranks(kind: str) -> None:
    bad = []
    for damage, (_, expected) in DAMAGES.items():
        if (found := damaged(kind, damage)) is not None:
            end = outcome(taken_by_ranks, *found)
            bad += [] if end in expected else [f"{damage}: {end}"]
    assert not bad, "\n".join(bad)


FILES = [".msh", ".su2", ".vtu", ".vtkhdf"]


@pytest.mark.parametrize("suffix", FILES)
@pytest.mark.parametrize("kind", ["quad", *(pytest.param(k, marks=pytest.mark.long) for k in ("prism", "hexahedron"))])
def test_nor_in_files(kind: str, suffix: str, tmp_path: Path) -> None:
    """Files are read whole, on two ranks too: refused, or of the right volume; points without a cell are left out."""
    if suffix == ".vtkhdf":
        pytest.importorskip("h5py")
    bad = []
    for damage, (_, expected) in DAMAGES.items():
        if (found := damaged(kind, damage)) is None or any(word in damage for word in ("patch", "beyond", "node -")):
            continue
        if damage == "hanging" and suffix in (".msh", ".su2"):
            continue  # these have no polygons
        write(path := tmp_path / f"{damage.replace(' ', '_')}{suffix}", found[0])
        for ranks in (1, 2):
            end = ending(path, ranks, found[1])
            fine = end in expected or (end == "right" and damage.startswith("unused"))
            bad += [] if fine else [f"{damage}, {ranks}: {end}"]
    assert not bad, "\n".join(bad)


def ending(path: Path, ranks: int, volume: float) -> str:
    """Return how reading a file on some ranks ends."""

    def run(comm: Comm) -> float:
        context = fl.Context("reference", comm=comm) if ranks > 1 else CONTEXT
        return float(fl.mesh.read(path, context).volumes.read().sum())

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*points that no cell has are left out")
        try:
            found = sum(run_threads(ranks, run))
        except FluxloomError as error:
            return "refused" if path.name in str(error) and NAMES.search(str(error)) else f"names nothing: {error}"
    return "right" if abs(found - volume) < ROUND else f"wrong: the volume is {found}, not {volume}"


def test_the_battery_can_fail() -> None:
    """What a taker without a check makes of the damages is found to be wrong."""

    def careless(mesh: MeshData) -> float:
        return float(np.abs(cell_measures(mesh)[0]).sum())

    ends = [outcome(careless, *found) for name in ("nodes swapped across", "cell twice", "top turned by one")
            if (found := damaged("hexahedron", name)) is not None]  # fmt: skip
    assert [end.split(":")[0] for end in ends] == ["wrong"] * 3


@pytest.mark.parametrize(
    "kind", [pytest.param(k, marks=() if k in ("quad", "faces of prism") else pytest.mark.long) for k in KINDS]
)
@pytest.mark.parametrize("hole", [False, True])
def test_flows_on_what_is_taken(kind: str, hole: bool) -> None:
    """Uniform flow stays, incompressible and compressible, round a hole too that has a patch."""
    mesh = make.named(make.without_cell(KINDS[kind]())) if hole else KINDS[kind]()
    cv, u = control_volumes(mesh), [0.5, -0.3, 0.2][: mesh.dimension]
    flow = Incompressible(CONTEXT, cv, 0.1, dict.fromkeys(cv.patches, Inflow(u)))
    flow.initialise(u)
    flow.step(0.01)
    assert np.abs(flow.velocity() - u).max() < ROUND
    state = [1.2, *u, 0.9]
    gas = CompressibleFlow(CONTEXT, cv, dict.fromkeys(cv.patches, FarField(state)), gas=Gas(constant=1.0))
    gas.start(state)
    gas.iterate(1)
    assert np.abs(gas.states() - state).max() < ROUND
