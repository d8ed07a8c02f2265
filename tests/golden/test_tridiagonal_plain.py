"""The plain function of Thomas's algorithm: its text as it was.

``pytest tests/golden --update-golden`` writes the file anew.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from fluxloom.codegen.primitive import primitive_unit
from fluxloom.linalg.direct.tridiagonal.form import Form, Lines
from fluxloom.linalg.direct.tridiagonal.plain_thomas import PlainThomas

PATH = Path(__file__).parent / "tridiagonal" / "thomas.c"


def test_source(request: pytest.FixtureRequest) -> None:
    method, form, lines = PlainThomas(2), Form(), Lines(512, 65536, 1, 1, 65536, 1)
    code = method.code(form, lines)
    text = primitive_unit(code.functions, "c", code.helpers).text
    text = text[text.index("#define W ") :]
    if request.config.getoption("--update-golden", default=False):
        PATH.write_text(text, encoding="utf-8")
    assert PATH.exists(), f"{PATH.name} is missing: run pytest tests/golden --update-golden"
    assert text == PATH.read_text(encoding="utf-8"), (
        f"{PATH.name} changed; if that is meant: pytest tests/golden --update-golden"
    )
