"""Compressible flow on several GPUs: the ways of its messages, and packing on the device beside that on the host."""

from __future__ import annotations

import gc
from typing import Any

from fluxloom.dsl.context import Context
from fluxloom.solvers.compressible.flow import CompressibleFlow
from fluxloom_lab.bench.base import Tell
from fluxloom_lab.bench.exchange_cost import measure_exchanges
from fluxloom_lab.bench.flows.compressible_domain import CompressibleOptions, Domain, flow_on
from fluxloom_lab.bench.host_packing import HostPacking
from fluxloom_lab.bench.rounds import measure_rounds, race

__all__ = ["compare_transports"]


def compare_transports(
    options: CompressibleOptions, device: object, domain: Domain, model: str, iterations: int, rounds: int, tell: Tell
) -> list[dict[str, Any]]:
    """Return a row for each way in which messages between the ranks of this run can travel. Collective.

    ``exchange_alone_ms`` is the time of all exchanges of an iteration one after the other, and, in the row of the
    host, ``packed_on_host_ms`` that of the same exchanges with `HostPacking`.
    """
    rows = []
    for name in options.context(device=device, transport="auto").links.candidates:
        gc.collect()
        tell(f"transport {name}")
        context = options.context(device=device, transport=name)
        rows.append(_row(name, context, flow_on(context, domain, model, options.numerics), iterations, rounds, tell))
    return rows


def _row(
    name: str, context: Context, flow: CompressibleFlow, iterations: int, rounds: int, tell: Tell
) -> dict[str, Any]:
    stages = len(flow.scheme.time.stages)
    flow.iterate(iterations)
    context.synchronize()
    found = measure_rounds(
        context, flow.iterate, flow.iteration.reports, iterations, rounds, tell,
        lambda seconds: f"{1e3 * seconds / (iterations * stages):.4g} ms a stage",
    )  # fmt: skip
    cost = measure_exchanges(flow.iteration)
    row: dict[str, Any] = {"name": name, "ms_per_stage": 1e3 * found.seconds / (iterations * stages)}
    if cost is not None:
        row |= {
            "exchange_alone_ms": 1e3 * cost.alone / stages, "exchange_hidden": cost.hidden,
            "exchange_share": cost.share, "halo_bytes": cost.nbytes // stages,
        }  # fmt: skip
    if name == "host":
        packed = _packed_on_host(context, flow)
        row["packed_on_host_ms"] = None if packed is None else 1e3 * packed / stages
    return row


def _packed_on_host(context: Context, flow: CompressibleFlow) -> float | None:
    """Return the seconds of all exchanges of an iteration when the host packs them. Collective."""
    found = [s for s in flow.iteration.sequences if s.counts.size]
    if not all(context.comm.allgather(bool(found))):
        return None
    sequence = max(found, key=lambda s: int(s.counts.sum()))
    packings = [HostPacking(exchange) for exchange in sequence.exchanges]

    def run() -> None:
        for packing in packings:
            packing()

    return race(context, [run])[0]
