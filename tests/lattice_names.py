"""Flows of tests that name what they are varied by: schemes of streaming, cells, delta functions, pipelines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fluxloom.core.strategies import strategy_called
from fluxloom.lbm.body_force import ForceField
from fluxloom.lbm.immersed import (
    Delta,
    Fastest,
    ImmersedBody,
    ImmersedBoundary,
    MarkerWeights,
    OnDevice,
    OnHost,
    Pipeline,
)
from fluxloom.lbm.streaming.memory import AllCells, FluidCells
from fluxloom.lbm.streaming.schemes import Streaming
from fluxloom.solvers.lattice.flow import LatticeBoltzmann


def values(options: dict[str, Any]) -> dict[str, Any]:
    """Return options of a flow, with values for names.

    ``cells``, ``cut``, ``shares`` and ``layout`` are one value; so are ``force``, and ``field`` for one by cell.
    """
    found = dict(options)
    if isinstance(name := found.get("streaming"), str):
        found["streaming"] = strategy_called(Streaming, name)
    stored = {key: found.pop(key) for key in ("cut", "shares", "layout") if key in found}
    if isinstance(name := found.get("cells", "all"), str):
        known = {key: value for key, value in stored.items() if value is not None}
        found["cells"] = {"all": AllCells, "fluid": FluidCells}[name](**known)
    if found.pop("field", False):
        found["force"] = ForceField(found.get("force", ()))
    return found


def lattice_flow(context: Any, shape: Any, **options: Any) -> LatticeBoltzmann:
    """Return a flow; see `values`."""
    return LatticeBoltzmann(context, shape, **values(options))


def pipeline_called(name: str, threads: int = 0) -> Pipeline:
    """Return a pipeline by its name; ``"host-serial"``: that of the host, one after the other."""
    if name == "device":
        return OnDevice()
    return Fastest(threads) if name == "auto" else OnHost(threads, overlap=name == "host")


def immersed(bodies: Sequence[ImmersedBody], **options: Any) -> ImmersedBoundary:
    """Return an immersed boundary; ``target`` is ``"velocity"`` or ``"momentum"``, that after collision.

    ``mode``, ``"local"`` or ``"field"``, is for those who make the flow: whether its force differs by cell.
    """
    found, threads = dict(options), options.get("threads", 0)
    found.pop("mode", None)
    found.pop("threads", None)
    for key, family in (("delta", Delta), ("weights", MarkerWeights)):
        if isinstance(name := found.get(key), str):
            found[key] = strategy_called(family, name)
    if isinstance(name := found.get("pipeline"), str):
        found["pipeline"] = pipeline_called(name, threads)
    if "target" in found:
        found["after_collision"] = found.pop("target") == "momentum"
    return ImmersedBoundary(bodies, **found)
