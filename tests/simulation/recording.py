"""Writes down what happens, as `tests/checker/README.md` wants it of a simulation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.checker.writing import History


class Recorder(History):
    """`now` is the recorder's own clock. Once it is `closed` nothing is written any more."""

    def __init__(self, now: Callable[[], float], *, commits: bool = True, **header: Any) -> None:
        super().__init__(commits=commits, **header)
        self._now = now
        self.closed = False
        self._answered: set[int] = set()

    def note(self, record: str, **fields: Any) -> None:
        if self.closed:
            return
        self._seq += 1
        self.t = round(self._now(), 6)
        self.body.append({"record": record, "seq": self._seq, "t": self.t, **fields})

    @property
    def seq(self) -> int:
        """Of the latest line."""
        return self._seq

    def call(self, op: str, who: str, **asked: Any) -> int:
        self._ids += 1
        self.note("call", id=self._ids, who=who, op=op, **asked)
        return self._ids

    def commit(self, call: int, **result: Any) -> None:
        self.note("commit", id=call, **result)

    def reply(self, call: int, status: str = "ok", **result: Any) -> None:
        """The first one counts: who has given up hears nothing more."""
        if call not in self._answered:
            self._answered.add(call)
            self.note("reply", id=call, status=status, **result)
