"""What the tests of the checking mode share: where faults are planted, and the error that has to be theirs."""

from __future__ import annotations

import linecache
import sys
from collections.abc import Callable
from typing import Any

import pytest

import fluxloom as fl
from fluxloom.core.errors import LoopCheckError
from tests.conformance.harness import MARKS

N = 200
BAD = 37
"""The first element with a fault; number 150 has one too."""
DEVICES = [pytest.param("reference"), *(pytest.param(d, marks=m) for d, m in MARKS.items())]


def planted(a: fl.Dat, value: Any) -> None:
    """Let two elements have a value."""
    values = a.read()
    values[[BAD, 150]] = value
    a.write(values)


def found(call: Callable[[], Any], what: str, element: int, mark: str = "# fault") -> LoopCheckError:
    """Return the error of a call, which has to be that of the fault."""
    with pytest.raises(LoopCheckError) as caught:
        call()
    error = caught.value
    assert what in error.what, error
    assert error.element == element, error
    assert error.filename == sys._getframe(1).f_code.co_filename
    assert mark in linecache.getline(error.filename, error.line), error
    assert error.loop in str(error)
    assert f"{error.filename}:{error.line}" in str(error)
    return error
