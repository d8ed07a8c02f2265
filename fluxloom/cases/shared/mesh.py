"""The table ``[mesh]`` of cases of flow, the meshes that it describes, and flows that are divided over ranks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from pydantic import Field, model_validator

from fluxloom.cases.files.application import Estimate
from fluxloom.cases.files.case import PartitionTable
from fluxloom.cases.files.errors import LateTable
from fluxloom.cases.files.strategy_tables import StrategyTable, Table, strategy_table
from fluxloom.core.activity import activity
from fluxloom.core.errors import CaseError, MeshError, SolverError
from fluxloom.flows.volumes import Domain, Misfit, PatchError
from fluxloom.mesh import box2d, box3d, read_data
from fluxloom.mesh.data.mesh import MeshData
from fluxloom.mesh.generate.boxes import Axis, clustered

if TYPE_CHECKING:
    from fluxloom.fv.geometry.sectors import Sector
    from fluxloom.mesh.generate.cylinder import CylinderChannel

__all__ = ["FlowMeshTable", "by_key", "check_length", "flow_domain", "flow_mesh", "flow_mesh_sizes", "points_estimate"]

_KINDS = {2: ("auto", "quad", "triangle"), 3: ("auto", "hexahedron", "tetra", "prism", "pyramid")}
_CELLS_OF_A_BOX = {"triangle": 2, "tetra": 6, "prism": 2, "pyramid": 6}
_BOX = ("x", "y", "nx", "ny", "kind", "perturb", "stretch_x", "stretch_y", "stretch_z")
_SPAN = ("z", "nz")
_CYLINDER = ("length", "height", "centre", "radius", "n")
_AIRFOIL = ("profile", "around", "outward", "reach", "first")
_SHAPES = {"box": _BOX, "cylinder": _CYLINDER, "airfoil": _AIRFOIL}

Range = Annotated[list[float], Field(min_length=2, max_length=2)]
Count = Annotated[int, Field(ge=1, le=50_000)]
Stretch = Annotated[float, Field(ge=0, le=10)]
Size = Annotated[float, Field(gt=0)]


@cache
def blade_row_table() -> type[StrategyTable]:
    """Return the table ``[mesh.blade_row]``."""
    from fluxloom.mesh.generate.cascade import BladeRow

    class BladeRowTable(strategy_table(BladeRow)):
        """``[mesh.blade_row]``: see `fluxloom.mesh.generate.cascade.BladeRow`, whose names and defaults it has."""

    return BladeRowTable


def gmsh_table() -> Any:
    """Return the tables ``[mesh.gmsh]``."""
    from fluxloom.cases.shared.gmsh_tables import GmshTable

    return GmshTable


class FlowMeshTable(Table):
    """``[mesh]``: a file, a rectangle or a box, a channel with a cylinder across it, or rings round an airfoil.

    Attributes
    ----------
    file
        SU2, Gmsh, VTU, VTKHDF or what meshio reads.
    zone
        Of a file with several meshes, the one to take: number of a zone of SU2, name of a base or zone of CGNS.
    format
        Of a file whose suffix does not tell it: ``"su2"`` ..., or the place of one of your own, ``"module:NAME"``.
    shape
        Of a mesh that is made: ``"box"``; ``"cylinder"``, see `fluxloom.mesh.generate.cylinder`, with the patches xmin,
        xmax, ymin, ymax, cylinder; or ``"airfoil"``, see `fluxloom.mesh.generate.naca`, with the patches airfoil,
        far_field.
    x, y, z
        Ends of the box; z also of the span of a cylinder or an airfoil.
    nx, ny, nz
        Intervals; a mesh with ``nz`` is one in three dimensions. The patches of a box are xmin, xmax, ymin, ymax, and
        zmin, zmax; the two also of a cylinder or an airfoil with a span.
    stretch_x, stretch_y, stretch_z
        Of a box: intervals get smaller towards both ends, places are ``tanh(s (2 t - 1)) / tanh(s)``; 0: all equal.
    kind
        Cells of a box: ``"quad"``, ``"triangle"``; ``"hexahedron"``, ``"tetra"``, ``"prism"``, ``"pyramid"``;
        ``"auto"``: quad or hexahedron.
    perturb
        How far inner nodes of a box are moved at random, as a part of an interval.
    n
        Quads along a quarter of a cylinder.
    length, height, centre, radius
        Of the channel, its lower left corner at the origin, and of the cylinder; by default those of Schäfer and
        Turek.
    profile
        Four digits of an airfoil, its chord from (0, 0) to (1, 0).
    around, outward
        Quads round an airfoil, and rings.
    reach
        Radius of the last ring, in chords.
    first
        Thickness of the first ring over the width of its quads.
    blade_row
        Instead, a passage between two blades: a table, see `fluxloom.mesh.generate.cascade`, with the patches inlet,
        outlet, blade, low, high, and of a ring hub, casing.
    gmsh
        Instead, triangles or tetrahedra by Gmsh: a table, see `fluxloom.mesh.generate.gmsh_mesh`, whose ``shape`` is
        "box", "cylinder", "step" or "body".
    periodic
        Pairs of patches which are one and the same, moved.
    sectors
        Pairs of patches of which one is the other, turned about an axis.
    axis, axis_point
        Direction of the axis of sectors, z in two dimensions, and a point on it, by default the origin.
    renumber
        Cells and nodes get other numbers, such that neighbours have near ones: ``"rcm"`` (reverse Cuthill-McKee) or
        ``"gps"`` (from the ends of a pseudo-diameter). Fields are those of the renumbered mesh, which files have too.
    """

    file: str = ""
    zone: str | int = ""
    format: str = ""
    shape: Literal["box", "cylinder", "airfoil"] = "box"
    x: Range = Field(default=[0.0, 1.0])
    y: Range = Field(default=[0.0, 1.0])
    z: Range = Field(default=[0.0, 1.0])
    nx: Count = 32
    ny: Count = 32
    nz: Annotated[int, Field(ge=0, le=50_000)] = 0
    stretch_x: Stretch = 0.0
    stretch_y: Stretch = 0.0
    stretch_z: Stretch = 0.0
    kind: Literal["auto", "quad", "triangle", "hexahedron", "tetra", "prism", "pyramid"] = "auto"
    perturb: Annotated[float, Field(ge=0, lt=0.5)] = 0.0
    n: Annotated[int, Field(ge=4, le=2000)] = 16
    length: Size = 2.2
    height: Size = 0.41
    centre: Range = Field(default=[0.2, 0.2])
    radius: Size = 0.05
    profile: str = "0012"
    around: Annotated[int, Field(ge=16, le=100_000)] = 128
    outward: Annotated[int, Field(ge=4, le=100_000)] = 64
    reach: Annotated[float, Field(ge=2, le=1e4)] = 30.0
    first: Annotated[float, Field(gt=0, le=10)] = 1.0
    blade_row: Annotated[Any, LateTable(blade_row_table)] = None
    gmsh: Annotated[Any, LateTable(gmsh_table)] = None
    periodic: list[Annotated[list[str], Field(min_length=2, max_length=2)]] = Field(default=[])
    sectors: list[Annotated[list[str], Field(min_length=2, max_length=2)]] = Field(default=[])
    axis: Literal["x", "y", "z"] = "z"
    axis_point: Annotated[list[float], Field(max_length=3)] = Field(default=[])
    renumber: Literal["none", "rcm", "gps"] = "none"

    @property
    def dimension(self) -> int:
        """Of a generated mesh."""
        return 3 if self.nz else 2

    @property
    def turned(self) -> list[Sector]:
        """Pairs of patches that are joined by a rotation."""
        if not self.sectors:
            return []
        from fluxloom.fv.geometry.sectors import Sector

        axis = [float(self.axis == name) for name in "xyz"]
        point = [*self.axis_point, 0.0, 0.0, 0.0][:3]
        return [Sector(first, second, axis, point) for first, second in self.sectors]

    @property
    def channel(self) -> CylinderChannel:
        """The channel with a cylinder."""
        from fluxloom.mesh.generate.cylinder import CylinderChannel

        return CylinderChannel(self.length, self.height, (self.centre[0], self.centre[1]), self.radius)

    @model_validator(mode="after")
    def _consistent(self) -> FlowMeshTable:
        if not self.file and (extra := self.changed(("zone", "format"))):
            raise ValueError(f"{extra[0]} belongs to a mesh from a file: give file, or leave {extra[0]} out")
        if self.file and (extra := self.changed(("shape", *_BOX, *_SPAN, *_CYLINDER, *_AIRFOIL))):
            raise ValueError(f"a mesh from a file has no {extra[0]}")
        own = [name for name in ("blade_row", "gmsh") if getattr(self, name) is not None]
        if own and (extra := self.changed(("file", "shape", *_BOX, *_SPAN, *_CYLINDER, *_AIRFOIL)) + own[1:]):
            raise ValueError(f"a mesh with [mesh.{own[0]}] has no {extra[0]}")
        if not self.sectors and (extra := self.changed(("axis", "axis_point"))):
            raise ValueError(f"{extra[0]} is there but sectors is not: give it, or leave {extra[0]} out")
        others = [key for shape, keys in _SHAPES.items() if shape != self.shape for key in keys]
        if extra := self.changed(others):
            raise ValueError(f'{extra[0]} is none of shape = "{self.shape}"')
        if not self.nz and (extra := self.changed(("z", "stretch_z"))):
            raise ValueError(
                f"{extra[0]} is there but nz is not: give nz, the intervals along z, or leave {extra[0]} out"
            )
        if any(low >= high for low, high in (self.x, self.y, self.z)):
            raise ValueError("x, y and z are the lower and the upper end")
        allowed = _KINDS[self.dimension]
        if self.shape == "box" and self.kind not in allowed:
            with_nz = "with nz" if self.nz else "without nz"
            raise ValueError(f'kind = "{self.kind}" is none of a mesh {with_nz} (allowed: {", ".join(allowed)})')
        return self


def flow_mesh_sizes(table: FlowMeshTable) -> tuple[int, int, int]:
    """Return the numbers of cells, nodes and dimensions; about those of Gmsh, exact ones of others.

    A mesh from a file is read for it; none is made.
    """
    if table.file:
        data = read_data(table.file, zone=table.zone, format=table.format or None)
        return data.n_cells, data.n_points, data.dimension
    if table.blade_row is not None:
        from fluxloom.mesh.generate.cascade import blade_row_sizes

        return blade_row_sizes(table.blade_row.value)
    if table.gmsh is not None:
        with _explained("mesh.gmsh"):
            from fluxloom.mesh.generate.gmsh_mesh import gmsh_sizes

            return gmsh_sizes(table.gmsh.value)
    if table.shape == "cylinder":
        with _explained():
            from fluxloom.mesh.generate.cylinder import cylinder_sizes

            cells, points = cylinder_sizes(table.n, table.channel)
        return cells * max(1, table.nz), points * (table.nz + 1), table.dimension
    if table.shape == "airfoil":
        rings = table.around * table.outward
        return rings * max(1, table.nz), (rings + table.around) * (table.nz + 1), table.dimension
    boxes = table.nx * table.ny * max(1, table.nz)
    points = (table.nx + 1) * (table.ny + 1) * (table.nz + 1)
    points += boxes if table.kind == "pyramid" else 0
    return boxes * _CELLS_OF_A_BOX.get(table.kind, 1), points, table.dimension


def points_estimate(table: FlowMeshTable, scalars: int = 1, vectors: int = 0) -> Estimate:
    """Return the size of a case with so many fields at points, with operators and loops of 4 or 8 KB a point."""
    cells, points, d = flow_mesh_sizes(table)
    return Estimate(
        cells=cells,
        memory=points * {2: 4_000, 3: 8_000}[d],
        output=points * (8 * (scalars + d * vectors) + 24) + cells * (8 * (d + 1) + 9),
        rows=(("cells", f"{cells:,} in {d} dimensions"), ("nodes", f"{points:,}")),
    )


def flow_mesh(table: FlowMeshTable) -> MeshData:
    """Return the mesh that a table describes, renumbered where it says so.

    Raises
    ------
    CaseError
        For a cylinder without room, an airfoil that no rings fit, or what Gmsh cannot mesh.
    DeviceUnavailable
        Where Gmsh is needed and not installed.
    MeshError
        For a file that cannot be read, or is not a mesh that a solver can take.
    """
    kind = table.file or (table.shape if table.gmsh is None and table.blade_row is None else "")
    with activity("making the mesh", kind):
        data = _plain_mesh(table)
    if table.renumber == "none":
        return data
    from fluxloom.mesh.ranks.renumber import renumber

    return renumber(data, table.renumber).mesh


def _plain_mesh(table: FlowMeshTable) -> MeshData:
    """Return the mesh in its own order."""
    if table.file:
        data = read_data(table.file, zone=table.zone, format=table.format or None)
        with activity("checking the mesh", f"{data.n_cells:,} cells"):
            from fluxloom.mesh.quality.check import check as check_mesh

            check_mesh(data)
        return data
    if table.blade_row is not None:
        from fluxloom.mesh.generate.cascade import blade_row_mesh

        return blade_row_mesh(table.blade_row.value)
    if table.gmsh is not None:
        with _explained("mesh.gmsh"):
            from fluxloom.mesh.generate.gmsh_mesh import gmsh_mesh

            return gmsh_mesh(table.gmsh.value)
    if table.shape != "box":
        with _explained():
            if table.shape == "cylinder":
                from fluxloom.mesh.generate.cylinder import cylinder_channel

                plane = cylinder_channel(table.n, table.channel)
            else:
                from fluxloom.mesh.generate.naca import naca_mesh

                plane = naca_mesh(table.profile, table.around, table.outward, table.reach, table.first)
        if not table.nz:
            return plane
        from fluxloom.mesh.generate.extrude import extrude

        return extrude(plane, np.linspace(table.z[0], table.z[1], table.nz + 1))
    d = table.dimension
    spans = (table.x, table.y, table.z)[:d]
    lengths, origin = [high - low for low, high in spans], [low for low, _ in spans]
    axes = [_axis(stretch) for stretch in (table.stretch_x, table.stretch_y, table.stretch_z)[:d]]
    if d == 2:
        kind = "quad" if table.kind == "auto" else table.kind
        return box2d(table.nx, table.ny, lengths, kind, origin=origin, axes=axes, perturb=table.perturb)
    kind = "hexahedron" if table.kind == "auto" else table.kind
    return box3d(table.nx, table.ny, table.nz, lengths, kind, origin=origin, axes=axes, perturb=table.perturb)


def _axis(stretch: float) -> Axis:
    return clustered(stretch) if stretch else None


@contextmanager
def _explained(key: str = "mesh") -> Iterator[None]:
    """Make errors of the mesh ones of a key of the case file."""
    try:
        yield
    except MeshError as error:
        raise CaseError(f"{key}: {error}") from None


def flow_domain(table: FlowMeshTable, partition: PartitionTable, shares: Sequence[float] | None = None) -> Domain:
    """Return the domain of a case; ``shares`` of the ranks are by default what ``[partition]`` gives."""
    return Domain(
        lambda: flow_mesh(table), table.periodic, table.turned, partition.method, shares or partition.given
    )  # fmt: skip


@contextmanager
def by_key(types: str = "", other: str = "", of_mesh: str = "", **keys: str) -> Iterator[None]:
    """Make errors of what a flow is given ones of the case file.

    Parameters
    ----------
    types
        Of a boundary, in words, for a patch without one.
    other
        Key of errors that begin with none of the parameters; without it they stay as they are.
    of_mesh
        That of such errors of the mesh, where it is another one.
    **keys
        Parameter to key, of errors that begin with the parameter; those of patches are known.

    Raises
    ------
    CaseError
        In place of `MeshError` and `SolverError`.
    """
    known = {
        "boundaries": "boundary", "mesh": "mesh", "periodic": "mesh.periodic", "sectors": "mesh.sectors", **keys
    }  # fmt: skip
    try:
        yield
    except PatchError as error:
        raise CaseError(_of_patch(error.misfit, known, types)) from None
    except (MeshError, SolverError) as error:
        text = str(error)
        begin = text.partition(":")[0].partition(".")[0]
        if begin in known:
            raise CaseError(known[begin] + text[len(begin) :]) from None
        if not (key := (of_mesh or other) if isinstance(error, MeshError) else other):
            raise
        raise CaseError(f"{key}: {text}") from None


def _of_patch(found: Misfit, keys: dict[str, str], types: str) -> str:
    """Return what is wrong with a patch, and which table to write."""
    name, key = found.patch, keys[found.parameter]
    if found.joined:
        return f"{key}.{name}: {keys[found.joined]} names this patch too; leave out one of them"
    if not found.lacking:
        return f"{key}: {found.text}"
    joins = ", or name it in mesh.periodic" if found.joins else ""
    return f"{key}: the patch {name!r} has none; add a table [{key}.{name}] with a type ({types}){joins}"


def check_length(key: str, given: int, d: int) -> None:
    """Raise `CaseError` unless a key has a number a dimension, or none."""
    if given not in (0, d):
        raise CaseError(f"{key}: {d} numbers are wanted, as the mesh has {d} dimensions, not {given}")
