"""Where a function ends in its file, and on which lines its nodes are, however it is laid out."""

from __future__ import annotations

import pytest

from fluxloom.core.errors import KernelError
from fluxloom.kernel import ir, walk
from fluxloom_lab.attack.loops.text import HEADER

from .conftest import Loader

SHAPE = ir.ArgShape(None, (), ir.Kind.REAL)
FIRST = HEADER.count("\n") + 1

LAYOUTS = {
    "plain": """\
@kernel
def k(a: Read, b: Write):
    b[0] = a[0]
    b[0] = 2.0 * a[0]
rest = 1
""",
    "comments, blank lines and a text at the left edge": '''\
@kernel
def k(a: Read, b: Write):
    """What it does

@ kernel: this is text
rest = 0
    """
    b[0] = a[0]

# a comment

    b[0] = 2.0 * a[0]

# the end
rest = 1
''',
    "brackets at the left edge": """\
@kernel
def k(
    a: Read,
    b: Write,
):
    b[0] = (
a[0]
)
    b[0] = 2.0 * \\
a[0]
rest = 1
""",
    "one line": """\
@kernel
def k(a: Read, b: Write): b[0] = a[0]; b[0] = 2.0 * a[0]
rest = 1
""",
    "the end of the file": """\
@kernel
def k(a: Read, b: Write):
    b[0] = a[0]
    b[0] = 2.0 * a[0]""",
    "inside a function, with tabs": """\
def make():
\t@kernel
\tdef k(a: Read, b: Write):
\t\tb[0] = a[0]
\t\tb[0] = 2.0 * a[0]
\treturn k
k = make()
""",
    "thirty lines at the left edge": "@kernel\ndef k(a: Read, b: Write):\n    b[0] = (\n"
    + "0.0 +\n" * 30
    + "a[0])\n    b[0] = 2.0 * a[0]\nrest = 1\n",
}


@pytest.mark.parametrize("text", LAYOUTS.values(), ids=LAYOUTS)
def test_the_whole_function_is_read(load: Loader, text: str):
    kernel = load(text).k
    body = kernel.lower({"a": SHAPE, "b": SHAPE}).body
    assert len(body) == 2
    value = body[1].value
    assert isinstance(value, ir.Binary)
    assert value.left == ir.Constant(ir.Kind.REAL, 2.0)
    lines = text.split("\n")
    last = max(number for number, line in enumerate(lines) if "b[0] = 2.0" in line)
    assert [statement.location.line for statement in walk(body)][-1] == FIRST + last


def test_errors_are_where_they_are(load: Loader):
    with pytest.raises(KernelError) as caught:
        load("@kernel\ndef k(\n    a: Read, b: Write,\n):\n    # first\n\n    b[0] = a[0] @ a[0]\n\n\nrest = 1\n")
    assert caught.value.line == FIRST + 6
    assert caught.value.column == 11
    assert caught.value.source_line == "    b[0] = a[0] @ a[0]"
