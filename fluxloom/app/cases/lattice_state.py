"""``checkpoint.npz`` of lattice Boltzmann flow: populations, what conditions and bodies remember, and the history.

On several ranks rank 0 has the file, with the values of all cells in the order of one rank alone: a run may go on with
another number of ranks. With cells in a list and populations that are stored where they go to, what has left towards
walls is in spare places behind the cells (`fluxloom.lbm.cells`): these are saved too.
"""

from __future__ import annotations

import zipfile
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.app.cases.lattice_ranks import gather, give
from fluxloom.app.files import atomic
from fluxloom.core.errors import CaseError
from fluxloom.dsl.dats import Dat
from fluxloom.lbm.cells import LISTS_ON_RANKS
from fluxloom.mesh.rows import together
from fluxloom.solvers.lattice import LatticeBoltzmann

__all__ = ["CHECKPOINT", "read_checkpoint", "restore", "write_checkpoint"]

CHECKPOINT = "checkpoint.npz"

_BODIES = "immersed."
"""What the names of the state of immersed bodies begin with."""


def _dats(flow: LatticeBoltzmann, immersed: bool) -> dict[str, Dat]:
    """Return all that a step reads and does not make itself."""
    found = {f"populations_{k}": dat for k, dat in enumerate(flow.space.buffers)}
    for name, part in flow.conditions.parts.items():
        found |= {f"state_{name}_{k}": dat for k, dat in enumerate(part.state)}
    return found | ({"force": flow.force_field} if immersed else {})


def _has_spare(flow: LatticeBoltzmann, dat: Dat) -> bool:
    """Whether values behind the cells belong to the state: of a list, on one rank, where populations go to others."""
    return flow.memory.listed is not None and dat.set is flow.memory.set and flow.streaming.name not in LISTS_ON_RANKS


def write_checkpoint(path: Path, flow: LatticeBoltzmann, immersed: bool, **values: npt.ArrayLike) -> None:
    """Write the state of a flow, and named values; the file that was there stays until the new one is whole.

    Collective.
    """
    gathered = {
        name: dat.read_places() if _has_spare(flow, dat) else gather(dat) for name, dat in _dats(flow, immersed).items()
    }
    bodies = {f"{_BODIES}{name}": value for name, value in flow.immersed.state().items()} if immersed else {}
    if flow.context.comm.rank:
        return
    arrays = {name: np.asarray(value) for name, value in (gathered | bodies | values).items()}
    arrays["steps"] = np.asarray(flow.steps)
    with atomic(path) as temporary, temporary.open("wb") as file:
        np.savez(file, **arrays)  # pyright: ignore[reportArgumentType]


def read_checkpoint(path: Path, digest: str, flow: LatticeBoltzmann, immersed: bool) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays of a file; on several ranks those of cells on rank 0 alone. Collective.

    Raises
    ------
    CaseError
        If it cannot be read, is none of this solver, of another case, or of a version with other layers beyond sides.
    """
    comm, large = flow.context.comm, _dats(flow, immersed)
    buffer = flow.space.buffers[0]
    cells = buffer.set.total if flow.memory.listed is not None else prod(flow.box.grid_shape)
    numbers = (buffer.set.stored if _has_spare(flow, buffer) else cells) * flow.lattice.q
    found = together(comm, lambda: {} if comm.rank else _read(path, digest, numbers))
    small = comm.broadcast({name: values for name, values in found.items() if name not in large})
    return found or small


def _read(path: Path, digest: str, numbers: int) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays of a file, which is one of this case; ``numbers``: how many a buffer has."""
    try:
        with np.load(path, allow_pickle=False) as file:
            found = {name: file[name] for name in file.files}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise CaseError(f"{path}: no checkpoint of a lattice can be read: {error}") from None
    if "populations_0" not in found:
        raise CaseError(f"{path}: is no checkpoint of a lattice: it has no populations")
    known, mine = str(found["digest"]).splitlines(), digest.splitlines()
    if known != mine:
        other = next((line for line in mine if line not in known), next((k for k in known if k not in mine), ""))
        raise CaseError(
            f"{path}: is of a case with other values than {other.strip()}: set checkpoint.resume = false to begin anew"
        )
    theirs = found["populations_0"].size
    if theirs != numbers:
        raise CaseError(
            f"{path}: has {theirs} populations and this lattice {numbers}: it was written by another version; set "
            "checkpoint.resume = false to begin anew"
        )
    return found


def restore(flow: LatticeBoltzmann, immersed: bool, state: dict[str, npt.NDArray[Any]]) -> None:
    """Set a flow to a state that has been read. Collective."""
    for name, dat in _dats(flow, immersed).items():
        if _has_spare(flow, dat):
            dat.write_places(state[name])
        else:
            give(dat, state.get(name))
    if immersed:
        found = {name.removeprefix(_BODIES): value for name, value in state.items() if name.startswith(_BODIES)}
        flow.immersed.restore(found)
    flow.steps = int(state["steps"])
