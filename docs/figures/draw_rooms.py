"""Draw the figures of the page "How it works": the floors of the package, and the rooms of some of them.

Usage: ``python docs/figures/draw_rooms.py``. Boxes and their texts stand in ``rooms.toml``; arrows are the imports of
the modules, less those that follow from other arrows.
"""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.patches import FancyBboxPatch

HERE = Path(__file__).parent
PACKAGE = HERE.parent.parent / "fluxloom"
FILL = {"code": "#dcebf7", "flow": "#e3f2df", "data": "#fdf0d5", "edge": "#efe3f3"}
ARROW = {"arrowstyle": "-|>", "color": "#444444", "linewidth": 0.9, "shrinkA": 0, "shrinkB": 0}
LINE = 0.30
STOREY = 1.40


@dataclass(frozen=True)
class Box:
    """A room, or some modules: name, lower left corner and width, modules, colour, and lines of text."""

    name: str
    at: Sequence[float]
    modules: Sequence[str]
    colour: str
    text: Sequence[str]

    @property
    def left(self) -> float:
        """The left end."""
        return self.at[0]

    @property
    def right(self) -> float:
        """The right end."""
        return self.at[0] + self.at[2]

    @property
    def middle(self) -> float:
        """The middle between both ends."""
        return self.at[0] + self.at[2] / 2

    @property
    def low(self) -> float:
        """The lower end."""
        return self.at[1]

    @property
    def high(self) -> float:
        """The upper end, from the number of lines."""
        return self.at[1] + 0.62 + LINE * len(self.text)


def modules() -> dict[str, set[str]]:
    """Return what each module of the package imports of it, names without the package."""
    found: dict[str, set[str]] = {}
    for path in PACKAGE.rglob("*.py"):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        names = {node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module}
        found[".".join(parts)] = {name.removeprefix("fluxloom.") for name in names if name.startswith("fluxloom.")}
    return found


def edges_of(boxes: Sequence[Box], imported: Mapping[str, set[str]]) -> set[tuple[str, str]]:
    """Return which boxes import which, less what follows from other edges."""

    def home(module: str) -> str:
        return next((b.name for b in boxes for m in b.modules if module == m or module.startswith(f"{m}.")), "")

    found = {(home(module), home(name)) for module, names in imported.items() for name in names}
    found = {(a, b) for a, b in found if a and b and a != b}
    reached = {box.name: {b for a, b in found if a == box.name} for box in boxes}
    for _ in boxes:
        reached = {name: direct.union(*(reached[b] for b in direct)) for name, direct in reached.items()}
    return {(a, b) for a, b in found if not any(b in reached[c] for c in reached[a] if c != b and a not in reached[c])}


def draw_box(axes: Axes, box: Box) -> None:
    """Draw a room: its name, and what is in it."""
    axes.add_patch(
        FancyBboxPatch(
            (box.left, box.low), box.at[2], box.high - box.low, boxstyle="round,pad=0,rounding_size=0.08",
            facecolor=FILL[box.colour], edgecolor="#555555", linewidth=0.8,
        )
    )  # fmt: skip
    axes.text(box.middle, box.high - 0.12, box.name, ha="center", va="top", weight="bold", size=9)
    axes.text(box.middle, box.low + 0.1, "\n".join(box.text), ha="center", va="bottom", size=7.5, linespacing=1.25)


def draw_arrow(axes: Axes, above: Box, below: Box, corridor: float | None) -> None:
    """Draw an import: straight down where the boxes stand over each other, else from the middle of one to the other."""
    left, right = max(above.left, below.left), min(above.right, below.right)
    start, end = ((left + right) / 2,) * 2 if right - left > 0.3 else (above.middle, below.middle)
    if corridor is not None:
        start = end = corridor
    axes.annotate("", (end, below.high), (start, above.low), arrowprops=ARROW)


def draw_rooms(name: str, boxes: Sequence[Box], imported: Mapping[str, set[str]], corridors: Sequence[Any]) -> None:
    """Draw rooms with arrows of imports.

    Raises
    ------
    ValueError
        When the package has no module that a box names.
    """
    for module in [module for box in boxes for module in box.modules]:
        if not any(other == module or other.startswith(f"{module}.") for other in imported):
            raise ValueError(f"{name}: fluxloom.{module} is no module")
    width, low, high = max(b.right for b in boxes), min(b.low for b in boxes), max(b.high for b in boxes)
    _, axes = plt.subplots(figsize=(0.62 * width + 0.2, 0.62 * (high - low) + 0.2))
    by_name = {box.name: box for box in boxes}
    at = {(one["above"], one["below"]): one["x"] for one in corridors}
    for above, below in sorted(edges_of(boxes, imported)):
        draw_arrow(axes, by_name[above], by_name[below], at.get((above, below)))
    for box in boxes:
        draw_box(axes, box)
    save(axes, name, (-0.1, width + 0.1), (low - 0.1, high + 0.1))


def draw_floors(floors: Sequence[Any]) -> None:
    """Draw the floors, the lowest at the bottom."""
    _, axes = plt.subplots(figsize=(9.4, 9.6))
    top = STOREY * len(floors)
    for number, floor in enumerate(floors):
        y, width = STOREY * number, 12.0 / len(floor["rooms"])
        axes.text(-0.2, y + 0.55, str(number), ha="right", va="center", size=12, weight="bold", color="#666666")
        for place, room in enumerate(floor["rooms"]):
            box = Box(room["name"], (place * width, y, width - 0.15), (), floor["colour"], room["text"])
            draw_box(axes, box)
    axes.annotate("", (12.4, 0.0), (12.4, top - 0.3), arrowprops=ARROW)
    axes.text(12.55, top / 2, "imports go down only", rotation=90, va="center", size=9)
    save(axes, "floors", (-0.7, 13.0), (-0.1, top))


def save(axes: Axes, name: str, across: tuple[float, float], up: tuple[float, float]) -> None:
    """Write a figure as SVG, without a date, so that the same figure is the same file."""
    axes.set_xlim(*across)
    axes.set_ylim(*up)
    axes.axis("off")
    plt.subplots_adjust(0, 0, 1, 1)
    with mpl.rc_context({"svg.hashsalt": name}):
        plt.savefig(HERE / f"{name}.svg", metadata={"Date": None})
    plt.close()


if __name__ == "__main__":
    tables = tomllib.loads((HERE / "rooms.toml").read_text(encoding="utf-8"))
    imported = modules()
    draw_floors(tables["floors"])
    for name, boxes in tables["figures"].items():
        draw_rooms(name, [Box(**box) for box in boxes], imported, tables["corridors"])
