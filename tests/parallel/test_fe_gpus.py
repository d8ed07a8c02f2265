"""Finite elements and flow on edges on several GPUs: every transport gives the numbers of one rank on a processor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.fe.global_matrix import GlobalFormat
from fluxloom.fe.poisson import CellOperator, LocalMatrices, MatrixFree
from fluxloom.linalg import Jacobi
from fluxloom.mesh.ranks.bind import bind
from tests.parallel import test_edge_flow_ranks as edges
from tests.parallel import test_fe_ranks as poisson
from tests.parallel.test_gpus import TRANSPORTS, count, on_gpus

pytestmark = pytest.mark.cuda


@pytest.fixture(autouse=True)
def several() -> None:
    """Skip where there is one GPU only."""
    if count() < 2:
        pytest.skip("needs two GPUs or more")


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("dimension", [2, 3])
def test_flow_on_edges(transport: str, dimension: int) -> None:
    edges.check(on_gpus(lambda context: edges.advanced_in(context, dimension), transport), edges.alone(dimension))


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize(
    ("shape", "order", "make"), [("quad", 2, LocalMatrices), ("triangle", 2, MatrixFree), ("hexahedron", 1, MatrixFree)]
)
def test_operators_of_cells(transport: str, shape: str, order: int, make: Callable[..., CellOperator]) -> None:
    def work(context: fl.Context) -> dict[str, Any]:
        maps = ("cell_nodes", "boundary_nodes") if shape != "hexahedron" else None
        return poisson.solved(bind(poisson.part_of(context.comm, shape, maps=maps), context), order, make)

    poisson.check(on_gpus(work, transport), poisson.alone(shape, order, make))


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize(("shape", "order", "form"), [("quad", 2, "csr"), ("tetrahedron", 2, "sliced")])
def test_global_matrices(transport: str, shape: str, order: int, form: GlobalFormat) -> None:
    def work(context: fl.Context) -> dict[str, Any]:
        return poisson.assembled(bind(poisson.part_of(context.comm, shape), context), order, form, Jacobi())

    want = poisson.assembled(bind(poisson.mesh_of(shape), fl.Context("reference")), order, form, Jacobi())
    found = on_gpus(work, transport)
    poisson.check_iterations(found, want)
    for name in ("matrix", "y", "u"):
        got = poisson.joined([(piece["numbers"], piece[name]) for piece in found], len(want["u"]))
        assert np.abs(got - want[name]).max() < (1e-8 if name == "u" else 1e-13) * np.abs(want[name]).max(), name
