from __future__ import annotations

import numpy as np
import pytest

from fluxloom.core.errors import MeshError
from fluxloom.mesh import airfoil_mesh, box2d, box3d, check
from fluxloom.mesh.data.mesh import MeshData, PatchFaces
from fluxloom.mesh.geometry.connectivity import connectivity
from fluxloom.mesh.geometry.metrics import cell_geometry
from fluxloom.mesh.ranks.renumber import Permutation, SetMap, first_touch, graph_order, renumber, renumber_sets, spread


def shuffled(mesh: MeshData, seed: int = 0) -> MeshData:
    rng = np.random.default_rng(seed)
    points = Permutation.from_order(rng.permutation(mesh.n_points))
    cells = {name: points.rename(block[rng.permutation(len(block))]) for name, block in mesh.cells.items()}
    patches = {
        name: PatchFaces({kind: points.rename(block) for kind, block in faces.blocks.items()})
        for name, faces in mesh.patches.items()
    }
    return MeshData(points.move(mesh.points), cells, patches)


@pytest.mark.parametrize("method", ["rcm", "gps"])
@pytest.mark.parametrize("mesh", [box2d(30, 20, (3, 2)), box3d(6, 5, 4, kind="tetra"), box3d(6, 5, 4, kind="pyramid")])
def test_shuffled_mesh_is_repaired(mesh, method):
    mixed = shuffled(mesh)
    result = renumber(mixed, method)
    assert result.after.bandwidth < 0.4 * result.before.bandwidth
    assert result.after.profile < 0.4 * result.before.profile
    report = check(result.mesh)
    assert report.volume_total == pytest.approx(check(mixed).volume_total, rel=1e-13)
    before, after = cell_geometry(mixed)[0], cell_geometry(result.mesh)[0]
    np.testing.assert_allclose(result.cells.move(before), after, rtol=1e-12)
    np.testing.assert_array_equal(result.points.move(mixed.points), result.mesh.points)
    np.testing.assert_array_equal(result.cells.restore(result.cells.move(before)), before)
    links = connectivity(result.mesh)
    assert spread(links.interior_cells, mesh.n_cells) == result.after
    assert (np.diff(links.interior_cells[:, 0]) >= 0).all()


def test_gps_finds_the_ends_of_a_strip():
    pairs = np.stack([np.arange(49), np.arange(1, 50)], axis=1)
    mixed = Permutation.from_order(np.random.default_rng(2).permutation(50))
    order = graph_order(mixed.rename(pairs), 50, "gps")
    assert spread(order.rename(mixed.rename(pairs)), 50).bandwidth == 1


def test_gps_covers_all_components():
    pairs = np.array([[0, 5], [5, 2], [1, 4]])
    order = graph_order(pairs, 7, "gps")
    assert sorted(order.order.tolist()) == list(range(7))
    assert spread(order.rename(pairs), 7).bandwidth == 1


def test_first_touch():
    order = first_touch(np.array([3, 1, 3, 0]), 5)
    assert order.order.tolist() == [3, 1, 0, 2, 4]
    assert order.rank.tolist() == [2, 1, 3, 0, 4]
    assert order.rename(np.array([3, -1, 2])).tolist() == [0, -1, 3]


def test_several_sets():
    mesh = airfoil_mesh(12, 9)
    rng = np.random.default_rng(4)
    mix = Permutation.from_order(rng.permutation(len(mesh.cell_nodes)))
    sizes = {"nodes": len(mesh.points), "cells": len(mesh.cell_nodes), "edges": len(mesh.edge_nodes), "outer": 66}
    sizes["outer"] = len(mesh.boundary_codes)
    maps = {
        "edge_cells": SetMap("edges", "cells", mix.rename(mesh.edge_cells)),
        "edge_nodes": SetMap("edges", "nodes", mesh.edge_nodes),
        "cell_nodes": SetMap("cells", "nodes", mix.move(mesh.cell_nodes)),
        "outer_cell": SetMap("outer", "cells", mix.rename(mesh.boundary_cells)),
    }
    result = renumber_sets(sizes, maps, "edge_cells", keep=("outer",))
    assert result.after.bandwidth < result.before.bandwidth / 3
    assert (np.diff(result.maps["edge_cells"].min(axis=1)) >= 0).all()
    assert result.permutations["outer"].order.tolist() == list(range(sizes["outer"]))
    touched = result.maps["cell_nodes"].reshape(-1)
    first = np.unique(touched, return_index=True)[1]
    assert (np.diff(first) > 0).all()
    points = result.permutations["nodes"].move(mesh.points)
    centres = mesh.points[mesh.cell_nodes].mean(axis=1)
    cells = result.permutations["cells"]
    np.testing.assert_allclose(
        points[result.maps["cell_nodes"]].mean(axis=1), cells.move(mix.move(centres)), atol=1e-12
    )


def test_errors():
    maps = {"links": SetMap("edges", "cells", np.array([[0, 1]]))}
    with pytest.raises(MeshError, match="unknown map 'link'; did you mean 'links'"):
        renumber_sets({"edges": 1, "cells": 2}, maps, "link")
    with pytest.raises(MeshError, match="unknown set 'cells'"):
        renumber_sets({"edges": 1}, maps, "links")
    with pytest.raises(MeshError, match="1 rows, its set 'edges' 2"):
        renumber_sets({"edges": 2, "cells": 2}, maps, "links")
    with pytest.raises(MeshError, match="outside its target set"):
        renumber_sets({"edges": 1, "cells": 1}, maps, "links")
    with pytest.raises(MeshError, match="unknown renumbering method"):
        graph_order(np.array([[0, 1]]), 2, "metis")  # type: ignore[arg-type]
