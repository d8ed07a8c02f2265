"""Which team solves which frequencies, and with which preconditioner: found out in the first solves.

Two choices that depend on the machine are made by measuring, one after the other:

- **balance**: frequencies move from teams that are slow to teams that are fast, until
  ``(max - min) / mean`` of their seconds is small,
- **preconditioner**: all batches begin with a cheap one; the batch of the lowest frequencies gets a better one, then
  the next batch, each followed by balance, for as long as the time falls. The best of all is kept.

Everything is decided from times that all ranks know, so that all decide the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import Literal

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError
from fluxloom.linalg.arguments import real, whole
from fluxloom.linalg.direct.extruded.frequencies import batches
from fluxloom.linalg.operators import Preconditioner
from fluxloom.linalg.precond.approximate_inverse import ApproximateInverse
from fluxloom.perf.tuner import Search

__all__ = ["Division", "ExtrudedTuning", "Trial", "Tuner", "balanced", "describe_trials", "imbalance"]

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class ExtrudedTuning:
    """How to tune.

    Attributes
    ----------
    better
        The better preconditioner.
    tolerance
        Imbalance of the teams that is accepted.
    rounds
        Divisions that are tried at most for one choice of preconditioners.
    patience
        Batches in a row that may get the better preconditioner without a gain, before it ends: times scatter, and of
        several teams only the slowest counts.
    solves
        That are timed for each setting, the fastest of which counts; one more before them is not.

    Raises
    ------
    SolverError
        If a number is out of range.
    """

    better: Preconditioner = field(default_factory=ApproximateInverse)
    tolerance: float = 0.1
    rounds: int = 4
    solves: int = 2
    patience: int = 2

    def __post_init__(self) -> None:
        if not hasattr(self.better, "build"):
            raise SolverError(f"ExtrudedTuning: better is a recipe such as ApproximateInverse(), not {self.better!r}")
        real(self.tolerance, "ExtrudedTuning: tolerance", "a positive number", 0.0)
        for name in ("rounds", "solves", "patience"):
            whole(getattr(self, name), f"ExtrudedTuning: {name}", 1)


@dataclass(frozen=True)
class Division:
    """A setting.

    Attributes
    ----------
    bounds : (teams + 1,)
        First frequency of each team, and their number.
    better
        Batches that begin below this frequency have the better preconditioner.
    """

    bounds: tuple[int, ...]
    better: int = 0


@dataclass(frozen=True)
class Trial:
    """What was measured with a setting, and what was done then.

    Attributes
    ----------
    division
        The setting.
    teams
        Seconds of each team.
    then
        ``"balance"``, ``"preconditioner"``, or ``"end"``.
    """

    division: Division
    teams: tuple[float, ...]
    then: Literal["balance", "preconditioner", "end"]

    @property
    def seconds(self) -> float:
        """Of the slowest team."""
        return max(self.teams)

    @property
    def imbalance(self) -> float:
        """Of the teams, see `imbalance`."""
        return imbalance(self.teams)


def imbalance(seconds: Sequence[float]) -> float:
    """Return ``(max - min) / mean``."""
    mean = float(np.mean(seconds))
    return (max(seconds) - min(seconds)) / mean if mean > 0 else 0.0


def balanced(costs: npt.ArrayLike, bounds: Sequence[int], teams: Sequence[float]) -> tuple[int, ...]:
    """Return bounds with which all teams take the same time, as near as whole frequencies allow.

    Parameters
    ----------
    costs : (frequencies,)
        Seconds of each frequency with the team that has it now.
    bounds, teams
        First frequency of each team and their number, and seconds of each.

    Notes
    -----
    A team's own speed stays with it: team ``q`` takes ``w_q`` times what a frequency costs on the average of the teams.
    Only neighbouring frequencies tell the speeds apart: the cost is taken to change linearly across a bound, and jumps
    by the ratio of the speeds.
    """
    given, count = np.asarray(costs, dtype=np.float64), bounds[-1]
    speed = _speeds(given, bounds)
    plain = given / np.repeat(speed, np.diff(bounds))
    low, high = 0.0, float(sum(teams)) + 1e-300
    for _ in range(60):  # the least time with which teams, one after the other, get through all frequencies
        limit = 0.5 * (low + high)
        if _fill(plain, speed, limit)[-1] >= count:
            high = limit
        else:
            low = limit
    ends = _fill(plain, speed, high)
    groups = len(bounds) - 1
    found = [0]
    for q in range(groups):
        found.append(int(np.clip(ends[q], found[-1] + 1, count - (groups - 1 - q))))
    found[-1] = count
    return tuple(found)


def _speeds(costs: Array, bounds: Sequence[int]) -> Array:
    """Return the seconds of each team, relative to the first, for one frequency: jumps of the cost at the bounds."""
    found = np.ones(len(bounds) - 1)
    for q, at in enumerate(bounds[1:-1], start=1):
        before, after = costs[at - 1], costs[at]
        if at - 1 > bounds[q - 1] + 1:  # continue the line of the team before
            before = max(2 * costs[at - 1] - costs[at - 2], 0.25 * costs[at - 1])
        found[q] = found[q - 1] * (after / before if before > 0 and after > 0 else 1.0)
    return found


def _fill(plain: Array, speed: Array, limit: float) -> list[int]:
    """Return where each team ends if none takes longer than ``limit``, to the nearest frequency at the last one."""
    total, at, ends = np.concatenate([[0.0], np.cumsum(plain)]), 0, []
    for weight in speed:
        at = int(np.searchsorted(total, total[at] + limit / weight * (1 + 1e-12), side="right")) - 1
        ends.append(at)
    return ends


class Tuner:
    """Chooses settings one after the other; the same on every rank as long as all are told the same.

    Parameters
    ----------
    tuning
        How.
    division
        The first setting.
    width
        Systems of a batch.
    """

    def __init__(self, tuning: ExtrudedTuning, division: Division, width: int) -> None:
        self.tuning, self.width = tuning, width
        self.trials: list[Trial] = []
        self._costs: npt.ArrayLike = ()
        self._search = Search(self._steps(division))

    @property
    def division(self) -> Division:
        """The setting to solve with: when `done`, the best one of all."""
        return self._search.next()

    @property
    def done(self) -> bool:
        """Whether nothing is left to be tried."""
        return self._search.finished

    def observe(self, teams: Sequence[float], costs: npt.ArrayLike) -> Division:
        """Take the seconds of each team and of each frequency with the present setting; return the next one."""
        now = Trial(self.division, tuple(float(t) for t in teams), "end")
        self._costs = costs
        self.trials.append(now)
        self._search.observe(now.seconds)
        return self.division

    def _steps(self, division: Division) -> Iterator[Division]:
        """Yield the settings: for one choice of preconditioners after the other those that balance the teams."""
        following: Division | None = division
        misses, best = 0, inf
        while following is not None and misses < self.tuning.patience:
            self._goes_on("preconditioner")
            begin, wanted = len(self.trials), following
            while wanted is not None:
                yield wanted
                wanted = self._rebalanced(len(self.trials) - begin)
            here = min(self.trials[begin:], key=lambda trial: trial.seconds)
            misses = 0 if here.seconds < best else misses + 1
            best = min(best, here.seconds)
            following = self._following(here.division)

    def _goes_on(self, then: Literal["balance", "preconditioner"]) -> None:
        """Note what is done after the last trial."""
        if self.trials:
            self.trials[-1] = replace(self.trials[-1], then=then)

    def _rebalanced(self, tried: int) -> Division | None:
        """Return a better division of the frequencies, if there is one that was not tried."""
        now = self.trials[-1]
        if len(now.teams) < 2 or now.imbalance <= self.tuning.tolerance or tried >= self.tuning.rounds:
            return None
        wanted = Division(balanced(self._costs, now.division.bounds, now.teams), now.division.better)
        if any(trial.division == wanted for trial in self.trials):
            return None
        self._goes_on("balance")
        return wanted

    def _following(self, division: Division) -> Division | None:
        """Return the setting with the better preconditioner for one more batch."""
        for first, last in zip(division.bounds[:-1], division.bounds[1:], strict=True):
            for members in batches(range(first, last), self.width):
                if members.start >= division.better:
                    return Division(division.bounds, members.stop)
        return None


def describe_trials(trials: Sequence[Trial]) -> str:
    """Return a table of what was tried."""
    lines = ["seconds    imbalance  better  frequencies of the teams"]
    for trial in trials:
        spans = " ".join(f"{a}-{b - 1}" for a, b in zip(trial.division.bounds[:-1], trial.division.bounds[1:],
                                                        strict=True))  # fmt: skip
        lines.append(
            f"{trial.seconds:<10.4g} {trial.imbalance:<10.2f} {trial.division.better:<7d} {spans}  -> {trial.then}"
        )
    return "\n".join(lines)
