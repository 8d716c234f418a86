"""The journal of the supervisor in words: what it saw, what it did, what held it back. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from attrs import frozen

from musterd.manager.node.status import Decision, TenantStatus
from musterd.store.words import duration_text, plural
from musterd.web.pages.html import Html, el, join
from musterd.web.pages.layout import (
    Frame,
    View,
    badge,
    card,
    left_out,
    moment,
    number,
    regions,
    row,
    table,
)
from musterd.web.pages.words import (
    Stretch,
    act_words,
    limit_words,
    reason_words,
    stretches,
)

LINES_SHOWN = 60


@frozen
class Seen:
    crew: TenantStatus
    decisions: Sequence[Decision]


PARTS = ("now", "journal")


def scaling(frame: Frame, seen: Seen) -> View:
    content = (el("h1", "Scaling"), regions(parts_of(frame, seen), *PARTS))
    return View("scaling", "Scaling", content, live=frame.at("/ui/live", view="scaling"))


def parts_of(_frame: Frame, seen: Seen) -> Mapping[str, Html]:
    return {
        "now": card("Now", _now(seen)),
        "journal": card("Journal", _journal(seen.decisions)),
    }


def _now(seen: Seen) -> Html:
    crew, last = seen.crew, seen.decisions[-1] if seen.decisions else None
    size = crew.idle + crew.busy + crew.retiring
    bounds = f"at least {number(crew.default_count)}, at most {number(crew.max_count)}"
    wanted = "" if last is None else f", {number(last.desired)} wanted"
    return join(
        el("p", el("strong", f"{plural(size, 'worker')}{wanted}"), f", {bounds}."),
        el("p", f"{reason_words(last)}."),
    )


def _journal(decisions: Sequence[Decision]) -> Html:
    found = stretches(decisions)
    if not found:
        return el("p", "nothing was decided yet", class_="dim")
    rows = [_line(one) for one in found[:LINES_SHOWN]]
    heads = ("at (UTC)", "done", "crew", "seen", "limited by")
    more = left_out(len(rows), len(found), "earlier line")
    return table("Decisions of this node, the newest first", heads, rows, more)


def _line(one: Stretch) -> Html:
    last = one.last
    limit = badge(last.limited_by, "limit") if last.limited_by else None
    return row(
        moment(datetime.fromtimestamp(last.at, UTC)),
        _done(one),
        f"{number(last.size_before)} → {number(last.desired)}",
        el("span", reason_words(last).partition(";")[0], class_="note"),
        el("span", limit, " ", limit_words(last.limited_by), class_="note"),
    )


def _done(one: Stretch) -> Html:
    words = act_words(one.last)
    if one.looks == 1:
        return el("strong", words) if words != "no change" else join(words)
    lasted = duration_text(max(0.0, one.last.at - one.first.at))
    return el("span", f"{words} for {lasted}, {plural(one.looks, 'look')}", class_="dim")
