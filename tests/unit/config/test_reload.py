"""What a new configuration means for a node that runs."""

from pathlib import Path

import pytest

from musterd.config.changes import LIVE_KEYS, changes, unsound
from musterd.config.load import load
from musterd.config.settings import Settings, keys

ABSENT = Path("/nonexistent/musterd.toml")


def told(*sets: str) -> Settings:
    return load(None, {}, sets, ABSENT).settings


def test_nothing_changes_where_nothing_differs() -> None:
    found = changes(told("tenants.a.schema=x"), told("tenants.a.schema=x"))
    assert (found.added, found.removed, found.moved) == ((), (), ())
    assert (found.live, found.restart) == ((), ())
    assert found.settings == told("tenants.a.schema=x")


def test_every_live_key_is_one() -> None:
    assert set(keys()) >= LIVE_KEYS


def test_tenants_come_go_and_move() -> None:
    old = told("tenants.a.schema=x", "tenants.b.schema=y", "tenants.c.schema=z")
    new = told("tenants.b.schema=other", "tenants.c.schema=z", "tenants.d.schema=w")
    found = changes(old, new)
    assert (found.added, found.removed, found.moved) == (("d",), ("a",), ("b",))
    assert set(found.settings.tenants) == {"default", "b", "c", "d"}


def test_what_applies_is_taken_over_and_the_rest_stays_as_it_was() -> None:
    new = told("workers.max_count=9", "store.pool_size=9", "log.format=json")
    found = changes(told(), new)
    assert found.live == ("workers.max_count",)
    assert found.restart == ("store.pool_size", "log.format")
    assert found.settings.workers.max_count == 9
    assert found.settings.store.pool_size == 4
    assert found.settings.log.format == "auto"


def test_a_tenants_own_numbers_apply_and_are_named_as_its() -> None:
    old = told("tenants.a.workers.max_count=3")
    new = told("tenants.a.workers.max_count=4", "tenants.a.limits.claim_batch=7")
    found = changes(old, new)
    assert found.live == ("tenants.a.workers.max_count", "tenants.a.limits.claim_batch")
    assert [(one.before, one.after) for one in found.keys] == [(3, 4), (500, 7)]
    assert found.settings.tenants["a"].workers.max_count == 4
    assert found.settings.tenants["a"].limits.claim_batch == 7
    assert found.settings.limits == old.limits


def test_what_tenants_have_from_the_node_is_told_once() -> None:
    old = told("tenants.a.schema=x", "tenants.b.limits.claim_batch=3")
    new = told("tenants.a.schema=x", "tenants.b.limits.claim_batch=4", "limits.claim_batch=9")
    assert changes(old, new).live == ("limits.claim_batch", "tenants.b.limits.claim_batch")


def test_secrets_are_masked() -> None:
    old = told("store.url=postgresql://u:before@h/d", "http.token=one-secret")
    new = told("store.url=postgresql://u:after@h/d", "http.token=another-secret")
    found = changes(old, new)
    assert [(one.key, one.before, one.after) for one in found.keys] == [
        ("store.url", "postgresql://u:***@h/d", "postgresql://u:***@h/d"),
        ("http.token", "***", "***"),
    ]
    assert (found.live, found.restart) == (("http.token",), ("store.url",))


def test_schedules_are_told_key_by_key() -> None:
    old = told("schedules.a.kind=noop", "schedules.a.every_seconds=9", "schedules.b.kind=noop",
               "schedules.b.every_seconds=9")  # fmt: skip
    new = told("schedules.a.kind=noop", "schedules.a.every_seconds=8", "schedules.c.kind=noop",
               "schedules.c.every_seconds=9")  # fmt: skip
    found = changes(old, new)
    assert found.live == ("schedules.a", "schedules.b", "schedules.c")
    (altered,) = found.schedules.changed
    (key,) = altered.keys
    assert (altered.name, key.key, key.before, key.after) == ("a", "every_seconds", 9, 8)
    assert (found.schedules.added, found.schedules.removed) == (("c",), ("b",))


def test_what_waits_for_a_restart_must_go_together_with_what_does_not() -> None:
    """Else the node would listen to the whole network without a token until then."""
    old = told("http.listen=0.0.0.0:9477", "http.token=sixteen--letters")
    (fault,) = unsound(changes(old, told()))
    assert fault.key == "http.listen"
    assert 'found "0.0.0.0:9477" until a restart, wanted a loopback address, or a token' in str(
        fault
    )
    assert unsound(changes(old, told("http.token=sixteen--letters"))) == []
    assert unsound(changes(told(), old)) == []


@pytest.mark.parametrize("moved", ["store.schema=other", "store.url=postgresql://h/d"])
def test_a_node_that_would_have_to_move_moves_none_of_its_tenants(moved: str) -> None:
    found = changes(
        told("tenants.a.workers.max_count=3"), told("tenants.a.workers.max_count=3", moved)
    )
    assert (found.moved, found.restart) == ((), (moved.partition("=")[0],))
    assert found.settings.tenants["a"].place.schema == "musterd_a"
