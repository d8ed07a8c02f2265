"""The reference of the documentation has every public name."""

from __future__ import annotations

import ast
import importlib
import re
import tomllib
from pathlib import Path

import pytest

import fluxloom
from tests.source_tree import ROOT

PAGES = "".join(path.read_text(encoding="utf-8") for path in sorted((ROOT / "docs" / "api").glob("*.md")))
LISTED = dict(re.findall(r"(?m)^::: (\S+)$(\n    options:\n      show_submodules: true)?", PAGES))
WHOLE = ("comm", "fe", "flows", "fv", "lbm", "linalg", "mesh", "monitors", "run", "solvers", "values")


def is_listed(module: str) -> bool:
    """Say whether a page has a module, by itself or with all of a package around it."""
    around = [module.rsplit(".", n)[0] for n in range(1, module.count(".") + 1)]
    return module in LISTED or any(LISTED.get(package) for package in around)


def has_text(module: str, name: str) -> bool:
    """Say whether a name has a docstring where it is defined: what has none is on no page."""
    path = ROOT / module.replace(".", "/")
    source = path.with_suffix(".py") if path.with_suffix(".py").exists() else path / "__init__.py"
    tree = ast.parse(Path(source).read_text(encoding="utf-8")).body
    body = [inner for one in tree for inner in (one.body + one.orelse if isinstance(one, ast.If) else [one])]
    for here, behind in zip(body, [*body[1:], None], strict=True):
        if isinstance(here, ast.ClassDef | ast.FunctionDef) and here.name == name and ast.get_docstring(here):
            return True
        targets = getattr(here, "targets", [getattr(here, "target", None)])
        assigned = any(isinstance(target, ast.Name) and target.id == name for target in targets)
        if assigned and isinstance(behind, ast.Expr) and isinstance(behind.value, ast.Constant):
            return True
    return False


def places() -> set[tuple[str, str]]:
    """Return the modules and names of what is public: of `fluxloom`, of its rooms, and the functions of kernels."""
    found = set()
    for room in ("fluxloom", "fluxloom.comm", "fluxloom.linalg", "fluxloom.mesh", "fluxloom.kernel.intrinsics"):
        module = importlib.import_module(room)
        late = getattr(fluxloom, "_LATE", {}) if room == "fluxloom" else {}
        for name in {*module.__all__, *late}:
            value = getattr(getattr(module, name), "function", getattr(module, name))
            if not hasattr(value, "__path__") and getattr(value, "__module__", "") != "builtins":
                place = getattr(value, "__module__", late.get(name, room).partition(":")[0])
                found.add((place if place.startswith("fluxloom") else room, getattr(value, "__name__", name)))
    return found


def test_the_reference_has_every_public_name() -> None:
    assert len(places()) > 250
    assert [place for place in sorted(places()) if not is_listed(place[0])] == []


def test_public_names_say_what_they_are() -> None:
    assert [place for place in sorted(places()) if not has_text(*place)] == []


@pytest.mark.parametrize("room", WHOLE)
def test_the_reference_has_whole_rooms(room: str) -> None:
    assert LISTED[f"fluxloom.{room}"]


ROOMS = "|".join(("app", "codegen", "core", "device", "dsl", "graph", "kernel", "perf", "toolchain", *WHOLE))
DOTTED = re.compile(rf"\bfluxloom\.(?:{ROOMS})(?:[.:]\w+)*")


@pytest.mark.parametrize("page", sorted((ROOT / "docs").rglob("*.md")), ids=lambda page: str(page.relative_to(ROOT)))
def test_what_a_page_names_exists(page: Path) -> None:
    names = {name.replace(":", ".") for name in DOTTED.findall(page.read_text(encoding="utf-8"))}
    assert [name for name in sorted(names) if not exists(name)] == []


def test_formulas_have_a_page_and_a_function() -> None:
    folder = ROOT / "docs" / "theory"
    rows = re.findall(r"(?m)^\| (.+) \| \[.+\]\((.+)\) \| (.+) \|$", (folder / "where.md").read_text(encoding="utf-8"))
    assert len(rows) >= 40
    for formula, link, names in rows:
        page, _, anchor = link.partition("#")
        titles = re.findall(r"(?m)^#+ (.+)$", (folder / page).read_text(encoding="utf-8"))
        assert not anchor or anchor in [title.lower().replace(" ", "-") for title in titles], (formula, link)
        functions = re.findall(r"`(fluxloom\.[\w.]+):(\w+)`", names)
        assert functions, formula
        assert all(hasattr(importlib.import_module(at), name) for at, name in functions), formula


def test_the_page_on_how_it_works_names_files_that_exist() -> None:
    page = (ROOT / "docs" / "how_it_works.md").read_text(encoding="utf-8")
    names = set(re.findall(r"(?:fluxloom|tests|docs|examples)/[\w/]+\.(?:py|toml)", page))
    assert len(names) > 60
    assert [name for name in sorted(names) if not (ROOT / name).is_file()] == []


def test_figures_name_modules_that_exist() -> None:
    """What a box stands for is there, and the files that it lists by name before a colon."""
    boxes = tomllib.loads((ROOT / "docs" / "figures" / "rooms.toml").read_text(encoding="utf-8"))["figures"]
    for box in (box for figure in boxes.values() for box in figure):
        assert [name for name in box["modules"] if not exists(f"fluxloom.{name}")] == []
        rooms = [room for name in box["modules"] if (room := ROOT / "fluxloom" / name.replace(".", "/")).is_dir()]
        lists = [part.split(":")[0] for line in box["text"] for part in re.split(r" {3,}", line) if ":" in part]
        for name in (name.rstrip("/") for part in lists for name in part.split(", ") if rooms):
            assert name == "..." or any(list(room.glob(name)) + list(room.glob(f"{name}.py")) for room in rooms), name


def exists(name: str) -> bool:
    """Say whether a dotted name is that of a module, or of what is in one."""
    words = name.split(".")
    for count in range(len(words), 0, -1):
        try:
            found = importlib.import_module(".".join(words[:count]))
        except ModuleNotFoundError:
            continue
        for word in words[count:]:
            found = getattr(found, word, None) or getattr(found, "__annotations__", {}).get(word)
        return found is not None
    return False


def test_every_extra_is_on_the_page_on_installing() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    rows = re.findall(r"(?m)^\| (`.*?`) \|", (ROOT / "docs" / "start" / "install.md").read_text(encoding="utf-8"))
    assert set(re.findall(r"\w+", " ".join(rows))) == set(project["optional-dependencies"])
