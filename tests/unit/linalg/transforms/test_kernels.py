"""The kernels around libraries of Fourier transforms, on OpenCL, and their text for compilers of CUDA."""

from __future__ import annotations

import shutil
import subprocess
from importlib.util import find_spec
from types import SimpleNamespace

import numpy as np
import pytest

from fluxloom.codegen.primitive import primitive_unit
from fluxloom.core.errors import SolverError
from fluxloom.dsl.context import Context
from fluxloom.dsl.declare.arrays import DeviceArray
from fluxloom.dsl.run.primitive import Steps
from fluxloom.linalg.direct.transforms import Transforms
from fluxloom.linalg.direct.transforms.kernels import copy_functions, helpers, row_functions
from fluxloom.linalg.direct.transforms.matrix import product_functions, product_helpers

from .cases import dense, error, gapped, kinds_of, sample, transposed
from .fakes import RowTransforms


@pytest.fixture(scope="module")
def device():
    return Context("opencl").device


@pytest.fixture(scope="module")
def rows(device):
    return Transforms(device, library=RowTransforms())


@pytest.fixture(scope="module")
def matrices(device):
    return Transforms(device, library="matrix")


@pytest.mark.opencl
@pytest.mark.parametrize(("n", "dtype"), [
    (1, "float64"), (1, "float32"), (2, "float64"), (3, "float32"), (8, "float64"), (17, "float32"), (70, "float64"),
])  # fmt: skip
def test_around_rows(rows, n, dtype):
    """Along and across the neighbours in memory, with gaps, into other memory and in place."""
    for axis in (0, 1, 2):
        x = sample(axis, n, dtype)
        for place, kind in enumerate(kinds_of(n)):
            assert error(rows, kind, (axis,), x, (dense, gapped, transposed)[(place + axis) % 3]) < 12
        assert error(rows, kinds_of(n)[n % 7], (axis,), x, within=True) < 12


@pytest.mark.opencl
@pytest.mark.long
def test_around_rows_every_way(rows):
    for n in (1, 2, 3, 8, 17, 64, 100):
        for axis in (0, 1, 2):
            for dtype in ("float64", "float32"):
                x = sample(axis, n, dtype)
                for kind in kinds_of(n):
                    assert error(rows, kind, (axis,), x, within=True) < 12
                    for make in (dense, gapped, transposed):
                        assert error(rows, kind, (axis,), x, make) < 12


@pytest.mark.opencl
def test_long_and_many_rows(rows):
    """Several groups along a line, and several tiles of lines, in four dimensions."""
    for shape, axis in (((2, 600), 1), ((600, 70), 0), ((2, 40, 3, 35), 1), ((2, 3, 4, 5), 3)):
        x = np.random.default_rng(0).standard_normal(shape)
        assert error(rows, "dct2", (axis,), x, gapped) < 12
        assert error(rows, "dst1", (axis,), x) < 12


@pytest.mark.opencl
@pytest.mark.parametrize("slab", [1, 3000, 12000])
def test_parts_in_little_memory(device, slab):
    """Some lines after the other, as few as fit: parts of a plane, planes, and what is left at the end."""
    library = RowTransforms()
    transforms = Transforms(device, library=library, slab=slab)
    for axis, kind in ((0, "dct2"), (1, "dst3"), (2, "dct4")):
        x = sample(axis, 10, shape=(7, 9, 75))
        before = len(library.plans)
        assert error(transforms, kind, (axis,), x, gapped) < 12
        assert error(transforms, kind, (axis,), x, within=True) < 12
        assert before < len(library.plans) <= before + 3 * 4, "parts of one size share a plan"
    assert transforms.nbytes <= slab + 32 * 12 * 8, "a tile more than asked for"


@pytest.mark.opencl
@pytest.mark.parametrize("axes", [(0,), (1,), (2,), (0, 1), (0, 2), (0, 1, 2)])
def test_copies_for_a_library_of_rows(device, axes):
    """A library that takes rows alone gets copies with the transformed axes last."""
    library = RowTransforms(accepting=False)
    transforms = Transforms(device, library=library)
    for make in (dense, gapped, transposed):
        for dtype in ("float64", "float32"):
            assert error(transforms, "dft", axes, sample(axes[-1], 9, dtype, (4, 40, 35)), make) < 12
    assert {plan[1][-1] for plan in library.plans} == {2}


@pytest.mark.opencl
def test_single_values_are_no_matter_for_a_library(device):
    """Where one real value becomes a complex one, the library transforms the other axes alone."""
    for accepting in (True, False):
        library = RowTransforms(accepting=accepting)
        transforms = Transforms(device, library=library)
        for shape in ((5, 1, 1), (5, 6, 1), (1, 6, 4), (1, 1, 1)):
            for axes in ((0, 2), (0, 1, 2), (1, 2), (2,)):
                assert error(transforms, "dft", axes, np.random.default_rng(0).standard_normal(shape), gapped) < 12
        assert "complex" in {plan[0] for plan in library.plans}


@pytest.mark.opencl
@pytest.mark.parametrize("n", [1, 2, 8, 17, 70])
def test_matrices(matrices, n):
    for axis in (0, 1, 2):
        for dtype in ("float64", "float32"):
            x = sample(axis, n, dtype)
            kind = kinds_of(n)[(n + axis) % len(kinds_of(n))]
            assert error(matrices, kind, (axis,), x, (dense, gapped, transposed)[axis]) < 20
            assert error(matrices, kind, (axis,), x, within=True) < 20


@pytest.mark.opencl
@pytest.mark.parametrize("axes", [(0,), (2,), (0, 1), (0, 2), (0, 1, 2)])
def test_fourier_by_matrices(matrices, axes):
    for n in (1, 2, 9):
        assert error(matrices, "dft", axes, sample(axes[-1], n, "float64", (4, 5, 6)), gapped) < 20


@pytest.mark.opencl
def test_basis(matrices):
    rng = np.random.default_rng(2)
    x, forward = rng.standard_normal((5, 20, 70)), rng.standard_normal((20, 20))
    basis = SimpleNamespace(forward=forward, backward=np.linalg.inv(forward))
    values = dense(matrices.device, x)
    run = Steps(
        matrices.device, matrices.forward("matrix", (1,), values, values, basis=basis), [values.buffer], [values.buffer]
    )
    run()
    np.testing.assert_allclose(values.host(), np.einsum("ij,ajb->aib", forward, x), rtol=0, atol=1e-12)


@pytest.mark.opencl
def test_without_a_library_matrices_say_so(device):
    found = Transforms(device)
    if find_spec("pyvkfft") is None:
        assert "matrices" in found.describe()
        assert "fluxloom[vkfft]" in found.describe()
        assert not found.native("dft")
    else:
        assert "VkFFT" in found.describe()
    with pytest.raises(SolverError, match="'vkfft'"):
        Transforms(device, library="scipy")


@pytest.mark.opencl
@pytest.mark.long
def test_vkfft(device):
    pytest.importorskip("pyvkfft")
    transforms = Transforms(device, library="vkfft")
    for axis, n in ((0, 7), (1, 1), (2, 8)):
        for dtype in ("float64", "float32"):
            x = sample(axis, n, dtype, (3, 4, 5))
            for kind in kinds_of(n):
                assert error(transforms, kind, (axis,), x) < 40
                assert error(transforms, kind, (axis,), x, gapped) < 40
                assert error(transforms, kind, (axis,), x, within=True) < 40
            for axes in ((axis,), (0, 1), (0, 1, 2)):
                assert error(transforms, "dft", axes, x, gapped) < 40


@pytest.mark.cuda
@pytest.mark.parametrize("library", ["cufft", "matrix"])
def test_on_a_gpu(library):
    transforms = Transforms(Context("cuda").device, library=library, slab=4000)
    for axis, n in ((0, 7), (1, 1), (2, 8), (0, 40)):
        for dtype in ("float64", "float32"):
            x = sample(axis, n, dtype)
            for kind in kinds_of(n):
                for make in (dense, gapped, transposed):
                    assert error(transforms, kind, (axis,), x, make) < 40
                assert error(transforms, kind, (axis,), x, within=True) < 40
            for axes in ((axis,), (0, 1), (1, 2), (0, 1, 2)):
                for make in (dense, gapped, transposed):
                    assert error(transforms, "dft", axes, x, make) < 40


@pytest.mark.opencl
def test_working_memory_is_shared(device):
    transforms = Transforms(device, library=RowTransforms())
    x = DeviceArray.zeros(device, (4, 6))
    for kind in ("dct2", "dct3", "dct2"):
        transforms.forward(kind, (1,), x, x)
    assert transforms.nbytes == 4 * 8 * 8


@pytest.mark.nvcc
def test_nvcc_compiles(tmp_path):
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        pytest.skip("nvcc is not on PATH")
    paths = []
    for real in ("double", "float"):
        units = {"rows": (row_functions(real), helpers(real)), "copies": (copy_functions(real), helpers(real)),
                 "products": (product_functions(real), product_helpers(real))}  # fmt: skip
        for name, (functions, before) in units.items():
            if real == "float" and name != "rows":
                continue  # differs by the type alone
            paths.append(tmp_path / f"{name}_{real}.cu")
            paths[-1].write_text(primitive_unit(functions, "cuda", before).text)
    command = [nvcc, "-arch=sm_90", "-std=c++17", "-cubin", "--threads", "2", *map(str, paths)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    assert all(path.with_suffix(".cubin").stat().st_size > 1000 for path in paths)
