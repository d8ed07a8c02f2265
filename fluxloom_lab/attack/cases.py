"""Wrong case files and formulas: ``fluxloom lab cases``.

A trial changes an example as a hand that slips does, or one that tries what the numbers can be, and checks it as
``fluxloom check`` does. The case is correct, or a message names the file and a key.
"""

from __future__ import annotations

import io
import os
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import redirect_stderr, redirect_stdout
from functools import lru_cache
from pathlib import Path
from random import Random
from types import MappingProxyType

from fluxloom_lab.attack import formulas
from fluxloom_lab.attack.files.memory import bound_memory
from fluxloom_lab.attack.files.mutations import mutated
from fluxloom_lab.attack.frame import Attack, Attacks, Trial

__all__ = ["cases"]

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
FILE = "case.toml"

_KEY = re.compile(r"^(\s*)([\w.\"-]+)(\s*=\s*)(.*?)(\s*#[^\"']*)?$")
_HEADER = re.compile(r"^\s*\[+[^\]]+\]+")
_LARGEST = 16
"""Cells along an axis of the examples as they are tried here."""

_EXTRA = 4 << 30

VALUES = (
    "-1", "0", "1", "2", "3", "-0.0", "0.5", "-0.5", "1e-320", "1e308", "-1e308", "nan", "inf", "-inf", "1e9",
    "2147483648", "9223372036854775807", "-9223372036854775808", "true", "false", '""', '"x"', '"y"', '"z"', '"1"',
    '"none"', '"auto"', '"nan"', '"1/0"', '"x/0"', '"sqrt(-1)"', '"t"', '"sin(t) * x"', '"/"', '"."', '"no/file.su2"',
    '"../.."', '"\\u0000"', '"é"', '" "', "[]", "[0]", "[1, 2]", "[1.0, 2.0, 3.0]", "[1, 2, 3, 4]", "[-1, nan, inf]",
    '["x"]', '["x", "y"]', "[[]]", "[[0.0, 1.0], [1.0, 0.0]]", "{}", "{a = 1}", '{type = "wall"}', "[{}]",
    "1979-05-27", "07:32:00", '"' + "x + " * 40 + 'x"', '"' + "(" * 300 + '"', "'''\n'''", "0x7fffffff",
)  # fmt: skip
"""Values of TOML that may stand where another is wanted."""


@lru_cache
def _texts() -> tuple[str, ...]:
    """Return the examples, with fewer cells."""
    return tuple(_small(path.read_text(encoding="utf-8")) for path in sorted(EXAMPLES.glob("*.toml")))


def _small(text: str) -> str:
    """Return a case whose whole numbers of the mesh are no larger than some cells."""
    rows, table = [], ""
    for row in text.splitlines():
        if header := _HEADER.match(row):
            table = header.group().strip(" []")
        elif (found := _KEY.match(row)) and table.startswith("mesh") and re.fullmatch(r"\d+", found[4]):
            row = f"{found[2]} = {min(int(found[4]), _LARGEST)}"
        rows.append(row)
    return "\n".join(rows) + "\n"


# ------------------------------------------------------------------------------------------- changes


def _keys(rows: list[str]) -> list[int]:
    return [k for k, row in enumerate(rows) if _KEY.match(row) and not row.lstrip().startswith("#")]


def _headers(rows: list[str]) -> list[int]:
    return [k for k, row in enumerate(rows) if _HEADER.match(row)]


def _table(rows: list[str], place: int) -> list[str]:
    """Return the lines of the table that begins at a header."""
    end = next((k for k in _headers(rows) if k > place), len(rows))
    return rows[place:end]


def _drop_key(pick: Random, rows: list[str]) -> None:
    del rows[pick.choice(_keys(rows))]


def _repeat_key(pick: Random, rows: list[str]) -> None:
    place = pick.choice(_keys(rows))
    rows.insert(pick.choice((place, pick.choice(_keys(rows)))), rows[place])


def _misspell(pick: Random, rows: list[str]) -> None:
    place = pick.choice(_keys(rows) + _headers(rows))
    letters = [k for k, letter in enumerate(rows[place].partition("=")[0]) if letter.isalpha()]
    k, row = pick.choice(letters or [0]), rows[place]
    new = pick.choice(("", row[k] * 2, pick.choice("aexyz_-"), row[k].upper()))
    rows[place] = row[:k] + new + row[k + 1 :]


def _value(pick: Random, rows: list[str]) -> None:
    place = pick.choice(_keys(rows))
    found = _KEY.match(rows[place])
    assert found is not None
    rows[place] = f"{found[1]}{found[2]}{found[3]}{pick.choice(VALUES)}"


def _part(pick: Random, rows: list[str]) -> None:
    """Change one number within a value."""
    place = pick.choice(_keys(rows))
    found = _KEY.match(rows[place])
    assert found is not None
    numbers = list(re.finditer(r"-?\d+\.?\d*(?:e[-+]?\d+)?", found[4]))
    if not numbers:
        return _value(pick, rows)
    one = pick.choice(numbers)
    number, whole = float(one.group()), one.group().isdigit()
    near = [str(int(number * part) if whole else number * part) for part in (0.5, 2.0, 0.9, 1.5)]
    far = [f"-{one.group()}", f"{one.group()}0", f"{one.group()}00000", "1e-9", "0", "nan", "1e30", "inf", "x"]
    value = found[4][: one.start()] + pick.choice(pick.choice((near, far))) + found[4][one.end() :]
    rows[place] = f"{found[1]}{found[2]}{found[3]}{value}"
    return None


def _drop_table(pick: Random, rows: list[str]) -> None:
    place = pick.choice(_headers(rows))
    del rows[place : place + (1 if pick.random() < 0.5 else len(_table(rows, place)))]


def _repeat_table(pick: Random, rows: list[str]) -> None:
    rows += _table(rows, pick.choice(_headers(rows)))


def _swap_tables(pick: Random, rows: list[str]) -> None:
    a, b = pick.choice(_headers(rows)), pick.choice(_headers(rows))
    rows[a], rows[b] = rows[b], rows[a]


def _move_key(pick: Random, rows: list[str]) -> None:
    row = rows.pop(pick.choice(_keys(rows)))
    rows.insert(pick.choice(_headers(rows)) + 1, row)


def _other_key(pick: Random, rows: list[str]) -> None:
    """Take a line of another case, or its value, or its table."""
    other = pick.choice(_texts()).splitlines()
    row = other[pick.choice(_keys(other))]
    kind = pick.randrange(3)
    if kind == 0:
        rows.insert(pick.choice(_headers(rows)) + 1, row)
    elif kind == 1:
        place = pick.choice(_keys(rows))
        name = row.partition("=")[0].strip()
        same = [k for k in _keys(rows) if rows[k].partition("=")[0].strip() == name]
        place = pick.choice(same) if same and pick.random() < 0.8 else place
        rows[place] = f"{rows[place].partition('=')[0]}= {row.partition('=')[2].strip()}"
    else:
        rows += _table(other, pick.choice(_headers(other)))


def _other_table(pick: Random, rows: list[str]) -> None:
    """Take the table of another case in the place of that of the same name."""
    other = pick.choice(_texts()).splitlines()
    header = other[pick.choice(_headers(other))]
    new = _table(other, other.index(header))
    place = next((k for k in _headers(rows) if rows[k].split("#")[0].strip() == header.split("#")[0].strip()), None)
    if place is not None:
        rows[place : place + len(_table(rows, place))] = new
    else:
        rows += new


CHANGES: Mapping[str, Callable[[Random, list[str]], None]] = MappingProxyType({
    "drop key": _drop_key, "repeat key": _repeat_key, "misspelt": _misspell, "value": _value, "number": _part,
    "drop table": _drop_table, "repeat table": _repeat_table, "swap tables": _swap_tables, "move key": _move_key,
    "other key": _other_key, "other table": _other_table,
})  # fmt: skip
"""Changes of a case, by their names."""

_OFTEN = ["value"] * 8 + ["number"] * 5 + ["other key", "other table"]


def changed(pick: Random) -> tuple[str, bytes]:
    """Return what happened to an example, and its text then."""
    text = pick.choice(_texts())
    name = next(row.partition("=")[2].split("#")[0].strip() for row in text.splitlines() if row.startswith("name"))
    if pick.random() < 0.05:
        what, data = mutated(pick, text.encode())
        return f"{name}: {what}", data
    rows, names = text.splitlines(), []
    for _ in range(pick.choice((1, 1, 1, 2, 3))):
        names.append(pick.choice([*CHANGES, *_OFTEN]))
        CHANGES[names[-1]](pick, rows)
        if not _keys(rows) or not _headers(rows):
            break
    return f"{name}: {', '.join(names)}", ("\n".join(rows) + "\n").encode()


# ------------------------------------------------------------------------------------------- trials


def _act(trial: Trial) -> Iterator[str]:
    """Check a changed case."""
    from fluxloom.cli.main import main

    what, data = changed(trial.random())
    Path(FILE).write_bytes(data)
    os.environ["FLUXLOOM_TUNING"] = "off"
    bound_memory(_EXTRA)
    said, told = io.StringIO(), io.StringIO()
    with redirect_stdout(told), redirect_stderr(said):
        status = main(["check", FILE, "--device", "cpu"])
    trial.counts["correct" if not status else "refused"] += 1
    if status == 0:
        return
    text = said.getvalue()
    error = text[text.find("error: ") + len("error: ") :].strip()
    if status != 2 or "error: " not in text:
        yield f"{what}: exit status {status}: {text.strip()[-300:]}"
    elif FILE not in error and f'"{error.partition(":")[0]}"'.encode() not in data:  # or a file that the case names
        yield f"{what}: the message does not name the file: {error[:300]}"
    elif FILE in error and not _names_key(error, data):
        yield f"{what}: the message names no key: {error[:300]}"


def _names_key(error: str, data: bytes) -> bool:
    """Whether a message has a line of the file, or a word that is a key or a table of it."""
    if re.search(rf"{re.escape(FILE)}:\d+", error):
        return True
    try:
        found = tomllib.loads(data.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError):
        return "not a text file" in error
    words = {str(key) for key in found} | {str(key) for table in found.values() if isinstance(table, dict)
                                           for key in table}  # fmt: skip
    return any(re.search(rf"\b{re.escape(word)}\b", error) for word in words) or "[case]" in error


def _missing() -> str:
    """Import what trials need, and return what is missing."""
    from importlib import import_module

    if not EXAMPLES.is_dir():
        return "no examples beside the package"
    import_module("fluxloom.cli.commands")
    from fluxloom.cases.files.loading import applications

    known = applications()
    for name in known:
        _ = known[name]
    for name in ("scipy.spatial", "scipy.interpolate", "scipy.sparse", "h5py"):
        try:
            import_module(name)
        except ImportError as error:
            return str(error)
    return "" if _texts() else "no examples beside the package"


def cases() -> Attacks:
    """Return the attacks on case files and formulas."""
    return Attacks(
        "wrong case files and formulas",
        (
            Attack("cases", _act, trials=100, seconds=120.0, missing=_missing),
            Attack("formulas", formulas.act, trials=100, seconds=20.0),
            Attack("loops", formulas.act_compiled, trials=4, seconds=120.0),
        ),
    )
