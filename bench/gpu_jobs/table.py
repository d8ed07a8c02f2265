"""What records say beside each other: efficiencies over one GPU, and whether bits are the same."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["digests", "table"]


def digests(folder: Path) -> dict[str, str]:
    """Return a digest of each field of the last state of a run."""
    found: dict[str, str] = {}
    for path in sorted(folder.glob("*.vtkhdf")):
        import h5py

        def add(name: str, item: Any) -> None:
            if isinstance(item, h5py.Dataset) and ("CellData" in name or "PointData" in name):
                found[name] = hashlib.sha256(np.ascontiguousarray(item[()]).tobytes()).hexdigest()[:16]

        with h5py.File(path) as file:
            file.visititems(add)
    for path in sorted(folder.glob("*.vti")):
        found[path.name] = hashlib.sha256(path.read_bytes()).hexdigest()[:16]
    return found


def rows_of(name: str, record: dict[str, Any]) -> Iterator[tuple[str, float, float | None]]:
    """Yield what is compared in a record: its name, the seconds of a cell or the like, and the share of the copy."""
    cells = float(record.get("cells") or record.get("sizes", {}).get("cells") or 1)
    metrics = record.get("metrics", {})
    for row in metrics.get("sweep", ()):
        if "mlups" in row:
            what = " ".join(str(row[key]) for key in ("precision", "streaming") if key in row)
            yield f"{name} {what}", 1e-6 / row["mlups"], row["percent_of_copy"]
    if "sweep" in metrics:
        return
    seconds = record.get("seconds")
    if "ms_per_iteration" in record:
        seconds = 1e-3 * record["ms_per_iteration"]
    for key in ("ms_per_step", "ms_per_iteration", "ms_per_stage", "fused_ms"):
        if key in metrics:
            seconds = 1e-3 * metrics[key]
    if seconds:
        yield name, seconds / cells, metrics.get("percent_of_copy")


def table(folder: Path) -> str:
    """Return efficiencies over one GPU; those that grow with the GPUs are compared by their cells, as all are."""
    found: dict[str, dict[int, tuple[float, float | None, float]]] = {}
    for path in sorted((folder / "records").glob("*-x[0-9]*.json")):
        base, gpus = path.stem.rsplit("-x", 1)
        record = json.loads(path.read_text(encoding="utf-8"))
        for name, value, share in rows_of(base, record):
            found.setdefault(name, {})[int(gpus)] = (value, share, float(record.get("copy_gbs") or 0.0))
    lines = same_bits(folder)
    for name, values in sorted(found.items()):
        if name.startswith("bits-"):
            continue
        one = values.get(1) or found.get(name.replace("-weak", ""), {}).get(1)
        texts = []
        for gpus, (value, share, _) in sorted(values.items()):
            efficiency = f" {100 * one[0] / (value * gpus):.1f}%" if one and gpus > 1 else ""
            copy = f" (copy {share:.0f}%)" if share else ""
            texts.append(f"x{gpus} {1e-6 / value:.5g} M/s{efficiency}{copy}")
        lines.append(f"{name}: {'; '.join(texts)}")
    return "\n".join(lines)


def same_bits(folder: Path) -> list[str]:
    """Return a line for each run whose fields were compared."""
    found: dict[str, dict[int, dict[str, str]]] = {}
    for path in sorted((folder / "records").glob("bits-*.json")):
        base, gpus = path.stem.rsplit("-x", 1)
        found.setdefault(base, {})[int(gpus)] = json.loads(path.read_text(encoding="utf-8")).get("fields", {})
    lines = []
    for name, values in found.items():
        first = values[min(values)]
        differ = sorted({key for fields in values.values() for key in first if fields.get(key) != first[key]})
        lines.append(f"{name}: x{', x'.join(map(str, sorted(values)))}, {len(first)} fields, "
                     + (f"different: {', '.join(differ)}" if differ else "the same"))  # fmt: skip
    return lines
