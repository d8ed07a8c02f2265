"""``fluxloom mesh cluster``: cells as thin at walls as boundary layers want them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fluxloom.cli.console import messages
from fluxloom.core.errors import CaseError
from fluxloom.mesh import read_data, write
from fluxloom.mesh.generate.cluster import Clustering, cluster
from fluxloom.run.results.files import atomic

__all__ = ["command"]


def command(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Mesh file with quads, prisms or hexahedra at walls.")],
    new: Annotated[Path, typer.Argument(metavar="NEW", help="File to write; its suffix tells the format.")],
    wall: Annotated[list[str], typer.Option("--wall", metavar="NAME", help="Patch that is a wall; may be repeated.")],
    first: Annotated[float, typer.Option("--first", metavar="X", help="Height of the first cells.")],
    growth: Annotated[float, typer.Option("--growth", metavar="X", help="Of the intervals above the walls.")] = 1.2,
    layers: Annotated[
        int | None,
        typer.Option("--layers", metavar="N", help="Old layers that are replaced; 0: all.", show_default="as needed"),
    ] = None,
    slope: Annotated[
        float, typer.Option("--slope", metavar="X", help="How much higher first cells are, by the distance from walls.")
    ] = 0.0005,
    spread: Annotated[
        float, typer.Option("--spread", metavar="X", help="The same by the square of the distance, far away.")
    ] = 0.05,
    zone: Annotated[
        str | None,
        typer.Option("--zone", metavar="ZONE", help="Of several meshes in a file.", show_default=False),
    ] = None,
) -> None:
    """Place the points on the lines above walls anew, and more of them: thin first cells that grow by a factor."""
    if not new.parent.is_dir():
        raise CaseError(f"{new}: the directory {new.parent} does not exist")
    mesh = cluster(read_data(file, zone=zone), wall, Clustering(first, growth, layers, slope, spread))
    with atomic(new) as temporary:
        write(temporary, mesh)
    messages().print(f"{new}: {mesh.n_points:,} points, {mesh.n_cells:,} cells", soft_wrap=True, markup=False)
