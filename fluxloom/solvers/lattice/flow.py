"""Lattice Boltzmann: weakly compressible flow in a box, with walls, bodies, inlets and outlets.

All quantities are in lattice units: cells, steps, density near one.

A step is one loop over all cells, which knows of no walls. Before it, loops of their own put what arrives from walls,
sides and bodies where that loop will look for it: see `fluxloom.lbm.streaming.schemes`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import Divergence, SolverError
from fluxloom.core.strategies import strategy_name
from fluxloom.dsl.context import Context
from fluxloom.dsl.declare.dats import Dat, Global
from fluxloom.dsl.declare.maps import OffsetMap, TableMap
from fluxloom.dsl.declare.schedule import Schedule
from fluxloom.dsl.run.chain import Chain
from fluxloom.dsl.run.loop import Loop
from fluxloom.dsl.run.report import LoopReport
from fluxloom.kernel.frontend import Kernel
from fluxloom.lbm.body_force import ForceField
from fluxloom.lbm.boundaries import at_row_ends, rows_turn
from fluxloom.lbm.boundaries.side import pull_at
from fluxloom.lbm.cells.box import Box
from fluxloom.lbm.collisions.operators import Collision
from fluxloom.lbm.lattices import D3Q19, Lattice
from fluxloom.lbm.streaming.memory import AllCells, Cells
from fluxloom.lbm.streaming.output import moments, totals
from fluxloom.lbm.streaming.schemes import Pull, Streaming
from fluxloom.lbm.streaming.space import Elements, Space
from fluxloom.lbm.streaming.steps import Constants
from fluxloom.lbm.streaming.stored import Stored
from fluxloom.lbm.units import storage_unit
from fluxloom.linalg.direct.calls import MixedChain
from fluxloom.solvers.lattice import checks as checks
from fluxloom.solvers.lattice.cost import Cost, cost_of
from fluxloom.solvers.lattice.observables import Observables
from fluxloom.solvers.lattice.sides import Conditions, labelled
from fluxloom.solvers.lattice.start import Start
from fluxloom.solvers.lattice.steps import Step, Steps
from fluxloom.solvers.lattice.values import LatticeValues

__all__ = ["LatticeBoltzmann"]


class LatticeBoltzmann:
    """Weakly compressible flow in a box.

    Parameters
    ----------
    context
        Where it runs.
    shape
        Cells along each axis, slowest first: ``(nz, ny, nx)`` or ``(ny, nx)``; on several ranks of the whole box.
    viscosity
        Kinematic, in cells squared a step.
    lattice
        From `fluxloom.lbm.lattices`.
    collision
        From `fluxloom.lbm.collisions.operators`, `BGK` by default; or one of your own.
    streaming
        From `fluxloom.lbm.streaming.schemes`: ``Pull()``, ``Push()``, ``ThreePhase()``, or ``InPlace()`` (the AA
        pattern), which needs half of the memory.
    dtype
        Storage precision of the populations; single precision is enough for most flows, as what is
        stored is the distance from rest.
    boundaries
        Conditions of sides, from `fluxloom.lbm.boundaries`, by name: ``"xmin"``, ``"xmax"``, ``"ymin"``, ... . The
        two sides across an axis that have no condition are joined. On several ranks functions of positions are asked
        about the cells of each rank, and `Part.assign` is collective.
    bodies
        Solid bodies in the box (`fluxloom.lbm.boundaries.Body`).
    force
        Acts on all of the fluid: per volume, along each axis of the grid. `set_force` changes it, if it was given.
        With a `fluxloom.lbm.body_force.ForceField` it differs by cell: `force_field` holds it, and steps read it.
    schedule
        For every loop; ``sites`` for those of steps.
    cells
        Which are stored, how, and what each of several ranks gets of them: from `fluxloom.lbm.streaming.memory`,
        ``AllCells()``, or ``FluidCells()`` for boxes that are mostly solid.

    Raises
    ------
    SolverError
        If the viscosity is not positive, the shape does not fit the lattice, a side has no condition though the one
        across has, or a condition does not fit.

    Attributes
    ----------
    box, grid
        Cells of the flow; and those of memory, which has a layer more across axes that are not joined.
    constants
        What the kernels of a step take beside dats.
    field
        Whether the force differs by cell.
    """

    remembers = ("steps",)

    def __init__(
        self,
        context: Context,
        shape: tuple[int, ...],
        *,
        viscosity: float,
        lattice: Lattice = D3Q19,
        collision: Collision | None = None,
        streaming: Streaming = Pull(),
        dtype: npt.DTypeLike = "float32",
        boundaries: Mapping[str, Any] | None = None,
        bodies: Sequence[Any] = (),
        force: Sequence[float] | ForceField = (),
        schedule: Schedule | None = None,
        cells: Cells = AllCells(),
    ) -> None:
        self.context, self.lattice = context, checks.check_lattice(lattice)
        self.viscosity = checks.check_viscosity(viscosity)
        self.collision, self.streaming = checks.check_collision(collision, lattice), checks.check_streaming(streaming)
        checks.check_conditions(boundaries := boundaries or {}, bodies)
        checks.check_cells(cells)
        shape = checks.check_shape(shape, lattice)
        turned = isinstance(cells, AllCells) and rows_turn(boundaries) and not at_row_ends(shape[-1], bodies)
        self.box = Box(shape, checks.joined_axes(lattice.dimensions, boundaries), turned)
        self.field = isinstance(force, ForceField)
        given = force.start if isinstance(force, ForceField) else force
        self.dtype, self.force = checks.check_dtype(dtype), checks.check_force(given, lattice.dimensions)
        checks.check_half(self.dtype, self.force, self.box, self.viscosity)
        uniform = self.force if len(given) and not self.field else None
        self.constants = Constants(lattice, self.collision, self.viscosity, self.dtype, uniform)
        self.immersed: Any = None
        labels = labelled(self.box, boundaries, bodies)
        self.memory = cells.memory(context, lattice, self.box, labels)
        self.grid = self.memory.grid
        self.space, self._values = self._declare(cells, schedule)
        self.conditions = Conditions(self.space, boundaries, bodies, labels)
        self._steps, self._start = Steps(self._values, self.conditions), Start(self._values)
        self._observables = Observables(self._values, labels, self.pull)
        if any(self.force):  # half of the force is in populations at rest
            self.initialise()

    # ------------------------------------------------------------------------------------ declaration
    def _declare(self, cells: Cells, schedule: Schedule | None) -> tuple[Space, LatticeValues]:
        """Make room for the values."""
        lattice, memory, dtype = self.lattice, self.memory, self.dtype
        names = ("a", "b")[: self.streaming.buffers]
        buffers = tuple(memory.dat(n, lattice.q, dtype=dtype, layout=cells.layout) for n in names)
        self.real = "float64" if buffers[0].scalar.size == 8 else "float32"
        self.excess = memory.dat("excess", dtype=self.real)  # density less one
        self.motion = memory.dat("velocity", lattice.dimensions, dtype=self.real)
        field = self.force_field if self.field else None
        acting = self.pull if self.field or self.constants.force is not None else None
        unit, force = storage_unit(dtype), self.force
        space = Space(self.context, lattice, self.box, memory, self.streaming, buffers, unit, acting, force)
        return space, LatticeValues(space, self.constants, self.excess, self.motion, field, schedule)

    @property
    def steps(self) -> int:
        """Steps done."""
        return self._steps.done

    @steps.setter
    def steps(self, done: int) -> None:
        """Go on from a number of steps."""
        self._steps.done = done

    @property
    def stencil(self) -> OffsetMap | TableMap:
        """From each cell to those that its populations come from."""
        return self.memory.behind

    @property
    def ahead(self) -> OffsetMap | TableMap:
        """From each cell to those that its populations go to."""
        return self.memory.ahead

    @cached_property
    def force_field(self) -> Dat:
        """The force of each cell, per volume; to begin with, that of the whole fluid.

        Its values are ``(*grid.shape, dimensions)``, or those of the cells in a list; ``memory.write`` sets it to
        values over the box.
        """
        return self.memory.dat("force", self.lattice.dimensions, dtype=self.real, values=self.force)

    @cached_property
    def _acting(self) -> Global:
        """The force that is the same everywhere."""
        return self.context.scalar(self.force, "force", dtype=self.real)

    @property
    def pull(self) -> Global | Dat:
        """The force that populations have taken up in their last collision."""
        if self.field or self.immersed is not None:
            return self.force_field
        return self._acting

    # ------------------------------------------------------------------------------------------ steps
    def immerse(self, boundary: Any) -> None:
        """Add an immersed boundary (`fluxloom.lbm.immersed.ImmersedBoundary`); once, before the first step.

        Raises
        ------
        SolverError
            If there is one already, the flow has begun, or only fluid cells are stored.
        """
        if self.memory.listed is not None:
            raise SolverError("an immersed boundary needs all cells of the box: make the flow with cells=AllCells()")
        if self.immersed is not None or self.steps:
            raise SolverError("a flow takes one immersed boundary, with all of its bodies, before the first step")
        checks.check_immersed(boundary.bodies, self.box, ~self.fluid)
        boundary.attach(self)
        self.immersed = boundary
        self._steps.immerse(boundary)
        self._observables = Observables(self._values, self.conditions.labels, self.pull)  # each cell has a force

    def parts_of_step(self, parity: int) -> tuple[list[Step], list[Step], list[Step]]:
        """Return what runs before the loop over all cells, that loop, and what runs after."""
        return self._steps.parts(parity)

    def steps_of(self, parity: int) -> Chain | MixedChain:
        """Return what an even step (0) or an odd one (1) runs, or both one after the other (-1)."""
        return self._steps.chain(parity)

    def step(self, count: int = 1, *, check_every: int = 0) -> None:
        """Advance by some steps.

        Parameters
        ----------
        check_every
            Steps between two looks whether the flow is finite (`check_finite`); 0: none.

        Raises
        ------
        SolverError
            If a number is not whole, or negative, or the flow is found not to be finite any more.
        """
        for _ in self._steps.pieces(checks.check_count(count), checks.check_count(check_every)):
            self.check_finite()

    def run(self, count: int, every: int, callback: Callable[[LatticeBoltzmann], object] | None = None) -> int:
        """Advance by some steps, and after every so many and at the end look whether the flow is finite, then call.

        Parameters
        ----------
        callback
            Takes the flow; if it returns something true the run ends. The number of steps done is returned.

        Raises
        ------
        SolverError
            As `step` does.
        """
        first = self.steps
        for _ in self._steps.pieces(checks.check_count(count), max(1, checks.check_count(every))):
            self.check_finite()
            if callback is not None and callback(self):
                break
        return self.steps - first

    def assign(self, name: str, values: Any) -> None:
        """Change what the condition of a side or body sets, as it takes it, from the next step on; collective.

        Raises
        ------
        SolverError
            If nothing of that name sets values, or they do not fit.
        """
        self.conditions.assign(name, values)

    # ---------------------------------------------------------------------------------------- values
    @property
    def cells(self) -> int:
        """Number of cells that a step updates, those of all ranks: of the box, or in a list."""
        return self.box.cells if self.memory.listed is None else self.memory.set.total

    @property
    def populations(self) -> Dat:
        """The buffer that holds the present populations, less the weights."""
        return self.space.populations(self.steps)

    @cached_property
    def fluid(self) -> npt.NDArray[np.bool_]:
        """Which cells of the box are fluid."""
        return self.conditions.labels[self.box.inside] == 0

    def initialise(self, density: npt.ArrayLike = 1.0, velocity: npt.ArrayLike = 0.0) -> None:
        """Start from local equilibrium.

        Parameters
        ----------
        density
            Broadcast to the shape of the box.
        velocity
            Broadcast to ``(*shape, dimensions)``; component ``k`` points along axis ``k`` of the grid, so
            the last one is along x.

        Raises
        ------
        SolverError
            If a density is not positive, a value is not finite, or an array does not fit the box.

        Notes
        -----
        On several ranks values over the whole box are cut; a rank may also give those of its own part alone,
        whose shape is ``grid.shape`` and whose cells are at ``grid.coordinates``.
        """
        self._start(density, velocity)
        self.steps = 0
        self.conditions.begin(0)
        if self.immersed is not None:
            self.immersed.restart()

    def density(self) -> npt.NDArray[np.float64]:
        """Return the density over the box, one where there is no fluid; on ranks over this one's part. Collective."""
        self.look(moments, self.excess, self.motion)()
        return np.where(self._observables.inside, 1.0 + self.memory.read(self.excess).astype(np.float64), 1.0)

    def velocity(self) -> npt.NDArray[Any]:
        """Return the velocity of the cells of the box, ``(*shape, dimensions)``, component ``k`` along axis ``k``.

        It is that after `steps` steps, with half of the force as it should be: fluid at rest under a force ``F`` has
        ``steps * F``. It is zero where there is no fluid. On several ranks it is that of this rank's part of `grid`.
        """
        self.look(moments, self.excess, self.motion)()
        return np.where(self._observables.inside[..., None], self.memory.read(self.motion), 0.0)

    def totals(self) -> tuple[float, float]:
        """Return the sums of ``rho - 1`` and ``rho u^2 / 2`` over the fluid; collective."""
        sums = self._observables.sums
        sums.value = np.zeros(2)
        self.look(totals, self.marked, sums)()
        above, energy = sums.value
        return float(above), float(energy)

    @property
    def marked(self) -> Dat:
        """One in the cells that are fluid."""
        return self._observables.fluid

    def look(self, kernel: Kernel, *arguments: Dat | Global) -> Loop:
        """Return the loop of a kernel of `fluxloom.lbm.streaming.output` over the populations as they are now.

        It is the same after every second step. Arguments are what the kernel takes behind the force.
        """
        return self._observables.loop(kernel, self.steps, *arguments)

    def look_at(self, cells: Elements, above: Dat, u: Dat, name: str) -> list[Loop]:
        """Return the loops that set density less one and velocity of some cells, behind even steps and odd ones."""
        space = replace(self.space, force=self.pull)
        pull = pull_at(space, cells, name)
        constants: dict[str, Any] = space.constants | {"stored": Stored()}
        return [
            Loop(moments, cells.set, f, pull, above, u, name=name, **constants)
            for f in space.departed(cells, cells.cells[:, None], np.arange(self.lattice.q)[None, :], name)
        ]

    def mass(self) -> float:
        """Return the sum of the density over the fluid; collective."""
        return self.totals()[0] + int(np.count_nonzero(self.fluid))

    def kinetic_energy(self) -> float:
        """Return the sum of ``rho u^2 / 2`` over the fluid; collective."""
        return self.totals()[1]

    def force_on(self, name: str) -> npt.NDArray[np.float64]:
        """Return the force of the fluid on a body or a side in the last step, along each axis of the grid.

        The pressure of the fluid at rest with density one is left out.

        Raises
        ------
        SolverError
            If nothing of that name measures a force, or no step has been done.
        """
        if self.immersed is not None and name in self.immersed.names:
            found = self.immersed.force_on(name)
        else:
            found = self.conditions.force_on(name, () if self.immersed is None else self.immersed.names)
        if not self.steps:
            raise SolverError(f"force_on({name!r}): a step measures the force, and none has been done since the start")
        return found

    def torque_on(self, name: str) -> npt.NDArray[np.float64]:
        """Return the torque of the fluid on a body or a side in the last step, ``(1,)``, or in space ``(3,)``.

        It is about the ``center`` of a wall, slowest axis first, and of an immersed body about its own centre.

        Raises
        ------
        SolverError
            If nothing of that name measures a torque, or no step has been done.
        """
        if self.immersed is not None and name in self.immersed.names:
            found = self.immersed.torque_on(name)
        else:
            found = self.conditions.torque_on(name, () if self.immersed is None else self.immersed.names)
        if not self.steps:
            raise SolverError(f"torque_on({name!r}): a step measures it, and none has been done since the start")
        return found

    def set_force(self, force: Sequence[float]) -> None:
        """Change the force that acts everywhere; in the next step the mean of the old and the new one acts.

        It costs no more than a step, and may be called before every one.

        Raises
        ------
        SolverError
            If the flow was made without one.
        """
        if self.constants.force is None:
            raise SolverError("set_force: make the flow with force=..., zeros if need be, to change it later")
        self.force = checks.check_force(force, self.lattice.dimensions)
        self.constants = replace(self.constants, force=self.force)
        self._acting.value = np.array(self.force)
        self._steps.set_force(self.constants.uniform)
        self.conditions.set_force(self.force)
        self._start.set_force(self.constants.uniform)
        if self.immersed is not None:
            self.immersed.set_force(self.force)

    # ---------------------------------------------------------------------------------------- reports
    @property
    def loops(self) -> tuple[Loop, ...]:
        """The loops over all cells, of an even and an odd step."""
        return tuple(loop for steps in self._steps.bulk for loop in steps)

    @property
    def cost(self) -> Cost:
        """Memory, and bytes that a step moves for each cell."""
        return cost_of(self._values, self.loops)

    @property
    def chain(self) -> Chain | MixedChain:
        """Two steps, an even one and an odd one."""
        return self._steps.chain(-1)

    @property
    def retired(self) -> Sequence[Chain]:
        """Chains of steps that were done in another way before, for reports."""
        return self._steps.retired

    def check_finite(self) -> None:
        """Raise if the flow is not finite any more; collective.

        Raises
        ------
        Divergence
            Naming the step.
        """
        self.conditions.check_given()
        if not np.all(np.isfinite(self.totals())):
            stiff = "" if self.immersed is None else self.immersed.softer
            raise Divergence(
                f"step {self.steps}: the flow is not finite any more; lower the velocity, raise the viscosity "
                f"(now {self.viscosity:.3g}) or take another collision (now {strategy_name(self.collision)}){stiff}",
                step=self.steps,
            )

    def reports(self) -> list[LoopReport]:
        """Return what each loop has done, in steps done one by one and two by two alike."""
        return self._steps.reports()
