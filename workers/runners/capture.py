"""Keeps what a program writes: all of it up to a limit, or the last of it."""

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
    """The last bytes, up to `bytes_max`, from the start of a line on where that can be."""

    bytes_max: int
    _kept: bytearray = attrs.field(factory=bytearray, init=False)
    _dropped_bytes: int = attrs.field(default=0, init=False)

    def add(self, chunk: bytes | bytearray) -> None:
        self._kept += chunk
        if len(self._kept) > 2 * self.bytes_max:  # not with each chunk: cutting moves all
            self._cut()

    def text(self) -> str | None:
        """What is kept, with a first line that says what is not; None = nothing was written."""
        self._cut()
        if not self._kept and not self._dropped_bytes:
            return None
        kept, dropped = bytes(self._kept), self._dropped_bytes
        if dropped:
            line_end = kept.find(b"\n") + 1
            kept, dropped = kept[line_end:], dropped + line_end
        text = kept.decode("utf-8", "replace").replace("\0", "\N{REPLACEMENT CHARACTER}")
        return f"[{dropped} bytes before this were not kept]\n{text}" if dropped else text

    def last_line(self) -> str:
        lines = bytes(self._kept).decode("utf-8", "replace").split("\n")
        return next((line.strip() for line in reversed(lines) if line.strip()), "")

    def _cut(self) -> None:
        excess = len(self._kept) - self.bytes_max
        if excess > 0:
            del self._kept[:excess]
            self._dropped_bytes += excess
