"""Find a C compiler and learn what it can do: one small trial per compiler and processor, kept on disk.

The flags of generated code follow from that.
"""

from __future__ import annotations

import errno
import functools
import importlib.util
import json
import logging
import os
import platform
import shlex
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from fluxloom.core.errors import DeviceUnavailable, FluxloomError
from fluxloom.toolchain.cache import Cache, content_digest, open_cache

__all__ = [
    "LONG_FUNCTION", "Compiler", "compile_flags", "compiler_environment", "find_compiler", "level_flags",
    "longest_function", "optimises", "report_flags", "run_command",
]  # fmt: skip

_LAYOUT = "4"  # of the files that keep what was learnt; another number makes old files void
_NATIVE = (("-march=native",), ("-mcpu=native",), ())
_SEARCHED = ("LIBRARY_PATH", "LD_LIBRARY_PATH", "CPATH", "C_INCLUDE_PATH", "COMPILER_PATH", "GCC_EXEC_PREFIX")
_ZIG = (sys.executable, "-m", "ziglang", "cc")
_TRIAL = """
#include <math.h>
#include <stdint.h>
#include <stdio.h>
int main(void)
{
    int threads = 0;
#ifdef _OPENMP
#pragma omp parallel reduction(+ : threads)
#endif
    threads += 1;
    printf("%d\\n", threads);
    return 0;
}
"""
_INSTALL = (
    "install one (Debian, Ubuntu: `apt install gcc`; any Linux, without root: "
    "`pip install fluxloom[compiler]`) or name one in the environment variable FLUXLOOM_CC"
)


@dataclass(frozen=True)
class Compiler:
    """A C compiler and what it can do on this processor.

    Parameters
    ----------
    command
        The program and its fixed arguments, to be followed by flags and files.
    name
        ``"gcc"``, ``"clang"`` or ``"zig"``.
    family
        Whose flags it understands: ``"gcc"`` or ``"clang"``.
    version
        What the compiler says about itself.
    openmp
        Whether an OpenMP program can be compiled and run.
    native
        The flags that use every instruction of this processor.
    vector_width
        Whether ``-mprefer-vector-width`` is understood.
    target
        Digest of the instruction set and tuning behind ``native``: it changes with the processor.
    """

    command: tuple[str, ...]
    name: str
    family: str
    version: str
    openmp: bool
    native: tuple[str, ...]
    vector_width: bool
    target: str

    @property
    def identity(self) -> str:
        """What compiled code depends on: name, version, fixed arguments and processor."""
        return " ".join((self.name, self.version, *self.command[1:], self.target))


class _TrialError(Exception):
    """A candidate is no working C compiler; the message is what it said."""


def find_compiler() -> Compiler:
    """Return the C compiler of this machine.

    The first that works of: the environment variables ``FLUXLOOM_CC`` and ``CC`` (both may hold arguments),
    ``gcc``, ``cc``, ``clang``, and the ``ziglang`` package. ``FLUXLOOM_CC`` is an order, the others are
    suggestions: when the named compiler does not work, no other is taken.

    Raises
    ------
    DeviceUnavailable
        When there is none; the message says what to install.
    """
    names = ("FLUXLOOM_CC", "CC", "PATH")
    return _find(*(os.environ.get(name, "") for name in names), open_cache())


@functools.lru_cache(maxsize=16)
def _find(ordered: str, suggested: str, path: str, cache: Cache) -> Compiler:
    """Find a compiler for given values of the environment variables."""
    if ordered:
        return _from_order(ordered, path, cache)
    tried = []
    for words in (_suggestion(suggested, path), ["gcc"], ["cc"], ["clang"]):
        command = _locate(words, path)
        if command is None:
            continue
        try:
            return _learn(command, cache)
        except _TrialError as error:
            tried.append(f"{shlex.join(command)} does not work: {error}")
            logging.getLogger("fluxloom").warning("%s", tried[-1])
    if importlib.util.find_spec("ziglang") is not None:
        try:
            return _learn(_ZIG, cache)
        except _TrialError as error:
            tried.append(f"the ziglang package does not work: {error}")
    raise DeviceUnavailable("\n".join([f"no C compiler found: {_INSTALL}", *tried]))


def _suggestion(suggested: str, path: str) -> list[str]:
    """Return the words of CC; none, and a warning, where they name no program."""
    why = "no such program"
    try:
        words = shlex.split(suggested)
    except ValueError as error:
        words, why = [], str(error)
    if suggested.strip() and _locate(words, path) is None:
        logging.getLogger("fluxloom").warning("CC=%r is not used: %s", suggested, why)
        return []
    return words


def _from_order(ordered: str, path: str, cache: Cache) -> Compiler:
    """Return the compiler that FLUXLOOM_CC names."""
    try:
        command = _locate(shlex.split(ordered), path)
    except ValueError as error:
        raise DeviceUnavailable(f"FLUXLOOM_CC={ordered!r}: {error}; close the quotation or unset it") from None
    if command is None:
        raise DeviceUnavailable(f"FLUXLOOM_CC={ordered!r}: no such program; correct or unset it")
    try:
        return _learn(command, cache)
    except _TrialError as error:
        raise DeviceUnavailable(f"FLUXLOOM_CC={ordered!r} cannot compile a C program: {error}") from None


def _locate(words: Sequence[str], path: str) -> tuple[str, ...] | None:
    """Return a command with the full path of its program, or None when there is no such program."""
    import shutil

    program = shutil.which(words[0], path=path) if words else None
    return None if program is None else (program, *words[1:])


# ------------------------------------------------------------------------------------ what it can do


def _learn(command: tuple[str, ...], cache: Cache) -> Compiler:
    """Return what a compiler can do, from the disk or by trial.

    What it cannot do is not believed for long: OpenMP that was missing is tried again by each process.
    """
    known = _recall(command, cache)
    if known is None or (not known.openmp and known.name != "zig" and not _runs(command, _openmp(known.native), cache)):
        known = _examine(command, cache)
        kept = {"compiler": asdict(known), "places": _dates(_places(command, cache))}
        try:
            cache.put(_record(command), json.dumps(kept, indent=1).encode())
        except FluxloomError as error:
            logging.getLogger("fluxloom").warning("%s", error)
    if not known.openmp:
        logging.getLogger("fluxloom").warning(
            "compiling with %s, without OpenMP: loops run on one thread; to use all cores install gcc, or "
            "OpenMP for clang (Debian, Ubuntu: apt install libomp-dev)", known.name,
        )  # fmt: skip
    return known


def _openmp(native: Sequence[str]) -> tuple[str, ...]:
    """Return the flags of the trial with OpenMP."""
    return (*native, "-fopenmp")


def _record(command: Sequence[str]) -> str:
    """Return the name of the file that keeps what was learnt about a command on this processor."""
    program = os.path.realpath(command[0])
    status = os.stat(program)
    parts = [_LAYOUT, program, str(status.st_mtime_ns), str(status.st_size), *command, _processor()]
    parts += [os.environ.get(name, "") for name in _SEARCHED]
    if tuple(command) == _ZIG:
        found = importlib.util.find_spec("ziglang")
        where = found.origin if found is not None and found.origin else ""
        parts += [where, str(os.stat(where).st_mtime_ns) if where else ""]
    return f"compiler-{content_digest(parts)[:32]}.json"


def _places(command: Sequence[str], cache: Cache) -> list[str]:
    """Return the folders of a compiler and those where it looks for libraries: installing something changes them."""
    said = run_command([*command, "-print-search-dirs"], cache)[1]
    found = {os.path.dirname(command[0]), os.path.dirname(os.path.realpath(command[0]))}
    for line in said.splitlines():
        kind, _, paths = line.partition(": ")
        if kind in ("install", "libraries"):
            found |= {os.path.realpath(path) for path in paths.removeprefix("=").split(os.pathsep) if path}
    return sorted(found | {os.path.join(path, "include") for path in found if os.path.isdir(f"{path}/include")})


def _dates(places: Sequence[str]) -> dict[str, int]:
    """Return when each folder was changed last; 0 where there is none."""
    dates = {}
    for place in places:
        try:
            dates[place] = os.stat(place).st_mtime_ns
        except OSError:
            dates[place] = 0
    return dates


def _recall(command: tuple[str, ...], cache: Cache) -> Compiler | None:
    """Read what was learnt earlier; None when there is nothing, nothing readable, or something was installed since."""
    entry = cache.entry(_record(command))  # sealed: it says with which flags compilers are run
    if entry is None:
        return None
    try:
        kept = json.loads(entry.content)
        if _dates(list(kept["places"])) != kept["places"]:
            return None
        fields = kept["compiler"]
        fields["command"], fields["native"] = tuple(fields["command"]), tuple(fields["native"])
        return Compiler(**fields)
    except (OSError, ValueError, TypeError, KeyError):
        return None


def _processor() -> str:
    """Return what tells one model of processor from another."""
    wanted = ("vendor_id", "cpu family", "model", "model name", "stepping", "flags",
              "Features", "CPU implementer", "CPU part", "CPU variant", "isa")  # fmt: skip
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            first = file.read(16384).partition("\n\n")[0]
    except OSError:
        first = platform.processor()
    lines = [line for line in first.splitlines() if line.partition(":")[0].strip() in wanted]
    return "\n".join([platform.machine(), sys.platform, *(lines or [first])])


def _examine(command: tuple[str, ...], cache: Cache) -> Compiler:
    """Try a compiler out."""
    macros, native = _macros(command, cache)
    version = macros.get("__VERSION__", "").strip('"') or "unknown"
    family = "clang" if "__clang__" in macros else "gcc"
    is_zig = any("zig" in Path(part).name for part in command)
    openmp = _runs(command, _openmp(native), cache) == ""
    if not openmp and (log := _runs(command, native, cache)):
        raise _TrialError(log)
    tuning = run_command([*command, *native, "-Q", "--help=target"], cache)[1] if family == "gcc" else ""
    instructions = "\n".join(f"{key} {value}" for key, value in sorted(macros.items()))
    return Compiler(
        command=command,
        name="zig" if is_zig else family,
        family=family,
        version=version,
        openmp=openmp,
        native=native,
        vector_width=_runs(command, (*native, "-Werror", "-mprefer-vector-width=256"), cache) == "",
        target=content_digest([platform.machine(), tuning, instructions])[:32],
    )


def _macros(command: tuple[str, ...], cache: Cache) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return the predefined macros, and the flags for this processor that were accepted."""
    log = ""
    for native in _NATIVE:
        status, output, log = run_command([*command, *native, "-dM", "-E", "-x", "c", os.devnull], cache)
        if status == 0 and "#define" in output:
            lines = [line.split(maxsplit=2) for line in output.splitlines() if line.startswith("#define")]
            return {words[1]: words[2] if len(words) > 2 else "" for words in lines}, native
    raise _TrialError(log.strip()[:500] or "it says nothing")


def _runs(command: tuple[str, ...], flags: Sequence[str], cache: Cache) -> str:
    """Compile and run the trial program; return an empty string, or what went wrong."""
    program = cache.temporary("trial.exe")
    source = cache.write(cache.temporary("trial.c").name, _TRIAL.encode())
    try:
        status, _, log = run_command([*command, "-O1", *flags, str(source), "-o", str(program), "-lm"], cache)
        if status == 0:
            status, _, log = run_command([str(program)], cache)
            if status == 127 and log == f"{program}: {os.strerror(errno.EACCES)}":
                raise FluxloomError(
                    f"programs compiled to {cache.folder} cannot be executed ({os.strerror(errno.EACCES)}): set the "
                    "environment variable FLUXLOOM_CACHE to a folder whose file system allows it (not noexec)"
                )
        return "" if status == 0 else log.strip()[:500] or f"exit status {status}"
    finally:
        source.unlink(missing_ok=True)
        program.unlink(missing_ok=True)


def compiler_environment(cache: Cache) -> dict[str, str]:
    """Return the environment for a compiler: English messages, and zig's own cache inside ours."""
    environment = dict(os.environ)
    environment["LC_ALL"] = "C"
    for name in ("ZIG_GLOBAL_CACHE_DIR", "ZIG_LOCAL_CACHE_DIR"):
        environment.setdefault(name, str(cache.folder / "zig"))
    return environment


def run_command(command: Sequence[str], cache: Cache) -> tuple[int, str, str]:
    """Run a command without a shell and return its status, output and error output."""
    import subprocess

    try:
        done = subprocess.run(
            list(command), capture_output=True, stdin=subprocess.DEVNULL, check=False,
            text=True, errors="replace", env=compiler_environment(cache),
        )  # fmt: skip
    except OSError as error:
        return 127, "", f"{command[0]}: {error.strerror or error}"
    return done.returncode, done.stdout, done.stderr


_WIDTHS = (0, 128, 256, 512)
_EXTRA = "FLUXLOOM_CFLAGS"
_UNSAFE = frozenset(
    "-Ofast -ffast-math -funsafe-math-optimizations -ffinite-math-only -fassociative-math -freciprocal-math "
    "-fno-signed-zeros -fno-honor-nans -fno-honor-infinities -fapprox-func -ffp-model=fast -ffp-model=aggressive "
    "-mdaz-ftz -fsingle-precision-constant -fdenormal-fp-math=preserve-sign".split()
)
"""Flags that change values: NaN and infinity do not occur, sums are reordered, small numbers are zero, in the whole
process from then on."""

LONG_FUNCTION = 8000
"""Lines of a function above which time to compile, which grows with their square, counts more than its speed. The
longest kernels of the package have 6500."""


def compile_flags(
    compiler: Compiler,
    *,
    contract: bool = True,
    openmp: bool = True,
    vector_width: int = 0,
    signed_zeros: bool = True,
    extra: Sequence[str] = (),
) -> tuple[str, ...]:
    """Return the flags for a shared object of generated code.

    No flag lets the compiler reorder sums or assume that NaN and infinity do not occur. ``-fno-math-errno``
    and ``-fno-trapping-math`` change no value: they say that nobody reads ``errno`` or the exception flags.
    The words of the environment variable ``FLUXLOOM_CFLAGS`` come behind these flags and so overrule them:
    ``-g -fsanitize=undefined`` to look for a fault, ``-O1`` to compile in half the time, ``-O0`` in a fifth
    (loops then handle one element at a time).

    Parameters
    ----------
    compiler
        From :func:`find_compiler`.
    contract
        Whether ``a * b + c`` may be rounded once (FMA). Without it every operation rounds as IEEE 754 says,
        and results are bitwise the same on every processor and at every vector width.
    openmp
        Whether to compile all OpenMP directives, where the compiler can; else only ``omp simd`` is.
    vector_width
        Preferred bits of a vector: 128, 256, 512, or 0 for the compiler's choice; where it can be told.
    signed_zeros
        Whether -0 is told from +0; False permits ``x + 0`` to become ``x``.
    extra
        Flags added at the end.

    Raises
    ------
    FluxloomError
        For another vector width, where ``FLUXLOOM_CFLAGS`` is no list of words, or has flags that change values.
    """
    if vector_width not in _WIDTHS:
        raise FluxloomError(
            f"vector_width={vector_width}: choose one of {', '.join(map(str, _WIDTHS))} (bits)"
        )
    flags = [*_fixed_flags(compiler), f"-ffp-contract={'fast' if contract else 'off'}"]
    if not signed_zeros:
        flags.append("-fno-signed-zeros")
    if vector_width and compiler.vector_width:
        flags.append(f"-mprefer-vector-width={vector_width}")
    flags.append("-fopenmp" if openmp and compiler.openmp else "-fopenmp-simd")
    given = _environment_flags()
    for name, words in ((_EXTRA, given), ("the compiler's command, FLUXLOOM_CC or CC,", compiler.command[1:])):
        if unsafe := [word for word in words if word in _UNSAFE]:
            raise FluxloomError(
                f"{name} has {unsafe[0]}, which changes what kernels mean (NaN, infinities, the order of sums): leave "
                "it out; -O3 and all instructions of the processor are used anyway"
            )
    return (*flags, *given, *extra)


def _fixed_flags(compiler: Compiler) -> list[str]:
    """Return what every compilation by a compiler has on this system."""
    flags = ["-O3", *compiler.native, "-std=gnu11", "-fPIC", "-shared", "-fno-math-errno", "-fno-trapping-math",
             "-Werror=implicit-function-declaration"]  # fmt: skip
    if compiler.family == "gcc":
        flags.append("-fno-semantic-interposition")
    if compiler.name == "zig":
        flags.append("-fno-sanitize=undefined")
    if sys.platform == "linux":
        flags.append("-Wl,-z,defs")
    return flags


def _environment_flags() -> list[str]:
    """Return the words of ``FLUXLOOM_CFLAGS``."""
    given = os.environ.get(_EXTRA)
    try:
        return shlex.split(given) if given else []
    except ValueError as error:
        raise FluxloomError(f"{_EXTRA}={os.environ[_EXTRA]!r}: {error}; close the quotation or unset it") from error


def longest_function(source: str) -> int:
    """Return the lines of the longest function of generated C, which begins and ends at the margin."""
    longest = start = 0
    for number, line in enumerate(source.splitlines()):
        if line.startswith("}"):
            longest = max(longest, number - start)
        elif line[:1] not in ("", " ", "#", "}"):
            start = number
    return longest


def level_flags(source: str) -> tuple[str, ...]:
    """Return flags for a source with a function so long that ``-O3`` would take many minutes, unless the user chose."""
    chosen = any(word.startswith("-O") for word in _environment_flags())
    return ("-O1",) if not chosen and longest_function(source) > LONG_FUNCTION else ()


def optimises() -> bool:
    """Return whether ``FLUXLOOM_CFLAGS`` leaves code optimised: without, packs of elements are no vectors."""
    levels = [word for word in _environment_flags() if word.startswith("-O")]
    return levels[-1:] != ["-O0"]


def report_flags(compiler: Compiler, path: str) -> tuple[str, ...]:
    """Return the flags that ask for the vectoriser's report.

    gcc writes it to ``path``; clang and zig write it to the error output whatever ``path`` is.
    """
    if compiler.family == "gcc":
        return (f"-fopt-info-vec-optimized-missed={path}",)
    return tuple(f"-R{kind}=loop-vectorize" for kind in ("pass", "pass-missed", "pass-analysis"))
