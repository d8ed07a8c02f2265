"""A run opens no port: it listens to nobody. The launcher of MPI does, and ranks inherit its socket."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
LISTENS, UNCONNECTED = "0A", "07"
CASE = """
[case]
name = "tube"
solver = "compressible"
[mesh]
nx = 40
ny = 2
[initial]
left = [1.0, 0.0, 0.0, 1.0]
right = [0.125, 0.0, 0.0, 0.1]
at = 0.5
[boundary.xmin]
type = "slip"
[boundary.xmax]
type = "slip"
[boundary.ymin]
type = "symmetry"
[boundary.ymax]
type = "symmetry"
[time]
end = 0.02
cfl = 0.5
"""

pytestmark = pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="Linux alone lists sockets so")


def open_ports() -> set[str]:
    """Return the sockets of the machine that wait for others: of TCP those that listen, of UDP those without a peer."""
    found = set()
    for kind, state in (("tcp", LISTENS), ("tcp6", LISTENS), ("udp", UNCONNECTED), ("udp6", UNCONNECTED)):
        table = Path("/proc/net", kind)
        rows = [line.split() for line in table.read_text().splitlines()[1:]] if table.exists() else []
        found |= {f"socket:[{row[9]}]" for row in rows if row[3] == state}
    return found


def family(first: int) -> list[int]:
    """Return a process and those that it has started, and they."""
    parents = {}
    for place in Path("/proc").iterdir():
        if place.name.isdecimal():
            try:
                parents[int(place.name)] = int((place / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:  # it has gone
                continue
    members = [first]
    for member in members:
        members += [child for child, parent in parents.items() if parent == member]
    return members


def sockets(process: int) -> set[str]:
    try:
        return {os.readlink(entry.path) for entry in os.scandir(f"/proc/{process}/fd")}
    except OSError:
        return set()


def program(process: int) -> str:
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes().partition(b"\0")[0].decode().rpartition("/")[2]
    except OSError:
        return ""


@pytest.mark.parametrize("ranks", ["", pytest.param("cpu:1*2", marks=[pytest.mark.mpi, pytest.mark.long])])
def test_a_run_listens_to_nobody(ranks: str, tmp_path: Path) -> None:
    case = tmp_path / "tube.toml"
    case.write_text(CASE)
    words = ["-m", "fluxloom", "run", str(case), "--output", str(tmp_path / "out")]
    words += ["--ranks", ranks] if ranks else []
    run = subprocess.Popen([sys.executable, *words], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    ours: set[str] = set()
    launchers: set[str] = set()
    looks = 0
    while run.poll() is None:
        ports = open_ports()
        for member in family(run.pid):
            found = sockets(member) & ports
            if program(member).startswith("python"):
                ours |= found
            else:
                launchers |= found
        looks += 1
        time.sleep(0.02)
    assert run.returncode == 0, run.stdout.read().decode() if run.stdout else ""
    assert looks > 5
    assert ours <= launchers
    assert ranks or not launchers
