"""From a case file to its model and its solver; the registry of solvers, so that others plug in."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from fluxloom.cases.files.application import Application
from fluxloom.cases.files.case import CaseModel
from fluxloom.cases.files.errors import Document, describe_errors, read_toml, with_settings
from fluxloom.core.activity import activity
from fluxloom.core.errors import CaseError, did_you_mean
from fluxloom.core.registry import Registry

if TYPE_CHECKING:
    from fluxloom.dsl.context import Context
    from fluxloom.run.flow_run import FlowRun

__all__ = ["applications", "load_application", "load_case", "parse_case", "rebuilt"]

_ITERATIONS = 1000
"""Of the default case of a solver."""


def applications() -> Registry[Application]:
    """Return the known applications, open to the entry points ``fluxloom.solvers``."""
    registry: Registry[Application] = Registry("solver", group="fluxloom.solvers", error=CaseError)
    registry.later("airfoil", "fluxloom.cases.airfoil:AirfoilApplication")
    registry.later("compressible", "fluxloom.cases.compressible.case:CompressibleApplication")
    registry.later("diffusion", "fluxloom.cases.diffusion:DiffusionApplication")
    registry.later("edge_flow", "fluxloom.cases.edges.flow:EdgeFlowApplication")
    registry.later("edge_transport", "fluxloom.cases.edges.transport:EdgeTransportApplication")
    registry.later("incompressible", "fluxloom.cases.incompressible.case:IncompressibleApplication")
    registry.later("lattice", "fluxloom.cases.lattice.case:LatticeApplication")
    registry.later("staggered", "fluxloom.cases.staggered.case:StaggeredApplication")
    registry.later("tsunami", "fluxloom.cases.shallow.case:TsunamiApplication")
    return registry


def load_case(path: str | Path, settings: Sequence[str] = ()) -> tuple[CaseModel, Application]:
    """Read and check a case file.

    Parameters
    ----------
    path
        The file; or the name of a solver, for its default case.
    settings
        Values that take the place of those of the file, as of ``--set``: ``"flow.alpha=4"``.

    Returns
    -------
    case, application
        The checked case, and the application of its solver.

    Raises
    ------
    CaseError
        Naming the file, and for each mistake the line, the key, what is allowed and the nearest match.
    """
    if not Path(path).exists():
        name, known = str(path), applications().names()
        if name in known:
            tables = {"case": {"name": name, "solver": name}, "run": {"iterations": _ITERATIONS}}
            return parse_case(with_settings(Document(Path(path), tables, {}), settings))
        if name.isidentifier() and (hint := did_you_mean(name, known)):
            raise CaseError(f"{name}: neither a case file nor a solver{hint}")
    with activity("reading the case", str(path)):
        return parse_case(with_settings(read_toml(path), settings))


def load_application(path: str | Path) -> Application:
    """Return the application of the solver of a case file, whatever else is wrong in it; or of a solver's name.

    Raises
    ------
    CaseError
        Where the file does not name a solver.
    """
    known = applications()
    if not Path(path).exists() and str(path) in known.names():
        return known[str(path)]
    return known[_solver_name(read_toml(path), known)]


def parse_case(document: Document) -> tuple[CaseModel, Application]:
    """Check a case that has been read; see `load_case`."""
    known = applications()
    name = _solver_name(document, known)
    beside = str(document.path.parent.resolve())
    if beside not in sys.path:
        sys.path.append(beside)  # for members of families in files beside the case, type = "module:Class"
    application = known[name]
    try:
        return application.model.model_validate(dict(document.data)), application
    except ValidationError as error:
        raise CaseError(describe_errors(document, application.model, error)) from None


def rebuilt(tables: Mapping[str, Any], context: Context) -> FlowRun[Any]:
    """Return the run of a case as a checkpoint has its tables, at its start, on this rank of a context alone."""
    from fluxloom.comm.base import SelfComm
    from fluxloom.dsl.context import Context
    from fluxloom.run.start import is_result

    initial = dict(tables.get("initial") or {})
    start = Path(initial.get("file") or ".")
    if not start.exists() and (is_result(start) or not start.suffix):  # the state is that of the checkpoint in any case
        for key in ("file", "outside", "keep_time"):
            initial.pop(key, None)
    document = Document(Path("checkpoint"), {**tables, "initial": initial} if "initial" in tables else dict(tables), {})
    case, application = parse_case(document)
    return application.build(case, Context(context.device, threads=context.threads, comm=SelfComm(), tuning=False))


def _misspelt(name: str, given: Iterable[str]) -> str:
    """Return a question about a given name that resembles the one that is missing."""
    return did_you_mean(name, given).replace("did you mean", "is it misspelt as")


def _solver_name(document: Document, solvers: Registry[Application]) -> str:
    """Return the name of the solver, without which no other table can be judged."""
    table = document.data.get("case")
    name = table.get("solver") if isinstance(table, dict) else None
    if isinstance(name, str) and name in solvers:  # one of ours: those of others need not be looked for
        return name
    known = solvers.names()
    allowed = f"(allowed: {', '.join(known)})"
    if table is None:
        hint = _misspelt("case", document.data)
        needed = 'name = "..." and solver = "..."'
        raise CaseError(f"{document.path}: there is no table [case] with {needed}{hint} {allowed}")
    if not isinstance(table, dict):
        raise CaseError(f"{document.where(('case',))}: case: must be a table [case]")
    if "solver" not in table:
        hint = _misspelt("solver", table)
        raise CaseError(f"{document.where(('case',))}: case.solver: the key is missing{hint} {allowed}")
    if not isinstance(name, str) or name not in known:
        hint = did_you_mean(name, known) if isinstance(name, str) else ""
        raise CaseError(f"{document.where(('case', 'solver'))}: case.solver: unknown solver {name!r}{hint} {allowed}")
    return name
