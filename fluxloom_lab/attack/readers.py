"""Damaged files against everything that reads files: ``fluxloom lab readers``.

A trial takes ten valid files, changes some bytes, lines or data sets of each, and reads it. It has to be refused by an
error that names it, or what comes of it has to be sound. What a file says of its size is no reason to take much more
memory than it has bytes.
"""

from __future__ import annotations

import os
import traceback
import warnings
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from fluxloom.comm.base import SelfComm
from fluxloom.core.errors import FluxloomError
from fluxloom_lab.attack.files import meshes, states
from fluxloom_lab.attack.files.hdf5 import is_hdf5, rearranged
from fluxloom_lab.attack.files.memory import bound_memory
from fluxloom_lab.attack.files.mutations import mutated
from fluxloom_lab.attack.files.sample import Sample
from fluxloom_lab.attack.files.samples import Maker, samples
from fluxloom_lab.attack.files.sound import unlike, unsound
from fluxloom_lab.attack.frame import Attack, Attacks, Trial

__all__ = ["readers"]

_EXTRA = 512 << 20
"""Bytes of memory that a trial may take: samples have some thousand."""

_FILES = 10
"""That a trial reads, one after the other: a process costs as much as some of them."""

_ARRANGED = 0.5
"""Part of the changes of HDF5 files that keep their format."""

Reads = Callable[[Trial, Sample, Path, str], Iterator[str]]
"""Reads a changed file; yields what is wrong."""


def _act(trial: Trial, maker: Maker, reads: Reads) -> Iterator[str]:
    """Change some files, one after the other, and read each in a folder of its own."""
    bound_memory(_EXTRA)
    home = Path.cwd()
    for number in range(_FILES):
        one = Trial(trial.attack, _FILES * trial.seed + number, trial.full, trial.counts)
        (home / str(number)).mkdir()
        os.chdir(home / str(number))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield from _file(one, maker, reads)
        os.chdir(home)


def _file(trial: Trial, maker: Maker, reads: Reads) -> Iterator[str]:
    """Change a file and read it."""
    pick = trial.random()
    sample = pick.choice(samples(maker))
    path = Path(sample.file)
    path.parent.mkdir(parents=True, exist_ok=True)
    if is_hdf5(sample.data) and pick.random() < _ARRANGED:
        path.write_bytes(sample.data)
        change = rearranged(pick, path)
    else:
        change, data = mutated(pick, sample.data)
        path.write_bytes(data)
    trial.counts["files"] += 1
    trial.counts["same"] += path.read_bytes() == sample.data
    what = f"{Path.cwd().name}/{path.name}: {sample.name}, {change}"
    try:
        yield from (f"{what}: {line}" for line in reads(trial, sample, path, change))
        trial.counts["taken"] += 1
    except FluxloomError as error:
        trial.counts["refused"] += 1
        if path.name not in str(error):
            yield f"{what}: the message does not name the file: {error}"
    except (Exception, SystemExit):
        yield f"{what}: {traceback.format_exc(limit=-3)}"


def _read_mesh(trial: Trial, sample: Sample, path: Path, change: str) -> Iterator[str]:
    """Read a mesh with each reader of its format: all refuse it, or all have the same of it."""
    from fluxloom.mesh import read_data

    two = path.suffix in (".su2", ".msh")
    ways: tuple[dict[str, Any], ...] = ({"native": False}, {"native": True}) if two else ({},)
    found = []
    for way in ways:
        try:
            found.append(read_data(path, **way))
        except FluxloomError as error:
            found.append(error)
    bad = [one for one in found if isinstance(one, FluxloomError)]
    if 0 < len(bad) < len(found):
        yield f"the native reader and that in Python do not agree: {bad[0]}"
    if bad:
        raise bad[0]
    if len(found) > 1:
        yield from unlike(*found)
    for mesh in found[:1]:
        if sample.counted and set(change.split(", ")) <= {"cut"} and meshes.counts_of(mesh) != sample.counts:
            yield f"a part of the file was taken for all of it: {meshes.counts_of(mesh)}, not {sample.counts}"
        yield from unsound(trial.counts, mesh)


def _read_surface(trial: Trial, sample: Sample, path: Path, change: str) -> Iterator[str]:
    """Read triangles."""
    from fluxloom.mesh.io.stl import read_stl_corners

    corners = read_stl_corners(path)
    if not (corners.ndim == 3 and np.isfinite(corners).all()):
        yield "triangles that are none"


def _stl(folder: Path) -> Iterator[Sample]:
    from fluxloom_lab.attack.files.texts import cube, stl

    yield Sample("text", "body.stl", stl().encode())
    rows = np.zeros(12, dtype=[("n", "<f4", 3), ("v", "<f4", (3, 3)), ("a", "<u2")])
    rows["v"] = cube()
    yield Sample("binary", "body.stl", bytes(80) + len(rows).to_bytes(4, "little") + rows.tobytes())


# ---------------------------------------------------------------------------------------- checkpoints


def _forged(trial: Trial, path: Path, sample: Sample, change: str) -> bool:
    """Let every other checkpoint that is still HDF5 have a right check sum, so that what comes behind it is reached."""
    if " of " not in change or trial.random().random() < 0.5 or path.read_bytes() == sample.data:
        return False
    data = path.read_bytes()
    mark = data.rfind(b"fluxloom")
    body = data if mark < len(data) - 12 else data[:mark]
    path.write_bytes(body + b"fluxloom" + zlib.crc32(body).to_bytes(4, "little"))
    return True


def _read_script(trial: Trial, sample: Sample, path: Path, change: str) -> Iterator[str]:
    """Go on from the checkpoint of a script: the values are those without it, or it is refused."""
    from fluxloom.dsl.checkpoint.checkpoint import Checkpoints

    forged = _forged(trial, path, sample, change)
    found = states.Ageing().run(Checkpoints(path, every_calls=1000))
    if not forged and not np.array_equal(found, states.Ageing().run()):
        yield "other values than without the checkpoint"


def _read_state(trial: Trial, sample: Sample, path: Path, change: str) -> Iterator[str]:
    """Read all of a state."""
    from fluxloom.dsl.checkpoint.state import StateFile

    forged = _forged(trial, path, sample, change)

    def content(of: Path) -> list[object]:
        file = StateFile(of, SelfComm())
        try:
            rows = [(key, file.read(key).tobytes()) for key in file.dats]
            return [rows, file.numbers, file.about, {key: table.tobytes() for key, table in file.tables.items()}]
        finally:
            file.close()

    found = content(path)
    if not forged:
        (first := Path("first") / path.name).parent.mkdir()
        first.write_bytes(sample.data)
        if found != content(first):
            yield "other values than those that were written"


def _read_start(trial: Trial, sample: Sample, path: Path, change: str) -> Iterator[str]:
    """Start from the fields of a result."""
    from fluxloom.run.start import Start

    start = Start(path, SelfComm(), outside=trial.random().choice(("", "nearest")))
    places = np.array([[0.2, 0.3], [0.7, 0.9], [0.5, 0.5]])
    found = start.at(places, ["u", "p"])
    if not all(np.isfinite(values).all() and values.shape == (3,) for values in found.values()):
        yield "values that are not finite"
    start.close()


# ----------------------------------------------------------------------------------- tables and caches


def _read_table(trial: Trial, sample: Sample, path: Path, change: str) -> Iterator[str]:
    """Read a series and a profile."""
    from fluxloom.values.tables import Profile, TimeSeries

    pick = trial.random()
    series = TimeSeries(str(path), column=pick.choice((2, 3) if sample.name != "commas" else (2, "q")))
    times, values = series._table
    if not (np.isfinite(times).all() and np.isfinite(values).all() and (np.diff(times) > 0).all()):
        yield "a series whose times do not increase, or that is not finite"
    Profile(str(path), along=pick.choice(("x", "xy")))


def _read_raster(trial: Trial, sample: Sample, path: Path, change: str) -> Iterator[str]:
    """Read a raster."""
    from fluxloom.values.tables import read_raster

    grid = read_raster(path)
    axes = (grid.x, grid.y)
    if grid.values.shape != (len(grid.x), len(grid.y)) or np.isinf(grid.values).any():
        yield "values that are not finite, or not on its points"
    if not all(np.isfinite(axis).all() and (np.diff(axis) > 0).all() for axis in axes):
        yield "axes that do not increase, or are not finite"


def _read_tuning(trial: Trial, sample: Sample, path: Path, change: str) -> Iterator[str]:
    """Read a tuning file, and merge it into another."""
    import json

    from fluxloom.dsl.plan.tuning import TuningFile

    rows = TuningFile(path).show()
    for key in json.loads(sample.data):
        TuningFile(path).get(key)
    TuningFile("other.json").merge(path)
    if not all(np.isfinite(row.seconds) for row in rows):
        yield "seconds that are not finite"


def _use_cache(trial: Trial) -> Iterator[str]:
    """Damage a file of the cache of compiled code, and run a loop."""
    pick = trial.random()
    every = samples(states.cached)
    sample = pick.choice(every)
    for one in every:
        Path(one.file).parent.mkdir(parents=True, exist_ok=True)
        Path(one.file).write_bytes(one.data)
    change, data = mutated(pick, sample.data)
    Path(sample.file).write_bytes(data)
    os.environ["FLUXLOOM_CACHE"] = str(Path(states.CACHED).resolve())
    if not np.array_equal(states.Ageing("cpu").run(), states.Ageing().run()):
        yield f"{sample.file}, {change}: other values than without the cache"
    trial.counts["taken"] += 1


# ----------------------------------------------------------------------------------------- the attacks


def _missing(maker: Maker, needs: tuple[str, ...]) -> str:
    """Import what trials need, make the samples, and return what is missing."""
    for name in needs:
        try:
            import_module(name)
        except ImportError:
            return f"{name} is not installed"
    return "" if samples(maker) else "no samples"


def _attack(name: str, maker: Maker, reads: Reads, *needs: str) -> Attack:
    def act(trial: Trial) -> Iterator[str]:
        return _act(trial, maker, reads)

    return Attack(name, act, trials=5, seconds=60.0, missing=partial(_missing, maker, needs))


_NEEDS = {"cgns": ("h5py",), "vtkhdf": ("h5py",), "meshio": ("meshio", "h5py")}

def readers() -> Attacks:
    """Return the attacks, one for each kind of file."""
    of_meshes = [
        _attack(name, maker, _read_mesh, "scipy.spatial", "fluxloom.mesh.quality.report", *_NEEDS.get(name, ()))
        for name, maker in meshes.FAMILIES.items()
    ]
    of_others = (
        _attack("stl", _stl, _read_surface),
        _attack("scripts", states.scripts, _read_script, "h5py"),
        _attack("states", states.states, _read_state, "h5py"),
        _attack("starts", states.results, _read_start, "h5py", "scipy.spatial"),
        _attack("tables", states.tables, _read_table, "scipy.interpolate"),
        _attack("rasters", states.rasters, _read_raster),
        _attack("tunings", states.tunings, _read_tuning),
        Attack("cache", _use_cache, trials=10, seconds=60.0, missing=partial(_missing, states.cached, ())),
    )
    return Attacks("damaged files: checkpoints, meshes, tables, tunings, caches", (*of_meshes, *of_others))
