"""Functions and records as constants, one of several by element, and data that may be left out: on all devices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

import fluxloom as fl
from fluxloom import Loop

from .harness import LAYOUTS, Case, compare, context, everywhere, expected, schedules, together, variants
from .strategies import CONDITIONS, FLUXES, Gas, Rusanov, boundaries, edges, optional, through_edges, variables

OPTIONS: Mapping[str, tuple[Case, Mapping[str, Mapping[str, object]]]] = {
    "boundaries": (boundaries, {name: {"conditions": name} for name in CONDITIONS}),
    "optional": (optional, {name: {"given": name} for name in ("all", "some", "nothing")}),
    "variables": (variables, {"variables": {}}),
}


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(("device", "flux"), everywhere(FLUXES, FLUXES))
def test_fluxes(device: str, flux: str, dtype: str) -> None:
    """Every race strategy; the second loop runs with other values of the fields than it was built with."""
    options: dict[str, Any] = {"flux": flux, "dtype": dtype}
    want = expected(edges, **options)
    assert not np.array_equal(want["first"], want["second"]) or flux == "formula"
    for name, got in together(edges, schedules(device), device, layout=LAYOUTS["soa"], **options).items():
        compare(got, want, dtype, name)


@pytest.mark.parametrize("lanes", [1, 8])
@pytest.mark.parametrize(("device", "what"), everywhere(OPTIONS, OPTIONS))
def test_options(device: str, what: str, lanes: int) -> None:
    if device != "cpu" and lanes > 1:
        pytest.skip("packs are for CPUs")
    case, choices = OPTIONS[what]
    got = variants(case, device, choices, schedule=fl.Schedule(lanes=lanes) if device == "cpu" else None)
    for name, values in got.items():
        compare(values, expected(case, **choices[name]), what=name)


@pytest.mark.parametrize(("device", "steps"), everywhere([1, 3], [3]))
def test_a_sweep_compiles_once(device: str, steps: int) -> None:
    """Fields change at the call, by `set`, and in chains that hold the loop; the code stays."""
    ctx = context(device)
    (loop, other), outputs = edges(ctx)
    chain = fl.Chain([loop, other], name="both")
    want_loops, want = edges(fl.Context("reference"))
    for k in range(steps):
        flux = Rusanov(Gas(1.2 + 0.1 * k), 1.0 + k)
        loop.set(flux=flux)
        chain()
        other(flux=flux)
        want_loops[0](flux=flux)
        want_loops[1]()
        want_loops[1](flux=flux)
    compare({n: d.read() for n, d in outputs.items()}, {n: d.read() for n, d in want.items()})
    again = Loop(through_edges, loop.over, *loop.bound.arguments, flux=Rusanov(Gas(9.0), 9.0))
    assert again.bound.lowered is loop.bound.lowered
    assert again.tuning_key == loop.tuning_key
    assert list(again.constants) == ["area", "flux_scale", "flux_gas_gamma"]
