"""``checkpoint.npz`` of lattice Boltzmann flow: all populations, what conditions remember, and the history."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.app.files import atomic
from fluxloom.core.errors import CaseError
from fluxloom.dsl.dats import Dat
from fluxloom.solvers.lattice import LatticeBoltzmann

__all__ = ["CHECKPOINT", "read_checkpoint", "restore", "write_checkpoint"]

CHECKPOINT = "checkpoint.npz"


def _dats(flow: LatticeBoltzmann, immersed: bool) -> dict[str, Dat]:
    """Return all that a step reads and does not make itself."""
    found = {f"populations_{k}": dat for k, dat in enumerate(flow.space.buffers)}
    for name, part in flow.conditions.parts.items():
        found |= {f"state_{name}_{k}": dat for k, dat in enumerate(part.state)}
    return found | ({"force": flow.force_field} if immersed else {})


def write_checkpoint(path: Path, flow: LatticeBoltzmann, immersed: bool, **values: npt.ArrayLike) -> None:
    """Write the state of a flow, and named values; a file that was there stays whole until the new one is."""
    arrays = {name: np.asarray(dat.read()) for name, dat in _dats(flow, immersed).items()}
    arrays |= {name: np.asarray(value) for name, value in values.items()} | {"steps": np.asarray(flow.steps)}
    with atomic(path) as temporary, temporary.open("wb") as file:
        np.savez(file, **arrays)  # pyright: ignore[reportArgumentType]


def read_checkpoint(path: Path, digest: str) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays of a file.

    Raises
    ------
    CaseError
        If it cannot be read, is none of this solver, or of another case.
    """
    try:
        with np.load(path, allow_pickle=False) as file:
            found = {name: file[name] for name in file.files}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise CaseError(f"{path}: no checkpoint of a lattice can be read: {error}") from None
    if "populations_0" not in found:
        raise CaseError(f"{path}: is no checkpoint of a lattice: it has no populations")
    theirs, mine = str(found["digest"]).splitlines(), digest.splitlines()
    if theirs != mine:
        other = next((line for line in mine if line not in theirs), next((t for t in theirs if t not in mine), ""))
        raise CaseError(
            f"{path}: is of a case with other values than {other.strip()}: set checkpoint.resume = false to begin anew"
        )
    return found


def restore(flow: LatticeBoltzmann, immersed: bool, state: dict[str, npt.NDArray[Any]]) -> None:
    """Set a flow to a state that has been read."""
    for name, dat in _dats(flow, immersed).items():
        dat.write(state[name])
    flow.steps = int(state["steps"])
