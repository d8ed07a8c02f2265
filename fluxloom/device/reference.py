"""The reference device: kernels run as the Python functions they are. The oracle of every other device."""

from __future__ import annotations

import platform

from fluxloom.device.base import Buffer, Device

__all__ = ["ReferenceDevice"]


class ReferenceDevice(Device):
    """Runs each kernel as plain Python, element by element, in order."""

    name = "reference"
    native = False

    def allocate(self, nbytes: int, stagger: int = 0) -> Buffer:
        """Return a zeroed buffer in host memory."""
        return Buffer(nbytes, stagger=stagger)

    def describe(self) -> str:
        """Return the Python that runs the kernels."""
        return f"Python {platform.python_version()}"
