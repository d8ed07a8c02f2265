"""Samples for trials: made once, by a process of its own, so that no threads of native code are in this one."""

from __future__ import annotations

import os
import pickle
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any

from fluxloom_lab.attack.files.sample import Sample

__all__ = ["made", "samples"]

Maker = Callable[[Path], Iterable[Sample]]


@lru_cache
def samples(maker: Maker) -> tuple[Sample, ...]:
    """Return what a maker of samples yields."""
    folder = Path(tempfile.mkdtemp(prefix="fluxloom-samples-"))
    try:
        return made(lambda: tuple(maker(folder)), folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def made(work: Callable[[], Any], folder: Path) -> Any:
    """Return what a function returns in a forked process that works in a folder.

    Raises
    ------
    RuntimeError
        Where the function raises.
    """
    kept = folder / ".made"
    if not (child := os.fork()):
        status = 1
        try:
            os.chdir(folder)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                kept.write_bytes(pickle.dumps(work()))
            status = 0
        except BaseException:
            import traceback

            traceback.print_exc()
        finally:
            os._exit(status)
    if os.waitpid(child, 0)[1]:
        raise RuntimeError("samples could not be made")
    return pickle.loads(kept.read_bytes())
