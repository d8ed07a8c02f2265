"""Other programs that a benchmark compares with: building them, finding their launcher, running them."""

from __future__ import annotations

import contextlib
import shlex
import shutil
import signal
import subprocess
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from threading import Timer

from fluxloom.comm.launchers import without_launcher
from fluxloom.core.errors import CaseError, CommError, CompileError, FluxloomError, did_you_mean
from fluxloom.machine.ranks import Starter
from fluxloom.toolchain.cache import content_digest, open_cache
from fluxloom.toolchain.compiler import find_compiler, run_command

__all__ = ["build_program", "launched", "package_flags", "peers_from_text", "run_program"]

Line = Callable[[str], None]
"""Takes a line that a program has just printed."""

_LAUNCHERS = {
    "Open MPI": ("mpiexec.openmpi", "orterun", "mpiexec", "mpirun"),
    "MPICH": ("mpiexec.mpich", "mpiexec.hydra", "mpiexec", "mpirun"),
}
_SHOWN = 20
_PATIENCE = 10.0


def peers_from_text(text: str, known: Iterable[str]) -> tuple[str, ...]:
    """Return the names in ``--peers``, separated by commas.

    Raises
    ------
    CaseError
        If one of them is not known.
    """
    names = tuple(dict.fromkeys(word.strip() for word in text.split(",") if word.strip()))
    allowed = tuple(known)
    for name in names:
        if name not in allowed:
            raise CaseError(f"--peers {name!r}{did_you_mean(name, allowed)} (allowed: {', '.join(allowed)})")
    return names


# ------------------------------------------------------------------------------------------- building


def package_flags(names: Sequence[str]) -> tuple[str, ...]:
    """Return the flags with which the first package that pkg-config knows is compiled and linked; none without one.

    Folders of libraries are kept in the program, so that it finds them again.
    """
    tool = shutil.which("pkg-config") or shutil.which("pkgconf")
    for name in names if tool else ():
        done = subprocess.run([tool or "", "--cflags", "--libs", name], capture_output=True, text=True, check=False)
        if done.returncode == 0:
            flags = shlex.split(done.stdout)
            return (*flags, *(f"-Wl,-rpath,{flag[2:]}" for flag in flags if flag.startswith("-L")))
    return ()


def build_program(source: str, name: str, flags: Sequence[str]) -> Path:
    """Return the program of a C source, compiled if the cache does not have it.

    Parameters
    ----------
    source
        A whole C translation unit with a ``main``.
    name
        What it is, for file names and messages.
    flags
        Behind those of the optimiser; libraries too.

    Raises
    ------
    DeviceUnavailable
        When this machine has no C compiler.
    CompileError
        When the compiler refuses the source.
    """
    cache, compiler = open_cache(), find_compiler()
    digest = content_digest([source, compiler.identity, *flags])
    file = f"{name}-{digest[:40]}.exe"
    known = cache.entry(file)
    if known is not None:
        return known.path
    text = cache.write(f"{name}-{digest[:40]}.c", source.encode())
    output = cache.temporary(file)
    try:
        command = [*compiler.command, "-O2", str(text), "-o", str(output), *flags, "-lm"]
        status, _, log = run_command(command, cache)
        if status:
            raise CompileError(f"{compiler.name} cannot build {name!r}", source_path=str(text), log=log.strip()[:3000])
        return cache.put(file, output.read_bytes(), 0o755).path
    finally:
        output.unlink(missing_ok=True)


# -------------------------------------------------------------------------------------------- running


def launched(command: Sequence[str], processes: int, family: str) -> tuple[list[str], dict[str, str]]:
    """Return command and environment of a program on some processes, of one thread each.

    Parameters
    ----------
    command
        The program alone; it is started without a launcher if it shall be one process.
    family
        The MPI library it was built with, ``"Open MPI"`` or ``"MPICH"``.

    Raises
    ------
    CommError
        If the launcher of this library is not here.
    """
    single = {"OMP_NUM_THREADS": "1"}
    if processes == 1:
        return list(command), Starter("", family).environment() | single
    names = _LAUNCHERS.get(family, ())
    program = next(filter(None, map(shutil.which, names)), None)
    if program is None:
        raise CommError(f"{command[0]} was built with {family or 'an unknown MPI'}: none of {', '.join(names)} is here")
    starter = Starter(program, family)
    binding = ["--bind-to", "none"] if family == "Open MPI" else []
    return [program, *binding, "-n", str(processes), *command], starter.environment() | single


def run_program(
    command: Sequence[str], *, name: str, folder: Path | None = None, environment: Mapping[str, str] | None = None,
    seconds: float = 3600.0, line: Line | None = None,
) -> list[str]:  # fmt: skip
    """Run a program until it ends and return the lines that it printed, errors among them.

    Parameters
    ----------
    name
        What messages call it.
    folder
        Where it runs.
    environment
        All its variables; by default those of this process without what a launcher of MPI told it.
    seconds
        When it is ended.
    line
        Gets each line at once.

    Raises
    ------
    FluxloomError
        If it cannot be started, fails or takes too long; the message has the last lines.
    """
    try:
        process = subprocess.Popen(
            list(command), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            errors="replace", cwd=folder, env=dict(environment) if environment is not None else without_launcher(),
        )  # fmt: skip
    except OSError as error:
        raise FluxloomError(f"{name}: {command[0]} could not be started: {error.strerror or error}") from error
    late: list[bool] = []
    timer = Timer(seconds, lambda: (late.append(True), process.terminate()))
    timer.start()
    said: list[str] = []
    try:
        with _told_to_end():
            for text in process.stdout or ():
                said.append(text.rstrip("\n"))
                if line is not None:
                    line(said[-1])
            status = process.wait()
    finally:
        timer.cancel()
        _end(process)
    if status or late:
        why = f"ended after {seconds:g} s, as it took too long" if late else f"failed with status {status}"
        raise FluxloomError("\n".join([f"{name} {why}: {shlex.join(command)}", *deque(said, _SHOWN)]))
    return said


@contextlib.contextmanager
def _told_to_end() -> Iterator[None]:
    """Make a signal that ends this process an exception, so that what it has started can be ended too."""

    def leave(number: int, _frame: object) -> None:
        raise SystemExit(128 + number)

    main = threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGTERM, leave) if main else None
    try:
        yield
    finally:
        if main:
            signal.signal(signal.SIGTERM, before)


def _end(process: subprocess.Popen[str]) -> None:
    """End a program that still runs, and close its output."""
    if process.poll() is None:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=_PATIENCE)
    if process.poll() is None:
        process.kill()
        process.wait()
    if process.stdout is not None:
        process.stdout.close()
