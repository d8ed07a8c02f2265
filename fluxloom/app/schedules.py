"""Schedules as text, for case files and the command line."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from fluxloom.core.errors import CaseError, did_you_mean
from fluxloom.dsl.schedule import RACE_STRATEGIES, Schedule

__all__ = ["parse_schedule", "schedule_text"]

_WORDS = {"true": True, "false": False, "none": None}


def parse_schedule(text: str) -> Schedule:
    """Return the schedule that a text describes.

    Parameters
    ----------
    text
        ``"auto"``, or a race strategy, or ``key=value`` pairs of `Schedule`, separated by commas:
        ``"gather, block=256, lanes=8"``, ``"deterministic=plan"``.

    Raises
    ------
    CaseError
        For unknown keys and values that are not numbers where numbers belong.
    PlanError
        For strategies and values that `Schedule` refuses.
    """
    known = [f.name for f in fields(Schedule)]
    values: dict[str, Any] = {}
    for number, part in enumerate(item.strip() for item in text.split(",")):
        key, equals, value = (word.strip() for word in part.partition("="))
        if not equals:
            if number or not part:
                raise CaseError(f"schedule {text!r}: write a strategy first, then key=value pairs, comma-separated")
            key, value = "strategy", "" if part == "auto" else part
            if value and value not in RACE_STRATEGIES:
                allowed = ("auto", *RACE_STRATEGIES)
                hint = did_you_mean(value, allowed)
                raise CaseError(f"unknown schedule {value!r}{hint} (allowed: {', '.join(allowed)})")
            if not value:
                continue
        if key not in known:
            hint = did_you_mean(key, known)
            raise CaseError(f"schedule {text!r}: no option {key!r}{hint} (allowed: {', '.join(known)})")
        values[key] = _value(text, key, value)
    return Schedule(**values)


def _value(text: str, key: str, value: str) -> Any:
    """Return the typed value of an option."""
    if value in _WORDS:
        return _WORDS[value]
    default = getattr(Schedule(), key)
    if isinstance(default, int) and not isinstance(default, bool):
        try:
            return int(value)
        except ValueError:
            raise CaseError(f"schedule {text!r}: {key} must be a whole number, got {value!r}") from None
    return value


def schedule_text(schedule: Schedule) -> str:
    """Return a schedule as `parse_schedule` reads it."""
    parts = [schedule.strategy] if schedule.strategy else []
    for item in fields(Schedule):
        value = getattr(schedule, item.name)
        if item.name != "strategy" and value != item.default:
            parts.append(f"{item.name}={str(value).lower()}")
    return ", ".join(parts) or "auto"
