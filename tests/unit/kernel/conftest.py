"""Kernels written as text: saved to a module file, so that `inspect` finds their source."""

from __future__ import annotations

import importlib.util
import itertools
import textwrap
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

HEADER = """\
import math
import numpy as np
from fluxloom.kernel import intrinsics as fl
from fluxloom.core.access import RW, Const, Inc, Max, Min, Read, Write
from fluxloom.kernel import func, kernel
"""

Loader = Callable[[str], ModuleType]


def load_module(folder: Path, text: str, name: str = "module") -> ModuleType:
    path = folder / f"{name}.py"
    path.write_text(HEADER + textwrap.dedent(text))
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def load(tmp_path: Path) -> Loader:
    """Load the text of a module that follows `HEADER`."""
    numbers = itertools.count()
    return lambda text: load_module(tmp_path, text, f"module_{next(numbers)}")
