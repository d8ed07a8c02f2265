"""How arrays are described to cuFFT and cuBLAS, with stand-ins that read memory as their manuals say."""

from __future__ import annotations

import ctypes
import itertools
import sys
from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.fft

from fluxloom.core.errors import DeviceUnavailable
from fluxloom.device.buffer import Buffer, View
from fluxloom.device.transforms.cufft import CufftTransforms, layout
from fluxloom.device.transforms.dft import Values
from fluxloom.device.transforms.products import CublasProducts, gemm

TYPES = {
    "R2C": (np.float32, np.complex64), "C2R": (np.complex64, np.float32), "C2C": (np.complex64, np.complex64),
    "D2Z": (np.float64, np.complex128), "Z2D": (np.complex128, np.float64), "Z2Z": (np.complex128, np.complex128),
}  # fmt: skip
NAMES = tuple(TYPES)


def memory(address: int, dtype: type, indices: np.ndarray) -> np.ndarray:
    """Return the memory from an address up to the largest index."""
    nbytes = (int(indices.max()) + 1) * np.dtype(dtype).itemsize
    return np.frombuffer((ctypes.c_uint8 * nbytes).from_address(address), dtype)


class Plan:
    """``PlanNd`` of CuPy: cuFFT's advanced layout."""

    def __init__(
        self, shape, inembed, istride, idist, onembed, ostride, odist, code, batch, order, last_axis, last_size
    ):  # fmt: skip
        self.shape, self.code, self.batch = tuple(shape), NAMES[code], batch
        self.sides = ((tuple(inembed), istride, idist), (tuple(onembed), ostride, odist))

    def indices(self, side: int, lengths: tuple[int, ...]) -> np.ndarray:
        """Return the index of every value: ``input[b * idist + ((x * inembed[1] + y) * inembed[2] + z) * istride]``."""
        embed, stride, distance = self.sides[side]
        found = np.zeros((self.batch, *lengths), dtype=np.int64)
        for place in itertools.product(*map(range, lengths)):
            index = 0
            for k, i in enumerate(place):
                assert i < embed[k]
                index = index * embed[k] + i if k else i
            found[(slice(None), *place)] = np.arange(self.batch) * distance + index * stride
        return found

    def fft(self, a, out, direction):
        source, target = TYPES[self.code]
        half = (*self.shape[:-1], self.shape[-1] // 2 + 1)
        axes = tuple(range(1, len(self.shape) + 1))
        lengths = (
            half if self.code in ("C2R", "Z2D") else self.shape,
            half if self.code in ("R2C", "D2Z") else self.shape,
        )
        reads, writes = self.indices(0, lengths[0]), self.indices(1, lengths[1])
        for address, dtype in ((a.data.ptr, source), (out.data.ptr, target)):
            assert address % max(np.dtype(source).itemsize, np.dtype(target).itemsize) == 0, dtype
        x = memory(a.data.ptr, source, reads)[reads]
        if self.code in ("R2C", "D2Z"):
            y = scipy.fft.rfftn(x, axes=axes)
        elif self.code in ("C2R", "Z2D"):
            y = scipy.fft.irfftn(x, self.shape, axes=axes, norm="forward")
        else:
            y = scipy.fft.fftn(x, axes=axes) if direction < 0 else scipy.fft.ifftn(x, axes=axes, norm="forward")
        memory(out.data.ptr, target, writes)[writes] = y


def blas_gemm(dtype: type):
    """Return the stand-in of ``gemmStridedBatched``: matrices by columns."""

    def multiply(handle, ta, tb, m, n, k, alpha, a, lda, da, b, ldb, db, beta, c, ldc, dc, batch):
        one, factor = (memory(p, dtype, np.zeros(1, int))[0] for p in (alpha, beta))
        for number in range(batch):
            sides = []
            for address, lead, distance, turned, (rows, columns) in (
                (a, lda, da, ta, (m, k)),
                (b, ldb, db, tb, (k, n)),
            ):
                stored = (columns, rows) if turned else (rows, columns)
                assert lead >= max(1, stored[0])
                index = number * distance + np.arange(stored[0])[:, None] + lead * np.arange(stored[1])[None, :]
                values = memory(address, dtype, index)[index]
                sides.append(values.T if turned else values)
            assert ldc >= max(1, m)
            index = number * dc + np.arange(m)[:, None] + ldc * np.arange(n)[None, :]
            place = memory(c, dtype, index)
            place[index] = one * (sides[0] @ sides[1]) + (factor * place[index] if factor else 0)

    return multiply


@pytest.fixture
def device(monkeypatch):
    codes = {f"CUFFT_{name}": number for number, name in enumerate(NAMES)}
    cufft = SimpleNamespace(PlanNd=Plan, CUFFT_FORWARD=-1, CUFFT_INVERSE=1, getVersion=lambda: 11303, **codes)
    blas = SimpleNamespace(
        create=lambda: 7, setStream=lambda handle, stream: None, setPointerMode=lambda handle, mode: None,
        getVersion=lambda handle: 120900, CUBLAS_POINTER_MODE_HOST=0, CUBLAS_OP_N=0, CUBLAS_OP_T=1,
        dgemmStridedBatched=blas_gemm(np.float64), sgemmStridedBatched=blas_gemm(np.float32),
    )  # fmt: skip
    for name in ("cupy", "cupy.cuda"):
        monkeypatch.setitem(sys.modules, name, SimpleNamespace())
    monkeypatch.setitem(sys.modules, "cupy.cuda.cufft", cufft)

    class Stream:
        ptr = 0

        def __enter__(self):
            return self

        def __exit__(self, *error):
            return None

    return SimpleNamespace(
        cupy=SimpleNamespace(cuda=SimpleNamespace(cublas=blas)), stream=Stream(), active=nullcontext,
        resident=lambda table: (table.ctypes.data, table),
    )  # fmt: skip


def zeros(shape: tuple[int, ...], dtype: type, order: str, ghosts: int = 0) -> Values:
    """Return memory of some order of the axes, with ghosts."""
    full = tuple(n + 2 * ghosts for n in shape)
    size = np.dtype(dtype).itemsize
    strides = tuple(s // size * size for s in np.empty(full, dtype, order=order).strides)
    buffer = Buffer(int(np.prod(full)) * size)
    return Values(buffer, View(shape, np.dtype(dtype), strides, ghosts * sum(strides)))


def close(found: np.ndarray, wanted: np.ndarray, dtype: type) -> None:
    np.testing.assert_allclose(found, wanted, rtol=0, atol=40 * np.finfo(dtype).eps * np.abs(wanted).max())


@pytest.mark.parametrize("axes", [(0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_transforms(device, axes, dtype):
    library = CufftTransforms(device)
    pairs = np.result_type(dtype, np.complex64).type
    for shape in ((4, 6, 8), (3, 5, 7), (1, 4, 2)):
        for order, ghosts in (("C", 0), ("C", 1), ("F", 0)):
            half = tuple(n // 2 + 1 if k == axes[-1] else n for k, n in enumerate(shape))
            source, target = zeros(shape, dtype, order, ghosts), zeros(half, pairs, "C")
            x = np.random.default_rng(0).standard_normal(shape).astype(dtype)
            source.array()[...] = x
            if not library.accepts("dft", axes, source, target):
                assert ghosts or order == "F" or shape[0] * shape[1] * shape[2] % 2  # addresses, or no embedding
                continue
            library.plan("dft", axes, source, target)()
            close(target.array(), scipy.fft.rfftn(x, axes=axes), dtype)
            library.plan("dft", axes, target, source, backward=True)()
            close(source.array(), x * np.prod([shape[a] for a in axes]), dtype)


def test_dense_arrays_need_no_copy(device):
    """The cases of channels and boxes: one start along (0, 2) and (1, 2), a start a plane along 1."""
    source = zeros((4, 6, 8), np.float64, "C")
    for axes, starts in (((0, 2), 1), ((1, 2), 1), ((0, 1, 2), 1), ((2,), 1), ((0,), 1), ((1,), 4), ((0, 1), 1)):
        half = tuple(n // 2 + 1 if k == axes[-1] else n for k, n in enumerate((4, 6, 8)))
        target = zeros(half, np.complex128, "C")
        found = layout(axes, source, target)
        assert found is not None
        assert len(found.starts) == starts
        assert CufftTransforms(device).accepts("dft", axes, source, target)


def test_many_starts_are_refused(device):
    source, target = zeros((40, 6, 8), np.float64, "C"), zeros((40, 4, 8), np.complex128, "C")
    assert not CufftTransforms(device).accepts("dft", (1,), source, target)
    assert not CufftTransforms(device).accepts("dct2", (1,), source, source)


def test_complex_rows(device):
    library = CufftTransforms(device)
    values = zeros((5, 9), np.complex128, "C")
    x = np.random.default_rng(0).standard_normal((5, 9)) + 1j
    values.array()[...] = x
    library.plan("complex", (1,), values, values)()
    close(values.array(), scipy.fft.fft(x, axis=1), np.float64)
    library.plan("complex", (1,), values, values, backward=True)()
    close(values.array(), 9 * x, np.float64)
    assert library.title == "cuFFT 11.3.3"


def test_missing_library_says_what_to_install(device, monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy.cuda.cufft", None)
    with pytest.raises(DeviceUnavailable, match="nvidia-cufft"):
        CufftTransforms(device)


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_products(device, axis, dtype):
    library = CublasProducts(device)
    rng = np.random.default_rng(1)
    accepted = 0
    for shape in ((4, 5, 6), (1, 3, 7), (3, 1, 1)):
        for rows in (1, shape[axis]):
            matrix = rng.standard_normal((rows, shape[axis])).astype(dtype)
            result = tuple(rows if k == axis else n for k, n in enumerate(shape))
            for order, ghosts in (("C", 0), ("C", 1), ("F", 0)):
                source, target = zeros(shape, dtype, order, ghosts), zeros(result, dtype, order, ghosts)
                x = rng.standard_normal(shape).astype(dtype)
                source.array()[...] = x
                if not library.accepts(axis, source, target):
                    continue
                accepted += 1
                wanted = np.moveaxis(np.tensordot(matrix, x, (1, axis)), 0, axis)
                library.plan(matrix, axis, source, target)()
                close(target.array(), wanted, dtype)
                library.plan(matrix, axis, source, target, accumulate=True)()
                close(target.array(), 2 * wanted, dtype)
    assert accepted > 12


def test_products_of_parts_of_complex_values_are_left_to_others():
    source = zeros((4, 5), np.float64, "C")
    target = Values(Buffer(4 * 5 * 16), View((4, 5), np.dtype(np.float64), (80, 16)))
    assert gemm(0, source, target) is None
    assert gemm(0, source, source) is not None
