"""Counts that a file states are compared with its bytes before memory is reserved for them."""

from __future__ import annotations

import gzip
import lzma
import struct
import tracemalloc
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from fluxloom.comm import SelfComm
from fluxloom.comm.store import StoreReader, StoreWriter
from fluxloom.core.errors import CheckpointError, FluxloomError, MeshError
from fluxloom.core.sizes import check_stored, expanded
from fluxloom.mesh import box2d, write
from fluxloom.mesh import read_data as read
from fluxloom.mesh.io.cgns.reader import open_cgns
from fluxloom.mesh.io.stl import read_stl_corners
from fluxloom.values.tables import read_raster
from fluxloom_lab.attack.files.cgns import base, file_of, grid, node, unstructured, write_adf

MANY = 10**9
ABAQUS = """*NODE
1, 0., 0.
2, 1., 0.
3, 0., 1.
*ELEMENT, TYPE=CPS3, ELSET=ALL
7, 1, 2, 3
*ELEMENT, TYPE=T2D2
8, 1, 2
9, 2, 3
"""


def gmsh_parametric() -> bytes:
    head = b"$MeshFormat\n2.2 1 8\n" + struct.pack("<i", 1) + b"\n$EndMeshFormat\n"
    return head + f"$ParametricNodes\n{MANY}\n".encode() + bytes(64)


def gmsh_binary() -> bytes:
    head = b"$MeshFormat\n4.1 1 8\n" + struct.pack("<i", 1) + b"\n$EndMeshFormat\n$Nodes\n"
    return head + struct.pack("<4Q", 1, MANY, 1, MANY) + struct.pack("<3iQ", 2, 1, 0, MANY) + bytes(64)


def vtu_block() -> bytes:
    """Sixteen million zeros in a block that says it has sixteen bytes."""
    packed = zlib.compress(bytes(2**26))
    head = struct.pack("<4Q", 1, 16, 16, len(packed))
    text = '<VTKFile type="UnstructuredGrid" byte_order="LittleEndian" header_type="UInt64" '
    text += 'compressor="vtkZLibDataCompressor"><UnstructuredGrid><Piece NumberOfPoints="1" NumberOfCells="1"><Points>'
    text += '<DataArray type="Float64" Name="p" NumberOfComponents="3" format="appended" offset="0"/></Points>'
    return text.encode() + b'</Piece></UnstructuredGrid><AppendedData encoding="raw">_' + head + packed


FILES: dict[str, tuple[Callable[[], bytes], str]] = {
    "points.su2": (lambda: f"NDIME= 2\nNPOIN= {MANY}\n0 0\n".encode(), "expected 1000000000 rows"),
    "narrow.su2": (lambda: b"NDIME= 3\nNPOIN= 300\n" + b"0 0 0\n" * 100, "expected 300 rows"),
    "cells.su2": (lambda: f"NDIME= 2\nNELEM= {MANY}\n5 0 1 2\n".encode(), "expected 1000000000 rows"),
    "minus.su2": (lambda: b"NDIME= 2\nNPOIN= -5\n", "must not be negative"),
    "nodes.msh": (lambda: f"$MeshFormat\n2.2 0 8\n$EndMeshFormat\n$Nodes\n{MANY}\n1 0 0 0\n".encode(), "expected"),
    "minus.msh": (lambda: b"$MeshFormat\n2.2 0 8\n$EndMeshFormat\n$Nodes\n-5\n1 0 0 0\n", "more rows than it says"),
    "parametric.msh": (gmsh_parametric, "nodes need 36000000000 bytes"),
    "binary.msh": (gmsh_binary, "need 8000000000 bytes"),
    "block.vtu": (vtu_block, "a block of 16 bytes is cut off, or longer"),
    "zeros.su2.gz": (lambda: gzip.compress(bytes(2**28)), "expands to more than 200 times its length"),
    "zeros.cgns": (lambda: gzip.compress(bytes(2**28)), "expands to more than 200 times its length"),
}


def peak(work: Callable[[], object], error: type[FluxloomError], match: str) -> int:
    """Return the most bytes that were reserved until an error is raised."""
    tracemalloc.start()
    try:
        with pytest.raises(error, match=match):
            work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("name", FILES)
def test_memory_is_that_of_the_file(name: str, native: bool, tmp_path: Path) -> None:
    make, message = FILES[name]
    data, path = make(), tmp_path / name
    path.write_bytes(data)
    options = {"native": native} if name.endswith((".su2", ".msh")) else {}
    room = 2**27 if data[:2] == b"\x1f\x8b" else 2**21
    assert peak(lambda: read(path, **options), MeshError, message) < room + 50 * len(data)


def test_gzip_files() -> None:
    data = b"1.5 2.5\n" * 1000
    assert expanded(gzip.compress(data) + gzip.compress(b"more") + bytes(20)) == data + b"more"
    assert len(expanded(gzip.compress(bytes(2**25)))) == 2**25  # less than 64 MiB, whatever of
    with pytest.raises(ValueError, match="damaged or truncated"):
        expanded(gzip.compress(data)[:-9])


def test_blocks_of_lzma_are_bounded_too(tmp_path: Path) -> None:
    data = vtu_block().replace(b"vtkZLib", b"vtkLZMA")
    packed = lzma.compress(bytes(2**26))
    path = tmp_path / "a.vtu"
    path.write_bytes(data[: data.find(b">_") + 2] + struct.pack("<4Q", 1, 16, 16, len(packed)) + packed)
    assert peak(lambda: read(path), MeshError, "a block of 16 bytes") < 2**24  # its window has 8 MiB


def test_sets_of_abaqus_are_not_spelled_out(tmp_path: Path) -> None:
    """A range of labels may be long, and a set may have itself: it holds those of the elements, once."""
    rows = "*ELSET, ELSET=WALL, GENERATE\n8, 999999999999\n*ELSET, ELSET=WALL\n" + "WALL, WALL, WALL\n" * 60
    path = tmp_path / "a.inp"
    path.write_text(ABAQUS + rows + "*ELSET, ELSET=DOWN, GENERATE\n1, 8, 7\n")
    tracemalloc.start()
    mesh = read(path)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 2**21
    assert {name: len(faces) for name, faces in mesh.patches.items()} == {"WALL": 2}


def test_triangles_and_rasters(tmp_path: Path) -> None:
    (tmp_path / "a.stl").write_bytes(bytes(80) + struct.pack("<I", MANY) + bytes(50))
    assert peak(lambda: read_stl_corners(tmp_path / "a.stl"), MeshError, "cut off") < 2**20
    (tmp_path / "a.asc").write_text(f"ncols {MANY}\nnrows {MANY}\nxllcorner 0\nyllcorner 0\ncellsize 1\n1 2\n")
    assert peak(lambda: read_raster(tmp_path / "a.asc"), FluxloomError, "2 values for") < 2**20


# --------------------------------------------------------------------------------------------- HDF5


def test_data_sets_that_say_more_than_is_stored(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["sound"] = np.arange(1000)
        file.create_dataset("packed", data=np.zeros(2**23), compression="gzip", shuffle=True)
        check_stored(file)
        file.create_group("empty").create_dataset("never written", (MANY, 8), np.float64)
        with pytest.raises(ValueError, match="never written says that it has 64000000000 bytes, and the file 0"):
            check_stored(file)
        (tmp_path / "other.bin").write_bytes(bytes(80))
        outer = file.create_group("outer")
        outer.create_dataset("outside", (10,), np.float64, external=[(str(tmp_path / "other.bin"), 0, 80)])
        with pytest.raises(ValueError, match="lie in another file"):
            check_stored(outer)
        layout = h5py.VirtualLayout((1000,), np.int64)
        layout[:] = h5py.VirtualSource(str(tmp_path / "b.h5"), "sound", (1000,))
        file.create_group("made").create_virtual_dataset("virtual", layout)
        with pytest.raises(ValueError, match="lie in another file"):
            check_stored(file["made"])
        file["made"]["again"] = h5py.SoftLink("/made")  # a circle is left after some rounds
        del file["made"]["virtual"]
        check_stored(file["made"])


def test_grids_and_checkpoints_that_say_more(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    path = tmp_path / "a.vtkhdf"
    write(path, box2d(2, 2))
    with h5py.File(path, "a") as file:
        del file["VTKHDF/Points"]
        file.create_dataset("VTKHDF/Points", (MANY, 3), np.float64)
    assert peak(lambda: read(path), MeshError, "Points says that it has") < 2**22
    store = tmp_path / "a.h5"
    writer = StoreWriter(store, SelfComm())
    writer.rows("rows/a", np.arange(8.0).reshape(4, 2), None, 4)
    writer.finish({"step": 1}, {})
    assert StoreReader(store, SelfComm()).meta["step"] == 1
    with h5py.File(store, "a") as file:
        del file["checkpoint/rows/a"]
        file.create_dataset("checkpoint/rows/a", (MANY, 2), np.float64)
    assert peak(lambda: StoreReader(store, SelfComm()), CheckpointError, "rows/a says that it has") < 2**22


def test_arrays_of_cgns(tmp_path: Path) -> None:
    """Chunks of ADF may be named twice; negative layers round a zone make its points fewer than its counts."""
    points = np.random.default_rng(1).random((777, 2))
    path = write_adf(tmp_path / "a.cgns", file_of(base(2, unstructured("Z", points, 1))))
    data = path.read_bytes()
    assert struct.pack("<Q", 777) in data
    path.write_bytes(data.replace(struct.pack("<Q", 777), struct.pack("<Q", MANY)))
    with open_cgns(path) as root, pytest.raises(MeshError, match="8000000000 bytes of data are wanted, and the file"):
        root.need("Base").need("Z").need("GridCoordinates").need("CoordinateX").array()
    rind = node("Rind", "Rind_t", np.array([0, -(MANY - 7), 0, -(MANY - 111)]))
    kind = node("ZoneType", "ZoneType_t", "Structured")
    sizes = np.array([[MANY, MANY], [MANY - 1, MANY - 1], [0, 0]])
    zone = node("Z", "Zone_t", sizes, kind, grid(points, rind, shape=(111, 7)))
    write_adf(path, file_of(base(2, zone)))
    assert peak(lambda: read(path), MeshError, "Rind_t") < 2**22
