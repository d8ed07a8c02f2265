"""Control volumes of a periodic box without a mesh."""

from __future__ import annotations

import numpy as np
import pytest

from fluxloom.comm.base import Comm
from fluxloom.comm.threads import run_threads
from fluxloom.core.errors import MeshError
from fluxloom.fv.geometry.control_volumes import control_volumes
from fluxloom.fv.geometry.volumes import ControlVolumes
from fluxloom.fv.incompressible.operators import Operators
from fluxloom.mesh import box3d
from fluxloom_lab.problems.box_volumes import periodic_box_volumes

SHAPE, LENGTHS = (6, 4, 5), (1.0, 2.0, 0.5)


def laplacian_of(volumes: ControlVolumes) -> np.ndarray:
    values = np.sin(volumes.centres @ np.array([1.0, 2.0, 3.0]))
    return np.concatenate([(Operators(volumes).laplacian @ values)[:, None],
                           Operators(volumes).cell_divergence(1)[:, :] @ values[:, None]], axis=1)  # fmt: skip


def test_those_of_a_mesh() -> None:
    """Operators do not depend on the order of the faces; numbers of cells are those of the mesh."""
    nz, ny, nx = SHAPE
    mesh = box3d(nx, ny, nz, lengths=LENGTHS)
    pairs = [(f"{axis}min", f"{axis}max") for axis in "xyz"]
    want, got = control_volumes(mesh, pairs), periodic_box_volumes(SHAPE, LENGTHS)
    np.testing.assert_allclose(got.centres, want.centres, atol=1e-14)
    np.testing.assert_allclose(got.volumes, want.volumes, rtol=1e-12)
    assert len(got.faces) == len(want.faces) == 3 * nx * ny * nz
    np.testing.assert_allclose(laplacian_of(got), laplacian_of(want), atol=1e-12)


@pytest.mark.parametrize("ranks", [2, 3, 6])
def test_slabs_have_the_rows_of_the_whole(ranks: int) -> None:
    want = laplacian_of(periodic_box_volumes(SHAPE, LENGTHS))

    def local(comm: Comm) -> tuple[np.ndarray, np.ndarray]:
        found = periodic_box_volumes(SHAPE, LENGTHS, comm)
        return found.shared.cells.numbers[: found.owned], laplacian_of(found)

    found = run_threads(ranks, local)
    assert sorted(np.concatenate([numbers for numbers, _ in found])) == list(range(120))
    for numbers, values in found:
        np.testing.assert_allclose(values, want[numbers], atol=1e-13)


def test_too_few() -> None:
    with pytest.raises(MeshError, match="at least 3 cells along each axis"):
        periodic_box_volumes((4, 2, 4), LENGTHS)
    with pytest.raises(MeshError, match="3 slabs of cells for 4 ranks"):
        run_threads(4, lambda comm: periodic_box_volumes((3, 4, 4), LENGTHS, comm))
