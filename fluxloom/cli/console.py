"""What the verbs share: consoles, tables, progress, options, and building what a case describes."""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from fluxloom.core.activity import Work, listening
from fluxloom.core.errors import CaseError, FluxloomError
from fluxloom.machine.ranks import VARIABLE
from fluxloom.machine.system import command_text

if TYPE_CHECKING:
    from rich.progress import Progress

__all__ = [
    "Advance", "CaseArgument", "CheckLoopsOption", "DeviceOption", "Invocation", "JsonOption", "Listening",
    "OutputOption", "RanksOption", "ScheduleOption", "SetOption", "ThreadsOption", "add", "directory", "facts",
    "invocation", "invoked", "messages", "output", "say", "show_error", "table",
]  # fmt: skip


def add(app: typer.Typer, name: str, function: Callable[..., object]) -> None:
    """Add a verb, whose first paragraph stands whole in the list of verbs."""
    first = " ".join((function.__doc__ or "").strip().split("\n\n")[0].split())
    app.command(name, short_help=first)(function)


WIDEST = 10_000
"""Characters of a line that no table reaches."""

_CHECK = "FLUXLOOM_CHECK"

CaseArgument = Annotated[
    Path,
    typer.Argument(metavar="CASE", help="Case file (TOML), or a solver's name for its default case.",
                   show_default=False),
]  # fmt: skip
DeviceOption = Annotated[
    str | None,
    typer.Option(
        "--device", metavar="NAME", show_default=False,
        help="Device: cpu, reference, cuda, cuda:1, opencl, opencl:1 ...; the verb devices lists them.",
    ),
]  # fmt: skip
ThreadsOption = Annotated[
    int | None,
    typer.Option("--threads", min=0, metavar="N", help="Threads; 0: all cores.", show_default=False),
]
ScheduleOption = Annotated[
    str | None,
    typer.Option(
        "--schedule", metavar="TEXT", show_default=False,
        help='Schedule of every loop: "auto", or a race strategy with options ("gather,block=256,lanes=8").',
    ),
]  # fmt: skip


def _check_loops(session: typer.Context, value: bool | None) -> bool | None:
    """Let every context that this command makes check its loops, or not."""
    if value is not None:
        before = os.environ.get(_CHECK)
        os.environ[_CHECK] = str(int(value))
        session.call_on_close(lambda: os.environ.pop(_CHECK) if before is None else os.environ.update({_CHECK: before}))
    return value


CheckLoopsOption = Annotated[
    bool | None,
    typer.Option(
        "--check-loops", callback=_check_loops, show_default=False,
        help="Check every loop before it runs: NaN, indices, integers, division by zero. Several times slower.",
    ),
]  # fmt: skip
RanksOption = Annotated[
    str | None,
    typer.Option(
        "--ranks", metavar="TEXT", show_default=False,
        help="Start ranks on this machine: cuda:0,cpu:14 is a GPU and 14 threads, cpu:1*4 four ranks of a thread.",
    ),
]  # fmt: skip
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="KEY=VALUE", show_default=False,
        help="A value instead of that of the case file, as flow.alpha=4; any number of times.",
    ),
]  # fmt: skip


def directory(text: str) -> Path:
    """Return the directory that an option names.

    Raises
    ------
    CaseError
        For an empty text, which a variable of a shell may be.
    """
    if not text.strip():
        raise CaseError("--output: the name of the directory is empty; leave the option out for the usual one")
    return Path(text)


OutputOption = Annotated[
    Path | None,
    typer.Option("--output", "-o", metavar="DIR", parser=directory, help="Output directory.", show_default=False),
]
JsonOption = Annotated[
    Path | None, typer.Option("--json", metavar="FILE", help="Write the record as JSON.", show_default=False)
]


@dataclass(frozen=True)
class Invocation:
    """One call of the command line.

    Attributes
    ----------
    arguments
        Its words.
    """

    arguments: tuple[str, ...] = ()

    @property
    def command(self) -> str:
        """The command as one would type it, with what the ranks that it started compute on."""
        ranks = os.environ.get(VARIABLE, "")
        return command_text([*self.arguments, "--ranks", ranks] if ranks else self.arguments)


_INVOCATION: ContextVar[Invocation | None] = ContextVar("invocation", default=None)


def invoked(arguments: Sequence[str]) -> None:
    """Keep the words with which the command line is called."""
    _INVOCATION.set(Invocation(tuple(arguments)))


def invocation() -> Invocation:
    """Return the call of the command line that is under way."""
    return _INVOCATION.get() or Invocation()


def output() -> Console:
    """Return the console of results (standard output)."""
    return Console(highlight=False, soft_wrap=False)


def messages() -> Console:
    """Return the console of progress and errors (standard error)."""
    return Console(stderr=True, highlight=False)


def show_error(error: FluxloomError) -> None:
    """Print an expected error on standard error."""
    text = Text("error: ", style="bold red")
    text.append(str(error), style="not bold default" if "\n" in str(error) else "red")
    messages().print(text, soft_wrap=True)


def table(title: str, headings: Sequence[str], rows: Sequence[Sequence[str]], *, left: Sequence[int] = (0,)) -> None:
    """Print a table; the columns ``left`` are aligned left, the others right.

    The texts of the first column are broken where the terminal is narrow, the others are not; a column that says
    nothing ("-" in every row) is left out. Where the output is no terminal, or one that shows nothing but text, as some
    launchers give ranks instead of a file, rows are as wide as they need.
    """
    from rich.box import SIMPLE_HEAD
    from rich.measure import Measurement
    from rich.table import Table

    console = output()
    shown = Table(
        title=Text(title) if title else None, title_justify="left", title_style="bold", header_style="bold",
        pad_edge=False, box=SIMPLE_HEAD, show_edge=False, padding=(0, 1),
    )  # fmt: skip
    said = [n for n in range(len(headings)) if not rows or any(row[n] != "-" for row in rows)]
    for number in said:
        width = max((len(word) for row in rows for word in row[0].split()), default=0) if not number else None
        justify = "left" if number in left else "right"
        shown.add_column(headings[number], justify=justify, no_wrap=number > 0, min_width=width)
    for row in rows:
        shown.add_row(*(Text(row[number]) for number in said))
    if not console.is_terminal or console.is_dumb_terminal:  # numbers are never cut, and rows are lines of a file
        wide = console.options.update(max_width=WIDEST)
        console.size = max(console.width, 160, Measurement.get(console, wide, shown).maximum), console.height
    console.print(shown)


def facts(rows: Sequence[tuple[str, str]]) -> None:
    """Print (name, text) pairs, aligned."""
    width = max((len(name) for name, _ in rows), default=0) + 2
    console = output()
    for name, text in rows:
        console.print(Text.assemble((f"{name:<{width}}", "bold"), text), soft_wrap=True)


def _bar(console: Console) -> Progress:
    """Return a bar for a terminal; nothing else needs what it imports."""
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("[bold]{task.description}"), BarColumn(), TaskProgressColumn(),
        TextColumn("residual {task.fields[residual]}  {task.fields[pace]}"), TimeRemainingColumn(),
    )  # fmt: skip
    return Progress(*columns, console=console, auto_refresh=False, transient=False)


class Advance:
    """Progress of a run: a bar on a terminal, a line now and then elsewhere.

    Parameters
    ----------
    total
        Iterations to come; 0: it is not known how many.
    every
        Iterations between two lines.
    updates
        Cells that an iteration updates, of solvers whose rate is told in million cells a second (MLUPS); else 0.
    """

    def __init__(self, total: int, every: int, updates: int = 0) -> None:
        self.total, self.every, self._updates = total, every, updates
        self._of = f"/{total}" if total else ""
        self._console = messages()
        self._last = (0, 0.0)
        self._painted = 0.0
        self._bar = _bar(self._console) if self._console.is_terminal else None
        self._task: Any = None

    def __enter__(self) -> Advance:
        if self._bar is not None:
            self._bar.start()
            self._task = self._bar.add_task("run", total=self.total or None, residual="-", pace="")
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.refresh()
            self._bar.stop()

    def advanced(self, iteration: int, residual: float, seconds: float) -> None:
        """Show a finished iteration."""
        last = iteration == self.total
        pace = 1e3 * (seconds - self._last[1]) / max(1, iteration - self._last[0])
        if self._bar is not None:
            now = time.monotonic()
            if last or now - self._painted > 0.1:
                self._painted = now
                text = f"{1e3 * seconds / iteration:.3g} ms/iteration{self._rate(1e3 * seconds / iteration)}"
                self._bar.update(self._task, completed=iteration, residual=f"{residual:.4e}", pace=text)
                self._bar.refresh()
        elif iteration % self.every == 0 or last:
            self._console.print(
                f"iteration {iteration:>7}{self._of}   residual {residual:.6e}   {pace:.4g} ms/iteration"
                f"{self._rate(pace)}",
                soft_wrap=True,
            )
            self._last = (iteration, seconds)

    def _rate(self, pace: float) -> str:
        """Return the rate at a pace in milliseconds an iteration, where it is told."""
        return f"  {self._updates / pace / 1e3:.4g} MLUPS" if self._updates and pace > 0.0 else ""


EVERY = 1.8
"""Seconds without a line after which there is one: with what it takes to print it, silence ends within two seconds."""

_LONGEST = 1_000_000


def say(line: str) -> None:
    """Print a line on standard error."""
    messages().print(line, soft_wrap=True, markup=False)


def _asked() -> float:
    """Return the seconds of silence that the environment allows."""
    text = os.environ.get("FLUXLOOM_SILENCE", "")
    try:
        seconds = float(text) if text else EVERY
    except ValueError:
        seconds = -1.0
    if not 0.0 <= seconds <= _LONGEST:
        raise FluxloomError(f"FLUXLOOM_SILENCE={text!r}: seconds from 0 (never a line) to {_LONGEST:,} are wanted")
    return seconds


class Listening(AbstractContextManager["Listening"]):
    """Says what is going on, from a thread of its own, as long as it is entered.

    It may be entered again, one use after the other.

    Parameters
    ----------
    tell
        Prints a line; None: nothing is said, as on every rank but the first.
    every
        Seconds without a line after which there is one; by default those of the variable ``FLUXLOOM_SILENCE`` of the
        environment, else 1.8. 0: nothing is said of what goes on.
    clock
        Seconds that pass.

    Raises
    ------
    FluxloomError
        If the variable is not a number of seconds.
    """

    def __init__(
        self, tell: Callable[[str], object] | None = say, *, every: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        self._tell, self._clock = tell, clock
        self._every = _asked() if every is None else every
        self._lock = threading.Lock()
        self._works: list[tuple[Work, int, float]] = []
        self._counts: Counter[str] = Counter()
        self._begin = self._last = 0.0
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._heard: AbstractContextManager[None] | None = None

    def __enter__(self) -> Listening:
        if self._tell is not None and self._every:
            self._begin = self._last = self._clock()
            self._stop.clear()
            self._heard = listening(self)
            self._heard.__enter__()
            self._thread = threading.Thread(target=self._watch, name="fluxloom-listening", daemon=True)
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Be silent from now on: the first step has been made, or something else tells how far it is."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        if self._heard is not None:
            self._heard.__exit__(None, None, None)
            self._heard = None

    def tell(self, line: str) -> None:
        """Print a line of another kind, after which silence begins anew."""
        if self._tell is not None:
            self._last = self._clock()
            self._tell(line)

    def began(self, work: Work) -> None:
        """Hear that an activity begins."""
        with self._lock:
            self._counts[work.what] += 1
            self._works.append((work, self._counts[work.what], self._clock()))

    def ended(self, work: Work) -> None:
        """Hear that it has ended."""
        with self._lock:
            self._works = [item for item in self._works if item[0] is not work]

    def line(self) -> str:
        """Return what goes on now: the outermost activity and the innermost one, and since when."""
        with self._lock:
            works = self._works[:1] + self._works[1:][-1:]
        if not works:
            return f"working ({self._clock() - self._begin:.0f} s)"
        texts = [f"{work}, number {number}" if work.again else str(work) for work, number, _ in works]
        return f"{'; '.join(texts)} ({self._clock() - works[-1][2]:.0f} s)"

    def _watch(self) -> None:
        """Print a line whenever none has been printed for long enough, until the end."""
        while not self._stop.wait(max(self._last + self._every - self._clock(), 0.01)):
            if self._clock() - self._last >= self._every:
                try:
                    self.tell(self.line())
                except (OSError, ValueError):  # nobody reads standard error any more: the work goes on
                    return
