"""Running a case on two devices and comparing what it leaves behind.

A *case* is a function ``case(ctx, **options)`` that declares sets, dats and loops on a context and
returns ``(steps, outputs)``: what to call in order, and the dats and globals to look at afterwards.
Its data come from a seeded generator, so that every device starts from the same numbers.

Tests take the name of a device. On the CPU, packs and threads vary; *devices of work items* (``ITEMS``)
have neither, other race strategies, and slower compilers: `everywhere` gives each kind its own parameters.
``opencl_gpu`` is the OpenCL device as if it were a GPU, where work items share rows: other choices, the same kernels.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.core.dtypes import scalar
from fluxloom.core.errors import PlanError
from fluxloom.device.base import Device
from fluxloom.dsl.ranks.task import Reset
from fluxloom.dsl.run.chain import Chain
from fluxloom.dsl.run.loop import Loop

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
ITEM_STRATEGIES = {
    "atomic": fl.Schedule(strategy="atomic", block=256),
    "gather": fl.Schedule(strategy="gather"),
    "two_pass": fl.Schedule(strategy="two_pass", block=96),
    "element_colour": fl.Schedule(strategy="element_colour", block=64),
    "block_colour": fl.Schedule(strategy="block_colour"),
    "block_colour_staged": fl.Schedule(strategy="block_colour", block=64, stage=True),
}
ITEMS = ("opencl", "cuda")
MARKS = {"cpu": [], "opencl": [pytest.mark.opencl], "cuda": [pytest.mark.cuda]}
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


# ----------------------------------------------------------------------------------------- parameters


def everywhere(
    cpu: Iterable[Any] = ((),),
    items: Iterable[Any] = ((),),
    *,
    keep: int | None = None,
    keep_items: int | None = None,
) -> list[Any]:
    """Return parameters of a test that begin with the device.

    Parameters
    ----------
    cpu, items
        What follows the device: on the CPU, and on each device of work items.
    keep, keep_items
        Parameters of the CPU, and of OpenCL, after so many run only when long tests are asked for. Those of CUDA
        always run where there is a device.
    """
    out = []
    for device, marks in MARKS.items():
        most = {"cpu": keep, "opencl": keep_items}.get(device)
        for k, value in enumerate(cpu if device == "cpu" else items):
            long = [pytest.mark.long] if most is not None and k >= most else []
            out.append(pytest.param(device, *(value if isinstance(value, tuple) else (value,)), marks=marks + long))
    return out


DEVICES = everywhere()
ROW_DEVICES = [*DEVICES, pytest.param("opencl_gpu", marks=pytest.mark.opencl)]
"""For loops through ragged maps, whose rows work items share on GPUs."""


def rest_is_long(values: Sequence[Any], *, keep: int) -> list[Any]:
    """Return parameters of a test of which all but the first ``keep`` run only when long tests are asked for."""
    return [
        value if k < keep else pytest.param(*(value if isinstance(value, tuple) else (value,)), marks=pytest.mark.long)
        for k, value in enumerate(values)
    ]


def threads_of(device: str, *numbers: int) -> tuple[int, ...]:
    """Return the numbers of threads to try: one try where threads mean nothing."""
    return numbers if device == "cpu" else numbers[:1]


def schedules(device: str, *, lanes: int = 0, without: Sequence[str] = (), **more: Any) -> dict[str, fl.Schedule]:
    """Return a schedule for every race strategy of a device, but those whose names begin with one of ``without``."""
    known = {n: replace(s, lanes=lanes) for n, s in STRATEGIES.items()} if device == "cpu" else ITEM_STRATEGIES
    return {n: replace(s, **more) for n, s in known.items() if not n.startswith(tuple(without))}


# -------------------------------------------------------------------------------------------- running


def build(case: Case, ctx: fl.Context, **options: Any) -> Built:
    """Build a case; a single step or several."""
    steps, outputs = case(ctx, **options)
    return Built(tuple(steps), outputs)


def context(device: str, *, dtype: str = "float64", **choices: Any) -> fl.Context:
    """Return a context without tuning; skips the test when the device has no such type."""
    ctx = fl.Context(as_a_gpu() if device == "opencl_gpu" else device, tuning=False, **choices)
    if reason := ctx.device.refuses(scalar(dtype)):
        pytest.skip(reason)
    return ctx


def as_a_gpu() -> Device:
    """Return the OpenCL device as if it were a GPU; skips the test where it is one."""
    from fluxloom.device.opencl.device import OpenClDevice

    device = OpenClDevice()
    if not device.is_cpu:
        pytest.skip("the OpenCL device is a GPU: nothing differs")
    device.is_cpu = False
    return device


@functools.cache
def expected(case: Case, times: int = 1, **options: Any) -> Values:
    """Return what the reference device leaves (layouts and schedules do not matter there)."""
    return build(case, fl.Context("reference"), **options).run(times)


def native(
    case: Case,
    device: str = "cpu",
    *,
    schedule: fl.Schedule | None = None,
    threads: int = 2,
    times: int = 1,
    **options: Any,
) -> Values:
    """Return what a device leaves."""
    ctx = context(device, dtype=options.get("dtype", "float64"), threads=threads, schedule=schedule)
    return build(case, ctx, **options).run(times)


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


def same(left: Values, right: Values, what: str = "") -> None:
    """Compare to the last bit."""
    assert set(left) == set(right)
    for name in right:
        assert left[name].tobytes() == right[name].tobytes(), f"{what}: {name} differs"


def agree(
    case: Case,
    device: str = "cpu",
    *,
    dtype: str = "float64",
    schedule: fl.Schedule | None = None,
    threads: int = 2,
    layout: str = "aos",
    times: int = 1,
    **options: Any,
) -> None:
    """Run a case that takes ``layout`` and ``dtype`` on a device and on the reference device and compare."""
    options |= {"layout": LAYOUTS[layout], "dtype": dtype}
    got = native(case, device, schedule=schedule, threads=threads, times=times, **options)
    del options["layout"]
    compare(got, expected(case, times, **options), dtype)


def variants(
    case: Case, device: str, choices: Mapping[Any, Mapping[str, Any]], *, threads: int = 2, **options: Any
) -> dict[Any, Values]:
    """Run a case with many sets of options, compiled as one unit; returns the outputs by name.

    Sets with a schedule that is impossible for a loop of the case are left out.
    """
    ctx = context(device, dtype=options.get("dtype", "float64"), threads=threads)
    built: dict[Any, Built] = {}
    for name, choice in choices.items():
        try:
            built[name] = build(case, ctx, **options, **choice)
        except PlanError:
            continue
    steps = [step for item in built.values() for step in item.steps]
    assert all(isinstance(step, (Loop, Reset)) for step in steps)
    Chain(steps, fuse=False, name=case.__name__)()
    return {name: item.values() for name, item in built.items()}


def together(
    case: Case, wanted: Mapping[str, fl.Schedule], device: str = "cpu", *, threads: int = 2, **options: Any
) -> dict[str, Values]:
    """Run a case under many schedules, compiled as one unit; returns the outputs by schedule name."""
    return variants(case, device, {n: {"schedule": s} for n, s in wanted.items()}, threads=threads, **options)
