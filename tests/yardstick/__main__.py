"""`make yardstick`: run every case short, and compare its numbers and the digests of its fields with the records.

    python -m tests.yardstick [--update] [--only NAME,...] [--records FOLDER] [--device cpu] [--ranks 1] ...

With `--update --records FOLDER` before a change and `--records FOLDER` after it any two states of the code are compared
bit by bit on any machine.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from tests.yardstick.compare import KINDS, WORDS, Verdict, judge, lines
from tests.yardstick.running import Run, Where, machine, run_case
from tests.yardstick.table import HERE, Case, data_folders, missing_data, read_table

RECORDS = HERE / "records"


def main(words: list[str] | None = None) -> int:
    """Run and compare, or write records; return 0 where nothing has to be explained, else 1."""
    given = options().parse_args(words)
    where, records, begin = Where(given.device, given.ranks, given.threads), Path(given.records), time.perf_counter()
    cases = chosen(read_table(), given.only)
    if given.ranks > 1:
        cases = [case for case in cases if case.ranks and not case.script]
    key = machine(where)
    with tempfile.TemporaryDirectory(prefix="yardstick-") as folder, ThreadPoolExecutor(given.jobs) as pool:
        work = [pool.submit(_one, case, where, key, Path(given.keep or folder)) for case in cases]
        verdicts = []
        for case, item in zip(cases, work, strict=True):
            run = item.result()
            verdicts.append(_verdict(case, run, records, given))
            if given.verbose:
                print(f"{case.name}: {verdicts[-1].word}, {run.seconds:.1f} s", file=sys.stderr, flush=True)
            if given.update and run.record and "failed" not in run.record["status"]:
                store(records, case.name, run.record)
    print("\n".join(lines(verdicts)))
    bad = sum(not verdict.good for verdict in verdicts)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    took = f"{time.perf_counter() - begin:.0f} s, of processors {used.ru_utime + used.ru_stime:.0f} s"
    written = f"; the records in {records} are those of now" if given.update else ""
    print(f"{len(verdicts)} cases, {bad} to be explained ({took}){written}")
    return 0 if given.update or not bad else 1


def options() -> argparse.ArgumentParser:
    """Return the options."""
    found = argparse.ArgumentParser(prog="make yardstick ARGS=...", description=(__doc__ or "").splitlines()[0])
    add = found.add_argument
    add("--update", action="store_true", help="write the records; say in design/ why they change")
    add("--only", default="*", help="names of cases, with commas between them; * and ? as in names of files")
    add("--records", default=str(RECORDS), help="folder of records (those of the repository)")
    add("--device", default="cpu", help="cpu, opencl, cuda, reference")
    add("--ranks", type=int, default=1, help="ranks of one thread each")
    add("--threads", type=int, default=2, help="of cases that do not say how many (2)")
    add("--tolerance", type=float, help="relative; by default that of the case, and bits on the machine of the records")
    add("--kinds", default=",".join(KINDS), help=f"what is compared: {', '.join(KINDS)}")
    add("--jobs", type=int, default=2, help="cases at a time (2)")
    add("--keep", default="", help="a new folder in which the runs stay")
    add("--verbose", action="store_true", help="tell of each case when it is done")
    return found


def chosen(cases: tuple[Case, ...], names: str) -> list[Case]:
    """Return the cases whose names are asked for; a name that fits none is an error."""
    patterns = names.split(",")
    if wrong := [p for p in patterns if not any(fnmatch(case.name, p) for case in cases)]:
        raise SystemExit(f"no case is called {', '.join(wrong)}; there are {', '.join(case.name for case in cases)}")
    return [case for case in cases if any(fnmatch(case.name, p) for p in patterns)]


def _one(case: Case, where: Where, key: dict[str, str], folder: Path) -> Run:
    """Run one case in a folder of its own; a record without entries where its data are not here."""
    if missing := missing_data(case, data_folders()):
        return Run({}, f"no {', '.join(missing)} in shared/data", 0.0)
    place = folder / case.name
    place.mkdir(parents=True)
    run = run_case(case, where, place)
    return replace(run, record={"machine": key, **run.record})


def _verdict(case: Case, run: Run, records: Path, given: argparse.Namespace) -> Verdict:
    """Return what is to be said about one case."""
    if not run.record:
        return Verdict(case.name, "left out", run.said)
    said = "\n    " + run.said.replace("\n", "\n    ")
    if "failed" in run.record["status"]:
        return Verdict(case.name, "FAILED", said, False)
    old = load(records, case.name)
    same = old is not None and old["machine"] == run.record["machine"] and not case.unrepeatable
    tolerance = given.tolerance if given.tolerance is not None else 0.0 if same else case.tolerance
    kinds = [kind for kind in given.kinds.split(",") if not case.unrepeatable or kind in (*WORDS, "summary")]
    verdict = judge(case.name, run.record, old, tolerance, kinds, case.zero)
    lost = not verdict.good and run.record["status"]["exit"]
    return replace(verdict, text=verdict.text + said) if lost else verdict


def load(records: Path, name: str) -> dict[str, Any] | None:
    """Return a stored record; None without one."""
    path = records / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def store(records: Path, name: str, record: dict[str, Any]) -> None:
    """Write a record: a line an entry, so that changes can be read in a diff."""
    records.mkdir(parents=True, exist_ok=True)
    parts = []
    for kind, entries in record.items():
        if isinstance(entries, dict) and entries:
            inner = ",\n".join(f"  {json.dumps(entry)}: {_compact(value)}" for entry, value in entries.items())
            parts.append(f"{json.dumps(kind)}: {{\n{inner}\n}}")
        else:
            parts.append(f"{json.dumps(kind)}: {_compact(entries)}")
    (records / f"{name}.json").write_text("{\n" + ",\n".join(parts) + "\n}\n", encoding="utf-8")


def _compact(value: Any) -> str:
    """Return JSON on one line; of a table a line a column."""
    if isinstance(value, dict) and "columns" in value:
        columns = ",\n".join(f"    {json.dumps(name)}: {_compact(item)}" for name, item in value["columns"].items())
        return f'{{"rows": {value["rows"]}, "columns": {{\n{columns}\n  }}}}'
    return json.dumps(value, separators=(", ", ": "))


if __name__ == "__main__":
    sys.exit(main())
