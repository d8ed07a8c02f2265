"""What the messages of a chain cost: beside its loops, without them, and by themselves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fluxloom.dsl.run.chain import Chain
from fluxloom_lab.bench.rounds import race

__all__ = ["ExchangeCost", "measure_exchanges"]


Run = Callable[[], object]


@dataclass(frozen=True)
class ExchangeCost:
    """The exchanges of one call of a chain, all ranks together; times are those of the slowest rank.

    Attributes
    ----------
    beside
        Seconds of a call with its exchanges.
    without
        Seconds of the same loops, cut in the same way, without exchanges.
    alone
        Seconds of the exchanges, one after the other.
    exchanges
        How many there are.
    nbytes, most_bytes
        Bytes that all ranks send, and that the rank with most sends.
    neighbours
        Of the rank with most.
    transport
        How the messages travel.
    """

    beside: float
    without: float
    alone: float
    exchanges: int
    nbytes: int
    most_bytes: int
    neighbours: int
    transport: str

    @property
    def hidden(self) -> float | None:
        """Part of the exchanges that the loops hide: 1 for all, below 0 where overlapping does harm; None: no time."""
        return 1.0 - (self.beside - self.without) / self.alone if self.alone else None

    @property
    def share(self) -> float | None:
        """Part of a call that is spent for exchanges, because they are not hidden."""
        return (self.beside - self.without) / self.beside if self.beside else None

    def record(self) -> dict[str, Any]:
        """Return the numbers for a record."""
        return {
            "exchanges": self.exchanges, "halo_bytes": self.nbytes, "halo_bytes_most": self.most_bytes,
            "neighbours_most": self.neighbours, "transport": self.transport,
            "with_exchange_ms": 1e3 * self.beside, "without_exchange_ms": 1e3 * self.without,
            "exchange_alone_ms": 1e3 * self.alone, "exchange_hidden": self.hidden, "exchange_share": self.share,
        }  # fmt: skip


def measure_exchanges(chain: Chain) -> ExchangeCost | None:
    """Measure the form of a chain that ran most often. Collective.

    The values that the chain works on are not those of a run afterwards: halos were not brought up to date.

    Returns
    -------
    ExchangeCost
        None when the chain has not run yet, or some rank runs its loops as Python.
    """
    context, comm = chain.context, chain.context.comm
    found = [s for s in chain.sequences if s.counts.size]
    if not all(comm.allgather(bool(found))):
        return None
    sequence = max(found, key=lambda s: int(s.counts.sum()))
    exchanges = sequence.exchanges
    without = sequence.without_exchanges()
    alone = context.device.sequencer([item for exchange in exchanges for item in exchange.items])
    with_all, bare, only = race(context, [sequence, without, alone])
    sent = comm.allgather((sum(e.bytes_sent for e in exchanges), [r for e in exchanges for r in e.neighbours]))
    names = comm.allgather([exchange.transport.name for exchange in exchanges])
    return ExchangeCost(
        beside=with_all,
        without=bare,
        alone=only if exchanges else 0.0,
        exchanges=len(exchanges),
        nbytes=sum(nbytes for nbytes, _ in sent),
        most_bytes=max(nbytes for nbytes, _ in sent),
        neighbours=max(len(set(ranks)) for _, ranks in sent),
        transport="/".join(dict.fromkeys(name for row in names for name in row)),
    )
