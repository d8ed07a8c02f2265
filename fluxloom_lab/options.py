"""Options of the command line as fields of frozen dataclasses, which benchmarks and verifications declare.

A field that `option` made is one; what else a dataclass holds (ranks, the command line) is no option::

    @dataclass(frozen=True)
    class WaveOptions(BenchOptions):
        cells: str = option("", metavar="N", help="Cells a side.")
        slow: bool = option(False, help="Slow waves too.")
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, TypeVar

__all__ = [
    "Option", "combined", "device_option", "given", "option", "options_of", "ranks_option", "threads_option",
]  # fmt: skip

_KEY = "fluxloom_option"

T = TypeVar("T")


@dataclass(frozen=True)
class Option:
    """One option.

    Attributes
    ----------
    words
        How it is written, ``("--iterations", "-n")``; empty: as its field is called.
    kind
        Type of its value on the command line.
    default
        Its value there where it is not given.
    metavar, help
        As ``--help`` shows them.
    shown
        The default as ``--help`` shows it; empty: not at all.
    least
        Smallest number that is allowed.
    more
        What else Typer is told of it.
    """

    words: tuple[str, ...] = ()
    kind: Any = str
    default: Any = ""
    metavar: str = ""
    help: str = ""
    shown: str = ""
    least: int | None = None
    more: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class _Source:
    """What a field is made from."""

    options: tuple[Option, ...]
    made: Callable[..., Any]


def _same(value: Any) -> Any:
    return value


def option(
    default: Any, *words: str, metavar: str = "", help: str = "", kind: Any = None, given: Any = MISSING,
    made: Callable[[Any], Any] = _same, shown: str = "", least: int | None = None, **more: Any,
) -> Any:  # fmt: skip
    """Return a field of a dataclass that is an option.

    Parameters
    ----------
    default
        Of the field.
    words, metavar, help, shown, least, more
        As of `Option`.
    kind, given
        Type and default on the command line, where they are others than those of the field.
    made
        Makes the field from what was given; what it raises is the answer to a wrong value.
    """
    here = default if given is MISSING else given
    one = Option(words, kind or type(default), here, metavar, help, shown, least, more)
    return field(default=default, metadata={_KEY: _Source((one,), made)})


def device_option() -> Any:
    """Return the option ``--device``; on the command line it is known whether it was given."""
    return option(
        "cpu", metavar="NAME", help="Device.", kind=str | None, given=None, made=lambda name: name or "cpu", shown="cpu"
    )


def threads_option() -> Any:
    """Return the option ``--threads``; on the command line it is known whether it was given."""
    return option(
        0, metavar="N", help="Threads; 0: all cores.", kind=int | None, given=None, made=lambda n: n or 0, least=0
    )


def ranks_option() -> Any:
    """Return the option ``--ranks``: what each rank computes on; empty: all on the same."""
    text = "Start ranks on this machine: cuda:0,cpu:14 is a GPU and 14 threads, cpu:1*4 four ranks of a thread."
    return option("", metavar="TEXT", help=text)


def combined(default: Callable[[], Any], made: Callable[..., Any], *options: Option) -> Any:
    """Return a field that is made from several options; ``made`` takes their values in this order."""
    return field(default_factory=default, metadata={_KEY: _Source(options, made)})


def options_of(kind: type) -> Iterator[tuple[str, Option]]:
    """Yield the options of a dataclass, each with a key by which `given` knows it."""
    for item in fields(kind):
        for number, one in enumerate(_options(item)):
            yield _key(item.name, number), one


def given(kind: type[T], values: Mapping[str, Any], **more: Any) -> T:
    """Return a dataclass filled with values of its options, by the keys of `options_of`, and with other fields."""
    made = {
        item.name: item.metadata[_KEY].made(*(values[_key(item.name, n)] for n in range(len(options))))
        for item in fields(kind)  # type: ignore[arg-type]
        if (options := _options(item))
    }
    return kind(**made | more)


def _options(item: Any) -> tuple[Option, ...]:
    return item.metadata[_KEY].options if _KEY in item.metadata else ()


def _key(name: str, number: int) -> str:
    return f"{name}_{number}" if number else name
