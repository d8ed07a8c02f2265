"""Tables of case files that are made from dataclasses, and the lists of their keys."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from fluxloom.cases.files.keys import key_tables, page
from fluxloom.cases.files.loading import applications
from fluxloom.cases.files.strategy_tables import member_table, strategy_of, strategy_table
from fluxloom.core.errors import FluxloomError, SolverError
from fluxloom.core.strategies import PYTHON_ONLY, Strategy, strategy_class, strategy_words

ROOT = Path(__file__).resolve().parents[3]


class Spring(Strategy, what="spring"):
    """What pulls."""


@dataclass(frozen=True)
class Linear(Spring, name="linear"):
    """A force that grows with the length.

    Attributes
    ----------
    stiffness
        N/m.
    """

    stiffness: float = 2.0

    def __post_init__(self) -> None:
        if self.stiffness <= 0.0:
            raise SolverError(f"stiffness: a positive number is wanted, not {self.stiffness!r}")


@dataclass(frozen=True)
class Rigid(Spring, name="rigid"):
    """No length changes it."""


class Wheel(Strategy, what="wheel"):
    """What turns."""


class Gear(Wheel, what="gear"):
    """A wheel with teeth."""


@dataclass(frozen=True)
class Spur(Gear, name="spur"):
    """A gear with straight teeth.

    Attributes
    ----------
    teeth
        How many.
    marks
        Where there are any; programs alone can say it.
    material
        Of the teeth.
    """

    teeth: int = 20
    marks: object = field(default=None, metadata=PYTHON_ONLY)
    material: Spring = Linear(7.0)
    angle: float = field(default=0.0, init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "angle", 360.0 / self.teeth)


@dataclass(frozen=True)
class Nameless(Spring):
    length: int = 3


@dataclass(frozen=True)
class Model:
    """A model.

    Attributes
    ----------
    spring
        What pulls.
    damper
        What damps, if anything does.
    """

    spring: Spring = Linear()
    damper: Spring | None = None


@dataclass(frozen=True)
class Turning:
    """A machine with a wheel."""

    wheel: Wheel = Spur(40)


class Keys(strategy_table(Model)):
    """``[model]``: how it moves."""


PLACE = f"{__name__}:Nameless"


@pytest.mark.parametrize(
    ("given", "value"),
    [
        ({}, Linear()),
        ({"spring": "rigid"}, Rigid()),
        ({"spring": {"type": "linear", "stiffness": 5.0}}, Linear(5.0)),
        ({"spring": Linear(5.0)}, Linear(5.0)),
        ({"spring": {"type": PLACE, "length": 4}}, Nameless(4)),
    ],
)
def test_a_key_chooses_a_member(given: dict[str, object], value: Spring) -> None:
    table = Keys.model_validate(given)
    assert strategy_of(Model, table) == Model(value)
    for mode in ("python", "json"):
        assert Keys.model_validate(table.model_dump(mode=mode)) == table  # as checkpoints and records keep it


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("liner", "unknown spring 'liner'; did you mean 'linear'? (known: linear, rigid)"),
        ({"type": "linear", "stifness": 1.0}, "linear: no key 'stifness'; did you mean 'stiffness'? (allowed: stiff"),
        ({"type": "rigid", "stiffness": 1.0}, "rigid: no key 'stiffness' (it has none)"),
        ({"type": "linear", "stiffness": "1"}, 'linear: stiffness: must be a number, got "1"'),
        ({"type": "linear", "stiffness": -1.0}, "linear: stiffness: a positive number is wanted, not -1.0"),
        ({"stiffness": 1.0}, 'the table needs type = "..." (allowed: linear, rigid)'),
        (3, 'must be a name in quotes or a table { type = "..." }, got 3 (allowed: linear, rigid)'),
        ("no_such_module:Spring", "spring 'no_such_module:Spring' cannot be loaded: No module named 'no_such_module'"),
        ("math:sin", "a frozen dataclass that derives from Spring is wanted"),
    ],
)
def test_what_is_wrong_with_a_choice(given: object, message: str) -> None:
    with pytest.raises(ValidationError) as error:
        Keys.model_validate({"spring": given})
    assert message in str(error.value)


def test_names_of_members() -> None:
    assert strategy_class(Spring, "rigid") is Rigid
    assert strategy_words(Linear(3.0)) == {"type": "linear", "stiffness": 3.0}
    with pytest.raises(FluxloomError, match="'rigid' is registered twice"):
        type("Other", (Spring,), {}, name="rigid")


def test_numbers_of_members_are_listed() -> None:
    first, numbers, _ = key_tables(Keys, "model")
    assert (first.path, first.text) == ("model", "How it moves.")
    assert [(key.name, key.values, key.default, key.text) for key in first.keys] == [
        ("spring", '`"linear"`, `"rigid"`', '"linear"', "What pulls."),
        ("damper", '`"linear"`, `"rigid"`, `"none"`', '"none"', "What damps, if anything does."),
    ]
    assert numbers.path == 'model.spring = { type = "linear" }'
    assert [(key.name, key.values, key.default, key.text) for key in numbers.keys] == [
        ("stiffness", "number", "2", "N/m.")
    ]


def test_families_within_families_and_fields_without_keys() -> None:
    """A gear is a wheel; what a member derives, or programs alone can give, is no key."""
    assert (Gear.choices.names(), Wheel.choices.names()) == (["spur"], ["spur"])
    assert strategy_words(Spur(marks=[1])) == {
        "type": "spur", "teeth": 20, "material": {"type": "linear", "stiffness": 7.0}
    }  # fmt: skip
    model = strategy_table(Turning)
    given = {"type": "spur", "teeth": 30, "material": "rigid"}
    assert strategy_of(Turning, model.model_validate({"wheel": given})).wheel == Spur(30, material=Rigid())
    for name in ("marks", "angle"):
        with pytest.raises(ValidationError, match=f"spur: no key '{name}'"):
            model.model_validate({"wheel": {"type": "spur", name: 1.0}})
    whole, spur, linear = key_tables(model, "machine")
    assert whole.keys[0].default == '{ type = "spur", teeth = 40 }'
    assert [key.default for key in spur.keys] == ["20", '{ type = "linear", stiffness = 7 }']
    assert linear.path == 'machine.wheel.material = { type = "linear" }'


@pytest.mark.parametrize("name", applications().names())
def test_every_key_says_what_it_is(name: str) -> None:
    for table in key_tables(applications()[name].model):
        assert table.text, table.path
        assert [key.name for key in table.keys if not key.text] == [], table.path


def test_the_page_of_the_guide_is_that_of_the_code() -> None:
    assert (ROOT / "docs" / "guide" / "keys.md").read_text(encoding="utf-8") == page(applications())


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("value", "the name of the field 'value' is taken in tables of case files: call it otherwise"),
        ("model_config", "is taken in tables"),
        ("type", "is taken in tables"),
        ("pull", "is a method of Pulling"),
    ],
)
def test_names_that_fields_cannot_have(name: str, message: str) -> None:
    class Pulling(Strategy, what="pull"):
        def pull(self) -> float:
            return 1.0

    kind = dataclass(frozen=True)(type("Mine", (Pulling,), {"__annotations__": {name: float}, name: 1.0}))
    with pytest.raises(FluxloomError, match=f"Mine: .*{message}"):
        member_table(kind)


# ----------------------------------------------------------------------------------------------- examples and pages


def code(page: Path) -> set[str]:
    """Return the words that a page has as code, of TOML or in its text."""
    text = re.sub(r"(?s)<!--.*?-->", "", page.read_text(encoding="utf-8"))
    parts = re.findall(r"`([^`\n]+)`", text) + re.findall(r"(?s)```toml\n(.*?)```", text)
    return set(re.findall(r"\w+", " ".join(parts)))


def keys_of(name: str, path: str) -> dict[str, str]:
    """Return the defaults of the keys that a table of a solver may have, whatever it has for NAME."""
    words, found = path.split("."), {}
    for table in key_tables(applications()[name].model):
        known = table.path.split(".")
        if len(known) == len(words) and all(a in ("NAME", b) for a, b in zip(known, words, strict=True)):
            found |= {key: one.default for one in table.keys for key in one.name.split(", ")}
    return found


def is_default(value: Any, default: str, path: str) -> bool:
    """Say whether a key that is left out has this value: of vectors zero, of patches the name of the table."""
    if default in ("-", "[]", '""'):
        zero = value in ("", "0") or (isinstance(value, list) and not any(value))
        return zero or value == [path.rpartition(".")[2]]
    return value == tomllib.loads(f"x = {default}")["x"]


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.toml")), ids=lambda path: path.stem)
def test_keys_that_an_example_comments_out_have_their_defaults(path: Path) -> None:
    text, table, wrong = path.read_text(encoding="utf-8"), "", []
    solver = tomllib.loads(text)["case"]["solver"]
    for line in text.partition("\n[case]\n")[2].splitlines():
        head, key = re.match(r"(?:# )?\[+([\w.]+)\]", line), re.match(r"# ([\w.]+) = (.*)", line)
        table = head[1] if head else table
        if key:
            default = keys_of(solver, table).get(key[1], "")
            if not default or not is_default(tomllib.loads(f"x = {key[2]}")["x"], default, table):
                wrong.append(f"[{table}] {line} (default {default})")
    assert not wrong


PAGES = {path: code(path) for path in sorted((ROOT / "docs").rglob("*.md"))
         if path.name != "keys.md" and path.parent.name not in ("api", "extend")}  # fmt: skip


@pytest.mark.parametrize("name", applications().names())
def test_every_key_is_explained_in_the_documentation(name: str) -> None:
    """Some page, which is not generated, has it and its table as code."""
    missing = []
    for table in key_tables(applications()[name].model):
        words = re.findall(r"[a-z_]\w*", table.path.partition(" = ")[0])
        for key in (key for one in table.keys for key in one.name.split(", ")):
            wanted = {words[0], words[-1], key}
            if not any(wanted <= words for words in PAGES.values()):
                missing.append(f"[{table.path}] {key}")
    assert not missing
