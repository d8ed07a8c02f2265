"""Products of sparse matrices, in every layout, beside SciPy's: collected matrices and generated ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from scipy.io import mmread

import fluxloom as fl
from fluxloom.linalg import SparseMatrix
from fluxloom_lab.formats.row_grouped import RowGroupedCSR
from fluxloom_lab.problems.matrices import GENERATORS

LAYOUTS = {
    "csr": fl.CSR(),
    "ell-column": fl.ELL(),
    "ell-row": fl.ELL(column_major=False),
    "sliced8-column": fl.SlicedELL(8),
    "sliced32-row": fl.SlicedELL(32, column_major=False),
    "grouped": RowGroupedCSR(),
    "grouped-chunk3": RowGroupedCSR(16, 3),
}

# Name, entries and checksum (sum of absolute values) of the collected matrices, from the list beside them.
COLLECTED = {
    "rgg_n_2_15_s0": (353248, 673728.0), "bcsstk16": (290378, 1.183070637e13), "ca-CondMat": (186936, 186936.0),
    "Groebner_id2003_aug": (173670, 7.378641172e10), "p2p-Gnutella31": (147892, 664651.0),
    "memplus": (126150, 813.0049518), "4elt": (107362, 199118.0), "pubmed": (88651, 88651.0),
    "bcsstk13": (83883, 2.425595671e14), "ani4_amd_chol": (70217, 5571.922854), "mhd3200a": (68026, 1155056.099),
    "ex10hs": (57308, 1.470509629e10), "mbeacxc": (49920, 267.8663071), "rajat01": (43250, 43250.0),
    "barth4": (40965, 40965.0), "ldg_diffusion": (35338, 65789.90764), "bips98_606": (34738, 4e20),
    "msc01050": (29156, 851305358.0), "superlu_big": (23884, 139.6539137), "sherman2": (23094, 9.735371446e10),
    "ani4": (20971, 7256.557177), "sherman5": (20793, 605104.869), "sherman3": (20033, 146232500.0),
    "Si2": (17801, 29618.57382), "pde2961": (14585, 20781.10183), "cryg2500": (12349, 1448868.084),
}  # fmt: skip


def check(matrix: sparse.csr_array, layout: str, device: str = "cpu", threads: int = 2) -> None:
    """Compare products of the matrix and of its transpose with SciPy's, row by row."""
    for a in (matrix, sparse.csr_array(matrix.T)):
        ctx = fl.Context(device, threads=threads, tuning=False)
        ours = SparseMatrix.from_scipy(ctx, a, layout=LAYOUTS[layout])
        x = np.random.default_rng(4).uniform(-1.0, 1.0, a.shape[1])
        y = ctx.dat(ours.rows, np.full(a.shape[0], np.nan), "y")
        ours.product(ctx.dat(ours.columns, x, "x"), y)()
        # Sums in another order differ by rounding: relative to the sum of the absolute values of a row.
        scale = abs(a) @ np.abs(x)
        assert (np.abs(y.read() - a @ x) <= 1e-14 * scale).all()


@pytest.mark.parametrize("name", list(COLLECTED))
def test_collected(name: str, shared_data: Path) -> None:
    path = shared_data / "matrices" / f"{name}.mtx.gz"
    if not path.is_file():
        pytest.skip(f"matrix {name} not present")
    matrix = sparse.csr_array(mmread(path).astype(np.float64))
    entries, total = COLLECTED[name]
    assert matrix.nnz == entries
    assert abs(matrix).sum() == pytest.approx(total, rel=1e-8)
    for layout in LAYOUTS:
        check(matrix, layout)


@pytest.mark.parametrize("layout", list(LAYOUTS))
@pytest.mark.parametrize("name", list(GENERATORS))
def test_generated(name: str, layout: str) -> None:
    matrix = GENERATORS[name](60_000, 0)
    check(matrix, layout)
    check(matrix, layout, threads=1)


@pytest.mark.parametrize("name", list(GENERATORS))
def test_generated_on_the_reference_device(name: str) -> None:
    check(GENERATORS[name](2_000, 0), "csr", device="reference")
    check(GENERATORS[name](2_000, 0), "sliced8-column", device="reference")
