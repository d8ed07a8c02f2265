"""Dats and globals: values in every layout, views without copies, versions, errors."""

from __future__ import annotations

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.core.errors import DatError

DTYPES = ["float64", "float32", "float16", "int64", "int32", "uint8"]
LAYOUTS = {"aos": fl.AoS(), "soa": fl.SoA(), **{f"blocked{n}": fl.Blocked(n) for n in (4, 8, 16, 32, 64)}}
STORES = {
    "csr": fl.CSR(),
    "ell": fl.ELL(),
    "ell-row": fl.ELL(False),
    "sliced4": fl.SlicedELL(4),
    "sliced32-row": fl.SlicedELL(32, False),
}


@pytest.fixture
def ctx() -> fl.Context:
    return fl.Context("reference")


def sets(ctx: fl.Context) -> dict[str, fl.Set]:
    points = ctx.set(37, "points")
    offsets = np.concatenate([[0], np.cumsum(np.arange(37) % 5)])
    out = {"plain": points, "empty": ctx.set(0, "empty"), "grid1": ctx.grid((9,), ghost=2), "grid2": ctx.grid((4, 5))}
    out["ghosts"] = ctx.grid((3, 4, 5), ghost=(1, 0, 2))
    for name, store in STORES.items():
        out[name] = ctx.ragged(points, points, offsets, np.arange(offsets[-1]) % 37, name, store).entries
    return out


def numbers(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    return (np.arange(np.prod(shape, dtype=int)) % 200).reshape(shape).astype(dtype)


@pytest.mark.parametrize("layout", list(LAYOUTS))
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (1,), (3,), (2, 3)])
def test_round_trip(ctx: fl.Context, layout: str, dtype: str, shape: tuple[int, ...]) -> None:
    for over in sets(ctx).values():
        values = numbers((*over.shape, *shape), dtype)
        dat = ctx.dat(over, values, layout=LAYOUTS[layout])
        assert (dat.scalar.name, dat.shape) == (dtype, shape)
        read = dat.read()
        assert read.dtype == values.dtype
        assert not np.shares_memory(read, dat.buffer.host())
        np.testing.assert_array_equal(read, values)
        again = ctx.dat(over, shape=shape, dtype=dtype, layout=LAYOUTS[layout])
        assert not again.read().any()
        again.write(values)
        np.testing.assert_array_equal(again.read(), values)
        assert dat.nbytes == values.nbytes


@pytest.mark.parametrize("layout", ["aos", "soa"])
@pytest.mark.parametrize("shape", [(), (3,), (2, 3)])
@pytest.mark.parametrize("name", ["plain", "grid1", "grid2", "ghosts", "csr"])
def test_views_are_no_copies(ctx: fl.Context, name: str, layout: str, shape: tuple[int, ...]) -> None:
    over = sets(ctx)[name]
    dat = ctx.dat(over, numbers((*over.shape, *shape), "float64"), layout=LAYOUTS[layout])
    for view in (dat.data, dat.data_ro):
        assert view.shape == (*over.shape, *shape)
        assert np.shares_memory(view, dat.buffer.host())
        np.testing.assert_array_equal(view, dat.read())
    dat.data[...] += 5.0
    np.testing.assert_array_equal(dat.read(), numbers((*over.shape, *shape), "float64") + 5.0)
    with pytest.raises(ValueError, match="read-only"):
        dat.data_ro[...] = 1.0


@pytest.mark.parametrize(
    ("name", "layout"), [("plain", "blocked8"), ("ell", "aos"), ("sliced4", "soa"), ("grid2", "blocked4")]
)
def test_no_view_of_another_order(ctx: fl.Context, name: str, layout: str) -> None:
    dat = ctx.dat(sets(ctx)[name], name="a", layout=LAYOUTS[layout])
    with pytest.raises(DatError, match=r"'a' is stored in another order.*read\(\) and write"):
        _ = dat.data
    with pytest.raises(DatError, match="another order"):
        _ = dat.data_ro


@pytest.mark.parametrize("layout", ["aos", "soa"])
@pytest.mark.parametrize("shape", [(), (3,), (2, 3)])
def test_storage_with_ghosts(ctx: fl.Context, layout: str, shape: tuple[int, ...]) -> None:
    grid = ctx.grid((3, 4), ghost=(1, 2))
    dat = ctx.dat(grid, numbers((3, 4, *shape), "float64"), layout=LAYOUTS[layout])
    full = dat.storage()
    assert full.shape == (5, 8, *shape)
    assert np.shares_memory(full, dat.buffer.host())
    full[0] = -1.0
    np.testing.assert_array_equal(full[1:-1, 2:-2], dat.read())
    np.testing.assert_array_equal(dat.read(), numbers((3, 4, *shape), "float64"))  # ghosts are no elements
    dat.write(7.0)
    assert (dat.storage()[0] == -1.0).all()


def test_storage_needs_a_grid(ctx: fl.Context) -> None:
    for dat in (ctx.dat(ctx.set(3, "s")), ctx.dat(ctx.grid((3,)), layout=fl.Blocked(4))):
        with pytest.raises(DatError, match="storage\\(\\) is for AoS and SoA dats on a grid"):
            dat.storage()


def test_versions_count_changes(ctx: fl.Context) -> None:
    dat = ctx.dat(ctx.grid((4,)), np.arange(4.0))
    before = dat.version
    dat.read()
    _ = dat.data_ro
    assert dat.version == before
    for change in (lambda: dat.write(1.0), lambda: dat.data, dat.storage):
        before = dat.version
        change()
        assert dat.version > before
    value = ctx.scalar(1.0)
    before = value.version
    _ = value.value
    assert value.version == before
    value.value = 2.0
    assert value.version > before


def test_broadcasting_and_casts(ctx: fl.Context) -> None:
    over = ctx.set(4, "s")
    dat = ctx.dat(over, shape=(2,), dtype="float32")
    dat.write([1, 2])
    assert dat.read().tolist() == [[1, 2]] * 4
    dat.write(np.arange(4)[:, None])
    assert dat.read()[:, 1].tolist() == [0, 1, 2, 3]
    assert ctx.dat(over, [1, 2, 3, 4]).scalar.name == "int64"
    assert ctx.dat(over, [1, 2, 3, 4], dtype="float16").read().dtype == np.float16


def test_values_are_copied(ctx: fl.Context) -> None:
    values = np.ones(5)
    dat = ctx.dat(ctx.set(5, "s"), values)
    values[:] = 2.0
    assert (dat.read() == 1.0).all()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda c, s: c.dat(s, np.zeros(4), "a"), r"'a': values of shape \(4,\) do not fit Set\(s, 5\) \(expected"),
        (lambda c, s: c.dat(s, np.zeros((5, 2)), "a", shape=(3,)), r"values have components \(2,\), shape says \(3,\)"),
        (lambda c, s: c.dat(s, dtype="complex128"), "'complex128' cannot be stored; use one of float64"),
        (lambda c, s: c.dat(s, dtype="int16"), "cannot be stored.*did you mean"),
        (lambda c, s: c.dat(s).write(np.zeros(3)), r"values of shape \(3,\) do not fit \(5,\)"),
        (lambda c, s: c.dat(c.subset(s, [1]), name="a"), "'a': a dat lives on a set, not on a subset; use Set"),
        (lambda c, s: fl.Blocked(7), r"Blocked\(size=7\): the block must be 4, 8, 16, 32 or 64"),
        (lambda c, s: fl.SlicedELL(0), "at least one row"),
        (lambda c, s: c.set(-1, "x"), "set 'x': size -1 is outside"),
        (lambda c, s: c.set(2**31, "x"), "outside 0"),
        (lambda c, s: c.grid((0, 2), "g"), "one to three positive entries"),
        (lambda c, s: c.grid((2, 2, 2, 2), "g"), "one to three"),
        (lambda c, s: c.grid((2, 2), "g", ghost=(1,)), "one entry for each of the 2 axes"),
        (lambda c, s: c.grid((2, 2), "g", periodic=(True, True, False)), "one entry for each"),
        (lambda c, s: c.grid((2,), "g", ghost=-1), "periodic and ghost"),
        (lambda c, s: c.subset(s, [1, 5]), "element 5 does not exist"),
        (lambda c, s: c.subset(s, [-2, 1]), "element -2 does not exist"),
        (lambda c, s: c.subset(s, [True, False]), r"mask of shape \(2,\) does not fit"),
        (lambda c, s: c.scalar([1.0, 2.0], "g").__setattr__("value", [1.0]), r"'g': a value of shape \(1,\)"),
        (lambda c, s: c.scalar(1j), "complex128"),
    ],
)  # fmt: skip
def test_errors(ctx: fl.Context, make, message: str) -> None:
    with pytest.raises(DatError, match=message):
        make(ctx, ctx.set(5, "s"))


def test_globals(ctx: fl.Context) -> None:
    g = ctx.scalar([[1, 2], [3, 4]], "g", dtype="int32")
    assert g.value.tolist() == [[1, 2], [3, 4]]
    g.value.fill(9)  # a copy
    assert g.value[0, 0] == 1
    g.value = 5
    assert g.value.tolist() == [[5, 5], [5, 5]]
    assert ctx.scalar(1.5).value == 1.5
    assert ctx.scalar(2).scalar.name == "int64"


def test_texts(ctx: fl.Context) -> None:
    s = ctx.set(3, "points")
    assert repr(s) == "Set(points, 3)"
    assert len(s) == 3
    assert repr(ctx.dat(s, name="u")) == "Dat(u, points, (), float64, AoS())"
    assert repr(ctx.map(s, s, [0, 1, 2], "m")) == "TableMap(m: points -> points)"
    assert "reference" in repr(ctx)
    assert repr(ctx.subset(s, [0])) == "Subset(points[subset], 1)"
