"""A verb whose first word is a name, and whose options are those that what has the name declares."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from inspect import Parameter, Signature, cleandoc
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from fluxloom.cli.console import Invocation, JsonOption, facts, invocation
from fluxloom.comm import detect
from fluxloom.core.errors import CaseError, did_you_mean
from fluxloom.core.registry import Registry
from fluxloom_lab.options import Option, options_of

__all__ = ["Call", "Named", "application"]

LIST = "list"


@dataclass(frozen=True)
class Call:
    """One call of a verb.

    Attributes
    ----------
    name, subject
        What was named.
    given
        Values of its options, by the keys of `fluxloom_lab.options.options_of`.
    json_file
        Where the record goes.
    session
        The words of the command line.
    """

    name: str
    subject: Any
    given: dict[str, Any]
    json_file: Path | None
    session: Invocation


@dataclass(frozen=True)
class Named:
    """A verb of named things.

    Attributes
    ----------
    verb, noun
        What the verb is called, and one of the things.
    text
        What it does; the first paragraph stands in the list of verbs.
    known
        Returns the things by name; each has ``title`` and ``options``, a dataclass.
    run
        Does it, and returns the exit status.
    """

    verb: str
    noun: str
    text: str
    known: Callable[[], Registry[Any]]
    run: Callable[[Call], int]


def application(named: Named) -> typer.Typer:
    """Return the verb: its commands are imported when they are named, and it may have options before the name."""

    class Names(TyperGroup):
        """The names as commands."""

        def list_commands(self, ctx: Any) -> list[str]:
            return [*named.known().names(), LIST]

        def get_command(self, ctx: Any, cmd_name: str) -> Any:
            return _list(named) if cmd_name == LIST else _command(named, cmd_name)

        def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
            return super().parse_args(ctx, _name_first(named, args))

        def format_commands(self, ctx: Any, formatter: Any) -> None:
            with formatter.section(f"NAME is one of, and '{LIST}' says what each does"):
                formatter.write_text(", ".join(named.known().names()))

    return typer.Typer(
        cls=Names, help=named.text, subcommand_metavar="NAME [OPTIONS]", no_args_is_help=True, rich_markup_mode=None,
        add_completion=False,
    )  # fmt: skip


def _name_first(named: Named, words: list[str]) -> list[str]:
    """Return the words with the name at the beginning: options may stand before it.

    Raises
    ------
    CaseError
        If there are options, but no name.
    """
    if not words or not words[0].startswith("-") or words[0] in ("-h", "--help"):
        return words
    known = {*named.known().names(), LIST}
    place = next((n for n, word in enumerate(words) if word in known), None)
    if place is None:
        if "--help" in words or "-h" in words:
            return ["--help"]
        raise CaseError(f"{named.verb}: name a {named.noun} before its options; fluxloom {named.verb} list shows them")
    return [words[place], *words[:place], *words[place + 1 :]]


def _list(named: Named) -> Any:
    """Return the command that prints the names."""

    def command() -> None:
        """Print the names, and what each does."""
        known = named.known()
        facts([(name, known[name].title) for name in known.names()] if detect().rank == 0 else [])

    return _single(LIST, command, TyperCommand)


def _command(named: Named, name: str) -> Any:
    """Return the command of a name, with its options."""
    subject = named.known()[name]

    class Own(TyperCommand):
        """Says what an unknown option might have been."""

        def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
            try:
                return super().parse_args(ctx, args)
            except Exception as error:
                if type(error).__name__ != "NoSuchOption":  # click's own, which some versions of Typer have inside them
                    raise
                word = str(getattr(error, "option_name", ""))
                has = [one for item in self.params for one in (*item.opts, *item.secondary_opts)]
                raise CaseError(
                    f"the {named.noun} {name} has no option {word}{did_you_mean(word, has)} "
                    f"(fluxloom {named.verb} {name} --help shows those it has)"
                ) from None

    def command(json_file: Path | None = None, **given: Any) -> None:
        if status := named.run(Call(name, subject, given, json_file, invocation())):
            raise typer.Exit(status)

    last = Parameter("json_file", Parameter.KEYWORD_ONLY, default=None, annotation=JsonOption)
    parameters = [*_options(subject), last]
    command.__signature__ = Signature(parameters)
    command.__annotations__ = {item.name: item.annotation for item in parameters}
    about = cleandoc(type(subject).__doc__ or "").partition("\n\nAttributes\n")[0].replace("``", "")
    command.__doc__ = f"{subject.title}\n\n{about}"
    return _single(name, command, Own)


def _options(subject: Any) -> Iterator[Parameter]:
    """Yield the options that something declares, as Typer takes them."""
    for key, option in options_of(subject.options):
        kind = Annotated[option.kind, _typed(key, option)]
        yield Parameter(key, Parameter.KEYWORD_ONLY, default=option.default, annotation=kind)


def _typed(key: str, option: Option) -> Any:
    words = option.words or (f"--{key.replace('_', '-')}",)
    shown = bool(option.shown) if option.shown in ("", str(option.default)) else option.shown
    if option.kind is bool:
        return typer.Option(*words, help=option.help, show_default=shown)
    return typer.Option(
        *words, metavar=option.metavar, help=option.help, show_default=shown, min=option.least, **option.more
    )


def _single(name: str, function: Callable[..., object], kind: type[TyperCommand]) -> Any:
    """Return a function as a command of Typer."""
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    app.command(name, cls=kind)(function)
    return get_command(app)
