"""Random kernels: the interpreter of the lowered form against the Python function."""

from __future__ import annotations

import contextlib
import random
import re
import tempfile
from pathlib import Path

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from fluxloom.kernel import Kernel
from fluxloom.kernel.ir import ArgShape, Kind
from fluxloom.kernel.record_fields import run_time_fields
from fluxloom_lab.attack.loops.text import TEMPLATE, Generator, indented, load_module

from .interpreter import agree


@settings(max_examples=120, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_random_kernels_agree(seed: int):
    rng = np.random.default_rng(seed)
    text = TEMPLATE.format(body=indented(Generator(seed).block(3)))
    with tempfile.TemporaryDirectory() as folder:
        module = load_module(Path(folder), text, "random_kernel")
    data = {
        "q": rng.uniform(-1, 1, 3),
        "n": rng.integers(0, 4, 2),
        "x": (rng.uniform(-1, 1, 2), rng.uniform(-1, 1, 2)),
        "r": rng.uniform(-1, 1, 3),
    }
    if seed % 3:
        data["extra"] = rng.uniform(-1, 1, 2)
    fields = dict(run_time_fields("law", module.Law(1.25))) | dict(run_time_fields("laws", module.LAWS))
    # Python integers grow beyond 64 bits, the interpreter's too: only int(inf) can fail
    with contextlib.suppress(OverflowError):
        agree(module.k_, data, nu=0.75, flag=bool(seed % 2), fields=fields)


WORDS = frozenset(
    "C D pick both bump x y z s p k_ q n r extra nu flag law formula laws a b k m v i "
    "j1 j2 j3 jj1 jj2 jj3 h1 h2 h3 c1 c2 c3".split()
)


def renamed(text: str, seed: int) -> str:
    """Give the names of a text of `TEMPLATE`, but those of fields, others, in another alphabetical order."""
    words = sorted(WORDS)
    random.Random(seed).shuffle(words)
    others = {word: f"other{number:02d}" for number, word in enumerate(words)}
    return re.sub(r"(?<![\w.])[A-Za-z_]\w*", lambda found: others.get(found[0], found[0]), text)


SHAPES = (
    ArgShape(None, (3,), Kind.REAL),
    ArgShape(None, (2,), Kind.INT),
    ArgShape(2, (2,), Kind.REAL),
    ArgShape(None, (3,), Kind.REAL),
    ArgShape(None, (2,), Kind.REAL),
)


def digest(text: str) -> str:
    """Return the digest of the kernel of a text of `TEMPLATE`, whatever its name."""
    with tempfile.TemporaryDirectory() as folder:
        module = load_module(Path(folder), text, "random_kernel")
    kernel = next(item for item in vars(module).values() if isinstance(item, Kernel))
    return kernel.lower({p.name: s for p, s in zip(kernel.parameters, SHAPES, strict=True)}).digest


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_names_are_no_part_of_digests(seed: int):
    """All names change, and their alphabetical order; what is computed is a part of the digest."""
    text = TEMPLATE.format(body=indented(Generator(seed).block(3)))
    here = digest(text)
    assert digest(renamed(text, seed)) == here
    assert digest(text.replace("r[2] += a", "r[2] -= a")) != here
    assert digest(text.replace("order[0] + v[1]", "order[0] + q[1]")) != here
