"""The table [mesh.gmsh] of case files: each shape, what it makes, and what wrong keys are answered with."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fluxloom.cases.files.loading import load_case
from fluxloom.cases.incompressible.tables import IncompressibleCase
from fluxloom.cases.shared.mesh import FlowMeshTable, flow_mesh, flow_mesh_sizes
from fluxloom.core.errors import CaseError, FluxloomError
from fluxloom.mesh.data.mesh import MeshData

CASE = """
[case]
name = "meshed"
solver = "incompressible"
[fluid]
viscosity = 0.01
[boundary.xmin]
type = "wall"
[run]
iterations = 1
"""
TABLES = {
    "box": "size = 0.3\nz = [0.0, 1.0]",
    "cylinder": "size = 0.1\nsize_cylinder = 0.025",
    "step": "size = 0.2\ndownstream = 4.0",
    "body": 'file = "{file}"\nx = [-1.0, 2.0]\ny = [-1.0, 2.0]\nz = [0.0, 2.0]\nsize_body = 0.25\nsize_far = 0.6\n'
    "[[mesh.gmsh.refine]]\nlower = [1.0, 0.0, 0.0]\nupper = [2.0, 1.0, 1.0]\nsize = 0.3",
}
LAST_PATCH = {"box": "zmax", "cylinder": "cylinder", "step": "wall", "body": "zmax"}


def table_of(path: Path, shape: str, old: str = "", new: str = "") -> FlowMeshTable:
    """Return the table of a case with a mesh of a shape, some text replaced."""
    keys = TABLES[shape].replace("{file}", str(path / "body.stl"))
    text = f'[mesh.gmsh]\nshape = "{shape}"\n{keys}\n'
    assert old in text
    file = path / "case.toml"
    file.write_text(CASE + text.replace(old, new, 1))
    case, _ = load_case(file)
    assert isinstance(case, IncompressibleCase)
    return case.mesh


def mesh_of(table: FlowMeshTable) -> MeshData:
    """Return the mesh of a table, where Gmsh is there."""
    try:
        import gmsh  # noqa: F401
    except (ImportError, OSError) as error:
        pytest.skip(f"Gmsh cannot be loaded: {error}")
    return flow_mesh(table)


@pytest.fixture
def body(tmp_path: Path) -> None:
    """Write a tetrahedron that stands on the ground."""
    corners = [(0.0, 0.0, 0.0), (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)]
    sides = [(0, 2, 1), (0, 1, 3), (1, 2, 3), (0, 3, 2)]
    rows = ["\n".join("vertex {} {} {}".format(*corners[k]) for k in side) for side in sides]
    facets = [f"facet normal 0 0 0\nouter loop\n{row}\nendloop\nendfacet" for row in rows]
    (tmp_path / "body.stl").write_text("\n".join(["solid body", *facets, "endsolid"]))


@pytest.mark.parametrize("shape", list(TABLES))
@pytest.mark.usefixtures("body")
def test_a_shape(tmp_path: Path, shape: str) -> None:
    table = table_of(tmp_path, shape)
    cells, nodes, dimension = flow_mesh_sizes(table)
    mesh = mesh_of(table)
    assert (mesh.dimension, list(mesh.patches)[-1]) == (dimension, LAST_PATCH[shape])
    assert 0.6 < mesh.n_cells / cells < 1.6
    assert 0.5 < mesh.n_points / nodes < 2.0
    assert list(mesh.cells) == (["triangle"] if dimension == 2 else ["tetra"])


def test_renumbered(tmp_path: Path) -> None:
    table = FlowMeshTable.model_validate({"renumber": "rcm", "gmsh": {"shape": "box", "size": 0.25}})
    plain = mesh_of(table_of(tmp_path, "box", TABLES["box"], "size = 0.25"))
    assert (mesh_of(table).n_cells, mesh_of(table).n_points) == (plain.n_cells, plain.n_points)


@pytest.mark.parametrize(
    ("shape", "old", "new", "message"),
    [
        ("box", "size = 0.3", "siz = 0.3",
         "case.toml:13: mesh.gmsh.siz: [mesh.gmsh] has no key 'siz'; did you mean 'size'? (allowed: size, x, y, z, "),
        ("cylinder", "size_cylinder", "size_cylindr", "key 'size_cylindr'; did you mean 'size_cylinder'? (allowed: "),
        ("step", "downstream", "downsteam", "has no key 'downsteam'; did you mean 'downstream'? (allowed: "),
        ("body", "upper =", "uper =", "[mesh.gmsh.refine.0] has no key 'uper'; did you mean 'upper'?"),
        ("box", "size = 0.3", 'size = "a"', "case.toml:13: mesh.gmsh.size: must be a number"),
        ("box", "size = 0.3", "size = -1.0", "size: above 0 and at most 1, the shortest side is wanted, not -1.0"),
        ("box", "size = 0.3", "size = 0.3\nradius = 1.0",
         "mesh.gmsh.radius: [mesh.gmsh] has no key 'radius'; it belongs to [mesh] (allowed: size, x, y, z, "),
        ("box", '"box"', '"bx"', "mesh.gmsh: shape: unknown value \"bx\"; did you mean 'box'? (allowed: box, cylinder"),
        ("box", 'shape = "box"', "", "case.toml:11: mesh.gmsh: the key shape is missing; add shape = ..."),
        ("step", "size = 0.2", "size = 0.2\nstep = 2.0", "height: above the step is wanted, not 1.0"),
        ("body", "upper = [2.0, 1.0, 1.0]", "upper = [2.0]", "refine: three numbers in lower and in upper"),
        ("body", "size_far = 0.6\n", "", "mesh.gmsh.size_far: the key is missing; add size_far = ... (a number)"),
    ],
)  # fmt: skip
def test_what_is_wrong(tmp_path: Path, shape: str, old: str, new: str, message: str) -> None:
    with pytest.raises(CaseError, match=re.escape(message)):
        table_of(tmp_path, shape, old, new)


@pytest.mark.parametrize(
    ("shape", "old", "new", "message"),
    [
        ("box", "size = 0.3", "size = 1e-3", "mesh.gmsh: <gmsh box>: these sizes make about 3,8"),
        ("cylinder", "size = 0.1", "size = 0.1\nmost_cells = 10", "more than most_cells = 10; make the sizes larger"),
        ("body", "body.stl", "bdy.stl", "bdy.stl: cannot be read"),
    ],
)
def test_what_is_refused_before_meshing(tmp_path: Path, shape: str, old: str, new: str, message: str) -> None:
    with pytest.raises(CaseError, match=re.escape(message)):
        flow_mesh_sizes(table_of(tmp_path, shape, old, new))


def test_with_another_mesh(tmp_path: Path) -> None:
    for other in ("nx = 4", 'file = "a.su2"', "[mesh.blade_row]\nalong = 4"):
        key = "gmsh" if "blade" in other else other.split()[0]
        text = f"[mesh]\n{other}\n" + '[mesh.gmsh]\nshape = "box"\nsize = 0.3\n'
        (tmp_path / "case.toml").write_text(CASE + text)
        with pytest.raises(FluxloomError, match=rf"a mesh with \[mesh\.\w+\] has no {key}"):
            load_case(tmp_path / "case.toml")
