"""The newest events, and what of them each reader is to get. Nothing here waits."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Hashable, Sequence

from musterd.manager.events.feed.frames import Frame, chunk
from musterd.store.events import EventFilter, fits

FRAMES_MAX = 20_000
BYTES_MAX = 8 * 1024 * 1024
PORTION_BYTES = 128 * 1024  # of one reader, at once


class Ring:
    """All of the log behind `start` up to `end` is here; the oldest goes when there is too much."""

    def __init__(self, frames_max: int = FRAMES_MAX, bytes_max: int = BYTES_MAX) -> None:
        self.start = self.end = 0
        self._frames: list[Frame] = []
        self._bytes = 0
        self._frames_max, self._bytes_max = frames_max, bytes_max

    def begin(self, position: int) -> None:
        """Forgets everything; what comes next is what is behind `position`."""
        self.start = self.end = position
        self._frames, self._bytes = [], 0

    def add(self, frames: Sequence[Frame], end: int) -> None:
        """What the log has behind `self.end` up to `end`, in its order."""
        self._frames += frames
        self._bytes += sum(len(frame.text) for frame in frames)
        self.end = end
        self._drop_oldest()

    def between(self, position: int, end: int) -> Sequence[Frame]:
        """What is behind a position that is not before `start`, up to another one."""
        first = bisect_right(self._frames, position, key=_position_of)
        return self._frames[first : bisect_right(self._frames, end, lo=first, key=_position_of)]

    def _drop_oldest(self) -> None:
        count = 0
        while len(self._frames) - count > self._frames_max or self._bytes > self._bytes_max:
            self._bytes -= len(self._frames[count].text)
            count += 1
        if count:
            self.start = self._frames[count - 1].event.id
            del self._frames[:count]


class Portions:
    """What readers get in one round: up to where the ring ends as it begins. Readers that stand at
    the same place and want the same share one text.
    """

    def __init__(self, ring: Ring) -> None:
        self._ring = ring
        self._end = ring.end
        self._frames: dict[int, Sequence[Frame]] = {}
        self._of_job: dict[int, dict[int | None, list[Frame]]] = {}
        self._made: dict[Hashable, tuple[bytes, int]] = {}

    def take(self, position: int, which: EventFilter, *, chunked: bool) -> tuple[bytes, int]:
        """Gives what to send, nothing if nothing fits, and the position where the reader then
        stands. What is large is given in several portions.
        """
        if position >= self._end:
            return b"", position
        key = (position, which, chunked)
        if key not in self._made:
            texts, position = self._portion(position, which)
            data = b"".join(texts)
            self._made[key] = (chunk(data) if chunked and data else data, position)
        return self._made[key]

    def _portion(self, position: int, which: EventFilter) -> tuple[list[bytes], int]:
        texts: list[bytes] = []
        size = 0
        for frame in self._candidates(position, which):
            if fits(frame.event, which):
                texts.append(frame.text)
                size += len(frame.text)
                if size >= PORTION_BYTES:
                    return texts, frame.event.id
        return texts, self._end

    def _candidates(self, position: int, which: EventFilter) -> Sequence[Frame]:
        """Of many readers, each with a job of its own, none looks at the others' events."""
        if position not in self._frames:
            self._frames[position] = self._ring.between(position, self._end)
        frames = self._frames[position]
        if which.job_id is None:
            return frames
        if position not in self._of_job:
            sorted_out: dict[int | None, list[Frame]] = {}
            for frame in frames:
                sorted_out.setdefault(frame.event.job_id, []).append(frame)
            self._of_job[position] = sorted_out
        return self._of_job[position].get(which.job_id, ())


def _position_of(frame: Frame) -> int:
    return frame.event.id
