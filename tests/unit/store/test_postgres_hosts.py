"""Several hosts in one URL: which is connected to, how long that takes, how it is told."""

from collections.abc import Sequence
from itertools import pairwise
from random import Random
from typing import Any, cast

import attrs
import psycopg
import pytest
import trio
import trio.testing
from psycopg.abc import ConnDict
from psycopg.conninfo import conninfo_attempts

from musterd.store.errors import StoreMisconfigured, StoreUnavailable
from musterd.store.postgres.addresses import address, connection_params, places
from musterd.store.postgres.connection import SOON_SECONDS, Gate, TrioConnection
from musterd.store.postgres.errors import NoHostServes, sort_connect_error
from musterd.store.postgres.setup import HEAD_START_SECONDS, Hosts
from musterd.store.waiting import Backoff

TIMEOUT_SECONDS = 5.0
URL = "postgresql://u:p@10.0.0.1:5432,10.0.0.2:5433,10.0.0.3:5434/jobs"
READ_ONLY = psycopg.OperationalError("connection failed: session is read-only")
REFUSED = psycopg.OperationalError("connection failed: Connection refused")
WRONG_PASSWORD = psycopg.OperationalError("FATAL:  password authentication failed")


class Connected:
    """Stands for a connection."""

    epoch = 0

    def __init__(self, host: str) -> None:
        self.host = host
        self.discarded = False

    def discard(self) -> None:
        self.discarded = True


@attrs.define
class Network:
    """What each host does: an error, or the seconds until it serves."""

    hosts: dict[str, psycopg.Error | float]
    asked: list[str] = attrs.field(factory=list[str])
    made: list[Connected] = attrs.field(factory=list[Connected])

    async def reach(self, params: ConnDict, seconds: float) -> TrioConnection:
        host = str(params["host"])
        self.asked.append(host)
        answer = self.hosts[host]
        if isinstance(answer, psycopg.Error):
            await trio.lowlevel.checkpoint()
            raise answer
        with trio.move_on_after(seconds):
            await trio.sleep(answer)
            self.made.append(Connected(host))
            return cast(TrioConnection, self.made[-1])
        raise psycopg.errors.ConnectionTimeout(f"no answer from {host}")


def network(*answers: psycopg.Error | float) -> Network:
    return Network({f"10.0.0.{number}": answer for number, answer in enumerate(answers, start=1)})


def hosts_in(net: Network, url: str = URL) -> Hosts:
    return Hosts(connection_params(url), TIMEOUT_SECONDS, net.reach, looked_up)


async def looked_up(params: ConnDict) -> list[ConnDict]:
    """Without a thread, which the clock would not wait for."""
    await trio.lowlevel.checkpoint()
    return conninfo_attempts(params)


async def host_of(hosts: Hosts) -> str:
    conn = cast(Any, await hosts.connect())
    return str(conn.host)


async def test_the_first_that_serves_is_taken(autojump_clock: trio.testing.MockClock) -> None:
    net = network(REFUSED, READ_ONLY, 0.1)
    assert await host_of(hosts_in(net)) == "10.0.0.3"
    assert net.asked == ["10.0.0.1", "10.0.0.2", "10.0.0.3"]


async def test_the_one_that_served_last_is_asked_first(
    autojump_clock: trio.testing.MockClock,
) -> None:
    net = network(REFUSED, 0.1, READ_ONLY)
    hosts = hosts_in(net)
    await host_of(hosts)
    net.asked.clear()
    assert await host_of(hosts) == "10.0.0.2"
    assert net.asked == ["10.0.0.2"]
    net.hosts |= {"10.0.0.2": READ_ONLY, "10.0.0.3": 0.1}
    assert await host_of(hosts) == "10.0.0.3"


async def test_a_silent_host_holds_up_the_others_for_a_moment_only(
    autojump_clock: trio.testing.MockClock,
) -> None:
    net = network(1000.0, 0.1, 0.1)
    began = trio.current_time()
    assert await host_of(hosts_in(net)) == "10.0.0.2"
    assert trio.current_time() - began == pytest.approx(HEAD_START_SECONDS + 0.1)
    assert "10.0.0.3" not in net.asked


async def test_a_host_that_is_slow_beyond_its_head_start_still_serves(
    autojump_clock: trio.testing.MockClock,
) -> None:
    net = network(HEAD_START_SECONDS * 3, READ_ONLY, REFUSED)
    assert await host_of(hosts_in(net)) == "10.0.0.1"


async def test_of_two_at_the_same_moment_one_is_kept(
    autojump_clock: trio.testing.MockClock,
) -> None:
    net = network(HEAD_START_SECONDS + 0.1, 0.1, REFUSED)
    kept = await hosts_in(net).connect()
    assert [one for one in net.made if not one.discarded] == [cast(Any, kept)]


async def test_a_cancelled_round_leaves_no_connection(
    autojump_clock: trio.testing.MockClock,
) -> None:
    net = network(1000.0, 1000.0, 1000.0)
    with trio.move_on_after(1):
        await hosts_in(net).connect()
    assert net.made == []


async def test_what_each_has_said_is_told(autojump_clock: trio.testing.MockClock) -> None:
    with pytest.raises(NoHostServes) as failed:
        await hosts_in(network(REFUSED, READ_ONLY, 1000.0)).connect()
    sorted_out = sort_connect_error(failed.value, "postgresql a,b/jobs")
    assert isinstance(sorted_out, StoreUnavailable)
    assert sorted_out.trouble == "read_only"
    assert str(sorted_out) == (
        "connecting: postgresql a,b/jobs: connection failed: Connection refused;"
        " connection failed: session is read-only; no answer from 10.0.0.3"
    )


@pytest.mark.parametrize(
    ("errors", "expected"),
    [
        ([WRONG_PASSWORD, WRONG_PASSWORD], StoreMisconfigured),
        ([WRONG_PASSWORD, REFUSED], StoreUnavailable),  # the one that is away may be fine
        ([READ_ONLY, WRONG_PASSWORD], StoreUnavailable),
    ],
)
def test_wrong_configuration_is_what_all_of_them_say(
    errors: Sequence[psycopg.Error], expected: type[Exception]
) -> None:
    assert type(sort_connect_error(NoHostServes(errors), "here")) is expected


async def test_a_server_that_answers_is_soon_asked_again(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """A standby before its promotion: the pauses grow, but not as for one that is away."""
    assert await longest_pause(READ_ONLY) <= SOON_SECONDS
    assert await longest_pause(REFUSED) > SOON_SECONDS


async def longest_pause(error: psycopg.Error) -> float:
    asked: list[float] = []

    async def dial() -> TrioConnection:
        asked.append(trio.current_time())
        await trio.lowlevel.checkpoint()
        raise error

    gate = Gate(dial, "here", Backoff(0.2, 3.0, Random(1)))
    while len(asked) < 8:
        with pytest.raises(StoreUnavailable):
            await gate.connect()
        await trio.sleep(0.01)
    return max(later - earlier for earlier, later in pairwise(asked))


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("postgresql://u@h1:5432,h2:5433/d", "postgresql h1:5432,h2:5433/d"),
        ("postgresql://u@h1,h2/d", "postgresql h1,h2/d"),
        ("postgresql://u@h1,h2:5433/d", "postgresql h1,h2:5433/d"),
        ("postgresql:///d?host=h1,h2&port=6432", "postgresql h1:6432,h2:6432/d"),
        ("postgresql://u:secret@h:5432/d", "postgresql h:5432/d"),
        ("postgresql:///d?host=/run/pg", "postgresql /run/pg/d"),
        ("postgresql:///d?hostaddr=10.0.0.1,10.0.0.2", "postgresql 10.0.0.1,10.0.0.2/d"),
        ("postgresql:///d", "postgresql local socket/d"),
    ],
)
def test_an_address_names_each_host_and_no_secret(url: str, expected: str) -> None:
    assert address(connection_params(url)) == expected


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("postgresql://u@h/d", None),
        ("postgresql://u@h1,h2/d", "read-write"),
        ("postgresql://u@h1,h2/d?target_session_attrs=primary", "primary"),
        ("postgresql:///d?host=h1,h2", "read-write"),
    ],
)
def test_of_several_hosts_one_that_takes_writes_is_wanted(url: str, expected: str | None) -> None:
    assert connection_params(url).get("target_session_attrs") == expected


def test_other_parameters_of_libpq_are_passed_on() -> None:
    params = connection_params(
        "postgresql://u@h1,h2/d?load_balance_hosts=random&application_name=mine&tcp_user_timeout=9"
    )
    assert params["load_balance_hosts"] == "random"
    assert (params["application_name"], params["tcp_user_timeout"]) == ("mine", "9")


def test_one_port_serves_all_hosts() -> None:
    assert places({"host": "a,b", "port": "1"}) == ["a:1", "b:1"]
    assert places({"host": "a,", "port": "1,2"}) == ["a:1", "local socket:2"]
