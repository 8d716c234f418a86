"""Which connection makes room, and which is refused."""

from __future__ import annotations

import socket
from collections.abc import Generator
from contextlib import ExitStack

import pytest
import trio

from musterd.web.server import places
from musterd.web.server.places import CONNECTIONS_MAX, WHILE_SHORT_MAX, Connection, Doing, Places


class Peers:
    """Makes connections, and gives them places."""

    def __init__(self, closing: ExitStack) -> None:
        self.places = Places(readers_max=2)
        self._closing = closing

    async def come(
        self, doing: Doing | None = None, *, is_short: bool = False
    ) -> Connection | None:
        """None = refused."""
        await trio.lowlevel.checkpoint()
        ours, theirs = (self._closing.enter_context(end) for end in socket.socketpair())
        theirs.setblocking(False)
        stream = trio.SocketStream(trio.socket.from_stdlib_socket(ours))
        made = Connection(self.places, stream, trio.CancelScope())
        if not self.places.enter(made, is_short=is_short):
            return None
        assert doing is None or made.begin(doing)
        return made


@pytest.fixture
def peers() -> Generator[Peers]:
    with ExitStack() as closing:
        yield Peers(closing)


async def test_the_longest_silent_makes_room(peers: Peers) -> None:
    first, *others = [await peers.come() for _ in range(CONNECTIONS_MAX + 1)]
    assert first is not None
    assert first.scope.cancel_called
    assert not any(one is None or one.scope.cancel_called for one in others)
    assert peers.places.open == CONNECTIONS_MAX


async def test_all_the_silent_do_while_few_descriptors_are_left(peers: Peers) -> None:
    silent = [await peers.come() for _ in range(20)]
    probe = await peers.come(Doing.PROBE, is_short=True)
    assert probe is not None
    assert sum(one is not None and not one.scope.cancel_called for one in silent) == 3


async def test_requests_in_hand_do_not_make_room(peers: Peers) -> None:
    held = [await peers.come(Doing.REQUEST, is_short=True) for _ in range(WHILE_SHORT_MAX)]
    assert await peers.come(is_short=True) is None
    (first, *_) = held
    assert first is not None
    first.wait()
    assert await peers.come(is_short=True) is not None
    assert first.scope.cancel_called


async def test_of_two_that_come_at_once_each_takes_the_place_of_another(
    peers: Peers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before those who were told to hang up have had time to."""
    monkeypatch.setattr(places, "CONNECTIONS_MAX", 2)
    came = [await peers.come() for _ in range(4)]
    assert [one is None or one.scope.cancel_called for one in came] == [True, True, False, False]
    assert peers.places.count(Doing.WAITING) == peers.places.open == 2
