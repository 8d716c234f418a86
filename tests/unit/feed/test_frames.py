"""Events on the wire, and the ring that keeps the newest."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from musterd.manager.events.source import (
    PORTION_BYTES,
    Frame,
    Portions,
    Ring,
    chunk,
    frame_of,
    ping_frame,
    snapshot_frame,
)
from musterd.store.events import ALL_EVENTS, Event, EventFilter, fits
from tests.support.event_log import frames_of

AT = datetime(2030, 1, 1, 9, 0, 0, 325112, tzinfo=UTC)


def event(number: int, **values: Any) -> Event:
    made = Event(number, AT, "job.started", number % 3, "report", None, {"attempt": 1})
    return made._replace(**values)


def frames(first: int, last: int) -> list[Frame]:
    return [frame_of(event(number), "default") for number in range(first, last + 1)]


def test_an_event_is_three_lines() -> None:
    text = frame_of(event(7), "acme").text.decode()
    name, number, data, *rest = text.split("\n")
    assert (name, number, rest) == ("event: job.started", "id: 7", ["", ""])
    assert json.loads(data.removeprefix("data: ")) == {
        "id": 7, "at": "2030-01-01T09:00:00.325112Z", "type": "job.started", "tenant": "acme",
        "job_id": 1, "kind": "report", "data": {"attempt": 1},
    }  # fmt: skip


@given(st.recursive(st.text() | st.none(), lambda inner: st.dictionaries(st.text(), inner)))
def test_nothing_in_the_data_breaks_the_frame(value: object) -> None:
    (frame,) = frames_of(frame_of(event(1, data={"note": value}), "default").text)
    assert frame["data"]["data"] == {"note": value}


def test_a_gap_is_told_where_there_is_one() -> None:
    (plain,) = frames_of(snapshot_frame(5, {"healthy": True}, gap=False))
    assert (plain["event"], plain["id"]) == ("snapshot", 5)
    assert plain["data"] == {"healthy": True, "position": 5}
    (gap,) = frames_of(snapshot_frame(5, {"healthy": True}, gap=True))
    assert gap["data"]["gap"] is True
    assert ping_frame(9) == b'event: ping\nid: 9\ndata: {"position": 9}\n\n'


def test_a_chunk_says_its_size_in_hex() -> None:
    assert chunk(b"x" * 26) == b"1a\r\n" + b"x" * 26 + b"\r\n"


def test_a_ring_that_begins_anew_has_all_its_room_again() -> None:
    first, second = frames(101, 120), frames(121, 140)
    ring = Ring(1_000, sum(len(frame.text) for frame in first))
    for some in (first, second):
        ring.begin(some[0].event.id - 1)
        ring.add(some, some[-1].event.id)
        assert ring.between(ring.start, ring.end) == some


@pytest.mark.parametrize(("frames_max", "bytes_max"), [(10, 10**9), (10**9, 10 * 180)])
def test_the_oldest_goes_and_the_start_says_so(frames_max: int, bytes_max: int) -> None:
    ring = Ring(frames_max, bytes_max)
    ring.begin(100)
    ring.add(frames(101, 105), 105)
    assert (ring.start, ring.end) == (100, 105)
    ring.add(frames(106, 130), 131)
    assert (ring.start > 115, ring.end) == (True, 131)
    kept = [frame.event.id for frame in ring.between(ring.start, ring.end)]
    assert kept == list(range(ring.start + 1, 131))


@given(
    st.lists(st.integers(1, 40), min_size=1, max_size=8),
    st.integers(0, 5),
    st.sampled_from([ALL_EVENTS, EventFilter(job_id=1), EventFilter(kind="mail")]),
)
def test_portions_lose_nothing_and_repeat_nothing(
    sizes: list[int], begun: int, which: EventFilter
) -> None:
    """However the ring grows between a reader's rounds, and also within one."""
    ring, position, got = Ring(), begun, list[int]()
    ring.begin(0)
    for size in sizes:
        portions = Portions(ring)
        ring.add(frames(ring.end + 1, ring.end + size), ring.end + size)
        data, position = portions.take(position, which, chunked=False)
        got += [frame["id"] for frame in frames_of(data)]
    data, position = Portions(ring).take(position, which, chunked=False)
    got += [frame["id"] for frame in frames_of(data)]
    every = ring.between(begun, ring.end)
    assert got == [frame.event.id for frame in every if fits(frame.event, which)]
    assert position == max(begun, ring.end)


def test_much_comes_in_portions_and_equal_readers_share_them() -> None:
    ring = Ring()
    ring.begin(0)
    ring.add(frames(1, 2_000), 2_000)
    portions, position, ends = Portions(ring), 0, [0]
    while position < ring.end:
        data, position = portions.take(ends[-1], ALL_EVENTS, chunked=True)
        again, _ = portions.take(ends[-1], EventFilter(), chunked=True)
        assert again is data
        assert len(data) < PORTION_BYTES + 1_000
        ends.append(position)
    assert len(ends) > 3
    assert all(earlier < later for earlier, later in pairwise(ends))
