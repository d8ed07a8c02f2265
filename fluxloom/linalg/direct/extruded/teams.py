"""Ranks of an extruded mesh: pieces of the plane for the transforms, teams for the systems of some frequencies.

``P = parts * groups`` ranks. For the transforms each has some columns of cells with all their planes. For the systems
rank ``p groups + q`` belongs to team ``q``, which solves its own frequencies, and has there the rows of all ``groups``
ranks of part ``p``. So what travels between the two stays among the ``groups`` ranks of a part, and a team talks to
itself only.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from fluxloom.comm.base import Comm
from fluxloom.comm.rows import Places
from fluxloom.core.errors import SolverError
from fluxloom.dsl.context import Context
from fluxloom.dsl.declare.runtime import Runtime
from fluxloom.linalg.matrix.distribute import distributed_matrix
from fluxloom.linalg.matrix.matrix import SparseMatrix

__all__ = ["Teams"]

Numbers = npt.NDArray[np.int64]
Spectrum = npt.NDArray[Any]


class Teams:
    """Who solves what, and how spectra get there. Collective.

    Parameters
    ----------
    context
        Of the vectors; has all ranks.
    groups
        Number of teams; divides the number of ranks.
    name
        Of loops and messages.

    Attributes
    ----------
    team
        Number of this rank's team.
    context
        Where it solves: with the ranks of the team for a communicator.

    Raises
    ------
    SolverError
        If the ranks cannot be divided into so many teams.
    """

    def __init__(self, context: Runtime, groups: int, name: str) -> None:
        comm = context.comm
        if not isinstance(groups, int | np.integer) or groups < 1 or comm.size % groups:
            raise SolverError(f"{name}: {comm.size} ranks cannot be divided into {groups!r} teams of one size")
        self.world, self.groups, self.name = comm, int(groups), name
        part, self.team = divmod(comm.rank, self.groups)
        self.column = _split(comm, part) if groups > 1 else None
        self.context = context
        if groups > 1:
            self.context = Context(
                context.device, comm=_split(comm, self.team), schedule=context.schedule, tuning=context.tuning,
                transport=context.transport, check=context.check,
            )  # fmt: skip
        self._lengths: list[int] = []
        self._place: Numbers | None = None

    def matrix(self, rows: Any, numbers: Numbers, weight: npt.NDArray[Any]) -> tuple[SparseMatrix, Any]:
        """Return the matrix on the rows of the part, shared by the team, and the weights of these rows. Collective.

        Parameters
        ----------
        rows
            Those of this rank, ``(owned, total)`` with global columns.
        numbers, weight : (owned,)
            Their global numbers, and a number each.
        """
        if self.world.size == 1 and np.array_equal(numbers, np.arange(numbers.size)):
            return SparseMatrix.from_scipy(self.context, rows, name=f"{self.name}.plane"), weight
        if self.column is not None:
            rows, numbers, weight = self._together(rows, numbers, weight)
        else:
            self._lengths = [numbers.size]
        matrix = distributed_matrix(self.context, rows, rows=numbers, name=f"{self.name}.plane")
        part = matrix.rows.part
        own = part.numbers[: part.owned] if part is not None else np.sort(numbers)
        self._place = Places(own).of(numbers)
        found = np.empty_like(weight)
        found[self._place] = weight
        return matrix, found

    def _together(
        self, rows: Any, numbers: Numbers, weight: npt.NDArray[Any]
    ) -> tuple[csr_array, Numbers, npt.NDArray[Any]]:
        """Return the rows of all ranks of the part."""
        assert self.column is not None
        given = self.column.allgather((rows.indptr, rows.indices, rows.data, numbers, weight))
        self._lengths = [int(piece[3].size) for piece in given]
        offsets = np.concatenate([[0], np.cumsum(np.concatenate([np.diff(piece[0]) for piece in given]))])
        indices, values, all_numbers, weights = (np.concatenate([piece[k] for piece in given]) for k in range(1, 5))
        whole = csr_array((values, indices, offsets), shape=(all_numbers.size, rows.shape[1]))
        return whole, all_numbers, weights

    # ------------------------------------------------------------------------------------------ spectra
    @property
    def direct(self) -> bool:
        """Whether rows of spectra are those of the systems without a message, see `place`."""
        return self._place is None or self.column is None

    @property
    def place(self) -> Numbers | None:
        """For each column of cells of this rank, its row in the matrix; None: the same one."""
        return self._place

    def to_systems(self, spectra: Spectrum, bounds: Sequence[int]) -> Spectrum:
        """Return the columns of this team's frequencies, for the rows of the part as its matrix has them. Collective.

        Parameters
        ----------
        spectra : (owned, columns)
            Of the columns of cells of this rank.
        bounds : (groups + 1,)
            First frequency of each team.
        """
        assert self._place is not None
        assert self.column is not None
        sent = [spectra[:, 2 * a : 2 * b].reshape(-1) for a, b in pairwise(bounds)]
        columns = 2 * (bounds[self.team + 1] - bounds[self.team])
        found = self.column.exchange(sent)
        pieces = [values.reshape(n, columns) for values, n in zip(found, self._lengths, strict=True)]
        out = np.empty((self._place.size, pieces[0].shape[1]), spectra.dtype)
        out[self._place] = np.concatenate(pieces)
        return out

    def to_spectra(self, values: Spectrum, bounds: Sequence[int]) -> Spectrum:
        """Return the way back: whole rows of spectra for the columns of cells of this rank. Collective."""
        assert self._place is not None
        assert self.column is not None
        ordered = values[self._place]
        cuts = np.cumsum([0, *self._lengths])
        found = self.column.exchange([ordered[a:b].reshape(-1) for a, b in pairwise(cuts)])
        rows = self._lengths[self.column.rank]
        return np.concatenate([piece.reshape(rows, -1) for piece in found if piece.size], axis=1) if rows else np.empty(
            (0, 2 * bounds[-1]), values.dtype
        )  # fmt: skip


def _split(comm: Comm, colour: int) -> Comm:
    found = comm.split(colour)
    assert found is not None
    return found
