"""What surrounds a process: encodings of terminals, full disks, variables of any text, quotas, marks of byte order."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.cases.files.errors import read_toml
from fluxloom.core.errors import CaseError, DeviceUnavailable
from fluxloom.core.processors import default_threads, quota
from fluxloom.toolchain.compiler import find_compiler
from fluxloom.values.expressions import Expression

ROOT = Path(__file__).resolve().parents[3]
VERBS = ["", "run", "check", "codegen", "tune", "bench", "lab", "verify", "plot", "doctor", "devices", "mesh",
         "mesh info"]  # fmt: skip


def fluxloom(*words: str, out: Path | None = None, **environment: str) -> subprocess.CompletedProcess[bytes]:
    """Run the command line in a process of its own."""
    env = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    command = [sys.executable, "-m", "fluxloom", *words]
    if out is None:
        return subprocess.run(command, env=env, capture_output=True, check=False, timeout=120)
    with out.open("wb") as file:
        return subprocess.run(command, env=env, stdout=file, stderr=subprocess.PIPE, check=False, timeout=120)


# ---------------------------------------------------------------------------------------------- terminals


@pytest.mark.parametrize(
    "encoding",
    [{"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}, {"PYTHONIOENCODING": "latin-1"}],
    ids=["ascii", "latin-1"],
)
@pytest.mark.parametrize("verb", ["", "run", "mesh"])
def test_help_in_any_encoding(verb: str, encoding: dict[str, str]) -> None:
    done = fluxloom(*verb.split(), "--help", COLUMNS="60", **encoding)
    assert done.returncode == 0, done.stderr.decode()
    assert done.stdout.decode("ascii").startswith("Usage: fluxloom")


@pytest.mark.parametrize("columns", [50, 200])
def test_help_is_not_cut(columns: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from fluxloom.cli.main import main

    monkeypatch.setenv("COLUMNS", str(columns))
    for verb in VERBS:
        assert main([*verb.split(), "--help"]) == 0
        told = " ".join(capsys.readouterr().out.split())
        assert "\u2026" not in told
        if verb == "run":
            assert "as flow.alpha=4; any number of times." in told
        if verb == "":
            assert "Run a case file and write its results; options go before what the file says." in told


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_a_full_disk_is_one_line_and_a_status(tmp_path: Path) -> None:
    for words in (["--help"], ["--version"]):
        done = fluxloom(*words, out=Path("/dev/full"))
        assert done.returncode == 3
        assert done.stderr.decode().strip().splitlines()[-1].startswith("error: what was to be printed could not be")
        assert b"Traceback" not in done.stderr
    case = tmp_path / "case.toml"
    case.write_text('[case]\nname = "c"\nsolver = "incompressible"\n[mesh]\nnx = 4\nny = 4\n[fluid]\nviscosity = 0.1\n'
                    '[boundary.xmin]\ntype = "wall"\n[boundary.xmax]\ntype = "wall"\n[boundary.ymin]\ntype = "wall"\n'
                    '[boundary.ymax]\ntype = "wall"\nvelocity = [1.0, 0.0]\n[time]\ndt = 0.01\nend = 0.02\n'
                    '[run]\niterations = 5\n[output]\npicture = false\n')  # fmt: skip
    done = fluxloom("run", str(case), "-o", str(tmp_path / "out"), out=Path("/dev/full"))
    assert done.returncode == 3, done.stderr.decode()
    assert (tmp_path / "out" / "run.json").exists()  # what the run has made is kept


@pytest.mark.skipif(os.name != "posix", reason="descriptors of POSIX")
def test_a_closed_output_is_one_line_and_a_status() -> None:
    command = ["sh", "-c", 'exec "$0" -m fluxloom --version >&-', sys.executable]
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, check=False)
    assert done.returncode == 3
    assert done.stderr.decode() == "error: what was to be printed could not be written: Bad file descriptor\n"


@pytest.mark.parametrize("columns", ["0", "00"])
def test_a_terminal_of_no_width_gets_all(columns: str) -> None:
    done = fluxloom("run", "absent.toml", COLUMNS=columns)
    assert done.returncode == 2
    assert done.stderr.decode().startswith("error: absent.toml: no such case file")
    assert fluxloom("devices", COLUMNS=columns).stdout.startswith(b"yes cpu")


# ----------------------------------------------------------------------------------- variables of any text


@pytest.mark.parametrize("text", ["abc", "-3", "0", "1e3", "99999999999999999999", "\u00e9", "\u0663"])
def test_threads_that_are_no_number_are_told(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    usual = default_threads()
    monkeypatch.setenv("OMP_NUM_THREADS", text)
    with pytest.warns(UserWarning, match=rf"OMP_NUM_THREADS=.* is no number of threads: {usual} are used"):
        assert default_threads() == usual


@pytest.mark.parametrize(("text", "threads"), [("3", 3), ("2,4", 2), (" 5 ", 5)])
def test_threads_of_the_environment(text: str, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", text)
    assert default_threads() == threads
    assert fl.Context("cpu").threads == threads


@pytest.mark.parametrize("text", ["gcc '", '"', "no-such-compiler", " "])
def test_names_of_compilers(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FLUXLOOM_CC", raising=False)
    monkeypatch.setenv("CC", text)
    assert find_compiler().command[0]
    monkeypatch.setenv("FLUXLOOM_CC", text)
    with pytest.raises(DeviceUnavailable, match=r"FLUXLOOM_CC=.*unset it"):
        find_compiler()


@pytest.mark.parametrize("text", ["no such backend", "TkAgg", ""])
def test_any_backend_of_matplotlib(text: str) -> None:
    pytest.importorskip("matplotlib")
    use = "from fluxloom.run.results.figures import figure_classes as f; f()"
    code = f"import os; {use}; print(os.environ['MPLBACKEND'])"
    env = {**os.environ, "PYTHONPATH": str(ROOT), "MPLBACKEND": text}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == text


# -------------------------------------------------------------------------------------------------- quotas


def test_quotas_of_containers(tmp_path: Path) -> None:
    own, root = tmp_path / "own", tmp_path / "cgroup"
    inner = root / "a" / "b"
    inner.mkdir(parents=True)
    own.write_text("0::/a/b\n")
    assert quota(root, own) is None
    (inner / "cpu.max").write_text("max 100000\n")
    assert quota(root, own) is None
    (inner / "cpu.max").write_text("350000 100000\n")
    assert quota(root, own) == 3.5
    (root / "a" / "cpu.max").write_text("100000 50000\n")
    assert quota(root, own) == 2.0  # a group above has less
    (inner / "cpu.max").write_text("nonsense\n")
    assert quota(root, own) == 2.0
    assert quota(root, tmp_path / "none") is None
    (root / "cpu.max").write_text("150000 100000")
    assert quota(root, tmp_path / "none") == 1.5  # a container sees its own group as the root


def test_quotas_of_the_first_version(tmp_path: Path) -> None:
    own, root = tmp_path / "own", tmp_path / "cgroup"
    group = root / "cpu,cpuacct" / "docker" / "x"
    group.mkdir(parents=True)
    own.write_text("4:cpu,cpuacct:/docker/x\n1:name=systemd:/docker/x\n")
    (group / "cpu.cfs_quota_us").write_text("-1\n")
    (group / "cpu.cfs_period_us").write_text("100000\n")
    assert quota(root, own) is None
    (group / "cpu.cfs_quota_us").write_text("50000\n")
    assert quota(root, own) == 0.5


# -------------------------------------------------------------------------------------- cases and formulas


def test_a_case_may_begin_with_a_mark_of_byte_order(tmp_path: Path) -> None:
    path = tmp_path / "case.toml"
    path.write_bytes(b"\xef\xbb\xbf" + b'[case]\nname = "c"\n')
    assert read_toml(path).data == {"case": {"name": "c"}}
    path.write_bytes(b"\xef\xbb\xbf" + b"[case\n")
    with pytest.raises(CaseError, match=r"case.toml:1: not valid TOML"):
        read_toml(path)


def test_every_function_and_operator_of_formulas_is_listed() -> None:
    page = (ROOT / "docs" / "guide" / "formulas.md").read_text(encoding="utf-8")
    functions = page.split("## Functions")[1].split("## Constants")[0]
    cells = re.findall(r"^\| ([^|]*`[^|]*) \|", functions, re.M)
    listed = {name.split("(")[0] for cell in cells for name in re.findall(r"`([^`]+)`", cell)}
    with pytest.raises(CaseError) as caught:
        Expression("nothing(x)")
    assert listed == set(str(caught.value).split("allowed: ")[1].rstrip(")").split(", "))
    operators = page.split("## Operators")[1].split("## Functions")[0]
    first = re.findall(r"^\| (`.*?) \| ", operators, re.M)
    words = [word.replace("\\|", "|") for cell in first for word in re.findall(r"`([^`]+)`", cell)]
    assert len(words) == 17
    x = np.array([2.0, 7.0])
    for word in words:
        text = {"not": "not x > 3", "~": "~(x > 3)"}.get(word, word)
        if " " not in text:
            text = f"(x > 3) {word} (x < 5)" if word in ("and", "or", "&", "|") else f"x {word} 3"
        variables = ("x", "test", "a", "b") if "test" in text else ("x",)
        found = Expression(text, variables)(*([x] * len(variables)))
        python = [eval(text.replace("~", "not ").replace("&", "and").replace("|", "or"),
                       {name: float(v) for name in variables}) for v in x]  # fmt: skip
        np.testing.assert_allclose(found, np.array(python, dtype=float))
