"""The tables of bodies in case files of lattice Boltzmann flow: solid, immersed, many particles."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator

from fluxloom.cases.files.strategy_tables import Chosen, GivenVector, Table, ValueKey, Vector, formula_check
from fluxloom.lbm.immersed import Delta, OnDevice, Pipeline, Roma

__all__ = ["LatticeBodyTable", "LatticeImmersedTable", "LatticeParticlesTable"]

Number = Annotated[float, Field(ge=0)]
Positive = Annotated[float, Field(gt=0)]
InTime = Annotated[str, AfterValidator(formula_check("t"))]
SpinVector = Annotated[list[Annotated[Any, ValueKey(variables=("t",))]], Field(max_length=3)]
InSpace = Annotated[str, AfterValidator(formula_check("x", "y", "z"))]

_NEEDS = {
    "circle": ("center", "diameter"), "sphere": ("center", "diameter"), "cylinder": ("center", "diameter", "axis"),
    "box": ("low", "high"), "implicit": ("function",), "surface": ("file",), "stl": ("file",),
}  # fmt: skip
_PLACED = ("scale", "translate", "weld")
_OPTIONAL = {"cylinder": ("length",), "implicit": ("low", "high"), "surface": _PLACED, "stl": _PLACED}
_MOTIONS = ("position_x", "position_y", "position_z", "angle")
_OF_MOTION = {
    "prescribed": _MOTIONS, "free": ("density", "gravity"), "elastic": ("stiffness", "bending"),
    "fixed": ("velocity", "spin"),
}  # fmt: skip


class LatticeBodyTable(Table):
    """``[body.NAME]``: a body in the flow.

    Attributes
    ----------
    shape
        ``"circle"``, ``"sphere"``, ``"cylinder"`` (in space), ``"box"``, ``"surface"``, also called ``"stl"``, or
        ``"implicit"``.
    center, diameter
        Of the first three.
    axis, length
        Of a cylinder; length 0: endless.
    low, high
        Two corners of a box; of an implicit body where it ends, if it does.
    function
        Of an implicit body: a formula in x, y and z that is not positive inside.
    file, scale, translate, weld
        Of surfaces: a file of closed surfaces of triangles (STL, OBJ, PLY, OFF, glTF, 3MF), of which the size and then
        the place is changed; corners that are no further apart than ``weld``, in units of the file, become one.
    condition
        ``"bounce-back"`` (walls half-way between cells), ``"interpolated"`` (where the shape says), or ``"immersed"``:
        forces at markers.
    retract
        Of immersed circles, spheres and boxes in the plane: how many cells inside of the surface its markers lie. 0.35
        (with ``"peskin"`` 0.45) puts the wall that the fluid feels onto the surface.
    velocity
        Of its surface, which stays where it is: numbers, of a solid body formulas in x, y, z and t too, or tables.
    spin
        Of its surface about the centre, radians a time, counter-clockwise: in the plane a number, in space three; of a
        solid body formulas in t too, or tables.
    motion
        Of immersed bodies: ``"fixed"``, ``"prescribed"``, ``"free"`` (circles and spheres), or ``"elastic"`` (circles
        and boxes in the plane: a membrane without mass, with fluid inside).
    position_x, position_y, position_z, angle
        Of prescribed motion: formulas in t; the way from the centre, and in the plane the angle in radians.
    density
        Of a free body.
    gravity
        On a free body; buoyancy is taken off.
    stiffness
        Of an elastic body: the tension at a strain of one, a force by depth. It is slack as it starts.
    bending
        Of an elastic body: the bending moment at a curvature of one, a force times a length by depth.
    """

    shape: Literal["circle", "sphere", "cylinder", "box", "implicit", "surface", "stl"]
    center: Vector = Field(default=[])
    diameter: Number = 0.0
    axis: Literal["", "x", "y", "z"] = ""
    length: Number = 0.0
    low: Vector = Field(default=[])
    high: Vector = Field(default=[])
    function: InSpace = ""
    file: str = ""
    scale: Positive = 1.0
    translate: Vector = Field(default=[])
    weld: Number = 0.0
    condition: Literal["bounce-back", "interpolated", "immersed"] = "interpolated"
    retract: Number = 0.0
    velocity: GivenVector = Field(default=[])
    spin: SpinVector = Field(default=[])
    motion: Literal["fixed", "prescribed", "free", "elastic"] = "fixed"
    position_x: InTime = ""
    position_y: InTime = ""
    position_z: InTime = ""
    angle: InTime = ""
    density: Number = 0.0
    gravity: Vector = Field(default=[])
    stiffness: Number = 0.0
    bending: Number = 0.0

    @model_validator(mode="after")
    def _consistent(self) -> LatticeBodyTable:
        needed = _NEEDS[self.shape]
        for name in needed:
            if not getattr(self, name):
                raise ValueError(f'shape = "{self.shape}" needs {name}')
        keys = {key for names in (*_NEEDS.values(), *_OPTIONAL.values()) for key in names}
        for name in self.changed(sorted(keys - {*needed, *_OPTIONAL.get(self.shape, ())})):
            raise ValueError(f'shape = "{self.shape}" has no {name}')
        if self.retract and (self.condition != "immersed" or self.shape not in ("circle", "sphere", "box")):
            raise ValueError('retract needs condition = "immersed", and a circle, a sphere or a box')
        if self.shape == "implicit" and bool(self.low) != bool(self.high):
            raise ValueError("give both of low and high, or none")
        self._check_motion()
        return self

    def _check_motion(self) -> None:
        if self.motion != "fixed" and self.condition != "immersed":
            raise ValueError(f'motion = "{self.motion}" needs condition = "immersed"')
        for motion, keys in _OF_MOTION.items():
            if self.motion != motion and (extra := self.changed(keys)):
                raise ValueError(f'{extra[0]} is of motion = "{motion}"')
        if self.motion == "prescribed" and not self.changed(_MOTIONS):
            raise ValueError(f'motion = "prescribed" needs one of {", ".join(_MOTIONS)}')
        if self.motion == "free" and (not self.density or self.shape not in ("circle", "sphere")):
            raise ValueError('motion = "free" needs a density, above 0, and a circle or a sphere')
        if self.motion == "elastic" and (not self.stiffness or self.shape not in ("circle", "box")):
            raise ValueError('motion = "elastic" needs a stiffness, above 0, and a circle or a box')


class LatticeImmersedTable(Table):
    """``[immersed]``: how immersed bodies and particles are computed.

    Attributes
    ----------
    delta
        How markers and cells see each other: ``"roma"``, three cells an axis, or ``"peskin"``, four.
    iterations
        Rounds of forcing in a step; 0: one, with free bodies two.
    margin
        Cells by which the cells around moving bodies are widened, to be found more rarely.
    pipeline
        Who does the work on markers: the ``"device"``, the ``"host"`` beside it, or, ``"auto"``, whichever is faster.
    """

    delta: Annotated[Delta, Chosen(Delta)] = Roma()
    iterations: Annotated[int, Field(ge=0, le=100)] = 0
    margin: Annotated[int, Field(ge=0, le=50)] = 2
    pipeline: Annotated[Pipeline, Chosen(Pipeline)] = OnDevice()


class LatticeParticlesTable(Table):
    """``[particles]``: many free disks, or balls, at random places that do not overlap.

    Attributes
    ----------
    count, diameter, density
        Of them all.
    gravity
        Acceleration, a number a dimension.
    seed
        Of the random places.
    low, high
        Corners of the part of the box in which they start; by default all of it.
    retract
        How many cells inside of their surfaces markers lie, as of bodies.
    """

    count: Annotated[int, Field(ge=0, le=100_000)] = 0
    diameter: Number = 0.0
    density: Number = 0.0
    gravity: Vector = Field(default=[])
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0
    low: Vector = Field(default=[])
    high: Vector = Field(default=[])
    retract: Number = 0.0

    @model_validator(mode="after")
    def _consistent(self) -> LatticeParticlesTable:
        if self.count and not (self.diameter and self.density and self.gravity):
            raise ValueError("particles need count, diameter, density and gravity")
        others = ("diameter", "density", "gravity", "seed", "low", "high", "retract")
        if not self.count and (extra := self.changed(others)):
            raise ValueError(f"{extra[0]} is there but there are no particles: give count")
        return self
