"""Where attempts can be cancelled: a scope that serves one attempt after another."""

from __future__ import annotations

import math
from collections.abc import Generator
from contextlib import contextmanager
from types import TracebackType

import trio


class Bounds:
    """A worker's own. `with bounds as scope:` around an attempt is `with trio.CancelScope()`, but
    within `kept` a scope that nobody has cancelled stays open for the next attempt: to open one
    costs more than a short job does. Between attempts nobody has it, so nobody cancels it.
    """

    __slots__ = ("_keeps", "_scope")

    def __init__(self) -> None:
        self._keeps = False
        self._scope: trio.CancelScope | None = None

    @contextmanager
    def kept(self) -> Generator[None]:
        """Scopes stay open from attempt to attempt, until the end of this block at the latest."""
        self._keeps = True
        try:
            yield
        finally:
            self._keeps = False
            scope, self._scope = self._scope, None
            if scope is not None:
                scope.__exit__(None, None, None)

    def __enter__(self) -> trio.CancelScope:
        scope = self._scope
        if scope is None:
            scope = self._scope = trio.CancelScope()
            scope.__enter__()
        return scope

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool | None:
        scope = self._scope
        assert scope is not None
        if self._keeps and error is None and not scope.cancel_called:
            if scope.deadline != math.inf:
                scope.deadline = math.inf
            return None
        self._scope = None
        return scope.__exit__(kind, error, trace)
