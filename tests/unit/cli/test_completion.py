"""What a shell may offer: the right names, quickly, and nothing where something is wrong."""

from pathlib import Path

import pytest
from click.shell_completion import ShellComplete

from musterd.console.command import musterd
from tests.support.command import Home

TENANT = ("--set", "tenants.acme.workers.max_count=1")
NIGHTLY = ("--set", "schedules.nightly.kind=report", "--set", "schedules.nightly.cron=0 2 * * *")


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path))
    return tmp_path


def offered(*words: str) -> list[str]:
    """What is offered for the last word."""
    *before, word = words
    asked = ShellComplete(musterd, {}, "musterd", "_MUSTERD_COMPLETE")
    return [str(one.value) for one in asked.get_completions(before, word)]


def test_verbs_and_options_are_offered() -> None:
    assert offered("en") == ["enqueue"]
    assert offered("queue", "") == ["pause", "resume"]
    assert "--payload" in offered("enqueue", "noop", "--p")
    assert offered("jobs", "--state", "f") == ["failed"]
    assert offered("completion", "") == ["bash", "zsh", "fish"]


def test_kinds_are_those_of_the_catalog(state: Path) -> None:
    assert {"report", "noop"} <= set(offered("enqueue", ""))
    assert offered("events", "--kind", "rep") == ["report"]
    (state / "kinds.toml").write_text("[kinds.zebra]\nduration_ms = 1\n")
    mine = ("--set", f'catalog.paths=["{state}/kinds.toml"]')
    assert offered(*mine, "enqueue", "ze") == ["zebra"]
    assert offered("enqueue", *mine, "ze") == ["zebra"]


def test_tenants_schedules_and_settings_are_offered() -> None:
    assert offered(*TENANT, "jobs", "--tenant", "") == ["default", "acme"]
    assert offered(*NIGHTLY, "schedules", "pause", "") == ["nightly"]
    assert offered("run", "--set", "workers.max") == ["workers.max_count="]


def test_jobs_are_those_that_the_verb_can_do_something_about(state: Path) -> None:
    home = Home(state)
    home.call("enqueue", "noop", "--count", "2", "--target", "shop")
    home.call("enqueue", "noop", "--hold")
    home.call("pause", "2")
    assert offered("why", "") == ["1", "2"]
    assert offered("resume", "") == ["2"]
    assert offered("cancel", "1") == ["1"]
    assert offered("jobs", "--target", "") == ["shop"]


def test_nothing_is_made_and_nothing_is_said_where_something_is_wrong(
    state: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert offered("job", "") == []
    assert list(state.iterdir()) == []
    for wrong in ("store.url=postgresql://x@127.0.0.1:1/x", "store.url=nonsense", "a.b=1"):
        assert offered("--set", wrong, "job", "") == []
    assert offered("--set", "catalog.paths=['/none']", "enqueue", "") == []
    assert offered("--tenant", "nobody", "enqueue", "") == []
    assert offered("--config", "/no/such.toml", "enqueue", "") == []
    assert capfd.readouterr() == ("", "")
