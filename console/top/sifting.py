"""The filter of the table: what a person types, and which jobs fit. Pure."""

from __future__ import annotations

import attrs

from musterd.config.faults import did_you_mean
from musterd.store.board import SHOWN_FIRST, BoardFilter, BoardJob
from musterd.store.job import JobState

BOUND = 200  # jobs of each sort that are shown
SPAN = 2_000  # that are looked at for one kind or target
KEYS = ("state", "kind", "target")
HELP = "state=failed,paused kind=NAME target=NAME, and any text"


@attrs.frozen
class Filter:
    """What is empty or None asks for nothing. `words` must all stand in what is shown of a job."""

    text: str = ""
    states: tuple[JobState, ...] = ()
    kind: str | None = None
    target: str | None = None
    words: tuple[str, ...] = ()

    @property
    def wanted(self) -> BoardFilter:
        """What is asked of the store."""
        narrow = self.kind is not None or self.target is not None
        states = self.states or SHOWN_FIRST
        return BoardFilter(states, self.kind, self.target, BOUND, SPAN if narrow else BOUND)


def read_filter(text: str) -> Filter:
    """Reads `state=failed kind=report error`. Raises ValueError, which says what is wrong."""
    found = Filter(" ".join(text.split()))
    for part in text.split():
        key, equals, value = part.partition("=")
        if not equals:
            found = attrs.evolve(found, words=(*found.words, part.casefold()))
        elif key == "state":
            found = attrs.evolve(found, states=(*found.states, *_states(value)))
        elif key not in KEYS:
            raise ValueError(f"{key}= is not known, wanted {HELP}")
        elif not value:
            raise ValueError(f"{key}= names nothing")
        elif key == "kind":
            found = attrs.evolve(found, kind=value)
        else:
            found = attrs.evolve(found, target=value)
    return found


def fits(which: Filter, job: BoardJob) -> bool:
    """The store has sifted by what it knows; an older answer of it may be on the screen still."""
    if which.states and job.state not in which.states:
        return False
    if which.kind not in (None, job.kind) or which.target not in (None, job.target):
        return False
    if not which.words:
        return True
    parts = (str(job.id), job.kind, job.state.value, job.target, job.node, job.remark)
    text = "\n".join(part for part in parts if part).casefold()
    return all(word in text for word in which.words)


def _states(value: str) -> list[JobState]:
    names = [state.value for state in JobState]
    found: list[JobState] = []
    for name in value.split(","):
        if name not in names:
            hint = did_you_mean(name, names) or f"wanted {', '.join(names)}"
            raise ValueError(f"there is no state {name!r}: {hint}")
        found.append(JobState(name))
    return found
