"""Control volumes of meshes whose maps rank 0 deals out: those of one rank, and flow on polyhedra."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.comm.base import Comm
from fluxloom.comm.threads import run_threads
from fluxloom.core.errors import FluxloomError, MeshError
from fluxloom.fv.compressible.boundary import FarField, SlipWall
from fluxloom.fv.geometry.control_volumes import FLOW_MAPS, control_volumes, shared_volumes
from fluxloom.fv.geometry.volumes import ControlVolumes, warps_of
from fluxloom.mesh import box2d, box3d
from fluxloom.mesh.data.mesh import MeshData
from fluxloom.mesh.geometry.dual import dual
from fluxloom.mesh.ranks.distribute import Partition, part_of
from fluxloom.solvers.compressible.flow import CompressibleFlow

SIDES = [("xmin", "xmax")]


@pytest.mark.parametrize("kind", ["triangle", "tetra"])
@pytest.mark.parametrize("ranks", [2, 3])
def test_they_are_those_of_one_rank(ranks: int, kind: str) -> None:
    """Also across periodic sides; and second moments, and what warped faces have."""
    mesh = dual(box2d(6, 5, kind=kind, perturb=0.2) if kind == "triangle" else box3d(4, 3, 3, kind=kind, perturb=0.1))
    whole = control_volumes(mesh, SIDES)
    assert whole.moments is not None
    moments, (warped, tensors) = whole.moments(), warps_of(whole)

    def work(comm: Comm) -> ControlVolumes:
        part = part_of(comm, mesh if comm.rank == 0 else None, method="rcb", maps=FLOW_MAPS)
        return shared_volumes(part, SIDES)

    seen = 0
    for one in run_threads(ranks, work):
        shared = one.shared
        elements, faces = np.empty(one.elements, dtype=np.int64), np.empty(len(one.faces), dtype=np.int64)
        elements[shared.element_order], faces[shared.face_order] = shared.elements.numbers, shared.faces.numbers
        np.testing.assert_array_equal(one.volumes, whole.volumes[shared.cells.numbers])
        np.testing.assert_array_equal(one.centres, whole.centres[elements])
        np.testing.assert_array_equal(elements[one.faces], whole.faces[faces])
        for name in ("areas", "spacing", "arms", "ways"):
            np.testing.assert_array_equal(getattr(one, name), getattr(whole, name)[faces], err_msg=name)
        assert one.moments is not None
        np.testing.assert_array_equal(one.moments(), moments[faces])
        rows, found = warps_of(one)
        np.testing.assert_array_equal(found, tensors[np.searchsorted(warped, faces[rows])])
        seen += one.owned
    assert seen == whole.cells


def run(comm: Comm, method: Partition) -> tuple[np.ndarray, np.ndarray]:
    """Return numbers and states of the cells of this rank after some steps on polyhedra, periodic in one direction."""
    mesh = dual(box3d(3, 3, 2, kind="tetra", perturb=0.1)) if comm.rank == 0 else None
    volumes = shared_volumes(part_of(comm, mesh, method=method, maps=FLOW_MAPS), SIDES)
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
def test_flow_on_polyhedra_has_the_states_of_one_rank(method: Partition, ranks: int) -> None:
    _, alone = run_threads(1, lambda comm: run(comm, method))[0]
    found = np.full_like(alone, np.nan)
    for number, states in run_threads(ranks, lambda comm: run(comm, method)):
        found[number] = states
    np.testing.assert_allclose(found, alone, rtol=1e-13, atol=1e-15)


def test_shares() -> None:
    mesh = dual(box3d(4, 4, 4, kind="tetra"))
    parts = run_threads(2, lambda comm: part_of(comm, mesh, method="rcb", shares=[3.0, 1.0], maps=FLOW_MAPS))
    assert parts[0].part("cells").owned == pytest.approx(0.75 * mesh.n_cells, abs=1.5)


def test_every_rank_hears_what_is_wrong() -> None:
    mesh = dual(box2d(2, 1, kind="triangle"))
    open_mesh = replace(mesh, patches={"xmin": mesh.patches["xmin"]})

    def work(comm: Comm, given: MeshData | None, method: Partition = "rcb") -> None:
        part = part_of(comm, given, method=method, maps=FLOW_MAPS)
        shared_volumes(part)

    with pytest.raises(MeshError, match="the ranks hold nothing, nothing"):
        run_threads(2, lambda comm: work(comm, None))
    with pytest.raises(FluxloomError, match=f"has {mesh.n_cells} elements, too few for 9 ranks"):
        run_threads(9, lambda comm: work(comm, mesh))
    with pytest.raises(FluxloomError, match="'rbc'; did you mean 'rcb'"):
        run_threads(2, lambda comm: work(comm, mesh, "rbc"))  # type: ignore[arg-type]
    with pytest.raises(MeshError, match="boundary faces belong to no patch"):
        run_threads(2, lambda comm: work(comm, open_mesh))
    with pytest.raises(MeshError, match="do not write a mesh with polyhedra"):
        run_threads(2, lambda comm: part_of(comm, dual(box3d(2, 2, 2, kind="tetra"))).to_slice({}, {}))  # type: ignore[union-attr]
