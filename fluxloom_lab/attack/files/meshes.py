"""Samples of all formats of meshes that are read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from fluxloom.core.errors import FluxloomError
from fluxloom.mesh import box2d, box3d, read_data, write
from fluxloom.mesh.data.mesh import MeshData
from fluxloom.mesh.geometry.dual import dual
from fluxloom_lab.attack.files import cgns, texts
from fluxloom_lab.attack.files.sample import Sample

__all__ = ["FAMILIES", "counts_of", "polyhedron", "small_meshes"]


def small_meshes() -> dict[str, MeshData]:
    """Return small meshes of all kinds of cells, by the name of the kind."""
    quads = box2d(3, 2)
    block = quads.cells["quad"]
    halves = np.concatenate([block[1::2][:, [0, 1, 2]], block[1::2][:, [0, 2, 3]]])
    solids = {kind: box3d(2, 2, 1, kind=kind) for kind in ("tetra", "pyramid", "prism", "hexahedron")}
    return {
        "triangle": box2d(2, 2, kind="triangle"), "quad": box2d(2, 2, perturb=0.2),
        "mixed": replace(quads, cells={"quad": block[::2], "triangle": halves}), **solids,
    }  # fmt: skip


def counts_of(mesh: MeshData) -> tuple[object, ...]:
    """Return the numbers of points and cells, and of faces by patch."""
    return mesh.n_points, mesh.n_cells, tuple(sorted((name, len(faces)) for name, faces in mesh.patches.items()))


def _sample(name: str, path: Path, counted: bool = True, **options: Any) -> Sample:
    """Return a file that was written, as a sample; it is valid."""
    mesh = read_data(path, native=False, **options) if path.suffix in (".su2", ".msh") else read_data(path, **options)
    return Sample(name, path.name, path.read_bytes(), counted, counts_of(mesh))


def _written(folder: Path, suffix: str, kinds: tuple[str, ...], counted: bool = True) -> Iterator[Sample]:
    for kind, mesh in small_meshes().items():
        if kind in kinds:
            write(path := folder / f"{kind}{suffix}", mesh)
            yield _sample(kind, path, counted)


_PLANE, _SOLID = ("triangle", "quad", "mixed"), ("tetra", "pyramid", "prism", "hexahedron")


def _su2(folder: Path) -> Iterator[Sample]:
    yield from _written(folder, ".su2", (*_PLANE, *_SOLID))


def _gmsh(folder: Path) -> Iterator[Sample]:
    yield from _written(folder, ".msh", ("triangle", "mixed", "tetra", "hexahedron"))
    names = '4\n1 1 "a"\n1 2 "b"\n1 3 "c"\n1 4 "d"\n'
    for name, text in (("2.2", texts.msh2(names=names[2:])), ("4.1", texts.msh4(names=names[2:]))):
        (path := folder / f"named{name}.msh").write_text(text)
        yield _sample(name, path)
    try:
        import gmsh
    except (ImportError, OSError):
        return
    gmsh.initialize(interruptible=False)
    gmsh.option.setNumber("General.Terminal", 0)
    for dimension in (2, 3):
        gmsh.model.add(f"box{dimension}")
        if dimension == 2:
            gmsh.model.occ.addRectangle(0, 0, 0, 1, 1)
        else:
            gmsh.model.occ.addBox(0, 0, 0, 1, 1, 1)
        gmsh.model.occ.synchronize()
        for _, tag in gmsh.model.getEntities(dimension - 1):
            gmsh.model.addPhysicalGroup(dimension - 1, [tag], name=f"side{tag}")
        gmsh.model.addPhysicalGroup(dimension, [1], name="inside")
        gmsh.option.setNumber("Mesh.MeshSizeMin", 0.6)
        gmsh.model.mesh.generate(dimension)
        for version in (2.2, 4.1):
            for binary in (0, 1):
                gmsh.option.setNumber("Mesh.MshFileVersion", version)
                gmsh.option.setNumber("Mesh.Binary", binary)
                gmsh.write(str(path := folder / f"gmsh{dimension}_{version}_{binary}.msh"))
                yield _sample(path.stem, path)
    gmsh.finalize()


def _cgns(folder: Path) -> Iterator[Sample]:
    for kind in ("triangle", "mixed", "tetra", "hexahedron"):
        mesh = small_meshes()[kind]
        d = mesh.dimension
        sections, _ = cgns.sections_of(mesh)
        zone = cgns.unstructured("Zone", mesh.points, mesh.n_cells, *sections)
        tree = cgns.file_of(cgns.base(d, zone, physical=d))
        writers: dict[str, Callable[..., Path]] = {"hdf5": cgns.write_hdf5, "adf": cgns.write_adf}
        for name, writer in writers.items():
            yield _sample(f"{kind} {name}", writer(folder / f"{kind}_{name}.cgns", tree))
    counts = (3, 3)
    tree = cgns.file_of(cgns.base(2, cgns.structured("Zone", cgns.lattice(counts), counts)))
    yield _sample("structured adf", cgns.write_adf(folder / "structured_adf.cgns", tree))
    yield _sample("structured hdf5", cgns.write_hdf5(folder / "structured_hdf5.cgns", tree))
    more = dual(box3d(2, 2, 2, kind="tetra"))
    for offsets in (False, True):
        sections = cgns.polyhedral_sections(more, offsets=offsets)
        tree = cgns.file_of(cgns.base(3, cgns.unstructured("Zone", more.points, more.n_cells, *sections)))
        yield _sample(f"polyhedra {offsets}", cgns.write_hdf5(folder / f"polyhedra{offsets}.cgns", tree))


def _vtu(folder: Path) -> Iterator[Sample]:
    yield from _written(folder, ".vtu", ("mixed", "hexahedron"))
    yield _sample("polyhedra", polyhedron(folder / "polyhedra.vtu"))
    for form in ("ascii", "binary", "raw", "base64"):
        for packed in ("", "vtkZLibDataCompressor", "vtkLZMADataCompressor"):
            if form != "ascii" or not packed:
                header = "UInt32" if packed else "UInt64"
                path = texts.vtu(folder / f"{form}_{packed}.vtu", [texts.LEFT, texts.RIGHT], form, packed, header)
                yield _sample(f"{form} {packed}", path)


def polyhedron(path: Path) -> Path:
    """Write a cube that is given by its faces."""
    points = [[x, y, z] for z in (0.0, 1.0) for y in (0.0, 1.0) for x in (0.0, 1.0)]
    faces = [(0, 2, 3, 1), (4, 5, 7, 6), (0, 1, 5, 4), (2, 6, 7, 3), (0, 4, 6, 2), (1, 3, 7, 5)]
    stream = [6, *(n for face in faces for n in (4, *face))]
    text = texts.vtu(path, [(points, [list(range(8))], [42], [1.0])]).read_text()
    more = f'<DataArray type="Int64" Name="faces" format="ascii">{" ".join(map(str, stream))}</DataArray>'
    more += f'<DataArray type="Int64" Name="faceoffsets" format="ascii">{len(stream)}</DataArray></Cells>'
    path.write_text(text.replace("</Cells>", more))
    return path


def _vtkhdf(folder: Path) -> Iterator[Sample]:
    yield from _written(folder, ".vtkhdf", ("mixed", "hexahedron"))
    write(path := folder / "polyhedra.vtkhdf", dual(box3d(1, 1, 1, kind="tetra")))
    yield _sample("polyhedra", path)
    for steps in (False, True):
        yield _sample(f"steps {steps}", texts.vtkhdf(folder / f"steps{steps}.vtkhdf", steps))


def _abaqus(folder: Path) -> Iterator[Sample]:
    yield from _written(folder, ".inp", ("triangle", "mixed", "tetra", "hexahedron"), counted=False)
    rows = "*NODE\n1, 0., 0.\n2, 1., 0.\n3, 1., 1.\n4, 0., 1.\n*ELEMENT, TYPE=CPS4, ELSET=all\n1, 1, 2, 3, 4\n"
    rows += "*SURFACE, NAME=low, TYPE=ELEMENT\n1, S1\n*SURFACE, NAME=rest\n1, S2\n1, S3\n1, S4\n"
    (path := folder / "surfaces.inp").write_text(rows)
    yield _sample("surfaces", path, counted=False)


def _meshio(folder: Path) -> Iterator[Sample]:
    for suffix in (".mesh", ".vtk", ".med", ".ply", ".xdmf", ".e", ".bdf", ".ugrid", ".off", ".dat", ".avs", ".f3grid"):
        for kind in ("triangle", "tetra"):
            try:
                write(path := folder / f"{kind}{suffix}", small_meshes()[kind])
                found = _sample(f"{kind} {suffix}", path, counted=False)
                if found.counts[1]:
                    yield found
            except FluxloomError:
                continue


FAMILIES: Mapping[str, Callable[[Path], Iterator[Sample]]] = MappingProxyType({
    "su2": _su2, "gmsh": _gmsh, "cgns": _cgns, "vtu": _vtu, "vtkhdf": _vtkhdf, "abaqus": _abaqus, "meshio": _meshio,
})  # fmt: skip
"""Makers of the samples of each format, in a folder."""
