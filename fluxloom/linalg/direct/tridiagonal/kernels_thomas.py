"""Thomas's algorithm, a work item a system: for very many systems whose neighbours in memory are of different systems.

Forward, for rows ``i = 0 ... m - 1``::

    p_i = b_i - a_i c'_{i-1}     c'_i = c_i / p_i     y'_i = (y_i - a_i y'_{i-1}) / p_i

then backward ``x_i = y'_i - c'_i x_{i+1}``. ``y'`` waits in ``x`` and ``c'`` in ``work``; where all systems share
their matrix, ``c'`` waits in the memory of the group. In a periodic system the last unknown ``X`` is kept apart:
``x_i = y'_i - l_i X - c'_i x_{i+1}`` with ``l_i = -a_i l_{i-1} / p_i``, and what the last row becomes when the others
are put into it, from the first on, gives ``X``.

Source: L. H. Thomas, "Elliptic problems in linear difference equations over a network", Watson Sci. Comput. Lab.
Report (1949); the bordered form: C. Temperton, "Algorithms for the solution of cyclic tridiagonal systems", J. Comput.
Phys. 19 (1975) 317, section 2.
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
)

__all__ = ["Thomas"]

_FEW, _SOME = 1 << 15, 1 << 17
"""Up to so many systems groups are smaller, that all multiprocessors have some."""

_FORWARD = """
    const int64_t m = rows - $border;
    REAL fa[$ahead], fb[$ahead], fc[$ahead], fy[$rhs][$ahead];
    REAL ga[$ahead], gb[$ahead], gc[$ahead], gy[$rhs][$ahead];
    REAL cp = 0, yp[$rhs];
$open
    FL_UNROLL for (int r = 0; r < $rhs; r++) yp[r] = 0;
    FL_UNROLL for (int j = 0; j < $ahead; j++) {
        const int64_t i = j < m ? j : m - 1;
        ga[j] = $a; gb[j] = $b; gc[j] = $c;
        FL_UNROLL for (int r = 0; r < $rhs; r++) gy[r][j] = y[y_at + i * row_step + r * rhs_step];
    }
    for (int64_t at = 0; at < m; at += $ahead) {
        FL_UNROLL for (int j = 0; j < $ahead; j++) {
            fa[j] = ga[j]; fb[j] = gb[j]; fc[j] = gc[j];
            FL_UNROLL for (int r = 0; r < $rhs; r++) fy[r][j] = gy[r][j];
        }
        FL_UNROLL for (int j = 0; j < $ahead; j++) {
            const int64_t i = at + $ahead + j < m ? at + $ahead + j : m - 1;
            ga[j] = $a; gb[j] = $b; gc[j] = $c;
            FL_UNROLL for (int r = 0; r < $rhs; r++) gy[r][j] = y[y_at + i * row_step + r * rhs_step];
        }
        FL_UNROLL for (int j = 0; j < $ahead; j++) {
            const int64_t i = at + j;
            if (i < m) {
                const REAL pivot = fb[j] - fa[j] * cp, inverse = 1 / pivot;
                bad |= FL_BAD(pivot);
                cp = fc[j] * inverse;
                $keep
                FL_UNROLL for (int r = 0; r < $rhs; r++) {
                    yp[r] = (factor * fy[r][j] - fa[j] * yp[r]) * inverse;
                    if (there) x[x_at + i * row_step + r * rhs_step] = yp[r];
                }
$row
            }
        }
    }
$close
"""

_OPEN = """    const int64_t n = rows - 1;
    REAL left = -1, far, corner, low, ends[$rhs];
    { const int64_t i = n; low = $a; corner = $b; far = $c; }
    const REAL whole = doubled == 1 ? corner : (REAL)0;
    FL_UNROLL for (int r = 0; r < $rhs; r++) ends[r] = factor * y[y_at + n * row_step + r * rhs_step];"""

_ROW = """                left = -fa[j] * left * inverse;
                $keep
                if (i == m - 1) {
                    far += low;
                    corner -= far * (left + cp);
                } else {
                    corner -= far * left;
                }
                FL_UNROLL for (int r = 0; r < $rhs; r++) ends[r] -= far * yp[r];
                far = -far * cp;"""

_CLOSE = """    bad |= FL_LOST(corner, whole);
    FL_UNROLL for (int r = 0; r < $rhs; r++) {
        ends[r] /= corner;
        if (there) x[x_at + n * row_step + r * rhs_step] = ends[r];
        yp[r] = ends[r];
    }"""

_BACKWARD = """
    FL_UNROLL for (int r = 0; r < $rhs; r++) bad |= yp[r] - yp[r] != 0;
    const int64_t top = m - $last;
    FL_UNROLL for (int j = 0; j < $ahead; j++) {
        const int64_t i = top - j > 0 ? top - j : 0;
        gc[j] = $cp;$left
        FL_UNROLL for (int r = 0; r < $rhs; r++) gy[r][j] = x[x_at + i * row_step + r * rhs_step];
    }
    for (int64_t at = top; at >= 0; at -= $ahead) {
        FL_UNROLL for (int j = 0; j < $ahead; j++) {
            fc[j] = gc[j]; fa[j] = ga[j];
            FL_UNROLL for (int r = 0; r < $rhs; r++) fy[r][j] = gy[r][j];
        }
        FL_UNROLL for (int j = 0; j < $ahead; j++) {
            const int64_t i = at - $ahead - j > 0 ? at - $ahead - j : 0;
            gc[j] = $cp;$left
            FL_UNROLL for (int r = 0; r < $rhs; r++) gy[r][j] = x[x_at + i * row_step + r * rhs_step];
        }
        FL_UNROLL for (int j = 0; j < $ahead; j++) {
            const int64_t i = at - j;
            if (i >= 0) {
                FL_UNROLL for (int r = 0; r < $rhs; r++) {
                    yp[r] = fy[r][j] - fc[j] * yp[r]$border;
                    if (there) x[x_at + i * row_step + r * rhs_step] = yp[r];
                }
            }
        }
    }
"""


@dataclass(frozen=True)
class Thomas:
    """Thomas's algorithm, a work item a system.

    Words a row and right-hand side that go to or come from memory, with ``R`` right-hand sides: ``4 + 5 / R`` when
    every system has its own matrix, ``4 + 2 / R`` when they are shifted, 4 when they share it; periodic systems move
    ``2 / R`` more, unless they share it.

    Attributes
    ----------
    ahead
        Rows that are asked for before they are needed; 0: chosen from the number of systems.
    block
        Work items of a group; 0: chosen likewise.
    """

    ahead: int = 0
    block: int = 0
    name: str = "thomas"

    def body(self, form: Form, lines: Lines) -> Body:
        """Return the kernel without its parameters."""
        a, b, c = diagonals(form, lines, "i")
        border, local = bordered(form, lines), self._local(form, lines)
        ahead = self.ahead or (8 if lines.systems <= _FEW and form.rhs <= 2 else 4)
        block = self.block or (32 if lines.systems <= _FEW else 64 if lines.systems <= _SOME else 128)
        common = {"ahead": ahead, "rhs": form.rhs, "a": a, "b": b, "c": c}
        cp, keep = self._kept(local, "i", "i * systems + q", "cp")
        far, keep_far = self._kept(local, f"{lines.rows} + i", "(rows + i) * systems + q", "left")
        forward = fill(
            _FORWARD, **common, border=int(border), keep=keep,
            open=fill(_OPEN, **common) if border else "",
            row=fill(_ROW, rhs=form.rhs, keep=keep_far) if border else "",
            close=fill(_CLOSE, rhs=form.rhs) if border else "",
        )  # fmt: skip
        backward = fill(
            _BACKWARD, ahead=ahead, rhs=form.rhs, last=1 if border else 2, cp=cp,
            left=f" ga[j] = {far};" if border else "", border=" - fa[j] * ends[r]" if border else "",
        )  # fmt: skip
        barrier = "    FL_BARRIER();\n" if local else ""
        who = f"    const int writer = FL_MEMBER == (FL_GROUP * {block} == pinned);\n" if local else ""
        text = system(form, lines, "FL_ITEM") + who + forward + barrier + backward + report()
        shared = f"    FL_SHARED REAL held[{lines.rows * (1 + border)}];\n" if local else ""
        return Body("fl_thomas", shared, text, block, -(-lines.systems // block))

    def code(self, form: Form, lines: Lines) -> Code:
        """Return the kernel; ``c'`` waits in the working memory, and ``l`` in periodic systems."""
        words = lines.rows * (1 if self._local(form, lines) else lines.systems) * (1 + bordered(form, lines))
        return code(form, self.body(form, lines), words=words)

    def refuses(self, form: Form, lines: Lines) -> str:
        """Return an empty string: every system can be solved this way."""
        return ""

    @staticmethod
    def _kept(local: bool, place: str, item: str, name: str) -> tuple[str, str]:
        """Return where a value of a row is found, and the statement that keeps it there.

        In memory of the group one item keeps it for all, but that of the pinned system, whose matrix is another.
        """
        if not local:
            return f"work[{item}]", f"if (there) work[{item}] = {name};"
        keep = f"if (q == pinned) {{ if (there) work[{place}] = {name}; }} else if (writer) held[{place}] = {name};"
        return f"(q == pinned ? work[{place}] : held[{place}])", keep

    @staticmethod
    def _local(form: Form, lines: Lines) -> bool:
        """Whether what depends on the matrix alone lies in the memory of the group."""
        words = lines.rows * (1 + bordered(form, lines))
        return form.coefficients == "shared" and words * form.size <= LOCAL_BYTES * 2 // 3
