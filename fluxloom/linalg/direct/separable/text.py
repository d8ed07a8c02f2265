"""Functions of a solve for a device: what they are given, and which text each kind of device gets.

Values lie in memory as ``u[plane][column][row]``, a column's rows side by side; a *plane* is one of many problems that
differ in a number that is added to the diagonal, ``shift[plane]``. The bodies of the larger functions are the files
``chain_*.c`` and ``sums*.c``; they use the words of `helpers` and the parameters of `functions`.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from fluxloom.codegen.bodies import group_sum, over
from fluxloom.codegen.primitive import Function, Parameter, source_of
from fluxloom.core.errors import SolverError, did_you_mean
from fluxloom.linalg.direct.tridiagonal.kernels_text import up_to_power

__all__ = ["MAPPINGS", "Mapping", "Shape", "choose_shape", "functions", "helpers"]

Mapping = Literal["thread", "block", "partition"]
MAPPINGS: tuple[Mapping, ...] = ("thread", "block", "partition")

_ROOM = "fluxloom.linalg.direct.separable"
_LANES_BYTES = 64
_PIECE = 256
_GROUP = 128
_MOST_ITEMS = 1024
_ROWS_AN_ITEM = 8
_SHARED_BYTES = 48 << 10
SLICES, WIDTH, SUMMING = 8, 32, 128
_LIKE = MappingProxyType({"deep_sums": "sums", "column_sums": "mean"})


@dataclass(frozen=True)
class Shape:
    """How systems of ``rows`` unknowns lie on work items.

    Attributes
    ----------
    rows, periodic, real
        Of the systems: their length, whether they are rings, and the C type of values.
    mapping
        Who solves a system: an item ("thread"), a group ("block"), or ``items`` of a group in chunks ("partition").
        On a device without items it is always a lane of a vector.
    block
        Items of a group.
    items
        Those that share a system.
    """

    rows: int
    periodic: bool
    real: str
    mapping: Mapping
    block: int = 1
    items: int = 1

    @property
    def chunk(self) -> int:
        """Rows of an item at most."""
        return -(-self.rows // self.items)

    @property
    def lanes(self) -> int:
        """Systems side by side, where there are no items."""
        return _LANES_BYTES // (8 if self.real == "double" else 4)

    def launch(self, systems: int) -> int:
        """Return the work items for some systems."""
        return systems * self.items

    def words(self, systems: int, threads: int, items: bool) -> int:
        """Return the values of working memory."""
        if not items:
            return 4 * self.rows * self.lanes * threads
        return 4 * self.rows * systems if self.mapping == "thread" else 1


def choose_shape(rows: int, periodic: bool, real: str, mapping: str, chunk: int = 0) -> Shape:
    """Return how systems lie on work items; ``chunk``: rows of an item with "partition", about (0: 8).

    Raises
    ------
    SolverError
        If the mapping is unknown, or cannot solve such systems.
    """
    match mapping:
        case "thread":
            return Shape(rows, periodic, real, "thread", 64, 1)
        case "block":
            size = 8 if real == "double" else 4
            if 3 * rows * size > _SHARED_BYTES:
                raise SolverError(f"mapping 'block': {rows} rows do not fit into shared memory; use 'partition'")
            if periodic and rows & (rows - 1):
                raise SolverError(
                    f"mapping 'block': cyclic reduction closes a ring of {rows} rows only if that is a power of two; "
                    "use 'partition'"
                )
            items = min(_MOST_ITEMS, up_to_power(rows))
            return Shape(rows, periodic, real, "block", items, items)
        case "partition":
            items = min(_MOST_ITEMS, max(1, up_to_power(-(-rows // (chunk or _ROWS_AN_ITEM)))))
            while items > rows:
                items //= 2
            return Shape(rows, periodic, real, "partition", max(items, _GROUP), items)
    raise SolverError(f"mapping {mapping!r} is none of {', '.join(MAPPINGS)}{did_you_mean(mapping, MAPPINGS)}")


def helpers(shape: Shape, items: bool) -> str:
    """Return the words that the functions use: for a device of work items, or for plain C."""
    words = {
        "REAL": shape.real, "ROWS": shape.rows, "PERIODIC": int(shape.periodic), "BLOCK": shape.block,
        "ITEMS": shape.items, "CHUNK": shape.chunk, "SLICES": SLICES, "WIDTH": WIDTH, "SUMMING": SUMMING,
        **({"LANES": 1, "STEP": "systems", "HELD": "pack", "PIECE": 1} if items else
           {"LANES": shape.lanes, "STEP": "LANES", "HELD": "(int64_t)FL_THREAD * 4 * ROWS * LANES", "PIECE": _PIECE}),
    }  # fmt: skip
    job = source_of(_ROOM, "chain_job.c") if items else ""
    return "\n".join([*(f"#define {name} {value}" for name, value in words.items()), job, ""])


def functions(shape: Shape, items: bool) -> list[Function]:
    """Return the functions of a solve: for a device of work items, or in plain C."""
    given = _parameters(f"{shape.real} *", items)
    column = {"plane": "planes", "column": "count", "i": "ROWS"}
    each = {name: over(column, text, items=items, shared="planes * count > 1") for name, text in _VALUES.items()}
    each["subtract"] = over({"k": "count * ROWS"}, "u[plane * plane_step + k] -= mean[0];", items=items)
    lanes, sums = (source_of(_ROOM, f"{name}.c") for name in ("chain_lanes", "sums"))
    chain = _PACKS + over({"pack": "packs"}, lanes, items=items, shared="packs > 1")
    sums = _PIECES + over({"part": "parts"}, sums, items=items, shared="parts > 1")
    if not items:
        bodies = {"chain": chain, "sums": sums, "mean": _MEAN, **each}
        return [Function(name, given[name], body) for name, body in bodies.items()]
    if shape.mapping != "thread":
        chain = source_of(_ROOM, f"chain_{shape.mapping}.c")
    bodies = {"chain": chain, "sums": sums, "deep_sums": source_of(_ROOM, "sums_deep.c"), **_MEANS, **each}
    blocks = {"chain": shape.block, "deep_sums": SLICES * WIDTH, "column_sums": SUMMING, "mean": SUMMING}
    return [
        Function(name, given[_LIKE.get(name, name)], body, blocks.get(name, _GROUP)) for name, body in bodies.items()
    ]


def _parameters(real: str, items: bool) -> dict[str, tuple[Parameter, ...]]:
    """Return what each function is given."""
    u, threads = Parameter(real, "u", True, True), [] if items else ["threads"]
    layout = ["planes", "plane_step"]

    def numbers(*names: str) -> list[Parameter]:
        return [Parameter("int64_t", name) for name in (*layout, *names, *threads)]

    tables = [Parameter("int32_t *", name) for name in ("columns", "targets", "begin")]
    weights = Parameter(real, "weights")
    reals = [Parameter(real, name) for name in ("a", "b", "c", "roots", "gains", "shift")]
    chain = [u, *reals, weights, *tables, Parameter("int32_t *", "kept"), Parameter(real, "work", True)]
    outside = ["start", "first", "f_plane", "f_column", "f_row", "count"]
    means = [Parameter(real, "row_weights"), Parameter(real, "column_weights")]
    means += [Parameter(real, name, True) for name in ("partial", "mean")]
    far = Parameter(real, "f", True, True)
    return {
        "chain": (*chain, *numbers("jobs", "longest", "pinned", "pinned_plane")),
        "sums": (u, weights, *tables, *numbers("sums", "keep")),
        "load": (u, far, *numbers(*outside), Parameter("double", "scale")),
        "store": (u, far, *numbers(*outside)),
        "move": (u, Parameter(real, "box", True), tables[0], *numbers("count", "back")),
        "mean": (u, *means, *numbers("count", "plane")),
        "subtract": (u, means[-1], *numbers("count", "plane")),
    }


_PACKS = "    const int64_t systems = jobs * planes, packs = (systems + LANES - 1) / LANES;\n"
_PIECES = "    const int64_t pieces = (ROWS + PIECE - 1) / PIECE, parts = sums * planes * pieces;\n"
_FAR = "f[first + plane * f_plane + column * f_column + i * f_row]"
_NEAR = "u[start + plane * plane_step + column * ROWS + i]"
_VALUES = {
    "load": f"{_NEAR} = (REAL)scale * {_FAR};",
    "store": f"{_FAR} = {_NEAR};",
    "move": """const int64_t far = (plane * count + column) * ROWS + i;
        const int64_t near = plane * plane_step + (int64_t)columns[column] * ROWS + i;
        if (back) u[near] = box[far];
        else box[far] = u[near];""",
}
"""What is done for every value of every column."""

_MEANS = {
    "column_sums": "    const int64_t column = FL_GROUP;"
    + group_sum("row_weights[i] * u[plane * plane_step + column * ROWS + i]", "ROWS", "SUMMING", "REAL")
    + "    if (FL_MEMBER == 0) partial[column] = column_weights[column] * part[0];",
    "mean": group_sum("partial[i]", "count", "SUMMING", "REAL") + "    if (FL_MEMBER == 0) mean[0] = part[0];",
}
"""The mean of a plane by groups of items: a group a column, then one for all of them."""

_MEAN = """
    REAL total = 0;
    for (int64_t j = 0; j < count; j++) {
        REAL sum = 0;
        for (int64_t i = 0; i < ROWS; i++) sum += row_weights[i] * u[plane * plane_step + j * ROWS + i];
        total += column_weights[j] * sum;
    }
    partial[0] = mean[0] = total;
"""
