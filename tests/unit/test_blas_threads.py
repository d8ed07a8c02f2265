"""The libraries of linear algebra that tests compare with have one thread, however many cores there are."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

_PRODUCT = """
import os
import numpy
a = numpy.ones((700, 700))
(a @ a).sum()
print(len(os.listdir("/proc/self/task")))
"""


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="threads are counted in /proc")
def test_products_of_matrices_start_no_threads():
    """As in every process of the tests, which has the environment of this one."""
    done = subprocess.run([sys.executable, "-c", _PRODUCT], capture_output=True, text=True, timeout=60, check=True)
    assert int(done.stdout) == 1
