"""Telling the service manager: whatever its socket is like, the daemon goes on."""

import os
import socket
from collections.abc import Generator
from pathlib import Path

import pytest

from musterd.manager.node.systemd import ServiceManager, take_service_manager
from tests.support.notify_socket import NotifySocket


@pytest.fixture
def heard(tmp_path: Path) -> Generator[NotifySocket]:
    opened = NotifySocket(str(tmp_path / "notify"))
    yield opened
    opened.close()


def test_its_variables_are_taken_and_no_child_sees_them() -> None:
    environ = {
        "NOTIFY_SOCKET": "/run/systemd/notify",
        "WATCHDOG_USEC": "30000000",
        "WATCHDOG_PID": "17",
        "PATH": "/bin",
    }
    manager = take_service_manager(environ, 17)
    assert manager == ServiceManager("/run/systemd/notify", 30.0)
    assert environ == {"PATH": "/bin"}


@pytest.mark.parametrize(
    ("usec", "pid", "seconds"),
    [
        ("2000000", "", 2.0),
        ("2000000", "18", None),  # somebody else's watchdog
        ("0", "17", None),
        ("-5", "17", None),
        ("soon", "17", None),
        ("²", "17", None),
        ("", "17", None),
    ],
)
def test_the_watchdog_is_ours_or_it_is_none(usec: str, pid: str, seconds: float | None) -> None:
    environ = {"NOTIFY_SOCKET": "@x", "WATCHDOG_USEC": usec, "WATCHDOG_PID": pid}
    assert take_service_manager(environ, 17) == ServiceManager("@x", seconds)


@pytest.mark.parametrize("address", ["", "vsock:2:1234", "relative/path"])
def test_no_address_that_can_be_reached_is_no_service_manager(address: str) -> None:
    assert take_service_manager({"NOTIFY_SOCKET": address}, 17) is None


def test_lines_are_one_message(heard: NotifySocket) -> None:
    assert ServiceManager(heard.address).send(["READY=1", "STATUS=2/8 workers, 0 due"])
    heard.read(0)
    assert [one.lines for one in heard.messages] == [{"READY": "1", "STATUS": "2/8 workers, 0 due"}]


def test_an_abstract_socket() -> None:
    heard = NotifySocket(f"@musterd-test-{os.getpid()}")
    try:
        assert ServiceManager(heard.address).send(["READY=1"])
        heard.read(0)
        assert heard.values("READY") == ["1"]
    finally:
        heard.close()


def test_nobody_there_is_no_failure(tmp_path: Path) -> None:
    assert not ServiceManager(str(tmp_path / "nobody")).send(["READY=1"])
    assert not ServiceManager(f"/{'x' * 200}").send(["READY=1"])
    assert not ServiceManager("@").send(["READY=1"])


def test_a_full_queue_is_not_waited_for(heard: NotifySocket) -> None:
    manager = ServiceManager(heard.address)
    lines = [f"STATUS={'x' * 1_000}"]
    for _ in range(100_000):
        if not manager.send(lines):
            break
    else:
        pytest.fail("the queue is never full")
    heard.read(0)
    assert manager.send(lines)


def test_a_socket_of_another_kind_is_no_failure(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as stream:
        stream.bind(str(tmp_path / "stream"))
        assert not ServiceManager(str(tmp_path / "stream")).send(["READY=1"])
