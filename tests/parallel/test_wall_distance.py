"""Distances to the wall of a divided mesh against those of the whole, to the last bit."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from fluxloom.comm.base import Comm
from fluxloom.comm.threads import run_threads
from fluxloom.core.errors import MeshError
from fluxloom.dsl.declare.parts import refresh_host
from fluxloom.mesh import MeshData, PatchFaces, distribute_mesh
from fluxloom.mesh.ranks.part import MeshPart
from fluxloom.mesh.ranks.slices import as_slice
from fluxloom.mesh.ranks.wall_distance import shared_wall_faces, wall_distance, wall_distance_of, wall_faces
from tests.parallel.test_mesh import MESHES

MAPS = ("cell_nodes", "face_cells", "boundary_cell", "boundary_nodes")


def divided(data: MeshData, comm: Comm) -> MeshPart:
    return distribute_mesh(as_slice(comm, data), comm, maps=MAPS)


def distances(part: MeshPart, patches: Sequence[str]) -> np.ndarray:
    """Return the distances of the cells that this rank stores. Collective."""
    walls, cells = shared_wall_faces(part, patches), part.part("cells")
    found = np.empty(cells.stored)
    found[: cells.owned] = wall_distance(part.cell_geometry()[1], *walls)
    refresh_host(part.comm, cells, found)
    return found


@pytest.mark.parametrize("ranks", [1, 2, 3, 5])
@pytest.mark.parametrize("kind", MESHES)
def test_distances_are_those_of_the_whole_mesh(kind: str, ranks: int) -> None:
    data = MESHES[kind]()
    patches = ["ymax", "xmin"]
    whole = wall_distance_of(data, patches)

    def action(comm: Comm) -> tuple[np.ndarray, np.ndarray]:
        part = divided(data, comm)
        return part.part("cells").numbers, distances(part, patches)

    found = run_threads(ranks, action)
    assert np.unique(np.concatenate([numbers for numbers, _ in found])).size == whole.size
    for numbers, distance in found:
        assert numbers.size > whole.size // ranks or ranks == 1  # the halo too
        np.testing.assert_array_equal(distance, whole[numbers])


def test_every_rank_knows_all_walls() -> None:
    data = MESHES["prism"]()
    alone = wall_faces(data, ["zmax", "xmax"])
    for faces, nodes in run_threads(4, lambda comm: shared_wall_faces(divided(data, comm), ["zmax", "xmax"])):
        np.testing.assert_array_equal(nodes, alone.nodes)
        assert {frozenset(row) for row in faces} == {frozenset(row) for row in alone.faces}


@pytest.mark.parametrize(
    ("patches", "words"),
    [
        (["ymim"], "no patch 'ymim'.*did you mean.*ymin"),
        ([], "a list of at least one patch"),
        (["bare"], "no faces in bare"),
    ],
)
def test_all_ranks_refuse_the_same(patches: Sequence[str], words: str) -> None:
    box = MESHES["triangle"]()
    data = MeshData(box.points, box.cells, {**box.patches, "bare": PatchFaces({})}, box.source)

    def action(comm: Comm) -> str:
        part = divided(data, comm)
        with pytest.raises(MeshError, match=words) as error:
            distances(part, patches)
        return str(error.value)

    assert len(set(run_threads(3, action))) == 1
