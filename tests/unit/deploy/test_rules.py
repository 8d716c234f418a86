"""The rules are sound, and each alert fires when it should and only then."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.metric_pages import (
    RULES,
    alerts,
    exported,
    metrics_in,
    read_yaml,
    recorded,
    rules,
)
from tests.support.missing import program
from tests.support.pages import bare, blocks, table

HERE = Path(__file__).parent
FOLDER = RULES.parent
CASES = sorted(HERE.glob("*.test.yml"))
README = (FOLDER / "README.md").read_text("utf-8")
SEVERITIES = {"critical", "warning", "info"}


def promtool(*arguments: str, cwd: Path = HERE) -> None:
    done = subprocess.run(
        [program("promtool", "prometheus"), *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("file", CASES, ids=lambda file: file.name)
def test_alerts_fire_when_they_should(file: Path) -> None:
    promtool("test", "rules", file.name)


def test_promtool_finds_nothing_in_the_rules() -> None:
    promtool("check", "rules", "--lint=all", "--lint-fatal", RULES.name, cwd=FOLDER)


@pytest.mark.parametrize("with_token", [False, True])
def test_the_sample_is_a_configuration(tmp_path: Path, *, with_token: bool) -> None:
    sample = (FOLDER / "prometheus.yml").read_text()
    token = tmp_path / "token"
    token.write_text("secret")
    if with_token:
        sample = re.sub(r"^    # (authorization:|  cred)", r"    \1", sample, flags=re.MULTILINE)
        assert sample.count("/etc/prometheus/musterd-token") == 1
        sample = sample.replace("/etc/prometheus/musterd-token", str(token))
        assert "authorization" in read_yaml(sample)["scrape_configs"][0]
    (tmp_path / "prometheus.yml").write_text(sample)
    shutil.copy(RULES, tmp_path)
    promtool("check", "config", "--lint=all", "--lint-fatal", "prometheus.yml", cwd=tmp_path)


def cases() -> list[dict[str, Any]]:
    return [
        case
        for file in CASES
        for test in read_yaml(file.read_text())["tests"]
        for case in test["alert_rule_test"]
    ]


def test_each_alert_is_seen_to_fire_and_to_be_quiet() -> None:
    fired = {case["alertname"] for case in cases() if case["exp_alerts"]}
    quiet = {case["alertname"] for case in cases() if not case["exp_alerts"]}
    assert fired == quiet == set(alerts())


@pytest.mark.parametrize("name", alerts())
def test_an_alert_says_what_and_how_bad(name: str) -> None:
    rule = alerts()[name]
    assert name.startswith("Musterd")
    assert rule["labels"].keys() == {"severity"}
    assert rule["labels"]["severity"] in SEVERITIES
    assert rule["annotations"].keys() == {"summary", "description", "runbook"}
    assert "for" in rule


def test_rules_look_at_metrics_that_there_are() -> None:
    known = set(exported())
    assert {name for rule in rules() for name in metrics_in(rule["expr"])} <= known


def test_what_one_node_tells_for_all_is_never_summed_up() -> None:
    told_by_one = {"jobs", "queue_depth", "queue_oldest_age_seconds", "queue_paused"}
    told_by_one |= {"targets_halted", "store_horizon_age_seconds", "store_dead_rows"}
    told_by_one |= {"model_error_ratio"}
    for rule in rules():
        summed = re.findall(r"sum by \([\w, ]+\) \(musterd_(\w+)", rule["expr"])
        assert not told_by_one & set(summed), rule


def test_names_of_recording_rules_say_what_is_left_of_the_labels() -> None:
    for name, expression in recorded().items():
        level, metric, operation = name.split(":")
        by = re.findall(r"by \(([\w, ]+)\)", expression)[0].split(", ")
        assert level.split("_") == [label for label in by if label != "le"], name
        assert metric in expression
        assert re.fullmatch(r"[a-z0-9_]+", operation)


def test_what_an_alert_looks_at_is_recorded_before_it_in_its_group() -> None:
    """Else it is one evaluation late, or not: groups have no order."""
    for group in read_yaml(RULES.read_text())["groups"]:
        seen: set[str] = set()
        for rule in group["rules"]:
            needed = {name for name in recorded() if name in rule["expr"]}
            assert needed <= seen, rule
            seen |= {rule["record"]} if "record" in rule else set()


def test_the_readme_lists_all_recording_rules() -> None:
    assert sorted(bare(name) for name, _ in table(README, "record")) == sorted(recorded())


def test_the_samples_of_the_readme_are_yaml() -> None:
    scraping, routing = (read_yaml(block.text) for block in blocks(README, "yaml"))
    assert scraping["scrape_configs"][0]["job_name"] == "musterd"
    named = set(re.findall(r"Musterd[A-Z]\w+", str(routing["inhibit_rules"])))
    assert named <= set(alerts())
