"""Figures of matplotlib without a window system."""

from __future__ import annotations

import os
import sys
from typing import Any

from fluxloom.core.errors import DeviceUnavailable

__all__ = ["figure_classes"]

_BACKEND = "MPLBACKEND"


def figure_classes() -> tuple[Any, Any]:
    """Return figure and canvas classes, which draw files whatever backend the environment names for windows.

    Raises
    ------
    DeviceUnavailable
        If matplotlib is not installed.
    """
    named = os.environ.get(_BACKEND)
    if named is not None and "matplotlib" not in sys.modules:
        os.environ[_BACKEND] = "agg"  # a name that matplotlib does not know would end its import
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise DeviceUnavailable(
            "pictures need matplotlib, which is not installed: pip install 'fluxloom[viz]' (or run with --no-picture)"
        ) from None
    finally:
        if named is not None:
            os.environ[_BACKEND] = named
    return Figure, FigureCanvasAgg
