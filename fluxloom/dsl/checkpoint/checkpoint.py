"""Checkpoints that hold the least, taken and restored without a line of the program being changed.

I. Z. Reguly, PhD thesis (PPCU Budapest, 2014), section 6.1: loops declare what they read and overwrite, so that what
has to be saved at any loop is known. A restart runs the program again; loops do nothing until the one before which
the checkpoint was entered, and what the host read of globals meanwhile comes from a log.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

from fluxloom.comm.store import check_place
from fluxloom.core.advice import warn
from fluxloom.core.errors import CheckpointError
from fluxloom.dsl.checkpoint.file import Entry, Restored, numbers_of, write_end
from fluxloom.dsl.checkpoint.log import GlobalLog
from fluxloom.dsl.checkpoint.place import Choices, Due, Met, Record, placement, rolled
from fluxloom.dsl.checkpoint.rules import Advice
from fluxloom.dsl.checkpoint.save import Saving, Written
from fluxloom.dsl.context import Context
from fluxloom.dsl.declare.dats import Dat, Global
from fluxloom.dsl.declare.observe import Observer
from fluxloom.dsl.declare.runtime import among
from fluxloom.dsl.ranks.task import Reset
from fluxloom.dsl.run.chain import Chain
from fluxloom.dsl.run.loop import Loop

__all__ = ["CheckpointWarning", "Checkpoints", "Written"]

_NEVER = 2**62


class CheckpointWarning(UserWarning):
    """A checkpoint could not be written; the run goes on, and the one before it is still there."""


class Checkpoints(Observer):
    """Saves what a run needs to go on after it was killed, and lets it go on.

    ::

        saver = Checkpoints("run.ckpt.h5", every=600.0)
        with saver.watch(context):        # goes on from run.ckpt.h5 where there is one
            program(context)

    Parameters
    ----------
    path
        The file.
    every
        Seconds between checkpoints; on several ranks those of rank 0.
    every_calls
        Instead: calls of loops and chains between checkpoints.
    place
        ``"local"``: a checkpoint that is due is entered at the first loop that overwrites a dat. ``"period"``: the
        run's period is recognised, and the checkpoint entered at the place where it is smallest. ``"marked"``: it
        is entered at the next loop after `mark`, if it is due then.
    keep
        How many are kept: ``path``, ``path.1`` (the one before) ...
    digest
        Text that describes the case; a checkpoint of a run with another text is refused.
    clock
        Returns seconds.

    Attributes
    ----------
    saved, failed
        Checkpoints written, and those that could not be.
    last
        What the last one holds; None before there is one.

    Raises
    ------
    CheckpointError
        For choices that make no sense.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        every: float | None = None,
        every_calls: int | None = None,
        place: str = "local",
        keep: int = 1,
        digest: str = "",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if not isinstance(path, str | Path):
            raise CheckpointError(f"path: the name of a file is wanted, not {path!r}")
        self.path = Path(path).absolute()
        self._placement = placement(place)
        self._marked = place == "marked"
        self._choices = Choices(every, every_calls, place, keep, digest)
        self._keep, self._case = keep, digest
        self._due = Due(every, every_calls, clock)
        self.saved = self.failed = 0
        self.last: Written | None = None
        self._context: Context | None = None
        self._begin()

    def _begin(self) -> None:
        self._record, self._log = Record(), GlobalLog()
        self._known: dict[int, Met] = self._record.known
        self._history: deque[int] = self._record.history
        self._calls = self._sequence = 0
        self._next = 0
        self._fresh = False
        self._armed = False
        self._saving: Saving | None = None
        self._restored: Restored | None = None

    # --------------------------------------------------------------------------------------- the user's
    @contextmanager
    def watch(self, context: Context, *, restart: bool = True) -> Iterator[Checkpoints]:
        """Take checkpoints of what runs inside, after going on from the last one.

        Parameters
        ----------
        context
            Its loops and chains are watched; on several ranks this is collective.
        restart
            Whether to go on from the file, if there is one. Otherwise it is replaced by the first checkpoint.

        Raises
        ------
        CheckpointError
            When the file is damaged, belongs to another case or program, or none can be written beside it, and when
            the ranks differ in what they ask for.
        DeviceUnavailable
            When h5py is not installed.
        """
        if not isinstance(context, Context):
            raise CheckpointError(f"watch: the context of the loops is wanted, not {type(context).__name__}")
        if context.observer is not None:
            raise CheckpointError(f"the loops of {context!r} are watched already: begin with the checkpoints")
        self._choices.agree(context.comm, self.path.name, restart)
        check_place(self.path, context.comm, replaced=not restart)
        self._begin()
        self._context = context
        if restart and context.comm.broadcast(self.path.exists()):
            self._restored = Restored(self.path, context.comm, self._case)
            self._restored.load_log(self._log)
        self._due.start(0, context.comm)
        self._relax()
        context.observer = self
        try:
            yield self
            self._end()
        finally:
            context.observer = None
            self._context = None
            if self._saving is not None:
                self._saving.writer.discard()
            if self._restored is not None:
                self._restored.close()
            self._saving = self._restored = None

    def mark(self) -> None:
        """Say that here is a good place: with ``place="marked"`` a checkpoint that is due is entered now."""
        ready = self._marked and self._context is not None and self._restored is None and self._saving is None
        if ready and not self._armed and self._due.reached(self._calls):
            self._arm()

    def advice(self) -> Advice:
        """Return what a checkpoint would cost at each loop of the period that was watched last.

        Raises
        ------
        CheckpointError
            When no period was seen.
        """
        return self._record.advice()

    @property
    def replaying(self) -> bool:
        """Whether loops are skipped now: dats do not have their values, files of results exist already."""
        return self._restored is not None

    # -------------------------------------------------------------------------------------- every call
    def loop(self, loop: Loop | Chain) -> bool:
        """Count a call; run it here while a checkpoint is taken, skip it while the run catches up."""
        met = self._known.get(id(loop))
        if met is None:
            met = self._meet(loop)
        self._calls = calls = self._calls + 1
        self._sequence = rolled(met.word, self._sequence)
        met.before, met.last = met.last, calls
        self._history.append(met.number)
        self._fresh = True
        return calls >= self._next and self._act(loop, met)

    def chain(self, chain: Chain) -> bool:
        """Count a call, as `loop` does."""
        return self.loop(chain)

    def settle(self) -> None:
        """The host looks at a dat or a global, or is about to change one."""
        context = self._context
        if context is None:
            return
        with self._aside():
            if self._restored is not None:
                if self._fresh and not context.distributed and (names := self._log.unknown()):
                    self._refuse_look(", ".join(names))
                return
            if self._fresh:
                self._log.look(self._calls)
                # Sums over the ranks are formed after this call.
                self._fresh = context.distributed
            if self._saving is not None:
                self._saving.looked()

    def seen(self, data: Dat | Global) -> None:
        """The host looks at just this.

        Raises
        ------
        CheckpointError
            When its values are those of a loop that was skipped, and not in the log.
        """
        if self._restored is None:
            return
        lost = among(data, self._record.changed())
        if self._log.is_unknown(data) if isinstance(data, Global) else lost:
            self._refuse_look(data.name)

    def _refuse_look(self, names: str) -> NoReturn:
        raise CheckpointError(
            f"{self.path}: the program reads {names} after call {self._calls}, while the run catches up with the "
            "checkpoint: those values are not in it. Leave such a look out `if not saver.replaying`, or let the first "
            "run have it too, if it is at a global"
        )

    # ----------------------------------------------------------------------------------------- the rest
    def _meet(self, item: Loop | Chain) -> Met:
        met, new = self._record.meet(item)
        if new:
            self._log.meet(met.call.outputs)
            for use in met.call.uses:
                for dat in use.changed:
                    numbers_of(dat)
            if self._restored is not None:
                self._restored.check_call(met.number, met.call.text)
        return met

    @contextmanager
    def _aside(self) -> Iterator[Context]:
        """Let things run unwatched."""
        context = self._context
        assert context is not None
        before, context.observer = context.observer, None
        try:
            yield context
        finally:
            context.observer = before

    def _relax(self) -> None:
        """Say before which call nothing has to be done."""
        context = self._context
        assert context is not None
        # The reference device and the exchanges of ranks look at values themselves.
        plain = context.device.native and not context.distributed
        busy = self._restored is not None or self._armed or self._saving is not None
        self._next = 0 if busy or not plain else _NEVER if self._marked else self._due.next

    def _act(self, item: Loop | Chain, met: Met) -> bool:
        """Do what is to be done before this call; return whether the call is done with that too."""
        if self._restored is not None:
            return self._skip(item, met, self._restored)
        context = self._context
        assert context is not None
        if context.distributed:
            with self._aside():
                self._log.look(self._calls - 1)
        if self._saving is not None:
            return self._run(item, met)
        if not self._armed and not self._marked:
            if self._due.reached(self._calls):
                self._arm()
            else:
                self._relax()
        if self._armed and (step := self._placement.step(met, self._record)) is not None:
            return self._run(item, met, entry=step)
        if context.device.native:
            return False
        with self._aside():
            item()
        return True

    def _arm(self) -> None:
        self._armed = True
        self._placement.arm()
        self._relax()

    def _run(self, item: Loop | Chain, met: Met, *, first: int = 0, entry: int = -1) -> bool:
        """Run a call loop by loop; a checkpoint is entered before step ``entry``."""
        steps: tuple[Loop | Reset, ...] = item.steps if isinstance(item, Chain) else (item,)
        with self._aside():
            for k, (step, use) in enumerate(zip(steps, met.call.uses, strict=True)):
                if k < first:
                    continue
                if k == entry:
                    self._enter(met, k)
                if self._saving is not None and use.name:
                    self._write(lambda saving, use=use: self._finish(saving) if saving.before(use) else None)
                step()
        return True

    # ------------------------------------------------------------------------------------------- saving
    def _enter(self, met: Met, step: int) -> None:
        """Begin a checkpoint before a step of the call that is being made."""
        context, record = self._context, self._record
        assert context is not None
        self._armed = False
        entry = Entry(self._calls, step, self._sequence, met.call.uses[step].name)
        met.last = met.before  # of this call only the steps so far have run
        changed = record.changed(met, step)
        met.last = self._calls
        values = self._log.now()
        try:
            self._saving = Saving(self.path, context.comm, self._keep, entry, record, changed, values)
        except CheckpointError as error:
            self._fail(error)
        self._relax()

    def _write(self, work: Callable[[Saving], None]) -> None:
        """Do something with the checkpoint that is being taken; a failure ends it, not the run."""
        saving = self._saving
        assert saving is not None
        try:
            work(saving)
        except CheckpointError as error:
            saving.writer.discard()
            self._fail(error)

    def _finish(self, saving: Saving) -> None:
        write_end(saving.writer, saving.entry, self._case, saving.texts, saving.saved, self._log, saving.values)
        self.saved += 1
        self.last = saving.written
        self._over()

    def _fail(self, error: CheckpointError) -> None:
        self.failed += 1
        self._over()
        warn(f"{error}. The run goes on, the next attempt comes when the next checkpoint is due", CheckpointWarning)

    def _over(self) -> None:
        assert self._context is not None
        self._saving = None
        self._due.start(self._calls, self._context.comm)
        self._relax()

    def _end(self) -> None:
        """The watched program has ended."""
        if self._restored is not None:
            self._restored.ended_early(self._calls)
        if self._saving is not None:
            with self._aside():
                self._write(lambda saving: (saving.rest(), self._finish(saving))[1])

    # ------------------------------------------------------------------------------------------ restart
    def _skip(self, item: Loop | Chain, met: Met, restored: Restored) -> bool:
        """Skip a call, or go on from it."""
        entry = restored.entry
        with self._aside() as context:
            if self._calls < entry.call:
                self._log.skip(met.call.outputs, self._calls)
                return True
            restored.check_entry(Entry(self._calls, entry.step, self._sequence, entry.loop))
            restored.restore(self._record.dats, self._log)
        self._log.resume()
        self._restored = None
        self._due.start(self._calls, context.comm)
        self._relax()
        if context.device.native and not any(use.name for use in met.call.uses[: entry.step]):
            return False  # from its beginning: in one piece
        return self._run(item, met, first=entry.step)
