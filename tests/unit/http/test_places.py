"""The places of the HTTP server: who makes room for whom."""

import socket
from contextlib import ExitStack

import trio

from musterd.web.server.places import Connection, Doing, Places


async def test_of_two_that_come_at_once_each_takes_the_place_of_another() -> None:  # noqa: ASYNC124 - a socket of Trio's
    """Before those who were told to hang up have had time to."""
    all_places = Places(readers_max=1)
    with ExitStack() as stack:

        def come() -> Connection:
            near, far = (stack.enter_context(each) for each in socket.socketpair())
            del far
            stream = trio.SocketStream(trio.socket.from_stdlib_socket(near))
            one = Connection(all_places, stream, trio.CancelScope())
            assert all_places.enter(one, 2)
            return one

        came = [come() for _ in range(4)]
        assert [one.scope.cancel_called for one in came] == [True, True, False, False]
        assert all_places.count(Doing.WAITING) == all_places.open == 2
