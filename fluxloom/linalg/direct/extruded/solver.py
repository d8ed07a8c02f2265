"""Poisson's equation on an extruded mesh: Fourier transforms along the periodic direction leave plane problems.

A plane mesh, any one, is repeated ``N`` times at equal distances ``Delta``, periodically. Then the Laplacian is

::

    L = Omega (x) L_per + Delta (L_2d (x) I),    L_per = circ(-2, 1, 0, ..., 0, 1) / Delta

and the Fourier transform diagonalises ``L_per``. The solution of ``-L x = b`` is

1. ``b_k``, the transform of ``b`` along each column of cells,
2. ``(Delta A + |lambda_k| Omega) x_k = b_k`` with ``A = -L_2d`` for ``k = 0 ... N / 2``,
   ``|lambda_k| = 2 / Delta (1 - cos(2 pi k / N))``,
3. ``x``, the inverse transform of ``x_k``.

Real and imaginary part of a frequency are two systems with one matrix: ``N`` real systems in the plane. Only one of
them is as badly conditioned as the whole, and one copy of ``A`` serves them all.

References
----------
R. Borrell, O. Lehmkuhl, F. X. Trias, A. Oliva: "Parallel direct Poisson solver for discretisations with one Fourier
diagonalisable direction", J. Comput. Phys. 230 (2011) 4723-4741.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import sqrt
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from fluxloom.core.errors import SolverError
from fluxloom.core.strategies import require_strategy
from fluxloom.device.transforms.fft import real_transform
from fluxloom.dsl.declare.dats import Dat
from fluxloom.dsl.declare.runtime import Runtime
from fluxloom.dsl.run.chain import Chain
from fluxloom.linalg.direct.extruded.batch import Batch, PlaneGradients, PlaneMethod, PlaneSystems
from fluxloom.linalg.direct.extruded.columns import Columns, readable, writable
from fluxloom.linalg.direct.extruded.frequencies import WIDTH, batches
from fluxloom.linalg.direct.extruded.plane import ExtrudedMatrix, checked_plane, is_singular
from fluxloom.linalg.direct.extruded.teams import Teams
from fluxloom.linalg.direct.extruded.tuning import Division, Trial, Tuner, describe_trials
from fluxloom.linalg.krylov.method import Nullspace
from fluxloom.linalg.status import Status, Stop, judge, worst_of
from fluxloom.perf.stopwatch import Stopwatch

__all__ = ["ExtrudedPoisson"]

_FLOOR = 1e-30
"""Least part of ``b . b`` that is left when the mean is taken away: what is below is round-off."""


class ExtrudedPoisson:
    r"""Batch ``A x = b`` on a uniformly and periodically extruded mesh, ``A = -L`` of the module's description.

    It starts from what ``x`` has. A solve ends when :math:`|b - A x| \le \max(\mathrm{rtol} |b|, \mathrm{atol})`, to
    which each frequency contributes an equal share. Frequencies are solved in batches of ``width`` systems; those of a
    batch share products, sums and messages, and each stands still as soon as it has converged.

    Collective on several ranks.

    Parameters
    ----------
    context
        Where ``b`` and ``x`` live.
    matrix
        ``A``, or the rows of it that this rank has.
    b, x
        Right-hand side and solution: dats of shape ``(planes,)`` on a set with an element a row of the plane, or
        scalars on the cells in the order ``order``. None: made here, of the first kind.
    order : (owned, planes)
        Which cell is plane ``k`` of column ``i``, where ``b`` and ``x`` are scalars; by default ``i planes + k``.
    stop
        When to end.
    method
        How the systems of the plane are solved; by default `PlaneGradients`.
    nullspace
        ``"constant"`` if constants are in the null space of the plane: the mean is taken from ``b`` and from ``x``.
        ``"auto"``: looks.
    width
        Systems of a batch, even.
    groups
        On several ranks: number of teams of ranks that solve their own frequencies; divides the number of ranks. Ranks
        ``p groups ... (p + 1) groups - 1`` form a part of the plane.
    check_every
        As of `fluxloom.linalg.krylov.method.Krylov`: solves from one to the next whose residual is that of the
        solution.
    name
        In messages and reports.

    Attributes
    ----------
    b, x
        Right-hand side and solution.
    batches
        Those of this rank's team, by frequency.
    bounds
        First frequency of each team, and their number.

    Raises
    ------
    SolverError
        If something does not fit; on every rank, if on one of them.

    Examples
    --------
    >>> matrix = ExtrudedMatrix(plane, areas, planes=64, spacing=0.1)
    >>> solver = ExtrudedPoisson(context, matrix, stop=Stop(rtol=1e-8))
    >>> solver.b.write(values)                      # (rows, 64)
    >>> status = solver.solve().require("pressure")
    >>> pressure = solver.x.read()
    """

    remembers = ("warm",)

    def __init__(
        self,
        context: Runtime,
        matrix: ExtrudedMatrix,
        *,
        b: Dat | None = None,
        x: Dat | None = None,
        order: npt.ArrayLike | None = None,
        stop: Stop | None = None,
        method: PlaneMethod | None = None,
        nullspace: Nullspace | Literal["auto"] = "auto",
        width: int = WIDTH,
        groups: int = 1,
        check_every: int = 1,
        name: str = "extruded",
    ) -> None:
        self.context, self.name, self.stop = context, name, stop if stop is not None else Stop()
        self.method = method = method if method is not None else PlaneGradients()
        require_strategy(f"{name}: method", method, PlaneMethod)
        self.frequencies, self.width = matrix.frequencies, width
        self.check_every, self.check_next, self._solves = check_every, False, 0
        given = checked_plane(context.comm, matrix, name)
        self.columns = Columns(context, given.numbers, self.frequencies.planes, b, x, order, name)
        self.b, self.x = self.columns.b, self.columns.x
        self.nullspace: Nullspace = nullspace if nullspace != "auto" else is_singular(context.comm, given)
        self.size = given.total * self.frequencies.planes
        self.teams = Teams(context, groups, name)
        self._order: Any = None
        count = self.frequencies.count
        if groups > count:
            raise SolverError(f"{name}: {matrix.planes} planes have {count} frequencies, too few for {groups} teams")
        scaled = csr_array(given.matrix * self.frequencies.spacing)
        self.matrix, weight = self.teams.matrix(scaled, given.numbers, given.areas)
        self._systems = PlaneSystems(
            self.matrix, Dat(self.matrix.rows, weight, name=f"{name}.areas"), self.frequencies,
            replace(self.stop, atol=self.stop.atol / sqrt(self.frequencies.shares)), self.nullspace,
            self.b.scalar.numpy, name,
        )  # fmt: skip
        self._transform = real_transform(context.device, context.threads)
        self.batches: list[Batch] = []
        start = Division(tuple(count * team // groups for team in range(groups + 1)))
        self._timings = list[tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]]()
        self._tuner = Tuner(method.tuning, start, width) if method.tuning is not None else None
        self._take(start)

    @property
    def warm(self) -> bool:
        """Whether the vectors of the batches are the last solution, from which the next solve starts as it is."""
        return self._start or (self.teams.direct and self.x.version == self._seen)

    @warm.setter
    def warm(self, warm: bool) -> None:
        """Take back what a checkpoint has kept."""
        self._start = warm

    def divide(self, bounds: Sequence[int]) -> None:
        """Give each team its frequencies: team ``q`` has ``bounds[q] ... bounds[q + 1] - 1``. Collective; ends tuning.

        Raises
        ------
        SolverError
            If a team is left without a frequency.
        """
        ends = tuple(int(k) for k in bounds)
        whole = len(ends) == self.teams.groups + 1 and not ends[0] and ends[-1] == self.frequencies.count
        if not whole or min(np.diff(ends)) < 1:
            raise SolverError(f"{self.name}: {self.frequencies.count} frequencies cannot be divided at {list(ends)}")
        self._tuner = None
        self._take(Division(ends))

    def _take(self, division: Division) -> None:
        """Make the batches of a setting, as far as they are not there."""
        self.bounds = division.bounds
        mine = range(self.bounds[self.teams.team], self.bounds[self.teams.team + 1])
        known = {batch.members: batch for batch in self.batches}
        self.batches = []
        for members in batches(mine, self.width):
            batch = known.get(members) or self.method.batch(self._systems, members)
            batch.use(members.start < division.better)
            self.batches.append(batch)
        self._seen, self._start = -1, False

    # ------------------------------------------------------------------------------------------- solving
    def solve(self) -> Status:
        """Solve for what ``b`` has now, from what ``x`` has. Collective.

        Returns
        -------
        Status
            ``residual`` and ``norm`` are those of the whole system; ``iterations`` and ``history`` those of the
            system of the plane that needed most, ``each`` those of all: 0, then real and imaginary part of 1, 2 ...
        """
        transform, columns, square = self._transform, self.columns, self._given()
        if square == 0.0:
            for batch in self.batches:
                batch.x.write(0.0)
        share = square / self.frequencies.shares
        self._solves += 1
        checked = self.check_next or (bool(self.check_every) and self._solves % self.check_every == 0)
        self.check_next = False
        found = [self._timed(batch, share, checked) for batch in self.batches]
        with transform.session():
            self._backward(columns.solution(transform))
        columns.deliver()
        self._seen, self._start = self.x.version, False
        status = self._judged(found, square)
        if self._tuner is not None and not self._tuner.done:
            self._tune(self._tuner)
        return status

    def verify(self) -> Status:
        """Return what the solution is by the residual ``b - A x`` of itself; see `Krylov.verify`. Collective."""
        square = self._given()
        for batch in self.batches:
            batch.measure()
        residual = sum(batch.residual() for batch in self.batches)
        if self.teams.groups > 1:
            residual = sum(self.context.comm.allgather(residual)[: self.teams.groups])
        return judge(np.array([[residual]]), np.array([square]), self.stop)

    def _given(self) -> float:
        """Let the batches have ``b``, and ``x`` unless they do; return ``b . b``."""
        transform, columns = self._transform, self.columns
        with transform.session():
            square = self._forward(columns.right_hand_side(transform), "b")
            if self.x.version != self._seen and not self._start:
                self._forward(columns.guess(transform), "x")
        return square

    def _timed(self, batch: Batch, share: float, checked: bool) -> Status:
        status, batch.seconds = Stopwatch().result(lambda: batch.solve(share, checked=checked))
        return status

    # ------------------------------------------------------------------------------------------ tuning
    def _tune(self, tuner: Tuner) -> None:
        """Keep the times of a solve; after enough of them, take the next setting. Collective."""
        teams, costs = np.zeros(self.teams.groups), np.zeros(self.frequencies.count)
        for batch in self.batches:
            teams[self.teams.team] += batch.seconds
            costs[batch.members.start : batch.members.stop] = batch.seconds / len(batch.members)
        self._timings.append((teams, costs))
        if len(self._timings) <= tuner.tuning.solves:
            return
        timed = [np.stack(found[1:]).min(axis=0) for found in zip(*self._timings, strict=True)]  # the first warms up
        self._timings.clear()
        every = self.context.comm.reduce(np.concatenate(timed), "max")
        self._take(tuner.observe(every[: teams.size].tolist(), every[teams.size :]))

    @property
    def tuned(self) -> bool:
        """Whether tuning has come to its end; also where there is none."""
        return self._tuner is None or self._tuner.done

    @property
    def trace(self) -> list[Trial]:
        """What tuning has tried so far; `describe` prints it."""
        return list(self._tuner.trials) if self._tuner is not None else []

    def describe(self) -> str:
        """Return what is solved where, and what tuning has tried."""
        f, lines = self.frequencies, [f"{self.name}: {self.size} cells, {self.frequencies.planes} planes"]
        lines += [
            f"  frequencies {batch.members.start}-{batch.members.stop - 1} of {f.count}: {int(batch.systems.sum())} "
            f"systems, {batch.how!r}" for batch in self.batches
        ]  # fmt: skip
        return "\n".join([*lines, describe_trials(self.trace)] if self.trace else lines)

    def _forward(self, values: Any, name: str) -> float:
        """Transform ``(columns, planes)`` into the vectors ``name`` of the batches; return the sum of squares.

        Where the matrix is singular, without the mean.
        """
        transform, teams = self._transform, self.teams
        count = len(values)
        chunk = transform.rows(self.frequencies.planes) or max(1, count)
        targets = [(batch, writable(getattr(batch, name), transform)) for batch in self.batches] if teams.direct else []
        whole = None if teams.direct else np.empty((count, self.frequencies.columns), self.b.scalar.numpy)
        sums = np.zeros(2)
        for first in range(0, count, chunk):
            some = slice(first, min(count, first + chunk))
            spectra = transform.forward(values[some])
            sums += transform.square(values[some]), float(spectra[:, 0].sum())
            for batch, target in targets:
                target[self._rows(some), : batch.width] = spectra[:, batch.columns]
            if whole is not None:
                whole[some] = transform.to_host(spectra)
        if whole is not None:
            self._arrived(teams.to_systems(whole, self.bounds), name)
        square, total = self.context.comm.reduce(sums, "sum")
        mean = total**2 * self.frequencies.planes / self.size if self.nullspace == "constant" else 0.0
        return float(max(square - mean, _FLOOR * square))

    def _rows(self, some: slice) -> Any:
        """Return the rows of the matrix that belong to some columns of cells, for arrays of the transform."""
        if self.teams.place is None:
            return some
        if self._order is None:
            self._order = self._transform.from_host(self.teams.place)
        return self._order[some]

    def _arrived(self, values: npt.NDArray[Any], name: str) -> None:
        """Give the batches their columns of what other ranks have sent."""
        first = self.batches[0].columns.start
        for batch in self.batches:
            at, target = batch.columns, writable(getattr(batch, name), self._transform)
            target[:, : batch.width] = self._transform.from_host(values[:, at.start - first : at.stop - first])

    def _backward(self, out: Any) -> None:
        """Transform the solutions of the batches into ``(columns, planes)``."""
        transform, teams, planes = self._transform, self.teams, self.frequencies.planes
        count, dtype = len(out), self.b.scalar.numpy
        sources = [(batch, readable(batch.x, transform)) for batch in self.batches]
        chunk = transform.rows(planes) or max(1, count)
        whole = None
        if not teams.direct:
            whole = teams.to_spectra(self._departing(sources), self.bounds)
        spectra = transform.zeros((min(chunk, max(1, count)), self.frequencies.columns), dtype)
        for first in range(0, count, chunk):
            some = slice(first, min(count, first + chunk))
            part = spectra[: some.stop - some.start]
            if whole is not None:
                part[...] = transform.from_host(whole[some])
            else:
                for batch, source in sources:
                    part[:, batch.columns] = source[self._rows(some), : batch.width]
            out[some] = transform.backward(part, planes)

    def _departing(self, sources: Sequence[tuple[Batch, Any]]) -> npt.NDArray[Any]:
        """Return the columns of this team's frequencies, on the host."""
        first, last = self.bounds[self.teams.team], self.bounds[self.teams.team + 1]
        values = np.zeros((self.matrix.rows.size, 2 * (last - first)), self.b.scalar.numpy)
        for batch, source in sources:
            at = slice(batch.columns.start - 2 * first, batch.columns.stop - 2 * first)
            values[:, at] = self._transform.to_host(source)[:, : batch.width]
        return values

    def _judged(self, found: Sequence[Status], square: float) -> Status:
        """Return what came of it: of all teams, where there are several."""
        residual = sum(batch.residual() for batch in self.batches)
        each = np.concatenate([status.each for status in found])
        worst = worst_of(found)
        if self.teams.groups > 1:
            said = self.context.comm.allgather((worst, residual, each))[: self.teams.groups]
            worst = worst_of([status for status, *_ in said])
            residual, each = sum(part for _, part, _ in said), np.concatenate([part for *_, part in said])
        return replace(worst, residual=sqrt(residual), norm=sqrt(square), each=each)

    # ------------------------------------------------------------------------------------------- reports
    @property
    def chains(self) -> list[Chain]:
        """Every chain of a solve on this rank; transforms stand between them."""
        columns = self.columns
        inner = [chain for batch in self.batches for chain in batch.chains]
        return [chain for chain in (columns.gather, columns.gather_x, *inner, columns.scatter) if chain is not None]
