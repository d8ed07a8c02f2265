"""Lists of the files of a series and their times, by which ParaView and PyVista show seconds."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from fluxloom.run.results.files import atomic

__all__ = ["Series"]


@dataclass(frozen=True)
class Series:
    """The list of a series: a ``.pvd`` collection of XML files of VTK, for VTKHDF files a ``.vtkhdf.series``.

    Attributes
    ----------
    name
        Of the list.
    """

    name: str

    @classmethod
    def of(cls, name: str) -> Series:
        """Return the list that a file belongs to: its name is what stands before the last ``_``."""
        stem, suffix = name.rpartition("_")[0], Path(name).suffix
        return cls(f"{stem}.vtkhdf.series" if suffix == ".vtkhdf" else f"{stem}.pvd")

    def times(self, folder: Path) -> dict[str, float]:
        """Return files and their times; nothing of a list that cannot be read."""
        path = folder / self.name
        try:
            if path.suffix == ".series":
                return {item["name"]: float(item["time"]) for item in json.loads(path.read_text("utf-8"))["files"]}
            items = ElementTree.parse(path).getroot().iter("DataSet")
            return {item.get("file", ""): float(item.get("timestep", "")) for item in items}
        except (OSError, ValueError, KeyError, TypeError, ElementTree.ParseError):
            return {}

    def write(self, path: Path, times: Mapping[str, float]) -> None:
        """Write the list, whole or not at all.

        Parameters
        ----------
        path
            The file.
        times
            Of each file, seconds.
        """
        ordered = sorted(times.items(), key=lambda item: item[1])
        if path.suffix == ".series":
            files = [{"name": file, "time": at} for file, at in ordered]
            text = json.dumps({"file-series-version": "1.0", "files": files}, indent=2)
        else:
            from xml.sax.saxutils import quoteattr  # brings half of the internet along

            rows = "".join(f'    <DataSet timestep="{at!r}" file={quoteattr(file)}/>\n' for file, at in ordered)
            head = '<?xml version="1.0"?>\n<VTKFile type="Collection" version="0.1">\n  <Collection>\n'
            text = f"{head}{rows}  </Collection>\n</VTKFile>"
        with atomic(path) as temporary:
            temporary.write_text(f"{text}\n", encoding="utf-8")
