"""How a loop runs: a value, separate from what it computes."""

from __future__ import annotations

from dataclasses import dataclass, fields

from fluxloom.core.errors import PlanError, did_you_mean

__all__ = ["RACE_STRATEGIES", "Schedule"]

RACE_STRATEGIES = ("serial", "block_colour", "element_colour", "block_permute", "atomic", "gather", "two_pass")


@dataclass(frozen=True)
class Schedule:
    """The choices a loop leaves open. Zero and None mean: let the cost model choose.

    Parameters
    ----------
    strategy
        How races of indirect increments are avoided:

        ============== ===============================================================================
        serial         one thread, in order
        block_colour   blocks of elements; blocks of one colour share no target and run in parallel
        element_colour elements of one colour share no target; colour after colour
        block_permute  block colours, and inside a block the elements sorted by colour
        atomic         atomic additions (order of sums not repeatable)
        gather         driven from the targets in tiles of ``block``; elements across tiles are
                       computed once for each tile; ``block=1`` gathers target by target
        two_pass       increments stored per element, then summed per target
        ============== ===============================================================================
    block
        Elements a block (colouring) or targets a tile (gather); on devices of work items, items a group.
    lanes
        On a CPU, elements a SIMD pack: 1 (scalar), 4, 8 or 16. On devices of work items, items that
        share a row of a ragged loop: 1, 2, 4, 8, 16 or 32.
    pairs
        Let a work item handle two neighbouring rows of a ragged loop at once, with vector loads; their entries
        have to be stored column by column in slices of an even number of rows.
    rows
        Rows of a ragged loop that a group of work items handles; 0: as many at a time as it has room for.
    stage
        Let increments meet in the memory of a group of work items (block_colour).
    registers
        Limit of registers a work item, up to 255.
    sites
        On devices of work items, sites of a grid next to each other that an item handles: 1, 2 or 4. Components lie
        apart (`SoA`), rows are a multiple of it and have no layers at their ends; it reaches as far as any stencil.
    split
        Run a loop component by component, where its body allows it.
    threads
        Threads; 1 runs in the calling thread.
    stream
        Store fully written dats past the caches.
    deterministic
        ``"plan"`` forbids ``atomic``: bitwise repeatable for a given plan. ``"global"``: bitwise the
        same for any number of threads, any strategy of this grade (serial, gather, two_pass) and
        any fusion; floating-point contraction is off.
    """

    strategy: str | None = None
    block: int = 0
    lanes: int = 0
    threads: int = 0
    stream: bool | None = None
    deterministic: str | None = None
    rows: int = 0
    stage: bool | None = None
    registers: int = 0
    split: bool | None = None
    pairs: bool | None = None
    sites: int = 0

    def __post_init__(self) -> None:
        if self.strategy is not None and self.strategy not in RACE_STRATEGIES:
            hint = did_you_mean(self.strategy, RACE_STRATEGIES)
            raise PlanError(f"unknown strategy {self.strategy!r}{hint} (known: {', '.join(RACE_STRATEGIES)})")
        if self.lanes not in (0, 1, 2, 4, 8, 16, 32):
            raise PlanError(
                f"lanes={self.lanes}: a pack has 1, 4, 8 or 16 elements, a ragged row 1, 2, 4 ... 32 work items "
                "(0: automatic)"
            )
        if self.sites not in (0, 1, 2, 4):
            raise PlanError(f"sites={self.sites}: an item handles 1, 2 or 4 sites of a grid (0: automatic)")
        if min(self.block, self.threads, self.rows, self.registers) < 0:
            raise PlanError("block, threads, rows and registers cannot be negative (0: automatic)")
        if self.deterministic not in (None, "plan", "global"):
            raise PlanError(f"deterministic={self.deterministic!r}: use None, 'plan' or 'global'")
        if self.deterministic and self.strategy == "atomic":
            raise PlanError("atomic additions are not repeatable: choose another strategy or deterministic=None")
        if self.deterministic == "global" and self.strategy in ("block_colour", "element_colour", "block_permute"):
            raise PlanError(
                f"{self.strategy} sums in colour order, which depends on the plan; "
                "deterministic='global' allows serial, gather and two_pass"
            )

    @classmethod
    def auto(cls) -> Schedule:
        """Return the schedule that leaves every choice to the cost model and the tuning file."""
        return cls()

    def merged(self, other: Schedule) -> Schedule:
        """Return this schedule with its open choices filled from ``other``."""
        values = {}
        for f in fields(self):
            mine = getattr(self, f.name)
            values[f.name] = getattr(other, f.name) if mine in (None, 0) and mine is not False else mine
        return Schedule(**values)
