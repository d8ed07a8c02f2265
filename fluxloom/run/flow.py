"""What a run needs of a solver: `Flow`, that advances, has fields, and says how far it is and what to do.

And what a flow of a script was made of, in words: so that a run that goes on is known to be of the same flow.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, fields, is_dataclass
from functools import partial, wraps
from inspect import signature
from math import inf, isfinite
from pathlib import Path
from types import CodeType, FunctionType, MappingProxyType, MethodType
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError
from fluxloom.core.status import Goal
from fluxloom.dsl.context import Context
from fluxloom.dsl.declare.parts import Part
from fluxloom.dsl.declare.runtime import unique
from fluxloom.dsl.run.chain import Chain
from fluxloom.dsl.run.loop import Loop
from fluxloom.dsl.run.report import LoopReport
from fluxloom.mesh.data.mesh import MeshData
from fluxloom.run.measures import Averaged, Frames, PointValues, Surface

if TYPE_CHECKING:
    from fluxloom.dsl.ranks.decompose_report import PartitionReport
    from fluxloom.run.results.results import ResultFolder
    from fluxloom.run.stall import Stall
    from fluxloom.run.start import Start
    from fluxloom.run.watch import GuardLimits, Watch
    from fluxloom.solvers.probe_records import Outside

__all__ = ["Flow", "HistoryPanel", "Picture", "Section", "Steady", "Steps", "Time", "Until", "described"]

_SHORT = 12


def described(value: Any) -> Any:
    """Return a value as JSON has it, such that other numerics are another text: of arrays and functions a digest.

    Where it runs (a context) is left out. Objects with a method ``description`` are what it
    returns, those of other kinds are known by their class alone.
    """
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Context):
        return None
    if isinstance(value, np.ndarray | np.generic):
        array = np.ascontiguousarray(value)
        return array.item() if not array.ndim else f"{array.dtype} {array.shape} {_digest(array.tobytes())}"
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, MeshData):
        parts = described([value.points, value.cells, value.patches, value.polyhedra])
        return f"mesh of {value.n_cells:,} cells {_digest(str(parts).encode())}"
    if isinstance(value, Mapping):
        return {str(key): described(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [described(item) for item in value]
    if callable(own := getattr(type(value), "description", None)):
        return described(own(value))
    if is_dataclass(value) and not isinstance(value, type):
        given = {item.name: described(getattr(value, item.name)) for item in fields(value)}
        return {"type": type(value).__qualname__, **given}
    return _called(value)


def _called(value: Any) -> str:
    """Return a function, or another object, in a line."""
    if isinstance(value, MethodType):
        return f"{described(value.__self__)}.{_called(value.__func__)}"
    if isinstance(value, partial):
        return f"{_called(value.func)} {described([*value.args, value.keywords])}"
    value = getattr(value, "function", value)  # of a kernel, or a function of kernels
    if not isinstance(value, FunctionType):
        return type(value).__qualname__
    cells = [_content(cell) for cell in value.__closure__ or ()]
    with_it = described([*(value.__defaults__ or ()), *cells])
    return f"{value.__name__} {_digest(_code(value.__code__), str(with_it).encode())}"


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not bound yet
        return None


def _code(code: CodeType) -> bytes:
    """Return what a function does, without where it stands."""
    inner = [_code(item) if isinstance(item, CodeType) else repr(item).encode() for item in code.co_consts]
    return b"\0".join([code.co_code, *inner, *(name.encode() for name in code.co_names)])


def _digest(*parts: bytes) -> str:
    found = hashlib.blake2b()
    for part in parts:
        found.update(part)
    return found.hexdigest()[:_SHORT]


Array = npt.NDArray[np.float64]
Rows = Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Until:
    """How far a run goes: to what comes first. ``Time(2.0) | Steps(1000)`` is both.

    Attributes
    ----------
    time
        Of the flow, at which the run ends; 0: there is no such time.
    steady
        The residual at which a steady flow has been reached, over what the solver compares it with; 0: it does not
        look.
    steps
        Of the flow, at most; 0: so many that a run without another end would never end.
    stop
        Time at which a monitor looks: a step whose length is free does not pass it, one of a given length may. A flow
        whose step is an interval of time advances within it to there.
    """

    time: float = 0.0
    steady: float = 0.0
    steps: int = 0
    stop: float = inf

    @property
    def next(self) -> float:
        """The end or the stop, whichever comes first; infinite: there is neither."""
        return min(self.time or inf, self.stop)

    def stopped(self, stop: float) -> Until:
        """Return the same with a time at which a monitor looks."""
        return self if stop == inf else Until(self.time, self.steady, self.steps, stop)

    def __or__(self, other: Until) -> Until:
        return Until(self.time or other.time, self.steady or other.steady, self.steps or other.steps)


class Time(Until):
    """Until a time of the flow, which the last step hits where steps are free."""

    def __init__(self, end: float) -> None:
        if not (isfinite(end) and end > 0.0):
            raise SolverError(f"Time: a time above 0 is wanted, not {end!r}")
        super().__init__(time=float(end))


class Steps(Until):
    """Until so many steps of the flow are made, counted from its beginning."""

    def __init__(self, count: int) -> None:
        if not (isinstance(count, int) and count >= 1):
            raise SolverError(f"Steps: a whole number of at least 1 is wanted, not {count!r}")
        super().__init__(steps=count)


class Steady(Until):
    """Until a flow is steady: its residual has fallen by some orders of magnitude.

    Parameters
    ----------
    orders
        The residual has fallen by ``10^-orders`` of what the solver compares it with.
    steps
        At most; then the run has not converged.
    """

    def __init__(self, orders: float = 6.0, steps: int = 100_000) -> None:
        if not (isfinite(orders) and orders > 0.0):
            raise SolverError(f"Steady: orders above 0 are wanted, not {orders!r}")
        super().__init__(steady=10.0**-orders, steps=steps)


@dataclass(frozen=True)
class Picture:
    """A picture of a field in the plane.

    Attributes
    ----------
    field
        Name of a scalar field.
    title, label
        Of the picture, and of its colour bar.
    window
        ``(x0, x1, y0, y1)``, or None for the whole mesh.
    colours
        A colour map of matplotlib.
    centre
        The value at the middle of the colour map, for maps that diverge.
    """

    field: str
    title: str
    label: str
    window: tuple[float, float, float, float] | None = None
    colours: str = "viridis"
    centre: float | None = None


@dataclass(frozen=True)
class Section:
    """A picture of a field of a volume, in its middle plane across some axes.

    Attributes
    ----------
    field
        Name of a scalar field.
    title, label
        Of the picture, and of its colour bar.
    across
        Numbers of the axes, 0 to 2; a picture each.
    """

    field: str
    title: str
    label: str
    across: Sequence[int] = (1, 2)


@dataclass(frozen=True)
class HistoryPanel:
    """Lines that belong into one panel of a picture.

    Attributes
    ----------
    label
        Of its axis.
    columns
        Of the table; a line each. One is not named.
    logarithmic
        Whether the axis is.
    """

    label: str
    columns: Sequence[str]
    logarithmic: bool = False


def _describing(make: Callable[..., None]) -> Callable[..., None]:
    """Return a constructor that keeps what it was called with, unless that of another class calls it."""
    names = signature(make)

    @wraps(make)
    def made(self: Flow, *arguments: Any, **named: Any) -> None:
        """Keep the arguments, and make the flow."""
        if "made_of" not in vars(self):
            bound = names.bind(self, *arguments, **named)
            bound.apply_defaults()
            given = {name: described(value) for name, value in list(bound.arguments.items())[1:]}
            self.made_of = {name: value for name, value in given.items() if value is not None}
        make(self, *arguments, **named)

    return made


class Flow:
    """A solver with its state, as a run sees it.

    A solver says what it is by overriding what follows; what it does not say stays as here. On several ranks every
    method is collective.

    Attributes
    ----------
    context
        Of its loops.
    chain
        The loops of a step as one captured sequence, where there is one.
    points
        Number of points, of all ranks, of a flow whose fields have values there; 0: they have them in cells.
    exerts
        Whether it exerts forces on its surfaces.
    updates
        Cells that a step updates, of all ranks, of a flow whose rate is told in million cells a second; else 0.
    partition
        How its mesh is divided; None on a rank alone.
    losses
        Columns of the history that are how fast another one falls in time: ``{"decay": "kinetic_energy"}``. `columns`
        has NaN in their places.
    made_of
        The arguments of its constructor, as `fluxloom.run.flow.described` has them: a run that goes on in a
        directory is one of the same flow.
    """

    context: Context
    chain: Chain | None = None
    points: int = 0
    exerts: bool = True
    updates: int = 0
    partition: PartitionReport | None = None
    losses: Mapping[str, str] = MappingProxyType({})
    made_of: Mapping[str, Any] = MappingProxyType({})

    def __init_subclass__(cls, **rest: Any) -> None:
        """Let flows of a class keep what they are made of."""
        super().__init_subclass__(**rest)
        if "__init__" in vars(cls):
            cls.__init__ = _describing(cls.__init__)

    # ------------------------------------------------------------------------------------ where and when
    @property
    def cells(self) -> int:
        """Number of cells, of all ranks."""
        raise NotImplementedError

    @property
    def part(self) -> Part | None:
        """The part of the cells, or of the points, that this rank has; None on a rank alone."""
        return None

    def mesh(self) -> MeshData:
        """Return the whole mesh, its cells in global order; on rank 0 alone. It may be made anew."""
        raise NotImplementedError

    @property
    def dimension(self) -> int:
        """2 or 3."""
        return 2

    @property
    def bounds(self) -> tuple[Array, Array] | None:
        """Lower and upper corner of the whole mesh, ``(d,)`` each; None: the mesh has to be asked."""
        return None

    @property
    def steps(self) -> int:
        """Steps since the flow began."""
        raise NotImplementedError

    @property
    def time(self) -> float | None:
        """Of the flow; None where it has none."""
        return None

    @property
    def now(self) -> float:
        """The time, or the steps of a flow that has none."""
        return float(self.steps) if self.time is None else self.time

    def start_from(self, start: Start) -> None:
        """Start from another result instead of the state that there is; before the first step.

        Raises
        ------
        SolverError
            If the result has not what the flow needs, does not cover its mesh, or the flow cannot.
        """
        raise SolverError(f"{type(self).__name__}: this flow cannot start from another result")

    # ----------------------------------------------------------------------------------------- advance
    def check_end(self, until: Until) -> None:
        """Raise `SolverError` if the flow can never come to such an end."""

    def advance(self, until: Until) -> float:
        """Advance by a step, not beyond the time of ``until``; return the residual, the same on every rank.

        `Until.stop` is where steps whose length is free, and intervals, end too.

        Raises
        ------
        SolverError
            If the step cannot be made, or the state behind it is lost.
        """
        raise NotImplementedError

    def trial_step(self, until: Until) -> object:
        """Make a step of a flow that is there to measure the speed of its ranks, and thrown away then."""
        return self.advance(until)

    def goals(self, until: Until) -> Sequence[Goal]:
        """Return what the run aims at beside its number of steps, and how far it is: it ends when one is met."""
        return ()

    def check_next(self) -> None:
        """Let what the next step solves by iterations be solved to the residual of the solution itself."""

    def unsolved(self) -> str:
        """Return what the residual of the last solution itself lacks, in words; empty: nothing."""
        return ""

    def failed(self) -> None:
        """Let the fields show what a step has left that failed: all ranks have met."""

    # ------------------------------------------------------------------------------------------ results
    def fields(self) -> Mapping[str, npt.NDArray[Any]]:
        """Return values of the elements that this rank owns, ``(n,)`` or ``(n, components)``, in local order.

        As `fluxloom.run.fields.Fields` they are found when they are asked for, which is collective.
        """
        raise NotImplementedError

    def columns(self) -> dict[str, float]:
        """Return columns of ``history.csv``, always the same ones, the first says when. Collective; once a line."""
        return {}

    def take(self) -> bool:
        """Let the device keep the numbers of this step, those of `columns` and of surfaces; return whether it does.

        They are asked for within `looking_back`, some steps later: the host does not wait for the steps in between.
        Else they have to be asked for now. Collective.
        """
        return False

    def looking_back(self) -> AbstractContextManager[None]:
        """Within, steps, time and numbers are those of the step at which `take` was called. Collective."""
        return nullcontext()

    def summary(self, until: Until) -> Rows:
        """Return the results worth printing, as (name, text) pairs."""
        return ()

    def choices(self) -> Rows:
        """Return what was chosen that the case leaves open, as (name, text) pairs."""
        return ()

    def bound(self, copy_gbs: float) -> Rows:
        """Return rows of the summary for a copy bandwidth, that of all ranks together, in GB/s."""
        return ()

    # ------------------------------------------------------------------------------- what can be measured
    @property
    def patches(self) -> Sequence[str]:
        """Names of the patches, sides and bodies whose surface can be measured."""
        return ()

    def at_points(
        self, points: Mapping[str, Sequence[float]], capacity: int, outside: Outside = "error"
    ) -> PointValues:
        """Return what samples values at points, name to coordinates; the device keeps so many samples. Collective.

        Points outside of the mesh are an error, or left out: what is returned has the names of the others.

        Raises
        ------
        SolverError
            If a point lies outside of the mesh, or all that may be left out, or the flow has no values at points.
        """
        raise SolverError(f"{type(self).__name__}: values at points cannot be sampled in this flow")

    def surface(self, patches: Sequence[str], about: Sequence[float] = ()) -> Surface:
        """Return patches or bodies as a surface, with moments about a point, by default the origin. Collective.

        Raises
        ------
        SolverError
            If there is no such patch, or the flow has no surfaces.
        """
        raise SolverError("this flow has no surfaces to measure")

    def check_forces(self, patches: Sequence[str]) -> None:
        """Raise `SolverError` where there is a surface of a patch, but no force on it."""
        if not self.exerts:
            raise SolverError(f"{type(self).__name__}: a scalar alone exerts no forces")

    def through(self, patches: Sequence[str]) -> Surface:
        """Return patches of which it is measured what passes them; by default those of `surface`. Collective."""
        return self.surface(patches)

    def balance(self, patches: Sequence[str], about: Sequence[float] = ()) -> Surface:
        """Return a surface whose forces are the terms of the discrete equations, where `surface` has others.

        Raises
        ------
        SolverError
            If there is no such patch, or the flow knows one way only.
        """
        raise SolverError('this flow finds forces in one way only: leave form = "balance" out')

    def frames(self, field: str) -> Frames | None:
        """Return pictures of a field; None: they are made of values at points. Collective.

        Raises
        ------
        SolverError
            If there is no such field.
        """
        return None

    def averaged(self) -> Averaged:
        """Return what can be averaged in time. Collective.

        Raises
        ------
        SolverError
            If the flow has nothing.
        """
        raise SolverError(f"{type(self).__name__}: this flow has nothing that is averaged in time")

    # ------------------------------------------------------------------------------------ when it is lost
    def watch(self, table: GuardLimits, until: Until) -> Watch | None:
        """Return what guards look at; None: the residual alone. Called once, before the first step."""
        return None

    def advice(self) -> str:
        """Return what to change when the solution is lost."""
        return ""

    def why_stalled(self, found: Stall) -> str:
        """Return why the residual gets no lower, and what to change; empty: it is not known."""
        return ""

    # ----------------------------------------------------------------------------------------- pictures
    def pictures(self, name: str) -> Sequence[Picture]:
        """Return the pictures of a plane flow that are worth drawing, for a case of a name."""
        return ()

    def panels(self, columns: Sequence[str]) -> tuple[str, Sequence[HistoryPanel]]:
        """Return what is drawn of a history with some columns, and over which of them."""
        return "time", ()

    def sections(self, name: str) -> Sequence[Section]:
        """Return the sections of a flow in three dimensions that are worth drawing, for a case of a name."""
        return ()

    def finish(self, folder: ResultFolder, name: str, *, pictures: bool) -> None:
        """Write what else belongs to a whole run, of a case of a name, and draw it where pictures are wanted."""

    # -------------------------------------------------------------------------------------------- loops
    @property
    def chains(self) -> Sequence[Chain]:
        """Every chain of a step."""
        return () if self.chain is None else (self.chain,)

    @property
    def loops(self) -> Sequence[Loop]:
        """Every loop of a step once."""
        return unique(loop for chain in self.chains for loop in chain.loops)

    def reports(self) -> Sequence[LoopReport]:
        """Return the counters of each loop or fused group of this rank."""
        return [report for chain in self.chains for report in chain.reports()]
