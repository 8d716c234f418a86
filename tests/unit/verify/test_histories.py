"""Histories by lot, of the model that tests the checker: what is lawful there is lawful here; of
what is left out of its store, that which events tell is noticed.
"""

from __future__ import annotations

import random

import pytest

from musterd.console.verbs.events import events_of
from musterd.console.verify.judge import Judge
from musterd.console.verify.rules import Rule
from tests.checker.examples import broken
from tests.checker.examples.model import Model
from tests.checker.examples.model_store import Store

SEEDS = range(12)


def faults_of(judge: Judge) -> list[str]:
    """But for what the model leaves out: its jobs are deleted without having gone stale."""
    found = judge.findings.violations
    return [f"{one.rule}: {one.story}" for one in found if "had not gone stale" not in one.story]


def judged_history(seed: int, store: type[Store] = Store) -> Judge:
    history = Model(seed, commits=True, store=store).run()
    judge = Judge()
    judge.take(events_of(history.lines(), None))
    return judge


@pytest.mark.parametrize("seed", SEEDS)
def test_a_history_that_keeps_the_rules_passes(seed: int) -> None:
    judge = judged_history(seed)
    assert faults_of(judge) == []
    assert judge.findings.cases[Rule.LOG] > 100


@pytest.mark.parametrize(
    ("store", "rule"), [(broken.NoTarget, Rule.TARGET), (broken.CountsAtTheEnd, Rule.ATTEMPTS)]
)
def test_a_store_with_a_rule_left_out_is_noticed(store: type[Store], rule: Rule) -> None:
    assert any(rule in judged_history(seed, store).findings.violated for seed in SEEDS)


def test_the_histories_put_most_rules_to_the_test() -> None:
    cases = dict.fromkeys(Rule, 0)
    for seed in SEEDS:
        for rule, number in judged_history(seed).findings.cases.items():
            cases[rule] += number
    unseen = {rule for rule, number in cases.items() if not number}
    needs_store = {Rule.TABLE, Rule.COUNTS, Rule.PLACES}
    assert unseen <= needs_store | {Rule.DUE, Rule.PHASES, Rule.WEBHOOKS, Rule.DRAINING}


@pytest.mark.parametrize("seed", SEEDS)
def test_where_a_log_is_cut_off_nobody_is_accused(seed: int) -> None:
    lines = [one for one in Model(seed, commits=True).run().lines() if '"event"' in one]
    events = list(events_of(lines, None))
    rng = random.Random(seed)
    for _ in range(5):
        judge = Judge()
        judge.take(events[rng.randrange(1, len(events)) :])
        assert faults_of(judge) == []
