"""``fluxloom plot``: pictures of a finished run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from fluxloom.cli.console import directory as to_directory
from fluxloom.cli.console import messages
from fluxloom.core.errors import CaseError, did_you_mean
from fluxloom.mesh.io import Fields, output_format, output_formats, read_fields
from fluxloom.run.flow import Picture
from fluxloom.run.pictures import draw_field, draw_residual
from fluxloom.run.results.files import read_residuals

__all__ = ["NAME", "command"]

NAME = "plot"
_MAGNITUDE = "speed"


def command(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="Output directory of a run.")],
    field: Annotated[
        list[str] | None,
        typer.Option("--field", "-f", metavar="NAME", help="Field; may be repeated.", show_default="of the case"),
    ] = None,
    window: Annotated[
        str, typer.Option("--window", metavar="X0,X1,Y0,Y1", help="Part of the plane.", show_default="of the case")
    ] = "",
    colours: Annotated[
        str, typer.Option("--colours", metavar="NAME", help="Colour map of matplotlib.", show_default="of the case")
    ] = "",
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="DIR", parser=to_directory, help="Where to write.", show_default="DIR"),
    ] = None,
) -> None:
    """Draw the residual and the fields of a run's output directory as PNG files."""
    record = _record(directory)
    target = output if output is not None else directory
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CaseError(f"{target}: cannot be made: {error.strerror or error}") from None
    written = []
    if (directory / "residual.csv").exists():
        iterations, residuals = read_residuals(directory / "residual.csv")
        if len(residuals) > 1:
            name = record.get("case", {}).get("case", {}).get("name", directory.name)
            draw_residual(target / "residual.png", iterations, residuals, f"{name}: residual")
            written.append("residual.png")
    final = next((path for path in map(directory.joinpath, _finals()) if path.exists()), None)
    if final is None and field:
        raise CaseError(f"{directory}: there is none of {', '.join(_finals())}; run with [output] format = \"auto\"")
    if final is not None:
        fields = read_fields(final)
        for picture in _pictures(record, fields, field or [], window, colours):
            nodal = picture.field in fields.point_data
            values = fields.point_data[picture.field] if nodal else _values(fields, picture.field)
            draw_field(target / f"{picture.field}.png", fields.mesh, np.asarray(values), picture, nodal=nodal)
            written.append(f"{picture.field}.png")
    if not written:
        raise CaseError(f"{directory}: there is nothing to draw (no residual.csv, no {' or '.join(_finals())})")
    messages().print(f"{target}: {', '.join(written)}", soft_wrap=True, markup=False)


def _finals() -> list[str]:
    """Return the names that files of final fields may have, of formats that can be read."""
    readable = [found for found in map(output_format, output_formats()) if found.read is not None]
    return [f"final{suffix}" for found in readable for suffix in found.suffixes[:1]]


def _record(directory: Path) -> dict[str, Any]:
    """Return the record of a run, empty where there is none."""
    if not directory.is_dir():
        raise CaseError(f"{directory}: no such directory; name the output directory of a run")
    path = directory / "run.json"
    if not path.exists():
        return {}
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise CaseError(f"{path}: not the record of a run: {error}") from None


def _pictures(record: dict[str, Any], fields: Fields, wanted: list[str], window: str, colours: str) -> list[Picture]:
    """Return the pictures to draw: those of the case, or one for each field asked for."""
    known = {item["field"]: Picture(**item | {"window": _tuple(item["window"])}) for item in record.get("pictures", [])}
    found = {**fields.point_data, **fields.cell_data}
    scalars = [name for name, values in found.items() if np.ndim(values) == 1]
    allowed = [*scalars, *([_MAGNITUDE] if "velocity" in fields.cell_data else [])]
    names = wanted or [name for name in known if name in allowed] or scalars[:1]
    area = _window(window)
    common = next(iter(known.values())).window if known else None
    chosen = []
    for name in names:
        if name not in allowed:
            raise CaseError(f"no field {name!r}{did_you_mean(name, allowed)} (fields: {', '.join(allowed)})")
        base = known.get(name, Picture(name, name, name, common))
        centre = base.centre if not colours else None
        shown = area if area is not None else base.window
        chosen.append(Picture(name, base.title, base.label, shown, colours or base.colours, centre))
    return chosen


def _values(fields: Fields, name: str) -> np.ndarray[Any, Any]:
    if name == _MAGNITUDE and name not in fields.cell_data:
        return np.linalg.norm(np.asarray(fields.cell_data["velocity"]), axis=1)
    return np.asarray(fields.cell_data[name])


def _tuple(window: list[float] | None) -> tuple[float, float, float, float] | None:
    return (window[0], window[1], window[2], window[3]) if window else None


def _window(text: str) -> tuple[float, float, float, float] | None:
    """Return the window that a text describes."""
    if not text:
        return None
    try:
        x0, x1, y0, y1 = (float(word) for word in text.split(","))
    except ValueError:
        raise CaseError(f"--window {text!r}: give four numbers x0,x1,y0,y1") from None
    if not (x0 < x1 and y0 < y1):
        raise CaseError(f"--window {text!r}: x0 < x1 and y0 < y1 are needed")
    return x0, x1, y0, y1
