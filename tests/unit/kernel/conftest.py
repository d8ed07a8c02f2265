"""Kernels written as text: saved to a module file, so that `inspect` finds their source."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from fluxloom_lab.attack.loops.text import load_module

Loader = Callable[[str], ModuleType]


@pytest.fixture
def load(tmp_path: Path) -> Loader:
    """Load the text of a module that follows `HEADER`."""
    numbers = itertools.count()
    return lambda text: load_module(tmp_path, text, f"module_{next(numbers)}")
