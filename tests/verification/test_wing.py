"""The ONERA M6 wing as ``fluxloom verify`` has it, with the reference data."""

from __future__ import annotations

from pathlib import Path

import pytest

from fluxloom_lab.verify.base import DataOptions
from fluxloom_lab.verify.compressible.wing import WingVerification

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"


@pytest.mark.long
@pytest.mark.skipif(not (SHARED / "onera_m6").is_dir(), reason="the reference data are not here")
def test_without_friction() -> None:
    """Lift, drag and six shocks on 37 k hexahedra."""
    checks = list(WingVerification().run(DataOptions(data=SHARED), lambda line: None))
    assert len(checks) == 11
    assert [check.name for check in checks if not check.ok] == []
