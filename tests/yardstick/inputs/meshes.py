"""Make the meshes of the cases beside this file: `python meshes.py bow|disc|annulus|tetrahedra FILE`."""

from __future__ import annotations

import sys
from math import cos, pi, sin
from pathlib import Path


def bow(path: Path, along: int = 48, across: int = 16) -> None:
    """Quads ahead of a cylinder of radius 1, to 1.6 ahead and 3 beside its centre; patches cylinder, inflow, end."""

    def node(i: int, j: int) -> int:
        return j * (along + 1) + i

    def place(i: int, j: int) -> tuple[float, float]:
        angle = 0.5 * pi * (2.0 * i / along - 1.0)
        last = 1.0 / ((cos(angle) / 1.6) ** 2 + (sin(angle) / 3.0) ** 2) ** 0.5
        radius = 1.0 + (last - 1.0) * j / across
        return -radius * cos(angle), radius * sin(angle)

    cells = [(i, j) for j in range(across) for i in range(along)]
    quads = [(node(i, j), node(i, j + 1), node(i + 1, j + 1), node(i + 1, j)) for i, j in cells]
    points = [place(i, j) for j in range(across + 1) for i in range(along + 1)]
    sides = {
        "cylinder": [(node(i, 0), node(i + 1, 0)) for i in range(along)],
        "inflow": [(node(i, across), node(i + 1, across)) for i in range(along)],
        "end": [(node(i, j), node(i, j + 1)) for i in (0, along) for j in range(across)],
    }
    lines = ["NDIME= 2", f"NELEM= {len(quads)}", *(f"9 {a} {b} {c} {d}" for a, b, c, d in quads)]
    lines += [f"NPOIN= {len(points)}", *(f"{x:.17g} {y:.17g}" for x, y in points), f"NMARK= {len(sides)}"]
    for name, faces in sides.items():
        lines += [f"MARKER_TAG= {name}", f"MARKER_ELEMS= {len(faces)}", *(f"3 {a} {b}" for a, b in faces)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def disc(gmsh) -> None:
    """Triangles of 0.07 in a disc of radius 0.5 whose patch is the casing."""
    tag = gmsh.model.occ.addDisk(0.0, 0.0, 0.0, 0.5, 0.5)
    gmsh.model.occ.synchronize()
    gmsh.model.addPhysicalGroup(2, [tag], name="gas")
    gmsh.model.addPhysicalGroup(1, [1], name="casing")
    gmsh.option.setNumber("Mesh.MeshSizeMax", 0.07)
    gmsh.model.mesh.generate(2)


def annulus(gmsh, across: int = 12, around: int = 48) -> None:
    """Quads between circles of radius 1 and 2, finer at both; patches inner and outer."""
    geo, rings = gmsh.model.geo, []
    centre = geo.addPoint(0.0, 0.0, 0.0)
    for radius in (1.0, 2.0):
        points = [geo.addPoint(radius * cos(k * pi / 2), radius * sin(k * pi / 2), 0.0) for k in range(4)]
        rings.append((points, [geo.addCircleArc(points[k], centre, points[(k + 1) % 4]) for k in range(4)]))
    (inner, near), (outer, far) = rings
    spokes = [geo.addLine(a, b) for a, b in zip(inner, outer, strict=True)]
    surfaces = [
        geo.addPlaneSurface([geo.addCurveLoop([spokes[k], far[k], -spokes[(k + 1) % 4], -near[k]])]) for k in range(4)
    ]
    for arc in near + far:
        geo.mesh.setTransfiniteCurve(arc, around // 4 + 1)
    for spoke in spokes:
        geo.mesh.setTransfiniteCurve(spoke, across + 1, "Bump", 0.25)
    for surface in surfaces:
        geo.mesh.setTransfiniteSurface(surface)
        geo.mesh.setRecombine(2, surface)
    geo.synchronize()
    for name, arcs in (("inner", near), ("outer", far)):
        gmsh.model.addPhysicalGroup(1, arcs, name=name)
    gmsh.model.addPhysicalGroup(2, surfaces, name="fluid")
    gmsh.model.mesh.generate(2)


def tetrahedra(gmsh, size: float = 0.2) -> None:
    """Tetrahedra in a box 2 x 1 x 1 whose patches are xmin to zmax."""
    model = gmsh.model
    model.occ.addBox(0.0, 0.0, 0.0, 2.0, 1.0, 1.0)
    model.occ.synchronize()
    sides = {"xmin": (0, 0.0), "xmax": (0, 2.0), "ymin": (1, 0.0), "ymax": (1, 1.0), "zmin": (2, 0.0), "zmax": (2, 1.0)}
    for dimension, tag in model.getBoundary([(3, 1)], oriented=False):
        centre = model.occ.getCenterOfMass(dimension, tag)
        name = next(name for name, (axis, at) in sides.items() if abs(centre[axis] - at) < 1e-6)
        model.addPhysicalGroup(dimension, [tag], name=name)
    model.addPhysicalGroup(3, [1], name="fluid")
    for end in ("Min", "Max"):
        gmsh.option.setNumber(f"Mesh.MeshSize{end}", size)
    gmsh.option.setNumber("Mesh.OptimizeNetgen", 1)
    model.mesh.generate(3)


def main(name: str, path: Path) -> None:
    """Write one mesh."""
    if name == "bow":
        bow(path)
        return
    import gmsh

    gmsh.initialize(["gmsh", "-nopopup"])
    try:
        gmsh.option.setNumber("General.Terminal", 0)
        {"disc": disc, "annulus": annulus, "tetrahedra": tetrahedra}[name](gmsh)
        gmsh.option.setNumber("Mesh.MshFileVersion", 4.1)
        gmsh.write(str(path))
    finally:
        gmsh.finalize()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
