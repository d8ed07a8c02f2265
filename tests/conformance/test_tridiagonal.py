"""Tridiagonal systems: every method of every device beside dense elimination."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from fluxloom.device.base import Device
from fluxloom.dsl.declare.arrays import DeviceArray
from fluxloom.dsl.declare.runtime import open_device
from fluxloom.dsl.run.primitive import Steps
from fluxloom.linalg.direct.tridiagonal import Form, Matrices, TridiagonalSolver
from fluxloom.linalg.direct.tridiagonal.methods import METHODS_ITEMS, METHODS_PLAIN
from tests.unit.linalg.tridiagonal.systems import kind, layout, places, random_systems

METHODS = sorted({*METHODS_PLAIN, *METHODS_ITEMS})
DEVICES = ["cpu", pytest.param("opencl", marks=pytest.mark.opencl), pytest.param("cuda", marks=pytest.mark.cuda)]
FORMS = [(Form(), "noir"), (Form("float", "each", True), "oinr"), (Form("double", "shifted", False, 2), "noir")]


@functools.cache
def device_of(name: str) -> Device:
    return open_device(name, 2)


def agree(name: str, method: str, form: Form, rows: int, order: str) -> None:
    device, lines = device_of(name), layout(rows, 13, 3, form.rhs, order)
    if method not in (METHODS_ITEMS if device.items else METHODS_PLAIN):
        pytest.skip(f"{method} is none of the methods of this device")
    systems = random_systems(form, lines, rows)
    memory = {key: DeviceArray.of(device, values) for key, values in systems.given.items()}
    x = DeviceArray.zeros(device, memory["y"].shape, kind(form))
    solver = TridiagonalSolver(device, lines, form, method, threads=2)
    matrices = Matrices(**{key: memory[key] for key in ("a", "b", "c", "mass", "inner_shift", "outer_shift")})
    calls = solver.calls(y=memory["y"], x=x, matrices=matrices)
    Steps(device, calls, [array.buffer for array in memory.values()], [x.buffer])()
    solver.check()
    found = x.host()[places(lines)]
    np.testing.assert_allclose(found, systems.solution(1.0), rtol=0, atol=60 * np.finfo(kind(form)).eps)


def cases() -> Iterator[Any]:
    """Yield devices, methods and forms; all but one form of a method are long tests, as each is code of its own."""
    for name in ("cpu", "opencl", "cuda"):
        for (i, method), (k, given) in itertools.product(enumerate(METHODS), enumerate(FORMS)):
            marks = [] if name == "cpu" else [getattr(pytest.mark, name)]
            if (i + k) % 3:
                marks.append(pytest.mark.long)
            yield pytest.param(name, method, *given, marks=marks)


@pytest.mark.parametrize(("name", "method", "form", "order"), list(cases()), ids=str)
def test_methods(name: str, method: str, form: Form, order: str) -> None:
    agree(name, method, form, 31, order)


@pytest.mark.long
@pytest.mark.parametrize("rows", [5, 8, 16, 17, 64, 100, 257, 1000])
@pytest.mark.parametrize("order", ["noir", "oinr"])
@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", DEVICES)
def test_rows(name: str, method: str, periodic: bool, order: str, rows: int) -> None:
    agree(name, method, Form(periodic=periodic), rows, order)
