"""Texts of case files that the jobs run: boxes of any size, which need no mesh file."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["CASES"]

_QUIET = """
[output]
format = "none"
picture = false
"""


def _walls(names: str) -> str:
    return "".join(f'[boundary.{name}]\ntype = "wall"\n' for name in names.split())


def lattice_moving(side: int, steps: int) -> str:
    """Return a box of ``side**3`` cells in which 27 spheres go to and fro, as immersed bodies."""
    places = [side * k / 6 for k in (1, 3, 5)]
    bodies = [
        f"""
[body.ball{100 * i + 10 * j + k}]
shape = "sphere"
center = [{x}, {y}, {z}]
diameter = {side / 16}
condition = "immersed"
motion = "prescribed"
position_x = "{side / 40} * sin(2 * pi * t / 1000)"
"""
        for i, x in enumerate(places) for j, y in enumerate(places) for k, z in enumerate(places)
    ]  # fmt: skip
    return f"""
[case]
name = "lattice_moving"
solver = "lattice"

[mesh]
nx = {side}
ny = {side}
nz = {side}

[fluid]
viscosity = 0.02

[reference]
velocity = 0.1
length = {side / 16}

[time]
lattice_velocity = 0.1
look = {steps // 4}
{"".join(bodies)}
[run]
iterations = {steps}
report_every = 50

[output]
image = false
picture = false
"""


def _compressible(side: int, steps: int, integrator: str) -> str:
    return f"""
[case]
name = "{integrator}"
solver = "compressible"

[mesh]
nx = {side}
ny = {side}
nz = {side}
perturb = 0.15

[flow]
mach = 0.5
alpha = 4.0

[boundary.zmin]
type = "slip"
[boundary.zmax]
type = "far-field"
[boundary.xmin]
type = "far-field"
[boundary.xmax]
type = "far-field"
[boundary.ymin]
type = "far-field"
[boundary.ymax]
type = "far-field"

[time]
integrator = "{integrator}"

[history]
every = {steps}

[run]
iterations = {steps}
report_every = 5

[partition]
method = "rcb"
{_QUIET}"""


def implicit(side: int, steps: int) -> str:
    """Return implicit steps of flow over a flat wall, on ``side**3`` hexahedra."""
    return _compressible(side, steps, "implicit")


def multigrid(side: int, steps: int) -> str:
    """Return cycles of multigrid for the same flow."""
    return _compressible(side, steps, "multigrid")


def explicit(side: int, steps: int) -> str:
    """Return explicit steps of the same flow."""
    return _compressible(side, steps, "explicit")


def airfoil(i: int, j: int) -> str:
    """Return Airfoil on ``3 i j`` cells."""
    return f"""
[case]
name = "airfoil"
solver = "airfoil"

[mesh]
type = "airfoil"
i = {i}
j = {j}

[run]
iterations = 100
report_every = 50
schedule = "deterministic=global"

[partition]
method = "rcb"
{_QUIET}"""


def les_multigrid(side: int, steps: int) -> str:
    """Return Taylor and Green's vortex with eddy viscosity; multigrid solves for the pressure."""
    return _les(side, steps, "smoothed_aggregation")


def les_jacobi(side: int, steps: int) -> str:
    """Return the same with diagonal scaling."""
    return _les(side, steps, "jacobi")


def _les(side: int, steps: int, preconditioner: str) -> str:
    return f"""
[case]
name = "les_multigrid"
solver = "incompressible"

[mesh]
x = [0.0, 6.283185307179586]
y = [0.0, 6.283185307179586]
z = [0.0, 6.283185307179586]
nx = {side}
ny = {side}
nz = {side}
periodic = [["xmin", "xmax"], ["ymin", "ymax"], ["zmin", "zmax"]]

[fluid]
viscosity = 6.25e-4

[initial]
velocity_x = "sin(x) * cos(y) * cos(z)"
velocity_y = "-cos(x) * sin(y) * cos(z)"

[les]
model = "wale"

[pressure]
preconditioner = "{preconditioner}"
rtol = 1e-4

[run]
iterations = {steps}
report_every = 5

[partition]
method = "rcb"
{_QUIET}"""


def edge_flow(side: int, steps: int) -> str:
    """Return flow under a lid on the edges of ``6 side**3`` tetrahedra; multigrid solves for the pressure."""
    return f"""
[case]
name = "edge_flow"
solver = "edge_flow"

[mesh]
nx = {side}
ny = {side}
nz = {side}
kind = "tetra"
perturb = 0.1

[fluid]
viscosity = 0.01

[boundary.ymax]
type = "wall"
velocity = [1.0, 0.0, 0.0]
{_walls("ymin xmin xmax zmin zmax")}
[pressure]
preconditioner = "smoothed_aggregation"
rtol = 1e-4

[time]
dt = {0.05 / side**2 * 8:.3g}

[run]
iterations = {steps}
report_every = 5

[partition]
method = "rcb"
{_QUIET}"""


def tsunami(nx: int, ny: int) -> str:
    """Return a wave that runs over a sloping bed, on ``2 nx ny`` triangles; a report is about ten steps."""
    return f"""
[case]
name = "tsunami"
solver = "tsunami"

[mesh]
x = [0.0, {12.0 * nx}]
y = [0.0, {12.0 * ny}]
nx = {nx}
ny = {ny}
perturb = 0.2

[bathymetry]
expression = "-100 + {80 / (12.0 * nx)} * x"

[[event]]
time = 0.0
expression = "2.5 * exp(-((x - {3.0 * nx}) / {1.2 * nx})**2 - ((y - {6.0 * ny}) / {3.0 * ny})**2)"

[flow]
manning = 0.025

[run]
time = 9.6
iterations = 16
report_every = 4

[partition]
method = "rcb"
{_QUIET}"""


CASES: dict[str, Callable[..., str]] = {
    "lattice-moving": lattice_moving,
    "airfoil": airfoil,
    "explicit": explicit,
    "implicit": implicit,
    "multigrid": multigrid,
    "les-multigrid": les_multigrid,
    "les-jacobi": les_jacobi,
    "edge-flow": edge_flow,
    "tsunami": tsunami,
}
