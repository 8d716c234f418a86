"""The log of an attempt: lines with time and voice, in order, within bounds, and read back."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from musterd.store.job_log import OWN, STDERR, STDOUT, Voice, lines_of, plain
from musterd.workers.joblog import MARK, JobLog, LogBounds, MarkedBytes

ROOMY = LogBounds(bytes_max=100_000, lines_max=1_000)
LOGGED = Voice("logging", "error")


def log_of(*chunks: bytes, bounds: LogBounds = ROOMY) -> JobLog:
    log = JobLog(bounds, lambda: 1_900_000_000.0456)
    for chunk in chunks:
        log.add(chunk)
    return log


def test_nothing_written_is_no_log() -> None:
    assert log_of().text() is None
    assert log_of(b"").text() is None


def test_each_line_has_time_stream_and_level() -> None:
    log = log_of(b"Hello\n")
    log.add(b"two\nlines\n", LOGGED)
    assert log.text() == (
        "2030-03-17T17:46:40.045Z stdout info Hello\n"
        "2030-03-17T17:46:40.045Z logging error two\n"
        "2030-03-17T17:46:40.045Z logging error lines\n"
    )


def test_a_line_counts_when_it_is_whole_and_the_last_at_the_end() -> None:
    log = log_of(b"be", b"gun")
    log.add(b"between\n", STDERR)
    assert log.last == 1
    log.add(b" and done\nrest")
    assert log.last == 2
    assert plain(log.text()) == "between\nbegun and done\nrest\n"


def test_the_oldest_lines_are_dropped_and_counted() -> None:
    by_lines = log_of(*(b"%d\n" % number for number in range(10)), bounds=LogBounds(1_000, 3))
    assert plain(by_lines.text()) == "7 older lines were not kept\n7\n8\n9\n"
    by_bytes = log_of(*(b"%d\n" % number for number in range(10)), bounds=LogBounds(120, 100))
    assert plain(by_bytes.text()) == "7 older lines were not kept\n7\n8\n9\n"
    at_once = log_of(b"".join(b"%d\n" % number for number in range(10)), bounds=LogBounds(1_000, 3))
    assert plain(at_once.text()) == plain(by_lines.text())
    assert [line.number for line in lines_of(at_once.text() or "")] == [7, 8, 9, 10]


def test_a_very_long_line_is_cut_and_says_so() -> None:
    whole = log_of(b"x" * 9_000 + b"\ny\n")
    in_parts = log_of(*[b"x" * 1_000] * 9, b"\ny\n")
    cut = "x" * 8_192 + " [808 bytes were cut]\ny\n"
    assert plain(whole.text()) == plain(in_parts.text()) == cut
    assert len(log_of(b"x" * 900, bounds=LogBounds(64, 10)).text() or "") < 200


def test_what_no_store_keeps_is_shown() -> None:
    assert plain(log_of(b"a\0b\xff\xc3\xbc\n").text()) == "a\N{REPLACEMENT CHARACTER}b\\xff\u00fc\n"
    assert plain(log_of(b"gr\xc3", b"\xbcn\n").text()) == "gr\u00fcn\n"


def test_of_a_line_that_is_written_over_the_last_state_is_kept() -> None:
    assert plain(log_of(b"10 %\r20 %\r30 %\r\ndone\r\n").text()) == "30 %\ndone\n"
    bar = [b"%d %%\r" % number for number in range(5_000)]
    assert plain(log_of(*bar, b"all\n").text()) == "all\n"


def test_a_line_says_its_level_as_for_the_journal() -> None:
    log = log_of(b"<2>worst\n<6>fine\n<x>no\n")
    log.add(b"<3>by logging, which has its own\n", LOGGED)
    assert [(line.level, line.text) for line in lines_of(log.text() or "")] == [
        ("critical", "worst"),
        ("info", "fine"),
        ("info", "<x>no"),
        ("error", "<3>by logging, which has its own"),
    ]


def test_a_phase_that_writes_has_a_heading() -> None:
    log = log_of()
    log.begin_phase("download")
    log.begin_phase("process")
    log.add(b"a\n")
    log.add(b"b\n")
    assert plain(log.text()) == "phase process\na\nb\n"


def test_the_newest_lines_behind_one_are_read() -> None:
    log = log_of(*(b"%d\n" % number for number in range(1, 8)))
    assert [line.text for line in lines_of(log.read(5, 1_000).text)] == ["6", "7"]
    first, last, dropped, text = log.read(0, 100)
    assert (first, last, dropped, plain(text)) == (6, 7, 0, "6\n7\n")
    assert log.read(7, 1_000) == (8, 7, 0, "")


def test_a_first_line_is_announced_until_the_log_is_read() -> None:
    told: list[int] = []
    log = JobLog(ROOMY, lambda: 0.0, lambda: told.append(1))
    log.add(b"no line yet")
    assert not told
    log.add(b"\nmore\n")
    log.add(b"more\n")
    assert len(told) == 1
    log.read(0, 100)
    log.add(b"again\n")
    assert len(told) == 2


def test_lines_of_others_are_shown_as_they_are() -> None:
    (line,) = lines_of("by hand", attempt=3)
    assert line == (3, 1, None, None, None, "by hand")


def test_what_work_says_is_never_taken_for_our_words() -> None:
    log = log_of(b"50 older lines were not kept\nnext\n")
    assert [line.number for line in lines_of(log.text() or "")] == [1, 2]
    log.say("3 older lines were not kept of ours", OWN)
    assert [line.number for line in lines_of(log.text() or "")] == [1, 2, 3]


@given(st.lists(st.binary(max_size=50)), st.integers(64, 400), st.integers(1, 6))
def test_a_log_is_bounded_and_honest(chunks: list[bytes], bytes_max: int, lines_max: int) -> None:
    wide, tight = log_of(*chunks), log_of(*chunks, bounds=LogBounds(bytes_max, lines_max))
    everything = [line.text for line in lines_of(wide.text() or "")] if wide.text() else []
    kept = [*lines_of(tight.text() or "")] if tight.text() else []
    if kept and kept[0].stream == "musterd":
        gap, *kept = kept
        assert gap.text == f"{len(everything) - len(kept)} older lines were not kept"
    else:
        assert len(kept) == len(everything)
    assert len(kept) <= lines_max
    assert len(kept) == 1 or sum(len(str(line.text)) + 41 for line in kept) <= 4 * bytes_max
    assert tight.last == len(everything)


MARKED: Sequence[tuple[bytes, Voice]] = [
    (b"printed", STDOUT),
    (b"failed\n", Voice("logging", "critical")),
    (b"more\n", STDOUT),
    (b"oh\n", STDERR),
]


@pytest.mark.parametrize("size", [1, 2, 3, 5, 100])
def test_marks_are_understood_however_they_arrive(size: int) -> None:
    whole = b"printed" + MARK + b"lcfailed\n" + MARK + b"oimore\n" + MARK + b"ewoh\n" + MARK + b"oi"
    reader, found = MarkedBytes(), list[tuple[bytes, Voice]]()
    for begin in range(0, len(whole), size):
        for part, voice in reader.parts(whole[begin : begin + size]):
            if found and found[-1][1] == voice:
                found[-1] = found[-1][0] + part, voice
            else:
                found.append((part, voice))
    assert found == MARKED


def test_a_lone_nul_is_no_mark() -> None:
    reader = MarkedBytes()
    assert [*reader.parts(b"a\0"), *reader.parts(b"b"), *reader.parts(b"\0\2c")] == [
        (b"a", STDOUT),
        (b"\0b", STDOUT),
        (b"\0\2c", STDOUT),
    ]
