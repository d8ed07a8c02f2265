"""The cases of the yardstick, as `cases.toml` names them."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]


@dataclass(frozen=True)
class Case:
    """One run: a case through the command line, or a script.

    Attributes
    ----------
    name
        Of the run and of its record.
    case, script
        A case file or the name of a solver, or else an example script; files are named from the root of the repository.
    arguments
        Of the script.
    iterations
        What `fluxloom run -n` is told; 0: what the file says.
    change
        Keys of the case that get other values, as `"mesh.nx" = 40`; `"none!"` takes a key away.
    before
        Scripts with their arguments that run first in the same folder: they make meshes and bodies.
    data
        Files below the folder of reference data that the case reads; without them the case is left out.
    files
        Files of the repository that the case reads.
    tolerance
        Largest difference that other compilers, processors and devices make, relative to the largest value.
    zero
        Largest difference of values that are zero but for rounding.
    unrepeatable
        Why two runs on the same machine differ; empty where they have the same bits, as they should. Of the others
        words and rows of the summary are compared alone, with the tolerance.
    ranks
        Whether its solver runs on several ranks.
    """

    name: str
    case: str = ""
    script: str = ""
    arguments: tuple[str, ...] = ()
    iterations: int = 0
    change: Mapping[str, Any] = field(default_factory=dict)
    before: tuple[str, ...] = ()
    data: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    tolerance: float = 1e-9
    zero: float = 1e-12
    unrepeatable: str = ""
    ranks: bool = True


def read_table(path: Path = HERE / "cases.toml") -> tuple[Case, ...]:
    """Return the cases of a table, whose names differ."""
    entries: list[dict[str, Any]] = tomllib.loads(path.read_text(encoding="utf-8"))["case"]
    for entry in entries:
        entry |= {key: tuple(value) for key, value in entry.items() if isinstance(value, list)}
    found = tuple(Case(**entry) for entry in entries)
    names = [case.name for case in found]
    if double := {name for name in names if names.count(name) > 1}:
        raise ValueError(f"{path}: two cases are called {', '.join(sorted(double))}")
    return found


def changed_text(text: str, change: Mapping[str, Any]) -> str:
    """Return a case file with other values for some keys; the value `"none!"` takes a key away."""
    given = tomllib.loads(text)
    for name, value in change.items():
        *tables, key = name.split(".")
        table = given
        for part in tables:
            table = table.setdefault(part, {})
        if value == "none!":
            del table[key]
        else:
            table[key] = value
    return "".join(f"{json.dumps(name)} = {toml(value)}\n" for name, value in given.items())


def toml(value: Any) -> str:
    """Return a value as TOML on one line."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{json.dumps(name)} = {toml(item)}" for name, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(toml, value)) + "]"
    return json.dumps(value) if isinstance(value, str | bool) else repr(value)


def missing_data(case: Case, folders: Iterable[Path]) -> list[str]:
    """Return those files of reference data that a case needs and no folder has."""
    places = list(folders)
    return [name for name in case.data if not any((place / name).exists() for place in places)]


def data_folders() -> list[Path]:
    """Return the folders of reference data beside the repository or above it."""
    places = [parent / "shared" / "data" for parent in ROOT.parents]
    return [place for place in places if place.is_dir()]
