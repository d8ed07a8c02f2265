"""Compile a generated C source into a shared object, or find it in the cache, and load it.

Sources that differ by the names of their author alone are compiled once; reports of gcc and clang say which loops are
vectors.

Names of kernels, helpers, parameters and locals reach generated text as identifiers with a mark of the generator: an
underscore at the end of a local, ``v_`` or ``p0_`` before a parameter, ``k_`` before a constant, ``fl_loop_`` before
a function. Each of them is replaced by a number, the same for all places where it stands, and comments are left out.
Two texts that are equal then differ by a one-to-one change of those identifiers, none of which means anything
outside the text, so they have the same code.
"""

from __future__ import annotations

import contextlib
import ctypes
import logging
import os
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from fluxloom.core.activity import activity
from fluxloom.core.errors import CompileError, FluxloomError
from fluxloom.toolchain.cache import Cache, content_digest, disk_error, open_cache
from fluxloom.toolchain.compiler import (
    LONG_FUNCTION,
    Compiler,
    compile_flags,
    find_compiler,
    longest_function,
    report_flags,
    run_command,
)
from fluxloom.toolchain.trust import Entry

__all__ = ["Library", "load_library", "nameless", "renaming", "vectorised_lines"]

_OURS = r"fl_(?:loop|fused)_\w+|(?:[a-z]|acc|noacc|part|again|for|[efv][gp])\d*_\w+|[A-Za-z]\w*_"
_TOKEN = re.compile(rf"/\*.*?\*/|\b(?:{_OURS})\b", re.DOTALL)
"""Comments, and marked identifiers; names of C, CUDA and OpenCL (``M_PI``, ``as_double``) are none of them."""


def nameless(text: str) -> tuple[str, tuple[str, ...]]:
    """Return a text in which names are numbers, and the names in the order of the numbers."""
    numbers: dict[str, str] = {}

    def number(found: re.Match[str]) -> str:
        word = found[0]
        return "\n" * word.count("\n") if word.startswith("/") else numbers.setdefault(word, f"@{len(numbers)}")

    return _TOKEN.sub(number, text), tuple(numbers)


def renaming(text: str, other: str) -> dict[str, str]:
    """Return the names of one text and what each is called in another that differs by names alone.

    Raises
    ------
    ValueError
        When the texts differ by more.
    """
    (mine, names), (theirs, others) = nameless(text), nameless(other)
    if mine != theirs:
        raise ValueError("the texts differ by more than names")
    return dict(zip(names, others, strict=True))


_LAYOUT = "1"  # of cache entries; another number makes old entries void
_LOG_LINES = 40
_DIGITS = 40
"""Of the digest, in the names of entries."""
_NO_SPACE = (
    "No space left on device",
    "Disk quota exceeded",
    "file system is read-only",
    "Read-only file system",
)


class Library(ctypes.CDLL):
    """A loaded shared object; its C functions are attributes, as with :class:`ctypes.CDLL`.

    Each object has functions of its own: argument types declared on one do not show on another.

    Attributes
    ----------
    path, source_path : Path
        The shared object and its C source in the cache.
    digest : str
        SHA-256 of source, flags and compiler.
    flags : tuple of str
        What it was compiled with.
    compiled : bool
        Whether it was compiled now, not found in the cache.
    seconds : float
        Time to compile or to find it, loading included.
    report : str
        The compiler's vectorisation report, if asked for.
    renamed : mapping
        What functions are called in the shared object, where they have other names there.
    """

    def __init__(
        self,
        entry: Entry,
        *,
        source_path: Path,
        digest: str,
        flags: tuple[str, ...],
        compiled: bool,
        report: str,
        renamed: Mapping[str, str],
    ) -> None:
        super().__init__(entry.place)
        self.path = entry.path
        self.source_path = source_path
        self.digest = digest
        self.flags = flags
        self.compiled = compiled
        self.report = report
        self.renamed = renamed
        self.seconds = 0.0

    def __getitem__(self, name: str) -> Any:
        """Return a function by the name that it has in the source which was asked for."""
        return super().__getitem__(self.renamed.get(name, name))

    def function(self, name: str, argtypes: Sequence[Any] = (), restype: Any = None) -> Any:
        """Return a C function with its argument and result types declared; the result is ``void`` by default.

        Raises
        ------
        FluxloomError
            When the library has no such function.
        """
        try:
            found = self[name]  # a function object of its own at each call
        except AttributeError:
            raise FluxloomError(
                f"{self.source_path} defines no function {name!r}; it must not be static"
            ) from None
        found.argtypes, found.restype = list(argtypes), restype
        return found


@dataclass(frozen=True)
class _Job:
    """One source to compile: everything its digest depends on, and where it goes."""

    source: str
    name: str
    flags: tuple[str, ...]
    compiler: Compiler
    cache: Cache
    digest: str

    @property
    def stem(self) -> str:
        """Name of the entry's files, without their endings."""
        return f"{self.name}-{self.digest[:_DIGITS]}"

    @cached_property
    def alias(self) -> str:
        """Digest of the source without its names."""
        return content_digest([_LAYOUT, nameless(self.source)[0], self.compiler.identity, *self.flags])


def load_library(
    source: str,
    name: str,
    *,
    flags: Sequence[str] | None = None,
    contract: bool = True,
    vector_width: int = 0,
    report: bool = False,
    compiler: Compiler | None = None,
    cache: Cache | None = None,
) -> Library:
    """Load the shared object of a C source, compiling it if the cache does not have it, under whatever name.

    Safe to call at the same time from any number of threads and processes that share the cache.

    Parameters
    ----------
    source
        A whole C translation unit.
    name
        What it is, for file names and messages; letters, digits, ``_`` and ``-`` are kept.
    flags
        All compiler flags; by default those of :func:`compile_flags`.
    contract, vector_width
        As in :func:`compile_flags`; of no effect together with ``flags``.
    report
        Whether ``Library.report`` shall hold the compiler's vectorisation report.
    compiler, cache
        By default :func:`find_compiler` and :func:`open_cache`.

    Raises
    ------
    DeviceUnavailable
        When this machine has no C compiler.
    CompileError
        When the compiler refuses the source; the source is kept.
    FluxloomError
        When the cache cannot be written, or what was compiled cannot be loaded.
    """
    start = time.perf_counter()
    cache = open_cache() if cache is None else cache
    compiler = find_compiler() if compiler is None else compiler
    if flags is None:
        flags = compile_flags(compiler, contract=contract, vector_width=vector_width)
    digest = _digest(source, compiler, flags)
    job = _Job(source, re.sub(r"[^\w-]", "_", name, flags=re.ASCII), tuple(flags), compiler, cache, digest)
    library = _load_cached(job, job.stem, report)
    if library is None:
        with activity("compiling", job.name, again=True), cache.lock(job.alias):  # perhaps another process does it
            library = _load_cached(job, job.stem, report) or _load_twin(job, report) or _build(job, report)
    library.seconds = time.perf_counter() - start
    return library


def _digest(source: str, compiler: Compiler, flags: Sequence[str]) -> str:
    """Return the digest of all that compiled code depends on."""
    return content_digest([_LAYOUT, source, compiler.identity, *flags])


def _load_cached(job: _Job, stem: str, report: bool) -> Library | None:
    """Load an entry of the cache; None when it is missing, not sealed by this user, or lacks the report."""
    source, text = job.cache.find(f"{stem}.c"), job.cache.find(f"{stem}.vec") if report else None
    if source is None or (report and text is None) or (entry := job.cache.entry(f"{stem}.so")) is None:
        return None
    try:
        renamed = {} if stem == job.stem else _names_in(job, stem, source)
        return _open(job, entry, source, compiled=False, report="" if text is None else _text(text), renamed=renamed)
    except (OSError, ValueError):
        return None


def _names_in(job: _Job, stem: str, source: Path) -> dict[str, str]:
    """Return what the names of a job are in another source; a ValueError where that is not the one of the entry."""
    text = source.read_text(encoding="utf-8")
    if not stem.endswith(_digest(text, job.compiler, job.flags)[:_DIGITS]):  # the name is sealed, the source is not
        raise ValueError("the source was changed")
    return renaming(job.source, text)


def _load_twin(job: _Job, report: bool) -> Library | None:
    """Load code that differs by names alone; None where there is none.

    A step from one buffer to the other and the step back, say, or a kernel of which a local was renamed.
    """
    stem = job.cache.alias(job.alias)
    return _load_cached(job, stem, report) if stem else None


def _text(path: Path) -> str:
    """Read a text file that a compiler wrote."""
    return path.read_text(encoding="utf-8", errors="replace")


def _wait_politely() -> None:
    """Let waiting OpenMP threads of gcc's runtime give up their core after a few microseconds.

    By default they spin for milliseconds. On a machine that is shared with anything else this costs a
    factor of ten and more; on an idle one the difference is below the noise. The runtime reads the
    variable when it is loaded; whoever has set it, or ``OMP_WAIT_POLICY``, is left alone.
    """
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", "2000")


def _open(
    job: _Job, entry: Entry, source: Path, *, compiled: bool, report: str, renamed: Mapping[str, str]
) -> Library:
    """Load a shared object; an OSError when the dynamic linker refuses it."""
    _wait_politely()
    return Library(
        entry, source_path=source, digest=job.digest, flags=job.flags, compiled=compiled, report=report, renamed=renamed
    )


def _build(job: _Job, report: bool) -> Library:
    """Compile a source, put the result into the cache and load it."""
    if (lines := longest_function(job.source)) > LONG_FUNCTION:
        logging.getLogger("fluxloom").warning(
            "compiling %s, which has %d lines: this takes a minute and more, once; a loop or a table in place of "
            "repeated lines is compiled in a second", job.name, lines,
        )  # fmt: skip
    source = job.cache.write(f"{job.stem}.c", job.source.encode())
    output = job.cache.temporary(f"{job.stem}.so")
    notes = job.cache.temporary(f"{job.stem}.vec")
    try:
        text = _compile(job, source, output, notes, report)
        if report:
            job.cache.write(f"{job.stem}.vec", text.encode())
        try:
            content = output.read_bytes()
        except OSError as error:
            raise CompileError(
                f"the compiler wrote nothing for {job.name!r}", source_path=str(source)
            ) from error
        entry = job.cache.put(f"{job.stem}.so", content)
        job.cache.set_alias(job.alias, job.stem)
    finally:
        for file in (output, notes):
            with contextlib.suppress(OSError):
                file.unlink()
    try:
        return _open(job, entry, source, compiled=True, report=text, renamed={})
    except OSError as error:
        raise FluxloomError(
            f"the library {entry.path} was compiled but cannot be loaded: {error}; if {job.cache.folder} lies on a "
            "file system that forbids executing (noexec), set FLUXLOOM_CACHE to a folder that allows it"
        ) from error


def _compile(job: _Job, source: Path, output: Path, notes: Path, report: bool) -> str:
    """Run the compiler and return the vectorisation report, empty if it is not asked for."""
    flags = (*job.flags, *report_flags(job.compiler, str(notes))) if report else job.flags
    command = [*job.compiler.command, *flags, str(source), "-o", str(output), "-lm"]
    status, _, log = run_command(command, job.cache)
    if status != 0:
        if any(reason in log for reason in _NO_SPACE):
            raise disk_error(job.cache.folder, log.strip()[-300:])
        raise CompileError(
            f"{job.compiler.name} {job.compiler.version} cannot compile {job.name!r} (exit status {status}): "
            f"{' '.join(command[: len(job.compiler.command)])} {' '.join(flags)}",
            source_path=str(source),
            log=_first_lines(log),
        )
    if not report:
        return ""
    return _text(notes) if notes.exists() else log


def _first_lines(log: str) -> str:
    """Return the beginning of a compiler's output: what follows is mostly the consequence."""
    lines = log.strip().splitlines()
    rest = len(lines) - _LOG_LINES
    return "\n".join(lines[:_LOG_LINES] + ([f"... {rest} more lines"] if rest > 0 else []))


_LINE = re.compile(r"^[^\n]*?:(\d+):(\d+): (optimized|missed|remark|note):\s+(.*?)\s*$", re.MULTILINE)
_WIDTH = re.compile(r"using (\d+) byte|vectorization width: (\d+)")


def vectorised_lines(report: str) -> dict[int, str]:
    """Return what the compiler says about each source line that it vectorised.

    Parameters
    ----------
    report
        The text of a vectorisation report (``Library.report``).

    Returns
    -------
    dict
        From 1-based line to the message, as ``"loop vectorized using 64 byte vectors"`` (gcc) or
        ``"vectorized loop (vectorization width: 8, interleaved count: 4)"`` (clang). Where a line has
        several, a loop goes before straight-line code, and the widest vectors before narrower ones.
    """
    found: dict[int, tuple[tuple[bool, int], str]] = {}
    for line, kind, text in _messages(report):
        if "vectorized" not in text or "not vectorized" in text or kind in ("missed", "note"):
            continue
        width = _WIDTH.search(text)
        rank = ("loop" in text, int(width[1] or width[2]) if width else 0)
        if line not in found or rank > found[line][0]:
            found[line] = rank, text
    return {line: text for line, (_, text) in sorted(found.items())}


def _messages(report: str) -> list[tuple[int, str, str]]:
    """Return line, kind and text of each message, without the name of the option that asked for it."""
    return [
        (int(line), kind, re.sub(r"\s*\[-R[\w=-]+\]$", "", text))
        for line, _, kind, text in _LINE.findall(report)
    ]
