"""The laws of the house as numbers: none gets worse than `laws.toml` allows; and the counting and the ratchet work."""

from __future__ import annotations

from textwrap import dedent

import pytest

from tests.laws import STORED, complaints, laboratory_lines, lowered, measure, read_allowance
from tests.source_tree import LABORATORY, ROOT, read_package

STORE = """\
worse = [
    { law = "code_lines", by = 20, reason = "a new solver for everything" },
    { law = "code_lines", by = 5, reason = "and a test of it" },
    { law = "documented_percent", by = 1.0, reason = "generated code has none" },
]

[numbers]
modules_in_circles = 4
largest_circle = 2
files_over_800_lines = 0
functions_over_12_parameters = 1
code_lines = 1000
documented_percent = 94.0
typed_percent = 99.0
equations_percent = 90.0
"""
STANDS = {
    "modules_in_circles": 4, "largest_circle": 2, "files_over_800_lines": 0, "functions_over_12_parameters": 1,
    "code_lines": 1020, "documented_percent": 93.5, "typed_percent": 99.0, "equations_percent": 90.0,
}  # fmt: skip


def count(**modules: str) -> dict[str, float]:
    """Return the numbers of made-up modules; ``__`` in a keyword stands for a dot."""
    sources = {f"fluxloom.{name.replace('__', '.')}": dedent(text) for name, text in modules.items()}
    return dict(measure(sources, frozenset()).numbers)


def test_package_keeps_to_what_is_stored() -> None:
    """Nothing is worse than allowed, and what is much better is stored."""
    measured = measure(*read_package(ROOT))
    assert measured.numbers["code_lines"] > 10_000, "no modules found"
    found = complaints(measured.numbers, read_allowance(STORED.read_text(encoding="utf-8")))
    assert not found, "\n".join(found)


def test_laboratory_is_told_apart() -> None:
    """Its lines are printed, and are none of the package."""
    here, there = (measure(*read_package(ROOT, *package)).numbers["code_lines"] for package in ((), (LABORATORY,)))
    assert here > there > 10_000
    assert laboratory_lines({"code_lines": there}) == [f"lab_code_lines                 {there:>8g}"]


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("modules_in_circles", 5, "modules_in_circles is 5, 4 is allowed"),
        ("modules_in_circles", 3, "better than 4: store it"),
        ("code_lines", 1026, 'law = "code_lines", by = 1, reason'),
        ("code_lines", 400, "better than 1025: store it"),
        ("documented_percent", 92.9, "documented_percent is 92.9, 93 is allowed"),
        ("typed_percent", 99.6, "better than 99: store it"),
        ("equations_percent", 89.9, "equations_percent is 89.9, 90 is allowed"),
    ],
)
def test_ratchet_finds(name: str, value: float, expected: str) -> None:
    """What is worse is found, and what is better is to be stored."""
    assert not complaints(STANDS, read_allowance(STORE))
    (found,) = complaints(STANDS | {name: value}, read_allowance(STORE))
    assert expected in found


def test_lowering() -> None:
    """Better numbers are stored; reasons stay as long as their numbers are above what was stored before them."""
    text = lowered(STORE, STANDS | {"modules_in_circles": 2, "code_lines": 1020, "documented_percent": 95.0})
    allowance = read_allowance(text)
    assert allowance.numbers["modules_in_circles"] == 2
    assert allowance.numbers["code_lines"] == 995
    assert allowance.worse == {"code_lines": 25}
    assert allowance.numbers["documented_percent"] == 95.0
    assert not read_allowance(lowered(STORE, STANDS | {"code_lines": 900})).worse.get("code_lines")
    assert lowered(text, STANDS | {"modules_in_circles": 9}) == text


@pytest.mark.parametrize(
    "text",
    [
        STORE.replace("largest_circle = 2\n", ""),
        STORE + "unknown = 3\n",
        STORE.replace("by = 20", "by = -20"),
        STORE.replace("a new solver for everything", "because"),
        STORE.replace('law = "code_lines", by = 5', 'law = "lines", by = 5'),
    ],
)
def test_store_is_checked(text: str) -> None:
    """A law that is not there, one that nobody knows, a step down and a reason that says nothing are errors."""
    with pytest.raises(ValueError, match=r"numbers|worse"):
        read_allowance(text)


def test_circles() -> None:
    """Imports inside functions and for types count; the largest circle is found."""
    found = count(
        a="from fluxloom.b import x", b="def f():\n    from fluxloom import c", c="import fluxloom.a",
        d="if TYPE_CHECKING:\n    from .e import y", e="from fluxloom.d import z", f="from fluxloom.a import x",
    )  # fmt: skip
    assert found["modules_in_circles"] == 5
    assert found["largest_circle"] == 3


def test_functions_and_files() -> None:
    """Kernels and what they call do not count; inner functions do; self is no parameter."""
    wide = ", ".join(f"a{k}" for k in range(13))
    found = count(
        a=f"""
        def f({wide}): ...
        class A:
            def g(self, a: int):
                'Text.'
        @fl.kernel
        def k({wide}): ...
        @func
        def h({wide}): ...
        def _p(a): ...
        """,
        b="x = 1\n" * 801,
    )
    assert found["functions_over_12_parameters"] == 1
    assert found["files_over_800_lines"] == 1
    assert found["documented_percent"] == 50.0
    assert found["typed_percent"] == pytest.approx(100 / 14, abs=0.1)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", 0.0),
        ("Sums of the squares of ``res``.", 0.0),
        ("See `other = set_gradients`, ``w_j`` of cells/faces = all, ``u`` and e-mail.", 0.0),
        ("Mean, ``(a + b) / 2``.", 100.0),
        ("``x -> y``", 100.0),
        ("That is :math:`a - b`.", 100.0),
        ("Text.\n\n    .. math:: R(u)\n", 100.0),
    ],
)
def test_equations(text: str, expected: float) -> None:
    """Device code has equations, set apart, or inline with an operator; other functions do not count."""
    found = count(a=f"@kernel\ndef k(u):\n    {text!r}\ndef f():\n    'Text.'\n")
    assert found["equations_percent"] == expected
    assert count(a="@kernel\ndef k(u):\n    u = 1\n@func\ndef f():\n    '``a = b``'")["equations_percent"] == 50.0


def test_code_lines() -> None:
    """Blank lines, comments and docstrings are none; a string is, whatever its lines look like."""
    text = '''
    """Text.

    More.
    """

    # a comment
    x = """a

    # b
    """  # 4 lines

    def f(
        a,

    ):
        "Text."
        return a
    '''
    assert count(a=text)["code_lines"] == 8
