"""Errors, dtypes, layouts, the registry."""

from __future__ import annotations

from fractions import Fraction
from importlib.metadata import EntryPoint

import numpy as np
import pytest

from fluxloom.core import errors
from fluxloom.core.access import Access, Read
from fluxloom.core.dtypes import FLOAT32, SCALARS, Blocked, padded, scalar
from fluxloom.core.errors import CompileError, DatError, FluxloomError, KernelError, did_you_mean
from fluxloom.core.registry import Registry


def test_every_error_is_one_of_ours() -> None:
    kinds = [getattr(errors, name) for name in errors.__all__ if name != "did_you_mean"]
    assert all(issubclass(kind, FluxloomError) for kind in kinds)


def test_messages() -> None:
    text = str(KernelError("no", filename="a.py", line=3, column=2, source_line="x = y", hint="try"))
    assert text == "a.py:3: no\n    x = y\n      ^\nhint: try"
    assert str(CompileError("no", source_path="/a.c", log="bad")) == "no\nsource: /a.c\ncompiler output:\nbad"
    assert did_you_mean("gather", ["gather1", "serial"]) == "; did you mean 'gather1'?"
    assert did_you_mean("zzz", ["gather"]) == ""


def test_access() -> None:
    assert [a.reads for a in Access] == [True, False, True, True, True, True]
    assert [a.writes for a in Access] == [False, True, True, True, True, True]
    assert [a for a in Access if a.reduces] == [Access.INC, Access.MIN, Access.MAX]
    with pytest.raises(NotImplementedError):
        Read()[0]


def test_scalars() -> None:
    for name, item in SCALARS.items():
        assert scalar(name) is item
        assert item.numpy == np.dtype(name)
        assert item.numpy.itemsize == item.size
        assert item.floating == (item.numpy.kind == "f")
    assert scalar(np.float32) is FLOAT32
    assert scalar(FLOAT32) is FLOAT32
    with pytest.raises(DatError, match="'uint64' cannot be stored; use one of float64"):
        scalar("uint64")


def test_layouts() -> None:
    assert [padded(n) for n in (0, 1, 64, 65)] == [64, 64, 64, 128]
    assert Blocked() == Blocked(8)
    with pytest.raises(DatError, match="must be 4, 8, 16, 32 or 64"):
        Blocked(12)


def test_registry() -> None:
    registry: Registry[int] = Registry("colour", error=DatError)
    assert registry.register("red", 1) == 1
    assert registry.decorator("blue")(2) == 2
    assert (registry["red"], "blue" in registry, list(registry), registry.names()) == (
        1,
        True,
        ["red", "blue"],
        ["blue", "red"],
    )
    with pytest.raises(DatError, match="colour 'red' is registered twice"):
        registry.register("red", 3)
    with pytest.raises(DatError, match=r"unknown colour 'rad'; did you mean 'red'\? \(known: blue, red\)"):
        registry["rad"]


def test_registry_makes_choices_when_they_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name is known before its choice is imported; what others declare is loaded in the same way."""
    registry: Registry[object] = Registry("colour", group="colours", error=DatError)
    registry.later("grey", "fractions:Fraction")
    registry.later("none", "fluxloom.no_such_module:Grey")
    entry = EntryPoint("white", "fractions:Fraction.from_float", "colours")
    broken = EntryPoint("black", "fluxloom.no_such_module:BLACK", "colours")
    monkeypatch.setattr("fluxloom.core.registry.entry_points", lambda group: [entry, broken])
    assert ("grey" in registry, list(registry)) == (True, ["grey", "none"])
    assert registry.names() == ["black", "grey", "none", "white"]
    with pytest.raises(DatError, match="registered twice"):
        registry.register("grey", 1)
    assert registry["grey"] is registry["grey"]
    assert registry["grey"] == 0
    assert registry["white"](0.5) == 0.5  # type: ignore[operator]
    for name in ("black", "none", "none"):
        with pytest.raises(ModuleNotFoundError):
            registry[name]
    with pytest.raises(DatError, match=r"unknown colour 'gray'; did you mean 'grey'\? \(known: black, grey, none"):
        registry["gray"]


def test_registry_imports_choices_when_they_are_asked_for() -> None:
    """One may come by itself with its module, but no other in its place."""
    registry: Registry[object] = Registry("colour", error=DatError)
    for name in ("half", "third", "fourth"):
        registry.place(name, "fractions:Fraction")
    assert registry["half"] is Fraction
    assert registry.register("third", Fraction) is registry["third"] is Fraction
    for name in ("third", "fourth"):
        with pytest.raises(DatError, match="registered twice"):
            registry.register(name, int)
