"""What a new configuration means for a node that runs."""

from pathlib import Path

import pytest

from musterd.config.load import load
from musterd.config.reload import LIVE_KEYS, changes
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
    new = told("workers.max_count=9", "workers.lease_timeout_seconds=60", "log.level=debug")
    found = changes(told(), new)
    assert found.live == ("workers.max_count",)
    assert found.restart == ("workers.lease_timeout_seconds", "log.level")
    assert found.settings.workers.max_count == 9
    assert found.settings.workers.lease_timeout_seconds == 30
    assert found.settings.log.level == "info"


def test_a_tenants_own_numbers_apply_and_are_named_as_its() -> None:
    old = told("tenants.a.workers.max_count=3")
    new = told("tenants.a.workers.max_count=4", "tenants.a.limits.claim_batch=7")
    found = changes(old, new)
    assert found.live == ("tenants.a.workers.max_count",)
    assert found.restart == ("tenants.a.limits.claim_batch",)
    assert found.settings.tenants["a"].workers.max_count == 4
    assert found.settings.tenants["a"].limits == old.limits


@pytest.mark.parametrize("moved", ["store.schema=other", "store.url=postgresql://h/d"])
def test_a_node_that_would_have_to_move_moves_none_of_its_tenants(moved: str) -> None:
    found = changes(
        told("tenants.a.workers.max_count=3"), told("tenants.a.workers.max_count=3", moved)
    )
    assert (found.moved, found.restart) == ((), (moved.partition("=")[0],))
    assert found.settings.tenants["a"].place.schema == "musterd_a"
