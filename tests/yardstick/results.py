"""Read what a run left behind into a record: fields, tables, summary, status, names of files.

Nothing here imports the package that is measured: its files are read as anybody would.
"""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tests.yardstick.digests import Array, digest, sha

WALL_CLOCK = re.compile(
    r"second|^ms\b|_ms$|mlups|gb/?s\b|\bpace\b|elapsed|wall.?clock|"
    r"^split$|^copies$|, time$|^rate$|^ideal rate$|^memory$",
    re.IGNORECASE,
)
"""Names of columns and of rows of the summary that tell how long something took; they are never compared."""

RATE = re.compile(r"MLUPS|GB/s|\bms\b|\bns\b|iterations/s")
"""What a text that tells how fast something was has in it."""

NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d[\d,]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?(?![\w])")
FIELDS = (".vtkhdf", ".vtu", ".vti")
LEFT_OUT = ("run.json", "checkpoint", ".png", ".mp4", ".gif", ".log")


def read_results(folder: Path) -> dict[str, Any]:
    """Return what lies in a folder of results."""
    record: dict[str, Any] = {"status": {}, "summary": {}, "fields": {}, "tables": {}, "files": []}
    told = folder / "run.json"
    if told.exists():
        run = json.loads(told.read_text(encoding="utf-8"))
        record["status"] = {"status": run.get("status"), "iterations": run.get("iterations")}
        record["summary"] = summary(run)
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        name = path.relative_to(folder).as_posix()
        if any(word in name for word in LEFT_OUT):
            continue
        record["files"].append(name)
        if path.suffix in FIELDS:
            record["fields"] |= {f"{name}:{array}": digest(values) for array, values in arrays(path)}
        elif path.suffix == ".csv":
            record["tables"][name] = table(path)
        elif path.suffix in (".stl", ".msh", ".su2"):
            record["fields"][name] = digest(np.frombuffer(path.read_bytes(), dtype="V1"))
    return record


def summary(run: dict[str, Any]) -> dict[str, list[float]]:
    """Return the numbers of the rows of a summary, and the last residual."""
    rows = {name: numbers(str(text)) for name, text in run.get("results", {}).items() if not timed(name, str(text))}
    residual = run.get("residual")
    return rows | ({"residual": [residual]} if residual is not None else {})


def timed(name: str, text: str = "") -> bool:
    """Whether a row or a column holds a wall-clock time or a rate."""
    return bool(WALL_CLOCK.search(name) or RATE.search(text))


def numbers(text: str) -> list[float]:
    """Return the numbers in a text; commas part thousands."""
    return [float(found.replace(",", "")) for found in NUMBER.findall(text)]


def table(path: Path) -> dict[str, Any]:
    """Return the record of a table: of each column its digest, last value, extremes and one sum of its sketch."""
    with path.open(encoding="utf-8", newline="") as file:
        heading, *rows = [row for row in csv.reader(file) if row and not row[0].startswith("#")]
    columns = {}
    for place, name in enumerate(heading):
        if timed(name):
            continue
        texts = [row[place] if place < len(row) else "" for row in rows]
        try:
            whole = digest(np.array([float(text) for text in texts]), 1)
        except ValueError:
            columns[name] = [sha("\n".join(texts).encode())]
            continue
        last = float(texts[-1]) if texts and math.isfinite(float(texts[-1])) else None
        lost = [whole["not_finite"]] if "not_finite" in whole else []
        columns[name] = [whole["sha"], last, whole.get("least"), whole.get("most"), *whole.get("sketch", [None]), *lost]
    return {"rows": len(rows), "columns": columns}


# --------------------------------------------------------------------------------------- files of fields


def arrays(path: Path) -> Iterator[tuple[str, Array]]:
    """Yield the arrays of a file of VTK by name; of what says how points make cells only one, of bytes."""
    read = {".vtkhdf": hdf5_arrays, ".vtu": meshio_arrays, ".vti": image_arrays}[path.suffix]
    topology = b""
    for name, values in read(path):
        group, _, short = name.rpartition("/")
        if values.dtype.kind not in "fiub":
            continue
        if group.endswith(("CellData", "PointData", "FieldData")):
            yield short, values
        elif short == "Points":
            yield "(points)", values
        else:
            topology += name.encode() + np.ascontiguousarray(values).tobytes()
    if topology:
        yield "(cells)", np.frombuffer(topology, dtype="V1")


def hdf5_arrays(path: Path) -> Iterator[tuple[str, Array]]:
    """Yield the data sets of a file of HDF5, but the time."""
    import h5py

    found: list[tuple[str, Array]] = []

    def visit(name: str, item: Any) -> None:
        if isinstance(item, h5py.Dataset) and "/Steps/" not in name and not name.endswith("/TimeValue"):
            found.append((name, np.asarray(item[()])))

    with h5py.File(path, "r") as file:
        file.visititems(visit)
    yield from found


def meshio_arrays(path: Path) -> Iterator[tuple[str, Array]]:
    """Yield the arrays of a file of an unstructured mesh."""
    import meshio

    mesh = meshio.read(path)
    yield "Points", mesh.points
    for place, block in enumerate(mesh.cells):
        yield f"cells {place} {block.type}", block.data
    for name, values in mesh.point_data.items():
        yield f"PointData/{name}", np.asarray(values)
    for name, blocks in mesh.cell_data.items():
        yield f"CellData/{name}", np.concatenate([np.asarray(block) for block in blocks])
    for name, values in mesh.field_data.items():
        if name == "TimeValue":
            continue
        yield f"FieldData/{name}", np.asarray(values)


def image_arrays(path: Path) -> Iterator[tuple[str, Array]]:
    """Yield the arrays of image data whose values are appended raw."""
    data = path.read_bytes()
    head, _, rest = data.partition(b'<AppendedData encoding="raw">')
    start = len(data) - len(rest) + rest.index(b"_") + 1
    yield "grid", np.frombuffer(b"".join(re.findall(rb"<(?:ImageData|Piece)[^>]*>", head)), dtype=np.uint8)
    for text in re.findall(r"<DataArray[^>]*>", head.decode()):
        found = dict(re.findall(r'(\w+)="([^"]*)"', text))
        if "offset" not in found:  # the time
            continue
        place = start + int(found["offset"])
        size = int.from_bytes(data[place : place + 8], "little")
        kind = np.dtype(found["type"].lower()).newbyteorder("<")
        yield f"CellData/{found['Name']}", np.frombuffer(data[place + 8 : place + 8 + size], dtype=kind)
