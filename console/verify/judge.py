"""Judges a log of events, a stretch at a time. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from musterd.console.verify.docket import Docket
from musterd.console.verify.lives import Lives
from musterd.console.verify.rules import Rule
from musterd.store.events import Event


class Judge:
    """Has to be given the log in its order. Where it begins later than at the first position, or
    something is missing in it, nobody is accused of what that may have told.
    """

    def __init__(self) -> None:
        self.docket = Docket()
        self.lives = Lives(self.docket)
        self.first = self.position = 0  # the first and the last that was looked at
        self.looked_at = 0

    def start_behind(self, position: int) -> None:
        """What lies up to there is not shown, or is there no more."""
        if position > self.position:
            self.position = position
            self.lives.forget()

    def take(self, events: Iterable[Event]) -> None:
        take = self.lives.take
        for event in events:
            if event.id != self.position + 1 and not self._is_further(event):
                continue
            self.position = event.id
            self.looked_at += 1
            take(event)
        if not self.first and self.looked_at:
            self.first = self.position - self.looked_at + 1
        self.docket.cases[Rule.LOG] = self.looked_at

    def _is_further(self, event: Event) -> bool:
        """Of an event that does not follow the last: whether it is further on in the log."""
        before = self.position
        if event.id <= before:
            story = f"position {event.id} comes behind position {before}"
            self.docket.accuse(Rule.LOG, event.job_id, (before, event.id), story)
            return False
        if self.looked_at:
            missing = (
                f"{before + 1}" if event.id == before + 2 else f"{before + 1} to {event.id - 1}"
            )
            story = f"position {missing} is missing"
            self.docket.accuse(Rule.LOG, None, (before, event.id), story)
        else:
            self.first = event.id
        self.lives.forget()
        return True
