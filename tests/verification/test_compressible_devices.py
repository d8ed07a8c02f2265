"""Forces on an airfoil: a device computes those of one thread of the processor, iteration by iteration."""

from __future__ import annotations

import numpy as np
import pytest

from fluxloom.dsl.context import Context
from fluxloom_lab.verify.compressible.devices import force_history

pytestmark = pytest.mark.long


@pytest.mark.parametrize("turbulent", [False, True])
@pytest.mark.parametrize(
    "device", [pytest.param("opencl", marks=pytest.mark.opencl), pytest.param("cuda", marks=pytest.mark.cuda)]
)
def test_forces_agree(device: str, turbulent: bool) -> None:
    """A hundred iterations from uniform flow, in which the forces change by their own size."""
    here = force_history(Context(device), turbulent, 100)
    there = force_history(Context("cpu", threads=1), turbulent, 100)
    assert np.ptp(there[:, 1]) > 0.01
    assert np.abs(here - there).max() <= 1e-12 * np.abs(there).max()
