"""`musterd config alerts`: rules for the promises of a catalog, judged by promtool."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from musterd.console.alerts.promises import BURNS, GROUP, SHIPPED_RULES, rules_text
from musterd.console.command import musterd
from tests.support.metric_pages import RULES, read_yaml
from tests.unit.deploy.test_rules import promtool

KINDS = """
[kinds.no]
duration_ms = 5
max_wait_seconds = 0.5
[kinds."a.b-c_D"]
duration_ms = 5
[kinds.whenever]
duration_ms = 5
max_wait_seconds = 0
"""
SETTINGS = """
[catalog]
paths = ["kinds.toml"]
shipped = false
[scaling]
max_wait_seconds = {}
"""
PROMISED = {"a.b-c_D": 90.0, "no": 0.5}


def asked(folder: Path, *more: str, general: float = 90) -> Result:
    (folder / "kinds.toml").write_text(KINDS)
    (folder / "musterd.toml").write_text(SETTINGS.format(general))
    command = ["config", "alerts", "--config", str(folder / "musterd.toml"), *more]
    return CliRunner().invoke(musterd, command, catch_exceptions=False)


def groups(text: str) -> dict[str, list[dict[str, Any]]]:
    return {one["name"]: one["rules"] for one in read_yaml(text)["groups"]}


SHIPPED = groups(SHIPPED_RULES.read_text())


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    done = asked(tmp_path)
    assert (done.exit_code, done.stderr) == (0, "")
    path = tmp_path / "musterd.rules.yml"
    path.write_text(done.stdout)
    return path


def test_promtool_finds_nothing_in_them(rules: Path) -> None:
    promtool("check", "rules", "--lint=all", "--lint-fatal", rules.name, cwd=rules.parent)


def test_there_are_two_alerts_for_each_promise_and_all_that_is_shipped(rules: Path) -> None:
    found = groups(rules.read_text())
    own = found.pop(GROUP)
    assert found == {name: shipped for name, shipped in SHIPPED.items() if name != GROUP}
    named = {
        (rule["labels"]["kind"], rule["alert"], rule["annotations"]["runbook"]) for rule in own
    }
    books = [(burn.alert, f"docs/runbooks/{burn.alert}.md") for burn in BURNS]
    assert named == {(kind, *book) for kind in PROMISED for book in books}
    assert len(own) == len(named)


def test_a_promise_for_one_kind_burns_as_the_shipped_one_for_all(rules: Path) -> None:
    """Both have the same windows, limits and severities."""
    own = [one for one in groups(rules.read_text())[GROUP] if one["labels"].pop("kind") == "no"]
    for shipped, one in zip(SHIPPED[GROUP], own, strict=True):
        assert one["expr"].replace('{kind="no"}', "") == shipped["expr"]
        assert {**one, "expr": 0, "annotations": 0} == {**shipped, "expr": 0, "annotations": 0}


SERIES = """
rule_files: [musterd.rules.yml]
evaluation_interval: 1m
tests:
  - interval: 1m
    input_series:
      - series: 'musterd_job_wait_seconds_count{job="musterd",kind="no",instance="a"}'
        values: '0+100x600'
      - series: 'musterd_promise_broken_total{job="musterd",kind="no",instance="a"}'
        values: '0x60 0+10x60 600x480'
      - series: 'musterd_job_wait_seconds_count{job="musterd",kind="a.b-c_D",instance="a"}'
        values: '0+100x600'
      - series: 'musterd_promise_broken_total{job="musterd",kind="a.b-c_D",instance="a"}'
        values: '0x60 0+1x540'
      - series: 'musterd_job_wait_seconds_count{job="musterd",kind="whenever",instance="a"}'
        values: '0+100x600'
      - series: 'musterd_promise_broken_total{job="musterd",kind="whenever",instance="a"}'
        values: '0+100x600'
    alert_rule_test:
"""


def case(at: str, alert: str, *fired: tuple[str, str, str]) -> str:
    """`fired`: a kind, its severity, and what is said of it."""
    lines = [f"      - eval_time: {at}", f"        alertname: {alert}", "        exp_alerts:"]
    for kind, severity, said in fired:
        how = "being broken" if alert == "MusterdPromiseBroken" else "slipping"
        words = {
            "summary": f"Promises to {kind} are {how}.",
            "description": said,
            "runbook": f"docs/runbooks/{alert}.md",
        }
        labels = {"severity": severity, "job": "musterd", "kind": kind}
        lines.append(f"          - exp_labels: {json.dumps(labels)}")
        lines.append(f"            exp_annotations: {json.dumps(words)}")
    return "\n".join([*lines, ""]) if fired else "\n".join([*lines[:2], lines[2] + " []", ""])


def test_they_fire_while_promises_are_broken_too_often_and_no_longer(rules: Path) -> None:
    much = "99.9% of the jobs of no are to start within 0.5 s. Within an hour, 9.833% started"
    little = "99.9% of the jobs of a.b-c_D are to start within 1 m 30 s. Within six hours, 0.8306%"
    later = " later, and it goes on."
    text = SERIES
    text += case("59m", "MusterdPromiseBroken") + case("59m", "MusterdPromiseSlipping")
    text += case("2h", "MusterdPromiseBroken", ("no", "critical", much + later))
    text += case("2h10m", "MusterdPromiseBroken")
    text += case("6h", "MusterdPromiseSlipping", ("a.b-c_D", "warning", f"{little} started{later}"))
    (rules.parent / "promises.test.yml").write_text(text)
    promtool("test", "rules", "promises.test.yml", cwd=rules.parent)


def test_a_lower_share_and_the_place_of_the_runbooks_are_asked_for(tmp_path: Path) -> None:
    place = "https://wiki.example.org/musterd/"
    found = groups(asked(tmp_path, "--kept", "99", "--runbooks", place).stdout)
    first, second, *_ = found[GROUP]
    assert first["expr"].count("> 0.144") == second["expr"].count("> 0.06") == 2
    books = [rule["annotations"]["runbook"] for rules in found.values() for rule in rules
        if "alert" in rule]  # fmt: skip
    assert all(book.startswith(f"{place}docs/runbooks/Musterd") for book in books)


def test_without_a_promise_the_rules_are_as_shipped(tmp_path: Path) -> None:
    (tmp_path / "none.toml").write_text("[catalog]\nshipped = false\n")
    command = ["config", "alerts", "--config", str(tmp_path / "none.toml")]
    done = CliRunner().invoke(musterd, command, catch_exceptions=False)
    assert done.stdout == SHIPPED_RULES.read_text()
    assert done.stderr.startswith("musterd: no kind has a promise")


def test_json_has_the_promises_and_the_rules(tmp_path: Path, rules: Path) -> None:
    found = json.loads(asked(tmp_path, "--json").stdout)
    assert found["promises"] == PROMISED
    assert (found["kept"], found["rules"]) == (0.999, rules.read_text())


@pytest.mark.parametrize("wrong", [("--kept", "100"), ("--kept", "90"), ("--runbooks", 'a"b')])
def test_what_would_make_no_rules_is_refused(tmp_path: Path, wrong: tuple[str, str]) -> None:
    done = asked(tmp_path, *wrong)
    assert (done.exit_code, done.stdout) == (2, "")


def test_rules_that_follow_stay_where_they_are() -> None:
    shipped = SHIPPED_RULES.read_text() + "\n  - name: last\n    rules: []\n"
    assert list(groups(rules_text(shipped, PROMISED, 0.999, ""))) == [*SHIPPED, "last"]
    assert list(groups(rules_text(shipped, {}, 0.999, ""))) == [*SHIPPED, "last"]
    with pytest.raises(ValueError, match="no group"):
        rules_text("groups: []\n", PROMISED, 0.999, "")


def test_the_file_beside_the_sample_is_the_same() -> None:
    assert RULES.samefile(SHIPPED_RULES)
