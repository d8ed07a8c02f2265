"""Numbers of a lattice Boltzmann flow over time: sums and forces, on their way to the host while the next steps run.

A line of ``history.csv`` needs a sum over all cells and the forces of a step, which the next step overwrites. A device
with memory of its own keeps them: a copy of each, behind the step. The host fetches them before the next line is due,
and so never waits for the steps in between. On several ranks the sums are put together at once, and forces on immersed
bodies are found with the help of the host.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import numpy as np
import numpy.typing as npt

from fluxloom.device.buffer import RemoteBuffer
from fluxloom.dsl.declare.dats import Dat, Global
from fluxloom.dsl.ranks.task import Reset
from fluxloom.dsl.run.chain import Chain
from fluxloom.dsl.run.loop import Loop
from fluxloom.lbm.boundaries.sums import WallSum
from fluxloom.lbm.streaming.output import totals
from fluxloom.run.watch import keep
from fluxloom.solvers.lattice.flow import LatticeBoltzmann

__all__ = ["KeptNumbers", "KeptValues"]

Array = npt.NDArray[np.float64]

_SUMS = "sums"


class KeptValues:
    """Values of a step that the device keeps, and sends to the host beside what it is asked for next.

    Parameters
    ----------
    flow
        What they are of.
    values
        By name.
    before
        What finds them behind a step of a parity; by default they are there.
    """

    def __init__(
        self, flow: LatticeBoltzmann, values: Mapping[str, Global | WallSum],
        before: Callable[[int], Sequence[Loop | Reset]] = lambda parity: (),
    ) -> None:  # fmt: skip
        transfer_queue = flow.context.device.transfer_queue()
        assert transfer_queue is not None
        self._flow, self._courier, self._before = flow, transfer_queue, before
        self._kept: dict[str, Dat] = {}
        self._loops: list[Loop] = []
        self._chains: dict[int, Chain] = {}
        one = flow.context.set(1, "monitors")
        for name, value in values.items():
            kept = flow.context.dat(one, name=name, shape=(value.dim,), dtype=value.scalar.numpy)
            self._kept[name] = kept
            seen = value if isinstance(value, Global) else value.seen_from(one)
            self._loops.append(Loop(keep, one, seen, kept, name="monitors", width=value.dim))

    def take(self) -> None:
        """Let the device keep the values of this step, and send them."""
        odd = self._flow.steps % 2
        if odd not in self._chains:
            self._chains[odd] = Chain([*self._before(odd), *self._loops], name=f"monitors.{odd}")
        self._chains[odd]()
        self._flow.context.settle()
        buffers = [dat.buffer for dat in self._kept.values()]
        self._courier.down(*(buffer for buffer in buffers if isinstance(buffer, RemoteBuffer)))

    def values(self) -> dict[str, Array]:
        """Return what was taken last; the host waits for it, not for the steps that follow."""
        self._courier.wait()
        return {name: np.asarray(dat.read()[0], dtype=np.float64) for name, dat in self._kept.items()}

    @property
    def chains(self) -> Sequence[Chain]:
        """What finds and copies the values."""
        return list(self._chains.values())


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
        self._flow = flow
        alone = not flow.context.distributed and flow.immersed is None
        self.apart = alone and flow.context.device.transfer_queue() is not None
        self._wanted: list[str] = []
        self._others: list[KeptValues] = []
        self._kept: KeptValues | None = None
        self._values: dict[str, Array] | None = None
        self._steps, self._notes = 0, dict[str, float]()

    def measure(self, name: str) -> None:
        """Say that force and torque on something are wanted.

        Raises
        ------
        SolverError
            If nothing measures its force.
        """
        immersed = () if self._flow.immersed is None else self._flow.immersed.names
        if name not in immersed:
            self._flow.conditions.force_on(name, immersed)
        if name not in self._wanted:
            self._wanted.append(name)
            self._kept = None

    # -------------------------------------------------------------------------------------------- values
    @property
    def back(self) -> bool:
        """Whether numbers are those that were kept."""
        return self._values is not None

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

    def torque_on(self, name: str) -> Array:
        """Return the torque on something whose torque is measured, as `force_on` returns the force. Collective."""
        if self._values is not None:
            return self._values[f"torque on {name}"]
        return self._flow.torque_on(name) if self._flow.steps else np.zeros(2 * self._flow.lattice.dimensions - 3)

    def noted(self, name: str, value: float) -> float:
        """Return a number of the host: as it was when the others were kept, else the one that is given."""
        return value if self._values is None else self._notes[name]

    # --------------------------------------------------------------------------------------------- device
    def take(self, **notes: float) -> None:
        """Let the device keep the numbers of this step, and send them; ``notes`` are numbers of the host."""
        if self._kept is None:
            flow = self._flow
            sums = flow.context.scalar(np.zeros(2), _SUMS, dtype=flow.space.total)
            self._kept = KeptValues(
                flow, {_SUMS: sums} | self._flow.conditions.measured(self._wanted),
                lambda parity: [Reset(sums), flow.look(totals, flow.marked, sums)],
            )  # fmt: skip
        self._kept.take()
        self._steps, self._notes = self._flow.steps, notes

    def keep(self, names: Sequence[str]) -> KeptValues:
        """Return what keeps forces and torques on walls by itself."""
        self._others.append(KeptValues(self._flow, self._flow.conditions.measured(names)))
        return self._others[-1]

    @contextmanager
    def looking_back(self) -> Iterator[None]:
        """Within, numbers are those that were kept; the host waits for them, not for the steps that follow."""
        assert self._kept is not None
        self._values = self._kept.values()
        try:
            yield
        finally:
            self._values = None

    @property
    def chains(self) -> Sequence[Chain]:
        """What finds and copies the numbers."""
        kept = self._others if self._kept is None else [self._kept, *self._others]
        return [chain for one in kept for chain in one.chains]
