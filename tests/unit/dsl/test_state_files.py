"""Files of states: what does not fit is refused, in words."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.comm import detect
from fluxloom.core.errors import CheckpointError
from fluxloom.dsl.checkpoint.state import State, StateFile, write_state

pytest.importorskip("h5py")


def test_what_does_not_fit_is_refused(tmp_path: Path) -> None:
    ctx, path = fl.Context("reference"), tmp_path / "state.h5"
    cells, more = ctx.set(4, "cells"), ctx.set(5, "more")
    u, g = ctx.dat(cells, np.arange(8.0).reshape(4, 2), "u"), ctx.scalar([1.0, 2.0], "g")
    write_state(path, detect(), State({"u": u}, {"g": g}, {}, {}), {})
    file = StateFile(path, detect())
    again, total = ctx.dat(cells, shape=(2,)), ctx.scalar([0.0, 0.0])
    file.load("u", again)
    file.load("g", total)
    np.testing.assert_array_equal(again.read(), u.read())
    np.testing.assert_array_equal(file.read("u"), u.read())
    np.testing.assert_array_equal(total.value, [1.0, 2.0])
    for key, item, words in (
        ("v", again, "there is no 'v' in the file"),
        ("u", ctx.dat(cells), r"'u' has float64 \(\), in the file float64 \(2,\)"),
        ("u", ctx.dat(cells, shape=(2,), dtype="float32"), r"'u' has float32 \(2,\)"),
        ("u", ctx.dat(more, shape=(2,)), "'u' has 5 elements, in the file 4"),
        ("g", ctx.scalar(0.0), r"global 'g' has the shape \(\), in the file \(2,\)"),
        ("h", ctx.scalar(0.0), r"global 'h' has the shape \(\), in the file None"),
    ):
        with pytest.raises(CheckpointError, match=words):
            file.load(key, item)
    with pytest.raises(CheckpointError, match="it has no 'v'"):
        file.read("v")
    assert file.misfit("u", None) == "there is no 'u' now"
    file.close()
