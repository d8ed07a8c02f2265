"""What the benchmark ``lbm`` measures: a lattice, a collision, streaming, precision and so on, or many of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from typing import Any

import numpy as np

from fluxloom.core.errors import CaseError, did_you_mean
from fluxloom.lbm.lattices import LATTICES, Lattice
from fluxloom.lbm.streaming.memory import Cells
from fluxloom.lbm.streaming.schemes import Streaming
from fluxloom_lab.bench.options import LAYOUTS, Laid, Ranked, Scheduled, cells_option, iterations_option, rounds_option
from fluxloom_lab.options import option
from fluxloom_lab.problems.lbm_pack import shares_of

__all__ = ["COLLISIONS", "FORCES", "PRECISIONS", "Choice", "choices_of", "ideal_mlups", "thesis_mlups"]

PRECISIONS = ("float64", "float32", "float16")
COLLISIONS = ("bgk", "trt", "mrt", "central", "cumulant")
FORCES = ("none", "uniform", "field")
_BYTES, _TOUCHES = 8, 6


@dataclass(frozen=True)
class Choice:
    """One flow to time.

    Attributes
    ----------
    lattice
        A key of `fluxloom.lbm.lattices.LATTICES`.
    collision, streaming, force
        A name of `COLLISIONS`, a scheme of streaming, a name of `FORCES`.
    precision
        Of storage.
    layout
        A key of `fluxloom_lab.bench.options.LAYOUTS`; empty: the solver's.
    walls
        Whether the box is a cavity with a lid that moves and bodies in it.
    fluid
        Share of the box that is fluid, between spheres.
    stored
        Which cells are stored, a name of `fluxloom.lbm.streaming.memory.Cells`; empty: that was not asked.
    """

    lattice: str = "D3Q19"
    collision: str = "bgk"
    precision: str = "float32"
    streaming: str = "pull"
    layout: str = ""
    force: str = "none"
    walls: bool = False
    fluid: float = 1.0
    stored: str = ""

    @property
    def velocities(self) -> Lattice:
        """The lattice."""
        return LATTICES[self.lattice]

    @property
    def bytes_per_cell(self) -> int:
        """What an update has to move at least: each population once in, once out."""
        return 2 * self.velocities.q * np.dtype(self.precision).itemsize

    @property
    def plain(self) -> bool:
        """Whether a wave in it decays undisturbed."""
        return not self.walls and self.force == "none" and self.fluid >= 1

    @property
    def title(self) -> str:
        """In words."""
        words = [self.lattice, self.collision.upper() if len(self.collision) == 3 else self.collision, self.streaming]
        words += [f"{self.force} force"] * (self.force != "none") + ["cavity"] * self.walls
        words += [f"{100 * self.fluid:.3g} % fluid, {self.stored} cells stored"] * bool(self.stored)
        return " ".join(words)

    def row(self) -> dict[str, Any]:
        """Return the columns of a table that say what was measured; a force and walls where there are some."""
        found = asdict(self)
        return {
            key: value
            for key, value in found.items()
            if key not in ("force", "walls", "fluid", "stored")
            or (self.stored if key in ("fluid", "stored") else value not in ("none", False))
        }


@dataclass(frozen=True)
class LatticeOptions(Scheduled, Laid):
    """Options that choose a flow on lattices; empty ones have the defaults of `Choice`."""

    cells: str = cells_option("Size of the box: N, NX,NY or NX,NY,NZ.")
    iterations: int = iterations_option("Steps a round")
    rounds: int = rounds_option()
    precision: str = option("", metavar="TYPE", help="Of storage: float64, float32 or float16.")
    lattice: str = option("", metavar="NAMES", help="d2q9, d3q19, d3q27.")
    collision: str = option("", metavar="NAMES", help="bgk, trt, mrt, central, cumulant.")
    streaming: str = option("", metavar="NAMES", help="pull, push, in-place, three-phase.")
    full: bool = option(False, help="Everything that is not named, and all sizes.")


@dataclass(frozen=True)
class LbmOptions(Ranked, LatticeOptions):
    """Options of the benchmark ``lbm``; those that choose a flow may name several, with commas."""

    force: str = option("", metavar="NAME", help="How a force acts: none, uniform or field.")
    walls: bool = option(False, help="A cavity with bodies in place of a periodic box.")
    fluid: str = option(
        "", metavar="SHARES", help="Spheres leave 0.1,0.3,1 of the box; all cells stored, and fluid ones."
    )
    threads_sweep: bool = option(False, help="Every number of threads too, close together and spread.")
    peers: str = option("", metavar="NAMES", help="Libraries to compare with: lbmpy, xlb.")
    python: str = option("", metavar="FILE", help="Interpreter that has the library of --peers.")


def choices_of(options: LbmOptions) -> list[Choice]:
    """Return what is to be measured: one choice, or all combinations of what is named.

    With ``--full`` lattices, precisions, ways of streaming and layouts are all of them where none is named.

    Raises
    ------
    CaseError
        If a name is not known.
    """
    every = options.full
    first, layout = Choice(), options.layout
    lattices = _names(options, "lattice", (first.lattice,), LATTICES, every)
    collisions = _names(options, "collision", (first.collision,), COLLISIONS, False)
    precisions = _names(options, "precision", (first.precision,), PRECISIONS, every)
    schemes = _names(options, "streaming", (first.streaming,), Streaming.choices, every)
    layouts: Sequence[str] = [layout] if layout or not every else ["soa", "aos", "blocked"]
    forces, walls = _names(options, "force", (first.force,), FORCES, False), options.walls
    if layout and layout not in LAYOUTS:
        raise CaseError(f"--layout {layout!r}{did_you_mean(layout, LAYOUTS)} (allowed: {', '.join(LAYOUTS)})")
    shares: Sequence[float] = shares_of(options.fluid) if options.fluid else (1.0,)
    stores: Sequence[str] = Cells.choices.names() if options.fluid else ("",)
    if options.fluid and walls:
        raise CaseError("--fluid is of a box without walls: leave --walls out")
    return [
        Choice(lattice, collision, precision, scheme, one, force, walls, fluid, stored)
        for lattice, collision, precision, scheme, one, force, fluid, stored in product(
            lattices, collisions, precisions, schemes, layouts, forces, shares, stores
        )
    ]


def _names(options: LbmOptions, name: str, usual: Sequence[str], known: Iterable[str], every: bool) -> Sequence[str]:
    """Return the names of an option, separated by commas; case does not matter."""
    allowed = {word.lower(): word for word in known}
    text: str = getattr(options, name)
    if not text:
        return list(allowed.values()) if every else usual
    found = []
    for word in dict.fromkeys(part.strip() for part in text.split(",")):
        if word.lower() not in allowed:
            hint = did_you_mean(word.lower(), allowed)
            raise CaseError(f"--{name} {word!r}{hint} (allowed: {', '.join(allowed)})")
        found.append(allowed[word.lower()])
    return found


def ideal_mlups(copy_gbs: float, choice: Choice) -> float:
    """Return the updates a second (millions) at which the least that has to move takes as long as the copy."""
    return 1e3 * copy_gbs / choice.bytes_per_cell


def thesis_mlups(copy_gbs: float, lattice: Lattice) -> float:
    """Return the estimate ``B 10^9 / (10^6 q 6 8)`` of P. Valero-Lara's thesis (UCM Madrid, 2016), eq. 5.7.

    It counts three reads and three writes of eight bytes a direction, for a scheme that moves one of each.
    """
    return 1e3 * copy_gbs / (lattice.q * _TOUCHES * _BYTES)
