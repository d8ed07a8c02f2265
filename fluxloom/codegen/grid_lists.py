"""Loops over some elements of a grid, given by a list: coordinates by division, neighbours by arithmetic.

Coordinates of a piece of the list come first, in a loop of their own: divisions are not made in vectors, and in the
loop that computes they would keep the compiler from making any.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fluxloom.codegen.group import CHUNK
from fluxloom.codegen.member import Member

if TYPE_CHECKING:
    from fluxloom.codegen.grid import GridDriver

__all__ = ["write_list"]

_PIECE = 64
"""Elements whose coordinates are found at a time."""


def write_list(driver: GridDriver, member: Member) -> list[str]:
    """Return the function of one loop over the elements of a list, and what runs its chunks on threads."""
    return [*_sites(driver, member), *_driver(driver, member)]


def _sites(driver: GridDriver, member: Member) -> list[str]:
    """Write the elements between two places of the list, piece by piece."""
    symbol, grid, rows = driver.group.symbol, driver.grid(), driver.rows(member)

    def shifted(x: int) -> str:
        return f"fl_wrap(x + {x}, A->n2)" if grid.periodic[2] else f"x + {x}"

    body = driver.body(member, rows, shifted)
    places = ["        const int64_t x = at2[k], y = at1[k], z = at0[k];"]
    places += [f"        const int64_t {name} = {driver.row_base(grid, dz, dy)};" for (dz, dy), name in rows.items()]
    return [
        f"AI void {symbol}_list(const {symbol}_args *restrict A, const int64_t begin, const int64_t end"
        f"{driver.partial_parameters(member)}) {{",
        *driver.constants,
        f"    for (int64_t first = begin; first < end; first += {_PIECE}) {{",
        f"    const int count = end - first < {_PIECE} ? (int)(end - first) : {_PIECE};",
        f"    int32_t at0[{_PIECE}], at1[{_PIECE}], at2[{_PIECE}];",
        "    for (int k = 0; k < count; k++) {",
        "        const uint32_t e = (uint32_t)A->list[first + k], row = e / (uint32_t)A->n2;",
        "        at0[k] = (int32_t)(row / (uint32_t)A->n1);",
        "        at1[k] = (int32_t)(row % (uint32_t)A->n1);",
        "        at2[k] = (int32_t)(e % (uint32_t)A->n2);",
        "    }",
        *driver.sites(member, "for (int k = 0; k < count; k++)", [*places, *body]),
        "    }",
        "}",
        "",
    ]


def _driver(driver: GridDriver, member: Member) -> list[str]:
    """Write the function that is called: chunks of the list on threads, partial results in their order."""
    symbol, group = driver.group.symbol, driver.group
    first = "A->from" if group.ranged else "0"
    passed = "".join(f", acc_{a.parameter}" for _, a in group.reductions((member,)))
    return [
        f"void {symbol}(const int64_t *S) {{",
        f"    const {symbol}_args *const A = (const {symbol}_args *)S;",
        f"    const int64_t first = {first}, n = {'A->list[A->n]' if group.counted else 'A->n'};",
        f"    const int64_t chunks = (n - first + {CHUNK - 1}) / {CHUNK};",
        "#pragma omp parallel for schedule(static) num_threads(fl_threads(A->threads)) if (A->threads != 1)",
        "    for (int64_t b = 0; b < chunks; b++) {",
        f"        const int64_t begin = first + b * {CHUNK}, end = begin + {CHUNK} < n ? begin + {CHUNK} : n;",
        *driver.partials(member),
        f"        {symbol}_list(A, begin, end{passed});",
        *driver.keep(member, "b"),
        "    }",
        *driver.total(member, "chunks"),
        "}",
    ]
