"""Mesh a box round a sphere with Gmsh: layers of prisms on the sphere, tetrahedra beyond.

    python examples/sphere_mesh.py sphere.msh --size 0.2

The sphere has diameter 1 and its centre at the origin. The mesh is what examples/sphere.toml reads.
"""

from __future__ import annotations

import argparse
from pathlib import Path

_BOX = ((-3.0, 8.0), (-3.0, 3.0), (-3.0, 3.0))
_LAYERS, _GROWTH = 4, 1.4

_OPTIMISATIONS = 3
"""Flat tetrahedra must go: pressure and velocity at the same places are not stable on them."""


def sphere_mesh(path: Path, size: float, far: float = 1.0) -> None:
    """Write the mesh; ``size`` is the side of triangles on the sphere, ``far`` that of tetrahedra at the box."""
    try:
        import gmsh
    except (ImportError, OSError) as error:
        raise SystemExit(
            f"this mesh needs Gmsh, which cannot be loaded ({error}): pip install 'fluxloom[mesh]', and on Debian "
            "apt install libglu1-mesa libxcursor1 libxft2 libxinerama1"
        ) from None
    gmsh.initialize(["gmsh", "-nopopup"])
    try:
        gmsh.option.setNumber("General.Terminal", 0)
        gmsh.model.add("sphere")
        _shape(gmsh, size, far)
        gmsh.model.mesh.generate(3)
        for _ in range(_OPTIMISATIONS):
            gmsh.model.mesh.optimize("Netgen")
        gmsh.option.setNumber("Mesh.MshFileVersion", 4.1)
        gmsh.write(str(path))
    finally:
        gmsh.finalize()


def _shape(gmsh, size: float, far: float) -> None:
    """Make the geometry: a sphere, layers extruded from it, and the box around them."""
    geo = gmsh.model.geo
    sphere = _sphere(geo, size)
    first = 0.3 * size
    heights = [first * sum(_GROWTH**k for k in range(n + 1)) for n in range(_LAYERS)]
    layers = geo.extrudeBoundaryLayer([(2, surface) for surface in sphere], [1] * _LAYERS, heights, True)
    outer = [layers[k - 1][1] for k in range(1, len(layers)) if layers[k][0] == 3]
    prisms = [tag for dimension, tag in layers if dimension == 3]
    sides, box = _box(geo, far)
    rest = geo.addVolume([box, geo.addSurfaceLoop(outer)])
    geo.synchronize()
    gmsh.model.addPhysicalGroup(3, [*prisms, rest], name="fluid")
    gmsh.model.addPhysicalGroup(2, sphere, name="sphere")
    for name, side in sides.items():
        gmsh.model.addPhysicalGroup(2, [side], name=name)
    gmsh.option.setNumber("Mesh.Algorithm3D", 1)
    gmsh.option.setNumber("Mesh.Optimize", 1)
    field = gmsh.model.mesh.field
    field.add("Ball", 1)
    for name, value in (("Radius", 1.0), ("Thickness", 2.0), ("VIn", 1.5 * size), ("VOut", far)):
        field.setNumber(1, name, value)
    field.add("Cylinder", 2)
    for name, value in (("XCenter", 2.0), ("XAxis", 2.5), ("Radius", 0.8), ("VIn", 2.0 * size), ("VOut", far)):
        field.setNumber(2, name, value)
    field.add("Min", 3)
    field.setNumbers(3, "FieldsList", [1, 2])
    field.setAsBackgroundMesh(3)


def _sphere(geo, size: float) -> list[int]:
    """Return the eight surfaces of a sphere of diameter 1."""
    centre = geo.addPoint(0.0, 0.0, 0.0, size)
    tips = [geo.addPoint(*(sign * 0.5 if k == axis else 0.0 for k in range(3)), size)
            for axis in range(3) for sign in (1.0, -1.0)]  # fmt: skip
    arcs: dict[tuple[int, int], int] = {}

    def arc(a: int, b: int) -> int:
        if (b, a) in arcs:
            return -arcs[b, a]
        if (a, b) not in arcs:
            arcs[a, b] = geo.addCircleArc(a, centre, b)
        return arcs[a, b]

    found = []
    for x in (0, 1):
        for y in (2, 3):
            for z in (4, 5):
                corners = [tips[x], tips[y], tips[z]]
                if (x + y + z) % 2:
                    corners.reverse()
                loop = geo.addCurveLoop([arc(corners[k], corners[(k + 1) % 3]) for k in range(3)])
                found.append(geo.addSurfaceFilling([loop]))
    return found


def _box(geo, far: float) -> tuple[dict[str, int], int]:
    """Return the sides of the box by name, and their surface loop."""
    points = [geo.addPoint(x, y, z, far) for z in _BOX[2] for y in _BOX[1] for x in _BOX[0]]
    lines: dict[tuple[int, int], int] = {}

    def line(a: int, b: int) -> int:
        if (b, a) in lines:
            return -lines[b, a]
        if (a, b) not in lines:
            lines[a, b] = geo.addLine(points[a], points[b])
        return lines[a, b]

    around = {"xmin": (0, 4, 6, 2), "xmax": (1, 3, 7, 5), "ymin": (0, 1, 5, 4), "ymax": (2, 6, 7, 3),
              "zmin": (0, 2, 3, 1), "zmax": (4, 5, 7, 6)}  # fmt: skip
    sides = {}
    for name, nodes in around.items():
        loop = geo.addCurveLoop([line(nodes[k], nodes[(k + 1) % 4]) for k in range(4)])
        sides[name] = geo.addPlaneSurface([loop])
    return sides, geo.addSurfaceLoop(list(sides.values()))


def main() -> None:
    """Read the command line."""
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("file", type=Path, help="what is written, a .msh")
    words.add_argument("--size", type=float, default=0.15, help="of triangles on the sphere (0.15)")
    given = words.parse_args()
    if not 0.0 < given.size <= 0.4:
        words.error("--size must be above 0 and at most 0.4")
    sphere_mesh(given.file, given.size)
    print(f"{given.file} written")


if __name__ == "__main__":
    main()
