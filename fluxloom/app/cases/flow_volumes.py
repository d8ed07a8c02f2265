"""From the tables ``[mesh]`` and ``[partition]`` to the domain of a flow, and errors of patches by key."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from fluxloom.app.case import PartitionTable
from fluxloom.app.cases.flow_mesh import FlowMeshTable, flow_mesh
from fluxloom.core.errors import CaseError, MeshError, SolverError
from fluxloom.flows.domain import Domain, Misfit, PatchError

__all__ = ["by_key", "check_length", "flow_domain"]


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
