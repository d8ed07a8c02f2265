"""``fluxloom mesh``: describe, check, convert, generate and renumber mesh files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, cast, get_args

import typer
from rich.text import Text

from fluxloom.app.cli.console import facts, messages, output
from fluxloom.app.files import atomic
from fluxloom.core.errors import CaseError, did_you_mean
from fluxloom.mesh import airfoil_mesh, box2d, box3d, check, orient, read_data, read_fields, renumber, write
from fluxloom.mesh.mesh import MeshData
from fluxloom.mesh.renumber import Method

__all__ = ["build"]

Source = Annotated[Path, typer.Argument(metavar="FILE", help="Mesh file: .su2, .msh, .vtu, .vtkhdf ...")]
Target = Annotated[Path, typer.Argument(metavar="NEW", help="File to write; its suffix tells the format.")]
Format = Annotated[
    str | None,
    typer.Option("--format", metavar="NAME", help="Format, when the suffix does not tell.", show_default=False),
]
SHAPES = ("airfoil", "box2d", "box3d")


def build() -> typer.Typer:
    """Return the group of verbs about meshes."""
    app = typer.Typer(help="Describe, check, convert, generate and renumber meshes.", no_args_is_help=True)
    app.command("info")(_info)
    app.command("check")(_check)
    app.command("convert")(_convert)
    app.command("generate")(_generate)
    app.command("renumber")(_renumber)
    return app


def _info(file: Source, format: Format = None) -> None:
    """Say what a mesh file holds, without judging it."""
    fields = read_fields(file, format=format)
    mesh = fields.mesh
    kinds = ", ".join(f"{len(block):,} {name}" for name, block in mesh.cells.items())
    box = " x ".join(
        f"[{a:.6g}, {b:.6g}]" for a, b in zip(mesh.points.min(axis=0), mesh.points.max(axis=0), strict=True)
    )
    facts(
        [
            ("file", str(file)),
            ("dimension", str(mesh.dimension)),
            ("points", f"{mesh.n_points:,}"),
            ("cells", f"{mesh.n_cells:,}: {kinds}"),
            ("patches", ", ".join(f"{name} ({len(faces):,})" for name, faces in mesh.patches.items()) or "none"),
            ("bounding box", box),
            ("cell data", ", ".join(fields.cell_data) or "none"),
            ("point data", ", ".join(fields.point_data) or "none"),
        ]
    )


def _check(
    file: Source,
    patch: Annotated[
        list[str] | None, typer.Option("--patch", metavar="NAME", help="A patch that must exist; may be repeated.")
    ] = None,
    format: Format = None,
) -> None:
    """Check a mesh for errors and report its quality."""
    mesh, turned = orient(read_data(file, format=format, orient=False))
    report = check(mesh, patch or ())
    output().print(Text(str(report)), soft_wrap=True)
    if turned:
        messages().print(f"{turned} cells were turned round; renumber or convert writes them so", style="yellow")
    messages().print(f"{file}: sound", style="green", soft_wrap=True, markup=False)


def _convert(file: Source, new: Target, format: Format = None) -> None:
    """Write a mesh, with its data where the format holds them, in another format."""
    fields = read_fields(file, format=format)
    data = {"cell_data": fields.cell_data, "point_data": fields.point_data}
    has_data = any(data.values())
    if has_data and new.suffix not in (".vtu", ".vtkhdf", ".hdf"):
        messages().print("the data on cells and points are left out: this format holds none", style="yellow")
        has_data = False
    options: dict[str, Any] = {"patches": True} if new.suffix in (".vtu", ".vtkhdf", ".hdf") else {}
    _save(new, fields.mesh, **(data if has_data else {}), **options)


def _generate(
    shape: Annotated[str, typer.Argument(metavar="SHAPE", help="airfoil, box2d or box3d.")],
    new: Target,
    cells: Annotated[
        str, typer.Option("--cells", metavar="N,N[,N]", help="Intervals: I,J of the airfoil, else one per axis.")
    ] = "",
    lengths: Annotated[
        str, typer.Option("--lengths", metavar="X,X[,X]", help="Side lengths of a box.", show_default="1 each")
    ] = "",
    kind: Annotated[
        str, typer.Option("--kind", metavar="NAME", help="Element: quad, triangle; hexahedron, tetra, prism, pyramid.")
    ] = "",
) -> None:
    """Generate a mesh: the airfoil of the benchmark, or a box."""
    if shape not in SHAPES:
        raise CaseError(f"unknown shape {shape!r}{did_you_mean(shape, SHAPES)} (allowed: {', '.join(SHAPES)})")
    n = 3 if shape == "box3d" else 2
    default = {"airfoil": (400, 600), "box2d": (32, 32), "box3d": (16, 16, 16)}[shape]
    counts = [int(value) for value in _numbers("--cells", cells, n, whole=True)] or list(default)
    if shape == "airfoil":
        if lengths or kind:
            raise CaseError("--lengths and --kind belong to boxes; the airfoil has quadrilaterals around a unit chord")
        mesh = airfoil_mesh(*counts).to_mesh_data()
    else:
        sides = _numbers("--lengths", lengths, n) or [1.0] * n
        make: Callable[..., MeshData] = box2d if n == 2 else box3d
        mesh = make(*counts, sides, **({"kind": kind} if kind else {}))
    _save(new, mesh)


def _renumber(
    file: Source,
    new: Target,
    method: Annotated[str, typer.Option("--method", metavar="NAME", help="rcm or gps.")] = "rcm",
    format: Format = None,
) -> None:
    """Renumber cells by their graph and points by first touch, for locality."""
    known = get_args(Method)
    if method not in known:
        raise CaseError(f"unknown method {method!r}{did_you_mean(method, known)} (allowed: {', '.join(known)})")
    result = renumber(read_data(file, format=format), cast("Method", method))
    _save(new, result.mesh)
    facts(
        [
            ("bandwidth", f"{result.before.bandwidth:,} -> {result.after.bandwidth:,}"),
            ("profile", f"{result.before.profile:,} -> {result.after.profile:,}"),
        ]
    )


def _save(path: Path, mesh: MeshData, **options: Any) -> None:
    """Write a mesh whole or not at all, and say so."""
    if not path.parent.is_dir():
        raise CaseError(f"{path}: the directory {path.parent} does not exist")
    with atomic(path) as temporary:
        write(temporary, mesh, **options)
    messages().print(f"{path}: {mesh.n_points:,} points, {mesh.n_cells:,} cells", soft_wrap=True, markup=False)


def _numbers(option: str, text: str, count: int, *, whole: bool = False) -> list[float]:
    """Return the numbers of a comma-separated list; empty for no text."""
    if not text:
        return []
    words = text.replace("x", ",").split(",")
    try:
        values = [float(int(word)) if whole else float(word) for word in words]
    except ValueError:
        values = []
    if len(values) != count or min(values, default=0) <= 0:
        what = "whole numbers" if whole else "numbers"
        raise CaseError(f"{option} {text!r}: give {count} positive {what}, comma-separated")
    return values
