"""The client's own limit for an answer of the server."""

from __future__ import annotations

from typing import Any

import trio

from musterd.store.errors import OutcomeUnknown

REPLY_SECONDS = 2.0  # what a reply may take beyond the server's own time limit


class TimeLimit:
    """The client's own limit, for a server that does not answer and for poolers, where the server
    has none of ours. A server that is frozen, or waits for its standby, may yet carry out what it
    was sent: raises `OutcomeUnknown`.
    """

    def __init__(self, seconds: float, what: str) -> None:
        self._scope = trio.CancelScope()
        self._seconds = seconds + REPLY_SECONDS
        self._what = what

    def __enter__(self) -> None:
        self._scope.deadline = trio.current_time() + self._seconds
        self._scope.__enter__()

    def __exit__(self, kind: Any, error: Any, trace: Any) -> bool | None:
        handled = self._scope.__exit__(kind, error, trace)
        if self._scope.cancelled_caught:
            raise OutcomeUnknown(f"{self._what}: no answer within {self._seconds:g} s", "timeout")
        return handled
