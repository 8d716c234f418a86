"""Writing the metrics as text: off the loop, and once for all who ask meanwhile."""

from __future__ import annotations

from collections.abc import Callable

import trio


class Rendering:
    """`render` takes its time (half a second with ten thousand series) and holds the interpreter:
    it runs in a thread, one at a time. Who asks while it runs shares the next one with all others
    who do, so that nobody gets numbers that are older than the question.
    """

    def __init__(self, render: Callable[[], bytes]) -> None:
        self._render = render
        self._turn = trio.Lock()
        self._thread = trio.CapacityLimiter(1)
        self._begun = 0  # renderings so far
        self._text = b""
        self._number = 0  # of the rendering that the text is from

    async def text(self) -> bytes:
        """Raises what `render` raises; then whoever waits tries for itself."""
        wanted = self._begun + 1
        async with self._turn:
            if self._number < wanted:
                self._begun += 1
                text = await trio.to_thread.run_sync(self._render, limiter=self._thread)
                self._text, self._number = text, self._begun
            return self._text
