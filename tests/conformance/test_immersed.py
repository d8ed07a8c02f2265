"""Immersed boundaries on every device, with every scheme of streaming, compared with NumPy and with one another."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fluxloom.codegen.primitive import primitive_unit
from fluxloom.core.errors import SolverError
from fluxloom.lbm.immersed import (
    Contact,
    Deforming,
    Elastic,
    Free,
    ImmersedBody,
    ImmersedBoundary,
    Pose,
    Prescribed,
    circle,
    ellipse,
    sphere,
)
from fluxloom.lbm.immersed.markers.scatter import scatter_functions, scatter_helpers
from tests.immersed_tank import Tank, tank
from tests.lattice_names import immersed

from .harness import everywhere, rest_is_long

SHAPE = (16, 18)
FORMS = everywhere([False, True], [True, False], keep_items=1)
LONG = everywhere(keep_items=0)
"""Elsewhere than on a processor only when long tests are asked for: OpenCL compiles slowly."""
SCHEMES = [
    ("pull", "local"),
    ("in-place", "field"),
    ("push", "local"),
    ("three-phase", "local"),
    ("pull", "field"),
    ("push", "field"),
    ("three-phase", "field"),
]


def drum() -> ImmersedBody:
    """A drum that turns and lies across the periodic end along x."""
    return ImmersedBody("drum", circle((8.0, 17.3), 4.0).spinning(1e-3))


def movers(low: float = 12.0) -> list[ImmersedBody]:
    """A body of each kind of motion, in a box of 24 by 20 cells."""
    x0, rate = circle((19.0, 6.0), 2.0).positions, 0.01

    def swings(time: float) -> Pose:
        s, c = np.sin(rate * time), np.cos(rate * time)
        return Pose((4.0 + s, 6.0), angle=0.01 * time, velocity=(rate * c, 0.0), spin=0.01)

    def slides(time: float) -> tuple[Any, Any]:
        return x0 + 0.02 * time * np.array([0.0, 1.0]), np.broadcast_to([0.0, 0.02], x0.shape)

    return [
        ImmersedBody("disk", circle((low, 17.3), 4.0), Free.disk(4.0, 1.5, gravity=(-1e-3, 0.0), spin=1e-3)),
        ImmersedBody("paddle", ellipse((4.0, 6.0), (2.0, 3.0)), Prescribed(swings)),
        ImmersedBody("fish", circle((19.0, 6.0), 2.0), Deforming(slides)),
        ImmersedBody("ring", ellipse((13.0, 6.0), (3.0, 2.0)), Elastic(stiffness=0.01, bending=1e-3)),
    ]


def looks(flow: Tank) -> np.ndarray:
    """Everything that a step leaves behind."""
    boundary = flow.boundary
    assert boundary is not None
    values = [flow.populations().ravel(), flow.force_field.read().astype(np.float64).ravel()]
    for name in boundary.names:
        values += [boundary.force_on(name), boundary.torque_on(name), boundary.positions(name).ravel()]
    return np.concatenate(values)


def run(
    bodies: list[ImmersedBody], steps: int, shape: tuple[int, ...] = SHAPE, device: str = "cpu", **named: Any
) -> Tank:
    options = {k: named.pop(k) for k in ("dtype", "scheme", "force") if k in named}
    field = named.get("mode", "field") == "field"
    flow = tank(shape, 0.1, device=device, field=field, **options).immerse(immersed(bodies, **named))
    flow.step(steps)
    return flow


@pytest.fixture(scope="module")
def plain() -> np.ndarray:
    """Two steps of the reference device, at computed addresses: NumPy."""
    return looks(run([drum()], 2, device="reference", scattered=True, iterations=2, force=(0.0, 1e-4)))


@pytest.mark.parametrize(("device", "scattered"), FORMS)
def test_every_device_agrees_with_numpy(device: str, scattered: bool, plain: np.ndarray) -> None:
    """Rows of sparse matrices and computed addresses, interpolation and spreading."""
    made = looks(run([drum()], 2, device=device, scattered=scattered, iterations=2, force=(0.0, 1e-4)))
    assert np.abs(plain).max() > 1e-3
    assert np.abs(made - plain).max() < 1e-13


@pytest.fixture(scope="module")
def fielded() -> dict[int, np.ndarray]:
    """Three and four steps of pull streaming with a force field."""
    bodies = pair()
    flow = run(bodies, 3, force=(0.0, 1e-4), margin=0)
    found = {3: looks(flow)}
    flow.step()
    return found | {4: looks(flow)}


def pair() -> list[ImmersedBody]:
    return [drum(), ImmersedBody("disk", circle((8.0, 7.0), 2.0), Free.disk(2.0, 1.5, gravity=(1e-4, 0.0)))]


@pytest.mark.parametrize(("scheme", "mode"), rest_is_long(SCHEMES, keep=2))
def test_every_scheme_of_streaming_gives_the_same(scheme: str, mode: str, fielded: dict[int, np.ndarray]) -> None:
    """The step done again around the markers is the step with a force field; odd and even numbers of steps."""
    flow = run(pair(), 2, scheme=scheme, mode=mode, force=(0.0, 1e-4), margin=0)
    for steps in (3, 4):
        flow.step()
        assert np.abs(looks(flow) - fielded[steps]).max() < 1e-13
    before = flow.momentum()  # nothing but what is given to the bodies is lost
    flow.step()
    given = sum(flow.boundary.force_on(name) for name in ("drum", "disk"))  # type: ignore[union-attr]
    assert np.abs(flow.momentum() - before - np.array([0.0, 1e-4]) * 16 * 18 + given).max() < 1e-13


@pytest.mark.parametrize("device", LONG)
def test_moving_bodies(device: str) -> None:
    """All kinds of motion together: what bodies get is what the fluid loses; the support follows them."""
    flow = run(movers(), 1, shape=(24, 20), device=device, margin=1, contact=Contact(0.01, 1.0))
    boundary = flow.boundary
    assert boundary is not None
    first = set(boundary.cells.indices[: boundary.cells.size].tolist())
    start = {name: boundary.centre(name) for name in boundary.names}
    for _ in range(4):
        flow.step(20)
        before = flow.momentum()
        flow.step()
        given = sum(boundary.force_on(name) for name in boundary.names)
        assert np.abs(flow.momentum() - before + given).max() < 1e-13
        assert np.abs(boundary.force_on("disk")).max() > 1e-3
        for name in ("disk", "paddle", "fish"):
            assert np.abs(boundary.slip(name)).max() < 1e-3
    assert np.allclose(boundary.centre("fish") - start["fish"], [0.0, 0.02 * 84], atol=1e-12)
    assert np.allclose(boundary.centre("paddle"), [4.0 + np.sin(0.84), 6.0])
    assert (boundary.centre("disk") - start["disk"])[0] < -0.1, "it sinks"
    assert not first >= set(boundary.cells.indices[: boundary.cells.size].tolist()), "the support was found anew"
    assert np.abs(boundary.force_on("ring")).max() < 1e-12, "inner forces cancel"


def test_moving_bodies_by_numpy() -> None:
    """One step of the reference device beside the processor's; support found anew or not, the values are the same."""
    made = looks(run(movers(), 1, shape=(24, 20)))
    assert np.abs(looks(run(movers(), 1, shape=(24, 20), device="reference")) - made).max() < 1e-13
    wide, tight = (looks(run(movers(), 60, shape=(24, 20), margin=margin)) for margin in (6, 0))
    assert np.abs(wide - tight).max() < 1e-12


@pytest.mark.parametrize("scattered", [False, True])
def test_threads_give_the_same_bits(scattered: bool) -> None:
    made = []
    for threads in (1, 2, 2):
        boundary = immersed([drum()], mode="field", scattered=scattered)
        flow = tank(SHAPE, 0.1, (0.0, 1e-4), threads=threads).immerse(boundary)
        flow.step(5)
        made.append(looks(flow))
    assert all(np.array_equal(other, made[0]) for other in made[1:])


def space_bodies() -> list[ImmersedBody]:
    """A fixed sphere that turns, and a free one across a periodic end."""
    turning = Free.ball(2.0, 2.0, gravity=(0.0, 0.0, -1e-3), spin=(0.0, 1e-2, 0.0))
    return [
        ImmersedBody("fixed", sphere((4.0, 4.3, 5.0), 2.0).spinning((1e-3, 0.0, 2e-3))),
        ImmersedBody("free", sphere((9.0, 9.3, 1.0), 2.0), turning),
    ]


def test_space() -> None:
    """What spheres get is what the fluid loses, and they are braked."""
    flow = run(space_bodies(), 6, shape=(14, 13, 12))
    before = flow.momentum()
    flow.step()
    boundary = flow.boundary
    assert boundary is not None
    given = sum(boundary.force_on(name) for name in boundary.names)
    assert np.abs(flow.momentum() - before + given).max() < 1e-13
    assert boundary.torque_on("fixed")[0] < 0 > boundary.torque_on("fixed")[2]
    assert boundary.torque_on("free")[1] < 0 < boundary.force_on("free")[2], "it falls against its drag"
    x, u = boundary.positions("free") - boundary.centre("free"), boundary._group("free").velocities("free")
    # Spin times arm, right-handed in x, y, z, is arm times spin of components the slowest axis first.
    spin = np.linalg.lstsq(np.concatenate([_matrix(r) for r in x]), (u - u.mean(axis=0)).ravel(), rcond=None)[0]
    assert 0 < spin[1] < 1e-2, "markers turn about y, more slowly than at the start"


def _matrix(r: np.ndarray) -> np.ndarray:
    """The matrix of a vector product with ``r`` from the left, as NumPy has it."""
    return np.array([[0, -r[2], r[1]], [r[2], 0, -r[0]], [-r[1], r[0], 0]])


@pytest.mark.long
@pytest.mark.parametrize("device", LONG)
def test_single_precision_and_devices_in_space(device: str) -> None:
    """Four points an axis; float32 beside float64."""
    options: dict[str, Any] = {"shape": (14, 13, 12), "delta": "peskin", "iterations": 2}
    wide = looks(run(space_bodies(), 6, **options))
    for dtype, tolerance in (("float64", 1e-13), ("float32", 1e-5)):
        assert np.abs(looks(run(space_bodies(), 6, device=device, dtype=dtype, **options)) - wide).max() < tolerance


def test_slip_falls_with_iterations_and_target() -> None:
    """The velocity meets the wanted one: within some per mille at once, better with rounds, badly by momentum."""
    slip = {}
    for target, iterations in (("velocity", 1), ("velocity", 4), ("momentum", 1)):
        flow = run([drum()], 40, target=target, iterations=iterations, force=(0.0, 1e-5))
        slip[target, iterations] = np.abs(flow.boundary.slip("drum")).max() / 4e-3  # type: ignore[union-attr]
    assert slip["velocity", 1] < 5e-3
    assert slip["velocity", 4] < 0.8 * slip["velocity", 1]
    assert slip["momentum", 1] > 5 * slip["velocity", 1]


def test_a_restart_is_the_first_start() -> None:
    flow = run(movers(), 30, shape=(24, 20))
    boundary = flow.boundary
    assert boundary is not None
    boundary.restart()
    for buffer in flow.space.buffers:
        buffer.write(0.0)
    flow.steps = 0
    flow.step(3)
    assert np.abs(looks(flow) - looks(run(movers(), 3, shape=(24, 20)))).max() < 1e-14


@pytest.mark.parametrize(
    ("named", "flow", "says"),
    [
        ({"weights": "pineli"}, {}, r"write weights=Pinelli\(\)"),
        ({"delta": "rom"}, {}, r"write delta=Roma\(\)"),
        ({"pipeline": "host"}, {}, r"write pipeline=OnHost\(\)"),
        ({"iterations": -1}, {}, "neither can be negative"),
        ({"bodies": []}, {}, "names of their own"),
        ({"bodies": [drum(), drum()]}, {}, "names of their own"),
        ({}, {"field": False, "scheme": "in-place"}, r"in-place.*force=ForceField\(\)"),
        ({"bodies": [ImmersedBody("ball", sphere((3, 3, 3), 2))]}, {}, r"body 'ball'.*dimensions"),
    ],
)  # fmt: skip
def test_what_is_refused(named: dict[str, Any], flow: dict[str, Any], says: str) -> None:
    with pytest.raises(SolverError, match=says):
        tank(SHAPE, 0.1, **flow).immerse(ImmersedBoundary(**{"bodies": [drum()], **named}))


def test_names_and_shapes_that_do_not_fit() -> None:
    boundary = run([drum()], 1).boundary
    assert boundary is not None
    with pytest.raises(SolverError, match=r"body 'drun'.*drum"):
        boundary.force_on("drun")
    with pytest.raises(SolverError, match="not been attached"):
        ImmersedBoundary([drum()]).force_on("drum")
    odd = ImmersedBody("odd", circle((8.0, 8.0), 2.0), Deforming(lambda time: (np.zeros((3, 2)), np.zeros((3, 2)))))
    with pytest.raises(SolverError, match="body 'odd': at step 0 its shape gives"):
        run([odd], 1)
    loose = ImmersedBody("loose", circle((8.0, 8.0), 2.0), Elastic(edges=[[0, 99]]))
    with pytest.raises(SolverError, match="body 'loose': its springs lead"):
        run([loose], 1)


@pytest.mark.nvcc
@pytest.mark.parametrize(
    ("dimensions", "points", "real", "windowed"),
    rest_is_long([(3, 4, "double", True), (2, 3, "float", False), (2, 3, "float", True)], keep=1),
)
def test_nvcc_compiles(tmp_path: Path, dimensions: int, points: int, real: str, windowed: bool) -> None:
    compiler = shutil.which("nvcc")
    if compiler is None:
        pytest.skip("nvcc is not on the path")
    functions = scatter_functions(dimensions, points, real, items=True, windowed=windowed)
    source, binary = tmp_path / f"{real}.cu", tmp_path / f"{real}.cubin"
    source.write_text(primitive_unit(functions, "cuda", scatter_helpers(real)).text)
    command = [compiler, "-arch=sm_90", "-std=c++17", "-cubin", "-o", str(binary), str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr[-4000:]
