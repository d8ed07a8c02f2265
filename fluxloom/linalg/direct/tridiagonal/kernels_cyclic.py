"""Cyclic reduction in the memory of a group: CR, PCR, and CR down to a size where PCR takes over.

Cyclic reduction with stride ``s = 1, 2, 4 ...`` takes the neighbours ``i - s`` and ``i + s`` out of every second of the
rows that are left, ``i = 2 s - 1, 4 s - 1 ...``, with ``k = a_i / b_{i-s}``, ``g = c_i / b_{i+s}``::

    a_i <- -k a_{i-s},  b_i <- b_i - k c_{i-s} - g a_{i+s},  c_i <- -g c_{i+s},  y_i <- y_i - k y_{i-s} - g y_{i+s}

until ``switch`` rows are left; parallel cyclic reduction does the same in all of them with distances 1, 2, 4 ... until
no couplings are left; then the rows that were taken out follow backward, ``x_i = (y_i - a_i x_{i-s} - c_i x_{i+s}) /
b_i``. In periodic systems the last unknown ``X`` is kept apart, and a further right-hand side gives ``x_i = d_i - w_i
X``. Rows lie in the memory of the group with a gap every 32 words, that strides of two meet all its banks.

Source: P. Valero-Lara, "Hybrid CFD solvers on heterogeneous platforms", thesis, UCM Madrid (2015), sections 1.1.4 and
2.5; R. W. Hockney, "A fast direct solution of Poisson's equation using Fourier analysis", J. ACM 12 (1965) 95; Y.
Zhang, J. Cohen, J. D. Owens, "Fast tridiagonal solvers on the GPU", PPoPP (2010) 127, sections 3 and 4.
"""

from __future__ import annotations

from dataclasses import dataclass

from fluxloom.linalg.direct.tridiagonal.form import Code, Form, Lines
from fluxloom.linalg.direct.tridiagonal.kernels_text import (
    LOCAL_BYTES,
    Body,
    bordered,
    code,
    diagonals,
    fill,
    report,
    system,
    up_to_power,
)

__all__ = ["CyclicReduction"]

_ITEMS, _GROUP = 256, 128
"""Work items of a line at most, and of a group at least."""

_DEFAULT_SWITCH = 64
"""Rows at which PCR takes over: those that two warps hold."""

_LOAD = """
    FL_UNROLL for (int v = 0; v < $each; v++) {
        const int row = w + v * $width;
        if (row < $m) {
            const int64_t i = row;
            const int at = $own;
            REAL below = $a, above = $c;
            $border
            box[at] = below;
            box[$size + at] = $b;
            box[2 * $size + at] = above;
            FL_UNROLL for (int r = 0; r < $rhs; r++)
                box[(3 + r) * $size + at] = factor * y[y_at + i * row_step + r * rhs_step];
        }
    }
    FL_BARRIER();
"""

_BORDER = """REAL far = 0;
            if (row == 0) { far += below; below = 0; }
            if (row == $m - 1) { far += above; above = 0; }
            box[(3 + $rhs) * $size + at] = far;"""

_REDUCE = """
    int stride = 1;
    for (; $m / stride > $switch; stride *= 2) {
        for (int j = w; j < $m / (2 * stride); j += $width) {
            const int row = (j + 1) * 2 * stride - 1, at = $own;
            const int m = $before, p = $after, has = row + stride < $m;
            const REAL k = box[at] / box[$size + m], g = has ? box[2 * $size + at] / box[$size + p] : (REAL)0;
            box[$size + at] -= k * box[2 * $size + m] + (has ? g * box[p] : (REAL)0);
            FL_UNROLL for (int r = 0; r < $all; r++)
                box[(3 + r) * $size + at] -=
                    k * box[(3 + r) * $size + m] + (has ? g * box[(3 + r) * $size + p] : (REAL)0);
            box[at] = -k * box[m];
            box[2 * $size + at] = has ? -g * box[2 * $size + p] : (REAL)0;
        }
        FL_BARRIER();
    }
"""

_PARALLEL = """
    const int left = $m / stride;
    for (int k = 1; k < left; k *= 2) {
        REAL na[$some], nb[$some], nc[$some], ny[$all][$some];
        FL_UNROLL for (int v = 0; v < $some; v++) {
            const int j = w + v * $width;
            if (j < left) {
                const int row = (j + 1) * stride - 1, far = k * stride, at = $own;
                const int m = $far_before, p = $far_after;
                const REAL al = j >= k ? -box[at] / box[$size + m] : (REAL)0;
                const REAL be = j + k < left ? -box[2 * $size + at] / box[$size + p] : (REAL)0;
                na[v] = j >= k ? al * box[m] : (REAL)0;
                nc[v] = j + k < left ? be * box[2 * $size + p] : (REAL)0;
                nb[v] = box[$size + at] + (j >= k ? al * box[2 * $size + m] : (REAL)0)
                    + (j + k < left ? be * box[p] : (REAL)0);
                FL_UNROLL for (int r = 0; r < $all; r++)
                    ny[r][v] = box[(3 + r) * $size + at] + (j >= k ? al * box[(3 + r) * $size + m] : (REAL)0)
                        + (j + k < left ? be * box[(3 + r) * $size + p] : (REAL)0);
            }
        }
        FL_BARRIER();
        FL_UNROLL for (int v = 0; v < $some; v++) {
            const int j = w + v * $width;
            if (j < left) {
                const int row = (j + 1) * stride - 1, at = $own;
                box[at] = na[v]; box[$size + at] = nb[v]; box[2 * $size + at] = nc[v];
                FL_UNROLL for (int r = 0; r < $all; r++) box[(3 + r) * $size + at] = ny[r][v];
            }
        }
        FL_BARRIER();
    }
    for (int j = w; j < left; j += $width) {
        const int row = (j + 1) * stride - 1, at = $own;
        const REAL pivot = box[$size + at];
        bad |= FL_BAD(pivot);
        FL_UNROLL for (int r = 0; r < $all; r++) box[(3 + r) * $size + at] /= pivot;
    }
    FL_BARRIER();
"""

_BACK = """
    for (stride /= 2; stride > 0; stride /= 2) {
        for (int j = w; (2 * j + 1) * stride - 1 < $m; j += $width) {
            const int row = (2 * j + 1) * stride - 1, at = $own;
            const int m = $before, p = $after, has = row + stride < $m;
            const REAL pivot = box[$size + at];
            bad |= FL_BAD(pivot);
            FL_UNROLL for (int r = 0; r < $all; r++) {
                REAL found = box[(3 + r) * $size + at];
                if (row >= stride) found -= box[at] * box[(3 + r) * $size + m];
                if (has) found -= box[2 * $size + at] * box[(3 + r) * $size + p];
                box[(3 + r) * $size + at] = found / pivot;
            }
        }
        FL_BARRIER();
    }
"""

_CORNER = """
    REAL ends[$rhs];
    {
        const int64_t i = $m;
        const int first = $first, last = $last;
        const REAL below = $a, above = $c;
        const REAL whole = $b;
        const REAL pivot = whole - below * box[(3 + $rhs) * $size + last] - above * box[(3 + $rhs) * $size + first];
        bad |= FL_LOST(pivot, doubled == 1 ? whole : (REAL)0);
        FL_UNROLL for (int r = 0; r < $rhs; r++) {
            ends[r] = factor * y[y_at + i * row_step + r * rhs_step];
            ends[r] -= below * box[(3 + r) * $size + last] + above * box[(3 + r) * $size + first];
            ends[r] /= pivot;
        }
    }
    FL_BARRIER(); /* the last row may lie in the same memory as the solution */
    if (there && w == 0) {
        FL_UNROLL for (int r = 0; r < $rhs; r++) x[x_at + $m * row_step + r * rhs_step] = ends[r];
    }
"""

_STORE = """
    FL_UNROLL for (int v = 0; v < $each; v++) {
        const int row = w + v * $width, at = $own;
        if (there && row < $m) {
            FL_UNROLL for (int r = 0; r < $rhs; r++) {
                const REAL found = box[(3 + r) * $size + at]$border;
                bad |= found - found != 0;
                x[x_at + row * row_step + r * rhs_step] = found;
            }
        }
    }
"""


@dataclass(frozen=True)
class CyclicReduction:
    """CR until ``switch`` rows are left, then PCR; a group of work items holds whole lines.

    Attributes
    ----------
    name
        ``"cr"``: one row is left; ``"pcr"``: PCR alone; ``"cr_pcr"``: in between.
    switch
        Rows at which PCR takes over, for ``"cr_pcr"``; 0: 64.
    """

    name: str = "cr_pcr"
    switch: int = 0

    def body(self, form: Form, lines: Lines) -> Body:
        """Return the kernel without its parameters."""
        border, each = bordered(form, lines), form.rhs + bordered(form, lines)
        m, side = lines.rows - border, self._side(form, lines)
        width, pitch = self._width(form, lines), self._pitch(form, lines)
        switch = {"cr": 1, "pcr": m}.get(self.name, self.switch or _DEFAULT_SWITCH)
        gap = 5 if form.real == "float" else 4

        def at(row: str) -> str:
            return f"(line * {pitch} + ({row}) + (({row}) >> {gap}))"

        a, b, c = diagonals(form, lines, "i")
        common = {
            "m": m, "width": width, "each": -(-m // width), "some": -(-min(m, switch) // width),
            "switch": switch, "rhs": form.rhs, "all": each, "size": side * pitch, "a": a, "b": b, "c": c,
            "own": at("row"), "before": at("row >= stride ? row - stride : 0"),
            "after": at(f"row + stride < {m} ? row + stride : 0"),
            "far_before": at("j >= k ? row - far : 0"), "far_after": at("j + k < left ? row + far : 0"),
            "first": at("0"), "last": at(str(m - 1)),
        }  # fmt: skip
        inside = "FL_MEMBER % {0}, w = FL_MEMBER / {0}" if lines.interleaved else "FL_MEMBER / {1}, w = FL_MEMBER % {1}"
        text = f"    const int line = {inside.format(side, width)};\n"
        text += system(form, lines, f"FL_GROUP * {side} + line")
        text += fill(_LOAD, **common, border=fill(_BORDER, **common) if border else "")
        text += "".join(fill(piece, **common) for piece in (_REDUCE, _PARALLEL, _BACK))
        text += fill(_CORNER, **common) if border else ""
        far = f" - ends[r] * box[(3 + {form.rhs}) * {side * pitch} + at]" if border else ""
        text += fill(_STORE, **common, border=far) + report()
        shared = f"    FL_SHARED REAL box[{(3 + each) * side * pitch}];\n"
        return Body(f"fl_{self.name}", shared, text, side * width, -(-lines.systems // side))

    def code(self, form: Form, lines: Lines) -> Code:
        """Return the kernel; nothing leaves the chip."""
        return code(form, self.body(form, lines))

    def refuses(self, form: Form, lines: Lines) -> str:
        """Return why lines do not fit on a chip, or an empty string."""
        most = LOCAL_BYTES // self._row_bytes(form, lines) * 15 // 16
        if self.switch < 0 or (self.switch and self.name != "cr_pcr"):
            return f'switch={self.switch}: only method "cr_pcr" takes a switch, a number of rows that is at least 1'
        if self._bytes(form, lines, 1) <= LOCAL_BYTES:
            return ""
        return (
            f"lines of {lines.rows} rows of {form.real} do not fit into the memory of a group with method "
            f'"{self.name}", which holds about {most}: choose "chunks", or "thomas" where there are many systems'
        )

    @staticmethod
    def _width(form: Form, lines: Lines) -> int:
        return min(_ITEMS, up_to_power(lines.rows - bordered(form, lines)))

    def _side(self, form: Form, lines: Lines) -> int:
        """Return the lines of a group: enough to fill it, more where neighbours in memory are of different lines."""
        side = max(1, (_ITEMS if lines.interleaved else _GROUP) // self._width(form, lines))
        while lines.interleaved and side < 4 and self._bytes(form, lines, 2 * side) <= LOCAL_BYTES // 2:
            side *= 2
        while side > 1 and (side > up_to_power(lines.systems) or self._bytes(form, lines, side) > LOCAL_BYTES):
            side //= 2
        return side

    @staticmethod
    def _pitch(form: Form, lines: Lines) -> int:
        return lines.rows + (lines.rows >> (5 if form.real == "float" else 4)) + 1

    @staticmethod
    def _row_bytes(form: Form, lines: Lines) -> int:
        return (3 + form.rhs + bordered(form, lines)) * form.size

    def _bytes(self, form: Form, lines: Lines, side: int) -> int:
        return self._row_bytes(form, lines) * side * self._pitch(form, lines)
