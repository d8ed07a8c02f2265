"""Boundaries of compressible flow on several ranks: the table of each is its part of the whole one."""

from __future__ import annotations

import numpy as np

from fluxloom.comm.base import Comm
from fluxloom.comm.threads import run_threads
from fluxloom.fv.compressible.boundary import (
    BoundaryCondition,
    FarField,
    NoSlipWall,
    PressureOutlet,
    SupersonicInlet,
    TotalInlet,
    boundary_table,
)
from fluxloom.fv.compressible.free_stream import FreeStream
from fluxloom.fv.compressible.gas import Gas
from fluxloom.fv.geometry.control_volumes import FLOW_MAPS, control_volumes, shared_volumes
from fluxloom.mesh import box3d
from fluxloom.mesh.ranks.distribute import distribute_mesh
from fluxloom.mesh.ranks.slices import as_slice

Array = np.ndarray
BOUNDARIES: dict[str, BoundaryCondition] = {
    "xmin": TotalInlet(lambda x: 2.0 + x[:, 1], 300.0, direction=lambda x: 1.0 + x),
    "xmax": PressureOutlet(lambda x: 1.0 + x[:, 2]),
    "ymin": NoSlipWall(temperature=lambda x: 300.0 + x[:, 0]),
    "ymax": FarField(FreeStream.at_angles(0.5, 1e5, 300.0, 3.0), turbulence=0.1),
    "zmin": NoSlipWall(velocity=(1.0, 0.0, 0.0)),
    "zmax": SupersonicInlet(lambda x: np.column_stack([1.0 + x[:, :1], x, 2.0 + x[:, :1]]), exact=True),
}


def test_tables_of_ranks_are_parts_of_the_whole() -> None:
    mesh = box3d(5, 4, 3)
    one = control_volumes(mesh)
    kinds, rows, *_ = boundary_table(one, BOUNDARIES, Gas())

    def local(comm: Comm) -> tuple[Array, Array, Array, int]:
        cv = shared_volumes(distribute_mesh(as_slice(comm, mesh), comm, method="rcb", maps=FLOW_MAPS))
        missing = sum(not len(span) for span in cv.patches.values())
        return cv.centres[cv.cells :], *boundary_table(cv, BOUNDARIES, Gas())[:2], missing

    found = run_threads(4, local)
    assert any(item[-1] for item in found)
    places = one.centres[one.cells :]
    seen = []
    for centres, kind, row, _ in found:
        numbers = np.argmin(np.linalg.norm(centres[:, None] - places, axis=2), axis=1)
        np.testing.assert_allclose(centres, places[numbers], atol=1e-14)
        np.testing.assert_array_equal(kind, kinds[numbers])
        np.testing.assert_allclose(row, rows[numbers], rtol=1e-14)
        seen += numbers.tolist()
    assert set(seen) == set(range(one.elements - one.cells))
