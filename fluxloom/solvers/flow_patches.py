"""Patches of a flow as sets that loops run over."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from fluxloom.core.errors import SolverError, did_you_mean
from fluxloom.dsl.context import Context
from fluxloom.dsl.sets import Set, Subset
from fluxloom.fv.volumes import ControlVolumes
from fluxloom.solvers.flow_spaces import FlowSpaces

__all__ = ["Patched", "patch_elements", "patch_numbers", "place_in"]


class Patched(Protocol):
    """A flow on control volumes, whose boundary elements are in patches."""

    context: Context
    volumes: ControlVolumes
    spaces: FlowSpaces
    elements: Set


def patch_numbers(flow: Patched, patches: str | Sequence[str]) -> np.ndarray:
    """Return the numbers in `ControlVolumes` of the boundary elements of one or several patches that this rank has.

    Raises
    ------
    SolverError
        If a patch does not exist or is named twice.
    """
    known, names = flow.volumes.patches, [patches] if isinstance(patches, str) else list(patches)
    for k, name in enumerate(names):
        if name not in known:
            listed = ", ".join(known) or "none"
            raise SolverError(f"no patch {name!r}{did_you_mean(name, known)} (patches: {listed})")
        if name in names[:k]:
            raise SolverError(f"patch {name!r} is named twice")
    return np.concatenate([np.zeros(0, dtype=np.int64), *(np.arange(known[name].start, known[name].stop)
                                                          for name in names)])  # fmt: skip


def patch_elements(flow: Patched, patches: str | Sequence[str]) -> Subset:
    """Return the boundary elements of one or several patches, see `patch_numbers`. Collective."""
    names = patches if isinstance(patches, str) else "+".join(patches)
    return flow.context.subset(flow.elements, flow.spaces.elements.local(patch_numbers(flow, patches)), names)


def place_in(about: Sequence[float], dimension: int) -> tuple[float, float, float]:
    """Return the point that moments are about in space, by default the origin; raise `SolverError` if it is none."""
    point = tuple(float(x) for x in about) or (0.0,) * dimension
    if len(point) != dimension or not np.isfinite(point).all():
        raise SolverError(f"point: {dimension} coordinates are wanted, not {list(about)}")
    x, y, z = (*point, 0.0)[:3]
    return x, y, z
