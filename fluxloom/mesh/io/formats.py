"""Reading and writing meshes by the suffix of the file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy.typing as npt

from fluxloom.core.activity import activity
from fluxloom.core.errors import MeshError, did_you_mean
from fluxloom.core.registry import Registry, load_object
from fluxloom.mesh.data.mesh import MeshData, no_mask
from fluxloom.mesh.io.vtk.cells import Fields

__all__ = [
    "MeshFormat", "format_called", "formats", "output_format", "output_formats", "read", "read_fields", "write",
]  # fmt: skip


@dataclass(frozen=True)
class MeshFormat:
    """One file format.

    Attributes
    ----------
    suffixes
        Lower-case suffixes with the dot, ``.gz`` left out.
    read
        ``read(path, **options)``, which returns a `MeshData`, or `Fields` where there are values too; None when it
        cannot be read.
    write
        ``write(path, mesh, **options)``; None when it cannot be written. Where the format holds ``data``, options are
        ``cell_data`` and ``point_data`` (name to values, or None), and of results ``time`` (seconds, or None).
    data
        Whether it holds values on points and cells: results can be written in it then.
    units
        Whether ``write`` takes ``units``, name of the values to their unit.
    zones, steps
        Whether ``read`` takes ``zone``, one of several meshes in a file, and ``step``, one of several times.
    """

    suffixes: tuple[str, ...]
    read: Callable[..., MeshData | Fields] | None
    write: Callable[..., None] | None
    data: bool = False
    units: bool = False
    zones: bool = False
    steps: bool = False


def formats() -> Registry[MeshFormat]:
    """Return a registry of the built-in formats, open to the entry points ``fluxloom.mesh_formats``."""
    registry: Registry[MeshFormat] = Registry("mesh format", group="fluxloom.mesh_formats", error=MeshError)
    registry.register("su2", MeshFormat((".su2",), _late("su2:read_su2"), _late("su2:write_su2"), zones=True))
    registry.register("gmsh", MeshFormat((".msh",), _late("gmsh.msh:read_gmsh"), _late("gmsh.msh:write_gmsh")))
    registry.register("cgns", MeshFormat((".cgns",), _late("cgns.reader:read_cgns"), None, zones=True))
    vtu = MeshFormat((".vtu",), _late("vtk.vtu:read_vtu"), _late("vtk.vtu_writer:write_vtu"), data=True, units=True)
    registry.register("vtu", vtu)
    inp = MeshFormat((".inp",), _late("abaqus:read_abaqus"), _late("adapter:write_meshio"))
    registry.register("abaqus", inp)
    read, write = _late("vtk.vtkhdf:read_vtkhdf"), _late("vtk.vtkhdf:write_vtkhdf")
    registry.register("vtkhdf", MeshFormat((".vtkhdf", ".hdf"), read, write, data=True, units=True, steps=True))
    return registry


def format_called(name: str, registry: Registry[MeshFormat] | None = None) -> MeshFormat:
    """Return a format by its name, or by its place, ``"module:NAME"``.

    Raises
    ------
    MeshError
        Where there is none, or what is there is none.
    """
    try:
        found = load_object(name) if ":" in name else (formats() if registry is None else registry)[name]
    except (ImportError, AttributeError) as error:
        raise MeshError(f"mesh format {name!r} cannot be loaded: {error}") from None
    if not isinstance(found, MeshFormat):
        raise MeshError(f"mesh format {name!r}: a MeshFormat((\".suffix\",), read, write) is wanted, not {found!r}")
    return found


def output_formats() -> list[str]:
    """Return the names of the formats in which results can be written."""
    registry = formats()
    return [name for name in registry.names() if _holds_results(format_called(name, registry))]


def output_format(name: str) -> MeshFormat:
    """Return a format in which results can be written, by its name or its place.

    Raises
    ------
    MeshError
        Where there is none, or it cannot be written, or holds no values.
    """
    found = format_called(name)
    if not _holds_results(found):
        raise MeshError(f"mesh format {name!r} holds no results (those that do: {', '.join(output_formats())})")
    return found


def _holds_results(format: MeshFormat) -> bool:
    return format.data and format.write is not None


def read(
    path: str | Path,
    *,
    format: str | None = None,
    orient: bool = True,
    zone: str | int | None = None,
    step: int | None = None,
    **options: Any,
) -> MeshData:
    """Read a mesh.

    Parameters
    ----------
    path
        The file; the suffix (before a ``.gz``) tells the format.
    format
        Name of the format, when the suffix does not tell, or the place of a `MeshFormat`, ``"module:NAME"``.
    orient
        Whether cells with negative volume are turned round (see `fluxloom.mesh.quality.orient.orient`).
    zone
        Of a file with several meshes, the one to read: number of a zone of SU2 (from 1), name of a base or of a zone of
        CGNS.
    step
        Of a VTKHDF file with several steps in time, the one to read (from 0); by default the last.
    **options
        Of the format: ``native=False`` for text files.

    Returns
    -------
    MeshData

    Raises
    ------
    MeshError
        For an unknown format or a broken file.
    DeviceUnavailable
        When the format needs a package that is not installed.
    """
    from fluxloom.mesh.quality.orient import orient as orient_cells

    mesh = read_fields(path, format=format, zone=zone, step=step, **options).mesh
    return orient_cells(mesh)[0] if orient else mesh


def read_fields(
    path: str | Path,
    *,
    format: str | None = None,
    zone: str | int | None = None,
    step: int | None = None,
    **options: Any,
) -> Fields:
    """Read a mesh and the values on its points and cells (cells as they stand in the file), as `read` does it."""
    from fluxloom.mesh.data.whole import check_range, require_whole
    from fluxloom.mesh.io.tables.collect import first_patches

    if Path(path).is_dir():
        raise MeshError(f"{path}: is a directory; name a mesh file")
    name, chosen = _choose(path, format)
    if chosen.read is None:
        raise MeshError(f"{path}: the format {name!r} can be written but not read")
    for word, value, allowed in (
        ("zone", None if zone == "" else zone, chosen.zones),
        ("step", step, chosen.steps),
    ):
        if value is not None and not allowed:
            raise MeshError(f"{path}: {name} files have no {word}s; leave {word} out")
        if value is not None:
            options[word] = value
    with activity("reading the mesh", str(path)):
        try:
            found = chosen.read(path, **options)
        except MeshError as error:  # what is wrong with cells, say, is found where nobody knows the file
            if str(path) in str(error):
                raise
            raise MeshError(f"{path}: {error}") from None
    found = found if isinstance(found, Fields) else Fields(found)
    check_range(found.mesh)
    require_whole(found.mesh)
    return replace(found, mesh=first_patches(found.mesh))


def write(
    path: str | Path,
    mesh: MeshData,
    *,
    cell_data: Mapping[str, npt.ArrayLike] | None = None,
    point_data: Mapping[str, npt.ArrayLike] | None = None,
    format: str | None = None,
    units: Mapping[str, str] | None = None,
    **options: Any,
) -> None:
    """Write a mesh, with values on cells and points where the format holds them.

    Parameters
    ----------
    path
        The file; the suffix (before a ``.gz``) tells the format.
    mesh
        The mesh.
    cell_data, point_data
        Name to values, ``(n,)`` or ``(n, components)``; cells in global order.
    format
        Name of the format, when the suffix does not tell, or the place of a `MeshFormat`, ``"module:NAME"``.
    units
        Name of the values to their unit; written where the format holds units.
    **options
        Of the format.

    Raises
    ------
    MeshError
        For an unknown format, data given to a format without data, or data that are masked or of the wrong length.
    """
    name, chosen = _choose(path, format)
    for key, values in [*(cell_data or {}).items(), *(point_data or {}).items()]:
        no_mask(values, f"{path}: data {key!r}")
    if chosen.write is None:
        raise MeshError(f"{path}: the format {name!r} can be read but not written")
    if chosen.data:
        options |= {"cell_data": cell_data, "point_data": point_data} | ({"units": units} if chosen.units else {})
    elif cell_data or point_data:
        raise MeshError(f"{path}: {name} files hold no data; write a .vtu or .vtkhdf file")
    chosen.write(path, mesh, **options)


def _choose(path: str | Path, format: str | None) -> tuple[str, MeshFormat]:
    """Return the name and the format of a file; meshio is one that no registry lists."""
    registry = formats()
    meshio = MeshFormat((), _late("adapter:read_meshio"), _late("adapter:write_meshio"), data=True)
    if format is not None:
        return format, meshio if format == "meshio" else format_called(format, registry)
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    suffix = ([item for item in suffixes if item != ".gz"] or [""])[-1]
    for name in _tried(registry):
        if suffix in format_called(name, registry).suffixes:
            return name, registry[name]
    from fluxloom.mesh.io.adapter import meshio_suffixes

    if suffix in meshio_suffixes():
        return "meshio", meshio
    known = sorted({item for name in registry for item in registry[name].suffixes})
    raise MeshError(
        f"{path}: no mesh format has the suffix {suffix!r}{did_you_mean(suffix, known)} "
        f"(built in: {', '.join(known)}; others through meshio: pip install 'fluxloom[mesh]'); or pass format="
    )


def _late(place: str) -> Callable[..., Any]:
    """Return a function of a module beside this one, which is imported when the function is called."""

    def called(*given: Any, **options: Any) -> Any:
        """Import the function and call it."""
        return load_object(f"{__package__}.{place}")(*given, **options)

    return called


def _tried(registry: Registry[Any]) -> Iterator[str]:
    """Yield the formats that are loaded, then those of other packages, which are looked up where it comes to them."""
    ours = list(registry)
    yield from ours
    yield from (name for name in registry.names() if name not in ours)
