"""Random meshes through every solver of them: ``fluxloom lab meshes``.

A trial makes a mesh of some kind of cells, perturbed, stretched, refined, dual or extruded, tiny or huge, and lets a
flow run for ten steps on it. In a closed box sums are conserved, rest stays at rest, and a mesh that is turned,
mirrored, enlarged or numbered anew gives the same flow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import numpy as np
import numpy.typing as npt

import fluxloom as fl
from fluxloom.fe.edges.point_mesh import point_mesh
from fluxloom.fv.compressible.boundary import SlipWall
from fluxloom.fv.compressible.gas import Gas
from fluxloom.fv.geometry.control_volumes import control_volumes
from fluxloom.fv.gradients.limiters import Venkatakrishnan
from fluxloom.fv.incompressible.boundary import NoSlip
from fluxloom.fv.shallow.scheme import ShallowScheme
from fluxloom.linalg import Stop
from fluxloom.mesh import bind, box2d, box3d, check, refine
from fluxloom.mesh.data.mesh import MeshData, PatchFaces
from fluxloom.mesh.generate.extrude import extrude
from fluxloom.mesh.geometry.connectivity import connectivity
from fluxloom.mesh.geometry.dual import dual
from fluxloom.mesh.geometry.metrics import cell_measures, geometry
from fluxloom.mesh.quality.orient import orient
from fluxloom.solvers.compressible.flow import CompressibleFlow
from fluxloom.solvers.compressible.scheme import CompressibleScheme
from fluxloom.solvers.edges.flow import EdgeFlow
from fluxloom.solvers.incompressible.flow import Incompressible
from fluxloom.solvers.shallow.flow import ShallowWater
from fluxloom_lab.attack.frame import Attack, AttackOptions, Attacks, Trial
from fluxloom_lab.attack.kernels import KernelOptions, missing_device
from fluxloom_lab.problems.small.moved_meshes import turn

__all__ = ["Change", "meshes", "random_mesh"]

Array = npt.NDArray[np.float64]

STEPS = 10
PLANE, SOLID = ("triangle", "quad", "mixed", "dual", "refined"), (
    "tetra", "pyramid", "prism", "hexahedron", "extruded", "dual", "refined",
)  # fmt: skip
_NU = 0.02
"""Viscosity, for a box of the size 1 and a speed of 1."""

SIZES = (1.0, 1.0, 1e-6, 1e-3, 1e3, 1e6)


# ------------------------------------------------------------------------------------------- meshes


def random_mesh(pick: Random, dimension: int, kinds: tuple[str, ...]) -> tuple[str, MeshData]:
    """Return the name of a kind of cells, and a small mesh of it that `fluxloom.mesh.check` takes.

    Parameters
    ----------
    pick
        The generator.
    dimension
        2 or 3.
    kinds
        Those that are allowed.
    """
    kind = pick.choice(kinds)
    counts = [pick.randint(2, 6 if dimension == 2 else 3) for _ in range(dimension)]
    lengths = [pick.choice((1.0, pick.uniform(0.3, 3.0), 0.05)) if pick.random() < 0.5 else 1.0 for _ in counts]
    perturb, seed = pick.choice((0.0, 0.1, 0.2, 0.25)), pick.randrange(1000)
    for part in (perturb, 0.1, 0.0):
        mesh = _box(kind, counts, lengths, part, seed)
        try:
            check(mesh)
        except fl.FluxloomError:  # points were moved too far
            continue
        return kind, mesh
    raise AssertionError(f"{kind} {counts} {lengths}: a box that is no mesh")


def _box(kind: str, counts: list[int], lengths: list[float], perturb: float, seed: int) -> MeshData:
    more: dict[str, Any] = {"perturb": perturb, "seed": seed}
    if len(counts) == 2:
        match kind:
            case "mixed":
                return _mixed(box2d(counts[0], counts[1], lengths, **more))
            case "dual":
                return dual(box2d(counts[0], counts[1], lengths, "triangle", **more))
            case "refined":
                return refine(_mixed(box2d(2, 2, lengths, **more)))
        return box2d(counts[0], counts[1], lengths, kind, **more)
    match kind:
        case "extruded":
            plane = _mixed(box2d(counts[0], counts[1], lengths[:2], **more))
            return extrude(plane, np.linspace(0.0, lengths[2], counts[2] + 1) ** 1.2)
        case "dual":
            return dual(box3d(counts[0], counts[1], counts[2], lengths, "tetra", **more))
        case "refined":
            return refine(box3d(1, 2, 1, lengths, ("tetra", "prism", "hexahedron", "pyramid")[seed % 4]))
    return box3d(counts[0], counts[1], counts[2], lengths, kind, **more)


def _mixed(mesh: MeshData) -> MeshData:
    """Return quads of which every other one is two triangles."""
    block = mesh.cells["quad"]
    halves = np.concatenate([block[1::2][:, [0, 1, 2]], block[1::2][:, [0, 2, 3]]])
    return replace(mesh, cells={"quad": block[::2], "triangle": halves})


@dataclass(frozen=True)
class Change:
    """What makes another mesh of one, in which the same flow runs.

    Attributes
    ----------
    matrix : (d, d)
        Turns, or mirrors.
    size
        By which it is enlarged afterwards.
    seed
        Of the new numbers of points and cells; -1: they stay.
    """

    matrix: Array
    size: float = 1.0
    seed: int = -1

    def __call__(self, mesh: MeshData) -> tuple[MeshData, npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return the other mesh, and which of the first its cells and points were."""
        points = self.size * (mesh.points @ self.matrix.T)
        cells, nodes = np.arange(mesh.n_cells), np.arange(mesh.n_points)
        if self.seed < 0 or mesh.polyhedra is not None:
            return orient(mesh.with_points(points))[0], cells, nodes
        rng = np.random.default_rng(self.seed)
        nodes = rng.permutation(mesh.n_points)
        number = np.argsort(nodes).astype(np.int32)
        blocks, parts = {}, []
        for kind, numbers in mesh.cell_ranges.items():
            order = rng.permutation(len(numbers))
            blocks[kind] = number[mesh.cells[kind][order]]
            parts.append(numbers.start + order)
        patches = {
            name: PatchFaces({kind: number[block] for kind, block in faces.blocks.items()})
            for name, faces in mesh.patches.items()
        }
        return orient(MeshData(points[nodes], blocks, patches))[0], np.concatenate(parts), nodes


def _change(pick: Random, dimension: int) -> Change:
    matrix = turn(dimension, pick.uniform(0.0, 360.0))
    if dimension == 3:
        matrix = matrix @ np.roll(np.eye(3), pick.randrange(3), axis=0)
    if pick.random() < 0.5:
        matrix = matrix @ np.diag([1.0] * (dimension - 1) + [-1.0])
    return Change(matrix, pick.choice(SIZES), pick.choice((-1, pick.randrange(1000))))


# ------------------------------------------------------------------------------------------- flows


def _wave(places: Array) -> Array:
    """Return a smooth field about 1, ``(n,)``."""
    d = places.shape[1]
    return 1.0 + 0.3 * np.sin(2.0 * places @ np.array([1.0, 1.7, 0.6])[:d] + 0.3)


def _velocity(places: Array) -> Array:
    """Return a smooth velocity, ``(n, d)``."""
    d = places.shape[1]
    return 0.2 * np.stack([np.cos(places @ np.roll([1.3, -0.7, 0.9][:d], k) + k) for k in range(d)], axis=1)


class _Gas:
    """Compressible flow in a closed box."""

    at_points = False

    def __init__(self, context: fl.Context, mesh: MeshData, size: float) -> None:
        self.volumes = control_volumes(mesh)
        walls = dict.fromkeys(self.volumes.patches, SlipWall())
        scheme = CompressibleScheme(limiter=Venkatakrishnan(smoothness=1.0))
        self.flow = CompressibleFlow(context, self.volumes, walls, Gas(constant=1.0), scheme)
        self.size = size

    def start(self, change: Change, still: bool) -> None:
        """Set the state."""
        def values(places: Array) -> Array:
            first = (places / change.size) @ change.matrix
            d = places.shape[1]
            found = np.ones((len(places), d + 2))
            found[:, 1:-1] = 0.0
            if not still:
                found[:, 0], found[:, -1] = _wave(first), 2.0 * _wave(1.3 * first + 0.2)
                found[:, 1:-1] = _velocity(first) @ change.matrix.T
            return found

        self.flow.start(values)

    def run(self, lengths: list[float]) -> list[float]:
        """Make steps, of at most these lengths times the size, and return their lengths."""
        return [self.flow.advance(length * self.size) / self.size for length in lengths]

    def totals(self) -> dict[str, tuple[float, float]]:
        """Return what is conserved, each with a scale."""
        found = self.flow.totals()
        return {"mass": (found[0], found[0]), "energy": (found[-1], found[-1])}

    def motion(self) -> float:
        """Return the largest speed."""
        return float(np.abs(self.flow.states()[:, 1:-1]).max())

    def state(self, change: Change) -> Array:
        """Return the state as it is in the first mesh."""
        found = self.flow.states().copy()
        found[:, 1:-1] = found[:, 1:-1] @ change.matrix
        return found


class _Liquid:
    """Incompressible flow between walls."""

    at_points = False

    def __init__(self, context: fl.Context, mesh: MeshData, size: float) -> None:
        self.volumes = control_volumes(mesh)
        sides: dict[str, Any] = dict.fromkeys(mesh.patches, NoSlip())
        self.flow: Any = Incompressible(context, self.volumes, _NU * size, sides, stop=Stop(rtol=1e-12))
        self.size, self.length = size, _length(mesh) / size

    def start(self, change: Change, still: bool) -> None:
        """Set the velocity."""
        def values(places: Array) -> Array:
            first = (places / change.size) @ change.matrix
            return (0.0 if still else 1.0) * _velocity(first) @ change.matrix.T

        self.flow.initialise(values)

    def run(self, lengths: list[float]) -> list[float]:
        """Make steps; they have to converge."""
        taken = [min(length, 0.2 * self.length, 0.1 * self.length**2 / _NU) for length in lengths]
        for length in taken:
            self.flow.step(length * self.size)
        return taken

    def totals(self) -> dict[str, tuple[float, float]]:
        """Return nothing: walls take momentum."""
        return {}

    def motion(self) -> float:
        """Return the largest speed."""
        return float(np.abs(self.flow.velocity()).max())

    def state(self, change: Change) -> Array:
        """Return velocity and pressure as they are in the first mesh."""
        pressure = np.asarray(self.flow.pressure())
        return np.column_stack([self.flow.velocity() @ change.matrix, pressure - pressure.mean()])


class _Edges(_Liquid):
    """Incompressible flow of the edge solver."""

    at_points = True

    def __init__(self, context: fl.Context, mesh: MeshData, size: float) -> None:
        sides: dict[str, Any] = dict.fromkeys(mesh.patches, NoSlip())
        self.flow = EdgeFlow(point_mesh(context, mesh), _NU * size, sides, stop=Stop(rtol=1e-12))
        self.size, self.length = size, _length(mesh) / size


class _Water:
    """Shallow water between walls, over a bed that is not flat."""

    at_points = False

    def __init__(self, context: fl.Context, mesh: MeshData, size: float) -> None:
        self.mesh, self.size = bind(mesh, context), size

    def start(self, change: Change, still: bool) -> None:
        """Build the flow: a lake at rest, or a wave."""
        size = self.size
        places = self.mesh.centroids.read()[:, :2] / size @ change.matrix
        bed, up = -1.0 + 0.3 * (_wave(3.0 * places) - 1.0), 0.0 * places[:, 0]
        velocity = np.zeros_like(places)
        if not still:
            up, velocity = 0.2 * (_wave(places) - 1.0), np.sqrt(size) * _velocity(places) @ change.matrix.T
        self.flow = ShallowWater(self.mesh, size * bed, size * up, tuple(velocity.T), scheme=ShallowScheme(order=2))
        self.volume = self.flow.survey().volume

    def run(self, lengths: list[float]) -> list[float]:
        """Go on for a while."""
        self.flow.advance_to(0.02 * np.sqrt(self.size))
        return lengths

    def totals(self) -> dict[str, tuple[float, float]]:
        """Return the volume of water."""
        found = self.flow.survey().volume
        return {"water": (found, found)}

    def motion(self) -> float:
        """Return the largest discharge over that of long waves."""
        return float(np.abs(self.flow.u.read()[:, 1:]).max() / self.size**1.5)

    def state(self, change: Change) -> Array:
        """Return depth and discharge as they are in the first mesh."""
        u = self.flow.u.read()
        return np.column_stack([u[:, 0] / self.size, u[:, 1:] @ change.matrix / self.size**1.5])


def _length(mesh: MeshData) -> float:
    """Return the least volume of a cell over the area of its largest face: explicit diffusion needs no less."""
    volumes, links = cell_measures(mesh)[0], connectivity(mesh)
    terms = geometry(mesh, links)
    inner, outer = (np.linalg.norm(areas, axis=1) for areas in (terms.face_normals, terms.boundary_normals))
    largest = np.zeros(mesh.n_cells)
    for column in links.interior_cells.T:
        np.maximum.at(largest, column, inner)
    np.maximum.at(largest, links.boundary_cells, outer)
    return float((volumes / largest).min())


# ------------------------------------------------------------------------------------------- trials


def _act(trial: Trial, device: str, solver: Callable[..., Any], kinds: dict[int, tuple[str, ...]]) -> Iterator[str]:
    """Run a flow on a mesh, at rest on it, and on the mesh in another place."""
    pick = trial.random()
    dimension = pick.choice(list(kinds))
    kind, mesh = random_mesh(pick, dimension, kinds[dimension])
    trial.counts[f"{kind} {dimension}D"] += 1
    context = fl.Context(device, threads=1, tuning=False) if device == "cpu" else fl.Context(device, tuning=False)
    same, change = Change(np.eye(dimension)), _change(pick, dimension)
    name = f"{kind} of {mesh.n_cells} cells in {dimension}D"

    first = solver(context, mesh, 1.0)
    first.start(same, still=False)
    before = first.totals()
    lengths = first.run([np.inf] * STEPS)
    for what, (now, scale) in first.totals().items():
        if not abs(now - before[what][0]) <= 1e-12 * abs(scale):
            yield f"{name}: {what} changes from {before[what][0]!r} to {now!r}"
    state = first.state(same)
    if not np.isfinite(state).all():
        yield f"{name}: values that are not finite"
        return

    moved, cells, points = change(mesh)
    rest = solver(context, moved, change.size)
    rest.start(change, still=True)
    rest.run(lengths)
    if not rest.motion() <= 1e-11:
        yield f"{name}, size {change.size:g}: rest moves with {rest.motion():.3g}"

    other = solver(context, moved, change.size)
    other.start(change, still=False)
    other.run(lengths)
    wanted = state[points if first.at_points else cells]
    apart = np.abs(other.state(change) - wanted).max() / np.abs(wanted).max()
    if not apart <= 1e-8:
        yield f"{name}: {apart:.3g} apart in {change}"


def _attack(name: str, device: str, solver: Callable[..., Any], kinds: dict[int, tuple[str, ...]]) -> Attack:
    def act(trial: Trial) -> Iterator[str]:
        return _act(trial, device, solver, kinds)

    return Attack(name, act, trials=3, seconds=300.0, missing=missing_device(device))


def _attacks(device: str) -> tuple[Attack, ...]:
    both = {2: PLANE, 3: SOLID}
    return (
        _attack("compressible", device, _Gas, both),
        _attack("incompressible", device, _Liquid, both),
        _attack("edges", device, _Edges, {2: ("triangle",), 3: ("tetra",)}),
        _attack("water", device, _Water, {2: ("triangle", "quad", "mixed", "refined")}),
    )


class _Meshes(Attacks):
    """The attacks, on the device of the options."""

    def of(self, options: AttackOptions) -> list[Attack]:
        """Return those that the options ask for."""
        device = options.device if isinstance(options, KernelOptions) else "cpu"
        return replace(self, attacks=_attacks(device)).chosen(options.only)


def meshes() -> Attacks:
    """Return the attacks on solvers by meshes."""
    return _Meshes("random meshes through the solvers", _attacks("cpu"), KernelOptions)
