"""Numbers of a lattice Boltzmann flow over time: sums and forces, on their way to the host while the next steps run.

A line of ``history.csv`` needs a sum over all cells and the forces of a step, which the next step overwrites. A device
with memory of its own keeps them: a copy of each, behind the step. The host fetches them before the next line is due,
and so never waits for the steps in between: each line of the file but the last is written when the next one is due.
On several ranks the sums are put together at once, and forces on immersed bodies are found with the help of the host.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import numpy.typing as npt

from fluxloom.device.buffer import RemoteBuffer
from fluxloom.dsl.chain import Chain
from fluxloom.dsl.dats import Dat, Global
from fluxloom.dsl.loop import Loop
from fluxloom.dsl.steps import Reset
from fluxloom.lbm.boundaries.sums import WallSum
from fluxloom.lbm.output import totals
from fluxloom.run.watch import keep
from fluxloom.solvers.lattice import LatticeBoltzmann

__all__ = ["KeptNumbers"]

Array = npt.NDArray[np.float64]

_SUMS = "sums"


class KeptNumbers:
    """Sums over the fluid and forces on what measures them, as of now or of the step at which they were kept.

    Parameters
    ----------
    flow
        What is looked at.

    Attributes
    ----------
    apart
        Whether numbers can be kept by the device.
    """

    def __init__(self, flow: LatticeBoltzmann) -> None:
        self._flow, self._courier = flow, flow.context.device.courier()
        self.apart = self._courier is not None and not flow.context.ranked and flow.immersed is None
        self._wanted: list[str] = []
        self._kept: dict[str, Dat] = {}
        self._loops: list[Loop] = []
        self._chains: dict[int, Chain] = {}
        self._totals: Global | None = None
        self._values: dict[str, Array] | None = None
        self._steps, self._notes = 0, dict[str, float]()

    def measure(self, name: str) -> None:
        """Say that the force on something is wanted; raise `SolverError` where nothing measures it. Collective."""
        immersed = () if self._flow.immersed is None else self._flow.immersed.names
        if name not in immersed:
            self._flow.conditions.force_on(name, immersed)
        self._wanted.append(name)

    # -------------------------------------------------------------------------------------------- values
    @property
    def steps(self) -> int:
        """Of which step the numbers are."""
        return self._flow.steps if self._values is None else self._steps

    def totals(self) -> tuple[float, float]:
        """Return the sums of ``rho - 1`` and ``rho u^2 / 2`` over the fluid, on the lattice. Collective."""
        if self._values is None:
            return self._flow.totals()
        above, energy = self._values[_SUMS].tolist()
        return above, energy

    def force_on(self, name: str) -> Array:
        """Return the force on something, on the lattice, slowest axis first; zero before the first step. Collective."""
        if self._values is not None:
            return self._values[f"force on {name}"]
        return self._flow.force_on(name) if self._flow.steps else np.zeros(self._flow.lattice.dimensions)

    def noted(self, name: str, value: float) -> float:
        """Return a number of the host: as it was when the others were kept, else the one that is given."""
        return value if self._values is None else self._notes[name]

    # --------------------------------------------------------------------------------------------- device
    def take(self, **notes: float) -> None:
        """Let the device keep the numbers of this step, and send them; ``notes`` are numbers of the host."""
        assert self._courier is not None
        self._chain()()
        self._flow.context.settle()
        buffers = [dat.buffer for dat in self._kept.values()]
        self._courier.down(*(buffer for buffer in buffers if isinstance(buffer, RemoteBuffer)))
        self._steps, self._notes = self._flow.steps, notes

    def _chain(self) -> Chain:
        """Return what keeps the numbers of a step like the last one."""
        if self._totals is None:
            self._totals = self._flow.context.scalar(np.zeros(2), _SUMS, dtype=self._flow.space.total)
            self._prepare(self._totals)
        odd = self._flow.steps % 2
        if odd not in self._chains:
            sums = self._flow.look(totals, self._flow.marked, self._totals)
            steps = [Reset(self._totals), sums, *self._loops]
            self._chains[odd] = Chain(steps, name=f"monitors.{odd}")
        return self._chains[odd]

    def _prepare(self, sums: Global) -> None:
        """Make room for what is kept, and the loops that copy it there."""
        flow, ctx = self._flow, self._flow.context
        one = ctx.set(1, "monitors")
        found: dict[str, Global | WallSum] = {_SUMS: sums}
        for name in self._wanted:
            force = flow.conditions.parts[name].force
            assert force is not None
            found[f"force on {name}"] = force
        for name, value in found.items():
            kept = ctx.dat(one, name=name, shape=(value.dim,), dtype=value.scalar.numpy)
            self._kept[name] = kept
            seen = value if isinstance(value, Global) else value.seen_from(one)
            self._loops.append(Loop(keep, one, seen, kept, name="monitors", width=value.dim))

    @contextmanager
    def looking_back(self) -> Iterator[None]:
        """Within, numbers are those that were kept; the host waits for them, not for the steps that follow."""
        assert self._courier is not None
        self._courier.wait()
        self._values = {name: np.asarray(dat.read()[0], dtype=np.float64) for name, dat in self._kept.items()}
        try:
            yield
        finally:
            self._values = None

    @property
    def chains(self) -> Sequence[Chain]:
        """What finds and copies the numbers."""
        return list(self._chains.values())
