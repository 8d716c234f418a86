"""How many follow logs at a node, and so how often each may look."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

import attrs

LOOK_SECONDS = 0.5  # between two looks at one log
LOOKS_PER_SECOND = 20  # of all readers together: the more readers, the less often each looks


@attrs.define(eq=False)
class LogReaders:
    """Those who follow logs at this node."""

    count: int = attrs.field(default=0, init=False)

    @property
    def spacing_seconds(self) -> float:
        return max(LOOK_SECONDS, self.count / LOOKS_PER_SECOND)

    @contextmanager
    def one_more(self) -> Generator[None]:
        self.count += 1
        try:
            yield
        finally:
            self.count -= 1
