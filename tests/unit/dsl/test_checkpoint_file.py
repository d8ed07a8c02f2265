"""Checkpoint files: damage is found, failures to write leave what was there, a killed run goes on."""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import resource
import signal
import subprocess
import sys
import time
import warnings
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from textwrap import dedent

import h5py
import numpy as np
import pytest

import fluxloom as fl
from fluxloom import RW
from fluxloom.comm.base import SelfComm
from fluxloom.comm.disk import Disk, publish
from fluxloom.comm.store import StoreReader, StoreWriter
from fluxloom.core.errors import CheckpointError, DeviceUnavailable
from fluxloom.dsl.checkpoint.checkpoint import Checkpoints, CheckpointWarning
from fluxloom.mesh.generate.airfoil import airfoil_mesh
from fluxloom.solvers.airfoil.flow import Airfoil

N = 20_000
ROOT = Path(__file__).resolve().parents[3]


@fl.kernel
def age(t: RW):
    t[0] = 1.5 * t[0] + 1.0


class Ageing:
    """Cells that age: one dat, one loop."""

    def __init__(self) -> None:
        self.ctx = fl.Context("cpu", threads=1)
        cells = self.ctx.set(N, "cells")
        self.t = self.ctx.dat(cells, np.arange(float(N)), "t")
        self.age = fl.Loop(age, cells, self.t)

    def run(self, saver: Checkpoints, steps: int, *, restart: bool = True) -> Ageing:
        with saver.watch(self.ctx, restart=restart):
            for _ in range(steps):
                self.age()
        return self


def value_after(steps: int) -> np.ndarray:
    t = np.arange(float(N))
    for _ in range(steps):
        t = 1.5 * t + 1.0
    return t


@pytest.fixture
def written(tmp_path: Path) -> Path:
    path = tmp_path / "run.h5"
    saver = Checkpoints(path, every_calls=4)
    Ageing().run(saver, 7)
    assert saver.saved == 1
    return path


def resume(path: Path, steps: int = 9) -> np.ndarray:
    return Ageing().run(Checkpoints(path, every_calls=1000), steps).t.read()


# ------------------------------------------------------------------------------------------- damage


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size * 2 // 3)


def empty(path: Path) -> None:
    os.truncate(path, 0)


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    with h5py.File(path, "r") as file:
        place = file["checkpoint/rows/0000"].id.get_offset() + 8 * 777
    data[place] ^= 1
    path.write_bytes(data)


def unmark(path: Path) -> None:
    with h5py.File(path, "r+") as file:
        del file["checkpoint"].attrs["complete"]


def drop(path: Path) -> None:
    with h5py.File(path, "r+") as file:
        del file["checkpoint/rows/0000"]


def foreign(path: Path) -> None:
    path.unlink()
    with h5py.File(path, "w") as file:
        file["x"] = 1


def newer(path: Path) -> None:
    with h5py.File(path, "r+") as file:
        file.attrs["version"] = 99


def text(path: Path) -> None:
    path.write_text("not HDF5")


def forget(path: Path) -> None:
    """Leave a part of the description out, with the right check sum."""
    with h5py.File(path, "r+") as file:
        group = file["checkpoint"]
        meta = json.loads(np.asarray(group["meta"]).tobytes())
        del meta["texts"], group["meta"]
        words = json.dumps(meta).encode()
        group["meta"] = np.frombuffer(words, dtype=np.uint8)
        group.attrs["complete"] = zlib.crc32(words)
    data = path.read_bytes()
    path.write_bytes(data + b"fluxloom" + zlib.crc32(data).to_bytes(4, "little"))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (cut, "cut off or damaged"), (empty, "cut off or damaged"), (text, "cut off or damaged"),
        (flip, "cut off or damaged"), (unmark, "not complete"), (drop, "cut off or damaged"),
        (foreign, "no checkpoint of fluxloom"), (newer, "written in version 99"),
        (forget, "its description is damaged"),
    ],
)  # fmt: skip
def test_damage_is_found(damage: Callable[[Path], None], message: str, written: Path) -> None:
    """A damaged file is refused before anything is taken from it, and stays where it is."""
    damage(written)
    program = Ageing()
    with pytest.raises(CheckpointError, match=message) as caught:
        program.run(Checkpoints(written, every_calls=4), 9)
    assert str(written) in str(caught.value)
    assert "remove it to start from the beginning" in str(caught.value)
    np.testing.assert_array_equal(program.t.read(), np.arange(float(N)))
    assert written.exists()


def test_every_byte_of_the_file_matters(written: Path) -> None:
    """With any one bit changed the file is refused: its values, what HDF5 keeps for itself, the check sum itself."""
    good, rng = written.read_bytes(), random.Random(1)
    places = [rng.randrange(len(good)) for _ in range(40)] + [rng.randrange(4096) for _ in range(60)]
    places += range(len(good) - 16, len(good))
    for place in places:
        written.write_bytes(good[:place] + bytes([good[place] ^ (1 << rng.randrange(8))]) + good[place + 1 :])
        with pytest.raises(CheckpointError):
            StoreReader(written, SelfComm())
    written.write_bytes(good)
    np.testing.assert_array_equal(resume(written), value_after(9))


def test_older_file_is_named(tmp_path: Path) -> None:
    """With ``keep`` the message names the checkpoint before the damaged one, and that one works."""
    path = tmp_path / "run.h5"
    saver = Checkpoints(path, every_calls=3, keep=3)
    Ageing().run(saver, 14)
    assert saver.saved == 3
    assert sorted(p.name for p in tmp_path.iterdir()) == ["run.h5", "run.h5.1", "run.h5.2"]
    flip(path)
    with pytest.raises(CheckpointError, match=r"restart from run\.h5\.1"):
        resume(path)
    for name in ("run.h5.1", "run.h5.2"):
        np.testing.assert_array_equal(resume(tmp_path / name, 13), value_after(13))


# ----------------------------------------------------------------------------------------- failures


@contextmanager
def file_size_limit(nbytes: int) -> Iterator[None]:
    """Let every write behind ``nbytes`` of a file fail, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (nbytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 0.999])
def test_disk_that_is_full_does_not_end_the_run(share: float, written: Path) -> None:
    """However far the file gets: a warning, the old checkpoint untouched, no rest, and the next attempt works."""
    before = written.read_bytes()
    saver = Checkpoints(written, every_calls=4)
    program = Ageing()

    def some(steps: int) -> None:
        for _ in range(steps):
            program.age()

    with saver.watch(program.ctx, restart=False):
        with file_size_limit(int(share * len(before))), pytest.warns(CheckpointWarning) as caught:
            some(7)
        assert "cannot be written: File too large" in str(caught[0].message)
        assert "The run goes on" in str(caught[0].message)
        assert caught[0].filename == __file__  # the line of the user, not one of ours
        assert (saver.saved, saver.failed) == (0, 1)
        assert written.read_bytes() == before
        assert sorted(p.name for p in written.parent.iterdir()) == ["run.h5"]
        some(4)
    np.testing.assert_array_equal(program.t.read(), value_after(11))
    assert (saver.saved, saver.failed) == (1, 1)
    np.testing.assert_array_equal(resume(written, 12), value_after(12))


def test_no_space_left(written: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """ENOSPC of the disk itself, in the middle of the values."""
    before = written.read_bytes()
    real, count = Disk.write, [0]

    class Full:
        def __init__(self, raw: object) -> None:
            self.raw = raw

        def write(self, data: memoryview) -> int:
            count[0] += 1
            raise OSError(28, "No space left on device")

        def __getattr__(self, name: str) -> object:
            return getattr(self.raw, name)

    def write(self: Disk, data: memoryview) -> int:
        if not isinstance(self._raw, Full) and len(data) > 10_000:
            self._raw = Full(self._raw)  # type: ignore[assignment]
        return real(self, data)

    monkeypatch.setattr(Disk, "write", write)
    saver = Checkpoints(written, every_calls=4)
    with pytest.warns(CheckpointWarning, match="No space left on device; free some space"):
        program = Ageing().run(saver, 7, restart=False)
    assert count == [1]
    assert written.read_bytes() == before
    np.testing.assert_array_equal(program.t.read(), value_after(7))


def test_places_that_cannot_be_written(tmp_path: Path) -> None:
    """They are found at the start, not after hours."""
    (tmp_path / "file").write_text("")
    for path, message in (
        (tmp_path / "no" / "run.h5", "there is no directory"),
        (tmp_path / "file" / "run.h5", "there is no directory"),
        (tmp_path, "it is a directory"),
    ):
        with pytest.raises(CheckpointError, match=message) as caught:
            Ageing().run(Checkpoints(path, every_calls=1), 1)
        assert str(path) in str(caught.value)


def test_no_permission(tmp_path: Path) -> None:
    """A directory that may not be written to, and a file that may not be read, for a user who is not root."""
    closed = tmp_path / "closed"
    closed.mkdir()
    secret = tmp_path / "secret.h5"
    secret.write_text("")
    closed.chmod(0o555)
    secret.chmod(0)
    tmp_path.chmod(0o777)
    for folder in [tmp_path, *tmp_path.parents][:4]:
        folder.chmod(folder.stat().st_mode | 0o555)
    program = dedent(f"""
        import os
        import h5py
        from pathlib import Path
        from fluxloom.comm.base import SelfComm
        from fluxloom.comm.store import StoreReader, check_place
        from fluxloom.core.errors import CheckpointError
        if os.getuid() == 0:
            os.setuid(65534)
        for work in (lambda: check_place(Path({str(closed / "run.h5")!r}), SelfComm()),
                     lambda: StoreReader(Path({str(secret)!r}), SelfComm())):
            try:
                work()
            except CheckpointError as error:
                print(error)
    """)
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert not done.stderr, done.stderr
    first, second = done.stdout.splitlines()
    assert "Permission denied" in first
    assert "change its permissions" in first
    assert "may not be read" in second


def test_two_runs_with_one_file(tmp_path: Path) -> None:
    """The second finds the file taken, and says so."""
    path = tmp_path / "run.h5"
    first = StoreWriter(path, SelfComm())
    with pytest.raises(CheckpointError, match="another run is writing to the same file"):
        StoreWriter(path, SelfComm())
    first.rows("rows/0000", np.arange(6.0).reshape(3, 2), None, 3)
    first.finish({"call": 3}, {})
    reader = StoreReader(path, SelfComm())
    assert reader.meta == {"call": 3}
    reader.close()


@pytest.mark.parametrize("content", ["text", "hdf5"])
def test_other_files_are_not_replaced(tmp_path: Path, content: str) -> None:
    """Neither is a checkpoint that lost its end, which may well be replaced."""
    path = tmp_path / "results.h5"
    if content == "text":
        path.write_text("results of a year")
    else:
        with h5py.File(path, "w") as file:
            file["pressure"] = np.arange(3.0)
    before = path.read_bytes()
    saver = Checkpoints(path, every_calls=3)
    with pytest.raises(CheckpointError, match=r"results\.h5: .* another file of that name, which is no checkpoint"):
        Ageing().run(saver, 4, restart=False)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("share", [0.0, 0.5])
def test_damaged_checkpoints_are_replaced(written: Path, share: float) -> None:
    whole = written.read_bytes()
    written.write_bytes(whole[: int(share * len(whole))])
    saver = Checkpoints(written, every_calls=3)
    Ageing().run(saver, 4, restart=False)
    assert saver.saved
    with h5py.File(written) as file:
        assert file.attrs["format"] == "fluxloom checkpoint"


def test_h5py_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(DeviceUnavailable, match="checkpoints needs h5py"):
        Ageing().run(Checkpoints(tmp_path / "run.h5", every_calls=1), 1)


def test_publishing_without_hard_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    path, part = tmp_path / "a", tmp_path / "a.part"
    for k in range(4):
        part.write_text(str(k))
        publish(part, path, 2)
    assert {p.name: p.read_text() for p in tmp_path.iterdir()} == {"a": "3", "a.1": "2"}


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "int64", "int32", "uint8"])
def test_values_keep_type_and_shape(dtype: str, tmp_path: Path) -> None:
    """Every storage type, scalar and matrix values; what is the same everywhere takes one row."""
    path = tmp_path / "a.h5"
    rows = {"a": np.arange(12).reshape(4, 3).astype(dtype), "b": np.full((4, 2), 7, dtype=dtype)}
    rows["c"] = np.zeros((0, 2), dtype=dtype)
    writer = StoreWriter(path, SelfComm())
    for name, values in rows.items():
        writer.rows(f"rows/{name}", values, None, len(values))
    writer.finish({"x": 1.5}, {"small": np.arange(3)})
    reader = StoreReader(path, SelfComm())
    for name, values in rows.items():
        got = reader.rows(f"rows/{name}", None, len(values), len(values), values[:0])
        np.testing.assert_array_equal(got, values, strict=True)
    np.testing.assert_array_equal(reader.arrays["small"], np.arange(3))
    reader.close()
    with h5py.File(path, "r") as file:
        assert file["checkpoint/rows/b"].shape == (1, 2)
        assert file["checkpoint/rows/a"].dtype == dtype
        assert file["checkpoint"].attrs["x"] == 1.5


# --------------------------------------------------------------------------------------- kill -9



def fly(path: Path, steps: int, pause: float, out: Path) -> None:
    """Run Airfoil in a process of its own; ``pause`` slows writing, so that most kills come in the middle of it."""
    if pause:
        write, sync = Disk.write, Disk.sync
        Disk.write = lambda self, data: (time.sleep(pause), write(self, data))[1]  # type: ignore[method-assign]
        Disk.sync = lambda self: (time.sleep(5 * pause), sync(self))[1]  # type: ignore[method-assign]
    context = fl.Context("cpu", threads=1, schedule=fl.Schedule(deterministic="global"))
    flow = Airfoil(context, airfoil_mesh(8, 6))
    saver = Checkpoints(path, every_calls=5, keep=2)
    with saver.watch(context):
        out.write_text("catching up" if saver.replaying else "new")
        for k in range(steps):
            flow.iterate()
            if k % 10 == 0:
                flow.rms()
    out.write_text(f"{out.read_text()} {flow.rms().hex()}")


@pytest.fixture(scope="module")
def start(compile_cache: Path) -> Callable[..., ForkServerProcess]:
    """Return what starts `fly` in a new process, which need not import everything first."""
    server = multiprocessing.get_context("forkserver")
    server.set_forkserver_preload([__name__])

    def begin(*arguments: object) -> ForkServerProcess:
        process = server.Process(target=fly, args=arguments)
        process.start()
        return process

    return begin


def until(run: ForkServerProcess, path: Path) -> None:
    """Wait for a file of a run."""
    while run.is_alive() and not path.exists():
        time.sleep(0.001)


def test_killed_runs_go_on(tmp_path: Path, start: Callable[..., ForkServerProcess]) -> None:
    """A run that is killed again and again, also while it writes, ends with the bits of one that is not."""
    steps, rng, out = 150, random.Random(3), tmp_path / "out"
    start(tmp_path / "whole.h5", steps, 0.0, out).join(60)
    new, expected = out.read_text().split()
    path, part = tmp_path / "run.h5", tmp_path / "run.h5.part"
    kills = writing = caught_up = 0
    for k in range(5):
        part.unlink(missing_ok=True)
        run = start(path, steps, 0.004 if k % 2 else 0.001, out)
        until(run, part if k else path)
        time.sleep(rng.uniform(0.0, 0.02 if k % 2 else 0.2))
        run.kill()
        run.join()
        kills += run.exitcode == -signal.SIGKILL
        writing += part.exists()
        caught_up += out.read_text() == "catching up"
    assert new == "new"
    assert kills == 5
    assert writing >= 2
    assert caught_up >= 3
    last = start(path, steps, 0.0, out)
    last.join(60)
    assert last.exitcode == 0
    assert out.read_text() == f"catching up {expected}"
    assert float.fromhex(expected) > 0


def test_failures_are_not_silent_under_error_filters(written: Path) -> None:
    """Who turns warnings into errors gets an error."""
    saver = Checkpoints(written, every_calls=4)
    with warnings.catch_warnings(), file_size_limit(0):
        warnings.simplefilter("error")
        with pytest.raises(CheckpointWarning):
            Ageing().run(saver, 7, restart=False)


@pytest.mark.parametrize("change", ["drop", "shape"])
def test_rows_that_are_missing_behind_a_right_check_sum(written: Path, change: str) -> None:
    """A file that somebody has edited: what is in it is compared with what is wanted too."""
    with h5py.File(written, "r+") as file:
        del file["checkpoint/rows/0000"]
        if change == "shape":
            file["checkpoint/rows/0000"] = np.zeros((3, 1))
    data = written.read_bytes()
    body = data[: data.rfind(b"fluxloom")] if data[-12:-4] == b"fluxloom" else data
    written.write_bytes(body + b"fluxloom" + zlib.crc32(body).to_bytes(4, "little"))
    with pytest.raises(CheckpointError, match=r"rows/0000|damaged"):
        resume(written)


def test_a_damaged_file_is_not_opened(written: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What HDF5 keeps for itself may lead it round in a circle: the check sum is compared before."""
    data = bytearray(written.read_bytes())
    data[len(data) // 3] ^= 1
    written.write_bytes(data)
    monkeypatch.setattr(h5py, "File", lambda *given: pytest.fail("it was opened"))
    with pytest.raises(CheckpointError, match=r"cut off or damaged \(the check sum of the file\)"):
        StoreReader(written, SelfComm())
