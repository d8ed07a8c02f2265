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

from fluxloom.codegen.primitive import Function, source_of
from fluxloom.linalg.direct.tridiagonal.form import Code, Form, Lines, parameters
from fluxloom.linalg.direct.tridiagonal.kernels_text import ROOM, bordered, defined
from fluxloom.linalg.direct.tridiagonal.plain_text import chunked, macros

__all__ = ["PlainCyclicReduction"]

_WIDTH = 8
_SWITCH = 32
"""Rows of the reduced system where the parallel form takes over, by default: a few vectors of steps."""

_AT = "#define AT(k, i, l) held[((int64_t)(k) * (2 * M) + (i)) * W + (l)]\n"
"""Where the values of a chunk are in the working memory of a thread."""


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
        names = {
            "BORDER": int(border), "RHS": form.rhs, "ALL": form.rhs + border, "SWITCH": switch, "MAIN(at, i)": main,
        }  # fmt: skip
        each = (3 + form.rhs + border) * 2 * lines.rows * _WIDTH
        body = source_of(ROOM, "cyclic_lanes.c")
        text = chunked(lines, body, width=_WIDTH, threads=self.threads, each=each)
        function = Function("fl_cyclic", parameters(form), text)
        helpers = macros(form, lines, _WIDTH) + _AT + defined(names)
        return Code((function,), (1,), helpers, each * self.threads)

    def refuses(self, form: Form, lines: Lines) -> str:
        """Return why it cannot be done: for a negative switch."""
        return "" if self.switch >= 0 else f"switch={self.switch}: give the rows left for the parallel form, 1 or more"
