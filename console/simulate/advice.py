"""What `musterd tune` says: one object for programs, lines for people. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from musterd.config.tenant_names import DEFAULT_TENANT
from musterd.config.toml_text import key_text
from musterd.console.simulate.figures import figures_object
from musterd.console.simulate.model import Rules
from musterd.console.simulate.report import trace_lines, trace_object
from musterd.console.simulate.trace import Trace
from musterd.console.simulate.tuning import Advice, Candidate
from musterd.store.words import count_text, duration_text, table

PLACES = 6


def advice_object(advice: Advice, trace: Trace, rules: Rules, tenant: str) -> dict[str, Any]:
    aim = {"quantile": advice.aim.share, "wait_seconds": advice.aim.wait_seconds}
    return {
        "tenant": tenant,
        "trace": trace_object(trace),
        "aim": aim,
        "reached": advice.reached,
        "present": _candidate_object(advice.present),
        "recommended": _candidate_object(advice.recommended),
        "candidates": [_candidate_object(one) for one in advice.candidates],
        "no_gain_beyond": advice.useful_most,
        "simulations": advice.simulations,
        "settings": "\n".join(settings_lines(advice, tenant)),
        "summary": " ".join(summary_lines(advice, rules)),
    }


def _candidate_object(one: Candidate) -> dict[str, Any]:
    return {
        "default_count": one.counts.least,
        "max_count": one.counts.most,
        "wait_seconds": round(one.wait_seconds, PLACES),
        "marks": list(one.marks),
        **figures_object(one.figures),
    }


def advice_lines(advice: Advice, trace: Trace, rules: Rules, tenant: str) -> list[str]:
    aim = f"aim: {_quantile(advice)} wait at most {duration_text(advice.aim.wait_seconds)}"
    lines = [*trace_lines(trace), aim, "", *_table(advice), "", *summary_lines(advice, rules)]
    settings = settings_lines(advice, tenant)
    return [*lines, "", *settings] if settings else lines


def settings_lines(advice: Advice, tenant: str) -> list[str]:
    """The recommended counts as the configuration file has them; none where they are there."""
    if advice.present.counts == advice.recommended.counts:
        return []
    path = ("workers",) if tenant == DEFAULT_TENANT else ("tenants", tenant, "workers")
    counts = advice.recommended.counts
    return [
        f"[{key_text(path)}]",
        f"default_count = {counts.least}",
        f"max_count = {counts.most}",
    ]


def summary_lines(advice: Advice, rules: Rules) -> Iterator[str]:
    """What to do, what comes of it, and what would not help."""
    yield _change(advice)
    if advice.useful_most is not None:
        beyond = max(advice.useful_most, advice.recommended.counts.most)
        yield f"Beyond max {beyond} there is no gain."
    if not advice.reached:
        yield _why_not(advice, rules)
    elif advice.recommended.counts.least > advice.present.counts.least:
        interval = duration_text(rules.interval_seconds)
        yield (
            "No max_count alone reaches the aim: a job that finds nobody idle waits for the next "
            f"decision, every {interval}. Have more there before it comes, or lower "
            "workers.scale_interval_ms."
        )


def _change(advice: Advice) -> str:
    old, new = advice.present, advice.recommended
    if old.counts == new.counts:
        wait = f"{_quantile(advice)} wait {duration_text(old.wait_seconds)}"
        return f"Leave default {old.counts.least}, max {old.counts.most} as they are: {wait}."
    names = (
        ("default", old.counts.least, new.counts.least),
        ("max", old.counts.most, new.counts.most),
    )
    changes = ", ".join(f"{name} {a} -> {b}" for name, a, b in names if a != b)
    waits = f"{duration_text(old.wait_seconds)} -> {duration_text(new.wait_seconds)}"
    return f"{changes}: {_quantile(advice)} wait {waits}, worker-seconds {_costs(advice)}."


def _costs(advice: Advice) -> str:
    pair = (advice.present, advice.recommended)
    return " -> ".join(count_text(round(one.figures.worker_seconds)) for one in pair)


def _why_not(advice: Advice, rules: Rules) -> str:
    """No crew reaches the aim. One as large as all that ever ran would, if it might be hired."""
    best = f"Nothing reaches the aim; {duration_text(advice.recommended.wait_seconds)} is the best"
    most = rules.policy.max_running
    if most is not None:
        return f"{best}: limits.max_running = {most} lets no more jobs run. Raise that first."
    return f"{best} that {count_text(advice.candidates[-1].counts.most)} workers can do."


def _table(advice: Advice) -> list[str]:
    heads = ("default", "max", f"{_quantile(advice)} wait", "crew mean", "crew most")
    rows = [
        (
            str(one.counts.least),
            str(one.counts.most),
            duration_text(one.wait_seconds),
            f"{one.figures.crew_mean:.1f}",
            str(one.figures.crew_most),
            count_text(round(one.figures.worker_seconds)),
            ", ".join(one.marks),
        )
        for one in advice.candidates
    ]
    return table((*heads, "worker-seconds", ""), rows, right=frozenset(range(6)))


def _quantile(advice: Advice) -> str:
    return f"p{advice.aim.share * 100:g}"
