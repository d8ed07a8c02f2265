"""The case of the wing: distances of thin cells on a wall that is curved both ways."""

from __future__ import annotations

import numpy as np

from fluxloom.fv.geometry.control_volumes import control_volumes
from fluxloom.mesh.ranks.wall_distance import wall_distance, wall_faces
from fluxloom_lab.problems.wing import WingMesh, wing_mesh
from fluxloom_lab.verify.compressible.wing_case import above_their_walls
from fluxloom_lab.verify.compressible.wing_meshes import wing_shape


def test_thin_cells_are_as_far_from_the_wall_as_they_are_high() -> None:
    """Warped quads of the rounded tip nearly cut cells of their neighbours, whose distance then is far too short."""
    mesh = wing_mesh(wing_shape(), WingMesh(24, 6, 14, 30, first=2e-6, nose=0.003, edge=0.01, tip=0.004, opening=0.5))
    volumes = control_volumes(mesh)
    nearest = wall_distance(volumes.centres[: volumes.cells], *wall_faces(mesh, ["wing"]))
    found = above_their_walls(volumes, "wing", nearest)
    elements = np.asarray(volumes.patches["wing"])
    face = volumes.interior + elements - volumes.cells
    cells = volumes.faces[face, 0]
    height = np.einsum("nd,nd->n", volumes.arms[face], volumes.normals[face])
    assert (nearest[cells] < 0.8 * height).any()
    assert (found[cells] >= 0.999 * height).all()
    assert (found >= nearest).all()
    assert 0 < (found > 1.01 * nearest).sum() < 0.02 * volumes.cells
