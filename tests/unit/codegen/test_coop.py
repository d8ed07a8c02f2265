"""Which loops over the entries of a row can be shared, and why others cannot."""

from __future__ import annotations

import pytest

import fluxloom as fl
from fluxloom import RW, Inc, Read, Write
from fluxloom.codegen.language.row_cooperation import Cooperation, cooperation
from tests.unit.codegen import coop_cases as cases
from tests.unit.codegen.coop_cases import spec_of


def found(kernel: fl.Kernel, where: str) -> dict[str, str]:
    """Return what is combined, by name, and how."""
    result = cooperation(spec_of(kernel, where))
    assert isinstance(result, Cooperation), result
    return {"_".join([a.name, *map(str, a.index)]): a.op for _, items in result.loops for a in items}


def refused(kernel: fl.Kernel, where: str) -> str:
    result = cooperation(spec_of(kernel, where))
    assert isinstance(result, str), result
    return result


# ----------------------------------------------------------------------------------------- accepted


def test_sums() -> None:
    assert found(cases.spmv, "exy") == {"total": "+"}
    assert found(cases.stored_sums, "ey2yg1") == {"y_0_0": "+", "y_0_1": "+", "z_0_0": "min", "g_0_0": "+"}
    assert found(cases.table_sums, "xt") == {"s": "+", "v_1_0": "+"}


def test_two_loops() -> None:
    result = cooperation(spec_of(cases.two_loops, "exy2yy"))
    assert isinstance(result, Cooperation)
    assert [[a.name for a in items] for _, items in result.loops] == [["mean"], ["high", "low", "r", "r"]]
    assert found(cases.two_loops, "exy2yy")["low_0_0"] == "min"


def test_forms() -> None:
    assert found(cases.forms, "ey2") == {
        "s": "+", "u": "max", "b": "+", "c": "+", "n": "+", "some": "or", "every": "and", "flag": "or",
    }  # fmt: skip
    assert found(cases.inner_sums, "exy") == {"total": "+"}
    assert found(cases.arrays, "ey") == {"bins_0": "+", "bins_1": "+", "bins_2": "+"}


def test_entries_and_targets() -> None:
    result = cooperation(spec_of(cases.entry_writes, "xeee"))
    assert result == Cooperation(((0, ()), (1, ())))
    result = cooperation(spec_of(cases.scatter, "yx"))
    assert result == Cooperation(((0, ()),), ("x",))


@fl.kernel
def scatter_first(w: Read, x: Inc):
    for j in range(len(x)):
        x[0] += w[0] * j


@fl.kernel
def scatter_apart(w: Read, x: Inc):
    for j in range(len(x)):
        x[j] += w[0]
    for j in range(1, len(x)):
        x[j] += w[0]


def test_targets_at_which_items_meet() -> None:
    for kernel, reason in (
        (scatter_first, "an iteration updates other targets of 'x' than its own"),
        (scatter_apart, "two loops deal out the updates of 'x' differently"),
    ):
        result = cooperation(spec_of(kernel, "yx"))
        assert isinstance(result, Cooperation)
        assert result.contended == reason


# ------------------------------------------------------------------------------------------ refused


@fl.kernel
def running(a: Read, e: Write):
    s = 0.0
    for j in range(len(a)):
        s += a[j]
        e[j] = s


@fl.kernel
def horner(a: Read, y: Write):
    s = 0.0
    for j in range(len(a)):
        s = s * 2.0 + a[j]
    y[0] = s


@fl.kernel
def last(a: Read, y: Write):
    s = 0.0
    for j in range(len(a)):
        s = a[j]
    y[0] = s


@fl.kernel
def mixed(a: Read, y: Write):
    s = 0.0
    for j in range(len(a)):
        s += a[j]
        s = max(s, a[j])
    y[0] = s


@fl.kernel
def difference(a: Read, y: Write):
    s = 0.0
    for j in range(len(a)):
        s = a[j] - s
    y[0] = s


@fl.kernel
def chosen(a: Read, y: Write):
    s = 0.0
    for j in range(len(a)):
        if s < 3.0:
            s += a[j]
    y[0] = s


@fl.kernel
def overwritten(a: Read, y: Write):
    y[0] = 0.0
    for j in range(len(a)):
        y[0] = a[j]


@fl.kernel
def stored_and_read(a: Read, y: Write, z: Write):
    y[0] = 0.0
    z[0] = 0.0
    for j in range(len(a)):
        y[0] += a[j]
        z[0] += y[0]


@fl.kernel
def next_entry(x: Read, e: RW):
    for j in range(len(x)):
        if j > 0:
            e[j] = e[j - 1] + x[j]


@fl.kernel
def entry_outside(x: Read, e: Inc):
    if len(x) > 0:
        e[0] += 1.0
    for j in range(len(x)):
        e[j] += x[j]


@fl.kernel
def entry_read_outside(x: Read, e: RW, y: Write):
    for j in range(len(x)):
        e[j] = x[j]
    y[0] = e[0] if len(x) > 0 else 0.0


@fl.kernel
def two_deals(x: Read, e: RW):
    for j in range(len(x)):
        e[j] = x[j]
    for j in range(1, len(x)):
        e[j] = e[j] * 2.0


@fl.kernel
def conditional_loop(x: Read, y: Write, z: Read):
    s = 0.0
    if z[0] > 0.0:
        for j in range(len(x)):
            s += x[j]
    y[0] = s


@fl.kernel
def backwards(x: Read, y: Write):
    s = 0.0
    for j in range(len(x) - 1, -1, -1):
        s += x[j]
    y[0] = s


@fl.kernel
def computed_component(x: Read, y: Inc):
    for j in range(len(x)):
        y[j % 2] += x[j]


@fl.kernel
def no_loop(x: Read, y: Write):
    y[0] = x[0] if len(x) > 0 else 0.0


@fl.kernel
def array_read(a: Read, y: Write):
    bins = [0.0, 1.0]
    for j in range(len(a)):
        k = int(a[j]) % 2
        bins[k] += bins[1 - k]
    y[0] = bins[0]


@pytest.mark.parametrize(
    ("kernel", "where", "reason"),
    [
        (running, "ee", "'s' is read in the loop that adds to it"),
        (horner, "ey", "'s' is neither set anew for each entry nor a sum, a minimum or a maximum"),
        (last, "ey", "the value of 's' from the last entry is used after the loop"),
        (mixed, "ey", "'s' is combined in different ways: + and max"),
        (difference, "ey", "'s' is neither set anew for each entry nor a sum, a minimum or a maximum"),
        (chosen, "ey", "'s' is read in the loop that adds to it"),
        (overwritten, "ey", "'y' is neither set anew for each entry nor a sum, a minimum or a maximum"),
        (stored_and_read, "eyy", "'y' is read in the loop that adds to it"),
        (next_entry, "xe", "an iteration uses other entries of 'e' than its own"),
        (entry_outside, "xe", "'e' is changed outside the loops over its entries"),
        (entry_read_outside, "xey", "'e' is read outside the loop that changes it"),
        (two_deals, "xe", "two loops deal out the entries of 'e' differently"),
        (conditional_loop, "xyy", "a loop over the entries of a row is inside a condition or another loop"),
        (backwards, "xy", "a loop over the entries of a row does not run upwards to their number"),
        (computed_component, "xy2", "'y' is changed at a computed component"),
        (no_loop, "xy", "the kernel has no loop over the entries of a row"),
        (array_read, "ey", "'bins' is neither set anew for each entry nor a sum, a minimum or a maximum"),
    ],
)
def test_reasons(kernel: fl.Kernel, where: str, reason: str) -> None:
    assert refused(kernel, where) == reason
