"""What a rank has done together with the others so far: where two such accounts differ, the ranks do.

All ranks declare and run the same things in the same order. Each keeps count of them, and a digest of all so far.
Every message carries both, so that ranks that meet know at once whether they have come the same way.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from math import inf
from zlib import crc32

from fluxloom.core.errors import CommError

__all__ = ["PATIENCE", "Account", "Story", "disagreement", "named", "patience_asked", "unexpected"]

PATIENCE = "FLUXLOOM_PATIENCE"
"""Environment variable: seconds after which a wait for other ranks is told."""

_PATIENCE, _LEAST, _KEPT = 20.0, 0.05, 400
_LONGEST, _GAP = 200, "... "
"""Letters of an act that are shown; what stands for those that are the same."""

Story = tuple[int, int, Sequence[bytes]]
"""Count and digest of the acts, and the last of them."""


class Account:
    """The acts of a rank, by count and digest; the last of them by their texts.

    Attributes
    ----------
    digest
        CRC-32 of the texts of all acts, one behind the other.
    count
        Their number.
    """

    def __init__(self) -> None:
        self.digest = self.count = 0
        self._acts: deque[bytes] = deque(maxlen=_KEPT)

    def note(self, act: bytes) -> None:
        """Add an act."""
        self.digest = crc32(act, self.digest)
        self.count += 1
        self._acts.append(act)

    @property
    def word(self) -> int:
        """Count and digest in 64 bits: what a message begins with."""
        return (self.count & 0xFFFFFFFF) << 32 | self.digest

    def story(self) -> Story:
        """Return count and digest of the acts, and the last of them."""
        return self.count, self.digest, list(self._acts)

    @property
    def last(self) -> str:
        """The last two acts: what a rank does, and by which message."""
        return ", then ".join(_cut(act.decode(errors="replace")) for act in list(self._acts)[-2:]) or "the beginning"

    def clear(self) -> None:
        """Forget everything: all ranks begin anew."""
        self.digest = self.count = 0
        self._acts.clear()


def named(ranks: Sequence[int]) -> str:
    """Return ``"rank 3"``, ``"ranks 0 and 2"`` or ``"ranks 0, 1, 2 and 7 more"``."""
    if len(ranks) == 1:
        return f"rank {ranks[0]}"
    more = len(ranks) - 4
    shown = [str(rank) for rank in ranks[:4]] if more <= 0 else [*map(str, ranks[:3]), f"{more + 1} more"]
    return f"ranks {', '.join(shown[:-1])} and {shown[-1]}"


def disagreement(
    stories: Mapping[int, Story], waits: Mapping[int, str] | None = None, *, until: int | None = None
) -> str:
    """Return the first act in which ranks differ, in words; empty: there is none.

    Parameters
    ----------
    stories
        By rank.
    waits
        What ranks do that have come to no further act.
    until
        How many acts are compared; by default all.
    """
    end = max(count for count, _, _ in stories.values()) if until is None else until
    begin = max(count - len(acts) for count, _, acts in stories.values())
    before = ""
    for number in range(begin, end):
        groups: dict[str, list[int]] = {}
        for rank, story in stories.items():
            groups.setdefault(_act(story, number) or (waits or {}).get(rank, "nothing more"), []).append(rank)
        if len(groups) > 1:
            shown = _apart(list(groups))
            told = "; ".join(f"{named(ranks)}: {text}" for text, ranks in zip(shown, groups.values(), strict=True))
            behind = f" (behind: {_cut(before)})" if before else ""
            return f"the ranks disagree: {told}{behind}; all have to declare and run the same, in the same order"
        before = next(iter(groups))
    if until is not None or len({(count, digest) for count, digest, _ in stories.values()}) == 1:
        return ""
    return f"the ranks disagree in what they did before the last {end - begin} acts: all have to run the same"


def unexpected(sources: Sequence[int], rank: int, tag: int, last: str) -> str:
    """Return in words that messages were sent elsewhere in the program than they are received."""
    told = f"{named(sources)} sent with tag {tag} what rank {rank} does not wait for (behind: {last})"
    return f"the ranks disagree: {told}; all have to declare and run the same, in the same order"


def _apart(texts: Sequence[str]) -> list[str]:
    """Return texts without what they have in common behind their first bracket, and no longer than is read."""
    head = texts[0].find("(") + 1
    low, high = min(texts), max(texts)
    same = next((k for k, (a, b) in enumerate(zip(low, high, strict=False)) if a != b), len(low))
    begin = low.rfind(", ", 0, same) + 2
    if head and begin > head + len(_GAP):
        texts = [text[:head] + _GAP + text[begin:] for text in texts]
    return [_cut(text) for text in texts]


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 4].rstrip()} ..."


def _act(story: Story, number: int) -> str:
    """Return the text of an act; empty where the rank has not come to it."""
    count, _, acts = story
    place = number - (count - len(acts))
    return acts[place].decode(errors="replace") if place < len(acts) else ""


def patience_asked(text: str) -> float:
    """Return the seconds of the environment variable, 20 where it is empty.

    Raises
    ------
    CommError
        If it is no number of seconds.
    """
    try:
        found = float(text) if text else _PATIENCE
    except ValueError:
        found = -1.0
    if not 0.0 <= found < inf:
        raise CommError(f"{PATIENCE}={text!r}: seconds after which a wait is told are wanted, as 20")
    return max(found, _LEAST)
