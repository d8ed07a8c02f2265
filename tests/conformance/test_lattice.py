"""Lattice Boltzmann on a tiny box: layouts and precisions against the reference device."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.lbm.lattices import D2Q9, D3Q19, Lattice
from tests.lattice_names import lattice_flow

from .harness import LAYOUTS, Values, compare, rest_is_long

STEPS = 2


def values(
    ctx: fl.Context, lattice: Lattice, shape: tuple[int, ...], dtype: str, layout: fl.AoS | fl.SoA | None = None
) -> Values:
    """Return what two steps from a random start leave."""
    rng = np.random.default_rng(0)
    flow = lattice_flow(ctx, shape, viscosity=0.03, lattice=lattice, dtype=dtype, layout=layout)
    flow.initialise(1 + 0.02 * rng.random(shape), 0.05 * rng.standard_normal((*shape, lattice.dimensions)))
    flow.step(STEPS)
    return {
        "populations": flow.populations.read(),
        "density": flow.density(),
        "velocity": flow.velocity(),
        "energy": np.array(flow.kinetic_energy()),
    }


@functools.cache
def reference(lattice: Lattice, shape: tuple[int, ...], dtype: str) -> Values:
    return values(fl.Context("reference"), lattice, shape, dtype)


@pytest.mark.parametrize("shape", [(3, 4, 7), (1, 1, 1), (2, 1, 19)])
@pytest.mark.parametrize(
    ("layout", "dtype"),
    rest_is_long(
        [
            ("soa", "float32"), ("soa", "float64"), ("aos", "float64"), ("aos", "float32"),
            ("blocked", "float64"), ("blocked", "float32"),
        ],
        keep=1,
    ),
)  # fmt: skip
def test_three_dimensions(shape: tuple[int, ...], dtype: str, layout: str) -> None:
    got = values(fl.Context("cpu", threads=2, tuning=False), D3Q19, shape, dtype, LAYOUTS[layout])
    compare(got, reference(D3Q19, shape, dtype), dtype)


@pytest.mark.parametrize(
    ("layout", "dtype"),
    rest_is_long(
        [("aos", "float64"), ("blocked", "float32"), ("aos", "float32"), ("soa", "float64"), ("soa", "float32")], keep=2
    ),
)
def test_two_dimensions(dtype: str, layout: str) -> None:
    got = values(fl.Context("cpu", threads=2, tuning=False), D2Q9, (5, 21), dtype, LAYOUTS[layout])
    compare(got, reference(D2Q9, (5, 21), dtype), dtype)


@pytest.mark.cuda
@pytest.mark.parametrize("shape", [(3, 4, 7), (1, 1, 1), (2, 1, 19), (3, 9, 37)])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_cuda(shape: tuple[int, ...], dtype: str, layout: str) -> None:
    got = values(fl.Context("cuda", tuning=False), D3Q19, shape, dtype, LAYOUTS[layout])
    compare(got, reference(D3Q19, shape, dtype), dtype)


def test_threads_change_no_bit() -> None:
    """No sum crosses a cell: results are the same for any number of threads."""
    runs = [
        values(fl.Context("cpu", threads=threads, tuning=False), D3Q19, (18, 17, 16), "float32") for threads in (1, 3)
    ]
    for name in ("populations", "density", "velocity"):
        np.testing.assert_array_equal(runs[0][name], runs[1][name])
