"""Activities: who listens hears what goes on, and nobody else notices."""

from __future__ import annotations

import contextvars
import threading

import pytest

from fluxloom.core.activity import Work, activity, listening


class Ear:
    """Keeps what it hears, in words."""

    def __init__(self) -> None:
        self.heard: list[str] = []
        self.works: list[Work] = []

    def began(self, work: Work) -> None:
        self.works.append(work)
        self.heard.append(f"+ {work}")

    def ended(self, work: Work) -> None:
        self.heard.append(f"- {work}")


def test_a_listener_hears_what_goes_on() -> None:
    ear = Ear()
    with listening(ear), activity("levels") as outer:
        outer.at("level 1, 1,200 rows")
        with activity("loops", "step", total=2) as inner:
            inner.step()
            inner.step()
    assert ear.heard == ["+ levels", "+ loops: 0 of 2, step", "- loops: 2 of 2, step", "- levels: level 1, 1,200 rows"]


def test_an_activity_that_fails_ends() -> None:
    ear = Ear()
    with pytest.raises(ValueError, match="broken"), listening(ear), activity("work"):
        raise ValueError("broken")
    assert ear.heard == ["+ work", "- work"]


def test_nothing_is_kept_where_nobody_listens() -> None:
    ear = Ear()
    with listening(ear):
        pass
    with activity("alone", total=3) as one, activity("other") as other:
        one.step()
        one.at("somewhere")
    assert one is other
    assert (one.done, one.detail, one.what) == (0, "", "")
    assert ear.heard == []


def test_workers_of_an_activity_count_together() -> None:
    """Steps may come from any thread; an activity of a thread is heard where its context is a copy."""
    ear = Ear()

    def work(done: Work) -> None:
        for _ in range(1000):
            done.step()
        with activity("of a thread"):
            pass

    with listening(ear), activity("parts", total=4000) as parts:
        threads = [threading.Thread(target=work, args=(parts,)) for _ in range(3)]
        threads.append(threading.Thread(target=contextvars.copy_context().run, args=(work, parts)))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert ear.heard == ["+ parts: 0 of 4,000", "+ of a thread", "- of a thread", "- parts: 4,000 of 4,000"]
