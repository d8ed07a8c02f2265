"""The row helpers: every combination compiles, and moves exactly the values it should."""

from __future__ import annotations

import ctypes
from itertools import product

import numpy as np
import pytest

from fluxloom.codegen.packs.rows import RowShape, chunks
from fluxloom.codegen.unit import row_helpers, whole
from fluxloom.core.dtypes import FLOAT16, FLOAT32, FLOAT64, Scalar
from fluxloom.toolchain import load_library

PAIRS = [(FLOAT64, FLOAT64), (FLOAT32, FLOAT32), (FLOAT32, FLOAT64)]
SHAPES = [
    RowShape(mode, storage, compute, width, lanes, stream)
    for (storage, compute), width, lanes in product(PAIRS, (1, 2, 4), (4, 8, 16))
    for mode, stream in (
        ("load", False),
        ("loadseq", False),
        ("unpack", False),
        ("storeseq", False),
        ("storeseq", True),
    )
    if not (mode == "unpack" and width == 1)
]
DIM = 5


def entry(shape: RowShape) -> str:
    """A C function with pointer arguments around one helper: (storage, pack, elements, first, stride)."""
    s, c = shape.storage.c, shape.compute.c
    head = f"void t_{shape.name}({s} *base, {c} *pack, const uint32_t *e, int64_t i, int64_t stride) {{"
    rows = f"{c} (*p)[{shape.lanes}] = ({c} (*)[{shape.lanes}])pack;"
    call = {
        "load": f"{shape.name}(p, base, stride, e);",
        "loadseq": f"{shape.name}(p, base, stride, i);",
        "storeseq": f"{shape.name}(base, stride, i, (const {c} (*)[{shape.lanes}])p);",
        "unpack": f"{shape.name}((fl_{shape.storage.name}x{shape.width} *)base, (const {c} (*)[{shape.lanes}])p);",
    }[shape.mode]
    return f"{head} {rows} (void)e; (void)i; (void)stride; {call} }}"


@pytest.fixture(scope="module")
def library():
    text = whole([row_helpers(set(SHAPES)), *(entry(s) for s in SHAPES)])
    return load_library(text, name="rows")


def aligned(n: int, dtype: np.dtype) -> np.ndarray:
    """An array that starts at a multiple of 64 bytes."""
    raw = np.zeros(n + 64, dtype=dtype)
    shift = (-raw.ctypes.data // dtype.itemsize) % (64 // dtype.itemsize)
    return raw[shift : shift + n]


def call(library, shape: RowShape, base: np.ndarray, pack: np.ndarray, e: np.ndarray, first: int, stride: int) -> None:
    pointer, size = ctypes.c_void_p, ctypes.c_int64
    function = library.function(f"t_{shape.name}", [pointer, pointer, pointer, size, size])
    function(base.ctypes.data, pack.ctypes.data, e.ctypes.data, first, stride)


@pytest.mark.parametrize("shape", SHAPES, ids=lambda s: s.name)
def test_rows(library, shape: RowShape) -> None:
    rng = np.random.default_rng(1)
    lanes, width = shape.lanes, shape.width
    stride = width if shape.stream else DIM
    e = rng.integers(0, 50, lanes).astype(np.uint32)
    first = lanes
    pack = aligned(width * lanes, shape.compute.numpy)
    if shape.mode in ("load", "loadseq"):
        base = aligned(64 * stride, shape.storage.numpy)
        base[:] = rng.random(base.size)
        call(library, shape, base, pack, e, first, stride)
        rows = base.reshape(-1, stride)[e if shape.mode == "load" else np.arange(first, first + lanes), :width]
        np.testing.assert_array_equal(pack.reshape(width, lanes), rows.T.astype(shape.compute.numpy))
        return
    pack[:] = rng.random(pack.size)
    want = pack.reshape(width, lanes).T.astype(shape.storage.numpy)
    if shape.mode == "unpack":
        base = aligned(lanes * width, shape.storage.numpy)
        call(library, shape, base, pack, e, 0, 0)
        np.testing.assert_array_equal(base.reshape(lanes, width), want)
        return
    base = aligned(64 * stride, shape.storage.numpy)
    base[:] = -1.0
    call(library, shape, base, pack, e, first, stride)
    rows = base.reshape(-1, stride)
    np.testing.assert_array_equal(rows[first : first + lanes, :width], want)
    rows[first : first + lanes, :width] = -1.0
    assert (base == -1.0).all()  # nothing else was touched


@pytest.mark.parametrize("stride", [1, 3])
def test_single_components_with_a_stride(library, stride: int) -> None:
    shape = RowShape("storeseq", FLOAT64, FLOAT64, 1, 8)
    pack, base = aligned(8, np.dtype(float)), aligned(64, np.dtype(float))
    pack[:] = np.arange(8) + 1
    call(library, shape, base, pack, np.zeros(8, np.uint32), 2, stride)
    want = np.zeros(64)
    want[np.arange(2, 10) * stride] = pack
    np.testing.assert_array_equal(base, want)


@pytest.mark.parametrize("dim", range(1, 12))
@pytest.mark.parametrize(("scalar", "lanes"), [(FLOAT64, 8), (FLOAT32, 16), (FLOAT16, 8), (FLOAT64, 1)])
def test_chunks_cover_every_component_once(dim: int, scalar: Scalar, lanes: int) -> None:
    parts = chunks(dim, lanes, scalar)
    assert [c for offset, width in parts for c in range(offset, offset + width)] == list(range(dim))
    widths = {width for _, width in parts}
    assert widths <= ({1} if lanes == 1 or scalar is FLOAT16 else {1, 2, 4})
