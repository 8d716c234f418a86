"""The rounds: checks end in time, by themselves, and in order."""

from collections.abc import Iterable

import trio

from musterd.config.faults import ConfigError, Fault
from musterd.console.doctor.judges import Check, Finding, ok
from musterd.console.doctor.verb import examine
from musterd.store.errors import StoreUnavailable


async def well() -> Iterable[Finding]:
    await trio.lowlevel.checkpoint()
    return [ok("well", "fine")]


async def slow() -> Iterable[Finding]:
    await trio.sleep_forever()
    raise AssertionError


async def broken() -> Iterable[Finding]:
    await trio.lowlevel.checkpoint()
    raise ZeroDivisionError("by\nzero")


async def away() -> Iterable[Finding]:
    await trio.lowlevel.checkpoint()
    raise StoreUnavailable("the store is away", "unreachable")


async def unreadable() -> Iterable[Finding]:
    await trio.lowlevel.checkpoint()
    raise ConfigError([Fault("musterd.toml", 3, "http.token_file", "nothing", "one line")])


async def test_none_brings_down_the_others(autojump_clock: trio.testing.MockClock) -> None:
    looks = {"slow": slow, "broken": broken, "away": away, "unreadable": unreadable, "well": well}
    checks = [Check(name, "store", look, "acme") for name, look in looks.items()]
    started = trio.current_time()
    found = await examine(checks, seconds=10.0)
    assert trio.current_time() - started == 10.0
    assert [one.name for one in found] == list(looks)
    assert [one.level for one in found] == ["fail"] * 4 + ["ok"]
    assert {(one.tenant, one.group) for one in found} == {("acme", "store")}
    slow_one, broken_one, away_one, unreadable_one, _ = found
    assert slow_one.found == "no answer within 10 s"
    assert broken_one.found == "the check itself failed: ZeroDivisionError: by\\nzero"
    assert away_one.found == "the check itself failed: the store is away"
    assert "http.token_file" in unreadable_one.found
