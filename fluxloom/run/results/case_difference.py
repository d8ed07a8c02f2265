"""Which keys of two cases differ and make them different flows: what outputs, monitors and machines do not."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

__all__ = ["case_differences", "monitor_differences", "output_differences"]

_MONITORS = ("forces", "gauges", "history", "lines", "movie", "probes", "spectra", "statistics", "stop")
"""Tables of what keeps numbers while a run advances."""

_OUTPUTS = (*_MONITORS, "output", "patch_flow", "slices", "snapshots", "surface", "walls")

_FREE_TABLES = frozenset({*_OUTPUTS, "checkpoint", "guards", "partition"})
"""Outputs, monitors, and how the mesh is divided."""

_FREE_KEYS = {
    "case": frozenset({"name"}),
    "run": frozenset({
        "device", "fused", "iterations", "overlap", "ranks", "report_every", "schedule", "threads", "time",
        "transport", "tune",
    }),
    "time": frozenset({"residual_drop", "end", "steady"}),
}  # fmt: skip
"""The machine, how loops run on it, ends and targets."""

_NOTHING = object()


def case_differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Return the keys of two cases that differ so that one cannot go on from the other.

    What may differ, in every solver: the name; outputs and monitors; device, threads, ranks and how loops run on them;
    the number of iterations, ends and targets.

    Parameters
    ----------
    before, now
        Tables by name, as ``CaseModel.model_dump()`` returns them; also as JSON gives them back.

    Returns
    -------
    list of str
        ``"table.key: was A, is B"`` for each of them; empty: the cases are the same.
    """
    old, new = dict(_lines(before)), dict(_lines(now))
    return [
        f"{key}: was {_text(old.get(key, _NOTHING))}, is {_text(new.get(key, _NOTHING))}"
        for key in dict.fromkeys([*new, *old])
        if old.get(key, _NOTHING) != new.get(key, _NOTHING)
    ]


def monitor_differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Return the names of the tables of monitors that differ: what is new in them has no values from before."""
    return _different(before, now, _MONITORS)


def output_differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Return the names of the tables of outputs and monitors that differ."""
    return _different(before, now, _OUTPUTS)


def _different(before: Mapping[str, Any], now: Mapping[str, Any], names: Sequence[str]) -> list[str]:
    old, new = (json.loads(json.dumps(case, default=str)) for case in (before, now))
    return [name for name in names if old.get(name) != new.get(name)]



def _lines(case: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield each key that matters, with its value as JSON has it."""
    for name, table in json.loads(json.dumps(case, default=str)).items():
        if name in _FREE_TABLES or table is None:
            continue
        free = _FREE_KEYS.get(name, ())
        yield from _flat(name, {k: v for k, v in table.items() if k not in free} if isinstance(table, dict) else table)


def _flat(key: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict) and value.keys() == {"type"}:
        value = value["type"]  # a choice without numbers is as good as its name
    if isinstance(value, dict):
        for name, item in value.items():
            yield from _flat(f"{key}.{name}", item)
    elif isinstance(value, list) and any(isinstance(item, dict) for item in value):
        for k, item in enumerate(value, 1):
            yield from _flat(f"{key}[{k}]", item)
    else:
        yield key, value


def _text(value: Any) -> str:
    return "not there" if value is _NOTHING else json.dumps(value)
