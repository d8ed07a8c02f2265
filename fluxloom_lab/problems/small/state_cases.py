"""Small cases of every solver and of each of its ways to step, for tests of runs that are ended and go on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["CASES", "DEVICES", "LONG", "RANKS", "SOLVERS", "changed"]

AIRFOIL = """
[case]
name = "a"
solver = "airfoil"
[mesh]
i = 12
j = 8
[statistics]
every = 2
profile = "y"
bins = 4
[run]
iterations = 100
threads = 1
"""
STAGGERED = """
[case]
name = "stat_stag"
solver = "staggered"
[mesh]
x = [0.0, 6.283185307179586]
y = [0.0, 6.283185307179586]
nx = 16
ny = 16
periodic = [["xmin", "xmax"], ["ymin", "ymax"]]
[fluid]
viscosity = 0.02
[initial]
velocity_x = "1 + sin(x) * cos(y)"
velocity_y = "-cos(x) * sin(y)"
[time]
dt = 0.05
[history]
every = 1
[statistics]
every = 3
start = 0.2
profile = "y"
[checkpoint]
every = 7
[run]
iterations = 10
threads = 1
"""
STAGGERED_CHANNEL = """
[case]
name = "s"
solver = "staggered"
[mesh]
nx = 12
ny = 10
nz = 6
stretch_y = 1.2
periodic = [["xmin", "xmax"], ["zmin", "zmax"]]
[fluid]
viscosity = 0.01
mean_velocity = [1.0, 0.0, 0.0]
[initial]
velocity_x = "1 + 0.2 * sin(6 * y)"
noise = 0.2
seed = 1
[boundary]
ymin = { type = "wall" }
ymax = { type = "wall" }
[time]
residual_interval = 4
[history]
every = 4
[forces.walls]
patches = ["ymin", "ymax"]
[statistics]
every = 3
profile = "y"
[run]
iterations = 1000
threads = 1
"""
CHANNEL = """
[case]
name = "channel"
solver = "incompressible"
[mesh]
nx = 9
ny = 6
perturb = 0.1
[fluid]
viscosity = 0.02
gravity = [0.0, -1.0]
[boundary]
xmin = { type = "inflow", velocity_x = "1 + y" }
xmax = { type = "outflow" }
ymin = { type = "wall" }
ymax = { type = "wall" }
[scalar.T]
diffusivity = 0.02
expansion = 0.5
initial = "sin(3 * x)"
[scalar.T.boundary]
xmin = { type = "value", value = "1" }
xmax = { type = "outflow" }
ymin = { type = "flux", value = "0.4" }
ymax = { type = "adiabatic" }
[pressure]
preconditioner = "jacobi"
rtol = 1e-6
[forces.ymin]
speed = 1.0
area = 1.0
[probes]
every = 1
points.a = [0.2, 0.3]
points.b = [0.9, 0.6]
[statistics]
every = 3
profile = "y"
bins = 3
[history]
every = 4
[run]
iterations = 1000
threads = 1
"""
CAVITY = """
[case]
name = "cavity"
solver = "incompressible"
[mesh]
nx = 10
ny = 10
[fluid]
viscosity = 0.01
[boundary]
xmin = { type = "wall" }
xmax = { type = "wall" }
ymin = { type = "wall" }
ymax = { type = "wall", velocity = [1.0, 0.0] }
[pressure]
preconditioner = "smoothed_aggregation"
rtol = 1e-5
[history]
every = 1
[run]
iterations = 1000
threads = 1
"""
FOURIER = """
[case]
name = "fourier"
solver = "incompressible"
[mesh]
nx = 8
ny = 6
nz = 8
periodic = [["xmin", "xmax"], ["zmin", "zmax"]]
[fluid]
viscosity = 0.01
mean_velocity = [1.0, 0.0, 0.0]
[initial]
velocity_x = "1 + 0.1 * sin(6 * y)"
noise = 0.2
seed = 1
[boundary]
ymin = { type = "wall" }
ymax = { type = "wall" }
[les]
model = "wale"
[pressure]
solver = "fourier"
rtol = 1e-5
[statistics]
every = 2
[history]
every = 2
[run]
iterations = 1000
threads = 1
"""
EDGE = """
[case]
name = "edge"
solver = "edge_flow"
[mesh]
kind = "triangle"
nx = 8
ny = 8
[fluid]
viscosity = 0.02
[boundary]
xmin = { type = "inflow", velocity_x = "4 * y * (1 - y)" }
xmax = { type = "outflow" }
ymin = { type = "wall" }
ymax = { type = "wall" }
[pressure]
preconditioner = "smoothed_aggregation"
rtol = 1e-4
[forces.ymin]
[probes]
every = 1
points.a = [0.5, 0.45]
[history]
every = 3
[statistics]
every = 2
profile = "x"
bins = 3
[run]
iterations = 1000
threads = 1
"""
EDGE_CAVITY = """
[case]
name = "edgec"
solver = "edge_flow"
[mesh]
kind = "triangle"
nx = 8
ny = 8
[fluid]
viscosity = 0.02
[boundary]
xmin = { type = "wall" }
xmax = { type = "wall" }
ymin = { type = "wall" }
ymax = { type = "wall", velocity = [1.0, 0.0] }
[pressure]
rtol = 1e-4
[history]
every = 3
[run]
iterations = 1000
threads = 1
"""
TRANSPORT = """
[case]
name = "tr"
solver = "edge_transport"
[mesh]
kind = "triangle"
x = [-1.0, 1.0]
y = [-1.0, 1.0]
nx = 10
ny = 10
[transport]
velocity_x = "-y"
velocity_y = "x"
diffusivity = 1e-3
[initial]
scalar = "exp(-((x + 0.5)**2 + y**2) * 10)"
[boundary]
xmin = { type = "given", value = 0.0 }
xmax = { type = "given", value = 0.0 }
ymin = { type = "given", value = 0.0 }
ymax = { type = "given", value = 0.0 }
[probes]
points.start = [-0.5, 0.0]
[history]
every = 3
[statistics]
every = 3
profile = "y"
bins = 4
[run]
iterations = 1000
threads = 1
"""
DIFFUSION = """
[case]
name = "heat"
solver = "diffusion"
[mesh]
nx = 10
ny = 8
perturb = 0.1
[diffusion]
conductivity = "where(x < 0.5, 1, 0.2)"
[initial]
scalar = "x * y"
[boundary]
xmin = { type = "given", value = 0.0 }
xmax = { type = "convective", coefficient = 2.0, outside = 1.0 }
ymin = { type = "insulated" }
ymax = { type = "flux", value = 0.3 }
[time]
dt = 0.01
[patch_flow.xmin]
[walls.xmax]
[probes]
points.middle = [0.5, 0.5]
[history]
every = 3
[run]
iterations = 1000
threads = 1
"""
TUBE = """
[case]
name = "tube"
solver = "compressible"
[mesh]
nx = 40
ny = 2
y = [0.0, 0.05]
perturb = 0.1
[initial]
left = [1.0, 0.0, 0.0, 1.0]
right = [0.125, 0.0, 0.0, 0.1]
at = 0.5
[boundary]
xmin = { type = "slip" }
xmax = { type = "slip" }
ymin = { type = "symmetry" }
ymax = { type = "symmetry" }
[flow]
mach = 0.1
pressure = 1.0
[forces.xmax]
[surface]
patches = ["xmax"]
[history]
every = 4
[probes]
every = 1
points.a = [0.33, 0.02]
[statistics]
every = 3
[time]
end = 0.25
[run]
iterations = 1000
threads = 1
"""
WING_SECTION = """
[case]
name = "n"
solver = "compressible"
[mesh]
shape = "airfoil"
profile = "0012"
around = 32
outward = 10
reach = 10.0
[flow]
mach = 0.5
alpha = 1.25
[boundary]
airfoil = { type = "slip" }
far_field = { type = "far-field" }
[forces.airfoil]
[probes]
every = 2
points.a = [2.0, 0.5]
[statistics]
every = 3
[history]
every = 4
[run]
iterations = 1000
threads = 1
"""
LATTICE = """
[case]
name = "lat"
solver = "lattice"
[mesh]
nx = 30
ny = 20
spacing = 0.1
[fluid]
reynolds = 50
[time]
lattice_velocity = 0.05
residual_interval = 4
[boundary]
xmin = { type = "velocity", velocity = [1.0, 0.0], ramp = 0.1 }
xmax = { type = "outflow" }
ymin = { type = "slip" }
ymax = { type = "slip" }
[initial]
velocity_x = "1"
[body.cylinder]
shape = "circle"
center = [1.0, 1.05]
diameter = 0.5
[forces.cylinder]
[probes]
points.a = [2.0, 1.0]
[history]
every = 4
[output]
every = 5
[run]
iterations = 1000
threads = 1
"""
PULSE = {
    "boundary.xmin": {"type": "velocity", "velocity": ["1 + 0.3 * sin(9 * t) * y", 0.0], "ramp": 0.1},
    "boundary.xmax": {"type": "pressure", "pressure": "0.02 * sin(7 * t)"},
    "boundary.ymin": {"type": "wall", "velocity": ["0.2 * cos(5 * t)", 0.0]}, "boundary.ymax": {"type": "wall"},
    "fluid.force": ["0.1 * sin(8 * t)", 0.0], "forces.cylinder.point": [0.0, 0.0], "movie.every": 4,
}  # fmt: skip
"""Changes of ``LATTICE``: what is given changes in time."""
MOVING = """
[case]
name = "mov"
solver = "lattice"
[mesh]
nx = 40
ny = 30
spacing = 0.1
origin = [-2.0, -1.5]
[fluid]
reynolds = 50
[time]
lattice_velocity = 0.05
residual_interval = 3
[body.cylinder]
shape = "circle"
center = [0.0, 0.0]
diameter = 1.0
condition = "immersed"
motion = "prescribed"
position_x = "-0.5 * sin(2 * pi * t)"
[forces.cylinder]
[history]
every = 2
[run]
iterations = 1000
threads = 1
"""
PARTICLES = """
[case]
name = "part"
solver = "lattice"
[mesh]
nx = 30
ny = 40
spacing = 0.1
[fluid]
viscosity = 0.1
[time]
lattice_velocity = 0.02
residual_interval = 5
[boundary]
xmin = { type = "wall" }
xmax = { type = "wall" }
ymin = { type = "wall" }
ymax = { type = "wall" }
[particles]
count = 3
diameter = 0.8
density = 1.5
gravity = [0.0, -5.0]
seed = 1
[history]
every = 4
[run]
iterations = 1000
threads = 1
"""
ELASTIC = """
[case]
name = "ela"
solver = "lattice"
[mesh]
nx = 40
ny = 30
spacing = 0.1
[fluid]
reynolds = 20
[time]
lattice_velocity = 0.05
residual_interval = 3
[boundary]
ymin = { type = "wall" }
ymax = { type = "wall", velocity = [1.0, 0.0] }
[body.cell]
shape = "circle"
center = [2.0, 1.2]
diameter = 1.0
condition = "immersed"
motion = "elastic"
stiffness = 0.5
bending = 0.001
[history]
every = 2
[run]
iterations = 1000
threads = 1
"""
TSUNAMI = """
[case]
name = "tsu"
solver = "tsunami"
[mesh]
x = [0.0, 24e3]
y = [0.0, 16e3]
nx = 20
ny = 14
perturb = 0.2
[bathymetry]
expression = "max(-100, -100 + 0.0095 * (x - 12e3)) + 105 * exp(-((x - 13e3)**2 + (y - 8e3)**2) / 1.8e3**2)"
[[event]]
time = 0.0
expression = "2.5 * exp(-((x - 5e3) / 1.2e3)**2 - ((y - 7.5e3) / 3.6e3)**2)"
[[event]]
time = 140.0
expression = "1.5 * exp(-((x - 5e3) / 1.2e3)**2 - ((y - 7.5e3) / 3.6e3)**2)"
[flow]
manning = 0.025
[boundary.xmin]
type = "incident"
surface = "0.1 * sin(t / 30)"
every = 5.0
[boundary.ymin]
type = "incident"
[boundary.ymax]
type = "wall"
[gauges]
every = 7.0
[gauges.points]
offshore = [9e3, 8e3]
lee = [16.5e3, 8e3]
[statistics]
every = 1
profile = "x"
bins = 5
[run]
time = 480.0
iterations = 48
threads = 1
[output]
snapshots = 4
"""

IN_TIME: dict[str, Any] = {
    "boundary.xmin.velocity_x": "(1 + y) * (1 + 0.5 * sin(9 * t))", "boundary.xmax.pressure": "0.3 * cos(8 * t)",
    "boundary.ymax.velocity_x": "sin(7 * t)", "fluid.force": ["y * cos(6 * t)", "t"], "scalar.T.source": "x * t",
    "scalar.T.boundary.xmin.value": "cos(9 * t)", "scalar.T.boundary.ymin.value": "0.4 * sin(5 * t)",
    "history.every": 1,
}
"""Everything that a flow is given."""
EDGE_IN_TIME: dict[str, Any] = {
    "boundary.xmin.velocity_x": "4 * y * (1 - y) * (1 + sin(9 * t))", "boundary.xmax.pressure": "0.3 * cos(8 * t)",
    "boundary.ymax.velocity_x": "sin(7 * t)", "fluid.force": ["y * cos(6 * t)", "t"], "fluid.viscosity": "0.02 + t * y",
    "history.every": 1,
}
TRANSPORT_IN_TIME: dict[str, Any] = {
    "transport.velocity_x": "-y * cos(t)", "transport.diffusivity": "1e-3 * (1 + t)", "transport.source": "t * x",
    "boundary.xmin.value": "sin(3 * t)", "boundary.xmax": {"type": "flux", "value": "cos(2 * t) * y"},
}
DIFFUSION_IN_TIME: dict[str, Any] = {
    "diffusion.conductivity": "1 + x * sin(5 * t)", "diffusion.capacity": "2 + cos(4 * t)", "diffusion.source": "t * x",
    "boundary.xmin.value": "sin(3 * t)", "boundary.ymax.value": "cos(2 * t) * y",
    "boundary.xmax": {"type": "convective", "coefficient": "2 + sin(t)", "outside": "t"},
}
STAGGERED_IN_TIME: dict[str, Any] = {
    "fluid.mean_velocity": None, "fluid.force": ["sin(8 * t)", "0", "y * cos(9 * t)"],
    "boundary.ymax.velocity_x": "sin(7 * t)", "time.scheme": "runge-kutta", "forces": None,
}

Case = tuple[str, dict[str, Any], int]

_FIRST: dict[str, Case] = {
    "airfoil": (AIRFOIL, {}, 9),
    "staggered": (STAGGERED, {}, 10),
    "staggered kept mean": (STAGGERED_CHANNEL, {}, 10),
    "staggered runge-kutta": (STAGGERED_CHANNEL, {"time.scheme": "runge-kutta"}, 10),
    "staggered one projection": (STAGGERED_CHANNEL, {"time.scheme": {"type": "runge-kutta", "projection": "step"}}, 10),
    "incompressible scalar": (CHANNEL, {}, 12),
    "incompressible end": (CHANNEL, {"time.end": 0.4}, 100),
    "incompressible runge-kutta": (CHANNEL, {"time.scheme": "runge-kutta"}, 12),
    "incompressible in time": (CHANNEL, IN_TIME, 12),
    "incompressible viscosity": (CHANNEL, IN_TIME | {"fluid.viscosity": "0.01 + 0.005 * sin(3 * x + 9 * t)"}, 12),
    "incompressible stages in time": (CHANNEL, IN_TIME | {"time.scheme": "runge-kutta", "mesh.perturb": 0.0}, 12),
    "incompressible closed": (CAVITY, {}, 12),
    "incompressible jacobi": (CAVITY, {"pressure.preconditioner": "jacobi"}, 12),
    "incompressible fourier": (FOURIER, {}, 12),
    "incompressible smagorinsky": (FOURIER, {"les.model": "smagorinsky"}, 12),
    "staggered in time": (STAGGERED_CHANNEL, STAGGERED_IN_TIME, 10),
    "edge_flow": (EDGE, {}, 12),
    "edge_flow in time": (EDGE, EDGE_IN_TIME, 12),
    "edge_transport in time": (TRANSPORT, TRANSPORT_IN_TIME, 12),
    "diffusion": (DIFFUSION, {}, 12),
    "diffusion in time": (DIFFUSION, DIFFUSION_IN_TIME, 12),
    "diffusion ssor": (DIFFUSION, {"krylov.preconditioner": "ssor"}, 12),
    "edge_flow jacobi": (EDGE, {"pressure.preconditioner": "jacobi"}, 12),
    "edge_flow bicgstab": (EDGE, {"pressure.solver": "bicgstab", "les.model": "wale"}, 12),
    "edge_flow tracked": (EDGE, {"scheme.subscales": "tracked"}, 12),
    "edge_flow closed": (EDGE_CAVITY, {}, 12),
    "edge_flow closed aggregation": (EDGE_CAVITY, {"pressure.preconditioner": "smoothed_aggregation"}, 12),
    "edge_transport": (TRANSPORT, {}, 12),
    "compressible in time": (TUBE, {}, 20),
    "compressible given steps": (TUBE, {"time.dt": 0.0025}, 20),
    "compressible values": (
        TUBE, {
            "gas.viscosity": {"type": "constant", "mu": 0.01},
            "boundary.xmin": {"type": "total-inlet", "pressure": "1.2 + 0.1 * sin(40 * t) * y", "temperature": "1 + t"},
            "boundary.xmax": {"type": "outlet", "pressure": {"type": "formula", "text": "0.1 + t"}},
            "boundary.ymin": {"type": "wall", "heat_flux": "x * t", "velocity_x": "sin(40 * t)"},
        }, 20,
    ),
    "compressible local": (WING_SECTION, {}, 20),
    "compressible ramp": (WING_SECTION, {"time.ramp": 12, "time.cfl_start": 0.1}, 20),
    "compressible implicit": (WING_SECTION, {"time.integrator": "implicit", "implicit.krylov": 20}, 20),
    "compressible sweeps": (WING_SECTION, {"time.integrator": "implicit", "implicit.krylov": 0}, 20),
    "compressible multigrid": (WING_SECTION, {"time.integrator": "multigrid"}, 30),
    "compressible stages": (
        WING_SECTION, {"time.integrator": "multigrid", "multigrid.smoother": "stages", "multigrid.start": 2}, 20,
    ),
    "compressible frozen": (WING_SECTION, {"time.integrator": "implicit", "implicit.krylov": 20}, 90),
    "lattice pull": (LATTICE, {}, 13),
    "lattice push": (LATTICE, {"lattice.streaming": "push"}, 13),
    "lattice inplace": (LATTICE, {"lattice.streaming": "in-place"}, 13),
    "lattice three": (LATTICE, {"lattice.streaming": "three-phase"}, 13),
    "lattice list": (LATTICE, {"lattice.cells": "fluid"}, 13),
    "lattice listpush": (LATTICE, {"lattice.cells": "fluid", "lattice.streaming": "push"}, 13),
    "lattice listinplace": (LATTICE, {"lattice.cells": "fluid", "lattice.streaming": "in-place"}, 13),
    "lattice half": (LATTICE, {"lattice.precision": "float16"}, 13),
    "lattice immersed": (LATTICE, {"body.cylinder.condition": "immersed"}, 13),
    "lattice pressure": (LATTICE, {"boundary.xmax": {"type": "pressure"}, "boundary.xmin.scheme": "zou-he"}, 13),
    "lattice pulse": (LATTICE, PULSE, 13),
    "lattice moving": (MOVING, {}, 13),
    "lattice movinghost": (MOVING, {"immersed.pipeline": "host"}, 13),
    "lattice movinginplace": (MOVING, {"lattice.streaming": "in-place"}, 13),
    "lattice particles": (PARTICLES, {}, 13),
    "lattice elastic": (ELASTIC, {}, 13),
    "tsunami": (TSUNAMI, {}, 24),
    "tsunami first order": (TSUNAMI, {"flow.order": 1, "flow.precision": "float32"}, 24),
}

_VISCOUS = {"gas.viscosity": "sutherland", "flow.reynolds": 1e5, "boundary.airfoil": {"type": "wall"}}
_MODEL = _VISCOUS | {"scheme.turbulence": "spalart-allmaras"}
_SMOKE = {"diffusivity": 0.01, "initial": "where(x < 0.5, 1, 0)", "bounded": True,
         "boundary": {side: {"type": "adiabatic"} for side in ("xmin", "xmax", "ymin", "ymax")}}  # fmt: skip
_SPACE = {"mesh.nx": 16, "mesh.ny": 14, "mesh.nz": 12, "body": {}, "forces": {}, "probes": {},
         "boundary.xmin": {"type": "wall"}, "boundary.xmax": {"type": "wall"}}  # fmt: skip

_MORE: dict[str, tuple[str, dict[str, Any]]] = {
    "edge_transport bounded": ("edge_transport", {"scheme.bounded": True}),
    "edge_transport free": ("edge_transport", {"scheme.bounded": False}),
    "edge_flow wall law": ("edge_flow", {"boundary.ymax": {"type": "wall_law", "distance": 0.05}}),
    "edge_flow steady": ("edge_flow", {"time.steady": 1e-6}),
    "edge_flow smagorinsky": ("edge_flow", {"les.model": "smagorinsky"}),
    "incompressible steady": ("incompressible closed", {"time.steady": 1e-6}),
    "incompressible symmetric": ("incompressible scalar", {"mesh.perturb": 0.0}),
    "incompressible consistent": ("incompressible closed", {"space.form": "consistent"}),
    "incompressible smoke": ("incompressible scalar", {"scalar.smoke": _SMOKE}),
    "incompressible smoke runge-kutta": ("incompressible runge-kutta", {"scalar.smoke": _SMOKE}),
    "incompressible steady scalar": ("incompressible scalar", {"time.steady": 1e-6}),
    "compressible first order": ("compressible in time", {"scheme.order": 1}),
    "compressible barth": ("compressible in time", {"scheme.limiter": "barth-jespersen"}),
    "compressible unlimited": ("compressible local", {"scheme.limiter": "none"}),
    "compressible rk5": ("compressible local", {"scheme.time": "rk5"}),
    "compressible rk2": ("compressible in time", {"scheme.time": "rk2"}),
    "compressible nodes": ("compressible local", {"scheme.gradients": "green-gauss"}),
    "compressible low mach": ("compressible local", {"scheme.low_mach": True, "flow.mach": 0.1}),
    "compressible single": ("compressible local", {"scheme.storage": "float32"}),
    "compressible viscous": ("compressible local", _VISCOUS),
    "compressible model": ("compressible local", _MODEL),
    "compressible model implicit": ("compressible implicit", _MODEL),
    "compressible model multigrid": ("compressible multigrid", _MODEL),
    "compressible turns": ("compressible local", {
        "rotation": {"rate": [1.0], "centre": [0.5, 0.0]}, "flow.mach": 0.0,
        "boundary.airfoil": {"type": "slip", "velocity": "mesh"}, "forces": {}, "statistics": {}, "probes": {},
    }),
    "compressible periodic": ("compressible in time", {
        "mesh.periodic": [["ymin", "ymax"]], "boundary.ymin": None, "boundary.ymax": None,
    }),
    "tsunami single": ("tsunami", {"flow.precision": "float32"}),
    "lattice bgk": ("lattice pull", {"lattice.collision": "bgk"}),
    "lattice mrt": ("lattice pull", {"lattice.collision": "mrt"}),
    "lattice regularised": ("lattice pull", {"lattice.collision": "regularised"}),
    "lattice central": ("lattice pull", {"lattice.collision": "central"}),
    "lattice cumulant": ("lattice pull", _SPACE | {"lattice.collision": "cumulant"}),
    "lattice in space": ("lattice inplace", _SPACE),
    "lattice eddies": ("lattice pull", {"lattice.collision": {"type": "bgk", "smagorinsky": 0.1}}),
    "lattice sponge": ("lattice pull", {"boundary.xmax": {"type": "outflow", "sponge": {"width": 0.5}}}),
    "lattice moving push": ("lattice moving", {"lattice.streaming": "push"}),
    "lattice particles inplace": ("lattice particles", {"lattice.streaming": "in-place"}),
    "lattice elastic inplace": ("lattice elastic", {"lattice.streaming": "in-place"}),
}  # fmt: skip
"""Name to one of them, and more changes of it."""

CASES: dict[str, Case] = _FIRST | {
    name: (_FIRST[base][0], _FIRST[base][1] | changes, _FIRST[base][2]) for name, (base, changes) in _MORE.items()
}  # fmt: skip
"""Name to a case, changes of it, and steps of the whole run."""

LONG = frozenset(CASES) - {
    "airfoil", "staggered one projection", "incompressible scalar", "incompressible fourier", "edge_flow",
    "edge_transport", "compressible in time", "compressible values", "compressible local", "lattice inplace",
    "lattice pulse", "diffusion", "diffusion in time",
    "lattice moving", "tsunami",
}  # fmt: skip
"""Those that take more than some seconds, or that others nearly are."""

SOLVERS = (
    "airfoil", "edge_transport", "edge_flow", "incompressible scalar", "staggered", "tsunami", "compressible in time",
    "compressible local", "compressible implicit", "compressible multigrid", "lattice pull", "lattice push",
    "lattice inplace", "lattice immersed", "diffusion in time",
)  # fmt: skip
"""A case of each solver, and of each way to step whose restarts are of a kind of their own."""
RANKS: dict[str, float] = {
    "airfoil": 0.0, "edge_transport": 0.0, "edge_flow": 1e-3, "incompressible scalar": 0.0, "tsunami": 0.0,
    "compressible in time": 0.0, "compressible local": 0.0, "compressible implicit": 1e-2,
    "compressible multigrid": 1e-2, "lattice pull": 0.0, "lattice push": 0.0, "lattice inplace": 0.0,
    "lattice immersed": 1e-5, "diffusion in time": 1e-12,
}  # fmt: skip
"""How far fields may be from those of one run on one rank, in parts of the largest value; 0: no bit differs."""
DEVICES: dict[str, float] = {
    "airfoil": 1e-12, "edge_transport": 1e-12, "edge_flow": 1e-3, "incompressible scalar": 1e-3, "staggered": 1e-12,
    "tsunami": 1e-10, "compressible in time": 1e-11, "compressible local": 1e-11, "compressible implicit": 1e-6,
    "compressible multigrid": 1e-8, "lattice pull": 1e-5, "lattice push": 1e-5, "lattice inplace": 1e-5,
    "lattice immersed": 1e-5, "diffusion in time": 1e-7,
}  # fmt: skip
"""The same of a run that goes from one device to another."""


def changed(case: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return a case with other values of ``"table.key"``; None takes a key away."""
    found = {name: dict(table) if isinstance(table, dict) else table for name, table in case.items()}
    for place, value in changes.items():
        *path, key = place.split(".")
        table: dict[str, Any] = found
        for name in path:
            table[name] = dict(table.get(name, {}))
            table = table[name]
        if value is None:
            table.pop(key, None)
        else:
            table[key] = value
    return found
