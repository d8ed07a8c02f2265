"""Checks of what the ranks give to `decompose`: every rank finds the same error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any, get_args

import numpy as np
import numpy.typing as npt

from fluxloom.comm.agreement import agree
from fluxloom.comm.base import Comm
from fluxloom.core.errors import DatError, did_you_mean
from fluxloom.dsl.declare.directory import Link, Numbers
from fluxloom.dsl.ranks.decompose_owner import Method, Request, graph_link
from fluxloom.graph.partition import as_points, as_shares, as_weights

__all__ = ["Problem", "checked"]


@dataclass(frozen=True, eq=False)
class Problem:
    """The arguments of `decompose`."""

    sizes: Mapping[str, int]
    links: Mapping[str, Link]
    on: str
    owner: npt.ArrayLike | None
    method: Method
    points: npt.ArrayLike | None
    weights: npt.ArrayLike | None
    shares: Sequence[float] | None
    through: str | None


def checked(comm: Comm, given: Problem) -> tuple[Request, dict[str, Numbers], dict[str, Link]]:
    """Return the request, the slices of all sets, and the links with tables of two dimensions. Collective.

    Raises
    ------
    DatError
        The same on every rank.
    """
    agree(comm, _kinds(given))
    _same(comm, given)
    problem, tables, extra = "", {}, {}
    try:
        _names(comm.size, given)
        tables = {name: _table(name, link, given.sizes[link.target]) for name, link in given.links.items()}
        extra = _extra(comm.size, given)
    except (DatError, TypeError, ValueError) as error:
        problem = str(error)
    agree(comm, problem)
    tables = _arities(comm, tables)
    starts = _starts(comm, given, tables, extra)
    links = {name: Link(link.source, link.target, tables[name]) for name, link in given.links.items()}
    total = given.sizes[given.on]
    if given.owner is None and total < comm.size:
        raise DatError(
            f"set {given.on!r} has {total} elements, too few for {comm.size} ranks: use at most {max(total, 1)}"
        )
    request = Request(
        on=given.on,
        starts=starts[given.on],
        sizes=given.sizes,
        method=given.method,
        owner=extra.get("owner"),
        points=extra.get("points"),
        weights=extra.get("weights"),
        shares=as_shares(given.shares if given.shares is not None else np.ones(comm.size)),
        through=given.through if given.through is not None else graph_link(links, given.sizes, given.on),
    )
    return request, starts, links


def _kinds(given: Problem) -> str:
    """Return what is no mapping, number, link or list at all; empty if nothing."""
    for what, value in (("sizes", given.sizes), ("links", given.links)):
        if not isinstance(value, Mapping):
            return f"{what}: a dictionary by name is wanted, not {type(value).__name__}"
    for name, size in given.sizes.items():
        if not isinstance(size, int | np.integer) or isinstance(size, bool):
            return f"set {name!r}: its number of elements is a whole number, not {size!r}"
    for name, link in given.links.items():
        if not isinstance(link, Link):
            return f"link {name!r}: a Link(source, target, table) is wanted, not {type(link).__name__}"
    try:
        shares = [] if given.shares is None else [float(share) for share in given.shares]
    except (TypeError, ValueError):
        return f"shares: one positive number a rank is wanted, not {given.shares!r}"
    if not all(isfinite(share) for share in shares):
        return f"shares: one positive number a rank is wanted, not {shares}"
    return ""


def _same(comm: Comm, given: Problem) -> None:
    """Check that all ranks ask for the same thing."""
    mine = {
        "sizes": dict(given.sizes),
        "links": {name: (link.source, link.target) for name, link in given.links.items()},
        "on": given.on,
        "method": given.method,
        "through": given.through,
        "shares": None if given.shares is None else [float(s) for s in given.shares],
        "owner, points and weights": [a is not None for a in (given.owner, given.points, given.weights)],
    }
    everything = comm.allgather(mine)
    for rank, other in enumerate(everything):
        for key, value in everything[0].items():
            if other[key] != value or (isinstance(value, dict) and list(value) != list(other[key])):
                hint = "; where a rank holds nothing give an empty array" if key.startswith("owner") else ""
                raise DatError(f"ranks 0 and {rank} differ in {key}: {value} and {other[key]}{hint}")


def _names(ranks: int, given: Problem) -> None:
    """Check names, sizes and choices."""
    for name, size in given.sizes.items():
        if size < 0:
            raise DatError(f"set {name!r} has {size} elements")
    uses = [("on", given.on), *((f"link {n!r}", end) for n, k in given.links.items() for end in (k.source, k.target))]
    for what, name in uses:
        if name not in given.sizes:
            raise DatError(f"{what}: no set is called {name!r}{did_you_mean(name, given.sizes)}")
    if given.method not in get_args(Method):
        raise DatError(f"no method is called {given.method!r}{did_you_mean(given.method, get_args(Method))}")
    if given.through is not None and given.through not in given.links:
        raise DatError(f"through: no link is called {given.through!r}{did_you_mean(given.through, given.links)}")
    if given.through is not None and given.on not in (
        given.links[given.through].source,
        given.links[given.through].target,
    ):
        raise DatError(f"through: link {given.through!r} has nothing to do with {given.on!r}")
    if given.shares is not None and as_shares(given.shares).size != ranks:
        raise DatError(f"{len(given.shares)} shares for {ranks} ranks: give one a rank")


def _table(name: str, link: Link, total: int) -> npt.NDArray[Any]:
    """Return the table of a link with two dimensions and entries in range."""
    table = np.asarray(link.table)
    table = table[:, None] if table.ndim == 1 else table
    if table.ndim != 2:
        raise DatError(f"link {name!r}: a table of shape {table.shape} is not (rows, arity)")
    if table.size == 0:
        return table.astype(np.int64) if not np.issubdtype(table.dtype, np.integer) else table
    if not np.issubdtype(table.dtype, np.integer):
        raise DatError(f"link {name!r}: targets must be integers, got {table.dtype}")
    low, high = int(table.min()), int(table.max())
    if low < -1 or high >= total:
        bad = low if low < -1 else high
        row, leg = np.argwhere(table == bad)[0]
        raise DatError(
            f"link {name!r}: entry [{row}, {leg}] of this rank's slice is {bad}; {link.target!r} has the elements "
            f"0 ... {total - 1} (-1: none)"
        )
    return table


def _extra(ranks: int, given: Problem) -> dict[str, Any]:
    """Return owner, points and weights as arrays of one length."""
    found: dict[str, Any] = {}
    if given.owner is not None:
        owner = np.asarray(given.owner)
        if owner.ndim != 1 or (owner.size and not np.issubdtype(owner.dtype, np.integer)):
            raise DatError(f"owner: one integer an element is wanted, got {owner.dtype} of shape {owner.shape}")
        if owner.size and not 0 <= int(owner.min()) <= int(owner.max()) < ranks:
            raise DatError(f"owner: ranks are 0 ... {ranks - 1}, got {owner.min()} ... {owner.max()}")
        found["owner"] = owner.astype(np.int32)
    if given.points is not None:
        found["points"] = as_points(np.asarray(given.points))
    if given.weights is not None:
        weights = np.asarray(given.weights)
        found["weights"] = as_weights(weights, weights.shape[0] if weights.ndim else 0)
    return found


def _arities(comm: Comm, tables: Mapping[str, npt.NDArray[Any]]) -> dict[str, npt.NDArray[Any]]:
    """Return tables with the same number of columns on every rank; those without rows take that of the others."""
    shapes = comm.allgather({name: table.shape for name, table in tables.items()})
    result = {}
    for name, table in tables.items():
        known = {one[name][1] for one in shapes if one[name][0]} or {max(one[name][1] for one in shapes)}
        if len(known) > 1 or 0 in known:
            raise DatError(f"link {name!r}: tables with {sorted(known)} columns; the same number above 0 is wanted")
        result[name] = table if len(table) else np.empty((0, known.pop()), dtype=table.dtype)
    return result


def _starts(
    comm: Comm, given: Problem, tables: Mapping[str, npt.NDArray[Any]], extra: Mapping[str, Any]
) -> dict[str, Numbers]:
    """Return where the slice of each rank begins, for each set."""
    known: dict[str, dict[str, int]] = {name: {} for name in given.sizes}
    for name, link in given.links.items():
        known[link.source][f"link {name!r}"] = len(tables[name])
    for what, array in extra.items():
        known[given.on][what] = len(array)
    problem = ""
    for name, counts in known.items():
        if len(set(counts.values())) > 1:
            shown = ", ".join(f"{what}: {n}" for what, n in counts.items())
            problem = f"the slice of {name!r} has different lengths: {shown}"
    agree(comm, problem)
    found = comm.allgather({name: next(iter(counts.values()), -1) for name, counts in known.items()})
    starts = {}
    for name, total in given.sizes.items():
        counts = [one[name] for one in found]
        if counts[0] < 0:
            starts[name] = np.arange(comm.size + 1, dtype=np.int64) * total // comm.size
            continue
        if sum(counts) != total:
            raise DatError(f"set {name!r} has {total} elements, but the ranks hold {' + '.join(map(str, counts))}")
        starts[name] = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return starts
