"""What the verbs share: consoles, tables, progress, options, and building what a case describes."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from fluxloom.app.ranks import VARIABLE
from fluxloom.app.system import command_text
from fluxloom.core.errors import CaseError, FluxloomError

if TYPE_CHECKING:
    from rich.progress import Progress

__all__ = [
    "Advance",
    "CaseArgument",
    "CheckLoopsOption",
    "DeviceOption",
    "Invocation",
    "JsonOption",
    "OutputOption",
    "RanksOption",
    "ScheduleOption",
    "SetOption",
    "ThreadsOption",
    "add",
    "directory",
    "facts",
    "invocation",
    "invoked",
    "messages",
    "output",
    "show_error",
    "table",
]


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
        Iterations to come.
    every
        Iterations between two lines.
    updates
        Cells that an iteration updates, of solvers whose rate is told in million cells a second (MLUPS); else 0.
    """

    def __init__(self, total: int, every: int, updates: int = 0) -> None:
        self.total, self.every, self._updates = total, every, updates
        self._console = messages()
        self._last = (0, 0.0)
        self._painted = 0.0
        self._bar = _bar(self._console) if self._console.is_terminal else None
        self._task: Any = None

    def __enter__(self) -> Advance:
        if self._bar is not None:
            self._bar.start()
            self._task = self._bar.add_task("run", total=self.total, residual="-", pace="")
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
                f"iteration {iteration:>7}/{self.total}   residual {residual:.6e}   {pace:.4g} ms/iteration"
                f"{self._rate(pace)}",
                soft_wrap=True,
            )
            self._last = (iteration, seconds)

    def _rate(self, pace: float) -> str:
        """Return the rate at a pace in milliseconds an iteration, where it is told."""
        return f"  {self._updates / pace / 1e3:.4g} MLUPS" if self._updates and pace > 0.0 else ""
