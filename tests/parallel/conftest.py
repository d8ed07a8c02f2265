"""Fixtures of the tests on several ranks."""

from __future__ import annotations

import pytest

from tests.parallel.launch import starter


@pytest.fixture(scope="session")
def launcher() -> object:
    """Return the launcher of the MPI library; skip without it."""
    found = starter()
    if isinstance(found, str):
        pytest.skip(found)
    return found
