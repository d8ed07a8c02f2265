"""Values that are given in space and time, computed by loops: the same on every device, and what the host finds."""

from __future__ import annotations

import numpy as np
import pytest

from fluxloom.core.errors import SolverError
from fluxloom.dsl.context import Context
from fluxloom.values.expressions import FUNCTIONS, Expression
from fluxloom.values.fluctuation import Fluctuation
from fluxloom.values.given_on import GivenOn
from fluxloom.values.tables import Profile, TimeSeries
from fluxloom.values.value import Direction, Value, value_of

from .harness import DEVICES, context

N = 60
PLACES = np.random.default_rng(1).random((N, 3))

FORMULAS = [
    "2 * y * sin(3 * t)", "x**2 - 3 * x**0.5 + (t + z) % 0.7", "-x % 0.3 + t", "where(x < t, 1, sech(y))",
    "1 if 0.2 < x <= 0.7 and not (y > 0.5 or t < 0) else hypot(x, y)", "(x < 0.5) + (y < t)",
    "((x < 0.5) & (y < t)) * 3",
    "where(min(sqrt(-1 - t), x) < 9, 1, 2)", "where(max(x, sqrt(-1 - t)) < 9, 1, 2)",
    "~(x < t)", "min(x, y) * max(t, x) + atan2(y, x) + sign(x - 0.5) + abs(-x) + floor(4 * y * t)", "e**x * pi * t",
    "where(x - t, 1, 2)", "exp(-((x - 0.5)**2 + (y - t)**2) / 0.1)**-1.5", "-(x < t)", "max(x < t, 0.5)",
    *(f"{name}(0.3 + 0.5 * x * t)" for name in FUNCTIONS if name not in ("hypot", "atan2", "min", "max", "where")),
]  # fmt: skip


def values() -> list[Value]:
    """Return values of every kind."""
    shear = Profile(points=[0.0, 1.0], numbers=[1.0, 3.0])
    pulse = TimeSeries(times=(0.0, 1.0, 2.0), numbers=(0.0, 1.0, 0.0), periodic=True)
    wave = value_of("x + t")
    return [
        value_of(2.0), shear, pulse, pulse * shear, wave, value_of(lambda places, t: t * places[:, 0]),
        Direction((wave, pulse + 1.0, shear), 1), Fluctuation(0.3, 0.5, (1.0, 0.0, 0.0), modes=8).parts(3)[2],
    ]  # fmt: skip


@pytest.fixture(params=["reference", *DEVICES])
def ctx(request: pytest.FixtureRequest) -> Context:
    return context(request.param, threads=2)


def test_formulas_are_the_same_in_loops_and_in_arrays(ctx: Context) -> None:
    over = ctx.set(N, "points")
    given = GivenOn(ctx, over, PLACES, [value_of(f"0 * (x + t) + ({text})") for text in FORMULAS], "it")
    given.update(0.3)
    found = given.dat.read()
    for k, text in enumerate(FORMULAS):
        wanted = Expression(text, ("x", "y", "z", "t"))(*PLACES.T, np.float64(0.3))
        assert found[:, k] == pytest.approx(wanted, rel=1e-10, abs=1e-12), text


def test_values_of_every_kind(ctx: Context) -> None:
    over = ctx.set(N, "points")
    some = ctx.subset(over, np.arange(5, 40), "some")
    given = GivenOn(ctx, some, PLACES, values(), "it", moments=2)
    assert given.depends_on_time

    def wanted(time: float) -> np.ndarray:
        found = np.zeros((N, len(values())))
        found[5:40] = np.stack([value.at(PLACES[5:40], time) for value in values()], axis=1)
        return found

    assert given.dat.read() == pytest.approx(wanted(0.0), abs=1e-12)
    given.update(1.7)
    assert given.dat.read() == pytest.approx(wanted(1.7), abs=1e-12)
    given.prepare([0.2, 5.3])
    for moment, time in ((1, 5.3), (0, 0.2)):
        for loop in given.loops(moment):
            loop()
        assert given.dat.read() == pytest.approx(wanted(time), abs=1e-12)


def test_into_components_of_another_dat_with_weights(ctx: Context) -> None:
    over = ctx.set(N, "points")
    out = ctx.dat(over, np.full((N, 4), 7.0), "out")
    weights = np.stack([PLACES[:, 0], np.ones(N)], axis=1)
    given = GivenOn(ctx, over, PLACES, [value_of("t + y"), value_of("3 * x")], "it", out=out, components=(3, 1),
                    weights=weights)  # fmt: skip
    given.update(2.0)
    found = out.read()
    assert found[:, 3] == pytest.approx((2.0 + PLACES[:, 1]) * PLACES[:, 0], rel=1e-14)
    assert found[:, 1] == pytest.approx(3.0 * PLACES[:, 0], rel=1e-14)
    assert (found[:, [0, 2]] == 7.0).all()


def test_what_does_not_change_has_no_loop(ctx: Context) -> None:
    given = GivenOn(ctx, ctx.set(N, "points"), PLACES, [value_of("x"), value_of(1.0)], "it")
    assert not given.depends_on_time
    assert given.loops() == []
    given.update(3.0)
    given.check()


def test_a_rank_may_have_none(ctx: Context) -> None:
    for over in (ctx.set(0, "none"), ctx.subset(ctx.set(3, "points"), [], "none")):
        n = over.parent.size
        given = GivenOn(ctx, over, np.zeros((n, 3)), values(), "it", weights=np.ones((n, 8)))
        given.update(1.0)
        given.check()
        assert not given.dat.read().any()


def test_wrong_values_are_told(ctx: Context) -> None:
    over = ctx.set(N, "points")
    with pytest.raises(SolverError, match=r"it: '1 - 9 \* x' is -.* at \(.*\): above 0 is wanted"):
        GivenOn(ctx, over, PLACES, [value_of("1 - 9 * x")], "it", least=[0.0])
    given = GivenOn(ctx, over, PLACES, [value_of("1 - t * x")], "it", least=[0.0])
    given.update(0.5)
    given.check()
    given.update(9.0)
    with pytest.raises(SolverError, match=r"it: '1 - t \* x' is -.* at \(.*\), at t = 9: above 0 is wanted"):
        given.check()
    given = GivenOn(ctx, over, PLACES, [value_of("log(3 - t + 0 * x)")], "it")
    given.update(4.0)
    with pytest.raises(SolverError, match=r"it: 'log.*' is nan at"):
        given.check()


def test_a_wall_moves_along_itself(ctx: Context) -> None:
    """A cylinder whose facets are not quite those of its surface: nothing is along the normals."""
    over = ctx.set(N, "points")
    angle = 2.0 * np.pi * PLACES[:, 2]
    places = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    normals = np.stack([np.cos(angle + 0.05), np.sin(angle + 0.05)], axis=1)
    given = GivenOn(ctx, over, places, [value_of("-sin(t) * y"), value_of("sin(t) * x")], "it", normals=normals)
    given.update(0.7)
    found = given.dat.read()
    given.check()
    assert np.abs(np.einsum("ij,ij->i", found, normals)).max() < 1e-14
    assert np.linalg.norm(found, axis=1) == pytest.approx(np.full(N, np.sin(0.7) * np.cos(0.05)))
    given = GivenOn(ctx, over, places, [value_of("t * x"), value_of(0.0)], "it", normals=normals)
    given.update(0.7)
    with pytest.raises(SolverError, match="a wall that moves along itself has a part along its normal"):
        given.check()


def test_equal_formulas_share_a_kernel(ctx: Context) -> None:
    over = ctx.set(N, "points")
    one, same, other = (
        GivenOn(ctx, over, PLACES, [value_of(text)], name)
        for text, name in (("x * t", "one"), ("x*t", "two"), ("x + t", "three"))
    )
    digests = [given.loops()[0].bound.lowered.digest for given in (one, same, other)]
    assert digests[0] == digests[1] != digests[2]
