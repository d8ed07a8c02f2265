"""A flow that starts from the result of another: the same mesh or another, the same solver or another.

A result is a folder of results, its ``checkpoint.h5``, or a file of fields: ``final.vtkhdf``, ``final.vtu`` or
``final.vti``. What is taken of it are fields by name (``u``, ``v``, ``w``, ``p``, ``rho``, ``nu_tilde``, scalars), at
the places where the new flow has its values; the flow makes its state of them (`fluxloom.run.flow.Flow.start_from`).
Fields of a checkpoint are those of the flow that it is of, which is built again for it. Everything is found on rank 0,
for all places of all ranks, so that it does not depend on how the mesh is divided.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from fluxloom.comm.agreement import raise_on_all_ranks
from fluxloom.comm.base import Comm, SelfComm
from fluxloom.comm.rows import from_first, to_first
from fluxloom.core.activity import activity
from fluxloom.core.errors import CheckpointError, FluxloomError, MeshError, SolverError, did_you_mean
from fluxloom.dsl.checkpoint.memory_values import decoded
from fluxloom.dsl.declare.dats import Dat
from fluxloom.mesh.data.mesh import MeshData
from fluxloom.mesh.geometry.transfer import CellSearch, Transfer
from fluxloom.run.results.results import CHECKPOINT, RECORD, digests_of_inputs

if TYPE_CHECKING:
    from fluxloom.dsl.checkpoint.state import StateFile

__all__ = ["Correction", "Found", "Rebuild", "Rebuilt", "Start", "StartFields", "is_result"]

Array = npt.NDArray[np.float64]
Fields = Mapping[str, Array]


class Rebuilt(Protocol):
    """A run that has been built again, as `fluxloom.run.flow_run.FlowRun` is."""

    flow: Any

    def mesh(self) -> MeshData:
        """Return the whole mesh."""
        ...

    def fields(self) -> Mapping[str, npt.NDArray[Any]]:
        """Return the fields of all cells or points."""
        ...


Rebuild = Callable[[Mapping[str, Any]], Rebuilt]
"""Returns the run of a case, as a checkpoint has its tables, in its initial state, on a rank alone."""


@dataclass(frozen=True, eq=False)
class Found:
    """Fields of a result, and what was found of them at the places of a flow: all cells of all ranks.

    Attributes
    ----------
    source, source_volumes
        Values and volumes of the result; no volumes: its domain is another one, and there are no sums to be kept.
    values, volumes
        At the places, and of their cells.
    bounds
        Returns the least and the largest values that those of a field were found of, by its name.
    """

    source: Fields
    source_volumes: Array | None
    values: Fields
    volumes: Array
    bounds: Callable[[str], tuple[Array, Array]]


Correction = Callable[[Found], Fields]
"""Makes of what was found what is taken, so that sums are those of the result. Called on rank 0."""

_FINAL = ("final.vtkhdf", "final.vtu", "final.vti")
_OTHER_NAMES = {"p": "pressure", "u": "velocity_x", "v": "velocity_y", "w": "velocity_z"}
_FIELDS = frozenset({".vtkhdf", ".vtu", ".vti"})
_ALIKE = 1e-2
"""Part of the volume by which two meshes of the same domain may differ: curved walls are divided in other ways."""
_UNFINISHED = ("running", "diverged")


def is_result(path: str | Path) -> bool:
    """Return whether a path names a result, by its suffix or as it is a folder; other files hold numbers of a grid."""
    return Path(path).suffix in _FIELDS or _checkpoint(Path(path)) or Path(path).is_dir()


def _checkpoint(path: Path) -> bool:
    """Whether a path names a checkpoint, the last one or one before."""
    return re.search(r"\.h5(\.\d+)?$", path.name) is not None


@dataclass(frozen=True, eq=False)
class StartFields:
    """Fields of a result.

    Attributes
    ----------
    mesh
        Whole.
    nodal
        Whether values are at its nodes; else in its cells.
    values
        By name, ``(n,)``.
    """

    mesh: MeshData
    nodal: bool
    values: Mapping[str, Array]

    @cached_property
    def search(self) -> CellSearch:
        """The cells of the mesh."""
        return CellSearch(self.mesh)


class Start:
    """A result from which a flow starts. On several ranks all is collective but `close`.

    Parameters
    ----------
    path
        Of the result; also what `fluxloom.run.run.run` has returned.
    comm
        The ranks of the flow that starts.
    outside
        ``"nearest"``: cells that the mesh of the result does not cover get its nearest values; ``""``: an error.
    keep_time
        Whether time and steps go on from those of the result; else they begin at 0.
    rebuild
        Makes the run that a checkpoint is of; without it a checkpoint serves on its own mesh alone.
    case
        Tables of the case of the flow, by name: where those of a checkpoint are the same, its state may be taken as it
        is (`held`).
    noise
        Velocity that is added to that of the result, a function of places ``(n, d)``.

    Attributes
    ----------
    time, steps
        Of the result; None where it does not say.
    exact
        Whether all values so far were those of the result itself: the mesh is the same.

    Raises
    ------
    SolverError
        If there is no such result, it cannot be read, or its time is wanted and not known.
    """

    def __init__(
        self, path: str | Path | Any, comm: Comm, *, outside: str = "", keep_time: bool = False,
        rebuild: Rebuild | None = None, case: Mapping[str, Any] | None = None,
        noise: Callable[[Array], Array] | None = None,
    ) -> None:  # fmt: skip
        path = getattr(path, "directory", path)
        if path is None:
            raise SolverError("start: that run has written nothing: give it a directory")
        self.path, self.comm = Path(path), comm
        self._outside, self._rebuild, self._case = outside, rebuild, case
        self._noise = noise
        self._state: StateFile | None = None
        self._last: tuple[Array, Transfer] | None = None
        self.exact = True
        found = raise_on_all_ranks(comm, lambda: self._open() if comm.rank == 0 else None)
        self.time, self.steps = comm.broadcast(found)
        self.keeps = keep_time
        if keep_time and self.steps is None:
            raise SolverError(
                f"{self.path}: keep_time: a file of fields does not say how many steps were done; give the folder of "
                "the run, or its checkpoint.h5"
            )

    # ------------------------------------------------------------------------------------------ open
    def _open(self) -> tuple[float | None, int | None]:
        """Find the files; return time and steps."""
        path = self.path
        self._file, self._checkpoint, record = path, path if _checkpoint(path) else None, {}
        if path.is_dir():
            record = _record(path)
            final = next((path / name for name in _FINAL if (path / name).exists()), None)
            taken = path / CHECKPOINT
            self._checkpoint = taken if taken.exists() else None
            unfinished = record.get("status") in _UNFINISHED
            if (final is None and self._checkpoint is None) or (unfinished and self._checkpoint is None):
                why = f"the run is not at an end ({record['status']}) and" if unfinished else "the folder"
                lacking = CHECKPOINT if unfinished else ", ".join((CHECKPOINT, *_FINAL))
                raise SolverError(f"{path}: {why} has no {lacking}")
            self._file = taken if final is None or unfinished else final
        elif not path.exists():
            raise SolverError(f"there is no file or folder {path}")
        elif not is_result(path):
            raise SolverError(f"{path}: is no result: a folder, {CHECKPOINT}, or a .vtkhdf, .vtu or .vti is wanted")
        if self._checkpoint is not None:
            from fluxloom.dsl.checkpoint.state import StateFile

            try:
                self._state = StateFile(self._checkpoint, SelfComm())
            except CheckpointError as error:
                raise SolverError(str(error)) from None
            if self._file == self._checkpoint:
                return self._state.about["time"], self._state.about["steps"]
        return record.get("time"), record.get("iterations")

    @property
    def clock(self) -> tuple[float, int]:
        """Time and steps with which the flow begins."""
        return (self.time or 0.0, self.steps or 0) if self.keeps else (0.0, 0)

    def description(self) -> dict[str, Any]:
        """Return what tells it from others, for runs that go on, in the words of ``[initial]``."""
        return {"file": str(self.path), "outside": self._outside, "keep_time": self.keeps}

    def close(self) -> None:
        """Close the checkpoint."""
        if self._state is not None:
            self._state.close()
            self._state = None

    # ------------------------------------------------------------------------------------ states as they are
    def held(self, dats: Mapping[str, Dat], *tables: str) -> bool:
        """Set dats to what a checkpoint has of them, by their names there; return whether it could be.

        It can where the result has a checkpoint of a run whose case has the same tables of some names, and all fit.
        """
        from fluxloom.dsl.checkpoint.state import StateFile

        if not self.comm.broadcast(self.comm.rank == 0 and self._same(tables)):
            return False
        file = StateFile(self.comm.broadcast(self._checkpoint if self.comm.rank == 0 else None), self.comm)
        try:
            if any(file.misfit(name, dat) for name, dat in dats.items()):
                return False
            for name, dat in dats.items():
                file.load(name, dat)
        finally:
            file.close()
        return True

    def _same(self, tables: Sequence[str]) -> bool:
        """Return whether a checkpoint is of a case with the same tables, and the files that they name are the same."""
        if self._state is None or self._case is None or self._noise is not None or not self._fresh:
            return False
        about = self._state.about
        mine = json.loads(json.dumps({name: self._case.get(name) for name in ("case", *tables)}, default=str))
        if mine.pop("case")["solver"] != about["case"]["case"]["solver"]:
            return False
        if any(about["case"].get(name) != table for name, table in mine.items()):
            return False
        inputs = about.get("inputs", {})
        return all(inputs.get(name) == digest for name, digest in digests_of_inputs(mine).items())

    @property
    def _fresh(self) -> bool:
        """Whether there is a checkpoint, and the fields are not those of a later step."""
        state = self._state
        return state is not None and (self._file == self._checkpoint or state.about["steps"] == self.steps)

    def kept(self, names: Sequence[str]) -> dict[str, Any] | None:
        """Return numbers and whole arrays that a checkpoint has by these names; None where it has not all of them."""

        def look() -> dict[str, Any] | None:
            """Return them from what this rank has read."""
            state = self._state
            if state is None or not self._fresh:
                return None
            if not all(name in state.numbers or name in state.dats for name in names):
                return None
            return {name: decoded(state.numbers[name], state.tables) if name in state.numbers else state.read(name)
                    for name in names}  # fmt: skip

        return self.comm.broadcast(raise_on_all_ranks(self.comm, lambda: look() if self.comm.rank == 0 else None))

    # ---------------------------------------------------------------------------------- fields by name
    @cached_property
    def _fields(self) -> StartFields:
        """The fields, on rank 0."""
        try:
            with activity("reading the start", str(self._file)):
                found = self._of_state() if self._file == self._checkpoint else _of_file(self._file)
        except (MeshError, CheckpointError) as error:
            raise SolverError(str(error)) from None
        return StartFields(found.mesh, found.nodal, _named(found.values))

    def _of_state(self) -> StartFields:
        """Return the fields of the run that a checkpoint is of."""
        from fluxloom.dsl.checkpoint.memory import Memory

        state = self._state
        assert state is not None
        if self._rebuild is None:
            raise SolverError(
                f"{self.path}: the checkpoint is of another mesh or case, which is not built again here: give the "
                "fields of that run, final.vtkhdf"
            )
        try:
            run = self._rebuild(state.about["case"])
            Memory(run=run).restore(state)
        except FluxloomError as error:
            raise SolverError(
                f"{self.path}: the run that this checkpoint is of cannot be built again: {error}; give the fields of "
                "that run instead, final.vtkhdf"
            ) from None
        return StartFields(run.mesh(), bool(run.flow.points), dict(run.fields()))

    def velocity(self, places: Array) -> Array:
        """Return the velocity at places of this rank, ``(n, d)``, linear; with the noise, where there is some."""
        names = "uvw"[: places.shape[1]]
        found = self.at(places, names)
        return np.stack([found[name] for name in names], axis=1) + self.noise(places)

    def noise(self, places: Array) -> Array:
        """Return the velocity that is added at places ``(n, d)``."""
        return np.zeros(places.shape) if self._noise is None else self._noise(places)

    def names(self) -> list[str]:
        """Return the names of the fields."""
        names = raise_on_all_ranks(self.comm, lambda: [] if self.comm.rank else list(self._fields.values))
        return self.comm.broadcast(names)

    def at(
        self, places: Array, names: Sequence[str], *, optional: Sequence[str] = (), bounded: bool = False,
        volumes: Array | None = None, correct: Correction | None = None, given: Fields | None = None,
        derived: Callable[[StartFields], Fields] | None = None,
    ) -> dict[str, Array]:  # fmt: skip
        """Return fields at places of this rank, ``(n,)`` each.

        Parameters
        ----------
        places
            ``(n, d)``.
        names, optional
            Fields that the result has to have, and those that it may have.
        bounded
            Whether values are not to be beyond those around them, as densities; else they are linear.
        volumes, correct
            Of the cells at the places, and what makes sums over them those of the result. It is left out where the
            result is of the same mesh, whose values are taken as they are. The domain is another one where its volume
            differs by more than a hundredth, or cells are outside.
        given
            More values at the places, which ``correct`` finds beside what was found.
        derived
            Makes more fields of those of the result; called on rank 0.

        Raises
        ------
        SolverError
            If a field is missing, a value that is taken is not finite, or the result does not cover the places.
        """
        comm, root = self.comm, self.comm.rank == 0
        parts = {"volumes": np.zeros(len(places)) if volumes is None else volumes, **(given or {})}
        whole = to_first(comm, places)
        beside = {name: np.concatenate(to_first(comm, np.asarray(part))) for name, part in parts.items()}
        everywhere = np.concatenate(whole)

        def find() -> dict[str, Array] | None:
            """Find them, on rank 0."""
            wanted = names, optional
            return self._found(everywhere, beside, wanted, bounded, correct, derived) if root else None

        found = raise_on_all_ranks(comm, find)
        known, self.exact = comm.broadcast(None if found is None else (list(found), self.exact))
        ends = np.cumsum([len(part) for part in whole])[:-1]
        out: dict[str, Array] = {}
        for name in known:
            out[name] = from_first(comm, None if found is None else np.split(found[name], ends), np.zeros(0))
        return out

    def _found(
        self, places: Array, beside: Fields, wanted: tuple[Sequence[str], Sequence[str]], bounded: bool,
        correct: Correction | None, derived: Callable[[StartFields], Fields] | None,
    ) -> dict[str, Array]:  # fmt: skip
        """Return fields at the places of all ranks, one rank after the other."""
        names, optional = wanted
        fields = self._fields
        for name in names:
            if name not in fields.values:
                hint = did_you_mean(name, fields.values)
                raise SolverError(f"{self.path}: has no field {name!r}{hint} (fields: {', '.join(fields.values)})")
        taken = {name: fields.values[name] for name in (*names, *optional) if name in fields.values}
        for name, values in taken.items():
            if (bad := np.flatnonzero(~np.isfinite(values))).size:
                raise SolverError(f"{self.path}: {name} is not finite in {bad.size:,} places, the first is {bad[0]:,}")
        if derived is not None:
            taken |= derived(fields)
        transfer = self._transfer(places)
        self.exact = self.exact and bool(transfer.same.all())
        found = {name: transfer(values, bounded=bounded) for name, values in taken.items()}
        for name, values in found.items():
            if not np.isfinite(values).all():
                raise SolverError(f"{self.path}: {name} or coordinates are too large to find values between them")
        if correct is None or transfer.all_same:
            return found
        ours, theirs = beside["volumes"], fields.search.volumes
        alike = not fields.nodal and abs(ours.sum() - theirs.sum()) <= _ALIKE * theirs.sum()
        known = found | {name: beside[name] for name in beside if name != "volumes"}
        kept = theirs if alike and not transfer.outside.any() else None
        corrected = correct(Found(taken, kept, known, ours, lambda name: transfer.bounds(taken[name])))
        return {name: corrected[name] for name in found}

    def _transfer(self, places: Array) -> Transfer:
        """Return the way to places; the last one is kept."""
        if self._last is not None and np.array_equal(self._last[0], places):
            return self._last[1]
        fields = self._fields
        try:
            with activity("finding the cells of the start", str(self._file)):
                found = Transfer(fields.search, places, nodal=fields.nodal, outside=self._outside)
        except MeshError as error:
            text = str(error).partition(": ")[2]
            hint = '; outside = "nearest" takes the nearest values there' if "does not cover" in text else ""
            raise SolverError(f"{self.path}: {text}{hint}") from None
        self._last = places, found
        return found


def _record(folder: Path) -> dict[str, Any]:
    """Return the record of the run that wrote into a folder; empty: there is none."""
    try:
        found = json.loads((folder / RECORD).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _of_file(path: Path) -> StartFields:
    """Return the fields of a file; of values in cells and at nodes those in cells."""
    if path.suffix == ".vti":
        from fluxloom.run.results.image_data import read_image

        mesh, values = read_image(path)
        return StartFields(mesh, False, values)
    from fluxloom.mesh.io import read_fields

    found = read_fields(path)
    nodal = not found.cell_data
    data = found.point_data if nodal else found.cell_data
    return StartFields(found.mesh, nodal, {name: np.asarray(field, np.float64) for name, field in data.items()})


def _named(values: Mapping[str, npt.NDArray[Any]]) -> dict[str, Array]:
    """Return scalars by name; the components of a velocity are ``u``, ``v`` and ``w``."""
    found: dict[str, Array] = {}
    for name, field in values.items():
        if field.ndim == 1:
            found[name] = np.asarray(field, dtype=np.float64)
        elif name == "velocity":
            found |= {part: np.asarray(field[:, k], dtype=np.float64) for k, part in zip(range(field.shape[1]), "uvw",
                                                                                         strict=False)}  # fmt: skip
    return found | {name: found[other] for name, other in _OTHER_NAMES.items() if name not in found and other in found}
