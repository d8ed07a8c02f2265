"""The channel example: it is correct, and far behind the inlet the flow is Poiseuille's."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fluxloom.cases.files.loading import load_case
from fluxloom.dsl.context import Context

CASE = Path(__file__).resolve().parents[2] / "examples" / "channel2d.toml"


@pytest.mark.long
def test_developed_flow() -> None:
    """``u = 3/2 (1 - y^2)`` and ``dp/dx = -3 nu`` at the outlet, for a mean speed of 1."""
    case, application = load_case(CASE)
    runner = application.build(case, Context("cpu", threads=1, tuning=False))
    for _ in range(700):
        runner.advance()
    fields = {name: values.reshape(24, 96) for name, values in runner.fields().items()}
    y = (np.arange(24) + 0.5) / 12 - 1
    assert fields["u"][:, -6] == pytest.approx(1.5 * (1 - y**2), abs=0.005)
    assert fields["u"][:, -6].mean() == pytest.approx(1.0, rel=1e-3)
    assert np.diff(fields["p"][12, -16:-4]) * 12 == pytest.approx(-0.15, rel=0.005)
