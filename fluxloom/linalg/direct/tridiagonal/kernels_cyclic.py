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

from fluxloom.codegen.primitive import source_of
from fluxloom.linalg.direct.tridiagonal.form import Code, Form, Lines
from fluxloom.linalg.direct.tridiagonal.kernels_text import (
    LOCAL_BYTES,
    ROOM,
    Body,
    bordered,
    code,
    named_diagonals,
    report,
    system,
    up_to_power,
)

__all__ = ["CyclicReduction"]

_ITEMS, _GROUP = 256, 128
"""Work items of a line at most, and of a group at least."""

_DEFAULT_SWITCH = 64
"""Rows at which PCR takes over: those that two warps hold."""

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

    def code(self, form: Form, lines: Lines) -> Code:
        """Return the kernel; nothing leaves the chip."""
        border = bordered(form, lines)
        m, side, width = lines.rows - border, self._side(form, lines), self._width(form, lines)
        switch = {"cr": 1, "pcr": m}.get(self.name, self.switch or _DEFAULT_SWITCH)
        size, every = side * self._pitch(form, lines), form.rhs + border
        names = {
            "M": m, "WIDTH": width, "EACH": -(-m // width), "SOME": -(-min(m, switch) // width), "SWITCH": switch,
            "RHS": form.rhs, "ALL": every, "BORDER": int(border), "SIZE": size, "PITCH": self._pitch(form, lines),
            "GAP": self._gap(form),
        }  # fmt: skip
        inside = "FL_MEMBER % {0}, w = FL_MEMBER / {0}" if lines.interleaved else "FL_MEMBER / {1}, w = FL_MEMBER % {1}"
        text = f"    const int line = {inside.format(side, width)};\n"
        text += system(form, lines, f"FL_GROUP * {side} + line")
        text += source_of(ROOM, "cyclic_group.c") + "\n" + report()
        shared = f"    FL_SHARED REAL box[{(3 + every) * size}];\n"
        body = Body(f"fl_{self.name}", shared, text, side * width, -(-lines.systems // side))
        return code(form, body, names={**names, **named_diagonals(form, lines)})

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
    def _gap(form: Form) -> int:
        return 5 if form.real == "float" else 4

    def _pitch(self, form: Form, lines: Lines) -> int:
        return lines.rows + (lines.rows >> self._gap(form)) + 1

    @staticmethod
    def _row_bytes(form: Form, lines: Lines) -> int:
        return (3 + form.rhs + bordered(form, lines)) * form.size

    def _bytes(self, form: Form, lines: Lines, side: int) -> int:
        return self._row_bytes(form, lines) * side * self._pitch(form, lines)
