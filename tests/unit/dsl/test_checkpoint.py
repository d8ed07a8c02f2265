"""Taking checkpoints and going on from them: bit for bit, with the control flow of the first run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import fluxloom as fl
from fluxloom import RW, Inc, Max, Read, Write
from fluxloom.core.errors import CheckpointError
from fluxloom.dsl.checkpoint.checkpoint import Checkpoints
from fluxloom.mesh.generate.airfoil import AirfoilMesh, airfoil_mesh
from fluxloom.solvers.airfoil.flow import Airfoil


class Killed(Exception):
    """The run ends here."""


@fl.kernel
def smooth(u: Read, v: Write):
    v[0] = 0.5 * u[0] + 0.3


@fl.kernel
def back(v: Read, u: RW, total: Inc, top: Max):
    u[0] += 0.25 * (v[0] - u[0])
    total[0] += u[0]
    top[0] = max(top[0], u[0])


@fl.kernel
def age(t: RW):
    t[0] += 1.0


class Program:
    """A run whose control flow depends on globals: it ages only while the largest value is small."""

    def __init__(self, device: str = "cpu", n: int = 50, names: str = "uvt", dtype: str = "float64") -> None:
        self.ctx = ctx = fl.Context(device, threads=1, schedule=fl.Schedule(deterministic="global"))
        self.cells = ctx.set(n, "cells")
        start = np.cos(np.arange(n))
        self.u, self.v, self.t = (ctx.dat(self.cells, start, name, dtype=dtype) for name in names)
        self.total, self.top = ctx.scalar(0.0, "total"), ctx.scalar(-1e30, "top")
        self.smooth = fl.Loop(smooth, self.cells, self.u, self.v)
        self.back = fl.Loop(back, self.cells, self.v, self.u, self.total, self.top)
        self.age = fl.Loop(age, self.cells, self.t)
        self.seen: list[float] = []
        self.executed = 0

    def run(self, steps: int = 30, stop: int | None = None, hook: Callable[[int], None] | None = None) -> Program:
        for k in range(steps):
            if k == stop:
                raise Killed
            self.total.value = 0.0
            self.smooth()
            self.back()
            self.seen.append(float(self.total.value))
            if float(self.top.value) > 0.9:
                self.age()
                self.top.value = -1e30
            if hook:
                hook(k)
        return self

    def state(self) -> list[np.ndarray]:
        return [d.read() for d in (self.u, self.v, self.t)]


def same(a: Program, b: Program) -> bool:
    return a.seen == b.seen and all(np.array_equal(x, y) for x, y in zip(a.state(), b.state(), strict=True))


def killed(program: Program, saver: Checkpoints, stop: int, **options: object) -> Checkpoints:
    with pytest.raises(Killed), saver.watch(program.ctx):
        program.run(stop=stop, **options)  # type: ignore[arg-type]
    assert program.ctx.observer is None
    return saver


@pytest.mark.parametrize("device", ["reference", "cpu", pytest.param("opencl", marks=pytest.mark.opencl)])
@pytest.mark.parametrize("place", ["local", "period"])
def test_restart_gives_the_same_run(device: str, place: str, tmp_path: Path) -> None:
    """A run that is cut off and started again gives the bits and the control flow of one in one piece."""
    whole = Program(device).run()
    path = tmp_path / "run.h5"
    first = killed(Program(device), Checkpoints(path, every_calls=5, place=place), 23)
    assert first.saved >= 2
    assert first.failed == 0
    assert first.last is not None
    again, saver = Program(device), Checkpoints(path, every_calls=5, place=place)
    with saver.watch(again.ctx):
        assert saver.replaying
        again.run()
        assert not saver.replaying
    assert same(whole, again)
    assert not list(tmp_path.glob("*.part"))


def test_skipped_loops_do_not_run(tmp_path: Path) -> None:
    """While the run catches up no loop is even compiled; a second restart goes on from the later checkpoint."""
    path = tmp_path / "run.h5"
    first = killed(Program(), Checkpoints(path, every_calls=4), 20)
    assert first.last is not None
    entry = first.last.entry
    again = Program()
    second = Checkpoints(path, every_calls=4)
    calls = []

    def hook(k: int) -> None:
        if second.replaying:
            calls.append(k)
            assert again.smooth._native is None
            np.testing.assert_array_equal(np.asarray(again.u.version), 1)

    with pytest.raises(Killed), second.watch(again.ctx):
        again.run(stop=26, hook=hook)
    assert len(calls) >= 15
    assert second.last is not None
    assert second.last.entry.call > entry.call
    last = Program()
    with Checkpoints(path, every_calls=4).watch(last.ctx):
        last.run()
    assert same(Program().run(), last)


def test_smallest_place_is_chosen(tmp_path: Path) -> None:
    """`period` waits for the place where v is dropped; `marked` saves where it is told, at a higher price."""
    small = Checkpoints(tmp_path / "a.h5", every_calls=7, place="period")
    large = Checkpoints(tmp_path / "b.h5", place="marked")
    killed(Program(), small, 20)
    program = Program()

    def steps() -> None:
        for k in range(8):
            program.smooth()
            if k == 5:
                large.mark()
            program.back()

    with large.watch(program.ctx):
        steps()
    assert small.last is not None
    assert large.last is not None
    assert (small.last.entry.loop, large.last.entry.loop) == ("smooth", "back")
    assert "v" not in small.last.dats
    assert set(large.last.dats) == {"u", "v"}
    assert large.saved == 1


def test_marks_are_ignored_before_they_are_due(tmp_path: Path) -> None:
    """With `every`, a mark counts when the time has come."""
    now = [0.0]
    program = Program()
    saver = Checkpoints(tmp_path / "a.h5", place="marked", every=10.0, clock=lambda: now[0])

    def hook(k: int) -> None:
        now[0] += 1.0
        saver.mark()

    with saver.watch(program.ctx):
        program.run(30, hook=hook)
    assert saver.saved == 2


def test_timer(tmp_path: Path) -> None:
    """A checkpoint every so many seconds."""
    now = [0.0]
    program = Program()
    saver = Checkpoints(tmp_path / "a.h5", every=10.0, clock=lambda: now[0])

    def hook(k: int) -> None:
        now[0] += 1.0

    with saver.watch(program.ctx):
        program.run(35, hook=hook)
    assert saver.saved == 3


def test_values_that_the_host_changes(tmp_path: Path) -> None:
    """A dat that only the host changes is saved; one that it changes before it was saved is saved as it was."""
    @fl.kernel
    def push(f: Read, u: RW):
        u[0] += f[0]

    def start() -> tuple[Program, fl.Dat, fl.Loop]:
        program = Program()
        force = program.ctx.dat(program.cells, np.zeros(50), "force")
        return program, force, fl.Loop(push, program.cells, force, program.u)

    def go(program: Program, force: fl.Dat, loop: fl.Loop, stop: int | None = None) -> None:
        def hook(k: int) -> None:
            loop()
            program.t.data[:] *= 1.5  # of its own values: twice would be wrong
            force.write(np.full(50, 0.01 * k))

        program.run(stop=stop, hook=hook)

    whole = start()
    go(*whole)
    for calls in (5, 7, 8):
        path = tmp_path / f"{calls}.h5"
        saver = Checkpoints(path, every_calls=calls)
        with pytest.raises(Killed), saver.watch((first := start())[0].ctx):
            go(*first, stop=21)
        assert saver.saved >= 3
        assert saver.last is not None
        assert "force" in saver.last.dats
        again = start()
        with Checkpoints(path, every_calls=calls).watch(again[0].ctx):
            go(*again)
        assert same(whole[0], again[0])


def test_held_views_are_saved_at_once(tmp_path: Path) -> None:
    """What the host may change through an array without anybody noticing is saved at the entry."""
    program = Program()
    view = program.t.data
    saver = Checkpoints(tmp_path / "a.h5", every_calls=5)
    with saver.watch(program.ctx):
        program.run(6)
    assert saver.last is not None
    assert saver.last.dats[0] == "t"
    assert view.shape == (50,)


def test_looks_that_cannot_be_replayed(tmp_path: Path) -> None:
    """A look at a global that the first run did not take, or at a dat, is refused while the run catches up."""
    path = tmp_path / "run.h5"
    program = Program()
    saver = Checkpoints(path, every_calls=15)
    with saver.watch(program.ctx):
        for _ in range(9):
            program.smooth()
            program.back()
    assert saver.saved == 1
    second = Checkpoints(path, every_calls=15)

    def look(what: Callable[[Program], object]) -> None:
        again = Program()
        with second.watch(again.ctx):
            again.smooth()
            again.back()
            what(again)

    with pytest.raises(CheckpointError, match="reads total, top after call 2"):
        look(lambda program: program.total.value)
    with pytest.raises(CheckpointError, match="reads u after call 2"):
        look(lambda program: second.seen(program.u))
    with pytest.raises(CheckpointError, match="the program ended after 2 calls"):
        look(lambda program: second.seen(program.t))  # has its values, but the program is too short


def test_another_program_is_refused(tmp_path: Path) -> None:
    """Other loops, another order, an early end, other dats, other globals: each has its message."""
    path = tmp_path / "run.h5"
    killed(Program(), Checkpoints(path, every_calls=10), 12)

    def fails(text: str, program: Program, run: Callable[[Program], object] = lambda p: p.run()) -> None:
        with pytest.raises(CheckpointError, match=text) as caught, Checkpoints(path, every_calls=10).watch(program.ctx):
            run(program)
        assert str(path) in str(caught.value)

    fails("another sequence of loops: back is called, where the first run called smooth", Program(), lambda p: p.back())
    fails("another sequence of loops led to call", Program(), lambda p: [p.smooth() or p.back() for _ in range(20)])
    fails("the program ended after 3 calls", Program(), lambda p: p.run(1))
    other = Program()
    other.total = other.ctx.scalar(0.0, "total", dtype="float32")
    other.back = fl.Loop(back, other.cells, other.v, other.u, other.total, other.top)
    fails("the global 'total' is float64 of shape", other)
    fails("set 'cells' has 51 elements, there were 50", Program(n=51))
    fails("its name is w, it was u", Program(names="wvt"))
    fails("its dtype is float32, it was float64", Program(dtype="float32"))
    assert path.exists()


def test_another_case_is_refused(tmp_path: Path) -> None:
    """The message shows the line of the case that changed."""
    path = tmp_path / "run.h5"
    killed(Program(), Checkpoints(path, every_calls=10, digest="a = 1\ncfl = 0.9\n"), 12)
    other = Checkpoints(path, every_calls=10, digest="a = 1\ncfl = 0.8\n")
    with pytest.raises(CheckpointError, match=r"case file changed: line 2 was 'cfl = 0\.9', is 'cfl = 0\.8'"):
        other.watch(Program().ctx).__enter__()
    fresh = Program()
    saver = Checkpoints(path, every_calls=10, digest="b")
    with saver.watch(fresh.ctx, restart=False):
        fresh.run()
    assert saver.saved
    assert same(fresh, Program().run())


def test_choices() -> None:
    """Choices that make no sense are refused at once."""
    for options, text in (
        ({}, "how often"),
        ({"every": 1.0, "every_calls": 2}, "choose one"),
        ({"every_calls": 0}, "must be positive"),
        ({"every": 1.0, "keep": 0}, "must be positive"),
        ({"every": 1.0, "place": "locale"}, "did you mean 'local'"),
        ({"every": 1.0, "place": None}, "place=None: a checkpoint is placed local"),
        ({"every": float("nan")}, "every=nan, .* must be positive"),
        ({"every": "10"}, "every='10', .* must be positive"),
        ({"every_calls": 1.5}, "every_calls=1.5, .* whole numbers"),
        ({"every": 1.0, "keep": 1.5}, "keep=1.5: .* whole numbers"),
        ({"every": 1.0, "digest": Path("case.toml")}, "digest: a text that describes the case is wanted"),
        ({"every": 1.0, "path": None}, "path: the name of a file is wanted, not None"),
    ):
        with pytest.raises(CheckpointError, match=text):
            Checkpoints(**({"path": "c.h5"} | options))  # type: ignore[arg-type]
    chain = fl.Chain([Program().smooth])
    with pytest.raises(CheckpointError, match="the context of the loops is wanted, not Chain"):
        Checkpoints("c.h5", every=1.0).watch(chain).__enter__()  # type: ignore[arg-type]


def test_one_watcher_at_a_time(tmp_path: Path) -> None:
    program = Program()
    saver = Checkpoints(tmp_path / "a.h5", every=1.0)
    with saver.watch(program.ctx), pytest.raises(CheckpointError, match="watched already"), saver.watch(program.ctx):
        pass


def test_loops_made_anew_each_time(tmp_path: Path) -> None:
    """`par_loop` in a time step: each call makes a loop, which is the same call as before."""
    def run(stop: int | None = None, saver: Checkpoints | None = None) -> Program:
        program = Program("reference")

        def go() -> None:
            for k in range(12):
                if k == stop:
                    raise Killed
                fl.par_loop(smooth, program.cells, program.u, program.v)
                fl.par_loop(back, program.cells, program.v, program.u, program.total, program.top)

        if saver is None:
            go()
        else:
            with saver.watch(program.ctx):
                go()
        return program

    first = Checkpoints(tmp_path / "a.h5", every_calls=4)
    with pytest.raises(Killed):
        run(9, first)
    assert len(first._record.calls) == 2
    again = run(saver=Checkpoints(tmp_path / "a.h5", every_calls=4))
    assert same(run(), again)


# ------------------------------------------------------------------------------------------ Airfoil


@pytest.fixture(scope="module")
def mesh() -> AirfoilMesh:
    return airfoil_mesh(12, 8)


def airfoil(mesh: AirfoilMesh, device: str = "cpu", layout: object = None) -> Airfoil:
    ctx = fl.Context(device, threads=1, schedule=fl.Schedule(deterministic="global"))
    return Airfoil(ctx, mesh, layout=layout)


def fly(flow: Airfoil, steps: int) -> list[float]:
    found = []
    for k in range(steps):
        flow.iterate()
        if k % 5 == 4:
            found.append(flow.rms())
    return found


def test_chain_stays_fused_and_checkpoints_at_its_beginning(mesh: AirfoilMesh, tmp_path: Path) -> None:
    """Only the call in which a checkpoint is entered runs loop by loop; q is saved, and one row of zeros."""
    flow = airfoil(mesh)
    expected = fly(airfoil(mesh), 20)
    saver = Checkpoints(tmp_path / "a.h5", every_calls=8)
    with saver.watch(flow.context):
        assert fly(flow, 20) == expected
    assert flow.chain.fused
    assert saver.saved == 2
    assert saver.last is not None
    assert saver.last.dats == ("q", "res")
    assert saver.last.nbytes == flow.cells.size * 32 + 32
    alone = sum(r.calls for loop in flow.chain.loops for r in [loop.report()])
    assert flow.save_soln.report().calls == 2
    assert alone > 0
    again = airfoil(mesh)
    with Checkpoints(tmp_path / "a.h5", every_calls=8).watch(again.context):
        assert fly(again, 20) == expected
    np.testing.assert_array_equal(again.q.read(), flow.q.read())


@pytest.mark.parametrize("place", ["local", "period"])
def test_restart_inside_a_chain(mesh: AirfoilMesh, place: str, tmp_path: Path) -> None:
    """A chain whose best place is in its middle is entered there, and gone on with from there."""
    def build() -> tuple[Airfoil, fl.Chain]:
        flow = airfoil(mesh)
        stage = (flow.adt_calc, flow.res_calc, flow.bres_calc)
        return flow, fl.Chain([*stage, flow.update, flow.save_soln, *stage, flow.update])

    def run(parts: tuple[Airfoil, fl.Chain], steps: int) -> np.ndarray:
        parts[0].save_soln()
        for _ in range(steps):
            parts[1]()
        return parts[0].q.read()

    expected = run(build(), 15)
    saver = Checkpoints(tmp_path / "a.h5", every_calls=6, place=place)
    with saver.watch((first := build())[0].context):
        run(first, 14)
    assert saver.last is not None
    entry = (4, "save_soln") if place == "period" else (0, "adt_calc")
    assert (saver.last.entry.step, saver.last.entry.loop) == entry
    with Checkpoints(tmp_path / "a.h5", every_calls=100).watch((again := build())[0].context):
        np.testing.assert_array_equal(run(again, 15), expected)


@pytest.mark.parametrize(
    "devices",
    [("cpu", "reference"), ("reference", "cpu"), pytest.param(("cpu", "opencl"), marks=pytest.mark.opencl)],
)  # fmt: skip
def test_restart_on_another_device(devices: tuple[str, str], mesh: AirfoilMesh, tmp_path: Path) -> None:
    """The file holds values, not memory: another device and another layout go on from it."""
    small = airfoil_mesh(3, 2) if "reference" in devices else mesh
    expected = fly(airfoil(small), 10)
    with Checkpoints(tmp_path / "a.h5", every_calls=4).watch((first := airfoil(small, devices[0])).context):
        fly(first, 9)
    again = airfoil(small, devices[1], fl.SoA())
    with Checkpoints(tmp_path / "a.h5", every_calls=100).watch(again.context):
        np.testing.assert_allclose(fly(again, 10), expected, rtol=1e-12)


def test_ghosts_are_saved(tmp_path: Path) -> None:
    """The ghosts of a lattice, which only the host sets, come back too."""
    def build() -> tuple[fl.Context, fl.Dat, fl.Dat, fl.Loop, fl.Loop]:
        ctx = fl.Context("reference")
        grid = ctx.grid((5,), ghost=1)
        u, v = ctx.dat(grid, np.arange(5.0), "u"), ctx.dat(grid, name="v")
        three = ctx.stencil(grid, [[-1], [0], [1]])
        return ctx, u, v, fl.Loop(spread, grid, u[three], v), fl.Loop(smooth, grid, v, u)

    def run(ctx: fl.Context, u: fl.Dat, v: fl.Dat, one: fl.Loop, two: fl.Loop, steps: int) -> np.ndarray:
        for k in range(steps):
            if k == 1:
                u.storage()[[0, -1]] = 7.0
            one()
            two()
        return u.read()

    expected = run(*build(), 10)
    with Checkpoints(tmp_path / "a.h5", every_calls=5).watch((first := build())[0]):
        run(*first, 9)
    with Checkpoints(tmp_path / "a.h5", every_calls=5).watch((again := build())[0]):
        np.testing.assert_array_equal(run(*again, 10), expected)
    assert expected[0] > 1.0


@fl.kernel
def spread(u: Read, v: Write):
    v[0] = 0.25 * (u[0] + 2.0 * u[1] + u[2])
