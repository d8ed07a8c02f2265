"""Pictures of strong and weak scaling."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from fluxloom.core.packages import require
from fluxloom.run.results.files import atomic

__all__ = ["draw_scaling"]

_DPI = 160
_COLOURS = ("#1f4e79", "#c0504d", "#4f8a3c", "#7f5aa2", "#d98b1f", "#3a8f98")
_MARKS = "osD^vP"

Row = dict[str, Any]


def draw_scaling(path: Path, strong: Sequence[Row], weak: Sequence[Row]) -> None:
    """Draw speed-up at a fixed size and efficiency at a fixed load, with the ideal, and write a PNG file.

    Parameters
    ----------
    path
        The file.
    strong, weak
        Rows of `fluxloom_lab.bench.scaling.strong_rows` and `weak_rows`; what is empty is not drawn.

    Raises
    ------
    DeviceUnavailable
        When matplotlib is not installed.
    FluxloomError
        When the file cannot be written.
    """
    backend: Any = require("matplotlib.backends.backend_agg", "viz", "pictures")
    library: Any = require("matplotlib.figure", "viz", "pictures")
    panels = [(rows, draw) for rows, draw in ((strong, _strong), (weak, _weak)) if rows]
    figure = library.Figure(figsize=(5.4 * len(panels) + 0.4, 4.4), dpi=_DPI, layout="constrained")
    canvas = backend.FigureCanvasAgg(figure)
    for number, (rows, draw) in enumerate(panels, 1):
        axes = figure.add_subplot(1, len(panels), number)
        draw(axes, rows)
        ranks = sorted({int(row["ranks"]) for row in rows})
        axes.set_xticks(ranks, [str(count) for count in ranks])
        axes.minorticks_off()
        axes.grid(True, color="0.9", linewidth=0.6)
        axes.legend(fontsize=8, frameon=False, loc="best")
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic(path) as temporary:
        canvas.print_png(str(temporary))


def _lines(rows: Sequence[Row], key: str) -> list[tuple[tuple[str, int], list[Row]]]:
    """Return the rows of each device and each value of ``key``, by ranks."""
    lines: dict[tuple[str, int], list[Row]] = {}
    for row in rows:
        lines.setdefault((str(row["device"]), int(row[key])), []).append(row)
    return [(name, sorted(line, key=lambda row: row["ranks"])) for name, line in lines.items()]


def _strong(axes: Any, rows: Sequence[Row]) -> None:
    """Draw the speed-up over the ranks."""
    ranks = sorted({int(row["ranks"]) for row in rows})
    axes.plot(ranks, ranks, color="0.55", linestyle="--", linewidth=1.0, label="ideal")
    lines = [(f"{device}, {_size(cells)} cells", line) for (device, cells), line in _lines(rows, "cells")]
    _plot(axes, lines, lambda row: float(row["speedup"]))
    axes.set_xscale("log", base=2)
    axes.set_yscale("log", base=2)
    ticks = [2**k for k in range(-2, 12) if min(ranks) / 2 <= 2**k <= 2 * max(ranks)]
    axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.set(xlabel="ranks", ylabel="speed-up", title="Strong scaling (labels: efficiency)")


def _weak(axes: Any, rows: Sequence[Row]) -> None:
    """Draw the efficiency over the ranks."""
    axes.axhline(100.0, color="0.55", linestyle="--", linewidth=1.0, label="ideal")
    lines = [(f"{device}, {_size(cells)} cells a rank", line) for (device, cells), line in _lines(rows, "cells_a_rank")]
    _plot(axes, lines, lambda row: 100.0 * float(row["efficiency"]))
    axes.set_xscale("log", base=2)
    axes.set_ylim(0.0, max(110.0, 105 * max(float(row["efficiency"]) for row in rows)))
    axes.set(xlabel="ranks", ylabel="efficiency [%]", title="Weak scaling (labels: efficiency)")


def _plot(axes: Any, lines: Sequence[tuple[str, Sequence[Row]]], value: Callable[[Row], float]) -> None:
    """Draw lines with the efficiency below their points, but for the first, where it is 100 % by definition.

    The labels of one number of ranks stand in the order of the points, below the lowest of them.
    """
    labels: dict[int, list[tuple[float, str, str]]] = {}
    for number, (label, line) in enumerate(lines):
        colour, mark = _COLOURS[number % len(_COLOURS)], _MARKS[number % len(_MARKS)]
        ranks, values = [int(row["ranks"]) for row in line], [value(row) for row in line]
        axes.plot(ranks, values, color=colour, marker=mark, markersize=5, linewidth=1.4, label=label)
        for row, y in list(zip(line, values, strict=True))[1:]:
            labels.setdefault(int(row["ranks"]), []).append((y, f"{100 * row['efficiency']:.0f} %", colour))
    for x, found in labels.items():
        lowest = min(y for y, _, _ in found)
        for place, (_, text, colour) in enumerate(sorted(found, reverse=True)):
            axes.annotate(text, (x, lowest), textcoords="offset points", xytext=(0, -14 - 9 * place), ha="center",
                          fontsize=8, color=colour)  # fmt: skip


def _size(cells: int) -> str:
    """Return a number of cells as one would say it."""
    if cells >= 1_000_000:
        return f"{cells / 1e6:.3g} M"
    return f"{cells / 1e3:.3g} k" if cells >= 1000 else str(cells)
