"""Some trials of attacks, in a process of their own: native threads of this one do not survive that it is forked."""

from __future__ import annotations

import subprocess
import sys

from tests.source_tree import ROOT


def attacked(group: str, *options: str, seconds: float = 300.0) -> None:
    """Run ``fluxloom lab`` for a group of attacks; nothing may be found."""
    words = [sys.executable, "-m", "fluxloom_lab.cli.lab", group, *options]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=seconds, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
