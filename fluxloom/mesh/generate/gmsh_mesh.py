"""Meshes of triangles and tetrahedra that Gmsh makes from a description, without a file in between."""

from __future__ import annotations

import numpy as np

from fluxloom.core.activity import activity
from fluxloom.core.errors import MeshError
from fluxloom.mesh.data.mesh import MeshData
from fluxloom.mesh.generate.gmsh_body import GmshBody, GmshRefinement
from fluxloom.mesh.generate.gmsh_channels import GmshCylinder, GmshStep
from fluxloom.mesh.generate.gmsh_shapes import GmshBox, GmshShape
from fluxloom.mesh.generate.gmsh_sizes import estimated_cells
from fluxloom.mesh.geometry.metrics import cell_geometry

__all__ = ["GmshBody", "GmshBox", "GmshCylinder", "GmshRefinement", "GmshShape", "GmshStep", "gmsh_mesh", "gmsh_sizes"]


def gmsh_mesh(shape: GmshShape) -> MeshData:
    """Fill a shape with simplices.

    The same shape gives the same mesh, to the last digit, with the same version of Gmsh: one thread, a fixed seed. No
    files are written.

    Parameters
    ----------
    shape
        `GmshBox`, `GmshCylinder`, `GmshStep` or `GmshBody`.

    Returns
    -------
    MeshData
        Triangles or tetrahedra, optimised, with the patches of the shape; nodes of sides lie exactly there.

    Raises
    ------
    DeviceUnavailable
        Where Gmsh is not installed.
    MeshError
        Before anything is meshed, if these were about more simplices than ``most_cells``; if Gmsh fails, or makes
        simplices without a volume.
    """
    cells, _, dimension = gmsh_sizes(shape)
    from fluxloom.mesh.generate.gmsh_session import gmsh_arrays, gmsh_session

    with activity("meshing with Gmsh", f"about {cells:,} cells"), gmsh_session(shape.name) as gmsh:
        patches = shape.draw(gmsh)
        gmsh.model.mesh.generate(dimension)
        mesh = gmsh_arrays(gmsh, dimension, patches, shape.name)
    mesh = mesh.with_points(shape.settle(mesh))
    volumes, _ = cell_geometry(mesh)
    if not (least := float(np.min(volumes))) > 0.0:
        raise MeshError(f"{shape.name}: Gmsh made a cell of volume {least:g}; try other sizes")
    return mesh


def gmsh_sizes(shape: GmshShape) -> tuple[int, int, int]:
    """Return about how many cells and nodes `gmsh_mesh` would make, and the dimension; nothing is meshed for it.

    Raises
    ------
    MeshError
        For more cells than ``most_cells``.
    """
    cells, nodes = estimated_cells(shape.sizes(), shape.bounds, shape.inside)
    if cells > shape.most_cells:
        raise MeshError(
            f"{shape.name}: these sizes make about {cells:,} cells ({nodes:,} nodes), more than most_cells = "
            f"{shape.most_cells:,}; make the sizes larger, or most_cells if so many are meant"
        )
    return cells, nodes, len(shape.bounds)
