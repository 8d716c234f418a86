"""What the work of an attempt writes, cut to size."""

from __future__ import annotations

import attrs


@attrs.define
class Head:
    """The first bytes, up to `bytes_max`. `overflowed` = there were more."""

    bytes_max: int
    kept: bytearray = attrs.field(factory=bytearray, init=False)
    overflowed: bool = attrs.field(default=False, init=False)

    def add(self, chunk: bytes | bytearray) -> None:
        room = self.bytes_max - len(self.kept)
        self.overflowed = self.overflowed or len(chunk) > room
        self.kept += chunk[:room]


@attrs.define
class Tail:
    """The last bytes, up to `bytes_max`."""

    bytes_max: int
    _kept: bytearray = attrs.field(factory=bytearray, init=False)
    _dropped_bytes: int = attrs.field(default=0, init=False)

    def add(self, chunk: bytes | bytearray) -> None:
        self._kept += chunk
        if len(self._kept) > 2 * self.bytes_max:  # not with each chunk: cutting moves all
            self.cut()

    def cut(self) -> tuple[bytes, int]:
        """What is kept, and how many bytes before it are not."""
        excess = len(self._kept) - self.bytes_max
        if excess > 0:
            del self._kept[:excess]
            self._dropped_bytes += excess
        return bytes(self._kept), self._dropped_bytes

    def text(self) -> str | None:
        """What is kept, from the start of a line on where that can be, with a first line that says
        what is not; None = nothing was written.
        """
        kept, dropped = self.cut()
        if not kept and not dropped:
            return None
        if dropped:
            line_end = kept.find(b"\n") + 1
            kept, dropped = kept[line_end:], dropped + line_end
        gap = f"[{dropped} bytes before this were not kept]\n" if dropped else ""
        return gap + _text(kept)

    def last_line(self) -> str:
        lines = bytes(self._kept).decode("utf-8", "replace").split("\n")
        return next((line.strip() for line in reversed(lines) if line.strip()), "")


class JobLog:
    """Takes bytes in order; `text` is what is stored. Of a long log both halves of the limit are
    kept, the first and the last, and a line between them says how much is missing.
    """

    __slots__ = ("_head", "_tail")

    def __init__(self, bytes_max: int) -> None:
        self._head = Head(bytes_max // 2)
        self._tail = Tail(bytes_max - bytes_max // 2)

    def add(self, chunk: bytes) -> None:
        room = self._head.bytes_max - len(self._head.kept)
        self._head.add(chunk)
        self._tail.add(chunk[room:])

    def text(self) -> str | None:
        """None = nothing was logged."""
        head, (tail, dropped) = bytes(self._head.kept), self._tail.cut()
        if not head:
            return None
        gap = f"\n[{dropped} bytes were not kept]\n".encode() if dropped else b""
        return _text(head + gap + tail)


def _text(kept: bytes) -> str:
    return kept.decode("utf-8", "replace").replace("\0", "\N{REPLACEMENT CHARACTER}")
