"""Loops over some elements of a grid, given by a list: coordinates by division, neighbours by arithmetic.

Coordinates of a piece of the list come first, in a loop of their own: divisions are not made in vectors, and in the
loop that computes they would keep the compiler from making any.
"""

from __future__ import annotations

from fluxloom.codegen.grids.grid import GridDriver
from fluxloom.codegen.language.frame import PARALLEL, beginning
from fluxloom.codegen.language.group import CHUNK, Member
from fluxloom.codegen.language.reduce import finish

__all__ = ["ListDriver"]

_PIECE = 64
"""Elements whose coordinates are found at a time."""


class ListDriver(GridDriver):
    """Writes the C text of one loop over the elements of a list: a function for some of them, and their chunks."""

    def _row(self, member: Member) -> list[str]:
        """Write the elements between two places of the list, piece by piece."""
        symbol, rows = self.group.symbol, self.rows(member)

        def shifted(x: int) -> str:
            return f"fl_wrap(x + {x}, A->n2)" if self.spec.box.periodic[2] else f"x + {x}"

        body = self.body(member, rows, shifted)
        places = ["        const int64_t x = at2[k], y = at1[k], z = at0[k];"]
        places += [f"        const int64_t {name} = {self.row_base(dz, dy)};" for (dz, dy), name in rows.items()]
        return [
            f"AI void {symbol}_list(const {symbol}_args *restrict A, const int64_t begin, const int64_t end"
            f"{self.partial_parameters(member)}) {{",
            *self.constants,
            f"    for (int64_t first = begin; first < end; first += {_PIECE}) {{",
            f"    const int count = end - first < {_PIECE} ? (int)(end - first) : {_PIECE};",
            f"    int32_t at0[{_PIECE}], at1[{_PIECE}], at2[{_PIECE}];",
            "    for (int k = 0; k < count; k++) {",
            "        const uint32_t e = (uint32_t)A->list[first + k], row = e / (uint32_t)A->n2;",
            "        at0[k] = (int32_t)(row / (uint32_t)A->n1);",
            "        at1[k] = (int32_t)(row % (uint32_t)A->n1);",
            "        at2[k] = (int32_t)(e % (uint32_t)A->n2);",
            "    }",
            *self.sites(member, "for (int k = 0; k < count; k++)", [*places, *body]),
            "    }",
            "}",
            "",
        ]

    def _driver(self, member: Member) -> list[str]:
        """Write the function that is called: chunks of the list on threads, partial results in their order."""
        symbol, group = self.group.symbol, self.group
        first = "A->from" if group.ranged else "0"
        passed = "".join(f", acc_{a.parameter}" for _, a in group.reductions((member,)))
        return [
            *beginning(symbol),
            f"    const int64_t first = {first}, n = {'A->list[A->n]' if group.counted else 'A->n'};",
            f"    const int64_t chunks = (n - first + {CHUNK - 1}) / {CHUNK};",
            PARALLEL,
            "    for (int64_t b = 0; b < chunks; b++) {",
            f"        const int64_t begin = first + b * {CHUNK}, end = begin + {CHUNK} < n ? begin + {CHUNK} : n;",
            *self.partials(member),
            f"        {symbol}_list(A, begin, end{passed});",
            *self.keep(member, "b"),
            "    }",
            *finish(group, (member,), "chunks"),
            "}",
        ]
