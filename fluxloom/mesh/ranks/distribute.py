"""A mesh divided over ranks: from slices of its tables to the part of each rank.

``distribute`` takes the arrays of the Airfoil benchmark, `distribute_mesh` slices of a mesh from a file or a generator,
`part_of` a mesh however it is given, on one rank too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from fluxloom.comm.agreement import agree, raise_on_all_ranks
from fluxloom.comm.base import Comm
from fluxloom.comm.rows import before, block_starts, fetch, place
from fluxloom.core.activity import activity
from fluxloom.core.errors import MeshError, did_you_mean
from fluxloom.dsl.declare.parts import Part
from fluxloom.mesh.data.elements import element
from fluxloom.mesh.data.mesh import FloatArray, IntArray, MeshData, MeshSource, Ragged
from fluxloom.mesh.geometry.connectivity import inverse_rows
from fluxloom.mesh.geometry.metrics import cell_geometry, cell_measures
from fluxloom.mesh.quality.sound import require_no_hanging, require_positive, require_sized, require_sound_cells
from fluxloom.mesh.quality.surface import require_no_overlaps, tell_unnamed
from fluxloom.mesh.ranks.part import MAPS, MeshPart, WholePart
from fluxloom.mesh.ranks.slice_check import check_cells_of, check_slice
from fluxloom.mesh.ranks.slice_faces import SliceFaces, derive_edges, derive_faces, surface_of
from fluxloom.mesh.ranks.slices import ListedFaces, MeshSlice, as_slice, corner_mesh

if TYPE_CHECKING:
    from fluxloom.dsl.ranks.decompose import Decomposition, Link
    from fluxloom.dsl.ranks.decompose_report import PartitionReport
    from fluxloom.mesh.generate.airfoil import AirfoilMesh, AirfoilSlice

__all__ = [
    "MAPS",
    "DistributedMesh",
    "DividedPart",
    "MeshPart",
    "Partition",
    "distribute",
    "distribute_mesh",
    "divide",
    "part_of",
]  # fmt: skip

Partition = Literal["auto", "kway", "rcb", "block"]
On = Literal["cells", "nodes"]
Values = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class DistributedMesh:
    """One rank's part of some sets, the maps between them, and values on them.

    Attributes
    ----------
    parts
        Set name to this rank's part, for ``context.set(part, name)``.
    tables
        Map name to its rows, ``(executed, arity)`` int32 in local numbers, for ``context.map``.
    values
        Name to the values of the owned elements, for ``context.dat``.
    decomposition
        How the sets are divided.
    """

    parts: Mapping[str, Part]
    tables: Mapping[str, IntArray]
    values: Mapping[str, Values]
    decomposition: Decomposition

    @property
    def sets(self) -> Mapping[str, Part]:
        """What ``context.set`` takes for each set; a mesh that is not divided has sizes here."""
        return self.parts


def divide(
    comm: Comm,
    sizes: Mapping[str, int],
    links: Mapping[str, Link],
    values: Mapping[str, tuple[str, Values]],
    *,
    on: str = "cells",
    method: Partition = "auto",
    shares: Sequence[float] | None = None,
    weights: npt.ArrayLike | None = None,
    points: FloatArray | None = None,
    through: str | None = None,
) -> DistributedMesh:
    """Divide sets of which every rank holds a slice. Collective.

    Parameters
    ----------
    comm
        The ranks.
    sizes
        Set name to its elements of all ranks.
    links
        Map name to this rank's slice of it.
    values
        Name to a set and this rank's slice of the values on it.
    on, method, shares, weights, points, through
        As `fluxloom.dsl.ranks.decompose.decompose` takes them.
    """
    given = None if weights is None else np.asarray(weights)
    with activity("dividing the mesh", f"{comm.size} parts"):
        from fluxloom.dsl.ranks.decompose import decompose

        found = decompose(
            comm, sizes, links, on=on, method=method, points=points, weights=given, shares=shares, through=through
        )
    tables = {name: found.table(name) for name in links}
    owned: dict[str, Values] = {}
    for name, (over, rows) in values.items():
        part = found.parts[over]
        owned[name] = fetch(comm, rows, _starts(comm, len(rows)), part.numbers[: part.owned])
    return DistributedMesh(found.parts, tables, owned, found)


def distribute(
    mesh: AirfoilSlice | AirfoilMesh,
    comm: Comm,
    *,
    method: Partition = "auto",
    shares: Sequence[float] | None = None,
    weights: npt.ArrayLike | None = None,
) -> DistributedMesh:
    """Divide the Airfoil mesh. Collective.

    Parameters
    ----------
    mesh
        This rank's slice, from `fluxloom.mesh.generate.airfoil.airfoil_slice`, or the whole mesh on every rank.
    comm
        The ranks.
    method
        ``"auto"``, ``"kway"``, ``"rcb"`` or ``"block"``.
    shares
        Fraction of the cells that each rank gets; equal by default.
    weights
        Of this rank's slice of the cells.

    Returns
    -------
    DistributedMesh
        Sets ``nodes``, ``cells``, ``edges`` and ``bedges``, the five maps, values ``points`` and
        ``boundary_codes``.

    Raises
    ------
    DatError
        On every rank, if one of them has something else, or the weights and shares do not fit.
    """
    from fluxloom.mesh.generate.airfoil import AIRFOIL_LINKS, AIRFOIL_VALUES, AirfoilMesh, AirfoilSlice, cut_airfoil

    fits = isinstance(mesh, AirfoilMesh | AirfoilSlice)
    agree(comm, "" if fits else f"an Airfoil mesh or a slice of one is wanted, not {type(mesh).__name__}")
    part = cut_airfoil(mesh, comm.rank, comm.size) if isinstance(mesh, AirfoilMesh) else mesh
    rows = part.rows
    from fluxloom.dsl.ranks.decompose import Link

    links = {name: Link(source, target, rows.tables[name]) for name, (source, target) in AIRFOIL_LINKS.items()}
    middle = None
    if method in ("auto", "rcb"):
        starts = _starts(comm, len(rows.points))
        middle = fetch(comm, rows.points, starts, rows.cell_nodes[:, 0])  # that of a diagonal is near enough
        middle += fetch(comm, rows.points, starts, rows.cell_nodes[:, 2])
        middle /= 2
    values = {name: (over, rows.values[name]) for name, over in AIRFOIL_VALUES.items()}
    return divide(
        comm, part.sizes, links, values, method=method, shares=shares, weights=weights, points=middle,
        through="edge_cells",
    )  # fmt: skip


def distribute_mesh(
    part: MeshSlice,
    comm: Comm,
    *,
    on: On = "cells",
    method: Partition = "auto",
    shares: Sequence[float] | None = None,
    maps: Iterable[str] | None = None,
    check: bool = False,
    orient: bool = False,
) -> DividedPart:
    """Derive faces and edges of a mesh from its slices, and divide it. Collective.

    Parameters
    ----------
    part
        This rank's slice.
    comm
        The ranks.
    on
        What is dealt out: cells, whose nodes follow them, or nodes, whose cells do; these are neighbours if an edge
        joins them, and the map ``edge_nodes`` is made too.
    method
        How cells, or nodes, get their rank: ``"auto"``, ``"kway"``, ``"rcb"`` or ``"block"``.
    shares
        Fraction of them that each rank gets; equal by default.
    maps
        Names out of `MAPS`; all by default. Fewer need less memory and have smaller halos.
    check
        Whether to look for broken elements first, as `fluxloom.mesh.quality.check` does.
    orient
        Whether cells with negative volume are turned round.

    Raises
    ------
    MeshError
        On all ranks, when the mesh is broken on one.
    """
    wanted = _wanted(maps, on)
    raise_on_all_ranks(comm, lambda: check_slice(part))
    corners, nodes = corner_mesh(comm, part)
    part, corners = check_cells_of(comm, part, corners, nodes, check=check, orient=orient)
    faces = derive_faces(comm, part, corners, nodes, negative=_negative(comm, corners), check=check)
    surface = surface_of(comm, part, corners, faces)
    raise_on_all_ranks(comm, lambda: require_no_hanging(surface))
    raise_on_all_ranks(comm, lambda: require_no_overlaps(surface))
    if not comm.rank:
        tell_unnamed(surface)
    middle = part.points
    if on == "cells":
        middle = np.concatenate([corners.points[block].mean(axis=1) for block in corners.cells.values()])
    del corners, nodes
    sizes, tables = _tables(comm, part, faces, wanted)
    distributed = _divided(comm, sizes, tables, on, method, shares, middle)
    points = fetch(comm, part.points, part.point_starts, distributed.parts["nodes"].numbers)
    return DividedPart(distributed, comm, points, part.blocks, part.listed, part.path)


def part_of(
    comm: Comm,
    data: MeshData | MeshSlice | None,
    *,
    on: On = "cells",
    method: Partition = "auto",
    shares: Sequence[float] | None = None,
    maps: Iterable[str] | None = None,
) -> DividedPart | WholePart:
    """Return this rank's part of a mesh: all of it on one rank, else what `distribute_mesh` returns. Collective.

    The maps of a mesh with polyhedra are those of rank 0, which deals them out.

    Parameters
    ----------
    comm
        The ranks.
    data
        On every rank its slice; or on every rank the whole mesh; or the whole mesh on rank 0 and None elsewhere.
    on, method, shares, maps
        How several ranks divide it, see `distribute_mesh`.

    Raises
    ------
    MeshError
        On every rank, when the mesh is broken, or the ranks hold something else.
    """
    if comm.size == 1:
        if not isinstance(data, MeshData):
            raise MeshError(f"a mesh on one rank is bound from its arrays (MeshData), not from {type(data).__name__}")
        return WholePart(data)
    if comm.broadcast(isinstance(data, MeshData) and data.polyhedra is not None):
        assert data is None or isinstance(data, MeshData)
        return _dealt(comm, None if comm.rank else data, on, method, shares, maps)
    return distribute_mesh(as_slice(comm, data), comm, on=on, method=method, shares=shares, maps=maps)


def _dealt(
    comm: Comm, data: MeshData | None, on: On, method: Partition, shares: Sequence[float] | None,
    maps: Iterable[str] | None,
) -> DividedPart:  # fmt: skip
    """Divide a mesh that rank 0 has: its slices of all tables are the tables, those of other ranks are empty."""
    wanted = _wanted(maps, on)
    sets = ("nodes", "cells", "faces", "boundary", "edges")[: 5 if "edge_nodes" in wanted else 4]
    whole = raise_on_all_ranks(comm, lambda: None if data is None else WholePart(data))
    terms = raise_on_all_ranks(comm, lambda: None if whole is None else whole.cell_geometry())
    told = None
    if whole is not None:
        listed = ListedFaces.of(whole.data, slice(0))
        told = {name: whole.part(name).total for name in sets}, whole.blocks, listed, whole.path, whole.points[:0]
    sizes, blocks, listed, path, points = comm.broadcast(told)
    volumes, centroids = terms or (points[:, 0], points)
    points = points if whole is None else whole.points
    tables = {name: np.empty((0, 1), np.int32) if whole is None else whole.table(name) for name in wanted}
    values = {"volumes": ("cells", volumes), "centroids": ("cells", centroids)}
    distributed = _divided(comm, sizes, tables, on, method, shares, centroids if on == "cells" else points, values)
    points = fetch(comm, points, _starts(comm, len(points)), distributed.parts["nodes"].numbers)
    terms = distributed.values["volumes"], distributed.values["centroids"]
    return DividedPart(distributed, comm, points, blocks, listed, path, terms)


def _wanted(maps: Iterable[str] | None, on: On) -> tuple[str, ...]:
    """Return the names of the maps to make."""
    wanted = tuple(MAPS) if maps is None else tuple(maps)
    for name in wanted:
        if name not in MAPS:
            raise MeshError(f"unknown map {name!r}{did_you_mean(name, MAPS)} (known: {', '.join(MAPS)})")
    return (*wanted, "edge_nodes") if on == "nodes" and "edge_nodes" not in wanted else wanted


def _divided(
    comm: Comm, sizes: Mapping[str, int], tables: Mapping[str, IntArray], on: On, method: Partition,
    shares: Sequence[float] | None, middle: FloatArray, values: Mapping[str, tuple[str, Values]] = MappingProxyType({}),
) -> DistributedMesh:  # fmt: skip
    """Divide the sets of a mesh by its maps; ``middle`` are the places of the slice of what is dealt out."""
    from fluxloom.dsl.ranks.decompose import Link

    links = {name: Link(*MAPS[name], table) for name, table in tables.items()}
    through = "face_cells" if "face_cells" in tables and sizes["faces"] else None
    through = "edge_nodes" if on == "nodes" else through
    return divide(comm, sizes, links, values, on=on, method=method, shares=shares, points=middle, through=through)


def _negative(comm: Comm, corners: MeshData) -> npt.NDArray[np.bool_]:
    """Refuse cells that are flat or cross themselves, and return which have a negative volume. Collective."""
    volumes, _, parts = cell_measures(corners)
    raise_on_all_ranks(comm, lambda: require_sized(corners, volumes))
    raise_on_all_ranks(comm, lambda: require_sound_cells(corners, volumes, parts))
    return volumes < 0.0


def _tables(
    comm: Comm, part: MeshSlice, faces: SliceFaces, wanted: Sequence[str]
) -> tuple[dict[str, int], dict[str, IntArray]]:
    """Return elements of all ranks of each set, and this rank's slice of each map. Collective."""
    sizes = {"nodes": part.n_points, "cells": part.n_cells, "faces": faces.n_interior, "boundary": faces.n_boundary}
    tables = {
        "cell_nodes": part.cell_table(),
        "face_cells": faces.interior_cells,
        "face_nodes": faces.interior_nodes,
        "boundary_cell": faces.boundary_cells[:, None],
        "boundary_nodes": faces.boundary_nodes,
    }
    if "edge_nodes" in wanted:
        tables["edge_nodes"] = derive_edges(comm, part)
        sizes["edges"] = before(comm, len(tables["edge_nodes"]))[1]
    return sizes, {name: tables[name] for name in wanted}


@dataclass(frozen=True, eq=False)
class DividedPart(MeshPart):
    """One rank's part of a mesh that is divided.

    Attributes
    ----------
    distributed
        Parts of the sets ``nodes``, ``cells``, ``faces``, ``boundary`` and, where the map ``edge_nodes`` is there,
        ``edges``; the tables of the maps; -1 pads short rows.
    listed
        The patches, and this rank's slice of the faces in them.
    comm, points, blocks, path
        See `MeshPart`.
    terms
        Volumes and centroids of the owned cells, where the nodes of the cells do not tell them.
    """

    distributed: DistributedMesh
    comm: Comm
    points: FloatArray
    blocks: Mapping[str, int]
    listed: ListedFaces
    path: str
    terms: tuple[FloatArray, FloatArray] | None = None

    @property
    def patches(self) -> Mapping[str, range]:
        """Name of each patch to its boundary faces, see `MeshPart.patches`."""
        bounds = self.listed.offsets.tolist()
        return {name: range(*bounds[k : k + 2]) for k, name in enumerate(self.listed.names)}

    def report(self) -> PartitionReport:
        """Return how the mesh is divided. Collective."""
        return self.distributed.decomposition.report()

    def part(self, name: str) -> Part:
        """Return this rank's part of a set, see `MeshPart.part`."""
        parts = self.distributed.parts
        if name not in parts:
            raise MeshError(f"{self.path}: the mesh was divided without {name}: add edge_nodes to maps=")
        return parts[name]

    def rows(self, name: str) -> Ragged:
        """Return the rows of a map, see `MeshPart.rows`."""
        return Ragged.from_padded(self.table(name))

    def table(self, name: str) -> IntArray:
        """Return the table of a map, see `MeshPart.table`."""
        if name not in self.distributed.tables:
            known = ", ".join(self.distributed.tables)
            raise MeshError(f"{self.path}: the mesh was divided without the map {name}: add it to maps= (has: {known})")
        return self.distributed.tables[name]

    def node_cells(self) -> Ragged:
        """Return the cells of each owned node, see `MeshPart.node_cells`."""
        table = self.table("cell_nodes")
        numbers = self.part("cells").numbers[: len(table)]
        around = inverse_rows(table, self.part("nodes").owned, numbers, by_leg=False)
        return Ragged(around.offsets, around.rows)

    @cached_property
    def cell_types(self) -> npt.NDArray[np.uint8]:
        """Of each stored cell the number of its element type in `blocks`."""
        ends = np.cumsum(list(self.blocks.values()))
        return np.searchsorted(ends, self.part("cells").numbers, side="right").astype(np.uint8)

    def regular(self, name: str) -> bool:
        """Whether all rows of a map, of all ranks, have equally many targets. Collective."""
        return all(self.comm.allgather(not bool((self.table(name)[:, -1] < 0).any())))

    def cell_geometry(self) -> tuple[FloatArray, FloatArray]:
        """Return volumes and centroids of the owned cells, see `MeshPart.cell_geometry`."""
        if self.terms is not None:
            return self.terms
        cells, owned = self.part("cells"), self.part("cells").owned
        table, kinds = self.table("cell_nodes")[:owned], self.cell_types[:owned]
        rows = {name: np.flatnonzero(kinds == number) for number, name in enumerate(self.blocks)}
        source = MeshSource(self.path, cell_numbers={name: cells.numbers[some] for name, some in rows.items()})
        blocks = {name: table[some, : element(name).n_nodes] for name, some in rows.items()}
        mesh = MeshData(self.points, blocks, {}, source)
        order, found = np.concatenate(list(rows.values())), cell_geometry(mesh)
        require_positive(mesh, found[0], "cells of its rank")
        volumes, centroids = np.empty_like(found[0]), np.empty_like(found[1])
        volumes[order], centroids[order] = found
        return volumes, centroids

    def sliced(self, name: str, owned: Values) -> Values:
        """Return this rank's slice of values, of which each rank gives those of the elements it owns. Collective."""
        part = self.part(name)
        return place(self.comm, part.numbers[: part.owned], owned, block_starts(part.total, self.comm.size))

    def to_slice(self, cell_data: Mapping[str, Values], point_data: Mapping[str, Values]) -> MeshSlice:
        """Return the mesh and values on owned cells and nodes as slices, in the order of the whole. Collective."""
        if "polyhedron" in self.blocks:
            raise MeshError(f"{self.path}: several ranks do not write a mesh with polyhedra: write it on one rank")
        cells, nodes = self.part("cells"), self.part("nodes")
        local = self.table("cell_nodes")[: cells.owned]
        table = np.where(local < 0, -1, nodes.numbers[local]).astype(np.int32)
        rows = self.sliced("cells", table)
        starts = block_starts(cells.total, self.comm.size)
        first, blocks, begin = int(starts[self.comm.rank]), {}, 0
        for name, count in self.blocks.items():
            chosen = slice(max(0, begin - first), max(0, begin + count - first))
            blocks[name] = np.ascontiguousarray(rows[chosen, : element(name).n_nodes])
            begin += count
        return MeshSlice(
            self.comm.rank, self.comm.size, nodes.total, self.blocks, self.sliced("nodes", self.points[: nodes.owned]),
            blocks, self.listed, self.path,
            {name: self.sliced("nodes", values) for name, values in point_data.items()},
            {name: self.sliced("cells", values) for name, values in cell_data.items()},
        )  # fmt: skip


def _starts(comm: Comm, count: int) -> npt.NDArray[np.int64]:
    """Return where the slices of all ranks begin, when this rank's has ``count`` rows."""
    return np.concatenate([[0], np.cumsum(comm.allgather(int(count)))]).astype(np.int64)
