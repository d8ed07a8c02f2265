"""The benchmark of data structures for finite elements: Poisson's equation on quads of order 1 to 4."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import median
from types import MappingProxyType
from typing import Any, TypeVar

from fluxloom.cli.runs.summary import LoopRow, loop_rows
from fluxloom.core.errors import CaseError, did_you_mean
from fluxloom.device.bandwidth import meter_for
from fluxloom.dsl.context import Context
from fluxloom.fe.cells.dofs import lagrange_dofs
from fluxloom.fe.poisson import ASSEMBLY, Integration
from fluxloom.mesh.generate.boxes import box2d
from fluxloom_lab.bench.base import Record, Tell, count_from_text, count_gpus, device_name
from fluxloom_lab.bench.linear.fem_formats import ALL_FORMATS, Problem, assembly_rows, measure_format
from fluxloom_lab.bench.options import Scheduled, iterations_option, rounds_option
from fluxloom_lab.options import option
from fluxloom_lab.studies.fem_traffic import traffic_rows

__all__ = ["FemBench"]

ROUNDS, ITERATIONS = 5, 50
DOFS, DOFS_GPU = "250k", "4M"
_MOST_DOFS = 2**31

PRECISIONS: Mapping[str, str] = MappingProxyType(
    {"": "float64", "double": "float64", "float64": "float64", "single": "float32", "float32": "float32"}
)

Word = TypeVar("Word")


@dataclass(frozen=True)
class _Study:
    """What is measured."""

    orders: tuple[int, ...]
    formats: tuple[str, ...]
    letters: tuple[Integration, ...]
    dofs: int
    dtype: str


@dataclass(frozen=True)
class FemOptions(Scheduled):
    """Options of the benchmark ``fem``."""

    order: str = option("", metavar="P,...", help="Orders of elements: 1,2,3,4; all by default.")
    dofs: str = option("", metavar="N", help="Degrees of freedom: 250k, 4M.")
    formats: str = option("", metavar="NAMES", help="local, matrix_free, csr, ell, sliced, lazy; all by default.")
    integration: str = option("", metavar="A,...", help="Orders of integration: A (the default), B and C.")
    precision: str = option("", metavar="TYPE", help="Of values: double or single.")
    iterations: int = iterations_option()
    rounds: int = rounds_option()
    strategies: bool = option(False, help="Compare all strategies too.")


class FemBench:
    """Assembly, products and iterations of conjugate gradients with local, global and no matrices.

    ``-div grad u = f`` on a perturbed mesh of quads of the unit square, values prescribed all round, about as many
    degrees of freedom for each order. Products of all formats are compared with those of the first one; all are timed
    with the bytes of their own loops. See `fluxloom_lab.studies.fem_traffic` for the ratios of the study.
    """

    title = "Finite elements: assembly, products and iterations of every format and order"
    options = FemOptions

    def run(self, options: FemOptions, tell: Tell) -> Record:
        """Measure."""
        context = options.context()
        if not context.device.native:
            raise CaseError(f"the device {context.device.name} runs kernels as Python: there is nothing to time")
        study = _study(options, context)
        meter = meter_for(context.device, context.threads)
        copies = [meter.measure(3).copy_gbs]
        found: dict[str, list[dict[str, Any]]] = {"formats": [], "assembly": [], "traffic": []}
        sizes: list[dict[str, int]] = []
        loops: list[LoopRow] = []
        for order in study.orders:
            problem = _problem(study, order, options)
            sizes.append({"order": order, "dofs": problem.dofs.size, "cells": len(problem.dofs.cells)})
            tell(f"order {order}: {problem.dofs.size:,} degrees of freedom, {len(problem.dofs.cells):,} cells")
            loops += _order(problem, study, copies, found, tell, options.strategies)
            copies.append(meter.measure(3).copy_gbs)
        products = [row["product_ms"] for row in found["formats"]]
        return Record(
            case="fem", model="poisson, quads", device=context.device.name, device_name=device_name(context),
            precision=study.dtype, sizes={"n": max(row["dofs"] for row in sizes)}, copy_gbs=median(copies),
            seconds=1e-3 * sum(products), gpus=count_gpus(context),
            metrics={"threads": context.threads, "orders": sizes, **found, "speedups": _speedups(found)},
            loops=loops, command=options.command,
        )  # fmt: skip


def _order(
    problem: Problem, study: _Study, copies: list[float], found: dict[str, list[dict[str, Any]]], tell: Tell,
    strategies: bool,
) -> list[LoopRow]:  # fmt: skip
    """Measure the formats of one order; the rows go into ``found``, those of the loops are returned."""
    products, values = {}, None
    rows: list[LoopRow] = []
    for form in study.formats:
        assembly = assembly_rows(problem, form, study.letters, strategies)
        trial = measure_format(problem, form, copies[-1], values)
        values = trial.values if values is None else values
        products[form] = trial.product
        found["assembly"] += assembly
        found["formats"].append(trial.row)
        rows += loop_rows([loop.report() for loop in trial.product], copies[-1])
        tell(_line(trial.row, assembly))
    found["traffic"] += traffic_rows(problem.dofs.element.order, products)
    return rows


def _problem(study: _Study, order: int, options: FemOptions) -> Problem:
    """Return the problem of one order: as many cells a side as give about the wanted degrees of freedom."""
    side = max(1, round((sqrt(study.dofs) - 1.0) / order))
    data = box2d(side, side, perturb=0.2)

    def context() -> Context:
        return options.context(schedule=options.schedule, tuning=False)

    rounds, iterations = options.rounds or ROUNDS, options.iterations or ITERATIONS
    return Problem(data, lagrange_dofs(data, order), study.dtype, context, rounds, iterations)


def _line(row: dict[str, Any], assembly: Sequence[dict[str, Any]]) -> str:
    """Return a line of progress."""
    times = ", ".join(f"{item['integration']} {item['strategy']} {item['ms']:.4g}" for item in assembly)
    rates = ", ".join(
        f"{name} {row[f'{name}_iterations_per_second']:.4g}/s"
        for name in ("jacobi", "ssor")
        if f"{name}_iterations_per_second" in row
    )
    made = f"assembly {times} ms; " if times else ""
    return f"  {row['format']}: {made}product {row['product_ms']:.4g} ms, {row['product_gbs']:.3g} GB/s; {rates}"


def _speedups(found: Mapping[str, list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Return how much faster each format is than CSR of the same order: its product, an iteration, its assembly.

    These are ratios of the fastest rounds, which other programs on the machine disturb least.
    """
    fastest: dict[tuple[int, str], float] = {}
    for row in found["assembly"]:
        key = (row["order"], row["format"])
        fastest[key] = min(row["best_ms"], fastest.get(key, row["best_ms"]))
    rows: list[dict[str, Any]] = []
    base = {row["order"]: row for row in found["formats"] if row["format"] == "csr"}
    for row in found["formats"]:
        csr, rate = base.get(row["order"]), "jacobi_iterations_per_second_best"
        if csr is None or csr is row:
            continue
        order, form = row["order"], row["format"]
        made = fastest.get((order, form))
        rows.append({
            "order": order, "over_csr": form, "product": csr["product_best_ms"] / row["product_best_ms"],
            "iterations": row[rate] / csr[rate],
            "assembly": fastest[(order, "csr")] / made if made is not None else None,
        })  # fmt: skip
    return rows


def _study(options: FemOptions, context: Context) -> _Study:
    """Return what the options ask for.

    Raises
    ------
    CaseError
        Naming the option and what it allows.
    """
    if options.precision not in PRECISIONS:
        known = ", ".join(name for name in PRECISIONS if name)
        hint = did_you_mean(options.precision, PRECISIONS)
        raise CaseError(f"--precision {options.precision!r}{hint} (allowed: {known})")
    text = options.dofs or (DOFS_GPU if count_gpus(context) else DOFS)
    dofs = count_from_text(text)
    if not 4 <= dofs < _MOST_DOFS:
        raise CaseError(f"--dofs {text!r}: give a number from 4 to 2G, as 250k or 4M")
    orders = _words("order", options.order, {str(p): p for p in (1, 2, 3, 4)})
    formats = _words("formats", options.formats, {name: name for name in ALL_FORMATS})
    letters: dict[str, Integration] = {"A": "A", "B": "B", "C": "C"}
    assert set(letters) == set(ASSEMBLY)
    chosen = _words("integration", options.integration or "A", letters, str.upper)
    return _Study(orders, formats, chosen, dofs, PRECISIONS[options.precision])


def _words(
    option: str, text: str, known: Mapping[str, Word], normal: Callable[[str], str] = str.lower
) -> tuple[Word, ...]:
    """Return what the words of a list stand for; all for an empty one."""
    if not text:
        return tuple(known.values())
    words = [normal(part.strip()) for part in text.split(",")]
    for word in words:
        if word not in known:
            raise CaseError(f"--{option} {text!r}{did_you_mean(word, known)} (allowed: {', '.join(known)})")
    return tuple(known[word] for word in dict.fromkeys(words))
