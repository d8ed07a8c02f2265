"""Kernels around Fourier transforms of rows: they bring values into rows and out of them, once over memory each.

The rows of a work array lie one after the other, ``pitch`` numbers apart. The lines of an array lie anyhow: value ``i``
of the line ``(o, s)``, which has the number ``o * lanes + s``, is the number
``first + o * outer_step + s * lane_step + i * row_step``. Where neighbours in memory are of one line, items stand along
it (``along``), and each does the same place of several lines, so that it reads its part of the tables once. Where they
are of different lines (``across``), groups turn tiles round in shared memory: both sides are read and written in
whole sectors. In these, ``entries`` is what the tables of a step have, see `fluxloom.linalg.direct.transforms.recipes`.
"""

from __future__ import annotations

from dataclasses import dataclass
from string import Template

from fluxloom.codegen.primitive import Function, Parameter

__all__ = ["BLOCK", "ROWS", "TILE", "WIDTHS", "copy_functions", "helpers", "row_functions"]

BLOCK = 256
TILE = 32
ROWS = 8
"""Lines that an item does one after the other where it stands along them."""
WIDTHS = tuple(1 << k for k in range(9))
"""Items along a line: powers of two."""

_SIZES = ("entries", "lanes", "outers", "first", "row_step", "lane_step", "outer_step", "pitch", "shift")

_COPY_SIZES = (
    "entries", "lanes", "outers", "parts", "shift", "x_first", "x_entry", "x_lane", "x_outer",
    "y_first", "y_entry", "y_lane", "y_outer",
)  # fmt: skip

_ALONG = """
    const int width = 1 << (int)shift, chunks = ((int)entries + width - 1) / width, group = (int)FL_GROUP;
    const int e = (group % chunks) * width + (FL_MEMBER & (width - 1));
    const int64_t from = (int64_t)(group / chunks) * (ROWS * (BLOCK / width)) + FL_MEMBER / width;
    const int64_t lines = lanes * outers;
    if (e < entries) {
        $before $after
        FL_UNROLL
        for (int k = 0; k < ROWS; k++) {
            const int64_t line = from + k * (BLOCK / width);
            if (line < lines) {
                const int64_t o = outers == 1 ? 0 : (int)line / (int)lanes, s = line - o * lanes;
                $source
                $target
                real u = 0, v = 0;
                $read
                $write
                (void)v;
            }
        }
    }
"""

_ACROSS = """
    FL_SHARED real tile[$count * TILE * (TILE + 1)];
    const int tiles = ((int)entries + TILE - 1) / TILE, turns = (int)((lanes + TILE - 1) / TILE);
    const int group = (int)FL_GROUP, rest = group / tiles, e_first = (group - rest * tiles) * TILE;
    const int64_t o = rest / turns, s_first = (int64_t)(rest % turns) * TILE;
    const int a = FL_MEMBER % TILE, b = FL_MEMBER / TILE;
    $first
    FL_UNROLL
    for (int m = 0; m < TILE * TILE / BLOCK; m++) {
        const int k = b + m * (BLOCK / TILE);
        $in_first
        if (e < entries && s < lanes) { $before $source $read }
    }
    FL_BARRIER();
    $second
    FL_UNROLL
    for (int m = 0; m < TILE * TILE / BLOCK; m++) {
        const int k = b + m * (BLOCK / TILE);
        $in_second
        if (e < entries && s < lanes) { $after $target $write }
    }
"""

_ON_ROWS = ("const int e = e_first + a;", "const int64_t s = s_first + k; const int at = a * (TILE + 1) + k;")
"""Items that stand along the rows of the work array: before the loop over lines, and in it."""
_ON_LANES = ("const int64_t s = s_first + a;", "const int e = e_first + k; const int at = k * (TILE + 1) + a;")
"""Items that stand across the lines of the array."""

_START = "const int64_t start = first + o * outer_step + s * lane_step;"
_ROW = "const int64_t row = (o * lanes + s) * pitch;"
_PLACES = "const int p0 = places[e], p1 = places[entries + e];"
_WEIGHTS = "const real r0 = re[e], r1 = re[entries + e], i0 = im[e], i1 = im[entries + e];"  # of two real values


@dataclass(frozen=True)
class _Step:
    """What a kernel does with an entry of a line; ``u`` and ``v`` are what goes from one array to the other.

    Attributes
    ----------
    tables
        Their names.
    source, target
        Declarations that say where the line is in the array that is read, and in the one that is written.
    before, read, after, write
        What depends on the entry alone when it is read, and how; the same when it is written.
    outward
        Whether neighbours in what is read are of one line: from rows to an array.
    """

    tables: tuple[str, ...]
    source: str
    target: str
    before: str
    read: str
    after: str
    write: str
    outward: bool = False

    def along(self) -> str:
        """Return the kernel whose items stand along a line."""
        return self._filled(_ALONG)

    def across(self) -> str:
        """Return the kernel whose groups turn tiles round."""
        first, second = (_ON_ROWS, _ON_LANES) if self.outward else (_ON_LANES, _ON_ROWS)
        count = 2 if "v =" in self.read else 1
        values = "const real u = tile[at];" + " const real v = tile[TILE * (TILE + 1) + at];" * (count - 1)
        read = self.read.replace("u =", "tile[at] =").replace("v =", "tile[TILE * (TILE + 1) + at] =")
        return self._filled(
            _ACROSS, count=str(count), first=first[0], in_first=first[1], second=second[0], in_second=second[1],
            read=read, write=f"{values} {self.write}",
        )  # fmt: skip

    def _filled(self, text: str, **more: str) -> str:
        own = {name: getattr(self, name) for name in ("source", "target", "before", "read", "after", "write")}
        return Template(text).substitute(own | more)


_STEPS = {
    "spread": _Step(
        ("source", "places", "signs"), _START, _ROW,
        "const int i = source[e];", "u = i < 0 ? (real)0 : x[start + i * row_step];",
        f"{_PLACES} const real g0 = signs[e], g1 = signs[entries + e];",
        "y[row + p0] = g0 * u; if (p1 >= 0) y[row + p1] = g1 * u;",
    ),
    "mix": _Step(
        ("source", "re", "im"), _START, _ROW,
        "const int p0 = source[e], p1 = source[entries + e];",
        "u = x[start + p0 * row_step]; v = x[start + p1 * row_step];",
        _WEIGHTS, "y[row + 2 * e] = r0 * u + r1 * v; y[row + 2 * e + 1] = i0 * u + i1 * v;",
    ),
    "combine": _Step(
        ("places", "re", "im"), _ROW, _START,
        _WEIGHTS,
        "const real p = x[row + 2 * e], q = x[row + 2 * e + 1]; u = r0 * p + i0 * q; v = r1 * p + i1 * q;",
        _PLACES, "if (p0 >= 0) y[start + p0 * row_step] = u; if (p1 >= 0) y[start + p1 * row_step] = v;",
        outward=True,
    ),
    "collect": _Step(
        ("source", "signs"), _ROW, _START,
        "const int i = source[e]; const real g = signs[e];", "u = g * x[row + i];",
        "", "y[start + e * row_step] = u;",
        outward=True,
    ),
}  # fmt: skip

_COPY = _Step(
    (),
    "const int64_t at_x = x_first + o * x_outer + s * x_lane + e * x_entry;",
    "const int64_t at_y = y_first + o * y_outer + s * y_lane + e * y_entry;",
    "", "u = x[at_x]; if (parts == 2) v = x[at_x + 1];", "", "y[at_y] = u; if (parts == 2) y[at_y + 1] = v;",
)  # fmt: skip


def helpers(real: str) -> str:
    """Return the text before the functions."""
    return f"typedef {real} real;\n#define BLOCK {BLOCK}\n#define TILE {TILE}\n#define ROWS {ROWS}\n"


def row_functions(real: str) -> list[Function]:
    """Return the kernels between arrays and rows.

    Each is given ``x`` (read) and ``y`` (written): the array and the work array, or the other way round.
    """
    return [function for name, step in _STEPS.items() for function in _functions(name, real, step, _SIZES)]


def copy_functions(real: str) -> list[Function]:
    """Return the kernels that copy values of one or two numbers (``parts``) between arrays.

    ``copy_along``: entries are neighbours in both. ``copy_across``: lanes are neighbours in ``x``, entries in ``y``.
    """
    return _functions("copy", real, _COPY, _COPY_SIZES)


def _functions(name: str, real: str, step: _Step, sizes: tuple[str, ...]) -> list[Function]:
    kinds = {table: "int32_t *" if table in ("source", "places") else f"{real} *" for table in step.tables}
    parameters = (
        Parameter(f"{real} *", "x"), Parameter(f"{real} *", "y", written=True),
        *(Parameter(kind, table) for table, kind in kinds.items()), *(Parameter("int64_t", size) for size in sizes),
    )  # fmt: skip
    return [
        Function(f"{name}_along", parameters, step.along(), BLOCK),
        Function(f"{name}_across", parameters, step.across(), BLOCK),
    ]
