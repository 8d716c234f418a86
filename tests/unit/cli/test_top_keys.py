"""Keys of a terminal, as they come in bytes, in pieces and in heaps."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from musterd.console.top.terminal import Keys


@pytest.mark.parametrize(
    ("data", "keys"),
    [
        (b"jq", ["j", "q"]),
        (b"\x1b[A\x1b[B\x1bOA\x1b[5~\x1b[6~", ["up", "down", "up", "pgup", "pgdn"]),
        (b"\x1b[H\x1b[F\x1b[1~\x1b[4~\x1bOH", ["home", "end", "home", "end", "home"]),
        (b"\r\x7f\x03\x1a\x15", ["enter", "backspace", "ctrl-c", "ctrl-z", "ctrl-u"]),
        (b"\x1b[1;5A", ["up"]),
        ("日ü".encode(), ["日", "ü"]),
        (b"\x1b[99~\x1b[?1;2c\x00\x01", []),  # known to nobody
        (b"\xff", ["\ufffd"]),
        (b"\x1bx", ["esc", "x"]),
    ],
)
def test_a_key_has_a_name(data: bytes, keys: list[str]) -> None:
    assert Keys().feed(data) == keys


def test_a_key_that_comes_in_pieces_is_one() -> None:
    keys = Keys()
    assert [keys.feed(bytes([one])) for one in b"\x1b[6~"] == [[], [], [], ["pgdn"]]
    assert (keys.feed("日".encode()[:1]), keys.feed("日".encode()[1:])) == ([], ["日"])
    assert not keys.is_waiting


def test_an_escape_alone_is_that_key_once_nothing_follows() -> None:
    keys = Keys()
    assert (keys.feed(b"\x1b"), keys.is_waiting) == ([], True)
    assert (keys.flush(), keys.is_waiting, keys.flush()) == (["esc"], False, [])


@given(st.lists(st.binary(max_size=80), max_size=8))
def test_no_bytes_upset_it(pieces: list[bytes]) -> None:
    keys = Keys()
    for piece in pieces:
        assert all(len(key) == 1 or key.isascii() for key in keys.feed(piece))
    keys.flush()
    assert not keys.is_waiting
