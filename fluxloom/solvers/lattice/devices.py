"""Lattice Boltzmann on several devices of one process at once: each has a slab of the box.

The slabs are as thick as the devices are fast: `balance_lattice` finds out by measuring while all of them work. Every
device sends the layers at its cuts, computes what needs none of the others' meanwhile, and then what does: see
`fluxloom.dsl.ranks.halo_loops`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError
from fluxloom.device.base import Device
from fluxloom.dsl.run.hybrid import GRANULES, Balanced, Measured, balance
from fluxloom.lbm.streaming.memory import AllCells
from fluxloom.linalg.mixed.team import DeviceRanks, DeviceTeam, whole_shares
from fluxloom.solvers.lattice.flow import LatticeBoltzmann

__all__ = ["DividedLattice", "balance_lattice"]

_SECONDS, _MOST = 0.1, 200
"""What a measurement takes about, and steps that it has at most."""


class DividedLattice:
    """A flow on several devices. Use it as a context manager, or call `close`.

    Parameters
    ----------
    devices
        Names as ``["cuda:0", "cpu:12"]``, or a `DeviceTeam`, which stays open then.
    shape
        Cells along each axis of the whole box, slowest first. Slabs lie along the first axis.
    shares
        Part of the box that each device gets, of its fluid where only that is stored; equal parts by default. A device
        with no share has no cells.
    overlap
        Whether devices compute while the layers at their cuts travel.
    options
        As `LatticeBoltzmann` takes them.

    Attributes
    ----------
    flows
        The part of each device that has cells.
    shares
        What each device has.
    balance
        How the shares were found, where they were measured.

    Raises
    ------
    SolverError
        If the shares do not fit, or the flow cannot be divided.
    """

    def __init__(
        self,
        devices: Sequence[str | Device] | DeviceTeam,
        shape: tuple[int, ...],
        *,
        shares: Sequence[float] | None = None,
        overlap: bool = True,
        **options: Any,
    ) -> None:
        self._own = not isinstance(devices, DeviceTeam)
        self.team = devices if isinstance(devices, DeviceTeam) else DeviceTeam(devices)
        self.balance: Balanced | None = None
        try:
            given = _shares(shares, self.team.size)
            self.ranks = DeviceRanks(self.team, [k for k, share in enumerate(given) if share > 0])
            for context in self.ranks.contexts:
                context.overlap = overlap
            parts = [share for share in given if share > 0]
            cells = options.pop("cells", AllCells())
            cells = replace(cells, shares=parts) if len(parts) > 1 else cells
            self.flows: list[LatticeBoltzmann] = self.ranks.run(
                lambda rank: LatticeBoltzmann(self.ranks.contexts[rank], shape, cells=cells, **options)
            )
        except BaseException:
            self.close()
            raise
        self.shape = tuple(shape)
        has = {member: flow.memory.set.size for member, flow in zip(self.ranks.members, self.flows, strict=True)}
        self.shares = tuple(has.get(k, 0) / sum(has.values()) for k in range(self.team.size))

    @property
    def cells(self) -> int:
        """Cells of the whole box."""
        return self.flows[0].cells

    def initialise(self, density: npt.ArrayLike = 1.0, velocity: npt.ArrayLike = 0.0) -> None:
        """Start from local equilibrium, with values of the whole box; see `LatticeBoltzmann.initialise`."""
        self.ranks.run(lambda rank: self.flows[rank].initialise(density, velocity))

    def step(self, count: int = 1) -> None:
        """Advance by some steps, all devices at the same time."""
        self.ranks.run(lambda rank: self.flows[rank].step(count))

    def density(self) -> npt.NDArray[np.float64]:
        """Return the density of the whole box."""
        return np.concatenate(self.ranks.run(lambda rank: self.flows[rank].density()))

    def velocity(self) -> npt.NDArray[Any]:
        """Return the velocity of the whole box, ``(*shape, dimensions)``."""
        return np.concatenate(self.ranks.run(lambda rank: self.flows[rank].velocity()))

    def totals(self) -> tuple[float, float]:
        """Return the sums of ``rho - 1`` and ``rho u^2 / 2`` over the fluid."""
        return self.ranks.run(lambda rank: self.flows[rank].totals())[0]

    def measure(self, count: int = 0) -> Measured:
        """Return the time of a step, all devices at once, and for how long each of them was busy.

        Parameters
        ----------
        count
            Steps that are timed; 0: as many as a tenth of a second has.
        """

        def run(rank: int, steps: int) -> None:
            """Advance the slab of a rank."""
            self.flows[rank].step(steps)

        return self.ranks.measure(run, count or self.ranks.calls_of(run, _SECONDS, _MOST, unit=2))

    def close(self) -> None:
        """End the threads of the devices."""
        if self._own:
            self.team.close()

    def __enter__(self) -> DividedLattice:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        each = ", ".join(f"{name} {share:.3f}" for name, share in zip(self.team.names, self.shares, strict=True))
        return f"DividedLattice({'x'.join(map(str, self.shape))}: {each})"


class _Trial:
    """A flow with some shares, for a balance."""

    def __init__(self, team: DeviceTeam, shape: tuple[int, ...], shares: Sequence[float], options: Any) -> None:
        self._flow: DividedLattice | None = DividedLattice(team, shape, shares=shares, **options)
        self._flow.initialise()

    def measure(self) -> Measured:
        """Return the time of a step."""
        assert self._flow is not None
        return self._flow.measure()

    def close(self) -> None:
        """Let go of the memory before the next one is made."""
        self._flow = None


def balance_lattice(
    devices: Sequence[str | Device] | DeviceTeam,
    shape: tuple[int, ...],
    *,
    granules: Sequence[int] = GRANULES,
    rounds: int = 3,
    budget: int = 24,
    **options: Any,
) -> DividedLattice:
    """Return a flow on several devices with slabs as thick as was fastest.

    Each device alone is measured first; then the time that all take together decides
    (`fluxloom.dsl.run.hybrid.balance`). Where the fastest device alone is faster than every split, it gets all the
    cells.

    Parameters
    ----------
    devices, shape, options
        As `DividedLattice` takes them.
    granules, rounds, budget
        Of the search.

    Raises
    ------
    SolverError, FluxloomError
        As `DividedLattice`; and if a device cannot have the whole box.
    """
    given = isinstance(devices, DeviceTeam)
    team = devices if isinstance(devices, DeviceTeam) else DeviceTeam(devices)

    def build(chosen: Sequence[int], shares: Sequence[float]) -> _Trial:
        return _Trial(team, shape, whole_shares(team, chosen, shares), options)

    try:
        found = balance(build, range(team.size), granules=granules, rounds=rounds, budget=budget)
        fastest = found.alone.index(min(found.alone))
        shares = found.shares if found.pays else whole_shares(team, [fastest], [1.0])
        made = DividedLattice(team, shape, shares=shares, **options)
    except BaseException:
        if not given:
            team.close()
        raise
    made.balance, made._own = found, not given
    return made


def _shares(shares: Sequence[float] | None, devices: int) -> tuple[float, ...]:
    """Return the share of each device.

    Raises
    ------
    SolverError
        If there is not one for each device, one is negative, or all are zero.
    """
    given = tuple(float(s) for s in shares) if shares is not None else (1.0,) * devices
    if len(given) != devices or not all(np.isfinite(s) and s >= 0 for s in given) or not sum(given) > 0:
        raise SolverError(f"shares {given}: give {devices} numbers that are not negative, one a device, not all zero")
    return given
