"""Running a case on two devices and comparing what it leaves behind.

A *case* is a function ``case(ctx, **options)`` that declares sets, dats and loops on a context and
returns ``(steps, outputs)``: what to call in order, and the dats and globals to look at afterwards.
Its data come from a seeded generator, so that every device starts from the same numbers.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.core.errors import PlanError
from fluxloom.dsl.chain import Chain
from fluxloom.dsl.loop import Loop
from fluxloom.dsl.steps import Reset

LAYOUTS = {"aos": fl.AoS(), "soa": fl.SoA(), "blocked": fl.Blocked(8)}
STRATEGIES = {
    "serial": fl.Schedule(strategy="serial"),
    "block_colour": fl.Schedule(strategy="block_colour", block=200),
    "element_colour": fl.Schedule(strategy="element_colour"),
    "block_permute": fl.Schedule(strategy="block_permute", block=256),
    "atomic": fl.Schedule(strategy="atomic"),
    "gather": fl.Schedule(strategy="gather", block=1024),
    "gather1": fl.Schedule(strategy="gather", block=1),
    "two_pass": fl.Schedule(strategy="two_pass"),
}
TOLERANCE = {"float64": 1e-13, "float32": 1e-5, "float16": 2e-3}

Values = Mapping[str, np.ndarray]
Case = Callable[..., tuple[Sequence[Any], Mapping[str, Any]]]


@dataclass(frozen=True)
class Built:
    """A case on one context."""

    steps: tuple[Any, ...]
    outputs: Mapping[str, Any]

    def values(self) -> Values:
        """Return copies of the outputs."""
        return {
            name: np.array(item.value) if isinstance(item, fl.Global) else item.read()
            for name, item in self.outputs.items()
        }

    def run(self, times: int = 1) -> Values:
        """Call every step in order and return the outputs."""
        for _ in range(times):
            for step in self.steps:
                step()
        return self.values()


def build(case: Case, ctx: fl.Context, **options: Any) -> Built:
    """Build a case; a single step or several."""
    steps, outputs = case(ctx, **options)
    return Built(tuple(steps), outputs)


@functools.cache
def expected(case: Case, times: int = 1, **options: Any) -> Values:
    """Return what the reference device leaves (layouts and schedules do not matter there)."""
    return build(case, fl.Context("reference"), **options).run(times)


def native(
    case: Case, *, schedule: fl.Schedule | None = None, threads: int = 2, times: int = 1, **options: Any
) -> Values:
    """Return what the CPU device leaves."""
    return build(case, fl.Context("cpu", threads=threads, schedule=schedule, tuning=False), **options).run(times)


def compare(got: Values, want: Values, dtype: str = "float64", what: str = "") -> None:
    """Compare reals relative to the largest value of each array, integers exactly."""
    assert set(got) == set(want)
    for name, right in want.items():
        left = got[name]
        assert left.shape == right.shape
        assert left.dtype == right.dtype, name
        if right.dtype.kind != "f":
            np.testing.assert_array_equal(left, right, err_msg=f"{what} {name}")
            continue
        finite = np.abs(right[np.isfinite(right)]).astype(np.float64)
        scale = float(finite.max(initial=0.0)) or 1.0
        tolerance = TOLERANCE[dtype]
        np.testing.assert_allclose(
            left.astype(np.float64), right.astype(np.float64), rtol=tolerance, atol=tolerance * scale,
            err_msg=f"{what} {name}",
        )  # fmt: skip


def agree(
    case: Case,
    *,
    dtype: str = "float64",
    schedule: fl.Schedule | None = None,
    threads: int = 2,
    layout: str = "aos",
    times: int = 1,
    **options: Any,
) -> None:
    """Run a case that takes ``layout`` and ``dtype`` on both devices and compare."""
    got = native(case, schedule=schedule, threads=threads, times=times, layout=LAYOUTS[layout], dtype=dtype, **options)
    compare(got, expected(case, times, dtype=dtype, **options), dtype)


def together(
    case: Case, schedules: Mapping[str, fl.Schedule], *, threads: int = 2, **options: Any
) -> dict[str, Values]:
    """Run a case under many schedules, compiled as one unit; returns the outputs by schedule name.

    Schedules that are impossible for a loop of the case are left out.
    """
    ctx = fl.Context("cpu", threads=threads, tuning=False)
    built: dict[str, Built] = {}
    for name, schedule in schedules.items():
        try:
            built[name] = build(case, ctx, schedule=schedule, **options)
        except PlanError:
            continue
    steps = [step for item in built.values() for step in item.steps]
    assert all(isinstance(step, (Loop, Reset)) for step in steps)
    Chain(steps, fuse=False, name=case.__name__)()
    return {name: item.values() for name, item in built.items()}


def with_lanes(lanes: int, names: Sequence[str] = tuple(STRATEGIES)) -> dict[str, fl.Schedule]:
    """Return the named schedules with a number of lanes."""
    return {name: fl.Schedule(**{**STRATEGIES[name].__dict__, "lanes": lanes}) for name in names}


def rest_is_long(values: Sequence[Any], *, keep: int) -> list[Any]:
    """Return parameters of a test of which all but the first ``keep`` run only when long tests are asked for."""
    return [
        value if k < keep else pytest.param(*(value if isinstance(value, tuple) else (value,)), marks=pytest.mark.long)
        for k, value in enumerate(values)
    ]
