"""The command ``fluxloom``: one line for an expected error, a traceback for a mistake of ours."""

from __future__ import annotations

import gc
import sys
from collections.abc import Sequence

from fluxloom.core.advice import one_line_warnings
from fluxloom.core.errors import FluxloomError, OutOfMemory

__all__ = ["main"]

ERROR_CODE = 2
"""Exit status after an error that the message explains."""

_COLLECT = (20_000, 10, 10)
"""When a process of ours looks for garbage: modules and kernels are a hundred thousand objects that stay."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit status.

    Parameters
    ----------
    arguments
        By default those of the process.

    Returns
    -------
    int
        0: done; 1: a run did not converge or diverged, or a check of ``verify`` or ``doctor`` failed; 2: an error
        the message explains, before anything was changed; 3: outputs of a run were lost; 130, 143: interrupted.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    if arguments is None:
        gc.set_threshold(*_COLLECT)
    try:
        from fluxloom.app.cli.verbs import build
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] not in ("typer", "rich", "pydantic", "pydantic_core", "scipy"):
            raise
        print(f"fluxloom: the command line needs {error.name}: pip install 'fluxloom[app]'", file=sys.stderr)
        return ERROR_CODE
    from fluxloom.app.cli.console import show_error

    try:
        with one_line_warnings():
            build(words)(args=words, prog_name="fluxloom")
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    except FluxloomError as error:
        show_error(error)
        return error.exit_code
    except MemoryError as error:
        show_error(OutOfMemory(f"the memory of this machine is exhausted: {error}"))
        return ERROR_CODE
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
