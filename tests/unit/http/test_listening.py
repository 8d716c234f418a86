"""Where the web side listens, and what it says if it cannot."""

import socket
import stat
from pathlib import Path

import pytest
import trio

from musterd.config.listen import TcpAddress, UnixAddress
from musterd.manager.node.process import StartError
from musterd.web.server.listening import (
    ACCEPTS_AT_ONCE,
    ACCEPTS_PER_SECOND,
    PacedListener,
    address_text,
    listener_at,
)
from tests.support.web_scene import serving


async def test_port_zero_is_a_port_that_is_free() -> None:
    async with serving(listen="localhost:0") as web:
        assert web.address.startswith("http://127.0.0.1:")
        assert not web.address.endswith(":0")


async def test_off_is_off() -> None:
    async with serving(listen="") as web:
        assert web.address == ""


def test_a_taken_port_is_named_with_its_key() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with (
            pytest.raises(StartError, match=rf"http\.listen: .*127\.0\.0\.1:{port}: .*taken"),
            listener_at(TcpAddress("127.0.0.1", port)),
        ):
            raise AssertionError("it listens at a taken port")


def test_a_name_that_leads_nowhere_is_a_start_error() -> None:
    with (
        pytest.raises(StartError, match=r"http\.listen: cannot listen at no\.such\.host\.invalid"),
        listener_at(TcpAddress("no.such.host.invalid", 1)),
    ):
        raise AssertionError("it listens nowhere")


async def test_a_socket_is_for_its_group_and_gone_afterwards(tmp_path: Path) -> None:
    path = tmp_path / "m.sock"
    async with serving(listen=f"unix:{path}") as web:
        assert web.address == f"unix:{path}"
        assert stat.S_IMODE(path.stat().st_mode) == 0o660
        assert (await web.get("/status", {"Host": "anything"})).status == 200
    assert not path.exists()


async def test_a_socket_that_nobody_listens_at_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "m.sock"
    dead = socket.socket(socket.AF_UNIX)
    dead.bind(str(path))
    dead.close()
    async with serving(listen=f"unix:{path}") as web:
        assert (await web.get("/livez")).status == 200


async def test_a_socket_in_use_and_a_plain_file_are_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "m.sock"
    async with serving(listen=f"unix:{path}") as web:
        with (
            pytest.raises(StartError, match="somebody listens"),
            listener_at(UnixAddress(str(path))),
        ):
            raise AssertionError("it took the place of another")
        assert (await web.get("/livez")).status == 200
    path.write_text("precious")
    with pytest.raises(StartError, match="is no socket"), listener_at(UnixAddress(str(path))):
        raise AssertionError("it took the place of a file")
    assert path.read_text() == "precious"


def test_a_folder_that_is_not_there_is_a_start_error(tmp_path: Path) -> None:
    missing = UnixAddress(str(tmp_path / "none" / "m.sock"))
    with pytest.raises(StartError, match="No such file"), listener_at(missing):
        raise AssertionError("it listens in no folder")


def test_a_successors_socket_is_not_removed(tmp_path: Path) -> None:
    path = tmp_path / "m.sock"
    with listener_at(UnixAddress(str(path))):
        path.unlink()
        successor = socket.socket(socket.AF_UNIX)
        successor.bind(str(path))
    assert path.exists()
    successor.close()


@pytest.mark.skipif(not socket.has_ipv6, reason="no IPv6 here")
async def test_ipv6_is_shown_in_brackets() -> None:
    try:
        with listener_at(TcpAddress("::1", 0)) as listener:
            await trio.lowlevel.checkpoint()
            assert address_text(listener).startswith("http://[::1]:")
    except StartError:
        pytest.skip("this machine has no ::1")


class Crowd(trio.abc.Listener[trio.SocketStream]):
    """Somebody is always at the door."""

    async def accept(self) -> trio.SocketStream:
        await trio.lowlevel.checkpoint()
        ours, theirs = trio.socket.socketpair()
        theirs.close()
        return trio.SocketStream(ours)

    async def aclose(self) -> None:
        await trio.lowlevel.checkpoint()


async def test_a_crowd_is_let_in_at_a_pace(autojump_clock: trio.testing.MockClock) -> None:
    paced, seconds = PacedListener(Crowd()), 3

    async def let_in(count: int) -> float:
        began = trio.current_time()
        for _ in range(count):
            async with await paced.accept():
                pass
        return trio.current_time() - began

    assert await let_in(ACCEPTS_AT_ONCE) == 0.0
    assert await let_in(int(seconds * ACCEPTS_PER_SECOND)) == pytest.approx(seconds, abs=0.01)
    await trio.sleep(10)
    assert await let_in(ACCEPTS_AT_ONCE) == 0.0
