"""The log of an attempt keeps its beginning and its end."""

from hypothesis import given
from hypothesis import strategies as st

from musterd.workers.joblog import JobLog


def log_of(bytes_max: int, *chunks: bytes) -> str | None:
    log = JobLog(bytes_max)
    for chunk in chunks:
        log.add(chunk)
    return log.text()


def test_nothing_logged_is_no_log() -> None:
    assert log_of(10) is None
    assert log_of(10, b"") is None


def test_what_fits_is_kept_whole() -> None:
    assert log_of(10, b"0123", b"4567", b"89") == "0123456789"


def test_of_more_the_first_and_the_last_half_are_kept() -> None:
    assert log_of(10, b"01234567", b"89abc") == "01234\n[3 bytes were not kept]\n89abc"


def test_text_that_no_store_keeps_is_replaced() -> None:
    assert log_of(10, b"a\0b\xff") == "a�b�"


@given(st.lists(st.binary(max_size=50)), st.integers(2, 60))
def test_a_log_is_bounded_and_honest(chunks: list[bytes], bytes_max: int) -> None:
    whole = b"".join(chunks)
    log = JobLog(bytes_max)
    for chunk in chunks:
        log.add(chunk.replace(b"\0", b"0"))
    text = log.text() or ""
    if len(whole) <= bytes_max:
        assert text == whole.replace(b"\0", b"0").decode("utf-8", "replace")
    else:
        assert f"[{len(whole) - bytes_max} bytes were not kept]" in text
