"""What a daemon says of its configuration, beside the files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
import pytest

from musterd import __version__
from musterd.config.settings import Settings
from musterd.config.show import in_effect
from musterd.config.toml_text import toml_text
from musterd.console.doctor.judges import Finding
from musterd.console.doctor.running import (
    RELOAD,
    RESTART,
    Running,
    Silent,
    judge_running,
    settings_in_effect,
)
from tests.support.findings import said, worst
from tests.support.stage import settings_with

KINDS = {"report": "aaaa", "noop": "bbbb"}
WHERE = "sqlite:///jobs.db"


def daemon_with(settings: Settings, **changes: Any) -> Running:
    whole = Running("n1", __version__, WHERE, in_effect(settings), KINDS)
    return attrs.evolve(whole, **changes)


def judged(
    files: Settings, running: Running | Silent, kinds: Mapping[str, str] = KINDS
) -> list[Finding]:
    return list(judge_running(files, kinds, WHERE, running))


def test_a_daemon_that_has_what_the_files_say() -> None:
    files = settings_with(workers__max_count=12, http__token="secret")
    (found,) = judged(files, daemon_with(files))
    assert (found.level, found.found) == ("ok", "n1 runs with what the files say")


@pytest.mark.parametrize(
    ("key", "ours", "theirs", "advice"),
    [
        ("workers.max_count", 12, 8, RELOAD),
        ("leases.on_lease_lost", "fail", "requeue", RELOAD),
        ("http.listen", "127.0.0.1:9000", "127.0.0.1:9477", RESTART),
        ("store.pool_size", 9, 4, RESTART),
        ("tenants.acme.limits.max_running", 3, 2, RELOAD),
    ],
)
def test_what_differs_is_named_with_both_values_and_what_to_do(
    key: str, ours: object, theirs: object, advice: str
) -> None:
    name = key.replace(".", "__")
    tenant = {"tenants__acme__workers__default_count": 1}
    files = settings_with(**{**tenant, name: ours})
    found = judged(files, daemon_with(settings_with(**{**tenant, name: theirs})))
    (one,) = [each for each in found if each.found.startswith(f"{key} ")]
    shown = [toml_text(value) for value in (theirs, ours)]
    assert one.found == f"{key} is {shown[0]} in the daemon, {shown[1]} in the files"
    assert (one.level, one.advice) == ("warn", advice)


def test_a_tenant_only_the_files_have() -> None:
    files = settings_with(tenants__acme__workers__default_count=1)
    text = said(judged(files, daemon_with(settings_with())))
    assert "tenants.acme.workers.default_count is not set in the daemon, 1 in the files" in text


def test_kinds_that_differ() -> None:
    running = daemon_with(settings_with(), kinds={"report": "cccc", "old": "dddd"})
    text = said(judged(settings_with(), running))
    assert "kind report is another in the daemon than in the files" in text
    assert "kind noop is in the files, and not in the daemon" in text
    assert "kind old is in the daemon, and not in the files" in text


def test_another_store_and_another_version_are_named_first() -> None:
    running = daemon_with(settings_with(), version="0.0.1", store="sqlite:///other.db")
    first, second = judged(settings_with(), running)
    assert "is musterd 0.0.1" in first.found
    assert "sqlite:///other.db" in second.found


def test_many_differences_are_cut() -> None:
    running = daemon_with(settings_with(), kinds={f"kind{n}": "ffff" for n in range(100)})
    found = judged(settings_with(), running)
    assert len(found) == 21
    assert found[-1].found == "82 differences more"


def test_a_daemon_that_tells_nothing() -> None:
    alone, deaf = Silent("no daemon answers", is_alone=True), Silent("token", is_alone=False)
    assert worst(judged(settings_with(), alone)) == "ok"
    assert worst(judged(settings_with(), deaf)) == "warn"
    for silent in (alone, deaf):
        (found,) = judged(settings_with(), silent)
        assert "what follows is said of the files, not of what runs" in found.found


def test_what_is_judged_are_the_daemons_values() -> None:
    files = settings_with(workers__lease_timeout_seconds=30, http__token="here")
    there = settings_with(
        workers__lease_timeout_seconds=6,
        http__token="there",
        retention__failed__stale_after_hours=3,
    )
    found = settings_in_effect(files, daemon_with(there))
    assert found.workers.lease_timeout_seconds == 6
    assert found.retention.failed.stale_after_hours == 3
    assert found.http.token == "here"  # it is not told


def test_what_this_version_does_not_know_is_left_out() -> None:
    tree = {**in_effect(settings_with()), "later": {"key": 1}, "workers": {"max_count": "many"}}
    found = settings_in_effect(
        settings_with(), attrs.evolve(daemon_with(settings_with()), settings=tree)
    )
    assert found == settings_with()
