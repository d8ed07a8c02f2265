"""VTKHDF files on several ranks: every rank reads its slice of each data set; rank 0 writes the slices in turn."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fluxloom.comm.agreement import raise_on_all_ranks
from fluxloom.comm.base import Comm
from fluxloom.comm.disk import Disk
from fluxloom.comm.rows import before, block_starts, place
from fluxloom.core.errors import MeshError
from fluxloom.core.packages import require
from fluxloom.mesh.data.elements import ElementType, by_code, element, face_name, vtk_order
from fluxloom.mesh.data.mesh import MeshData
from fluxloom.mesh.data.ragged import narrowed
from fluxloom.mesh.io.tables.collect import cell_dimension, finite_box, level_axis
from fluxloom.mesh.io.vtk.cells import PATCH, PATCH_NAMES, VtkCells, nodes_of, padded, to_vtk
from fluxloom.mesh.io.vtk.vtkhdf import create_grid, is_single, open_grid, patch_names
from fluxloom.mesh.ranks.slices import ListedFaces, MeshSlice, face_width

__all__ = ["has_slices", "read_vtkhdf_slice", "write_vtkhdf_slices"]

Array = npt.NDArray[Any]
_CELL = -1


class _Rows(NamedTuple):
    """What one rank reads: equal slices of the points and of the elements, in the order of the file, and patches."""

    n_points: int
    slice: VtkCells
    patch: npt.NDArray[np.int64]
    names: tuple[str, ...]


def has_slices(path: str | Path) -> bool:
    """Return whether ranks can read slices of a file: one part, no steps.

    Raises
    ------
    MeshError
        When it is no such file.
    DeviceUnavailable
        When h5py is not installed.
    """
    with open_grid(path) as root:
        return is_single(root)


def read_vtkhdf_slice(path: str | Path, comm: Comm, *, data: bool = True) -> MeshSlice:
    """Read this rank's slice of a mesh. Collective.

    Every rank opens the file and reads equal slices of the points and elements; then cells and faces of patches
    go to where their numbers belong. Cells are numbered as `fluxloom.mesh.io.vtk.vtkhdf.read_vtkhdf` does it.

    Parameters
    ----------
    path
        The file.
    comm
        The ranks.
    data
        Whether the values on points and cells are read too.

    Raises
    ------
    MeshError
        On all ranks, when the file cannot be read on one.
    DeviceUnavailable
        When h5py is not installed.
    """
    rows = raise_on_all_ranks(comm, lambda: _read(Path(path), comm.rank, comm.size, data))
    kinds, axes = _kinds(comm, str(path), rows)
    dimension = len(axes)
    solid = np.array([code for code, kind in kinds.items() if kind.dimension == dimension], dtype=np.uint8)
    types = rows.slice.types
    chosen = (rows.patch == _CELL) & np.isin(types, solid)
    counts = comm.allgather({int(code): int((types[chosen] == code).sum()) for code in solid})
    blocks = {kind.name: sum(c[code] for c in counts) for code, kind in kinds.items() if kind.dimension == dimension}
    blocks = {name: count for name, count in blocks.items() if count}
    starts = block_starts(sum(blocks.values()), comm.size)
    numbers, cells, begin = np.full(len(types), _CELL, dtype=np.int64), {}, 0
    for name, count in blocks.items():
        code = element(name).vtk
        mine = np.flatnonzero(chosen & (types == code))
        first = sum(c[code] for c in counts[: comm.rank])
        table = vtk_order(name, nodes_of(str(path), rows.slice, mine, element(name).n_nodes))
        within = np.clip(starts - begin, 0, count)
        cells[name] = place(comm, first + np.arange(len(mine)), table, within)
        numbers[mine] = begin + first + np.arange(len(mine))
        begin += count
    kept = np.flatnonzero(numbers >= 0)
    values = {name: place(comm, numbers[kept], found[kept], starts) for name, found in rows.slice.cell_data.items()}
    return MeshSlice(
        comm.rank, comm.size, rows.n_points, blocks, np.ascontiguousarray(rows.slice.points[:, axes]), cells,
        _listed(comm, str(path), rows, dimension), str(path), rows.slice.point_data, values,
    )  # fmt: skip


def _read(path: Path, rank: int, ranks: int, data: bool) -> _Rows:
    """Read this rank's rows of every data set. Not collective."""
    with open_grid(path) as root:
        if not is_single(root):
            raise MeshError(f"{path}: several parts or steps are no slices; `fluxloom mesh convert` makes them one")
        n_points, n_elements = len(root["Points"]), len(root["Types"])
        points = slice(*(int(n) for n in block_starts(n_points, ranks)[rank : rank + 2]))
        elements = slice(*(int(n) for n in block_starts(n_elements, ranks)[rank : rank + 2]))
        offsets = np.asarray(root["Offsets"][elements.start : elements.stop + 1], dtype=np.int64)
        if len(offsets) != elements.stop - elements.start + 1 or (np.diff(offsets) < 0).any():
            raise MeshError(f"{path}: Offsets do not fit the {n_elements} elements of the file, or decrease")
        if offsets[0] < 0 or offsets[-1] > len(root["Connectivity"]):
            raise MeshError(f"{path}: Offsets lead beyond the end of Connectivity")
        columns = root.get("CellData", {})
        text = patch_names(root)
        listed = text is not None and PATCH in columns
        patch = np.full(elements.stop - elements.start, _CELL, dtype=np.int64)
        if listed:
            patch = np.asarray(columns[PATCH][elements], dtype=np.int64)
        wanted = [name for name in columns if data and not (listed and name == PATCH)]
        nodal = root.get("PointData", {}) if data else {}
        found = VtkCells(
            np.asarray(root["Points"][points], dtype=np.float64),
            narrowed(np.asarray(root["Connectivity"][int(offsets[0]) : int(offsets[-1])])),
            offsets - offsets[0],
            np.asarray(root["Types"][elements], dtype=np.uint8),
            {name: np.asarray(nodal[name][points]) for name in nodal},
            {name: np.asarray(columns[name][elements]) for name in wanted},
            text,
        )
        names = tuple(text.tobytes().decode().split("\n")) if listed and text is not None and text.size else ()
        return _Rows(n_points, found, patch, names)


def _kinds(comm: Comm, path: str, rows: _Rows) -> tuple[dict[int, ElementType], list[int]]:
    """Return the element types of the file by code, in the order in which they come, and the axes of the mesh."""
    present, first = np.unique(rows.slice.types, return_index=True)
    mine = [(int(code), int(spot)) for code, spot in zip(present, first, strict=True)]
    low, high = finite_box(rows.slice.points)
    found = comm.allgather((sorted(mine, key=lambda item: item[1]), low, high))
    codes = list(dict.fromkeys(code for items, _, _ in found for code, _ in items))
    known = by_code("vtk")
    unknown = sorted(code for code in codes if code not in known)
    if unknown:
        raise MeshError(
            f"{path}: VTK cell type {unknown[0]} is not supported (known on several ranks: {sorted(known)}); `fluxloom "
            "mesh convert` writes voxels, pixels and small polygons as one of these"
        )
    raise_on_all_ranks(comm, lambda: _check_widths(path, rows.slice))
    kinds = {code: known[code] for code in codes}
    if cell_dimension(path, [kind.name for kind in kinds.values()]) == 3:
        return kinds, [0, 1, 2]
    low, high = np.min([low for _, low, _ in found], axis=0), np.max([high for _, _, high in found], axis=0)
    level = level_axis(path, low, high)
    return kinds, [axis for axis in range(3) if axis != level]


def _check_widths(path: str, rows: VtkCells) -> None:
    """Raise when an element has not as many nodes as its type."""
    widths = np.zeros(256, dtype=np.int64)
    for code, kind in by_code("vtk").items():
        widths[code] = kind.n_nodes
    wrong = np.flatnonzero(np.diff(rows.offsets) != widths[rows.types])
    if len(wrong):
        raise MeshError(f"{path}: an element of VTK type {rows.types[wrong[0]]} has the wrong number of nodes")


def _listed(comm: Comm, path: str, rows: _Rows, dimension: int) -> ListedFaces:
    """Return this rank's slice of the faces of patches: patch by patch, in each type by type."""
    chosen = np.flatnonzero((rows.patch >= 0) & (rows.patch < len(rows.names)))
    keys = rows.patch[chosen] * 256 + rows.slice.types[chosen]
    distinct, first, counts = np.unique(keys, return_index=True, return_counts=True)
    order = np.argsort(first)
    everyone = comm.allgather([(int(distinct[k]), int(counts[k])) for k in order])
    total: dict[int, int] = {}
    lower: dict[int, int] = {}
    for rank, items in enumerate(everyone):
        for key, count in items:
            lower.setdefault(key, 0)
            lower[key] += count if rank < comm.rank else 0
            total[key] = total.get(key, 0) + count
    width = face_width(dimension)
    nodes = np.full((len(chosen), width), -1, dtype=np.int32)
    position = np.empty(len(chosen), dtype=np.int64)
    offsets, begin = np.zeros(len(rows.names) + 1, dtype=np.int64), 0
    for key in sorted(total, key=lambda key: key // 256):  # stable: types in the order in which they come
        mine = np.flatnonzero(keys == key)
        kind = by_code("vtk")[key % 256]
        if kind.n_nodes > width:
            name = rows.names[key // 256]
            raise MeshError(f"{path}: patch {name!r}: a {kind.name} cannot be a face in {dimension} dimensions")
        nodes[mine, : kind.n_nodes] = nodes_of(path, rows.slice, chosen[mine], kind.n_nodes)
        position[mine] = begin + lower[key] + np.arange(len(mine))
        begin += total[key]
        offsets[key // 256 + 1] = begin
    np.maximum.accumulate(offsets, out=offsets)
    return ListedFaces(rows.names, offsets, place(comm, position, nodes, block_starts(begin, comm.size)))


# ----------------------------------------------------------------------------------------- writing
def write_vtkhdf_slices(path: str | Path, comm: Comm, part: MeshSlice, *, patches: bool | None = None) -> None:
    """Write a mesh and the values on its slices as one file, whole or not at all. Collective.

    Rank 0 writes; the others send it their rows one after the other, so that it holds one slice of one data set
    besides its own. The file is the same for any number of ranks.

    Parameters
    ----------
    path
        The file.
    comm
        The ranks.
    part
        This rank's slice, with the values to write.
    patches
        Whether the patches are written too; by default when there are no values.

    Raises
    ------
    MeshError
        On all ranks, when the file cannot be written.
    """
    target = Path(path)
    temporary = target.with_name(f".{target.stem}-{os.getpid()}-{id(part):x}{target.suffix}")
    plain = not (part.cell_data or part.point_data)
    listed = bool(part.listed.names) if patches is None and plain else bool(patches)
    if listed and (bad := next((name for name in part.listed.names if not name or "\n" in name), None)) is not None:
        raise MeshError(f"{path}: the patch {bad!r} cannot be called so in a VTK file; rename it")
    writer = _Writer(comm, target, temporary)
    try:
        writer.begin(part, listed)
        writer.columns(part, listed)
    finally:
        writer.close()
    raise_on_all_ranks(comm, writer.finish)


class _Writer:
    """The file on rank 0, and what the other ranks send for it.

    An error of rank 0 is kept until the end: the others go on sending, so that nobody waits for anybody.
    """

    def __init__(self, comm: Comm, target: Path, temporary: Path) -> None:
        self.comm, self.target, self.temporary = comm, target, temporary
        self.error: OSError | None = None
        self._disk: Disk | None = None
        self._file: Any = None
        self._root: Any = None

    def begin(self, part: MeshSlice, named: bool) -> None:
        """Create the file."""
        raise_on_all_ranks(self.comm, lambda: require("h5py", "mesh", "writing VTKHDF files"))
        cells = sum(part.blocks.values())
        ids = sum(count * element(name).n_nodes for name, count in part.blocks.items())
        faces = part.listed.total if named else 0
        ids += before(self.comm, int((part.listed.nodes >= 0).sum()) if named else 0)[1]
        if self.comm.rank == 0:
            self._try(lambda: self._create(part.n_points, cells + faces, ids, part.listed.names if named else None))

    def _create(self, points: int, cells: int, ids: int, names: tuple[str, ...] | None) -> None:
        h5py = require("h5py", "mesh", "writing VTKHDF files")
        self._disk = Disk(self.temporary)  # HDF5 crashes the process after a write of its own that has failed
        self._file = h5py.File(self._disk, "w")
        self._root = create_grid(self._file, points, cells, ids)
        self._root.create_group("PointData")
        self._root.create_group("CellData")
        if names is not None:
            self._root.create_group("FieldData")[PATCH_NAMES] = np.frombuffer("\n".join(names).encode(), dtype=np.uint8)

    def columns(self, part: MeshSlice, listed: bool) -> None:
        """Write points, elements and values: cells, then the faces of patches where they are listed."""
        mesh = MeshData(part.points, part.cells)  # with the numbers of the whole mesh
        cells = raise_on_all_ranks(self.comm, lambda: to_vtk(mesh, part.cell_data, part.point_data, False))
        self._column("Points", [cells.points])
        faces = part.listed.nodes
        counts = (faces >= 0).sum(axis=1)
        start, total = before(self.comm, int(cells.offsets[-1]))
        start_faces, _ = before(self.comm, int(counts.sum()))
        codes = np.array([0, *(element(face_name(n)).vtk for n in range(1, 5))], dtype=np.uint8)
        for name, of_cells, of_faces in (
            ("Connectivity", cells.connectivity.astype(np.int64), faces[faces >= 0].astype(np.int64)),
            ("Offsets", start + cells.offsets[int(self.comm.rank > 0) :], total + start_faces + np.cumsum(counts)),
            ("Types", cells.types, codes[counts]),
        ):
            self._column(name, [of_cells, of_faces.astype(of_cells.dtype)][: 1 + listed])
        for name, values in cells.point_data.items():
            self._column(f"PointData/{name}", [values])
        extra = len(faces) if listed else 0
        for name, values in cells.cell_data.items():
            self._column(f"CellData/{name}", [values, padded(values, len(values) + extra)[len(values) :]])
        if listed:
            first = int(block_starts(part.listed.total, self.comm.size)[self.comm.rank])
            number = np.searchsorted(part.listed.offsets, first + np.arange(extra), side="right") - 1
            self._column(f"CellData/{PATCH}", [np.full(len(cells.types), -1, dtype=np.int32), number.astype(np.int32)])

    def _column(self, name: str, pieces: list[Array]) -> None:
        """Write one data set: the first pieces of all ranks, then the second."""
        totals = [before(self.comm, len(piece))[1] for piece in pieces]
        if self.comm.rank == 0:
            shape = (sum(totals), *pieces[0].shape[1:])
            self._try(lambda: self._root.create_dataset(name, shape, pieces[0].dtype))
        begin = 0
        for piece in pieces:
            for rows in _in_turn(self.comm, piece):
                if self.comm.rank == 0:
                    self._try(lambda begin=begin, rows=rows: _store(self._root[name], begin, rows))
                begin += len(rows)

    def _try(self, action: Any) -> None:
        """Do a step unless one before has failed."""
        if self.error is None:
            try:
                action()
                if self._disk is not None:
                    self._disk.check()
            except (OSError, RuntimeError) as error:
                self.error = error if isinstance(error, OSError) else OSError(str(error))

    def close(self) -> None:
        """Close the file."""
        if self._disk is not None and self.error is not None:
            self._disk.give_up()
        if self._file is not None:
            self._file.close()
            self._file = None
        self._try(lambda: None)

    def finish(self) -> None:
        """Give the file its name, or remove it and say why."""
        if self.comm.rank:
            return
        self._try(lambda: os.replace(self.temporary, self.target))
        if self._disk is not None:
            self._disk.close()
        if self.error is not None:
            with contextlib.suppress(OSError):
                self.temporary.unlink()
            raise MeshError(f"{self.target}: cannot be written: {self.error.strerror or self.error}")


def _store(target: Any, begin: int, rows: Array) -> None:
    target[begin : begin + len(rows)] = rows


def _in_turn(comm: Comm, rows: Array) -> Iterator[Array]:
    """Yield the rows of every rank on rank 0, one rank after the other, and nothing elsewhere. Collective."""
    empty = rows[:0]
    for sender in range(comm.size):
        parts = [rows if comm.rank == sender and receiver == 0 else empty for receiver in range(comm.size)]
        found = comm.exchange(parts)
        yield found[sender]

