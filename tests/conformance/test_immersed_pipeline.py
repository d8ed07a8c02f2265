"""The work on markers done by the host: beside the step of all cells, before it, or with the flow: the same numbers."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fluxloom.codegen.primitive import primitive_unit
from fluxloom.core.errors import SolverError
from fluxloom.dsl.context import Context
from fluxloom.lbm.immersed import (
    Contact,
    Deforming,
    Elastic,
    Free,
    ImmersedBody,
    Pose,
    Prescribed,
    circle,
    ellipse,
    sphere,
)
from fluxloom.lbm.immersed.markers.messages import copy_functions
from fluxloom.lbm.lattices import D2Q9
from fluxloom.solvers.lattice.flow import LatticeBoltzmann
from tests.immersed_tank import Tank, tank
from tests.lattice_names import immersed

from .harness import DEVICES, rest_is_long

SHAPES = {2: (18, 20), 3: (12, 13, 14)}
FORCE = 1e-4


def fixed(d: int) -> list[ImmersedBody]:
    """A drum or ball that turns, across a periodic end, and another one."""
    if d == 2:
        return [
            ImmersedBody("turning", circle((9.0, 19.3), 4.0).spinning(1e-3)),
            ImmersedBody("other", circle((9.0, 9.0), 2.0)),
        ]
    return [ImmersedBody("turning", sphere((6.0, 6.3, 13.4), 2.5).spinning((1e-3, 0.0, 2e-3)))]


def prescribed(d: int) -> list[ImmersedBody]:
    """A body that leaves its first support within some steps, and a fixed one."""
    centre, way = (9.0, 12.0, 6.0)[-d:], np.array([0.0] * (d - 1) + [0.3])

    def slides(time: float) -> Pose:
        return Pose(tuple(centre + time * way), velocity=tuple(way))

    markers = circle(centre, 3.0) if d == 2 else sphere(centre, 2.0)
    still = circle((4.0, 2.0), 1.5) if d == 2 else sphere((2.0, 2.0, 11.0), 1.5)
    return [ImmersedBody("slider", markers, Prescribed(slides)), ImmersedBody("still", still)]


def others() -> list[ImmersedBody]:
    """Bodies whose motion needs the fluid, and one that changes its form."""
    x0 = circle((13.0, 15.0), 2.0).positions

    def swims(time: float) -> tuple[Any, Any]:
        return x0 + 0.2 * time, np.full_like(x0, 0.2)

    return [
        ImmersedBody("disk", circle((5.0, 5.0), 3.0), Free.disk(3.0, 1.5, gravity=(-1e-3, 0.0), spin=1e-3)),
        ImmersedBody("ring", ellipse((13.0, 5.0), (3.0, 2.0)), Elastic(stiffness=0.01, bending=1e-3)),
        ImmersedBody("fish", circle((13.0, 15.0), 2.0), Deforming(swims)),
    ]


def run(bodies: list[ImmersedBody], steps: int, device: str = "cpu", **named: Any) -> Tank:
    d = bodies[0].markers.dimensions
    options = {k: named.pop(k) for k in ("dtype", "scheme") if k in named}
    boundary, field = immersed(bodies, **{"threads": 2, "margin": 1, **named}), named.get("mode") == "field"
    force = (0.0,) * (d - 1) + (FORCE,)
    flow = tank(SHAPES[d], 0.1, force, device, field=field, **options).immerse(boundary)
    flow.step(steps)
    return flow


def looks(flow: Tank) -> np.ndarray:
    """Everything that steps leave behind."""
    boundary = flow.boundary
    assert boundary is not None
    values = [flow.populations().ravel(), flow.force_field.read().astype(np.float64).ravel()]
    for name in boundary.names:
        values += [boundary.force_on(name), boundary.torque_on(name), boundary.positions(name).ravel()]
        values.append(boundary.slip(name).ravel())
    return np.concatenate(values)


CASES = [
    (fixed, 2, 1, {}),
    (prescribed, 2, 3, {}),
    (prescribed, 3, 3, {}),
    (prescribed, 2, 1, {"scheme": "three-phase"}),
    (fixed, 3, 1, {"delta": "peskin"}),
    (fixed, 2, 3, {"scattered": True, "scheme": "push"}),
    (prescribed, 2, 3, {"delta": "peskin"}),
    (fixed, 3, 3, {"scheme": "three-phase"}),
    (prescribed, 3, 1, {"scheme": "push"}),
]


@pytest.mark.parametrize(("bodies", "d", "iterations", "named"), rest_is_long(CASES, keep=2))
def test_every_pipeline_gives_the_same(bodies: Any, d: int, iterations: int, named: dict[str, Any]) -> None:
    """Five steps, so that bodies that move leave their first support."""
    made = {
        pipeline: looks(run(bodies(d), 5, iterations=iterations, pipeline=pipeline, **named))
        for pipeline in ("device", "host", "host-serial")
    }
    assert np.abs(made["device"]).max() > 1e-4
    for pipeline in ("host", "host-serial"):
        assert np.abs(made[pipeline] - made["device"]).max() < 1e-14, pipeline


@pytest.mark.long
def test_all_motions() -> None:
    """Free, elastic and deforming bodies: what moves them is known to the host."""
    contact = Contact(0.01, 1.0)
    made = [looks(run(others(), 12, pipeline=pipeline, contact=contact)) for pipeline in ("device", "host")]
    assert np.abs(made[1] - made[0]).max() < 1e-13


@pytest.mark.parametrize("scheme", ["pull", pytest.param("in-place", marks=pytest.mark.long)])
def test_force_of_every_cell(scheme: str) -> None:
    """One after the other, the host may also find a force that the step of all cells reads."""
    options = {"mode": "field", "scheme": scheme}
    made = [looks(run(fixed(2), 4, pipeline=pipeline, **options)) for pipeline in ("device", "host-serial")]
    assert np.abs(made[1] - made[0]).max() < 1e-14


@pytest.mark.parametrize("device", DEVICES[1:])
@pytest.mark.parametrize("pipeline", ["host", pytest.param("host-serial", marks=pytest.mark.long)])
@pytest.mark.parametrize(("bodies", "d"), rest_is_long([(prescribed, 2), (fixed, 3)], keep=1))
def test_messages_travel(device: str, pipeline: str, bodies: Any, d: int) -> None:
    """A device with a memory of its own, and the processor: supports change, messages grow."""
    wanted = looks(run(bodies(d), 9, iterations=2))
    made = looks(run(bodies(d), 9, device=device, iterations=2, pipeline=pipeline))
    assert np.abs(made - wanted).max() < 1e-13


def test_restart_and_times() -> None:
    """A restart forgets bodies' ways and times; these are of the host."""
    flow = run(prescribed(2), 7, pipeline="host")
    boundary = flow.boundary
    assert boundary is not None
    assert set(boundary.times()) == {"ahead", "waiting", "markers", "asking"}
    assert all(seconds >= 0 for seconds in boundary.times().values())
    assert boundary.times()["markers"] > 0
    boundary.restart()
    with pytest.raises(SolverError, match="times of the host"):
        boundary.times()
    for buffer in flow.space.buffers:
        buffer.write(0.0)
    flow.steps = 0
    flow.step(3)
    assert np.abs(looks(flow) - looks(run(prescribed(2), 3))).max() < 1e-14


@pytest.mark.long
def test_in_the_solver() -> None:
    """Chains of the solver around the host's work, two steps in one; velocity and slip are the same."""
    found = []
    for pipeline in ("device", "host"):
        context = Context("cpu", threads=2, tuning=False)
        flow = LatticeBoltzmann(context, SHAPES[2], viscosity=0.1, lattice=D2Q9, dtype="float64")
        boundary = immersed(fixed(2), pipeline=pipeline, threads=2)
        flow.immerse(boundary)
        flow.initialise(1.0, (0.0, 0.02))
        flow.step(2)
        slip = boundary.slip("other").ravel()  # before the velocity, which takes the place of what arrived
        found.append(np.concatenate([flow.velocity().ravel(), slip, flow.force_on("other")]))
    assert np.abs(found[0]).max() > 1e-3
    assert np.abs(found[1] - found[0]).max() < 1e-13


@pytest.mark.parametrize(
    ("named", "says"),
    [
        ({"pipeline": "host", "mode": "field"}, r"make it without, or take OnHost\(overlap=False\)"),
        ({"pipeline": "host", "device": "reference"}, "generated code"),
    ],
)
def test_what_is_refused(named: dict[str, Any], says: str) -> None:
    with pytest.raises(SolverError, match=says):
        run(fixed(2), 0, **named)


def test_times_without_a_host() -> None:
    with pytest.raises(SolverError, match="times of the host"):
        run(fixed(2), 1).boundary.times()  # type: ignore[union-attr]


@pytest.mark.nvcc
def test_nvcc_compiles(tmp_path: Path) -> None:
    compiler = shutil.which("nvcc")
    if compiler is None:
        pytest.skip("nvcc is not on the path")
    source, binary = tmp_path / "copies.cu", tmp_path / "copies.cubin"
    source.write_text(primitive_unit(copy_functions("double", 2, items=True), "cuda").text)
    command = [compiler, "-arch=sm_90", "-std=c++17", "-cubin", "-o", str(binary), str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr[-4000:]
