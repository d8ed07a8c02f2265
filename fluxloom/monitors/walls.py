r"""What a flow does along walls: pressure, shear, heat, y+, and where it separates and comes back.

.. math:: C_p = (p - p_\infty) / q, \quad C_f = |\tau| / q, \quad Nu = \frac{-\dot q \, L}{k \, (T_w - T_\infty)}

with the shear stress :math:`\tau` of the flow on the wall, the heat :math:`\dot q` that flows into it, and the
conductivity ``k``. Along lines, the patches of a plane mesh and cuts in space, the flow separates where the shear on
both sides points at a place, and attaches where it points away from it: at the stagnation point of a body, and behind
a bubble. Where a wall moves, shear of zero is no separation (Moore, Rott and Sears: it is inside the flow), and nothing
is told.

Lines are the patches of a plane mesh, and those in which planes cut patches in three dimensions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError, did_you_mean
from fluxloom.mesh.data.mesh import MeshData
from fluxloom.mesh.data.ragged import Ragged
from fluxloom.mesh.geometry.metrics import face_geometry
from fluxloom.monitors.forces import Reference
from fluxloom.run.flow import Flow
from fluxloom.run.measures import Surface
from fluxloom.run.monitor import Monitor, Watched
from fluxloom.run.results.files import write_table

__all__ = ["HeatReference", "SurfaceCut", "Walls", "check_cut", "cut_patches", "neighbours_in_plane", "sign_changes"]

Array = npt.NDArray[np.float64]
Columns = Mapping[str, Array]

_TEMPERATURES = ("t", "temperature")
"""Names of a scalar that is one."""
_MOST = 6
"""Places that the summary names."""


@dataclass(frozen=True)
class HeatReference:
    """What a Nusselt number refers to.

    Attributes
    ----------
    length
        ``L``, m.
    difference
        Temperature of the wall less that of the fluid.
    scalar
        That is the temperature, of a flow that carries scalars; empty: the gas has one, or the flow carries one scalar
        alone, which is called ``T`` or ``temperature``.

    Raises
    ------
    SolverError
        If the length is not positive, or there is no difference.
    """

    length: float
    difference: float
    scalar: str = ""

    def __post_init__(self) -> None:
        if not (np.isfinite(self.length) and self.length > 0.0):
            raise SolverError(f"Nusselt number: length: a positive number is wanted, not {self.length!r}")
        if not np.isfinite(self.difference) or not self.difference:
            raise SolverError(f"Nusselt number: difference: a number that is not 0 is wanted, not {self.difference!r}")

    def of(self, columns: Columns) -> Array:
        """Return the Nusselt number of faces; raise `SolverError` where the heat that passes them is not known."""
        known = [name.removesuffix("_diffusivity") for name in columns if name.endswith("_diffusivity")]
        scalar, listed = self.scalar, f"scalars: {', '.join(known) or 'none'}"
        if not scalar and "heat_flux" not in columns:
            scalar = known[0] if len(known) == 1 and known[0].lower() in _TEMPERATURES else ""
            if not scalar:
                raise SolverError(
                    f'Nusselt number: this flow has no heat of its own: give scalar = "NAME", the one that is the '
                    f"temperature ({listed})"
                )
        if scalar and scalar not in known:
            raise SolverError(f"scalar: there is no scalar {scalar!r}{did_you_mean(scalar, known)} ({listed})")
        flux, conductivity = (f"{scalar}_flux", f"{scalar}_diffusivity") if scalar else ("heat_flux", "conductivity")
        return -columns[flux] * self.length / (columns[conductivity] * self.difference)


class Walls(Monitor):
    """Values along patches, in tables at the end of the run: ``wall_NAME.csv``.

    Columns are place, normal into the wall and area of each face; ``p``, ``tau_x`` ..., ``tau``, ``y_plus``, ``T``,
    ``heat_flux`` and what there is of scalars; with a reference ``cp``, ``cf_x`` ..., ``cf``; and ``nusselt``.

    Parameters
    ----------
    name
        Of the file.
    patches
        By default the one of that name.
    reference
        For coefficients.
    pressure
        ``p_inf`` of them.
    axis, cuts
        In three dimensions: planes across an axis, ``"x"``, ``"y"`` or ``"z"``, at some places; a table each.
    along
        Direction of the stream; by default that of drag, or x.
    heat
        For a Nusselt number.
    tables, cut, picture
        Instead of ``wall_NAME``: names of files and the patches of each, how those of cuts begin, and the picture.

    Attributes
    ----------
    columns_of
        Name of a file to its columns, on rank 0, after `finish`.
    separation, reattachment : (n, d)
        Where, on rank 0, after `finish`.
    """

    _flow: Flow

    def __init__(
        self, name: str, patches: Sequence[str] = (), reference: Reference | None = None, *, pressure: float = 0.0,
        axis: str = "y", cuts: Sequence[float] = (), along: Sequence[float] = (), heat: HeatReference | None = None,
        tables: Mapping[str, Sequence[str]] | None = None, cut: str = "", picture: str = "",
    ) -> None:  # fmt: skip
        self.name, self.called, self.reference, self.pressure = f"walls.{name}", name, reference, pressure
        self.patches = (patches,) if isinstance(patches, str) else tuple(patches) or (name,)
        self.axis, self.cuts, self.along, self.heat = axis, tuple(cuts), tuple(along), heat
        self._tables = {f"wall_{name}": self.patches} if tables is None else dict(tables)
        self._cut, self._picture = cut or f"wall_{name}", picture or f"wall_{name}.png"
        self._surfaces: dict[str, Surface] = {}
        self._whole: Surface | None = None
        self._run: Watched | None = None
        self._stream = np.zeros(0)
        self._forget()

    def _forget(self) -> None:
        self.columns_of: dict[str, Columns] = {}
        self.separation, self.reattachment = (np.zeros((0, max(self._stream.size, 2))) for _ in range(2))
        self._curves: dict[str, tuple[Array, Array]] = {}
        self._moving, self._middle = False, np.zeros(0)
        self._rows: list[tuple[str, str]] = []

    def attach(self, run: Watched) -> None:
        """Find the patches.

        Raises
        ------
        SolverError
            If there is no such patch, the flow has no surfaces or these no faces, or a mesh in two dimensions is to be
            cut; on one rank also if a cut misses the patches.
        """
        flow = self._flow = run.flow
        if self.cuts and flow.dimension != 3:
            raise SolverError("cuts: the mesh has 2 dimensions: its patches are lines already; leave cuts out")
        if self.axis not in ("x", "y", "z"):
            raise SolverError(f"axis: x, y or z is wanted, not {self.axis!r}")
        way = self.along or (self.reference.drag if self.reference is not None else Reference.drag)
        self._stream = Reference(1.0, drag=way, pitch=(1.0, 0.0, 0.0)).directions(flow.dimension)[0]
        self._run = run
        self._surfaces = {stem: flow.surface(patches) for stem, patches in self._tables.items()}
        self._whole = next(iter(self._surfaces.values())) if len(self._surfaces) == 1 else None
        if self._whole is None and self.cuts:
            self._whole = flow.surface(self.patches)
        if self.cuts and flow.context.comm.size == 1:  # of several ranks the whole mesh is made at the end alone
            for station in self.cuts:
                check_cut(run.mesh(), self.patches, "xyz".index(self.axis), station)
        found = next(iter(self._surfaces.values())).faces()  # told now, not at the end, where a flow has no faces
        self._check(found)

    def _check(self, columns: Columns) -> None:
        """Raise `SolverError` on every rank where heat or pressure are not known, which rank 0 finds. Collective."""
        problem = ""
        if columns and self.reference is not None and "p" not in columns:
            problem = "speed: there is no pressure, and so no coefficients: leave it out"
        try:
            if columns and self.heat is not None:
                self.heat.of(columns)
        except SolverError as error:
            problem = str(error)
        if problem := self._flow.context.comm.broadcast(problem):
            raise SolverError(problem)

    # ------------------------------------------------------------------------------------------- results
    def finish(self) -> None:
        """Write the tables, and look for places of separation."""
        self._forget()
        for stem, surface in self._surfaces.items():
            columns = self._completed(surface.faces())
            self.folder.write(f"{stem}.csv", lambda path, columns=columns: write_table(path, columns))
            if columns:
                self.columns_of[stem] = columns
                self._note(stem, columns)
        if self.cuts and self._whole is not None:
            self._write_cuts(self._completed(self._whole.faces()))
        if self.columns_of:
            self._rows = [*self._means(), *self._words("separation"), *self._words("reattachment")]
            if self._moving:
                still = "not told where the wall moves: the flow leaves it away from it, not where the shear is 0"
                self._rows.append((f"{self.called}, moving wall: separation", still))

    def _completed(self, found: Columns) -> Columns:
        """Return the columns of faces with coefficients."""
        columns = dict(found)
        if not columns:
            return columns
        axes = [name for name in "xyz" if f"tau_{name}" in columns]
        if axes:
            columns["tau"] = np.sqrt(sum(columns[f"tau_{name}"] ** 2 for name in axes))
        if self.reference is not None:
            q = self.reference.q
            columns["cp"] = (columns["p"] - self.pressure) / q
            columns |= {f"cf_{name}": columns[f"tau_{name}"] / q for name in axes}
            if axes:
                columns["cf"] = columns["tau"] / q
        if self.heat is not None:
            columns["nusselt"] = self.heat.of(columns)
        return columns

    def _note(self, stem: str, columns: Columns) -> None:
        """Look for places of separation along patches of a plane mesh, and keep a curve."""
        assert self._run is not None
        if self._flow.dimension == 3:
            return
        self._keep(", ".join(self._tables[stem]), columns)
        if "tau_x" in columns:
            places = np.stack([columns[name] for name in "xy"], axis=1)
            pairs = neighbours_in_plane(self._run.mesh(), self._tables[stem], places)
            self._cross(places, columns, pairs)
            closed = len(self._tables) == 1 and "nx" in columns and (np.bincount(pairs.ravel()) == 2).all()
            middle = columns["area"] @ places / columns["area"].sum()
            if closed and np.einsum("nd,nd->", places - middle, np.stack([columns["nx"], columns["ny"]], axis=1)) < 0.0:
                self._middle = middle  # of a body: its normals point at it

    def _keep(self, name: str, columns: Columns) -> None:
        if "cp" in columns:
            self._curves[name] = columns["x"], columns["cp"]

    def _write_cuts(self, columns: Columns) -> None:
        """Write a table for each cut."""
        if not columns:
            return
        assert self._run is not None
        centres, axis = np.stack([columns[name] for name in "xyz"], axis=1), "xyz".index(self.axis)
        for station in self.cuts:
            cut = cut_patches(self._run.mesh(), self.patches, centres, axis, station)
            found = {name: values[cut.face] for name, values in columns.items()}
            found |= {name: cut.places[:, k] for k, name in enumerate("xyz")}
            stem = f"{self._cut}_{self.axis}_{station:g}"
            self.columns_of[stem] = found
            self.folder.write(f"{stem}.csv", lambda path, found=found: write_table(path, found))
            self._keep(f"{self.axis} = {station:g}", found)
            if "tau_x" in found:
                self._cross(cut.places, found, cut.pairs)

    def _cross(self, places: Array, columns: Columns, pairs: npt.NDArray[np.int64]) -> None:
        """Keep where the shear on both sides points at a place of a wall at rest, or away from it."""
        shear = np.stack([columns[f"tau_{name}"] for name in "xyz"[: places.shape[1]]], axis=1)
        if "moves" in columns:
            self._moving = True
            pairs = pairs[(columns["moves"][pairs] == 0.0).all(axis=1)]
        at, away = sign_changes(places, shear, pairs, self._stream)
        self.reattachment = np.concatenate([self.reattachment.reshape(-1, at.shape[1]), at[away]])
        self.separation = np.concatenate([self.separation.reshape(-1, at.shape[1]), at[~away]])

    def _means(self) -> Sequence[tuple[str, str]]:
        """Return rows of y+ and the Nusselt number: means over the area of all tables but cuts."""
        rows, tables = [], [self.columns_of[stem] for stem in self._tables if stem in self.columns_of]
        area = np.concatenate([table["area"] for table in tables])
        for column, title in (("y_plus", "y+"), ("nusselt", "Nusselt number")):
            values = [table[column] for table in tables if column in table]
            if not values:
                continue
            whole = np.concatenate(values)
            good = np.isfinite(whole)
            text = "not known" if not good.any() else (
                f"mean {whole[good] @ area[good] / area[good].sum():.5g}, {whole[good].min():.5g} to "
                f"{whole[good].max():.5g}"
            )  # fmt: skip
            rows.append((f"{self.called}, {title}", text))
        return rows

    def _words(self, what: str) -> Sequence[tuple[str, str]]:
        """Return the row of places of separation or reattachment; none where there is no such place."""
        places: Array = getattr(self, what)
        if not len(places):
            return ()
        text = ", ".join(
            f"({', '.join(f'{x:.5g}' for x in place)}){self._angle(np.array(place))}"
            for place in places[:_MOST].tolist()
        )
        more = len(places) - _MOST
        return ((f"{self.called}, {what}", text + (f" and {more} more" if more > 0 else "")),)

    def _angle(self, place: Array) -> str:
        """Return in words the angle round the middle of a body of the plane, from where the stream comes."""
        if not self._middle.size:
            return ""
        arm = place - self._middle
        return f" at {np.degrees(np.arccos(np.clip(-arm @ self._stream / np.linalg.norm(arm), -1.0, 1.0))):.1f} deg"

    def summary(self) -> Sequence[tuple[str, str]]:
        """Return y+, the Nusselt number, and where the flow separates and reattaches."""
        return tuple(self._rows)

    def draw(self, name: str) -> None:
        """Draw the pressure coefficients, upwards where they are negative."""
        if not self._curves:
            return
        from fluxloom.run.pictures import draw_curves

        names = "x", "pressure coefficient"
        self.folder.write(self._picture, lambda path: draw_curves(path, self._curves, names, name, upside_down=True))


Index = npt.NDArray[np.int64]

_NOTHING = 1e-9
"""Of the largest value: below it there is none."""
_SAME = 1e-6
"""How far the centre of a face may be from its partner, as a part of the square root of its area, or of its length."""


@dataclass(frozen=True, eq=False)
class SurfaceCut:
    """Where a plane cuts the faces of patches in three dimensions.

    Attributes
    ----------
    places : (m, 3)
        Middles of the lines in which it cuts them.
    face : (m,)
        Which faces these are, in the order of the values.
    pairs : (k, 2)
        Rows whose lines have an end in common.
    """

    places: Array
    face: Index
    pairs: Index


def cut_patches(mesh: MeshData, patches: Sequence[str], centres: Array, axis: int, station: float) -> SurfaceCut:
    """Return where the plane ``x[axis] = station`` cuts the faces of some patches.

    Parameters
    ----------
    mesh
        In three dimensions.
    patches
        Names.
    centres : (n, 3)
        Of the faces, in the order of the values, as `fluxloom.run.measures.Surface.faces` has them.
    axis, station
        0, 1 or 2, and where.

    Raises
    ------
    SolverError
        In two dimensions, if the plane misses all faces, or the centres are not those of the faces.
    """
    check_cut(mesh, patches, axis, station)
    from fluxloom.mesh.ranks.wall_distance import wall_faces

    faces, nodes = wall_faces(mesh, patches)
    partner = _partners(faces, nodes, centres)
    owner = np.repeat(np.arange(len(faces)), faces.counts)
    after = np.arange(1, owner.size + 1)
    after[faces.offsets[1:] - 1] = faces.offsets[:-1]
    here, there = nodes[faces.indices], nodes[faces.indices[after]]
    below = here[:, axis] < station
    crossed = np.flatnonzero(below != (there[:, axis] < station))
    part = (station - here[crossed, axis]) / (there[crossed, axis] - here[crossed, axis])
    points = here[crossed] + part[:, None] * (there[crossed] - here[crossed])
    cut, first, counts = np.unique(owner[crossed], return_index=True, return_counts=True)
    total = np.add.reduceat(points, first, axis=0)
    ends = np.sort(np.stack([faces.indices[crossed], faces.indices[after[crossed]]], axis=1), axis=1)
    edges = np.unique(ends, axis=0, return_inverse=True)[1].reshape(-1)
    rows = np.searchsorted(cut, owner[crossed])
    return SurfaceCut(total / counts[:, None], partner[cut], _sharing(edges, rows))


def check_cut(mesh: MeshData, patches: Sequence[str], axis: int, station: float) -> None:
    """Raise `SolverError` in two dimensions, or if the plane ``x[axis] = station`` misses all faces of the patches."""
    if mesh.dimension != 3 or axis not in range(3):
        raise SolverError(f"a cut: an axis of three dimensions is wanted, not {axis!r} in {mesh.dimension}")
    from fluxloom.mesh.ranks.wall_distance import wall_faces

    faces, nodes = wall_faces(mesh, patches)
    below = nodes[faces.indices, axis] < station
    if below.all() or not below.any():
        low, high = nodes[:, axis].min(), nodes[:, axis].max()
        raise SolverError(
            f"a cut at {'xyz'[axis]} = {station:g} misses {', '.join(patches)}: {low:.6g} to {high:.6g} there"
        )


def neighbours_in_plane(mesh: MeshData, patches: Sequence[str], centres: Array) -> Index:
    """Return pairs of rows of values along patches of a plane mesh that are next to each other, ``(k, 2)``.

    Parameters
    ----------
    mesh
        In two dimensions.
    patches
        Names.
    centres : (n, 2)
        Of the faces, in the order of the values; or of their nodes, where values are at these.

    Raises
    ------
    SolverError
        If the centres are neither those of the faces nor their nodes.
    """
    from scipy.spatial import KDTree

    from fluxloom.mesh.ranks.wall_distance import wall_faces

    faces, nodes = wall_faces(mesh, patches)
    two = faces.indices.reshape(-1, 2)
    if len(centres) != len(faces) or not _close(faces, nodes, centres):
        used, place = np.unique(two, return_inverse=True)
        away, row = KDTree(centres).query(nodes[used])
        length = np.linalg.norm(nodes[two[:, 1]] - nodes[two[:, 0]], axis=1).min()
        if len(centres) != used.size or (away > _SAME * length).any():
            raise SolverError("the values along a surface are neither those of its faces nor those of its nodes")
        return np.asarray(row)[place.reshape(-1, 2)].astype(np.int64)
    partner = _partners(faces, nodes, centres)
    return _sharing(two.ravel().astype(np.int64), np.repeat(partner, 2))


def _nearest(faces: Ragged, nodes: Array, centres: Array) -> tuple[Array, Index, Array]:
    """Return of each face how far the nearest centre is, which one that is, and the size of the face."""
    from scipy.spatial import KDTree

    areas, middles = face_geometry(nodes, faces)
    distance, partner = KDTree(centres).query(middles)
    size = np.linalg.norm(areas, axis=1) ** (1.0 / (nodes.shape[1] - 1))
    return np.asarray(distance), np.asarray(partner).astype(np.int64), size


def _close(faces: Ragged, nodes: Array, centres: Array) -> bool:
    distance, _, size = _nearest(faces, nodes, centres)
    return not (distance > _SAME * size).any()


def _partners(faces: Ragged, nodes: Array, centres: Array) -> Index:
    """Return which centre is that of each face; raise `SolverError` where there is none."""
    distance, partner, size = _nearest(faces, nodes, centres)
    if len(centres) != len(faces) or (distance > _SAME * size).any():
        raise SolverError("a cut: the values are not those of the faces of these patches")
    return partner


def _sharing(ends: Index, rows: Index) -> Index:
    """Return pairs of rows that have an end in common, each once; of ends of more than two rows the neighbours."""
    order = np.argsort(ends, kind="stable")
    ends, rows = ends[order], rows[order]
    same = np.flatnonzero(ends[1:] == ends[:-1])
    return np.stack([rows[same], rows[same + 1]], axis=1)


def sign_changes(
    places: Array, shear: Array, pairs: Index, along: Array
) -> tuple[Array, npt.NDArray[np.bool_]]:  # fmt: skip
    """Return where the shear along lines points at the same place from both sides, or away from it.

    Ordered along a direction; and whether it points away. Between neighbours the shear along the line from one to the
    other is linear. A row where it is 0 is such a place, if it points there, or away, in both beside it. What points
    nowhere, as on a wall across the shear, is none.

    Parameters
    ----------
    places : (n, d)
        Of the values.
    shear : (n, d)
        Where it is not finite there is no place.
    pairs : (k, 2)
        Rows that are next to each other.
    along : (d,)
        Direction.
    """
    size = np.linalg.norm(shear, axis=1)
    most = size[np.isfinite(size)].max(initial=0.0)
    both = np.concatenate([pairs, pairs[:, ::-1]])
    ways = places[both[:, 1]] - places[both[:, 0]]
    toward = np.einsum("kd,kd->k", shear[both[:, 0]], ways) / np.linalg.norm(ways, axis=1)
    toward[~(np.abs(toward) > _NOTHING * most)] = 0.0
    a, b = toward[: len(pairs)], toward[len(pairs) :]
    found = np.flatnonzero(a * b > 0.0)
    first, last = pairs[found].T
    at = places[first] + (a / np.where(a + b == 0.0, 1.0, a + b))[found, None] * (places[last] - places[first])
    least, highest = np.zeros((2, len(places)))
    np.minimum.at(least, both[:, 1], toward)
    np.maximum.at(highest, both[:, 1], toward)
    still = np.flatnonzero((np.bincount(both[:, 1], toward == 0.0, len(places)) == 0) & (size <= _NOTHING * most))
    still = still[(np.bincount(both[:, 1], minlength=len(places)) > 1)[still] & (least * highest == 0.0)[still]]
    at, away = np.concatenate([at, places[still]]), np.concatenate([a[found] < 0.0, highest[still] == 0.0])
    order = np.argsort(at @ along, kind="stable")
    return at[order], away[order]
