"""Kinds with phases as a catalog file gives them, and whether they can run here."""

import sys
from pathlib import Path

import pytest

from musterd.catalog.checking import Surroundings, find_broken
from musterd.catalog.kinds import (
    Catalog,
    Command,
    Delay,
    Deterministic,
    HttpCall,
    KindDefaults,
    Pipeline,
    Python,
    WorkKind,
    plan,
)
from musterd.catalog.load import load_catalog
from musterd.config.faults import ConfigError
from musterd.config.load import load

SETTINGS = load(None, {}, [], Path("/nonexistent/musterd.toml")).settings
DEFAULTS = KindDefaults(SETTINGS.retry, 7.5)
TEXT = """
[kinds.video]
retryable = true
retry_on = ["OSError"]
grace_seconds = 3
time_limit_seconds = 60
budgets = { tokens = 5 }

[[kinds.video.phases]]
name = "download"
python = "shop:download"
isolation = "task"
time_limit_seconds = 5
retryable = false
retry_on = []
grace_seconds = 0

[[kinds.video.phases]]
name = "process"
command = ["/bin/true"]
input = "phases"
umask = "022"

[[kinds.video.phases]]
name = "tell"
http = { url = "http://127.0.0.1:1/", headers = { a = "b" } }

[[kinds.video.phases]]
name = "rest"
duration_ms = [1, 10000]

[[kinds.video.phases]]
name = "rest-again"
duration_ms = [1, 10000]
"""


def video(folder: Path, text: str = TEXT) -> WorkKind:
    (folder / "kinds.toml").write_text(text)
    return load_catalog([folder / "kinds.toml"], DEFAULTS)["video"]


def test_each_phase_is_a_kind_of_its_own_with_the_rules_of_the_whole(tmp_path: Path) -> None:
    kind = video(tmp_path)
    assert isinstance(kind.behaviour, Pipeline)
    assert kind.behaviour.names == ("download", "process", "tell", "rest", "rest-again")
    first, second, third, fourth, _ = kind.parts
    does = [type(part.behaviour) for part in kind.parts]
    assert does == [Python, Command, HttpCall, Deterministic, Deterministic]
    assert [part.phase for part in kind.parts] == list(kind.behaviour.names)
    assert {part.name for part in kind.parts} == {"video"}
    assert (first.retryable, first.retry_on, first.grace_seconds) == (False, (), 0.0)
    assert (second.retryable, second.retry_on, second.grace_seconds) == (True, ("OSError",), 3.0)
    assert [part.time_limit_seconds for part in kind.parts] == [5.0, None, None, None, None]
    assert kind.time_limit_seconds == 60
    assert third.budgets == fourth.budgets == {"tokens": 5}
    assert [phase.input for phase in kind.behaviour.phases][:2] == ["payload", "phases"]
    assert first.source == f"{tmp_path}/kinds.toml:9"


@pytest.mark.parametrize(
    "keys", ["duration_ms = 1\n", "[[kinds.video.phases]]\nname = 'a'\nduration_ms = 1\n"]
)
def test_what_cannot_spend_has_no_budget(tmp_path: Path, keys: str) -> None:
    with pytest.raises(ConfigError, match=r"kinds\.video\.budgets: "):
        video(tmp_path, f"[kinds.video]\nbudgets = {{ tokens = 5 }}\n{keys}")


def test_a_kind_without_phases_is_its_own_only_part(tmp_path: Path) -> None:
    kind = video(tmp_path, "[kinds.video]\nduration_ms = 1\n")
    assert kind.parts == (kind,)
    assert kind.phase is None


def test_phases_alike_take_times_of_their_own(tmp_path: Path) -> None:
    rest, again = video(tmp_path).parts[-2:]
    times = {plan(part, {}, attempt) for part in (rest, again) for attempt in (1, 2)}
    assert len(times) == 4
    assert plan(rest, {}, 1) == plan(rest, {}, 1)


@pytest.mark.parametrize(("count", "is_good"), [(1, True), (100, True), (101, False)])
def test_a_kind_has_1_to_100_phases(tmp_path: Path, count: int, is_good: bool) -> None:
    text = "".join(
        f'[[kinds.video.phases]]\nname = "{number}"\nduration_ms = 1\n' for number in range(count)
    )
    if is_good:
        assert len(video(tmp_path, text).parts) == count
        return
    with pytest.raises(ConfigError, match="wanted a list of 1 to 100 tables"):
        video(tmp_path, text)


def test_a_kind_is_broken_if_one_of_its_phases_is(tmp_path: Path) -> None:
    text = TEXT.replace('"/bin/true"', '"/no/such/program"')
    around = Surroundings(sys.executable, 20.0, {"PATH": "/bin"}, {"PATH": "/bin"})
    kind = find_broken(Catalog([video(tmp_path, text)]), around)["video"]
    found = [part.broken for part in kind.parts]
    assert [reason is None for reason in found] == [False, False, True, True, True]
    assert kind.broken == found[0]  # of the first one
    assert "kinds.video.phases.python: phase download: cannot import shop" in str(found[0])
    wanted = "kinds.video.phases.command: phase process: there is no program /no/such/program"
    assert wanted in str(found[1])


DELAYS = """
[kinds.order]
[[kinds.order.phases]]
name = "reserve"
duration_ms = 1
[[kinds.order.phases]]
name = "pay"
delay_from = "reserve/held_seconds"
[[kinds.order.phases]]
name = "rest"
delay_seconds = 90
"""


def test_a_phase_may_be_a_delay(tmp_path: Path) -> None:
    file = tmp_path / "kinds.toml"
    file.write_text(DELAYS)
    behaviour = load_catalog([file], DEFAULTS)["order"].behaviour
    assert isinstance(behaviour, Pipeline)
    assert [phase.kind.behaviour for phase in behaviour.phases[1:]] == [
        Delay(None, "reserve", "held_seconds"),
        Delay(90.0),
    ]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("reserve/held", "rest/held"), "a phase that comes before this one"),
        (("reserve/held", "resreve/held"), "did you mean reserve?"),
        (("reserve/held_seconds", "reserve"), 'wanted "phase/field", as in "order/wait_seconds"'),
        (("delay_seconds = 90", "delay_seconds = -1"), "delay_seconds"),
        (("delay_seconds = 90", "delay_seconds = 9\nduration_ms = 1"), "duration_ms"),
        (("delay_seconds = 90", "delay_seconds = 9\npython = 'a:b'"), "a second behaviour"),
    ],
)
def test_a_delay_that_cannot_be_is_a_fault(
    tmp_path: Path, change: tuple[str, str], said: str
) -> None:
    file = tmp_path / "kinds.toml"
    file.write_text(DELAYS.replace(*change))
    with pytest.raises(ConfigError) as refused:
        load_catalog([file], DEFAULTS)
    assert said in str(refused.value)
