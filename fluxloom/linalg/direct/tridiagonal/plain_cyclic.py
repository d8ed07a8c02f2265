"""Cyclic reduction, parallel cyclic reduction and both in turn, as plain functions whose vectors run over systems.

Forward, with distance ``s = 1, 2, 4 ...`` for the rows ``i`` that are multiples of ``2 s`` (counted from 1)::

    k_1 = a_i / b_{i-s}    k_2 = c_i / b_{i+s}
    a_i <- -a_{i-s} k_1    b_i <- b_i - c_{i-s} k_1 - a_{i+s} k_2    c_i <- -c_{i+s} k_2
    y_i <- y_i - y_{i-s} k_1 - y_{i+s} k_2

until at most ``switch`` rows are left. They are solved by the parallel form, where every row takes part in every step,
and the others follow backward: ``u_i = (y_i - a_i u_{i-s} - c_i u_{i+s}) / b_i``. ``switch = 1`` is cyclic reduction
alone, ``switch >= n`` the parallel form alone. In periodic systems the last unknown is kept apart, as a second
right-hand side of the others. A pivot that vanishes leaves unknowns that are infinite or no numbers, which tell of it.

Source: R. W. Hockney, C. R. Jesshope, "Parallel computers 2", Hilger (1988), section 5.4; Y. Zhang, J. Cohen, J. D.
Owens, "Fast tridiagonal solvers on the GPU", PPoPP (2010) 127, section 3 (both in turn).
"""

from __future__ import annotations

from dataclasses import dataclass

from fluxloom.codegen.primitive import Function
from fluxloom.linalg.direct.tridiagonal.form import Code, Form, Lines, parameters
from fluxloom.linalg.direct.tridiagonal.kernels_text import bordered, fill
from fluxloom.linalg.direct.tridiagonal.plain_text import chunked, macros

__all__ = ["PlainCyclicReduction"]

_WIDTH = 8
_SWITCH = 32
"""Rows of the reduced system where the parallel form takes over, by default: a few vectors of steps."""

_HEAD = """
#define AT(k, i, l) held[((int64_t)(k) * (2 * M) + (i)) * W + (l)]
/* 0: a, 1: b, 2: c, 3 ...: right-hand sides; rows M ... 2 M - 1 are those of the next step of the parallel form. */
"""

_CHUNK = """
        const int64_t m = rows - $border, M = m;
        const int64_t across = c_inner; (void)across;
        REAL sum[W];
        for (int l = 0; l < W; l++) sum[l] = 0;
        for (int64_t i = 0; i < m; i++)
            for (int l = 0; l < W; l++) {
                const int at = l < lanes ? l : lanes - 1;
                const REAL twice = i == 0 && number + at == pinned ? (REAL)2 : (REAL)1;
                AT(0, i, l) = $open || i > 0 ? a[K(at, i)] : (REAL)0;
                AT(1, i, l) = $main;
                AT(2, i, l) = $open || i < m - 1 ? c[K(at, i)] : (REAL)0;
                for (int r = 0; r < $rhs; r++) AT(3 + r, i, l) = (REAL)scale * y[Y(at, i, r)];
$column
            }
$cut
        int64_t span = 1;
        for (; m / span > $switch; span *= 2)
            for (int64_t i = 2 * span - 1; i < m; i += 2 * span) {
                const int64_t before = i - span, after = i + span;
                for (int l = 0; l < W; l++) {
                    const REAL pivot = AT(1, before, l), k1 = AT(0, i, l) / pivot;
                    AT(0, i, l) = -AT(0, before, l) * k1;
                    AT(1, i, l) -= AT(2, before, l) * k1;
                    for (int k = 3; k < 3 + $K; k++) AT(k, i, l) -= AT(k, before, l) * k1;
                    if (after < m) {
                        const REAL other = AT(1, after, l), k2 = AT(2, i, l) / other;
                        AT(1, i, l) -= AT(0, after, l) * k2;
                        AT(2, i, l) = -AT(2, after, l) * k2;
                        for (int k = 3; k < 3 + $K; k++) AT(k, i, l) -= AT(k, after, l) * k2;
                    } else {
                        AT(2, i, l) = 0;
                    }
                }
            }
        const int64_t count = m / span;
        int64_t now = 0;
        for (int64_t k = 1; k < count; k *= 2) {
            const int64_t next = M - now;
            for (int64_t j = 0; j < count; j++) {
                const int64_t i = span * (j + 1) - 1, front = i - k * span, after = i + k * span;
                for (int l = 0; l < W; l++) {
                    REAL low = 0, high = 0, main = AT(1, now + i, l);
                    const REAL k1 = j >= k ? AT(0, now + i, l) / AT(1, now + front, l) : (REAL)0;
                    const REAL k2 = j + k < count ? AT(2, now + i, l) / AT(1, now + after, l) : (REAL)0;
                    if (j >= k) {
                        low = -AT(0, now + front, l) * k1;
                        main -= AT(2, now + front, l) * k1;
                    }
                    if (j + k < count) {
                        main -= AT(0, now + after, l) * k2;
                        high = -AT(2, now + after, l) * k2;
                    }
                    AT(0, next + i, l) = low; AT(1, next + i, l) = main; AT(2, next + i, l) = high;
                    for (int v = 3; v < 3 + $K; v++) {
                        REAL right = AT(v, now + i, l);
                        if (j >= k) right -= AT(v, now + front, l) * k1;
                        if (j + k < count) right -= AT(v, now + after, l) * k2;
                        AT(v, next + i, l) = right;
                    }
                }
            }
            now = next;
        }
        for (int64_t j = 0; j < count; j++) {
            const int64_t i = span * (j + 1) - 1;
            for (int l = 0; l < W; l++) {
                const REAL pivot = AT(1, now + i, l);
                for (int k = 3; k < 3 + $K; k++) AT(k, i, l) = AT(k, now + i, l) / pivot;
            }
        }
        for (int64_t s1 = span / 2; s1 >= 1; s1 /= 2)
            for (int64_t i = s1 - 1; i < m; i += 2 * s1)
                for (int l = 0; l < W; l++) {
                    const REAL pivot = AT(1, i, l);
                    for (int k = 3; k < 3 + $K; k++) {
                        REAL right = AT(k, i, l);
                        if (i - s1 >= 0) right -= AT(0, i, l) * AT(k, i - s1, l);
                        if (i + s1 < m) right -= AT(2, i, l) * AT(k, i + s1, l);
                        AT(k, i, l) = right / pivot;
                    }
                }
$close
        for (int64_t i = 0; i < m; i++)
            for (int l = 0; l < lanes; l++)
                for (int r = 0; r < $rhs; r++) {
                    const REAL u = AT(3 + r, i, l)$border_term;
                    sum[l] += u - u;
                    x[X(l, i, r)] = u;
                }
        for (int l = 0; l < lanes; l++) if (sum[l] != 0) TELL(l);
"""

_COLUMN = "                AT({k}, i, l) = (i == 0 ? a[K(at, i)] : (REAL)0) + (i == m - 1 ? c[K(at, i)] : (REAL)0);"

_CUT = """        for (int l = 0; l < W; l++) { AT(0, 0, l) = 0; AT(2, m - 1, l) = 0; }"""

_CLOSE = """
        REAL far[$rhs][W];
        for (int l = 0; l < W; l++) {
            const int at = l < lanes ? l : lanes - 1;
            const int64_t i = m;
            const REAL twice = 1, low = a[K(at, i)], high = c[K(at, i)];
            const REAL whole = $main, corner = whole - low * AT(3 + $rhs, m - 1, l) - high * AT(3 + $rhs, 0, l);
            if (l < lanes && number + at != pinned && LOST(corner, whole)) TELL(l);
            for (int r = 0; r < $rhs; r++) {
                const REAL right = (REAL)scale * y[Y(at, i, r)];
                far[r][l] = (right - low * AT(3 + r, m - 1, l) - high * AT(3 + r, 0, l)) / corner;
            }
        }
        for (int l = 0; l < lanes; l++)
            for (int r = 0; r < $rhs; r++) x[X(l, m, r)] = far[r][l];
"""


@dataclass(frozen=True)
class PlainCyclicReduction:
    """Cyclic reduction down to ``switch`` rows, the parallel form for them.

    Attributes
    ----------
    name
        ``"cr"``, ``"pcr"`` or ``"cr_pcr"``.
    switch
        Rows where the parallel form takes over (``cr_pcr``); 0: 32.
    threads
        That share the systems.
    """

    name: str = "cr_pcr"
    switch: int = 0
    threads: int = 1

    def code(self, form: Form, lines: Lines) -> Code:
        """Return the function; all rows of a chunk are in the working memory of its thread, twice."""
        border, single = bordered(form, lines), form.periodic and lines.rows == 1
        main = "b[K(at, i)]" + (" + mass[i] * (SHIFT(at))" if form.coefficients == "shifted" else "")
        main = f"(a[K(at, i)] + ({main}) * twice + c[K(at, i)])" if single else f"(({main}) * twice)"
        switch = {"cr": 1, "pcr": max(1, lines.rows)}.get(self.name, self.switch or _SWITCH)
        call = fill(
            _CHUNK, border=int(border), open=int(border), main=main, rhs=form.rhs, K=form.rhs + border, switch=switch,
            column=_COLUMN.format(k=3 + form.rhs) if border else "", cut=_CUT if border else "",
            close=fill(_CLOSE, rhs=form.rhs, main=main) if border else "",
            border_term=f" - AT(3 + {form.rhs}, i, l) * far[r][l]" if border else "",
        )  # fmt: skip
        each = (3 + form.rhs + border) * 2 * lines.rows * _WIDTH
        text = chunked(lines, call, width=_WIDTH, threads=self.threads, each=each)
        function = Function("fl_cyclic", parameters(form), text)
        return Code((function,), (1,), macros(form, lines, _WIDTH) + _HEAD, each * self.threads)

    def refuses(self, form: Form, lines: Lines) -> str:
        """Return why it cannot be done: for a negative switch."""
        return "" if self.switch >= 0 else f"switch={self.switch}: give the rows left for the parallel form, 1 or more"
