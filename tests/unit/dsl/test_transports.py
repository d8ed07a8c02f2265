"""Which way messages go, and that all ranks take it alike."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.comm.base import Comm
from fluxloom.comm.threads import ThreadsComm
from fluxloom.core.errors import CommError
from fluxloom.dsl.declare import transports
from fluxloom.dsl.declare.links import Links
from fluxloom.dsl.ranks.decompose import Link
from fluxloom.dsl.ranks.exchange import Exchange


class Direct(transports.HostTransport):
    """Stands for a way between GPUs only."""

    name = "mpi"


def test_ranks_with_and_without_a_gpu_agree_on_channels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two ranks that reach each other directly, and a third that does not: exchange after exchange, right values."""
    monkeypatch.setattr(transports, "MpiTransport", Direct)
    n = 30

    def rank(comm: Comm) -> list[Any]:
        ctx = fl.Context("cpu", threads=1, comm=comm)
        ctx.links.gpus, ctx.links.candidates = [0, 1], ("mpi",)
        own = np.arange(10 * comm.rank, 10 * comm.rank + 10)
        parts = fl.decompose(
            comm, {"nodes": n, "edges": n}, {"ends": Link("edges", "nodes", np.stack([own, (own + 1) % n], axis=1))},
            on="nodes", method="block",
        ).parts  # fmt: skip
        nodes = ctx.set(parts["nodes"], "nodes")
        part = parts["nodes"]
        found = []
        for k in range(3):
            u = ctx.dat(nodes, 100.0 * k + part.numbers[: part.owned], f"u{k}")
            exchange = Exchange(ctx, [u])
            exchange()
            halo = u.buffer.host().view(np.float64)[part.owned : part.stored]
            assert (halo == 100.0 * k + part.numbers[part.owned :]).all()
            found.append(exchange.transport.name)
        return found

    names = fl.run_threads(3, rank)
    assert names == [["mpi+host"] * 3, ["mpi+host"] * 3, ["host"] * 3]


@pytest.mark.parametrize("name", ["nccl", "mpi", "peer"])
def test_ways_between_gpus_need_gpus(name: str) -> None:
    """What was asked for is not quietly replaced; one GPU alone sends through the host, as nobody has another."""
    def rank(comm: Comm) -> str:
        with pytest.raises(CommError) as caught:
            _ = fl.Context("cpu", threads=1, comm=comm, transport=name).links
        return str(caught.value)

    message = f"transport {name!r} carries messages between GPUs, but no rank has one: take auto or host"
    assert fl.run_threads(2, rank) == [message] * 2
    links = object.__new__(Links)
    links._transport, links.gpus = fl.Context("cpu", threads=1, transport=name).transport, [0]
    assert links._wanted(("host",)) == ("host",)


@pytest.mark.parametrize(("transport", "waits"), [("nccl", "watched"), ("mpi", None), ("host", None)])
def test_waits_for_gpus_that_talk_are_the_communicators(
    transport: str, waits: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On GPUs alone, and where their messages bring nothing of what was done."""
    monkeypatch.setattr("fluxloom.dsl.declare.links._ways", lambda _device, _comm: ("host", "mpi", "nccl"))
    monkeypatch.setattr(ThreadsComm, "devices_talk", lambda _comm: "watched")

    def rank(comm: Comm) -> list[Any]:
        context: Any = fl.Context("cpu", threads=1, comm=comm, transport=transport)
        name = "cpu" if comm.rank == 2 else "cuda"
        context.device = SimpleNamespace(name=name, identity=f"here {comm.rank}", waits=None)
        assert Links(context.device, comm, transport).candidates == (transport,)
        return context.device.waits

    assert fl.run_threads(3, rank) == [waits, waits, None]


def test_gpus_that_cannot_open_each_other_say_why() -> None:
    """GPUs of two machines, or one GPU for two ranks: peer is refused with the reason, auto goes without."""

    def rank(comm: Comm, transport: str, where: str) -> str:
        context = fl.Context("cpu", threads=1, comm=comm)
        links = Links(context.device, comm, "auto")
        links.gpus, links._transport = [0, 1], transport
        assert not links._opens_peers([f"{where}{k} 0000:0{k}" for k in range(2)])
        if transport == "auto":
            return str(links._wanted(("host", "nccl")))
        with pytest.raises(CommError) as caught:
            links._wanted(("host", "nccl"))
        return str(caught.value)

    assert fl.run_threads(2, rank, "auto", "box") == ["('host', 'nccl')"] * 2
    assert set(fl.run_threads(2, rank, "peer", "box")) == {
        "transport 'peer' is not there on all GPU ranks (the GPUs are not different ones of one machine); there are: "
        "host, nccl"
    }
