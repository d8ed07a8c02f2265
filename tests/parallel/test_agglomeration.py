"""Coarse control volumes on several ranks: those of one rank for the same groups, on every level."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fluxloom.comm.base import Comm
from fluxloom.comm.threads import run_threads
from fluxloom.core.errors import DatError, MeshError
from fluxloom.dsl.declare.parts import refresh_host
from fluxloom.fv.geometry.agglomeration import Coarse, coarsen, grouped, hierarchy
from fluxloom.fv.geometry.control_volumes import FLOW_MAPS, control_volumes, shared_volumes
from fluxloom.fv.geometry.volumes import ControlVolumes
from fluxloom.mesh import box2d, box3d
from fluxloom.mesh.data.mesh import MeshData
from fluxloom.mesh.ranks.distribute import distribute_mesh
from fluxloom.mesh.ranks.slices import as_slice
from fluxloom_lab.problems.box_volumes import periodic_box_volumes

Array = np.ndarray
Pairs = list[tuple[str, str]]


def of_mesh(comm: Comm | None, mesh: MeshData, periodic: Pairs) -> ControlVolumes:
    if comm is None:
        return control_volumes(mesh, periodic)
    return shared_volumes(distribute_mesh(as_slice(comm, mesh), comm, method="rcb", maps=FLOW_MAPS), periodic)


CASES: dict[str, Callable[[Comm | None], ControlVolumes]] = {
    "triangles": lambda comm: of_mesh(comm, box2d(13, 14, kind="triangle", perturb=0.2), []),
    "channel": lambda comm: of_mesh(comm, box2d(16, 12, (8.0, 1.0)), [("xmin", "xmax")]),
    "thin": lambda comm: of_mesh(comm, box3d(12, 9, 6, (4.0, 2.0, 0.2), perturb=0.1), [("zmin", "zmax")]),
    "rings": lambda comm: of_mesh(comm, box2d(12, 8), [("ymin", "ymax"), ("xmin", "xmax")]),
    "slabs": lambda comm: periodic_box_volumes((8, 6, 7), (1.0, 2.0, 0.5), comm),
}


def numbers_of(volumes: ControlVolumes) -> tuple[Array, Array, Array]:
    """Return the global numbers of this rank's cells, elements and faces, in the order of `ControlVolumes`."""
    shared = volumes.shared
    elements, faces = np.empty(volumes.elements, dtype=np.int64), np.empty(len(volumes.faces), dtype=np.int64)
    elements[shared.element_order], faces[shared.face_order] = shared.elements.numbers, shared.faces.numbers
    elements[: volumes.cells] = shared.cells.numbers  # boundary elements have the numbers behind all cells
    return shared.cells.numbers, elements, faces


def facts(volumes: ControlVolumes) -> dict[str, Any]:
    """Return what a rank knows, by global numbers."""
    cells, elements, faces = numbers_of(volumes)
    shift = np.zeros((len(faces), volumes.dimension))
    shift[volumes.wrapped.faces] = volumes.wrapped.shift
    shared = volumes.shared
    return {
        "cells": cells, "owned": volumes.owned, "elements": elements, "faces": faces, "volumes": volumes.volumes,
        "centres": volumes.centres, "table": elements[volumes.faces], "areas": volumes.areas, "arms": volumes.arms,
        "ways": volumes.ways, "spacing": volumes.spacing, "shift": shift,
        "patches": {name: elements[np.asarray(span, dtype=int)] for name, span in volumes.patches.items()},
        "totals": (shared.cells.total, shared.elements.total, shared.faces.total),
    }  # fmt: skip


def levels_of(comm: Comm, volumes: ControlVolumes, levels: int) -> list[dict[str, Any]]:
    """Return the facts of all levels, with the groups of the owned elements of the level before."""
    found: list[dict[str, Any]] = []
    for coarse in hierarchy(volumes, levels, fewest=4):
        fine = found[-1]["volumes_object"] if found else volumes
        item = facts(coarse.volumes)
        check_groups(fine, coarse)
        fine_cells, fine_elements, _ = numbers_of(fine)
        item |= {"wetted": coarse.wetted, "of": fine_cells[: fine.owned], "volumes_object": coarse.volumes,
                 "group": item["cells"][coarse.group[: fine.owned]], "outer_of": fine_elements[fine.cells :],
                 "outer_group": item["elements"][coarse.group[fine.cells :]]}  # fmt: skip
        found.append(item)
    return found


def check_groups(fine: ControlVolumes, coarse: Coarse) -> None:
    """What is owned leads to what is owned, the halo to the halo, where its owner says."""
    found = coarse.volumes
    assert coarse.group[: fine.owned].max(initial=-1) < found.owned
    halo = coarse.group[fine.owned : fine.cells]
    assert ((halo >= found.owned) & (halo < found.cells)).all()
    assert (coarse.group[fine.cells :] >= found.cells).all()
    told = found.shared.cells.numbers[coarse.group[: fine.cells]]
    before = told.copy()
    told[fine.owned :] = -1
    refresh_host(fine.shared.comm, fine.shared.cells, told)
    np.testing.assert_array_equal(told, before)


def whole_of(level: list[dict[str, Any]], fine: ControlVolumes, wetted: Array | None) -> Coarse:
    """Return the groups of all ranks, made on one rank."""
    group = np.full(fine.cells, -1, dtype=np.int64)
    for item in level:
        group[item["of"]] = item["group"]
    assert group.min() >= 0
    return grouped(fine, group, wetted)


def check_level(level: list[dict[str, Any]], coarse: Coarse) -> None:
    """Compare what each rank knows of cells and faces with the same groups on one rank."""
    want = coarse.volumes
    assert all(item["totals"] == (want.cells, want.elements, len(want.faces)) for item in level)
    owned = np.concatenate([item["cells"][: item["owned"]] for item in level])
    np.testing.assert_array_equal(np.sort(owned), np.arange(want.cells))
    shift = np.zeros((len(want.faces), want.dimension))
    shift[want.wrapped.faces] = want.wrapped.shift
    place = {key: k for k, key in enumerate(map(key_of, want.faces, shift))}
    known = np.full(len(want.faces), -1, dtype=np.int64)
    names = {"spacing": want.spacing, "areas": want.areas, "arms": want.arms, "ways": want.ways, "shift": shift,
             "wetted": coarse.wetted}  # fmt: skip
    for item in level:
        np.testing.assert_allclose(item["volumes"], want.volumes[item["cells"]], rtol=1e-12)
        np.testing.assert_allclose(item["centres"][: item["cells"].size], want.centres[item["cells"]], atol=1e-12)
        inner = np.flatnonzero(item["table"][:, 1] < want.cells)
        places = np.array([place[key_of(item["table"][k], item["shift"][k])] for k in inner], dtype=np.int64)
        numbers = item["faces"][inner]
        assert ((known[numbers] < 0) | (known[numbers] == places)).all()
        known[numbers] = places
        for name, values in names.items():
            np.testing.assert_allclose(item[name][inner], values[places], atol=1e-12, err_msg=name)
    assert np.unique(known[known >= 0]).size == want.interior


def key_of(row: Array, shift: Array) -> tuple[Any, ...]:
    return (*row.tolist(), *np.round(shift, 6).tolist())


def check_outside(level: list[dict[str, Any]], coarse: Coarse) -> None:
    """Boundary elements: numbers patch by patch, none twice, and the sums of areas and centres of one rank."""
    want = coarse.volumes
    for name, span in want.patches.items():
        mine = [item["patches"][name] for item in level]
        np.testing.assert_array_equal(np.sort(np.concatenate(mine)), np.asarray(span))
        rows = [
            np.concatenate([
                np.concatenate([item["table"], item["areas"], item["wetted"][:, None], item["spacing"][:, None],
                                item["arms"]], axis=1)[np.isin(item["table"][:, 1], own)]
                for item, own in zip(level, mine, strict=True)
            ]),
            np.concatenate([want.faces, want.areas, coarse.wetted[:, None], want.spacing[:, None], want.arms],
                           axis=1)[np.isin(want.faces[:, 1], span)],
        ]  # fmt: skip
        got, expected = (r[np.lexsort(np.round(r[:, [2, 0]], 9).T)] for r in rows)
        np.testing.assert_array_equal(got[:, 0], expected[:, 0])
        np.testing.assert_allclose(got[:, 2:], expected[:, 2:], atol=1e-12)


@pytest.mark.parametrize(
    ("name", "ranks"), [*((name, ranks) for name in CASES for ranks in (2, 3)), ("thin", 1), ("triangles", 4)]
)
def test_those_of_one_rank(name: str, ranks: int) -> None:
    found = run_threads(ranks, lambda comm: levels_of(comm, CASES[name](comm), 2))
    fine, wetted = CASES[name](None), None
    assert {len(item) for item in found} == {2}
    for k in range(2):
        level = [item[k] for item in found]
        coarse = whole_of(level, fine, wetted)
        check_level(level, coarse)
        check_outside(level, coarse)
        fine, wetted = coarse.volumes, coarse.wetted


def test_errors_of_one_rank_are_raised_on_all() -> None:
    def run(comm: Comm) -> None:
        volumes = CASES["channel"](comm)
        group = np.zeros(volumes.owned, dtype=np.int64)
        group[0] = 2 * comm.rank
        with pytest.raises(MeshError, match="numbered from 0 on"):
            grouped(volumes, group)
        with pytest.raises(DatError, match="volume must be above 0"):
            coarsen(replace(volumes, volumes=comm.rank * volumes.volumes))

    run_threads(2, run)


def test_one_cell_a_rank() -> None:
    """Nothing to group, so no level; groups of one cell are the control volumes there were."""

    def run(comm: Comm) -> None:
        volumes = of_mesh(comm, box2d(3, 1), [])
        assert hierarchy(volumes, 2, fewest=1) == []
        coarse = coarsen(volumes).volumes
        assert (coarse.owned, coarse.cells) == (volumes.owned, volumes.cells)
        np.testing.assert_allclose(np.sort(coarse.spacing), np.sort(volumes.spacing))
        np.testing.assert_allclose(np.sort(np.abs(coarse.areas), axis=0), np.sort(np.abs(volumes.areas), axis=0))

    run_threads(3, run)
