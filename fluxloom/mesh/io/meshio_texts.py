"""Text files for meshio: what it does not read is made plain, and what it would leave out without a word is refused."""

from __future__ import annotations

import contextlib
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

from fluxloom.core.errors import MeshError
from fluxloom.core.text import without_mark

__all__ = ["plain_text"]

_NASTRAN, _OTHERS = (".bdf", ".nas", ".fem"), (".vtk", ".mesh", ".off", ".tec", ".dat", ".ugrid")
_FORTRAN = re.compile(rb"(\d\.\d*|\.\d+)[dD](?=[+-]?\d)")
_CELL = re.compile(r"C(?:TRI|TRA|QUAD|TETRA|PENTA|PYRA|HEXA)\w*")
_KNOWN = {"CTRIAR", "CTRIA3", "CTRAX6", "CTRIAX6", "CTRIA6", "CQUADR", "CQUAD4", "CQUAD8", "CQUAD9", "CTETRA", "CPYRAM",
          "CPYRA", "CPENTA", "CHEXA"}  # fmt: skip


@contextlib.contextmanager
def plain_text(path: str | Path) -> Iterator[Path]:
    """Give a file that meshio reads: the file, or a copy without byte-order mark and exponents of Fortran.

    Raises
    ------
    MeshError
        With file and line, for what meshio leaves out or misplaces without a word: included files, cells that it does
        not know, and points in coordinate systems of their own.
    """
    path, suffix = Path(path), Path(path).suffix.lower()
    if suffix not in (*_NASTRAN, *_OTHERS) or not path.is_file():
        yield path
        return
    with path.open("rb") as file:
        head = file.read(4)
        if suffix in _OTHERS and without_mark(head) == head:
            yield path
            return
        data = head + file.read()
    plain = without_mark(data)
    if suffix in _NASTRAN:
        _check_nastran(path, plain.decode("utf-8", errors="replace").splitlines())
        plain = _FORTRAN.sub(rb"\1e", plain)
    if plain == data:
        yield path
        return
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / path.name
        copy.write_bytes(plain)
        yield copy


def _check_nastran(path: Path, lines: list[str]) -> None:
    """Refuse what would get lost of a Nastran file."""
    for number, line in enumerate(lines, 1):
        card = (line.split(",")[0] if "," in line else line[:8]).strip().rstrip("*").upper()
        wide = "*" in line[:8]
        system = "".join(line.split(",")[2:3]) if "," in line else line[24:40] if wide else line[16:24]
        problem = (
            f"cells {card} are not known" if _CELL.fullmatch(card) and card not in _KNOWN
            else "INCLUDE leads to another file" if line.strip().upper().startswith("INCLUDE")
            else "a point in a coordinate system of its own" if card == "GRID" and system.strip() not in ("", "0")
            else ""
        )  # fmt: skip
        if problem:
            raise MeshError(f"{path}:{number}: {problem}; write one file, in the basic system, of linear cells")
