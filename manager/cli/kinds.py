"""`musterd kinds`: the catalog."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from musterd.manager.cli.given import Given, Verb
from musterd.manager.cli.out import print_json, say

if TYPE_CHECKING:
    from musterd.catalog.kinds import WorkKind


@click.command(cls=Verb)
@click.pass_obj
def kinds(given: Given) -> None:
    """List the kinds of work there are."""
    from musterd.store.words import table

    catalog = given.catalog(given.settings())
    found = [catalog[name] for name in sorted(catalog)]
    if given.json:
        for kind in found:
            print_json(_object(kind))
        return
    heads = ("kind", "behaviour", "retry", "limit", "priority", "from")
    for line in table(heads, [_row(kind) for kind in found], right=frozenset({4})):
        say(line)


def _object(kind: WorkKind) -> dict[str, object]:
    import attrs

    whole = attrs.asdict(kind)
    return {**whole, "max_attempts": kind.retry.max_retries + 1}


def _row(kind: WorkKind) -> tuple[str, ...]:
    from musterd.store.words import duration_text

    limit = "-" if kind.time_limit_seconds is None else duration_text(kind.time_limit_seconds)
    return (kind.name, _behaviour(kind), _retry(kind), limit, str(kind.priority), _place(kind))


def _place(kind: WorkKind) -> str:
    from musterd.catalog.load import SHIPPED_FILE

    return "shipped" if kind.source.startswith(f"{SHIPPED_FILE}:") else kind.source


def _behaviour(kind: WorkKind) -> str:
    from musterd.store.words import duration_text

    does = kind.behaviour
    lasts = duration_text(does.duration_ms_min / 1000)
    if does.duration_ms_max != does.duration_ms_min:
        lasts += f" to {duration_text(does.duration_ms_max / 1000)}"
    first = f", fails {does.fail_first} times first" if does.fail_first else ""
    return f"{does.outcome} after {lasts}{first}" if lasts != "0.0 ms" else f"{does.outcome}{first}"


def _retry(kind: WorkKind) -> str:
    from musterd.store.words import duration_text

    if not kind.retryable or not kind.retry.max_retries:
        return "none"
    pace = f"{kind.retry.backoff} from {duration_text(kind.retry.base_seconds)}"
    return f"{kind.retry.max_retries}, {pace}"
