"""What an attempt logs, cut to size: its beginning and its end are kept."""

from __future__ import annotations


class JobLog:
    """Takes bytes in order; `text` is what is stored. Of a long log both halves of the limit are
    kept, the first and the last, and a line between them says how much is missing.
    """

    __slots__ = ("_dropped_bytes", "_head", "_head_max", "_tail", "_tail_max")

    def __init__(self, bytes_max: int) -> None:
        self._head_max = bytes_max // 2
        self._tail_max = bytes_max - self._head_max
        self._head = b""
        self._tail = bytearray()
        self._dropped_bytes = 0

    def add(self, chunk: bytes) -> None:
        room = self._head_max - len(self._head)
        if room > 0:
            self._head += chunk[:room]
            chunk = chunk[room:]
        self._tail += chunk
        if len(self._tail) > 2 * self._tail_max:  # not with each chunk: cutting moves all
            self._cut()

    def text(self) -> str | None:
        """None = nothing was logged."""
        self._cut()
        if not self._head:
            return None
        if self._dropped_bytes:
            gap = f"\n[{self._dropped_bytes} bytes were not kept]\n".encode()
            whole = self._head + gap + self._tail
        else:
            whole = self._head + self._tail
        return whole.decode("utf-8", "replace").replace("\0", "\N{REPLACEMENT CHARACTER}")

    def _cut(self) -> None:
        excess = len(self._tail) - self._tail_max
        if excess > 0:
            del self._tail[:excess]
            self._dropped_bytes += excess
