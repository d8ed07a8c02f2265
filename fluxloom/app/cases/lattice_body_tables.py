"""The tables of bodies in case files of lattice Boltzmann flow: solid, immersed, many particles."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from fluxloom.app.case import Table
from fluxloom.app.cases.expressions import formula_check

__all__ = ["LatticeBodyTable", "LatticeImmersedTable", "LatticeParticlesTable"]

Number = Annotated[float, Field(ge=0)]
Positive = Annotated[float, Field(gt=0)]
Vector = Annotated[list[float], Field(max_length=3)]
InTime = Annotated[str, AfterValidator(formula_check("t"))]

_NEEDS = {
    "circle": ("center", "diameter"), "sphere": ("center", "diameter"), "cylinder": ("center", "diameter", "axis"),
    "box": ("low", "high"), "stl": ("file",),
}  # fmt: skip
_MOTIONS = ("position_x", "position_y", "position_z", "angle")


class LatticeBodyTable(Table):
    """``[body.NAME]``: a body in the flow.

    Attributes
    ----------
    shape
        ``"circle"``, ``"sphere"``, ``"cylinder"`` (in space), ``"box"`` or ``"stl"``.
    center, diameter
        Of the first three.
    axis, length
        Of a cylinder; length 0: endless.
    low, high
        Two corners of a box.
    file, scale, translate
        Of stl: a closed surface, its size and then its place are changed.
    condition
        ``"bounce-back"`` (walls half-way between cells), ``"interpolated"`` (where the shape says), or ``"immersed"``:
        forces at markers.
    velocity
        Of its surface, which stays where it is.
    spin
        Of its surface about the centre, radians a time, counter-clockwise: in the plane a number, in space three.
    motion
        Of immersed bodies: ``"fixed"``, ``"prescribed"``, or ``"free"`` (circles and spheres).
    position_x, position_y, position_z, angle
        Of prescribed motion: formulas in t; the way from the centre, and in the plane the angle in radians.
    density
        Of a free body.
    gravity
        On a free body; buoyancy is taken off.
    """

    shape: Literal["circle", "sphere", "cylinder", "box", "stl"]
    center: Vector = Field(default=[])
    diameter: Number = 0.0
    axis: Literal["", "x", "y", "z"] = ""
    length: Number = 0.0
    low: Vector = Field(default=[])
    high: Vector = Field(default=[])
    file: str = ""
    scale: Positive = 1.0
    translate: Vector = Field(default=[])
    condition: Literal["bounce-back", "interpolated", "immersed"] = "interpolated"
    velocity: Vector = Field(default=[])
    spin: Vector = Field(default=[])
    motion: Literal["fixed", "prescribed", "free"] = "fixed"
    position_x: InTime = ""
    position_y: InTime = ""
    position_z: InTime = ""
    angle: InTime = ""
    density: Number = 0.0
    gravity: Vector = Field(default=[])

    @model_validator(mode="after")
    def _consistent(self) -> LatticeBodyTable:
        needed = _NEEDS[self.shape]
        for name in needed:
            if not getattr(self, name):
                raise ValueError(f'shape = "{self.shape}" needs {name}')
        optional = {"cylinder": ("length",), "stl": ("scale", "translate")}.get(self.shape, ())
        keys = {key for names in _NEEDS.values() for key in names} | {"length", "scale", "translate"}
        for name in self.changed(sorted(keys - {*needed, *optional})):
            raise ValueError(f'shape = "{self.shape}" has no {name}')
        if self.motion != "fixed" and self.condition != "immersed":
            raise ValueError(f'motion = "{self.motion}" needs condition = "immersed"')
        if self.motion != "prescribed" and (extra := self.changed(_MOTIONS)):
            raise ValueError(f'{extra[0]} is of motion = "prescribed"')
        if self.motion == "prescribed" and not self.changed(_MOTIONS):
            raise ValueError(f'motion = "prescribed" needs one of {", ".join(_MOTIONS)}')
        if self.motion != "free" and (extra := self.changed(("density", "gravity"))):
            raise ValueError(f'{extra[0]} is of motion = "free"')
        if self.motion == "free" and (not self.density or self.shape not in ("circle", "sphere")):
            raise ValueError('motion = "free" needs a density, above 0, and a circle or a sphere')
        if self.motion != "fixed" and (extra := self.changed(("velocity", "spin"))):
            raise ValueError(f'{extra[0]} is of motion = "fixed"')
        return self


class LatticeImmersedTable(Table):
    """``[immersed]``: how immersed bodies and particles are computed.

    Attributes
    ----------
    delta
        ``"roma"``, three cells an axis, or ``"peskin"``, four.
    iterations
        Rounds of forcing in a step; 0: one, with free bodies two.
    margin
        Cells by which the cells around moving bodies are widened, to be found more rarely.
    """

    delta: Literal["roma", "peskin"] = "roma"
    iterations: Annotated[int, Field(ge=0, le=100)] = 0
    margin: Annotated[int, Field(ge=0, le=50)] = 2


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
    """

    count: Annotated[int, Field(ge=0, le=100_000)] = 0
    diameter: Number = 0.0
    density: Number = 0.0
    gravity: Vector = Field(default=[])
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0
    low: Vector = Field(default=[])
    high: Vector = Field(default=[])

    @model_validator(mode="after")
    def _consistent(self) -> LatticeParticlesTable:
        if self.count and not (self.diameter and self.density and self.gravity):
            raise ValueError("particles need count, diameter, density and gravity")
        if not self.count and (extra := self.changed(("diameter", "density", "gravity", "seed", "low", "high"))):
            raise ValueError(f"{extra[0]} is there but there are no particles: give count")
        return self
