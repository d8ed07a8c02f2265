"""``fluxloom mesh``: describe, check, convert, generate, refine, renumber and partition mesh files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from math import inf
from pathlib import Path
from typing import Annotated, Any, cast, get_args

import numpy as np
import numpy.typing as npt
import typer
from rich.text import Text

from fluxloom.cases.files.case import parse_shares
from fluxloom.cli.console import JsonOption, Listening, add, facts, messages, output, table
from fluxloom.cli.verbs import mesh_cluster
from fluxloom.comm.threads import run_threads
from fluxloom.core.activity import activity
from fluxloom.core.errors import CaseError, MeshError, did_you_mean
from fluxloom.dsl.ranks.decompose import PartitionReport
from fluxloom.mesh import (
    DistributedMesh,
    airfoil_mesh,
    box2d,
    box3d,
    check,
    distribute,
    distribute_mesh,
    orient,
    read_data,
    read_fields,
    renumber,
    write,
)
from fluxloom.mesh.data.mesh import MeshData
from fluxloom.mesh.generate.refine import refine
from fluxloom.mesh.geometry.dual import dual
from fluxloom.mesh.quality.measures import quality
from fluxloom.mesh.ranks.distribute import Partition
from fluxloom.mesh.ranks.renumber import Method
from fluxloom.mesh.ranks.slices import cut
from fluxloom.run.results.files import atomic, prepare_file, write_json

__all__ = ["build"]

Source = Annotated[Path, typer.Argument(metavar="FILE", help="Mesh file: .su2, .msh, .cgns, .vtu, .vtkhdf ...")]
Target = Annotated[Path, typer.Argument(metavar="NEW", help="File to write; its suffix tells the format.")]
Format = Annotated[
    str | None,
    typer.Option("--format", metavar="NAME", help="Format, when the suffix does not tell.", show_default=False),
]
Zone = Annotated[
    str | None,
    typer.Option(
        "--zone",
        metavar="ZONE",
        help="Of several meshes in a file: zone of SU2, base or zone of CGNS.",
        show_default=False,
    ),
]
Step = Annotated[
    int | None,
    typer.Option("--step", metavar="N", help="Of several times in a VTKHDF file, from 0.", show_default="the last"),
]
SHAPES = ("airfoil", "box2d", "box3d")
_MOST_PARTS = 4096
"""Parts of a mesh: each of them is a thread while it is divided."""


def build() -> typer.Typer:
    """Return the group of verbs about meshes."""
    app = typer.Typer(
        help="Describe, check, convert, generate, refine, renumber, partition and dualise meshes.",
        no_args_is_help=True, rich_markup_mode=None,
    )  # fmt: skip
    app.callback()(_listen)
    add(app, "info", _info)
    add(app, "check", _check)
    add(app, "convert", _convert)
    add(app, "generate", _generate)
    add(app, "refine", _refine)
    add(app, "cluster", mesh_cluster.command)
    add(app, "renumber", _renumber)
    add(app, "dual", _dual)
    add(app, "partition", _partition)
    return app


def _listen(group: typer.Context) -> None:
    group.with_resource(Listening())


def _info(file: Source, format: Format = None, zone: Zone = None, step: Step = None) -> None:
    """Say what a mesh file holds, and what `check` and runs would refuse."""
    fields = read_fields(file, format=format, zone=zone, step=step)
    mesh = fields.mesh
    kinds = ", ".join(f"{count:,} {name}" for name, count in mesh.cell_counts.items())
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
            ("check", _verdict(mesh) or "sound"),
        ]
    )


def _verdict(mesh: MeshData) -> str:
    """Return why a run refuses a mesh; empty when it does not."""
    try:
        check(orient(mesh)[0])
    except MeshError as error:
        return str(error)
    return ""


def _check(
    file: Source,
    patch: Annotated[
        list[str] | None, typer.Option("--patch", metavar="NAME", help="A patch that must exist; may be repeated.")
    ] = None,
    json: JsonOption = None,
    format: Format = None,
    zone: Zone = None,
    step: Step = None,
) -> None:
    """Check a mesh for errors and report its quality: how measures are distributed, and where they are worst."""
    if json is not None:
        prepare_file(json)
    mesh, turned = orient(read_data(file, format=format, orient=False, zone=zone, step=step))
    with activity("checking the mesh", f"{mesh.n_cells:,} cells"):
        report = check(mesh, patch or ())
        found = quality(mesh)
    output().print(Text(str(report)), soft_wrap=True)
    table("", found.heads, found.rows(), left=(0, 5, 6))
    facts(found.counts())
    if json is not None:
        write_json(json, {"turned": turned, **asdict(report), "quality": found.as_dict()})
    if turned:
        messages().print(f"{turned} cells were turned round; renumber or convert writes them so", style="yellow")
    messages().print(f"{file}: sound", style="green", soft_wrap=True, markup=False)


def _convert(file: Source, new: Target, format: Format = None, zone: Zone = None, step: Step = None) -> None:
    """Write a mesh, with its data where the format holds them, in another format."""
    fields = read_fields(file, format=format, zone=zone, step=step)
    if verdict := _verdict(fields.mesh):
        text = f"warning: a run would refuse this mesh: {verdict}"
        messages().print(text, style="yellow", soft_wrap=True, markup=False)
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
    if shape == "airfoil" and (lengths or kind):
        raise CaseError("--lengths and --kind belong to boxes; the airfoil has quadrilaterals around a unit chord")
    sides = _numbers("--lengths", lengths, n) or [1.0] * n
    make: Callable[..., MeshData] = box2d if n == 2 else box3d
    with activity("making the mesh", " x ".join(str(count) for count in counts)):
        if shape == "airfoil":
            mesh = airfoil_mesh(*counts).to_mesh_data()
        else:
            mesh = make(*counts, sides, **({"kind": kind} if kind else {}))
    _save(new, mesh)


def _refine(
    file: Source,
    new: Target,
    times: Annotated[int, typer.Option("--times", min=1, metavar="N", help="How often.")] = 1,
    format: Format = None,
    zone: Zone = None,
) -> None:
    """Divide every cell uniformly: 4 cells of one in two dimensions, 8 in three, 10 of a pyramid."""
    data = read_data(file, format=format, zone=zone)
    with activity("refining the mesh", f"{data.n_cells:,} cells"):
        fine = refine(data, times)
    _save(new, fine)


def _renumber(
    file: Source,
    new: Target,
    method: Annotated[str, typer.Option("--method", metavar="NAME", help="rcm or gps.")] = "rcm",
    format: Format = None,
    zone: Zone = None,
) -> None:
    """Renumber cells by their graph and points by first touch, for locality."""
    known = get_args(Method)
    if method not in known:
        raise CaseError(f"unknown method {method!r}{did_you_mean(method, known)} (allowed: {', '.join(known)})")
    result = renumber(read_data(file, format=format, zone=zone), cast("Method", method))
    _save(new, result.mesh)
    facts(
        [
            ("bandwidth", f"{result.before.bandwidth:,} -> {result.after.bandwidth:,}"),
            ("profile", f"{result.before.profile:,} -> {result.after.profile:,}"),
        ]
    )


def _dual(file: Source, new: Target, format: Format = None, zone: Zone = None) -> None:
    """Put a cell about each point: polyhedra of tetrahedra, polygons of triangles; write .vtkhdf (or .vtu in 2D)."""
    data = read_data(file, format=format, zone=zone)
    with activity("a cell about each point", f"{data.n_points:,} points"):
        found = dual(data)
    _save(new, found)


def _partition(
    file: Annotated[str, typer.Argument(metavar="FILE", help="Mesh file, or airfoil:IxJ for the benchmark's mesh.")],
    parts: Annotated[int, typer.Option("--parts", min=1, metavar="N", help="Number of ranks.", show_default=False)],
    method: Annotated[str, typer.Option("--method", metavar="NAME", help="auto, kway, rcb or block.")] = "auto",
    shares: Annotated[
        str, typer.Option("--shares", metavar="X,X...", help="Share of each rank.", show_default="equal")
    ] = "",
    show: Annotated[bool, typer.Option("--show", help="Sizes, halos and neighbours of every rank.")] = False,
    new: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="NEW", help="Write the mesh, cell data: part.", show_default=False),
    ] = None,
    json: JsonOption = None,
    format: Format = None,
    zone: Zone = None,
) -> None:
    """Divide a mesh among ranks and say what each of them gets; nothing runs on several ranks."""
    known = get_args(Partition)
    if method not in known:
        raise CaseError(f"unknown method {method!r}{did_you_mean(method, known)} (allowed: {', '.join(known)})")
    if new is not None and new.suffix not in (".vtu", ".vtkhdf", ".hdf"):
        raise CaseError(f"--output {new}: this format holds no data; give a .vtu or .vtkhdf file")
    given = _numbers("--shares", shares, parts) or None
    if given is not None:
        parse_shares(",".join(map(str, given)))
    for path in (json, new):
        if path is not None:
            prepare_file(path)
    with activity("dividing the mesh", f"{parts} parts"):
        distributed, mesh = _divide(file, {"format": format, "zone": zone}, parts, cast("Partition", method), given)
    report = distributed[0].decomposition.report()
    _show(file, report, every_rank=show)
    if json is not None:
        neighbours = [list(others) for others in report.neighbours]
        write_json(json, {"file": file, **asdict(report), "neighbours": neighbours})
    if new is not None:
        owner = np.empty(mesh.n_cells, dtype=np.int32)
        for rank, part in enumerate(distributed):
            cells = part.parts["cells"]
            owner[cells.numbers[: cells.owned]] = rank
        _save(new, mesh, cell_data={"part": owner}, patches=True)


def _divide(
    file: str, how: dict[str, Any], parts: int, method: Partition, shares: Sequence[float] | None
) -> tuple[list[DistributedMesh], MeshData]:
    """Return what each rank would have, and the mesh; the ranks are threads of this process."""
    shape, _, size = file.partition(":")
    if shape == "airfoil" and size:
        counts = [int(value) for value in _numbers("airfoil:", size, 2, whole=True)]
        _require_cells(3 * counts[0] * counts[1], parts)
        airfoil = airfoil_mesh(*counts)
        found = run_threads(parts, lambda comm: distribute(airfoil, comm, method=method, shares=shares))
        return found, airfoil.to_mesh_data()
    data = read_data(file, **how)
    _require_cells(data.n_cells, parts)
    divided = run_threads(
        parts, lambda comm: distribute_mesh(cut(data, comm.rank, comm.size), comm, method=method, shares=shares)
    )
    return [part.distributed for part in divided], data


def _require_cells(cells: int, parts: int) -> None:
    """Raise `CaseError` before as many threads start as nobody can feed; a mesh without cells is refused elsewhere."""
    most = min(cells, _MOST_PARTS)
    if cells and parts > most:
        raise CaseError(f"--parts {parts}: the mesh has {cells:,} cells; give at most {most:,} parts")


def _show(file: str, report: PartitionReport, *, every_rank: bool) -> None:
    """Print the report of a partition: one line a set, or one line a rank and set."""
    cells = next(item.total for item in report.sets if item.name == report.on)
    cut_rows = f"{report.edge_cut:,} {report.through}" if report.through else "-"
    facts(
        [
            ("mesh", f"{file}: {cells:,} {report.on}"),
            ("parts", f"{report.ranks} by {report.method}"),
            ("edge cut", cut_rows),
            ("imbalance", f"{100 * report.imbalance:.2f} %"),
            ("neighbours", f"at most {max(len(others) for others in report.neighbours)}"),
        ]
    )
    heads = ("owned", "interior", "execute halo", "rest")
    rows: list[tuple[str, ...]] = []
    for item in report.sets:
        columns = (item.owned, item.interior, item.execute_halo, item.rest)
        if not every_rank:
            rows.append((item.name, f"{item.total:,}", *(_spread(values) for values in columns)))
            continue
        for rank in range(report.ranks):
            others = " ".join(str(other) for other in item.neighbours[rank]) or "none"
            rows.append((item.name, str(rank), *(f"{values[rank]:,}" for values in columns), others))
    if every_rank:
        table("", ("set", "rank", *heads, "neighbours"), rows, left=(0, 6))
    else:
        table("", ("set", "total", *heads), rows)


def _spread(values: npt.ArrayLike) -> str:
    """Return the least and the most of some counts."""
    low, high = int(np.min(values)), int(np.max(values))
    return f"{low:,}" if low == high else f"{low:,} ... {high:,}"


def _save(path: Path, mesh: MeshData, **options: Any) -> None:
    """Write a mesh whole or not at all, and say so."""
    if not path.parent.is_dir():
        raise CaseError(f"{path}: the directory {path.parent} does not exist")
    with activity("writing the mesh", str(path)), atomic(path) as temporary:
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
    if len(values) != count or not all(0 < value < inf for value in values):
        what = "whole numbers" if whole else "numbers"
        raise CaseError(f"{option} {text!r}: give {count} positive {what}, comma-separated")
    return values
