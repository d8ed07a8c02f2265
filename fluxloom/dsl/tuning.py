"""The tuning file: the best schedule found for a kernel on a device at a size."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from tempfile import NamedTemporaryFile

from fluxloom.core.errors import FluxloomError
from fluxloom.dsl.schedule import Schedule
from fluxloom.toolchain import open_cache

__all__ = ["TuningFile", "tuning_key"]


def tuning_key(digest: str, device: str, size: int, threads: int) -> str:
    """Return the key of a loop: kernel digest, device, and size class (a power of two)."""
    return f"{digest[:16]}:{sha256(device.encode()).hexdigest()[:8]}:t{threads}:2^{max(0, size - 1).bit_length()}"


class TuningFile:
    """Schedules by key, kept as JSON.

    Parameters
    ----------
    path
        The file; by default ``FLUXLOOM_TUNING``, else ``tuning.json`` in the cache directory. The value
        ``off`` of ``FLUXLOOM_TUNING`` disables reading and writing. Files can be copied between machines
        of the same kind.
    """

    def __init__(self, path: str | Path | None = None) -> None:
        chosen = str(path) if path is not None else os.environ.get("FLUXLOOM_TUNING", "")
        self.enabled = chosen != "off"
        self.path = Path(chosen) if chosen and self.enabled else open_cache().folder / "tuning.json"

    def entries(self) -> dict[str, dict[str, object]]:
        """Return everything recorded.

        Raises
        ------
        FluxloomError
            If the file is not readable JSON; the message says how to start anew.
        """
        if not self.enabled or not self.path.exists():
            return {}
        try:
            return json.loads(self.path.read_text())
        except (OSError, ValueError) as error:
            raise FluxloomError(
                f"tuning file {self.path} cannot be read ({error}); delete it, or set FLUXLOOM_TUNING=off"
            ) from error

    def get(self, key: str) -> Schedule | None:
        """Return the recorded schedule of a loop, if any."""
        entry = self.entries().get(key)
        return Schedule(**entry["schedule"]) if entry else None  # type: ignore[arg-type]

    def put(self, key: str, name: str, schedule: Schedule, seconds: float) -> None:
        """Record a schedule; the file is replaced in one step."""
        if not self.enabled:
            return
        entries = self.entries()
        entries[key] = {"loop": name, "seconds": seconds, "schedule": asdict(schedule)}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with NamedTemporaryFile("w", dir=self.path.parent, suffix=".tmp", delete=False) as handle:
            json.dump(entries, handle, indent=1, sort_keys=True)
        os.replace(handle.name, self.path)

    def clear(self) -> None:
        """Forget everything."""
        self.path.unlink(missing_ok=True)
