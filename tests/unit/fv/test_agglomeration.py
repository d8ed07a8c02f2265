"""Coarse control volumes: what is conserved, sizes of groups, patches, periodic faces, flat cells."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import spsolve

from fluxloom.core.errors import DatError, MeshError
from fluxloom.fv.geometry.agglomeration import Coarse, Grouping, coarsen, grouped, hierarchy
from fluxloom.fv.geometry.control_volumes import control_volumes
from fluxloom.fv.geometry.volumes import ControlVolumes, Sides
from fluxloom.mesh import MeshData, box2d, box3d, orient, read_data
from fluxloom_lab.problems.box_volumes import periodic_box_volumes

Array = np.ndarray

GENERATED: dict[str, Callable[[], ControlVolumes]] = {
    "quad": lambda: control_volumes(box2d(33, 21)),
    "bent quad": lambda: control_volumes(box2d(32, 20, perturb=0.2)),
    "triangle": lambda: control_volumes(box2d(20, 21, kind="triangle", perturb=0.2)),
    "rings": lambda: control_volumes(box2d(24, 18), [("xmin", "xmax"), ("ymin", "ymax")]),
    "hexahedron": lambda: control_volumes(box3d(11, 12, 9, perturb=0.1)),
    "tetra": lambda: control_volumes(box3d(7, 6, 7, kind="tetra", perturb=0.2)),
    "prism": lambda: control_volumes(box3d(9, 8, 9, kind="prism", perturb=0.1), [("zmin", "zmax")]),
    "pyramid": lambda: control_volumes(box3d(6, 6, 7, kind="pyramid")),
    "periodic box": lambda: periodic_box_volumes((12, 14, 10), (1.0, 2.0, 1.0)),
}
FILES = [
    "naca0012/mesh_NACA0012_inv.su2", "naca0012/mesh_NACA0012_lam_hybrid_v1.su2", "naca0012/n0012_225-65.su2",
    "cylinder/mesh_cylinder_lam.su2", "flat_plate/mesh_flatplate_turb_137x097.su2",
    "onera_m6/om6_inviscid_coarse.su2", "sphere/slice_2syms.su2", "turbomachinery/mesh_vki_turbine.su2",
]  # fmt: skip


@pytest.fixture(params=GENERATED, scope="module")
def fine(request: pytest.FixtureRequest) -> ControlVolumes:
    return GENERATED[request.param]()


def check_conserved(fine: ControlVolumes, coarse: Coarse) -> None:
    """Closed cells, and the sums of the fine level: volumes, moments, areas of patches."""
    found, group = coarse.volumes, coarse.group
    sides = Sides.of(found)
    surface = sides.sum(coarse.wetted[sides.face])
    gap = np.abs(sides.sum(sides.sign[:, None] * found.areas[sides.face])).max(axis=1)
    assert (gap <= 3e-13 * surface).all()
    np.testing.assert_allclose(found.volumes, np.bincount(group[: fine.cells], fine.volumes), rtol=1e-13)
    got, want = (level.volumes @ level.centres[: level.cells] for level in (found, fine))
    np.testing.assert_allclose(got, want, atol=1e-12 * float(fine.volumes.sum() * np.abs(fine.centres).max()))
    assert list(found.patches) == list(fine.patches)
    for name, span in found.patches.items():
        old, new = fine.patches[name], np.asarray(span, dtype=np.int64) - found.elements
        np.testing.assert_array_equal(np.unique(group[old.start : old.stop]), np.asarray(span))
        total = fine.areas[np.asarray(old) - fine.elements].sum(axis=0)
        np.testing.assert_allclose(found.areas[new].sum(axis=0), total, atol=1e-12 * coarse.wetted[new].sum())


def check_shape(fine: ControlVolumes, coarse: Coarse, wetted: Array) -> None:
    """The order of faces and elements that `ControlVolumes` promises, and sums of areas face by face."""
    found, group = coarse.volumes, coarse.group
    inner, outer = found.faces[: found.interior], found.faces[found.interior :]
    assert inner.max(initial=0) < found.cells
    assert (inner[:, 0] < inner[:, 1]).all()
    np.testing.assert_array_equal(outer[:, 1], np.arange(found.cells, found.elements))
    behind = fine.faces[fine.interior :]
    np.testing.assert_array_equal(outer[group[behind[:, 1]] - found.cells, 0], group[behind[:, 0]])
    assert (coarse.wetted >= found.area * (1 - 1e-12)).all()
    crossing = group[fine.faces[:, 0]] != group[fine.faces[:, 1]]
    assert coarse.wetted.sum() == pytest.approx(wetted[crossing].sum())
    assert (found.spacing > 0).all()
    if not found.wrapped.faces.size:
        check_conductance(fine, coarse, crossing)


def check_conductance(fine: ControlVolumes, coarse: Coarse, crossing: Array) -> None:
    """``|n . v|`` is the spacing, but where a face would conduct more than its fine faces or less than a third."""
    found, ends = coarse.volumes, coarse.group[fine.faces[crossing]]
    weight = (fine.area / fine.spacing)[crossing]
    total = csr_array(coo_array((np.tile(weight, 2), (ends.T.ravel(), ends[:, ::-1].T.ravel()))))
    fused = np.asarray(total[found.faces[:, 0], found.faces[:, 1]])
    straight = np.abs(np.einsum("ij,ij->i", found.normals, found.ways))
    np.testing.assert_allclose(
        found.area / found.spacing, np.clip(found.area / np.maximum(straight, 1e-30), fused / 3, fused), rtol=1e-10
    )


def sizes(fine: ControlVolumes, coarse: Coarse) -> Array:
    return np.bincount(coarse.group[: fine.cells], minlength=coarse.volumes.cells)


def check_sizes(fine: ControlVolumes, coarse: Coarse) -> None:
    size, (low, high) = sizes(fine, coarse), {2: (3, 5), 3: (6, 10)}[fine.dimension]
    assert low <= size.mean() <= high
    assert np.count_nonzero(size == 1) <= 0.02 * size.size
    assert size.max() <= 2 * 1.25 * 2**fine.dimension


def check_levels(fine: ControlVolumes, levels: list[Coarse]) -> None:
    wetted = fine.area
    for coarse in levels:
        check_conserved(fine, coarse)
        check_shape(fine, coarse, wetted)
        check_sizes(fine, coarse)
        fine, wetted = coarse.volumes, coarse.wetted


def test_levels_of_generated_meshes(fine: ControlVolumes) -> None:
    found = hierarchy(fine, 3)
    assert len(found) >= 2
    check_levels(fine, found)


@pytest.mark.parametrize("file", FILES)
def test_levels_of_files(file: str, shared_data: Path) -> None:
    volumes = control_volumes(orient(read_data(shared_data / file))[0])
    found = hierarchy(volumes, 3)
    assert len(found) == 3
    check_levels(volumes, found)


def test_groups_hang_together(fine: ControlVolumes) -> None:
    """Cells of a group are joined by its faces, and never across a periodic one."""
    group = coarsen(fine).group
    kept = np.ones(fine.interior, dtype=bool)
    kept[fine.wrapped.faces] = False
    a, b = fine.faces[: fine.interior][kept].T
    same = group[a] == group[b]
    links = coo_array((np.ones(same.sum()), (a[same], b[same])), shape=(fine.cells, fine.cells))
    count, _ = connected_components(links, directed=False)
    assert count == group[: fine.cells].max() + 1


def shuffled(volumes: ControlVolumes) -> ControlVolumes:
    """Return the same control volumes with other numbers of cells."""
    order = np.random.default_rng(3).permutation(volumes.cells)
    number = np.arange(volumes.elements)
    number[order] = np.arange(order.size)
    centres = np.concatenate([volumes.centres[order], volumes.centres[order.size :]])
    return replace(volumes, volumes=volumes.volumes[order], centres=centres, faces=number[volumes.faces])


@pytest.mark.parametrize("mesh", [box2d(64, 40, kind="triangle", perturb=0.2), box3d(9, 9, 9, kind="tetra")])
def test_few_are_left_over(mesh: MeshData) -> None:
    """The front leaves nearly no group that is not full, whatever the numbers of cells are."""
    volumes = shuffled(control_volumes(mesh))
    size = sizes(volumes, coarsen(volumes))
    assert np.count_nonzero(size == 2**volumes.dimension) > 0.97 * size.size


def test_squares_of_squares() -> None:
    """Four cells of a square lattice are a square: as many faces as on half the lattice, of twice the length."""
    coarse = coarsen(control_volumes(box2d(32, 24, (32.0, 24.0)))).volumes
    np.testing.assert_allclose(coarse.volumes, 4.0)
    assert len(coarse.faces) == 16 * 13 + 17 * 12
    np.testing.assert_allclose(coarse.area, 2.0)
    np.testing.assert_allclose(coarse.spacing, np.where(np.arange(len(coarse.faces)) < coarse.interior, 2.0, 1.0))


@pytest.mark.parametrize("case", ["rings", "periodic box"])
def test_ways_and_arms_across_periodic_faces(case: str) -> None:
    """``sum S . x = d V`` over the faces of a cell, with ``x`` from its centre; where all faces are flat."""
    fine = GENERATED[case]()
    assert fine.wrapped.faces.size
    coarse = coarsen(fine)
    found, flat = coarse.volumes, np.isclose(coarse.wetted, coarse.volumes.area)
    first, second = (np.einsum("ij,ij->i", found.areas, x) for x in (found.arms, found.ways - found.arms))
    total = np.bincount(found.faces[:, 0], first, found.cells) + np.bincount(found.faces[:, 1], second, found.cells)
    bent = np.zeros(found.cells, dtype=bool)
    bent[found.faces[~flat]] = True
    assert np.count_nonzero(~bent) > 0.2 * found.cells
    np.testing.assert_allclose(total[~bent], found.dimension * found.volumes[~bent], rtol=1e-12)
    assert np.abs(found.ways).max() < 0.5


def test_flat_cells_are_stacked() -> None:
    """On cells 64 times as long as high groups are stacks, and so on until they are as high as wide."""
    volumes = control_volumes(box2d(8, 512, (64.0 * 8, 512.0)))
    levels = [coarse.volumes for coarse in hierarchy(volumes, 4, ["ymin"])]
    ratios = [np.median(level.volumes) / np.abs(level.areas[: level.interior, 1]).max() ** 2 for level in levels]
    np.testing.assert_allclose(ratios, [1 / 16, 1 / 4, 1.0, 1.0])
    stacks = coarsen(volumes, ["ymin"])
    centres = volumes.centres[: volumes.cells]
    for k in range(stacks.volumes.cells):
        own = centres[stacks.group[: volumes.cells] == k]
        assert np.ptp(own[:, 0]) == pytest.approx(0.0)
        assert np.ptp(own[:, 1]) == pytest.approx(3.0)


def test_boundary_layer_becomes_round(shared_data: Path) -> None:
    """The mean of ``S / (4 sqrt(V))``, 1 for squares, falls from 30 to about one in three levels."""
    volumes = control_volumes(orient(read_data(shared_data / "naca0012/n0012_225-65.su2"))[0])
    found = []
    for level in (volumes, *(coarse.volumes for coarse in hierarchy(volumes, 3))):
        surface = np.bincount(level.faces.ravel(), np.repeat(level.area, 2), level.elements)[: level.cells]
        found.append(float((surface / (4 * np.sqrt(level.volumes))).mean()))
    assert all(after < 0.6 * before for before, after in pairwise(found))
    assert found[0] > 25
    assert found[3] < 1.5


def test_faces_that_cancel() -> None:
    """A cell in the middle of a ring: the areas of its face add up to zero, and it still has a normal."""
    volumes = control_volumes(box2d(3, 3))
    coarse = grouped(volumes, np.array([0, 0, 0, 0, 1, 0, 0, 0, 0]))
    found = coarse.volumes
    assert found.interior == 1
    assert coarse.wetted[0] == pytest.approx(4 / 3)
    assert 0 < found.area[0] < 1e-12
    assert np.isfinite(found.normals).all()
    assert found.area[0] / found.spacing[0] == pytest.approx(4.0)
    check_conserved(volumes, coarse)


def test_sides_of_a_plate_stay_apart() -> None:
    """Front and back of one layer in one patch: two boundary elements a cell, else their areas would cancel."""
    volumes = control_volumes(box3d(6, 6, 1, (6.0, 6.0, 0.1)))
    volumes = replace(volumes, patches={"all": range(volumes.cells, volumes.elements)})
    coarse = coarsen(volumes)
    outer = coarse.volumes.areas[coarse.volumes.interior :]
    assert np.linalg.norm(outer, axis=1).min() > 0.05
    assert outer[outer[:, 2] > 0.5, 2].sum() == pytest.approx(36.0)
    check_conserved(volumes, coarse)


def test_one_layer_of_periodic_cells() -> None:
    """A cell that is its own neighbour across a period has no face there."""
    volumes = control_volumes(box2d(16, 2, (16.0, 2.0)), [("xmin", "xmax"), ("ymin", "ymax")])
    coarse = grouped(volumes, np.repeat(np.arange(16)[None], 2, axis=0).reshape(-1) // 2)
    assert coarse.volumes.interior == len(coarse.volumes.faces) == 8
    np.testing.assert_allclose(np.abs(coarse.volumes.areas), [[2.0, 0.0]] * 8)
    assert coarse.volumes.wrapped.faces.size == 1
    np.testing.assert_allclose(np.abs(coarse.volumes.ways), [[2.0, 0.0]] * 8, atol=1e-12)


def test_two_neighbours_with_two_faces() -> None:
    """Two groups around a ring meet inside and across the period: two faces that must not cancel."""
    volumes = control_volumes(box2d(4, 3, (4.0, 3.0)), [("xmin", "xmax")])
    coarse = grouped(volumes, np.tile([0, 0, 1, 1], 3))
    assert coarse.volumes.interior == 2
    np.testing.assert_allclose(sorted(coarse.volumes.areas[:2, 0]), [-3.0, 3.0])
    np.testing.assert_allclose(sorted(coarse.volumes.ways[:2, 0]), [-2.0, 2.0])
    np.testing.assert_allclose(sorted(coarse.volumes.arms[:2, 0]), [-1.0, 1.0])
    check_conserved(volumes, coarse)


def diffusion(volumes: ControlVolumes) -> csr_array:
    """Return the matrix of two-point fluxes with zero on the boundary."""
    weight, (first, second) = volumes.area / volumes.spacing, volumes.faces.T
    rows, columns = np.concatenate([first, second, first, second]), np.concatenate([first, second, second, first])
    whole = csr_array(coo_array((np.concatenate([weight, weight, -weight, -weight]), (rows, columns))))
    return csr_array(whole[: volumes.cells, : volumes.cells])


def cycle(matrices: list[csr_array], groups: list[Array], b: Array, x: Array) -> Array:
    """Return the result of a W cycle with two sweeps of damped Jacobi before and after, constant in groups."""
    matrix = matrices[0]
    if len(matrices) == 1:
        return np.asarray(spsolve(matrix.tocsc(), b))
    diagonal = matrix.diagonal()
    for _ in range(2):
        x = x + 0.7 * (b - matrix @ x) / diagonal
    rest = np.bincount(groups[0], b - matrix @ x)
    correction = np.zeros(rest.size)
    for _ in range(2):
        correction = cycle(matrices[1:], groups[1:], rest, correction)
    x = x + correction[groups[0]]
    for _ in range(2):
        x = x + 0.7 * (b - matrix @ x) / diagonal
    return x


MULTIGRID: dict[str, Callable[[int], MeshData]] = {
    "triangles": lambda n: box2d(n, n, kind="triangle"),
    "flat": lambda n: box2d(n, n, (1.0, 1 / 64)),
    "layer": lambda n: box2d(n, n, axes=(None, lambda s: np.expm1(8.0 * s) / np.expm1(8.0))),
}


@pytest.mark.parametrize("mesh", MULTIGRID)
@pytest.mark.parametrize("n", [24, 48])
def test_multigrid(mesh: str, n: int) -> None:
    """Residuals fall by a factor that neither the size of the cells nor their flatness or growth changes."""
    volumes = control_volumes(MULTIGRID[mesh](n))
    levels = hierarchy(volumes, 5)
    assert len(levels) >= 2
    chain = [volumes, *(coarse.volumes for coarse in levels)]
    matrices = [diffusion(level) for level in chain]
    groups = [c.group[: fine.cells] for c, fine in zip(levels, chain, strict=False)]
    b, norms = np.random.default_rng(0).standard_normal(volumes.cells), []
    x = np.zeros(volumes.cells)
    for _ in range(16):
        x = cycle(matrices, groups, b, x)
        norms.append(float(np.linalg.norm(b - matrices[0] @ x)))
    assert norms[-1] < 0.65**8 * norms[-9]


def test_levels_end() -> None:
    volumes = control_volumes(box2d(8, 8))
    assert [c.volumes.cells for c in hierarchy(volumes, 9)] == [16]
    assert [c.volumes.cells for c in hierarchy(volumes, 9, fewest=1)] == [16, 4, 1]
    assert hierarchy(volumes, 0) == []


def test_pairs() -> None:
    volumes = control_volumes(box2d(16, 16))
    np.testing.assert_array_equal(sizes(volumes, coarsen(volumes, grouping=Grouping(1))), 2)


def test_errors() -> None:
    volumes = control_volumes(box2d(4, 4))
    with pytest.raises(MeshError, match=r"no patch 'ymen'.*did you mean 'ymin'"):
        coarsen(volumes, ["ymen"])
    with pytest.raises(MeshError, match="a group of each of 16 cells is wanted"):
        grouped(volumes, np.repeat([0, 2], 8))
    with pytest.raises(MeshError, match="a group of each of 16 cells is wanted"):
        grouped(volumes, np.zeros(15, dtype=np.int64))
    with pytest.raises(MeshError, match="in one patch each"):
        coarsen(replace(volumes, patches={"xmin": volumes.patches["xmin"]}))
    with pytest.raises(MeshError, match="-1 coarse levels"):
        hierarchy(volumes, -1)
    with pytest.raises(DatError, match="volume must be above 0"):
        coarsen(replace(volumes, volumes=0 * volumes.volumes))
