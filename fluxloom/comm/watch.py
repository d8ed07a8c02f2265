"""Ranks that wait for long ask each other, through rank 0, whether anything can still come.

A rank that has waited for a while tells rank 0 for what, and what it has done so far. Once all ranks wait (or have
ended), rank 0 asks again; where each is still in the same wait some time later, nothing will come: all get the same
words: where the ranks differ. A rank that computes does not answer, and nobody blames it; one that waits for its device
does, but it is blamed only for what it has done. Long waits are told.
"""

from __future__ import annotations

import pickle
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from fluxloom.comm.account import Account, Story, disagreement, named

__all__ = ["COMPUTES", "DIFFERS", "RESTS", "WAITS", "Watch"]

WAITS, RESTS, COMPUTES, DIFFERS = "waits", "rests", "computes", "differs"
"""A wait that is told when it is long; one that may be long; one for the rank's own device, told too; no wait, but a
difference was found."""

_REPORT, _ANSWER = 32001, 32002
"""Tags of messages to rank 0 and of those that it sends."""

_SHARE = 8.0
"""Part of the patience after which a rank reports, and for which nothing must have come when it does so again."""

_RATE = 5e6
"""Bytes a second that a message under way takes at the least; it is waited for as long."""


class _Report(NamedTuple):
    """What a rank tells: which wait of its own, in answer to which question, how and for what, and its acts."""

    wait: int
    question: int
    kind: str
    what: str
    story: Story


class Watch:
    """The waits of one rank, and on rank 0 what all others say of theirs.

    Parameters
    ----------
    mpi, link
        ``mpi4py.MPI``, and a communicator of which two tags are not used otherwise.
    account
        The acts of this rank.
    patience
        Seconds after which a wait is told.
    """

    def __init__(self, mpi: Any, link: Any, account: Account, patience: float) -> None:
        self._mpi, self._link, self._account, self.patience = mpi, link, account, patience
        self._rank, self._size = link.Get_rank(), link.Get_size()
        self._wait = self._question = 0
        self._said = (-1, -1)
        self._heard, self._since, self._asked, self._tell = False, 0.0, 0.0, 0.0
        self._table: dict[int, _Report] = {}
        self._before: dict[int, int] = {}
        self._sent: list[Any] = []

    def pause(self, nbytes: int = 0) -> float:
        """Return the seconds after which a rank that waits for so many bytes reports."""
        return self.patience / _SHARE + nbytes / _RATE

    def begin(self, since: float) -> None:
        """Begin to report of a wait that began at a time of ``time.monotonic``."""
        self._wait += 1
        self._heard, self._since, self._asked, self._tell = False, since, time.monotonic(), self.patience

    def look(self, kind: str, what: Callable[[], str], nbytes: int = 0) -> str:
        """Tell and hear what there is; return why nothing will come, in the same words on all ranks, or nothing."""
        now = time.monotonic()
        self._sent = [request for request in self._sent if not request.Test()]
        verdict = (self._answer if self._rank else self._judge)(kind, what, now, nbytes)
        if kind in (WAITS, COMPUTES) and not verdict and now - self._since > self._tell:
            self._tell *= 2.0
            self._say(what(), now - self._since)
        return verdict

    # ------------------------------------------------------------------------------ ranks above 0
    def _answer(self, kind: str, what: Callable[[], str], now: float, nbytes: int) -> str:
        while self._link.Iprobe(source=0, tag=_ANSWER):
            question, verdict = pickle.loads(self._receive(0, _ANSWER))
            self._heard = True
            if verdict:
                return verdict
            if question > self._question:
                self._question, self._asked = question, now
        mine = (self._wait, self._question)
        if self._said != mine and (self._said[0] != self._wait or now - self._asked >= self.pause(nbytes)):
            self._said = mine
            self._send(0, _REPORT, _Report(*mine, kind, what(), self._account.story()))
        return ""

    # ------------------------------------------------------------------------------------- rank 0
    def _judge(self, kind: str, what: Callable[[], str], now: float, nbytes: int) -> str:
        status = self._mpi.Status()
        while self._link.Iprobe(tag=_REPORT, status=status):
            source = status.Get_source()
            self._table[source] = _Report(*pickle.loads(self._receive(source, _REPORT)))
            self._send(source, _ANSWER, (self._question, ""))
        if len(self._table) < self._size - 1:
            return ""
        if self._question and (self._missing() or now - self._asked < self.pause(nbytes)):
            return ""
        waits = {0: self._wait, **{rank: report.wait for rank, report in self._table.items()}}
        if self._question and waits == self._before:
            mine = _Report(self._wait, self._question, kind, what(), self._account.story())
            reports = {0: mine, **dict(sorted(self._table.items()))}
            if verdict := _verdict(reports, patient=now - self._since < self.patience):
                self._tell_all(verdict)
                self._table, self._before = {}, {}
                return verdict
        self._before, self._asked = waits, now
        self._question += 1
        self._tell_all("")
        return ""

    def _tell_all(self, verdict: str) -> None:
        for rank in range(1, self._size):
            self._send(rank, _ANSWER, (self._question, verdict))

    def _missing(self) -> list[int]:
        """Return the ranks that have not answered the last question."""
        reports = self._table
        return [r for r in range(1, self._size) if r not in reports or reports[r].question != self._question]

    def _say(self, what: str, seconds: float) -> None:
        """Print that a wait is long: rank 0 does, or rank 1 where rank 0 is away."""
        missing = self._missing() if self._rank == 0 else [0]
        if self._rank > 1 or (self._rank == 1 and self._heard):
            return
        others = {report.what: rank for rank, report in self._table.items() if report.what != what}
        away = (f"{named(missing)} {'has' if len(missing) == 1 else 'have'} come to no message meanwhile: still "
                "compiling or computing, or stopped") if missing else "so do all others"  # fmt: skip
        if others and not missing:
            away = "; ".join(f"rank {rank}: {text}" for text, rank in others.items())
        sys.stderr.write(
            f"rank {self._rank} of {self._size} has waited for {seconds:.0f} s, {what}, in: {self._account.last}; "
            f"{away}. It waits on\n"
        )
        sys.stderr.flush()

    # ----------------------------------------------------------------------------------- messages
    def _send(self, rank: int, tag: int, value: Any) -> None:
        data = pickle.dumps(value)
        self._sent.append(self._link.Isend([data, len(data), self._mpi.BYTE], rank, tag))

    def _receive(self, rank: int, tag: int) -> bytearray:
        status = self._mpi.Status()
        self._link.Probe(rank, tag, status)
        data = bytearray(status.Get_count(self._mpi.BYTE))
        self._link.Recv([data, len(data), self._mpi.BYTE], rank, tag)
        return data


def _verdict(reports: dict[int, _Report], *, patient: bool) -> str:
    """Return why ranks that all wait, or have ended, cannot go on; empty: they all wait for the same, or may go on.

    A rank that waits for its device goes on by itself unless that needs messages of the others. So ranks differ where
    they have done different things, and, without patience, where one has ended behind which such a rank is.
    """
    doing = {rank: report.what for rank, report in reports.items()}
    stories = {rank: report.story for rank, report in reports.items()}
    for report in reports.values():
        if report.kind == DIFFERS:
            return disagreement(stories, doing, until=report.story[0]) or report.what
    if any(report.kind == COMPUTES for report in reports.values()):
        some = reports.values() if patient else [r for r in reports.values() if r.kind == COMPUTES]
        return disagreement(stories, doing, until=min(report.story[0] for report in some))
    if text := disagreement(stories, doing):
        return text
    if len(set(doing.values())) == 1:
        return ""
    groups: dict[str, list[int]] = {}
    for rank, text in doing.items():
        groups.setdefault(text, []).append(rank)
    return f"no rank can go on: {'; '.join(f'{named(ranks)}: {text}' for text, ranks in groups.items())}"
