"""The page on phases says what holds."""

import re
from pathlib import Path

import attrs

from musterd.catalog.kinds import Delay, Pipeline
from musterd.catalog.load import load_catalog
from musterd.catalog.tables import DoingTable, PhaseTable
from musterd.config.load import load
from musterd.store.lifecycle import JobState
from musterd.store.phases import PhaseState, shown_state
from musterd.workers.runners.command import environment_of
from tests.runners.test_command import command
from tests.support.assignments import given

PAGE = (Path(__file__).parents[3] / "docs" / "phases.md").read_text()
STORED = (PhaseState.PENDING, PhaseState.RUNNING, PhaseState.FAILED, PhaseState.SUCCEEDED)


def test_the_table_of_states_is_that_of_the_code() -> None:
    for state in JobState:
        cells = " | ".join(f"`{shown_state(stored, state)}`" for stored in STORED)
        assert f"| `{state}` | {cells} |" in PAGE


def test_the_example_loads(tmp_path: Path) -> None:
    texts = re.findall(r"^```toml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    (tmp_path / "clip.toml").write_text("[kinds.order]\n".join(texts))
    retry = load(None, {}, [], Path("/nonexistent.toml")).settings.retry
    catalog = load_catalog([tmp_path / "clip.toml"], retry)
    clip, order = catalog["clip"], catalog["order"].behaviour
    assert isinstance(order, Pipeline)
    assert order.phases[1].kind.behaviour == Delay(None, "reserve", "held_seconds")
    assert isinstance(clip.behaviour, Pipeline)
    assert clip.behaviour.names == ("download", "process", "publish")
    first, second, third = (phase.kind for phase in clip.behaviour.phases)
    assert (clip.time_limit_seconds, first.time_limit_seconds) == (3600, 600)
    assert (second.retryable, third.retry_on) == (True, ("time_limit",))
    assert [phase.input for phase in clip.behaviour.phases] == ["payload", "payload", "phases"]


def test_every_key_that_a_phase_has_to_itself_is_told() -> None:
    own = attrs.fields_dict(PhaseTable).keys() - attrs.fields_dict(DoingTable).keys()
    for key in (*own, "time_limit_seconds", "grace_seconds"):
        assert re.search(rf"^\|[^|]*`{key}`[^|]* \|", PAGE, re.MULTILINE)


def test_the_variable_is_what_a_program_sees() -> None:
    claim = given(command("true")).assignment.claim
    seen = environment_of(command("true"), claim, {}, "download")
    assert seen["MUSTERD_PHASE"] == "download"
    assert "`MUSTERD_PHASE`" in PAGE
