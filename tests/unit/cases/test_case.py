"""Case files: what is accepted, and what every mistake is answered with."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from fluxloom.cases.airfoil import AirfoilCase
from fluxloom.cases.files.errors import key_lines, read_toml
from fluxloom.cases.files.loading import load_case
from fluxloom.core.errors import CaseError
from fluxloom.solvers.airfoil.flow import AirfoilConstants

Write = Callable[..., Path]


def message(path: Path) -> str:
    with pytest.raises(CaseError) as caught:
        load_case(path)
    return str(caught.value)


def test_defaults(case_file: Write) -> None:
    case, application = load_case(case_file())
    assert application.name == "airfoil"
    assert isinstance(case, AirfoilCase)
    assert (case.mesh.i, case.mesh.j, case.run.iterations) == (8, 12, 20)
    assert (case.run.device, case.run.schedule, case.run.fused) == ("cpu", "auto", True)
    assert case.flow.mach == AirfoilConstants().mach
    assert case.directory == Path("results/tiny")


def test_integers_serve_as_numbers(case_file: Write) -> None:
    case, _ = load_case(case_file(("cfl = 0.9", "cfl = 1")))
    assert isinstance(case, AirfoilCase)
    assert case.flow.cfl == 1.0


@pytest.mark.parametrize(
    ("old", "new", "line", "expected"),
    [
        ("iterations = 20", "iteratons = 20", 14, "run.iteratons: [run] has no key 'iteratons'; did you mean 'itera"),
        ("cfl = 0.9", "mahc = 0.4", 11, "flow.mahc: [flow] has no key 'mahc'; did you mean 'mach'?"),
        ("cfl = 0.9", "iterations = 5", 11, "[flow] has no key 'iterations'; it belongs to [run]"),
        ("[flow]", "[flwo]", 10, "flwo: the file has no key 'flwo'; did you mean 'flow'?"),
        ("i = 8", "i = 8.5", 7, "mesh.i: must be a whole number, got 8.5"),
        ("i = 8", "i = 8.0", 7, "mesh.i: must be a whole number, got 8.0; write 8"),
        ("i = 8", "i = true", 7, "mesh.i: must be a whole number, got true"),
        ("i = 8", 'i = "8"', 7, 'mesh.i: must be a whole number, got "8"'),
        ("i = 8", "i = 1", 7, "mesh.i: must be at least 2, got 1"),
        ("i = 8", "i = 99999999", 7, "mesh.i: must be at most 20000, got 99999999"),
        ("i = 8", 'type = "arifoil"', 7, "unknown value \"arifoil\"; did you mean 'airfoil'? (allowed: airfoil)"),
        ("cfl = 0.9", "cfl = nan", 11, "flow.cfl: must be a finite number, got nan"),
        ("cfl = 0.9", "cfl = inf", 11, "flow.cfl: must be a finite number, got inf"),
        ("cfl = 0.9", "cfl = 0", 11, "flow.cfl: must be greater than 0, got 0"),
        ("cfl = 0.9", "mach = true", 11, "flow.mach: must be a number, got true"),
        ("threads = 1", "threads = -1", 16, "run.threads: must be at least 0, got -1"),
        ("threads = 1", 'device = "cup"', 16, "run.device: unknown device 'cup'; did you mean 'cpu'? (allowed: cpu"),
        ("threads = 1", "device = 1", 16, 'run.device: must be text in quotes ("..."), got 1'),
        ("threads = 1", "fused = 1", 16, "run.fused: must be true or false, got 1"),
        ("threads = 1", 'schedule = "gathr"', 16, "run.schedule: unknown schedule 'gathr'; did you mean 'gather'?"),
        ("threads = 1", 'schedule = "gather, blok=4"', 16, "no option 'blok'; did you mean 'block'?"),
        ("threads = 1", 'schedule = "gather, block=x"', 16, "block must be a whole number, got 'x'"),
        ("threads = 1", "[output]\nformat = \"vtkhd\"", 17,
         "output.format: unknown format 'vtkhd'; did you mean 'vtkhdf'? (allowed: auto"),
        ("threads = 1", "[output]\nformat = \"su2\"", 17, "output.format: unknown format 'su2'"),
        ("threads = 1", "[output]\nformat = \"vtu\"\nvtk = \"vtu\"", 16, "output: vtk is called format now"),
        ('name = "tiny"', "name = 3", 3, 'case.name: must be text in quotes ("..."), got 3; write "3"'),
        ('solver = "airfoil"', 'solver = "airfol"', 4, "unknown solver 'airfol'; did you mean 'airfoil'? (allowed: "),
        ('solver = "airfoil"', 'solvr = "airfoil"', 2, "case.solver: the key is missing; is it misspelt as 'solvr'?"),
    ],
)  # fmt: skip
def test_mistakes(case_file: Write, old: str, new: str, line: int, expected: str) -> None:
    path = case_file((old, new))
    text = message(path)
    assert expected in text
    assert f"{path}:{line}: " in text


def test_all_mistakes_at_once(case_file: Write) -> None:
    text = message(case_file(("i = 8", "i = 1"), ("cfl = 0.9", "cfl = nan"), ("threads", "treads")))
    lines = text.splitlines()
    assert lines[0].endswith("case.toml: 3 mistakes")
    assert [":7: mesh.i" in lines[1], ":11: flow.cfl" in lines[2], ":16: run.treads" in lines[3]] == [True] * 3


def test_missing_tables(case_file: Write) -> None:
    assert "there is no table [case]" in message(case_file(text="x = 1\n"))
    assert "is it misspelt as 'cas'" in message(case_file(text="[cas]\n"))
    text = message(case_file(text='[case]\nname = "a"\nsolver = "airfoil"\n'))
    assert "there is no end: give run.iterations, the steps of the run" in text
    text = message(case_file(text='[case]\nname = "a"\nsolver = "airfoil"\nrun.iterations = 3\n'))
    assert "[case] has no key 'run'; [run] is a table of its own" in text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[case]\nname = tiny\n", ":2: not valid TOML: invalid value\n    name = tiny\n           ^\nhint: text"),
        ("[case\n", ":1: not valid TOML"),
        ("a = 1\na = 2\n", ":2: not valid TOML: cannot overwrite a value"),
        ("a = [1,\n", "not valid TOML"),
    ],
)  # fmt: skip
def test_syntax(case_file: Write, text: str, expected: str) -> None:
    assert expected in message(case_file(text=text))


def test_files_that_are_none(tmp_path: Path, case_file: Write) -> None:
    path = case_file()
    assert "no such case file; did you mean 'case.toml'? (there: case.toml)" in message(tmp_path / "caze.toml")
    assert "does not exist" in message(tmp_path / "nowhere" / "case.toml")
    assert "is a directory" in message(tmp_path)
    path.write_bytes(b"\xff\xfe")
    assert "not a text file" in message(path)


def test_command_line_values_are_checked(case_file: Write) -> None:
    case, _ = load_case(case_file())
    assert case.with_run(iterations=3, device=None).run.iterations == 3
    with pytest.raises(CaseError, match=r"command line: run\.device: unknown device 'cud'"):
        case.with_run(device="cud")


def test_profiles_on_the_command_line(tmp_path: Path) -> None:
    """What the command line changes leaves the tables of values as they are."""
    (tmp_path / "y.csv").write_text("0 0\n1 2\n")
    text = f'value = {{ type = "profile", file = "{tmp_path / "y.csv"}", along = "r", centre = [0.5, 0.0] }}'
    (tmp_path / "wall.toml").write_text(
        '[case]\nname = "wall"\nsolver = "diffusion"\n[diffusion]\nconductivity = 1.0\n[run]\niterations = 1\n'
        f'[boundary.xmin]\ntype = "given"\n{text}\n'
    )
    case = load_case(tmp_path / "wall.toml")[0]
    assert case.with_run(threads=2).model_dump() == case.model_dump() | {"run": case.run.model_dump() | {"threads": 2}}


def test_lines_of_keys(tmp_path: Path) -> None:
    text = 'top = 1\n[a]\nx = """\ny = 2\n"""\nz.w = 3 # [no]\n[b."c d"]\n"e" = [\n  1,\n]\nf = 1\n'
    assert key_lines(text) == {
        ("top",): 1, ("a",): 2, ("a", "x"): 3, ("a", "z"): 6, ("a", "z", "w"): 6,
        ("b",): 7, ("b", "c d"): 7, ("b", "c d", "e"): 8, ("b", "c d", "f"): 11,
    }  # fmt: skip
    path = tmp_path / "x.toml"
    path.write_text(text)
    document = read_toml(path)
    assert document.where(("a", "z", "w")) == f"{path}:6"
    assert document.where(("a", "unknown")) == f"{path}:2"
    assert document.where(("unknown",)) == str(path)
