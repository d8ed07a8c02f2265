"""Checks and measures what carries messages between GPUs, one a rank: the host, MPI on device memory, NCCL.

    mpirun -n 2 python bench/gpu_ranks/check.py --json FILE

Needs CuPy and mpi4py, and NCCL for its own part. Every phase has a time limit, after which the ranks say where they are
and end: nothing hangs. What was found until then is in the file.
"""

from __future__ import annotations

import argparse
import ctypes
import faulthandler
import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from fluxloom.core.errors import FluxloomError
from fluxloom.core.packages import require
from fluxloom.device.base import Call, Enqueued, Launch
from fluxloom.device.cuda.buffer import CudaBuffer
from fluxloom.device.cuda.device import CudaDevice
from fluxloom.device.cuda.nccl import NcclLink, UniqueId
from fluxloom.device.cuda.transfer_queue import CudaTransferQueue, array_of, settle_main
from fluxloom.device.transfer_queue import landing

TEXT = Path(__file__).with_name("kernels.cu").read_text()
SYMBOLS = ("fl_tick", "fl_pack", "fl_check", "fl_unpack", "fl_work")
BLOCK = 256
WORK_ITEMS, WORK_ROUNDS = 1 << 22, 1000
SIZES = tuple(1 << k for k in range(13, 25))  # 8 KiB ... 16 MiB


class Rank:
    """This rank: MPI, GPU, kernels, and what was found."""

    def __init__(self, options: argparse.Namespace) -> None:
        from mpi4py import MPI

        self.options, self.mpi, self.world = options, MPI, MPI.COMM_WORLD
        self.rank, self.size = self.world.rank, self.world.size
        self.local = self.world.Split_type(MPI.COMM_TYPE_SHARED).rank
        self.found: dict[str, Any] = {"ranks": self.size, "phases": {}, "sizes": {}}
        self.link: NcclLink | None = None
        self.aware = False
        self.device: CudaDevice
        self.peers = sorted({(self.rank + 1) % self.size, (self.rank - 1) % self.size})

    def start(self) -> None:
        """Open the GPU of this rank and compile."""
        cupy: Any = require("cupy", "cuda", "this check")
        count = int(cupy.cuda.runtime.getDeviceCount())
        self.device = CudaDevice(self.local % count)
        self.program = self.device.compile(TEXT, SYMBOLS, "gpu_ranks")
        self.transfer_queue = CudaTransferQueue(self.device)
        self.busy = self.device.allocate(8 * WORK_ITEMS)
        self.found["gpus"] = self.world.allgather(f"{self.device.number}: {self.device.describe()}")
        self.found["mpi"] = self.mpi.Get_library_version().split("\n")[0].strip("\0 ")
        self.found["own_gpus"] = own = self.local < count
        self.aware = device_aware(self.mpi)
        self.found["mpi_device_aware"] = self.aware
        if not all(self.world.allgather(own)):
            self.note("more ranks than GPUs on a machine: NCCL is left out")

    def join_nccl(self) -> None:
        """Make the link, and check a reduction."""
        found: UniqueId | str = ""
        if self.rank == 0:
            try:
                found = NcclLink.unique_id()
            except FluxloomError as error:
                found = str(error)
        name: UniqueId | str = self.world.bcast(found)
        if isinstance(name, str):
            raise RuntimeError(name)
        link = NcclLink(self.device, self.rank, self.size, name)
        buffer = self.device.allocate(64)
        buffer.host(write=True).view(np.float64)[:] = 1.5 + self.rank
        link.all_reduce(buffer.device(), 8, np.float64, "sum")
        buffer.written()
        total = 1.5 * self.size + self.size * (self.size - 1) / 2
        if not (buffer.host().view(np.float64) == total).all():
            raise RuntimeError(f"NCCL sums to {buffer.host().view(np.float64)[0]}, not {total}")
        self.found["nccl_reduce_us"] = self.time(lambda: link.all_reduce(buffer.address, 1, np.float64, "sum"), 200)
        self.link = link

    # ---------------------------------------------------------------------------------- reporting
    def note(self, text: str) -> None:
        """Print on the first rank."""
        if self.rank == 0:
            print(text, flush=True)

    def phase(self, name: str, run: Callable[[], None]) -> bool:
        """Run a phase within its time limit; returns whether it went well on all ranks."""
        self.note(f"-- {name}")
        faulthandler.dump_traceback_later(self.options.limit, exit=True)
        start, problem = time.perf_counter(), ""
        try:
            run()
        except (FluxloomError, RuntimeError, ValueError, AttributeError, TypeError, ImportError) as error:
            problem = f"rank {self.rank}: {type(error).__name__}: {error}"
            print(f"{name}: {problem}", file=sys.stderr, flush=True)  # other ranks may never hear of it
        problems = [p for p in self.world.allgather(problem) if p]
        faulthandler.cancel_dump_traceback_later()
        seconds = time.perf_counter() - start
        self.found["phases"][name] = {"ok": not problems, "seconds": round(seconds, 2), "problems": problems}
        self.note("   " + ("; ".join(problems) if problems else f"ok, {seconds:.1f} s"))
        self.write()
        return not problems

    def write(self) -> None:
        """Write what was found so far."""
        if self.rank == 0 and self.options.json:
            target = Path(self.options.json)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(json.dumps(self.found, indent=1) + "\n")

    def time(self, run: Callable[[], object], repeats: int) -> float:
        """Return microseconds of one run: median of three rounds, the slowest rank counts."""
        rounds = []
        for _ in range(4):  # the first one warms up
            self.device.synchronize()
            self.world.barrier()
            start = time.perf_counter()
            for _ in range(repeats):
                run()
            self.device.synchronize()
            rounds.append(self.world.allreduce((time.perf_counter() - start) / repeats, op=self.mpi.MAX))
        return round(1e6 * statistics.median(rounds[1:]), 2)

    # ------------------------------------------------------------------------------------- kernels
    def call(self, symbol: str, items: int, *words: int | CudaBuffer) -> Call:
        """Return the call of one kernel; buffers count as written."""
        values = [w.device(write=True) if isinstance(w, CudaBuffer) else w for w in words]
        launches = (Launch(symbol, items, BLOCK),)
        return Call(symbol, self.program, np.array(values, dtype=np.int64), launches, list(words))

    def work(self) -> Call:
        """Return a kernel that takes a while."""
        return self.call("fl_work", WORK_ITEMS, self.busy, WORK_ITEMS, WORK_ROUNDS)


class Halo:
    """One message each way with each neighbour, and the ways to carry it."""

    def __init__(self, rank: Rank, nbytes: int) -> None:
        self.rank, self.nbytes, self.words = rank, nbytes, nbytes // 8
        device = rank.device
        self.out = {peer: device.allocate(nbytes) for peer in rank.peers}
        self.into = {peer: device.allocate(nbytes) for peer in rank.peers}
        self.step, self.wrong, self.used = device.allocate(8), device.allocate(4), device.allocate(nbytes)
        self._requests: dict[str, list[Any]] = {}

    def __enter__(self) -> Halo:
        return self

    def __exit__(self, *_: object) -> None:
        for requests in self._requests.values():
            for request in requests:
                request.Free()

    def requests(self, kind: str) -> list[Any]:
        """Return persistent requests of MPI on host copies or on device memory."""
        if kind not in self._requests:
            world, device = self.rank.world, self.rank.device

            def memory(buffer: CudaBuffer) -> Any:
                return landing(buffer) if kind == "host" else array_of(device, buffer)

            self._requests[kind] = [world.Recv_init(memory(b), peer, 7) for peer, b in self.into.items()]
            self._requests[kind] += [world.Send_init(memory(b), peer, 7) for peer, b in self.out.items()]
        return self._requests[kind]

    def carry(self, kind: str) -> None:
        """Let MPI exchange the messages."""
        requests = self.requests(kind)
        self.rank.mpi.Prequest.Startall(requests)
        self.rank.mpi.Request.Waitall(requests)

    def send_host(self) -> None:
        """Begin the way over the host."""
        self.rank.transfer_queue.down(*self.out.values())

    def receive_host(self) -> None:
        """End the way over the host."""
        transfer_queue = self.rank.transfer_queue
        transfer_queue.wait()
        self.carry("host")
        transfer_queue.up(*self.into.values())
        transfer_queue.join()

    def host(self) -> None:
        """Exchange over the host."""
        self.send_host()
        self.receive_host()

    def direct(self) -> None:
        """Exchange by MPI on device memory."""
        settle_main(self.rank.device)
        self.carry("device")

    def parcels(self) -> tuple[list[tuple[int, int, int]], list[tuple[int, int, int]]]:
        """Return what NCCL sends and receives."""
        sends = [(peer, b.address, self.nbytes) for peer, b in self.out.items()]
        return sends, [(peer, b.address, self.nbytes) for peer, b in self.into.items()]

    def nccl_items(self) -> tuple[Enqueued, Enqueued]:
        """Return start and finish of an exchange through NCCL."""
        assert self.rank.link is not None
        return self.rank.link.items("halo", *self.parcels())

    def items(self, transport: str) -> tuple[Enqueued, Enqueued]:
        """Return what begins and what ends an exchange."""
        if transport == "nccl":
            return self.nccl_items()
        if transport == "mpi":
            return Enqueued("settle", lambda: None), Enqueued("direct", self.direct)
        return Enqueued("send", self.send_host), Enqueued("receive", self.receive_host)

    def steps(self, transport: str, *, work: bool, check: bool = False) -> list[Call | Enqueued]:
        """Return a step: new values are packed, exchanged and used, or compared with what was to be sent."""
        rank, n = self.rank, self.words
        start, finish = self.items(transport)
        pack = [rank.call("fl_pack", n, b, self.step, n, rank.rank) for b in self.out.values()]
        if check:
            use = [rank.call("fl_check", n, b, self.step, n, peer, self.wrong) for peer, b in self.into.items()]
        else:
            use = [rank.call("fl_unpack", n, b, n, self.used) for b in self.into.values()]
        inner = [rank.work()] if work else []
        return [rank.call("fl_tick", 1, self.step), *pack, start, *inner, finish, *use]

    def verify(self, transport: str, replays: int, graphs: int) -> None:
        """Run a sequence many times with changing values."""
        sequence = self.rank.device.sequencer(self.steps(transport, work=self.nbytes <= 1 << 20, check=True))
        for _ in range(replays):
            sequence()
        if sequence.graphs != graphs:
            raise RuntimeError(f"{transport}: {sequence.graphs} graphs instead of {graphs}")
        if self.count(self.step, np.int64) != replays:
            raise RuntimeError(f"{transport}: {self.count(self.step, np.int64)} steps instead of {replays}")
        if self.count(self.wrong, np.int32):
            raise RuntimeError(f"{transport}, {self.nbytes} bytes: {self.count(self.wrong, np.int32)} wrong words")
        peer, buffer = next(iter(self.into.items()))
        check = self.rank.call("fl_check", self.words, buffer, self.step, self.words, peer + 1, self.wrong)
        self.rank.device.sequencer([check])()
        if self.count(self.wrong, np.int32) != self.words:
            raise RuntimeError("the check finds no mistake where all is wrong")
        if self.rank.link is not None:
            self.rank.link.check()

    @staticmethod
    def count(buffer: CudaBuffer, kind: type[np.generic]) -> int:
        """Return a number of the device."""
        buffer.written()
        return int(buffer.host().view(kind)[0])


def device_aware(mpi: Any) -> bool:
    """Whether MPI says that it takes device memory; asking it with such memory could end the process."""
    library = ctypes.CDLL(mpi.__file__)
    try:
        return bool(library.MPIX_Query_cuda_support())
    except AttributeError:
        return False


def transports(rank: Rank) -> list[str]:
    """Return the transports that can be tried."""
    return ["host", *(["nccl"] if rank.link is not None else []), *(["mpi"] if rank.aware else [])]


def verify(rank: Rank, transport: str) -> None:
    """Check small and large messages."""
    for nbytes in (8, 8 << 10, 1 << 20, 16 << 20):
        plain = 1 + (len(rank.peers) > 1)  # graphs of the kernels before and after, where there are several
        with Halo(rank, nbytes) as halo:
            halo.verify(transport, rank.options.replays, 1 if transport == "nccl" else plain)


def measure(rank: Rank) -> None:
    """Measure one exchange for each size and transport."""
    for nbytes in SIZES:
        repeats = max(20, min(100, (64 << 20) // nbytes))
        row = rank.found["sizes"].setdefault(str(nbytes), {})
        with Halo(rank, nbytes) as halo:
            row["host"] = rank.time(halo.host, repeats)
            if rank.aware:
                row["mpi"] = rank.time(halo.direct, repeats)
            if rank.link is not None:
                link, parcels = rank.link, halo.parcels()
                row["nccl"] = rank.time(lambda link=link, parcels=parcels: link.exchange(*parcels), repeats)
                row["nccl_graph"] = rank.time(rank.device.sequencer(halo.nccl_items()), repeats)


def overlap(rank: Rank) -> None:
    """Measure a step with interior work, with and without an exchange beside it."""
    found = rank.found["overlap"] = {}
    for nbytes in (64 << 10, 1 << 20, 16 << 20):
        row = found[str(nbytes)] = {}
        for transport in transports(rank):
            with Halo(rank, nbytes) as halo:
                row[transport] = overlap_of(rank, halo, transport)


def overlap_of(rank: Rank, halo: Halo, transport: str) -> dict[str, float | None]:
    """Return microseconds of a step's kernels, of the step, of the exchange alone, and which part of it is hidden."""

    def timed(items: list[Call | Enqueued]) -> float:
        return rank.time(rank.device.sequencer(items), 20)

    full, bare = halo.steps(transport, work=True), halo.steps(transport, work=False)
    kernels, packing = (timed([item for item in items if isinstance(item, Call)]) for items in (full, bare))
    step = timed(full)
    exchange = round(timed(bare) - packing, 2)
    hidden = round(100.0 * (1.0 - max(0.0, step - kernels) / exchange), 1) if exchange > 1.0 else None
    return {"kernels_us": kernels, "step_us": step, "exchange_us": exchange, "hidden_percent": hidden}


def table(rank: Rank) -> None:
    """Print the times."""
    names = ("host", "mpi", "nccl", "nccl_graph")
    rank.note("\nmicroseconds of one exchange (GB/s each way)")
    rank.note(f"{'bytes':>10}" + "".join(f"{name:>22}" for name in names))
    for nbytes, row in rank.found["sizes"].items():
        total = int(nbytes) * len(rank.peers)
        cells = [f"{row[n]:.1f} ({total / row[n] / 1e3:.1f})" if n in row else "-" for n in names]
        rank.note(f"{nbytes:>10}" + "".join(f"{cell:>22}" for cell in cells))
    for nbytes, row in rank.found.get("overlap", {}).items():
        for name, values in row.items():
            rank.note(f"{nbytes:>10} {name:>6}: " + ", ".join(f"{key} {value}" for key, value in values.items()))


def main() -> int:
    """Run all phases."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", default="", help="file for what was found")
    parser.add_argument("--limit", type=float, default=30.0, help="seconds of a phase")
    parser.add_argument("--replays", type=int, default=100, help="steps of a check")
    options = parser.parse_args()
    os.environ.setdefault("NCCL_NVLS_ENABLE", "0")  # multicast is for reductions, of which there are none but tiny ones
    faulthandler.enable()
    faulthandler.dump_traceback_later(options.limit, exit=True)
    rank = Rank(options)
    if not rank.phase("GPU, kernels", rank.start):
        return 1
    rank.phase("check host", lambda: verify(rank, "host"))
    if all(rank.world.allgather(rank.found["own_gpus"])) and not rank.phase("NCCL", rank.join_nccl):
        rank.link = None
    if rank.link is not None:
        rank.phase("check nccl", lambda: verify(rank, "nccl"))
    aware, rank.aware = rank.aware, False
    rank.phase("times", lambda: measure(rank))
    rank.phase("overlap", lambda: overlap(rank))
    table(rank)
    if aware:  # last: an MPI that is wrong about itself ends the process here
        rank.aware = rank.phase("check mpi", lambda: verify_with(rank, "mpi"))
    if rank.aware:
        rank.phase("times with mpi", lambda: measure(rank))
        table(rank)
    if rank.link is not None:
        rank.phase("close", rank.link.close)
    return 0 if all(found["ok"] for found in rank.found["phases"].values()) else 1


def verify_with(rank: Rank, transport: str) -> None:
    """Check a transport that is not in use yet."""
    rank.aware = True
    verify(rank, transport)


if __name__ == "__main__":
    sys.exit(main())
