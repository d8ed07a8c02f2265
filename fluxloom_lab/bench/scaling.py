"""The scaling benchmark: Airfoil on more and more ranks, with a mesh that stays (strong) or grows with them (weak)."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Any

from fluxloom.cases.files.case import schedule_text
from fluxloom.core.errors import CaseError
from fluxloom.machine.ranks import RankSpec, parse, require_cores, start
from fluxloom.mesh.ranks.distribute import Partition
from fluxloom.run.results.files import prepare_file
from fluxloom_lab.bench.base import Record, Tell, cells_from_text, shape_of
from fluxloom_lab.bench.options import (
    Laid,
    Scheduled,
    fused_option,
    iterations_option,
    partition_option,
    rounds_option,
    transport_option,
)
from fluxloom_lab.bench.scaling_plot import draw_scaling
from fluxloom_lab.options import option

__all__ = ["Point", "ScalingBench", "points_of", "read_points", "strong_rows", "weak_rows"]

_RANKS, _STRONG = "1,2,4", "720k"
_SAME_LOAD = 0.02
"""Part by which the cells a rank of a weak series may differ, as the sides of a mesh are whole numbers."""

Row = dict[str, Any]


@dataclass(frozen=True)
class Point:
    """One measurement.

    Attributes
    ----------
    device, device_name
        What it ran on.
    ranks, cells
        How many.
    milliseconds
        Of an iteration.
    more
        Other numbers for the record: transport, bytes, share of the time that messages take ...
    """

    device: str
    device_name: str
    ranks: int
    cells: int
    milliseconds: float
    more: Row

    @property
    def load(self) -> float:
        """Cells a rank."""
        return self.cells / self.ranks

    def row(self) -> Row:
        """Return the numbers for a record."""
        return {
            "device": self.device, "ranks": self.ranks, "cells": self.cells, "ms_per_iteration": self.milliseconds,
        }  # fmt: skip


_MORE = ("exchange_share", "exchange_hidden", "halo_bytes", "transport", "rms")


def _series(points: Iterable[Point], *, weak: bool) -> list[list[Point]]:
    """Return the points that belong together, by ranks; one alone is no series."""
    found: list[list[Point]] = []
    for point in sorted(points, key=lambda p: (p.device, p.load if weak else p.cells, p.ranks)):
        for series in found:
            first = series[0]
            fits = abs(point.load / first.load - 1) < _SAME_LOAD if weak else point.cells == first.cells
            if fits and point.device == first.device:
                series.append(point)
                break
        else:
            found.append([point])
    kept = [list({point.ranks: point for point in series}.values()) for series in found]
    return [sorted(series, key=lambda p: p.ranks) for series in kept if len(series) > 1]


def strong_rows(points: Iterable[Point]) -> list[Row]:
    """Return a row for each point of the series with equal cells.

    The efficiency is ``t0 p0 / (t p)``, where ``t0`` is the time on ``p0`` ranks, the fewest; the speed-up ``p`` times
    that.
    """
    rows = []
    for series in _series(points, weak=False):
        base = series[0]
        for point in series:
            efficiency = base.milliseconds * base.ranks / (point.milliseconds * point.ranks)
            rows.append(point.row() | {"speedup": efficiency * point.ranks, "efficiency": efficiency} | point.more)
    return rows


def weak_rows(points: Iterable[Point]) -> list[Row]:
    """Return a row for each point of the series with equally many cells a rank.

    The efficiency is ``t0 / t``, corrected for the few cells by which the loads differ.
    """
    rows = []
    for series in _series(points, weak=True):
        base = series[0]
        for point in series:
            efficiency = base.milliseconds / point.milliseconds * point.load / base.load
            rows.append(point.row() | {"cells_a_rank": round(base.load), "efficiency": efficiency} | point.more)
    return rows


def points_of(record: Row, path: str = "record") -> list[Point]:
    """Return what a record of the benchmark ``airfoil`` or ``scaling`` measured.

    Raises
    ------
    CaseError
        If it is another record.
    """
    if not isinstance(record, dict) or not isinstance(record.get("case"), str):
        raise CaseError(f"{path}: not the record of a benchmark, as `fluxloom bench airfoil --json FILE` writes it")
    if record["case"] not in ("airfoil", "scaling"):
        raise CaseError(f"{path}: a record of {record['case']!r}; those of airfoil and scaling can be drawn")
    try:
        metrics = record["metrics"]
        if record["case"] == "airfoil":
            rows = [{"device": record["device"], "ranks": record["ranks"], "cells": record["sizes"]["cells"]} | metrics]
        else:
            rows = [*metrics.get("strong", ()), *metrics.get("weak", ())]
        points = [
            Point(str(row["device"]), str(record["device_name"]), int(row["ranks"]), int(row["cells"]),
                  float(row["ms_per_iteration"]), {key: row.get(key) for key in _MORE})
            for row in rows
        ]  # fmt: skip
    except KeyError as error:
        raise CaseError(f"{path}: not the record of a benchmark: {error} is missing") from None
    except (TypeError, ValueError, AttributeError) as error:
        raise CaseError(f"{path}: not the record of a benchmark: {error}") from None
    if any(point.ranks < 1 or point.cells < 1 or not 0.0 < point.milliseconds < inf for point in points):
        raise CaseError(f"{path}: not the record of a benchmark: ranks, cells and times must be positive")
    return points


def read_points(paths: Sequence[str]) -> list[Point]:
    """Return what files of records measured.

    Raises
    ------
    CaseError
        If a file cannot be read or is no such record.
    """
    points: list[Point] = []
    for path in paths:
        try:
            record = json.loads(Path(path).read_text(encoding="utf-8"))
        except OSError as error:
            raise CaseError(f"{path}: cannot be read: {error.strerror or error}") from None
        except (ValueError, RecursionError) as error:
            raise CaseError(f"{path}: not the record of a benchmark, which is JSON: {error}") from None
        points += points_of(record, path)
    return points


@dataclass(frozen=True)
class ScalingOptions(Scheduled, Laid):
    """Options of the benchmark ``scaling``."""

    ranks: str = option("", metavar="N,...", help="Numbers of ranks: 1,2,4.")
    strong: str = option("", metavar="CELLS,...", help="Sizes that stay: 720k,2.88M.")
    weak: str = option("", metavar="CELLS", help="Cells a rank.")
    iterations: int = iterations_option()
    rounds: int = rounds_option()
    fused: bool = fused_option()
    partition: Partition = partition_option()
    transport: str = transport_option()
    draw: str = option("", metavar="FILE", help="Draw the scaling as a picture (PNG).")
    sources: str = option("", "--from", metavar="FILES", help="Draw these records, a.json,b.json, and measure nothing.")


class ScalingBench:
    """Starts the benchmark ``airfoil`` on each number of ranks, or takes its records; draws speed-up and efficiency."""

    title = "Airfoil on 1, 2, 4 ... ranks: strong and weak scaling, with a picture"
    options = ScalingOptions

    def run(self, options: ScalingOptions, tell: Tell) -> Record:
        """Measure, or read what was measured."""
        if options.draw:
            if Path(options.draw).suffix.lower() != ".png":
                raise CaseError(f"--draw {options.draw}: the picture is a PNG file; call it something.png")
            prepare_file(Path(options.draw))
        if options.sources:
            wanted = [word.strip() for word in options.sources.split(",") if word.strip()]
            if not wanted:
                raise CaseError(f"--from {options.sources!r}: name records, as in a.json,b.json")
            points = read_points(wanted)
            strong, weak = strong_rows(points), weak_rows(points)
            copy = 0.0
        else:
            strong, weak, points, copy = _measure(options, tell)
        if not (strong or weak):
            raise CaseError(
                "there is no series: it takes two numbers of ranks with the same cells (strong) or cells a rank (weak)"
            )
        if options.draw:
            draw_scaling(Path(options.draw), strong, weak)
            tell(options.draw)
        last = max(points, key=lambda p: (p.ranks, p.cells))
        devices = dict.fromkeys(point.device for point in points)
        return Record(
            case="scaling",
            model="euler",
            device="+".join(devices),
            device_name=last.device_name,
            precision="float64",
            sizes={"cells": max(point.cells for point in points)},
            copy_gbs=copy,
            seconds=last.milliseconds / 1e3,
            metrics={name: rows for name, rows in (("strong", strong), ("weak", weak)) if rows},
            loops=(),
            command=options.command,
            gpus=max((point.ranks for point in points if point.device == "cuda"), default=0),
            ranks=last.ranks,
        )


def _measure(options: ScalingOptions, tell: Tell) -> tuple[list[Row], list[Row], list[Point], float]:
    """Run what is asked for: the strong and the weak rows, all points, the copy bandwidth of the fewest ranks."""
    numbers = _numbers(options.ranks or _RANKS)
    require_cores(numbers[-1])
    if parse(options.device)[0].device == "reference":
        raise CaseError("--device reference: it runs on one rank only; take cpu, opencl or cuda")
    known: dict[tuple[int, int, int], Row] = {}

    def point(ranks: int, i: int, j: int) -> Point:
        key = (ranks, i, j)
        if key not in known:
            tell(f"{ranks} rank{'s' if ranks > 1 else ''}, {3 * i * j:,} cells")
            known[key] = _run(options, *key)
        return points_of(known[key])[0]

    strong = options.strong or ("" if options.weak else _STRONG)
    sizes = [cells_from_text(word, _STRONG, "--strong") for word in strong.split(",") if word.strip()]
    if not sizes and not options.weak:
        raise CaseError(f"--strong {strong!r}: give sizes, as in 720k,2.88M")
    load = cells_from_text(options.weak, _STRONG, "--weak") if options.weak else None
    first = [point(ranks, *shape) for shape in sizes for ranks in numbers]
    second: list[Point] = []
    if load is not None:
        cells = 3 * load[0] * load[1]
        second = [point(ranks, *(load if ranks == 1 else shape_of(cells * ranks))) for ranks in numbers]
    copy = float(known[min(known)]["copy_gbs"])
    return strong_rows(first), weak_rows(second), [*first, *second], copy


def _numbers(text: str) -> list[int]:
    """Return the numbers of ranks.

    Raises
    ------
    CaseError
        If there are not two different positive ones.
    """
    words = [word.strip() for word in text.split(",")]
    if not all(word.isdigit() and int(word) for word in words) or len(set(words)) < 2:
        raise CaseError(f"--ranks {text!r}: give two or more numbers of ranks, as in 1,2,4")
    return sorted({int(word) for word in words})


def _run(options: ScalingOptions, ranks: int, i: int, j: int) -> Row:
    """Run the benchmark ``airfoil`` on some ranks of this machine and return its record."""
    words = ["bench", "airfoil", "--cells", f"{i},{j}", "--schedule", schedule_text(options.schedule),
             "--partition", options.partition, "--transport", options.transport]  # fmt: skip
    words += ["--iterations", str(options.iterations), "--rounds", str(options.rounds)]
    words += [] if options.fused else ["--no-fused"]
    words += ["--layout", options.layout] if options.layout else []
    with tempfile.TemporaryDirectory(prefix="fluxloom-scaling-") as folder:
        path = Path(folder) / "record.json"
        status = start(_specs(options, ranks), [*words, "--json", str(path)], quiet=True)
        if status == 130:
            raise KeyboardInterrupt
        if status:
            on = f"{ranks} rank{'s' if ranks > 1 else ''}"
            raise CaseError(f"the benchmark airfoil on {on} ended with status {status}; see what it said above")
        return json.loads(path.read_text(encoding="utf-8"))


def _specs(options: ScalingOptions, ranks: int) -> list[RankSpec]:
    """Return what each rank computes on: GPUs are numbered, CPU ranks have one thread unless more are asked for."""
    if options.device == "cuda":
        return [RankSpec(f"cuda:{number}") for number in range(ranks)]
    return [RankSpec(options.device, (options.threads or 1) if options.device == "cpu" else 0)] * ranks
