"""How long jobs are kept: which table counts, what may be said, what may not."""

from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from musterd.config.changes import changes
from musterd.config.faults import ConfigError
from musterd.config.load import load
from musterd.config.retention import ENDED, NOTHING, Ages, Kept, function_of, kept
from musterd.config.settings import Settings

NO_FILE = Path("no-such-file.toml")
HOUR, DAY = 3_600, 86_400


def settings(*sets: str, **environ: str) -> Settings:
    named = {f"MUSTERD_RETENTION__{key.upper()}": value for key, value in environ.items()}
    return load(None, named, [f"retention.{each}" for each in sets], NO_FILE).settings


def test_as_shipped_jobs_are_there_for_a_month_and_stale_after_a_week() -> None:
    for state in ENDED:
        assert kept(settings().retention, state) == Kept(7 * DAY, 30 * DAY)


def test_the_kind_goes_before_the_state_and_the_state_before_all() -> None:
    retention = settings(
        "stale_after_hours=1", "delete_after_hours=10", "failed.delete_after_hours=20"
    ).retention
    assert kept(retention, "succeeded") == Kept(HOUR, 10 * HOUR)
    assert kept(retention, "failed") == Kept(HOUR, 20 * HOUR)
    assert kept(retention, "failed", Ages(2, None)) == Kept(2 * HOUR, 20 * HOUR)
    assert kept(retention, "failed", Ages(None, 0)) == Kept(HOUR, None)
    assert kept(retention, "failed", Ages(0, 0)) == Kept(None, None)


def test_what_is_deleted_goes_stale_no_later() -> None:
    """Also where the default says otherwise: a default gives way."""
    assert kept(settings("delete_after_hours=24").retention, "failed") == Kept(DAY, DAY)
    retention = settings("stale_after_hours=0", "delete_after_hours=5").retention
    assert kept(retention, "failed") == Kept(5 * HOUR, 5 * HOUR)


def test_layers_add_up_key_by_key(tmp_path: Path) -> None:
    file = tmp_path / "m.toml"
    file.write_text("[retention.failed]\nstale_after_hours = 1\ndelete_after_hours = 2\n")
    environ = {"MUSTERD_RETENTION__FAILED__DELETE_AFTER_HOURS": "3"}
    found = load(file, environ, ["retention.failed.delete_after_hours=4"])
    assert found.settings.retention.failed == Ages(1, 4)
    assert found.origins["retention.failed"] == "--set"


@pytest.mark.parametrize(
    ("sets", "said"),
    [
        (("stale_after_hours=3", "delete_after_hours=2"), "stale_after_hours is 3"),
        (("failed={stale_after_hours=3, delete_after_hours=2}",), "in each table (failed)"),
        (("failed.stale_after_hours=-1",), "found -1, wanted 0 to 1000000"),
        (("failed.stale_after=1",), "unknown key - did you mean stale_after_hours?"),
        (("canceled=3",), "found a number, wanted a table"),
        (("canceled=[]",), "wanted a table"),
        (("batch=0",), "found 0, wanted 1 to 1000"),
        (("on_stale=shop",), 'found "shop", wanted a URL, or "module:function"'),
        (("on_stale=shop.images.gone",), 'wanted a URL, or "module:function"'),
        (("on_delete=https://",), "its host or port cannot be read"),
        (("on_delete=https://a:99999/",), "its host or port cannot be read"),
        (("on_delete=https://u:secret@a/",), "without user and password"),
        (("on_delete=https://a/#x",), "a URL without #"),
        (("on_delete=ftp://a/",), 'wanted a URL, or "module:function"'),
        (("archive=tabel",), 'found "tabel", wanted "", "table"'),
        (("archive=old.jsonl",), "the whole path"),
        (("archive=/var/old.json",), "one JSON object a line"),
    ],
)
def test_what_cannot_be_meant_is_refused(sets: tuple[str, ...], said: str) -> None:
    with pytest.raises(ConfigError) as refused:
        settings(*sets)
    assert said in str(refused.value)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    "hook", ["", "https://hooks.example/a?b=c", "http://127.0.0.1:8000/", "shop:gone", "a.b.c:d_e"]
)
def test_a_hook_is_a_url_or_a_function(hook: str) -> None:
    assert settings(f'on_delete="{hook}"').retention.on_delete == hook
    assert (function_of(hook) is not None) == (bool(hook) and "/" not in hook)


def test_a_reload_takes_all_of_it_over() -> None:
    new = settings("batch=7", "failed.delete_after_hours=1", "archive=table")
    found = changes(settings(), new)
    assert found.settings.retention == new.retention
    assert set(found.live) == {"retention.batch", "retention.failed", "retention.archive"}
    assert not found.restart


SHIPPED = settings()
hours = st.none() | st.just(0.0) | st.floats(0.001, 1_000)


@given(
    own=st.builds(Ages, hours, hours),
    state=st.sampled_from(ENDED),
    said=st.builds(Ages, hours, hours),
)
def test_no_job_is_deleted_before_it_is_stale(own: Ages, state: str, said: Ages) -> None:
    own_table: dict[str, Any] = {state: said}
    retention = evolve(SHIPPED.retention, **own_table)
    for each in (own, NOTHING):
        found = kept(retention, state, each)
        if found.delete_seconds is not None:
            assert found.stale_seconds is not None
            assert found.stale_seconds <= found.delete_seconds
