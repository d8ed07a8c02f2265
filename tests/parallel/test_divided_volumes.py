"""Control volumes of one rank dealt out to several: those of a divided mesh, and flow on polyhedra."""

from __future__ import annotations

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.comm.base import Comm
from fluxloom.comm.threads import run_threads
from fluxloom.core.errors import MeshError
from fluxloom.fv.compressible.boundary import FarField, SlipWall
from fluxloom.fv.geometry.control_volumes import FLOW_MAPS, control_volumes, shared_volumes
from fluxloom.fv.geometry.divided_volumes import cell_owners, divided_volumes
from fluxloom.fv.geometry.volumes import ControlVolumes, warps_of
from fluxloom.mesh import box2d, box3d
from fluxloom.mesh.data.mesh import MeshData
from fluxloom.mesh.geometry.dual import dual
from fluxloom.mesh.ranks.distribute import distribute_mesh
from fluxloom.mesh.ranks.slices import as_slice
from fluxloom.solvers.compressible.flow import CompressibleFlow

SIDES = [("xmin", "xmax")]


@pytest.mark.parametrize("mesh", [box2d(6, 5, kind="triangle", perturb=0.2), box3d(4, 3, 3, kind="prism", perturb=0.2)],
                         ids=["plane", "warped"])  # fmt: skip
@pytest.mark.parametrize("ranks", [2, 3])
def test_they_are_those_of_a_divided_mesh(ranks: int, mesh: MeshData) -> None:
    """With the same owners, also across periodic sides; and second moments, and what warped faces have."""

    def work(comm: Comm) -> tuple[ControlVolumes, ControlVolumes]:
        whole = control_volumes(mesh, SIDES) if comm.rank == 0 else None
        one = shared_volumes(distribute_mesh(as_slice(comm, mesh), comm, method="rcb", maps=FLOW_MAPS), SIDES)
        return one, divided_volumes(comm, whole, method="rcb")

    for one, other in run_threads(ranks, work):
        for name in ("volumes", "centres", "faces", "areas", "spacing", "arms", "ways"):
            np.testing.assert_allclose(getattr(other, name), getattr(one, name), rtol=0, atol=1e-15, err_msg=name)
        assert one.moments is not None
        assert other.moments is not None
        np.testing.assert_allclose(other.moments(), one.moments(), rtol=0, atol=1e-15)
        for first, second in zip(warps_of(one), warps_of(other), strict=True):
            np.testing.assert_allclose(second, first, rtol=0, atol=1e-15)
        assert (warps_of(one)[0].size > 0) == (one.dimension == 3)
        assert one.patches == other.patches
        np.testing.assert_array_equal(one.wrapped.faces, other.wrapped.faces)
        for part in ("cells", "elements", "faces"):
            first, second = getattr(one.shared, part), getattr(other.shared, part)
            np.testing.assert_array_equal(first.numbers, second.numbers)
            assert (first.owned, first.total) == (second.owned, second.total)


def run(comm: Comm, method: str) -> tuple[np.ndarray, np.ndarray]:
    """Return numbers and states of the cells of this rank after some steps on polyhedra, periodic in one direction."""
    whole = control_volumes(dual(box3d(3, 3, 2, kind="tetra", perturb=0.1)), SIDES) if comm.rank == 0 else None
    volumes = whole if comm.size == 1 else divided_volumes(comm, whole, method=method)
    assert volumes is not None
    sides = {name: FarField([1.0, 0.4, 0.0, 0.0, 1.0]) for name in volumes.patches}
    context = fl.Context("cpu", comm=comm, tuning=False, threads=1)
    flow = CompressibleFlow(context, volumes, sides | {"ymin": SlipWall()})
    bump = lambda x: 1.0 + 0.2 * np.exp(-20.0 * ((x - 0.5) ** 2).sum(axis=1))  # noqa: E731
    flow.start(lambda x: np.column_stack([bump(x), np.tile([0.4, 0.0, 0.0], (len(x), 1)), bump(x)]))
    flow.iterate(3)
    shared = volumes.shared
    return shared.cells.numbers[: shared.cells.owned], flow.states()


@pytest.mark.long
@pytest.mark.parametrize(("method", "ranks"), [("rcb", 2), ("auto", 3)])
def test_flow_on_polyhedra_has_the_states_of_one_rank(method: str, ranks: int) -> None:
    _, alone = run_threads(1, lambda comm: run(comm, method))[0]
    found = np.full_like(alone, np.nan)
    for number, states in run_threads(ranks, lambda comm: run(comm, method)):
        found[number] = states
    np.testing.assert_allclose(found, alone, rtol=1e-13, atol=1e-15)


def test_shares() -> None:
    whole = control_volumes(dual(box3d(4, 4, 4, kind="tetra")))
    owner = cell_owners(whole, 2, "rcb", [3.0, 1.0])
    assert np.bincount(owner)[0] == pytest.approx(0.75 * whole.cells, abs=1.5)


def test_every_rank_hears_what_is_wrong() -> None:
    whole = control_volumes(box2d(2, 1))

    def work(comm: Comm, given: ControlVolumes | None, method: str) -> None:
        divided_volumes(comm, given, method=method)

    with pytest.raises(MeshError, match="rank 0 has to hold"):
        run_threads(2, lambda comm: work(comm, None, "rcb"))
    with pytest.raises(MeshError, match="2 cells for 3 ranks"):
        run_threads(3, lambda comm: work(comm, whole, "rcb"))
    with pytest.raises(MeshError, match="method 'rbc'; did you mean 'rcb'"):
        run_threads(2, lambda comm: work(comm, whole, "rbc"))
