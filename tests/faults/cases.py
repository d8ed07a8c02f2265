"""One small case of each solver, and how to change it: what the tests of faults run."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["CASES", "Small"]


@dataclass(frozen=True)
class Small:
    """A case that runs in a fraction of a second.

    Attributes
    ----------
    text
        Its file; ``ITERATIONS`` stands for the number of steps.
    changed
        A line of it, and another one that makes a different flow of it.
    target
        A line of it, and lines that name a target in its place, ``{residual}``; empty: the solver knows none.
    too_long
        A line of it, and one that sets the length of steps in its place, ``{length}``.
    stable
        The largest stable length.
    start
        A line of the start, and one whose values are not numbers.
    fields
        Name of the file of fields at the end.
    """

    text: str
    changed: tuple[str, str]
    target: tuple[str, str] = ("", "")
    too_long: tuple[str, str] = ("", "")
    stable: float = 1.0
    start: tuple[str, str] = ("", "")
    fields: str = "final.vtkhdf"


AIRFOIL = """
[case]
name = "small"
solver = "airfoil"
[mesh]
i = 8
j = 12
[flow]
mach = 0.4
cfl = 0.9
[run]
iterations = ITERATIONS
threads = 1
"""

COMPRESSIBLE = """
[case]
name = "small"
solver = "compressible"
[mesh]
nx = 12
ny = 6
[flow]
mach = 0.5
[initial]
density = "1 + 0.1 * sin(2 * pi * x)"
velocity_x = "0.5"
pressure = "1"
[boundary.xmin]
type = "slip"
[boundary.xmax]
type = "slip"
[boundary.ymin]
type = "slip"
[boundary.ymax]
type = "slip"
[time]
cfl = 0.5
end = 100.0
[history]
every = 1
[run]
iterations = ITERATIONS
threads = 1
"""

LID = """
[boundary.ymax]
type = "wall"
velocity = [1.0, 0.0]
[boundary.ymin]
type = "wall"
[boundary.xmin]
type = "wall"
[boundary.xmax]
type = "wall"
[history]
every = 1
[run]
iterations = ITERATIONS
threads = 1
"""

INCOMPRESSIBLE = """
[case]
name = "small"
solver = "incompressible"
[mesh]
nx = 8
ny = 8
[fluid]
viscosity = 0.01
[initial]
velocity_x = "0"
[time]
dt = 0.02
""" + LID

EDGE_FLOW = """
[case]
name = "small"
solver = "edge_flow"
[mesh]
kind = "triangle"
nx = 8
ny = 8
[fluid]
viscosity = 0.01
[initial]
velocity_x = "0"
[time]
dt = 0.02
""" + LID

STAGGERED = """
[case]
name = "small"
solver = "staggered"
[mesh]
x = [0.0, 1.0]
y = [0.0, 1.0]
nx = 8
ny = 8
[fluid]
viscosity = 0.01
[initial]
velocity_x = "0"
[time]
dt = 0.02
""" + LID

EDGE_TRANSPORT = """
[case]
name = "small"
solver = "edge_transport"
[mesh]
kind = "triangle"
nx = 8
ny = 8
[transport]
velocity = [1.0, 0.0]
diffusivity = 1e-3
[initial]
scalar = "exp(-20 * (x - 0.5)**2)"
[boundary.xmin]
type = "given"
value = 0.0
[boundary.xmax]
type = "free"
[boundary.ymin]
type = "free"
[boundary.ymax]
type = "free"
[time]
dt = 0.02
[history]
every = 1
[run]
iterations = ITERATIONS
threads = 1
"""

DIFFUSION = """
[case]
name = "small"
solver = "diffusion"
[mesh]
kind = "triangle"
nx = 8
ny = 8
[diffusion]
conductivity = 0.1
[initial]
scalar = "exp(-20 * (x - 0.5)**2)"
[boundary.xmin]
type = "given"
value = 0.0
[boundary.xmax]
type = "insulated"
[boundary.ymin]
type = "convective"
coefficient = 0.2
outside = 1.0
[boundary.ymax]
type = "flux"
value = "cos(t)"
[time]
dt = 0.02
[history]
every = 1
[run]
iterations = ITERATIONS
threads = 1
"""

LATTICE = """
[case]
name = "small"
solver = "lattice"
[mesh]
nx = 8
ny = 8
spacing = 0.125
[reference]
velocity = 1.0
length = 1.0
[fluid]
viscosity = 0.05
[time]
lattice_velocity = 0.05
[initial]
velocity_x = "0.1 * sin(2 * pi * y)"
[history]
every = 1
[run]
iterations = ITERATIONS
threads = 1
"""

TSUNAMI = """
[case]
name = "small"
solver = "tsunami"
[mesh]
x = [0.0, 1000.0]
y = [0.0, 1000.0]
nx = 8
ny = 8
[bathymetry]
expression = "-10 + 0.001 * x"
[[event]]
time = 0.0
expression = "0.5 * exp(-((x - 500)**2 + (y - 500)**2) / 2e4)"
[flow]
cfl = 0.5
[gauges]
every = 2.0
[gauges.points]
middle = [500.0, 500.0]
[run]
time = 40.0
iterations = ITERATIONS
threads = 1
"""

DT = ("dt = 0.02", "dt = 0.02\nsteady = {residual}")
TOO_LONG = ("dt = 0.02", "dt = {length}")
AT_REST = ('velocity_x = "0"', 'velocity_x = "1 / (x - x)"')
THICKER = ("viscosity = 0.01", "viscosity = 0.02")
HILL = 'scalar = "exp(-20 * (x - 0.5)**2)"'
SINE = 'velocity_x = "0.1 * sin(2 * pi * y)"'
BED = 'expression = "-10 + 0.001 * x"'
SPEED = "lattice_velocity = 0.05"

CASES: dict[str, Small] = {
    "airfoil": Small(AIRFOIL, ("mach = 0.4", "mach = 0.5"), too_long=("cfl = 0.9", "cfl = {length}")),
    "compressible": Small(
        COMPRESSIBLE, ('pressure = "1"', 'pressure = "1.1"'), target=("end = 100.0", "residual_drop = {residual}"),
        too_long=("cfl = 0.5", "cfl = {length}"), stable=0.8,
        start=('pressure = "1"', 'pressure = "1 / (x - x)"'),
    ),
    "incompressible": Small(INCOMPRESSIBLE, THICKER, target=DT, too_long=TOO_LONG, stable=0.044, start=AT_REST),
    "edge_flow": Small(EDGE_FLOW, THICKER, target=DT, too_long=TOO_LONG, stable=0.125, start=AT_REST),
    "staggered": Small(STAGGERED, THICKER, target=DT, too_long=TOO_LONG, stable=0.125, start=AT_REST),
    "edge_transport": Small(
        EDGE_TRANSPORT, ("diffusivity = 1e-3", "diffusivity = 2e-3"), target=DT, too_long=TOO_LONG, stable=0.06,
        start=(HILL, 'scalar = "1 / (x - x)"'),
    ),
    "diffusion": Small(
        DIFFUSION, ("conductivity = 0.1", "conductivity = 0.2"), target=DT, start=(HILL, 'scalar = "1 / (x - x)"'),
    ),
    "lattice": Small(
        LATTICE, ("viscosity = 0.05", "viscosity = 0.04"),
        target=(SPEED, f"{SPEED}\nresidual_interval = 1\nsteady = {{residual}}"),
        too_long=(SPEED, "lattice_velocity = {length}"), stable=0.1, start=(SINE, 'velocity_x = "1 / (x - x)"'),
        fields="final.vti",
    ),
    "tsunami": Small(
        TSUNAMI, ("-10 + 0.001 * x", "-12 + 0.001 * x"), too_long=("cfl = 0.5", "cfl = {length}"),
        start=(BED, 'expression = "-10 / (x - x)"'),
    ),
}  # fmt: skip
