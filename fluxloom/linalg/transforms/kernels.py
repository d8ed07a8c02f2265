"""Kernels around Fourier transforms of rows: they bring values into rows and out of them, once over memory each.

The rows of a work array lie one after the other, ``pitch`` numbers apart. The lines of an array lie anyhow: value ``i``
of the line ``(o, s)``, which has the number ``o * lanes + s``, is the number
``first + o * outer_step + s * lane_step + i * row_step``. Where neighbours in memory are of one line, items stand along
it (``along``), and each does the same place of several lines, so that it reads its part of the tables once. Where they
are of different lines (``across``), groups turn tiles round in shared memory: both sides are read and written in
whole sectors. In these, ``entries`` is what the tables of a step have, see `fluxloom.linalg.transforms.recipes`.
"""

from __future__ import annotations

from fluxloom.codegen.primitive import Function, Parameter

__all__ = ["BLOCK", "ROWS", "TILE", "WIDTHS", "copy_functions", "helpers", "row_functions"]

BLOCK = 256
TILE = 32
ROWS = 8
"""Lines that an item does one after the other where it stands along them."""
WIDTHS = tuple(1 << k for k in range(9))
"""Items along a line: powers of two."""

_SIZES = ("entries", "lanes", "outers", "first", "row_step", "lane_step", "outer_step", "pitch", "shift")

_ALONG = """
    const int width = 1 << (int)shift, chunks = ((int)entries + width - 1) / width, group = (int)FL_GROUP;
    const int e = (group % chunks) * width + (FL_MEMBER & (width - 1));
    const int64_t from = (int64_t)(group / chunks) * (ROWS * (BLOCK / width)) + FL_MEMBER / width;
    const int64_t lines = lanes * outers;
    if (e < entries) {
        @TABLES@
        FL_UNROLL
        for (int k = 0; k < ROWS; k++) {
            const int64_t line = from + k * (BLOCK / width);
            if (line < lines) {
                const int64_t o = outers == 1 ? 0 : (int)line / (int)lanes, s = line - o * lanes;
                const int64_t start = first + o * outer_step + s * lane_step, row = line * pitch;
                @VALUES@
            }
        }
    }
"""

_ACROSS = """
    FL_SHARED real tile[@COUNT@ * TILE * (TILE + 1)];
    const int tiles = ((int)entries + TILE - 1) / TILE, turns = (int)((lanes + TILE - 1) / TILE);
    const int group = (int)FL_GROUP, rest = group / tiles, e_first = (group - rest * tiles) * TILE;
    const int64_t o = rest / turns, s_first = (int64_t)(rest % turns) * TILE;
    const int a = FL_MEMBER % TILE, b = FL_MEMBER / TILE;
    @FIRST@
    FL_UNROLL
    for (int m = 0; m < TILE * TILE / BLOCK; m++) {
        const int k = b + m * (BLOCK / TILE);
        @READ@
    }
    FL_BARRIER();
    @SECOND@
    FL_UNROLL
    for (int m = 0; m < TILE * TILE / BLOCK; m++) {
        const int k = b + m * (BLOCK / TILE);
        @WRITE@
    }
"""

_ON_ROWS = ("const int e = e_first + a;", "const int64_t s = s_first + k; const int at = a * (TILE + 1) + k;")
"""Items that stand along the rows of the work array: before the loop over lines, and in it."""
_ON_LANES = ("const int64_t s = s_first + a;", "const int e = e_first + k; const int at = k * (TILE + 1) + a;")
"""Items that stand across the lines of the array."""
_INSIDE = "if (e < entries && s < lanes) {"
_START = "const int64_t start = first + o * outer_step + s * lane_step;"
_ROW = "(o * lanes + s) * pitch"
_NEXT = "TILE * (TILE + 1) + at"

_PLACES = "const int p0 = places[e], p1 = places[entries + e];"
_WEIGHTS = "const real r0 = re[e], r1 = re[entries + e], i0 = im[e], i1 = im[entries + e];"  # of two real values


def helpers(real: str) -> str:
    """Return the text before the functions."""
    return f"typedef {real} real;\n#define BLOCK {BLOCK}\n#define TILE {TILE}\n#define ROWS {ROWS}\n"


def row_functions(real: str) -> list[Function]:
    """Return the kernels between arrays and rows.

    Each is given ``x`` (read) and ``y`` (written): the array and the work array, or the other way round.
    """
    pointer = f"{real} *"
    arrays = (Parameter(pointer, "x"), Parameter(pointer, "y", written=True))
    sizes = tuple(Parameter("int64_t", name) for name in _SIZES)

    def table(name: str) -> Parameter:
        return Parameter("int32_t *" if name in ("source", "places") else pointer, name)

    found = []
    for name, (tables, along, across) in _TEXTS.items():
        parameters = (*arrays, *(table(t) for t in tables), *sizes)
        found += [
            Function(f"{name}_along", parameters, along, BLOCK),
            Function(f"{name}_across", parameters, across, BLOCK),
        ]
    return found


def _along(tables: str, values: str) -> str:
    return _ALONG.replace("@TABLES@", tables).replace("@VALUES@", values)


def _across(count: int, outward: bool, read: str, write: str) -> str:
    """Return a kernel that turns tiles round; ``outward``: from rows to an array."""
    first, second = (_ON_ROWS, _ON_LANES) if outward else (_ON_LANES, _ON_ROWS)
    text = _ACROSS.replace("@COUNT@", str(count)).replace("@FIRST@", first[0]).replace("@SECOND@", second[0])
    text = text.replace("@READ@", f"{first[1]}\n        {_INSIDE} {read} }}")
    return text.replace("@WRITE@", f"{second[1]}\n        {_INSIDE} {write} }}")


_TEXTS = {
    "spread": (
        ("source", "places", "signs"),
        _along(
            f"const int i = source[e]; {_PLACES} const real g0 = signs[e], g1 = signs[entries + e];",
            "const real v = i < 0 ? (real)0 : x[start + i * row_step]; y[row + p0] = g0 * v;"
            " if (p1 >= 0) y[row + p1] = g1 * v;",
        ),
        _across(
            1, False,
            f"const int i = source[e]; {_START} tile[at] = i < 0 ? (real)0 : x[start + i * row_step];",
            f"{_PLACES} y[{_ROW} + p0] = signs[e] * tile[at];"
            f" if (p1 >= 0) y[{_ROW} + p1] = signs[entries + e] * tile[at];",
        ),
    ),
    "mix": (
        ("source", "re", "im"),
        _along(
            f"const int p0 = source[e], p1 = source[entries + e]; {_WEIGHTS}",
            "const real u = x[start + p0 * row_step], v = x[start + p1 * row_step];"
            " y[row + 2 * e] = r0 * u + r1 * v; y[row + 2 * e + 1] = i0 * u + i1 * v;",
        ),
        _across(
            2, False,
            f"{_START} tile[at] = x[start + source[e] * row_step];"
            f" tile[{_NEXT}] = x[start + source[entries + e] * row_step];",
            f"{_WEIGHTS} const real u = tile[at], v = tile[{_NEXT}];"
            f" y[{_ROW} + 2 * e] = r0 * u + r1 * v; y[{_ROW} + 2 * e + 1] = i0 * u + i1 * v;",
        ),
    ),
    "combine": (
        ("places", "re", "im"),
        _along(
            f"{_PLACES} {_WEIGHTS}",
            "const real u = x[row + 2 * e], v = x[row + 2 * e + 1];"
            " if (p0 >= 0) y[start + p0 * row_step] = r0 * u + i0 * v;"
            " if (p1 >= 0) y[start + p1 * row_step] = r1 * u + i1 * v;",
        ),
        _across(
            2, True,
            f"{_WEIGHTS} const real u = x[{_ROW} + 2 * e], v = x[{_ROW} + 2 * e + 1];"
            f" tile[at] = r0 * u + i0 * v; tile[{_NEXT}] = r1 * u + i1 * v;",
            f"{_PLACES} {_START} if (p0 >= 0) y[start + p0 * row_step] = tile[at];"
            f" if (p1 >= 0) y[start + p1 * row_step] = tile[{_NEXT}];",
        ),
    ),
    "collect": (
        ("source", "signs"),
        _along(
            "const int i = source[e]; const real g = signs[e];",
            "y[start + e * row_step] = g * x[row + i];",
        ),
        _across(
            1, True,
            f"tile[at] = signs[e] * x[{_ROW} + source[e]];",
            f"{_START} y[start + e * row_step] = tile[at];",
        ),
    ),
}  # fmt: skip

# ---------------------------------------------------------------------------------------------- copies

_COPY_SIZES = (
    "entries", "lanes", "outers", "parts", "shift", "x_first", "x_entry", "x_lane", "x_outer",
    "y_first", "y_entry", "y_lane", "y_outer",
)  # fmt: skip

_COPY_ALONG = (
    _along("", "for (int part = 0; part < parts; part++) y[to + part] = x[from_ + part];")
    .replace(
        "const int64_t start = first + o * outer_step + s * lane_step, row = line * pitch;",
        "const int64_t from_ = x_first + o * x_outer + s * x_lane + e * x_entry;\n"
        "                const int64_t to = y_first + o * y_outer + s * y_lane + e * y_entry;",
    )
)  # fmt: skip

_COPY_ACROSS = _across(
    2, False,
    f"const int64_t i = x_first + o * x_outer + s * x_lane + e * x_entry; tile[at] = x[i];"
    f" if (parts == 2) tile[{_NEXT}] = x[i + 1];",
    f"const int64_t i = y_first + o * y_outer + s * y_lane + e * y_entry; y[i] = tile[at];"
    f" if (parts == 2) y[i + 1] = tile[{_NEXT}];",
)  # fmt: skip


def copy_functions(real: str) -> list[Function]:
    """Return the kernels that copy values of one or two numbers (``parts``) between arrays.

    ``copy_along``: entries are neighbours in both. ``copy_across``: lanes are neighbours in ``x``, entries in ``y``.
    """
    arrays = (Parameter(f"{real} *", "x"), Parameter(f"{real} *", "y", written=True))
    parameters = (*arrays, *(Parameter("int64_t", name) for name in _COPY_SIZES))
    return [
        Function("copy_along", parameters, _COPY_ALONG, BLOCK),
        Function("copy_across", parameters, _COPY_ACROSS, BLOCK),
    ]
