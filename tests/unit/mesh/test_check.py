from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.core.errors import MeshError
from fluxloom.fe.edges.point_mesh import point_mesh
from fluxloom.fv.geometry.control_volumes import control_volumes
from fluxloom.mesh import bind, box2d, box3d, check, read_data
from fluxloom.mesh.data.mesh import MeshData, PatchFaces
from fluxloom.mesh.quality.orient import MIRROR


def test_report(two_quads, mixed_mesh):
    report = check(two_quads, required_patches=("left", "right"))
    assert (report.n_points, report.n_cells, report.n_interior_faces, report.n_boundary_faces) == (6, 2, 1, 6)
    assert report.volume_total == 2.0
    assert report.lower == (0.0, 0.0)
    assert report.upper == (2.0, 1.0)
    assert report.patches == {"bottom": 2, "right": 1, "top": 2, "left": 1}
    assert report.non_orthogonality_max == 0.0
    assert report.edge_ratio_max == 1.0
    text = str(report)
    assert "two_quads.su2" in text
    assert "6 boundary" in text
    assert check(mixed_mesh).elements == {"hexahedron": 1, "pyramid": 1, "prism": 1, "tetra": 1}


def inverted(kind: str) -> MeshData:
    """Return a mesh three of whose cells have their nodes the wrong way round."""
    mesh = box2d(5, 4, kind=kind) if kind in ("triangle", "quad") else box3d(3, 3, 3, kind=kind)
    block = mesh.cells[kind].copy()
    block[7:10] = block[7:10][:, list(MIRROR[kind])]
    return replace(mesh, cells={kind: block})


@pytest.mark.parametrize("kind", ["triangle", "quad", "tetra", "prism", "pyramid", "hexahedron"])
def test_what_solvers_build_on_refuses_inverted_cells(kind: str) -> None:
    """Control volumes, a mesh in a context as shallow water takes it, and points of simplices."""
    mesh, context = inverted(kind), fl.Context("reference")
    users = [lambda: control_volumes(mesh), lambda: bind(mesh, context).volumes]
    if kind in ("triangle", "tetra"):
        users.append(lambda: point_mesh(context, mesh))
    for use in users:
        with pytest.raises(MeshError, match=rf"{kind} element 7 at .*: inverted: its (area|volume) is -.* \(3 of "):
            use()


@pytest.mark.parametrize("mesh", [box2d(5, 4, perturb=0.2), box3d(3, 3, 3, kind="prism", perturb=0.2)])
def test_boxes_pass(mesh):
    report = check(mesh)
    assert report.closure_max < 1e-14
    assert report.volume_total == pytest.approx(1.0)


def test_inverted(change):
    mesh = change(cells={"quad": np.array([[0, 1, 4, 3], [1, 4, 5, 2]])})
    message = r"two_quads\.su2:11: quad element 1 at \(1\.5, 0\.5\): inverted: its area is -1 \(1 of 2 cells\)"
    with pytest.raises(MeshError, match=message):
        check(mesh)


def test_repeated_node(change):
    mesh = change(cells={"quad": np.array([[0, 1, 4, 3], [1, 2, 2, 4]])})
    mesh = MeshData(mesh.points[:5], mesh.cells, {}, mesh.source)
    with pytest.raises(MeshError, match=r":11: quad element 1 at \(1\.5, 0\.25\): degenerate: node 2 is repeated"):
        check(mesh)


def test_flat(change, two_quads):
    points = two_quads.points.copy()
    points[:, 0] += 3.0 * points[:, 1]
    points[:, 1] = 0.0
    message = r":10: quad element 0 at \(2, 0\): degenerate: its area is 0 \(2 such cells\)"
    with pytest.raises(MeshError, match=message):
        check(change(points=points))


def test_node_out_of_range(change):
    mesh = change(cells={"quad": np.array([[0, 1, 4, 3], [1, 2, 6, 4]])})
    with pytest.raises(MeshError, match=r":11: quad element 1: node 6 is outside 0 \.\.\. 5"):
        check(mesh)


def test_patch_node_out_of_range(change, two_quads):
    patches = dict(two_quads.patches) | {"right": PatchFaces({"line": np.array([[2, 9]], dtype=np.int32)})}
    with pytest.raises(MeshError, match=r"patch 'right', line 0: node 9 is outside"):
        check(change(patches=patches))


def test_orphan(change, two_quads):
    mesh = change(points=np.vstack([two_quads.points, [[7.5, 8]]]))
    with pytest.raises(MeshError, match=r"two_quads\.su2: node 6 at \(7\.5, 8\) belongs to no cell \(1 such orphan"):
        check(mesh)


def test_not_finite(change, two_quads):
    points = two_quads.points.copy()
    points[4, 1] = np.nan
    with pytest.raises(MeshError, match=r"node 4: its coordinates \(1, nan\) are not finite"):
        check(change(points=points))


def test_missing_patch(change, two_quads):
    patches = {name: faces for name, faces in two_quads.patches.items() if name != "top"}
    message = (
        r":10: quad element 0: missing patch: 2 boundary faces belong to no patch, one .* nodes 4, 3 near \(0\.5, 1\)"
    )
    with pytest.raises(MeshError, match=message):
        check(change(patches=patches))


def test_interior_face_in_a_patch(change, two_quads):
    patches = dict(two_quads.patches) | {"wall": PatchFaces({"line": np.array([[1, 4]], dtype=np.int32)})}
    with pytest.raises(MeshError, match=r"patch 'wall', line 0 with the nodes 1, 4: it is not a boundary face"):
        check(change(patches=patches))


def test_patch_face_of_no_cell(change, two_quads):
    patches = dict(two_quads.patches) | {"wall": PatchFaces({"line": np.array([[0, 5]], dtype=np.int32)})}
    with pytest.raises(MeshError, match="it is not a face of any cell"):
        check(change(patches=patches))


def test_patch_face_twice(change, two_quads):
    again = PatchFaces({"line": np.array([[5, 2]], dtype=np.int32)})
    with pytest.raises(MeshError, match=r"patch 'wall', line 0 .* it is listed twice"):
        check(change(patches=dict(two_quads.patches) | {"wall": again}))
    both = PatchFaces({"line": np.array([[5, 2], [2, 5]], dtype=np.int32)})
    with pytest.raises(MeshError, match=r"patch 'right', line 1 .* it is listed twice"):
        check(change(patches=dict(two_quads.patches) | {"right": both}))


def test_duplicate_cell(change):
    mesh = change(cells={"quad": np.array([[0, 1, 4, 3], [1, 2, 5, 4], [4, 3, 0, 1]])})
    message = r":12: quad element 2 at \(0\.5, 0\.5\): duplicate cell: it has the nodes of 10: quad element 0"
    with pytest.raises(MeshError, match=message):
        check(mesh)


def test_non_manifold():
    points = np.array([[0, 0], [1, 0], [0, 1], [0, -1], [0.5, 2]], dtype=float)
    mesh = MeshData(points, {"triangle": np.array([[0, 1, 2], [1, 0, 3], [0, 1, 4]])})
    with pytest.raises(
        MeshError, match=r"triangle element 2 at \(.*\): non-manifold: .* nodes 0, 1 is shared by the 3 cells 0, 1, 2"
    ):
        check(mesh)


def test_required_patch(two_quads):
    message = r"required patch 'botom' is missing; did you mean 'bottom'\? \(patches: bottom, right, top, left\)"
    with pytest.raises(MeshError, match=message):
        check(two_quads, ("botom",))


def test_wrong_dimension(change):
    with pytest.raises(MeshError, match="a tetra cannot be a cell of a mesh in 2 dimensions"):
        check(change(cells={"tetra": np.array([[0, 1, 4, 3]])}))
    with pytest.raises(MeshError, match="the mesh has no cells"):
        check(change(cells={}))


def test_line_of_an_element_in_a_mixed_file(tmp_path):
    text = "NDIME= 2\nNELEM= 3\n5 0 1 3\n9 1 2 5 4\n5 1 3 4\nNPOIN= 6\n"
    text += "0 0\n1 0\n2 0\n0 1\n1 1\n2 1\nNMARK= 0\n"
    path = tmp_path / "mixed.su2"
    path.write_text(text)
    mesh = read_data(path, orient=False)
    with pytest.raises(MeshError, match=r"mixed\.su2:5: triangle element 2 at \(0\.666667, 0\.666667\): inverted"):
        check(mesh)


def test_cylinder_half_has_faces_without_marker(data):
    mesh = read_data(data / "cylinder" / "cylinder_half.su2")
    with pytest.raises(
        MeshError, match=r"cylinder_half\.su2:598: triangle element 595: missing patch: 20 boundary faces"
    ):
        check(mesh)
