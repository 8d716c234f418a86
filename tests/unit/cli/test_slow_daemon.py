"""A daemon that is there and does not answer in time: nobody is told to start another one."""

import socket
from pathlib import Path

import pytest

from musterd.config.load import load
from musterd.console import daemon_client
from musterd.console.daemon_client import DaemonSilent, ask_daemon
from musterd.console.verbs.status import judge


def test_a_slow_daemon_is_called_slow() -> None:
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        listen = f"127.0.0.1:{deaf.getsockname()[1]}"
        settings = load(None, {}, [f"http.listen={listen}"], Path("no.file")).settings
        with pytest.raises(DaemonSilent) as silent:
            daemon_client.request(settings, "/status", within_seconds=0.2)
    assert silent.value.is_slow
    assert f"the daemon at {listen} has not answered within 0.2 s" in str(silent.value)
    assert "start one" not in judge("default", "x", None, None, str(silent.value), True)[1]
    with pytest.raises(DaemonSilent, match="no daemon answers") as gone:
        ask_daemon(settings, "/status")
    assert "start one with" in judge("default", "x", None, None, str(gone.value), True)[1]
