"""The verb: finds the decisions of a moment, and prints them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import attrs
import click

from musterd.config.faults import did_you_mean
from musterd.config.settings import Settings
from musterd.console.command import CommandLine, Verb, moment_option
from musterd.console.completers import complete_settings
from musterd.console.explain.anew import KEPT, Anew, decide_anew, history_seconds, proposed
from musterd.console.explain.hours import hour_sentences
from musterd.console.explain.sentences import anew_sentences, head, sentences, since_then
from musterd.console.output import Complaint, Exit
from musterd.console.verbs.scaling import SHOWN_MAX, read_journal
from musterd.manager.scaling.decision import ScalingPolicy
from musterd.manager.scaling.journal import MICROSECOND, decision_of, unpacked
from musterd.manager.scaling.supervisor import policy_of
from musterd.store.compared_hours import ComparedHour, hour_object
from musterd.store.errors import StoreUnavailable
from musterd.store.opening import in_store
from musterd.store.scaling_journal import FIRST, JournalRun, run_object
from musterd.store.words import time_text

AROUND = timedelta(minutes=1)  # other nodes that decided so shortly before are shown too
NODES_MAX = 1_000
KNOWN = ("scaling", "workers", "limits")  # what a decision depends on


@attrs.frozen
class Proposal:
    """`--with`: the settings as given, those of today, and what comes of both."""

    given: Sequence[str]
    named: frozenset[str]
    today: ScalingPolicy
    policy: ScalingPolicy


@click.command(cls=Verb)
@moment_option("--at", "The moment: 03:12 (UTC), -2h or RFC 3339; default: now.")
@click.option(
    "--with",
    "given",
    multiple=True,
    metavar="SECTION.KEY=VALUE",
    shell_complete=complete_settings,
    help="Say what this setting would have made of it, as with --set; may be repeated.",
)
@click.pass_obj
def explain(cli: CommandLine, at: datetime | None, given: tuple[str, ...]) -> None:
    """Explain a past decision on the crew's size.

    Says what was seen, wished, limited and done, on each node that decided then, and what would
    have been otherwise with [scaling.candidate] or with --with; and how long the jobs of that hour
    waited, beside what the model makes of it. Exits 3 if no decision is kept.
    """
    settings = cli.of_tenant(cli.load().settings)
    proposal = _proposal(cli, settings, given) if given else None
    runs = _runs_at(settings, at)
    if not runs:
        when = "" if at is None else f" of {time_text(at, 'seconds')} or before"
        days = f"{settings.scaling.journal_days:g}"
        advice = f"[scaling] journal_days = {days}: `musterd scaling` shows what is there"
        raise Complaint(Exit.UNKNOWN, f"no decision{when} is kept", advice)
    hour = _hour_at(settings, at)
    shown = {"hour": None if hour is None else hour_object(hour)}
    found = [_explained(settings, run, at, proposal) | shown for run in runs]
    cli.show(found, lambda: _lines(found, hour))


def _lines(found: Sequence[dict[str, Any]], hour: ComparedHour | None) -> list[str]:
    lines: list[str] = []
    for one in found:
        lines += ["", one["head"], *(f"  {said}" for said in one["sentences"])]
    if hour is not None:
        lines += ["", *hour_sentences(hour)]
    return lines[1:]


def _hour_at(settings: Settings, at: datetime | None) -> ComparedHour | None:
    """The one that was under way, or the newest, if it was compared. A daemon that knows what it
    decided is worth hearing while its store is away.
    """
    try:
        found = in_store(settings, lambda engine: engine.journal.hours(at, at, 1))
    except StoreUnavailable:
        return None
    return next(iter(found), None)


def _runs_at(settings: Settings, at: datetime | None) -> Sequence[JournalRun]:
    """The decision in force on each node that decided shortly before; else the last one before."""
    since = None if at is None or at < FIRST else at - AROUND
    found = read_journal(settings, since, at, NODES_MAX if at is not None else 1)
    if not found:
        found = read_journal(settings, None, at, 1)
    latest = {run.node_id: run for run in found}
    return sorted(latest.values(), key=lambda run: run.node)


def _explained(
    settings: Settings, run: JournalRun, at: datetime | None, proposal: Proposal | None
) -> dict[str, Any]:
    said = [*sentences(run), *since_then(run, at)]
    whole: dict[str, Any] = {"head": head(run, at), "sentences": said, "decision": run_object(run)}
    if proposal is None:
        return whole
    anew = _anew(settings, run, at, proposal)
    said += anew_sentences(decision_of(run), anew, proposal.given)
    return {**whole, "with": _anew_object(anew, proposal)}


def _anew(settings: Settings, run: JournalRun, at: datetime | None, proposal: Proposal) -> Anew:
    """Of the tick that `at` means."""
    ticks = [one for one in unpacked(run) if at is None or one.at <= at.timestamp()]
    *before, one = ticks or [decision_of(run)]
    seconds = max(history_seconds(proposal.today), history_seconds(proposal.policy))
    since = run.at - timedelta(seconds=seconds)
    rows = read_journal(settings, since, run.at - MICROSECOND, SHOWN_MAX)
    history = [
        each
        for row in rows
        if row.node_id == run.node_id
        for each in unpacked(row)
        if each.at >= one.at - seconds
    ]
    policy = proposed(proposal.today, proposal.policy, one, proposal.named)
    return decide_anew([*history, *before], one, proposal.today, policy)


def _anew_object(anew: Anew, proposal: Proposal) -> dict[str, Any]:
    plan = None if anew.plan is None else attrs.asdict(anew.plan)
    return {
        "settings": list(proposal.given),
        "plan": plan,
        "not_held": list(anew.lacks),
        "repeats": anew.is_repeated,
    }


def _proposal(cli: CommandLine, settings: Settings, given: Sequence[str]) -> Proposal:
    """Raises ConfigError; complains of settings by which nobody decides."""
    keys = [text.partition("=")[0].strip() for text in given]
    for key in keys:
        _check(key)
    other = cli.proposing(None, given)
    changed = other.of_tenant(other.load().settings)
    catalog = cli.catalog(settings)
    named = frozenset(key.rpartition(".")[2] for key in keys)
    return Proposal(
        given, named & {*KEPT}, policy_of(settings, catalog), policy_of(changed, catalog)
    )


def _check(key: str) -> None:
    section = key.split(".")[2 if key.startswith("tenants.") and key.count(".") > 1 else 0]
    if section in KNOWN:
        return
    hint = did_you_mean(section, KNOWN)
    wanted = f"wanted a key of {', '.join(KNOWN)}"
    raise click.UsageError(f"--with {key}: no decision depends on it, {wanted} {hint}".strip())
