"""Markers that move: interpolation and spreading at computed addresses, a work item a marker.

Weights are found anew in every step by a loop over the markers. Spreading adds to cells that markers share: with atomic
additions on devices of work items, where the last bits depend on their order; elsewhere every thread goes through all
markers and adds to rows of cells of its own, in the order of the markers, which gives the same bits for any number of
threads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from string import Template

from fluxloom.codegen.bodies import over
from fluxloom.codegen.primitive import Function, Parameter
from fluxloom.core.dtypes import SoA
from fluxloom.core.errors import SolverError
from fluxloom.dsl.context import Context
from fluxloom.dsl.declare.dats import Dat
from fluxloom.dsl.run.loop import Loop
from fluxloom.dsl.run.primitive import Operand, Primitive, Steps
from fluxloom.dsl.run.report import LoopReport
from fluxloom.lbm.immersed.markers.data import MarkerData, Step, Timed, host_report
from fluxloom.lbm.immersed.markers.deltas import Delta, weigh
from fluxloom.lbm.immersed.markers.plain import plain_interpolate, plain_spread

__all__ = ["Scatter", "scatter_functions", "scatter_helpers"]

_BLOCK = 64

_HELPERS = Template("""
typedef $real REAL;
AI int64_t fl_wrapped(int64_t i, int64_t n)
{
    i %= n;
    return i < 0 ? i + n : i;
}
/* among the cells of a rank, length from offset on; negative: none of them */
AI int64_t fl_within(int64_t i, int64_t n, int64_t offset, int64_t length)
{
    i = fl_wrapped(i, n) - offset;
    return i < length ? i : -1;
}
""")

_INTERPOLATE = Template("""
    REAL found[$components];
    for (int a = 0; a < $components; a++) found[a] = 0;
    for (int i = 0; i < $planes; i++) {
        const int64_t z = $z;$past_z
        for (int j = 0; j < $points; j++) {
            const int64_t y = $y;$past_y
            const int64_t row = (z * $ny + y) * $nx;
            for (int k = 0; k < $points; k++) {
                const int64_t x = $x;$past_x
                const int64_t cell = row + x;
                const REAL w = $wz weights[($y_first + j) * step + m] * weights[($x_first + k) * step + m];
                const REAL mean = (REAL)0.5 / (1 + above[cell]);
                for (int a = 0; a < $dimensions; a++)
                    found[a] += w * (u[a * cells + cell] + mean * force[a * cells + cell]);
                found[$dimensions] += w * above[cell];
            }
        }
    }
    for (int a = 0; a < $components; a++) sample[a * step + m] = found[a];
""")

_SPREAD = Template("""
    for (int i = 0; i < $planes; i++) {
        const int64_t z = $z;$past_z
        for (int j = 0; j < $points; j++) {
            const int64_t y = $y;$past_y
            const int64_t line = z * $ny + y;
            $mine
            for (int k = 0; k < $points; k++) {
                const int64_t x = $x;$past_x
                const int64_t cell = line * $nx + x;
                const REAL w = $wz weights[($y_first + j) * step + m] * weights[($x_first + k) * step + m];
                for (int a = 0; a < $dimensions; a++) {
                    const REAL more = w * pull[a * step + m];
                    $add
                }
            }
        }
    }
""")

_OWNERS = Template("#pragma omp parallel for num_threads(threads) schedule(static, 1)\n"
                   "    for (int64_t owner = 0; owner < threads; owner++)\n"
                   "    for (int64_t m = 0; m < count; m++) {\n$body\n    }")  # fmt: skip


def scatter_helpers(real: str) -> str:
    """Return the text before the functions."""
    return _HELPERS.substitute(real=real)


_NUMBERS: tuple[str, ...] = ("count", "step", "nz", "ny", "nx", "cells", "threads")
_WINDOW: tuple[str, ...] = ("oz", "oy", "ox", "lz", "ly", "lx")


def _places(dimensions: int, *, windowed: bool) -> dict[str, str]:
    """Return C expressions of the coordinates of a cell of a support, and what leaves out those of other ranks."""
    found: dict[str, str] = {}
    for axis, index, name in ((dimensions - 3, "i", "z"), (dimensions - 2, "j", "y"), (dimensions - 1, "k", "x")):
        at = f"first[{axis} * step + m] + {index}, n{name}"
        found[name] = f"fl_within({at}, o{name}, l{name})" if windowed else f"fl_wrapped({at})"
        found[f"past_{name}"] = f"\n            if ({name} < 0) continue;" if windowed else ""
        found[f"n{name}"] = f"l{name}" if windowed else f"n{name}"
    return found | ({"z": "0", "past_z": ""} if dimensions == 2 else {})


def scatter_functions(
    dimensions: int, points: int, real: str, *, items: bool, windowed: bool = False
) -> tuple[Function, Function]:
    """Return the functions ``interpolate`` and ``spread``.

    Parameters
    ----------
    dimensions, points
        Axes of the grid; cells of a support along each.
    real
        C type of values.
    items
        Whether functions are kernels of work items.
    windowed
        Whether the fields are those of some of the cells, a box in the grid.
    """
    space = dimensions == 3
    words = {
        "dimensions": dimensions, "components": dimensions + 1, "points": points, "planes": points if space else 1,
        **_places(dimensions, windowed=windowed),
        "wz": "weights[i * step + m] *" if space else "",
        "y_first": points * (dimensions - 2), "x_first": points * (dimensions - 1),
    }  # fmt: skip
    target = "force[a * cells + cell]"
    add = f"fl_atomic_add_{real}(&{target}, more);" if items else f"{target} += more;"
    mine = "" if items else "if (line % threads != owner) continue;"
    numbers = tuple(Parameter("int64_t", n) for n in (*_NUMBERS, *(_WINDOW if windowed else ())))
    places = (Parameter("int32_t *", "first"), Parameter(f"{real} *", "weights"))
    read = tuple(Parameter(f"{real} *", n) for n in ("u", "above", "force"))
    first = _INTERPOLATE.substitute(words)
    second = _SPREAD.substitute(words, add=add, mine=mine)
    return (
        Function("interpolate", (*numbers, *places, *read, Parameter(f"{real} *", "sample", written=True)),
                 over({"m": "count"}, first, items=items, shared="count > 1"), _BLOCK),
        Function("spread", (*numbers, *places, Parameter(f"{real} *", "pull"),
                            Parameter(f"{real} *", "force", written=True)),
                 over({"m": "count"}, second, items=True) if items else _OWNERS.substitute(body=second), _BLOCK),
    )  # fmt: skip


class Scatter:
    """Carries values between cells and markers at computed addresses.

    Parameters
    ----------
    markers
        Their positions may change.
    delta
        The delta function.

    Raises
    ------
    SolverError
        If the device cannot add atomically to numbers of the type of the fields.
    """

    def __init__(self, markers: MarkerData, delta: Delta) -> None:
        self._markers, self._delta = markers, delta
        fields, d, ctx = markers.fields, markers.dimensions, markers.fields.context
        device = ctx.device
        self._first = ctx.dat(markers.set, name="first", shape=(d,), dtype="int32", layout=SoA())
        self._weights = ctx.dat(markers.set, name="weights", shape=(d * delta.points,), dtype=fields.real, layout=SoA())
        self._weigh = Loop(weigh, markers.set, markers.x, self._first, self._weights, dimensions=d, delta=delta)
        if not device.native:
            gather = Timed(ctx, self._gather_plain, "interpolate")
            self._steps = gather, Timed(ctx, self._spread_plain, "spread")
            return
        if device.items and not device.atomic_add(fields.u.scalar):
            raise SolverError(
                f"immersed bodies that move: {device.describe()} has no atomic addition of {fields.real}; "
                "store populations in float32"
            )
        windowed = fields.window is not None
        functions = scatter_functions(d, delta.points, fields.u.scalar.c, items=device.items, windowed=windowed)
        primitive = Primitive(device, functions, "immersed", scatter_helpers(fields.u.scalar.c))
        places = {"first": self._first, "weights": self._weights}
        read = {**places, "u": fields.u, "above": fields.above, "force": fields.force}
        gather = _DatCall(primitive, "interpolate", self._numbers(), read, {"sample": markers.sample})
        spread = _DatCall(
            primitive, "spread", self._numbers(), {**places, "pull": markers.pull}, {"force": fields.force}
        )
        self._steps = _Carried(ctx, gather, "interpolate"), _Carried(ctx, spread, "spread")

    def _numbers(self) -> dict[str, int]:
        fields, markers = self._markers.fields, self._markers
        nz, ny, nx = ((1, *fields.box.grid_shape))[-3:]
        found: dict[str, int] = dict(zip(_NUMBERS, (
            markers.count, markers.pull.stride, nz, ny, nx, fields.force.stride, fields.context.threads
        ), strict=True))  # fmt: skip
        if (window := fields.window) is None:
            return found
        values = (*((0, *window.offset)[-3:]), *((1, *window.shape)[-3:]))
        return found | dict(zip(_WINDOW, values, strict=True))

    def prepare(self) -> Sequence[Step]:
        """Return the loop that finds weights."""
        return (self._weigh,)

    def interpolate(self) -> Sequence[Step]:
        """Return the step that sets the samples of the markers."""
        return (self._steps[0],)

    def spread(self) -> Sequence[Step]:
        """Return the step that adds the pulls of the markers to the force of the cells."""
        return (self._steps[1],)

    def _gather_plain(self) -> None:
        plain_interpolate(self._markers, self._first.read(), self._weights.read())

    def _spread_plain(self) -> None:
        plain_spread(self._markers, self._first.read(), self._weights.read())


class _Carried(Timed):
    """A step whose time is that of the device."""

    def __init__(self, context: Context, call: _DatCall, name: str) -> None:
        super().__init__(context, call, name)
        self._call = call

    def report(self) -> LoopReport:
        """Return the counters."""
        return host_report(self.name, self.calls, self._call.seconds, self._call.useful_bytes, "addresses")


class _DatCall:
    """A call of a primitive on dats: it follows them when their buffers are exchanged."""

    forgets = ("_reads", "_writes")  # they are of the markers and the flow, which have them on any number of ranks

    def __init__(
        self, primitive: Primitive, symbol: str, numbers: Mapping[str, int], reads: Mapping[str, Dat],
        writes: Mapping[str, Dat],
    ) -> None:  # fmt: skip
        self._primitive, self._symbol, self._numbers = primitive, symbol, numbers
        self._reads, self._writes = reads, writes
        self._held: list[object] = []
        self._steps: Steps | None = None
        self._before = 0.0  # seconds of steps that were made for other buffers

    @property
    def seconds(self) -> float:
        """Seconds of the device so far, where it keeps them."""
        return self._before + (0.0 if self._steps is None else sum(self._steps.seconds.values()))

    @property
    def useful_bytes(self) -> int:
        """Bytes that a call has to move at least: values of markers, and of as many cells as these may meet."""
        dats = {**self._reads, **self._writes}.values()
        markers = self._numbers["count"]
        own = sum(d.dim * d.scalar.size for d in dats if d.set.size == markers)
        weights = self._reads["weights"]
        points = (weights.dim // self._reads["first"].dim) ** self._reads["first"].dim
        met = [(min(d.set.size, markers * points), d.dim * d.scalar.size) for d in dats if d.set.size != markers]
        twice = sum(d.set.size != markers for d in self._writes.values())
        return markers * own + sum(cells * width for cells, width in met) * (1 + twice)

    def __call__(self) -> None:
        """Run it once."""
        dats = {**self._reads, **self._writes}
        held = [dat.buffer for dat in dats.values()]
        if self._steps is None or any(a is not b for a, b in zip(held, self._held, strict=True)):
            self._before = self.seconds
            values: dict[str, Operand] = {**self._numbers, **{n: d.buffer for n, d in dats.items()}}
            call = self._primitive.call(self._symbol, values, self._numbers["count"], f"immersed {self._symbol}")
            # What is written is changed in part, so that its values have to be there as well.
            self._steps = Steps(self._primitive.device, [call], held, [d.buffer for d in self._writes.values()])
            self._held = list(held)
        next(iter(dats.values())).context.settle()
        self._steps()
        for dat in self._writes.values():
            dat.version += 1
