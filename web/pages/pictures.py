"""The charts of the page, and the ranges and the table by kind beside them. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from attrs import frozen

from musterd.store.history import QueueLook
from musterd.store.words import count_text, duration_text
from musterd.web.pages import layout as ui
from musterd.web.pages.chart import Chart, Line, Panel, Value, chart
from musterd.web.pages.layout import Frame, Html, el, link
from musterd.web.pages.once import drawn_once
from musterd.web.picture import Picture, quantiles_of

# How far back each reaches, and its steps, both in seconds: some hundred steps fit a screen.
RANGES: Mapping[str, tuple[float, int]] = {
    "15m": (900.0, 15),
    "1h": (3_600.0, 30),
    "6h": (21_600.0, 180),
    "48h": (172_800.0, 1_200),
}
RANGE = "1h"
RANGE_WORDS = {"15m": "15 minutes", "1h": "hour", "6h": "6 hours", "48h": "48 hours"}
RECENT_SECONDS = 900.0  # what a rate by kind is of
KINDS_SHOWN = 20
WHOLE_FROM = 100  # rates from here on have no fractions
SELDOM = 0.1  # jobs a second; below it they are counted by the minute
NO_HISTORY = "the store does not answer"


def ranges(frame: Frame, path: str, chosen: str) -> Html:
    places = [
        link(frame.at(path, range=None if name == RANGE else name), _range_label(name),
            aria_current="true" if name == chosen else None, data_key=f"range-{name}")
        for name in RANGES
    ]  # fmt: skip
    return el("nav", places, aria_label="Range of the charts", class_="ranges")


def _range_label(name: str) -> str:
    return f"{name[:-1]} {'min' if name[-1] == 'm' else 'h'}"


def _chart(draw: Callable[[Picture, str], Html]) -> Callable[[Picture | None, str], Html]:
    """Views, readers and looks share a picture until the past is read anew: it is drawn once."""
    once = drawn_once(draw)

    def drawn(picture: Picture | None, chosen: str) -> Html:
        return el("p", NO_HISTORY, class_="dim") if picture is None else once(picture, chosen)

    return drawn


@_chart
def queue_chart(picture: Picture, chosen: str) -> Html:
    """Depth, crew, wish and bound, with marks."""
    waiting = Panel("Jobs", [Line("waiting", _looks(picture, lambda one: one.depth), "run filled")])
    workers = Panel(
        "Workers",
        [
            Line("at most", _looks(picture, lambda one: one.max_count), "dim dashed"),
            Line("wish", _looks(picture, lambda one: one.wish), "warn dashed"),
            Line("crew", _looks(picture, lambda one: one.crew), "well filled"),
        ],
    )
    about = f"Queue and crews of all nodes, last {RANGE_WORDS[chosen]}"
    return chart(Chart("queue-chart", about, picture.span, (waiting, workers), picture.marks))


@_chart
def ended_chart(picture: Picture, chosen: str) -> Html:
    """What became of jobs, a second."""
    ended = [point.ended for point in picture.points]

    def a_second(numbers: Sequence[int]) -> Sequence[Value]:
        """The last step is not over: what nodes have not yet written of it is no zero."""
        return [*(number / picture.span.step for number in numbers[:-1]), None]

    lines = [
        Line("succeeded", a_second([one.succeeded for one in ended]), "well filled"),
        Line("failed", a_second([one.failed for one in ended]), "ill"),
        Line("retried", a_second([one.retried for one in ended]), "warn dashed"),
    ]
    panel = Panel("Jobs a second", lines, rate_words, is_whole=False)
    about = f"What became of jobs, last {RANGE_WORDS[chosen]}"
    return chart(Chart("ended-chart", about, picture.span, (panel,)))


@_chart
def times_chart(picture: Picture, chosen: str) -> Html:
    """How long jobs waited and ran."""
    found = [quantiles_of(point.ended) for point in picture.points]

    def panel(title: str, which: str) -> Panel:
        name = title.lower()
        lines = [
            Line(f"{name} p95", [one[f"{which}_p95_seconds"] for one in found], "run"),
            Line(f"{name} p50", [one[f"{which}_p50_seconds"] for one in found], "well dashed"),
        ]
        return Panel(title, lines, seconds_words, is_whole=False)

    panels = (panel("Wait", "wait"), panel("Run", "run"))
    about = f"How long jobs waited and ran, last {RANGE_WORDS[chosen]}"
    return chart(Chart("times-chart", about, picture.span, panels))


def _looks(picture: Picture, read: Callable[[QueueLook], int]) -> Sequence[Value]:
    return [None if point.look is None else read(point.look) for point in picture.points]


def rate_words(a_second: float) -> str:
    return f"{a_second:,.0f}/s" if a_second >= WHOLE_FROM else f"{a_second:.3g}/s"


def seconds_words(seconds: float) -> str:
    if seconds == 0:
        return "0 s"
    return duration_text(float(f"{seconds:.2g}"))


@frozen
class KindRow:
    """A kind now and lately. None = not known, or nothing to say."""

    kind: str
    waiting: int = 0
    oldest_seconds: float | None = None
    ended: int = 0  # lately
    failed: int = 0
    retried: int = 0
    run_p95_seconds: float | None = None
    wait_p95_seconds: float | None = None
    promise_seconds: float | None = None


def kinds_table(frame: Frame, rows: Sequence[KindRow] | None) -> Html:
    if rows is None:
        return el("p", NO_HISTORY, class_="dim")
    order = sorted(rows, key=lambda one: (-one.waiting, -one.ended, one.kind))
    caption = f"Kinds with jobs now or in the last {duration_text(RECENT_SECONDS)}"
    none = "no job waits, and none has run lately"
    return ui.table(caption, order, _columns(frame), most=KINDS_SHOWN, what="kind", empty=none)


def _columns(frame: Frame) -> ui.Columns[KindRow]:
    return {
        "kind": lambda one: link(
            frame.at("/ui/jobs", kind=one.kind), ui.name_text(one.kind), data_key=f"kind-{one.kind}"
        ),
        "waiting": lambda one: ui.number(one.waiting),
        "oldest": lambda one: _seconds(one.oldest_seconds),
        "rate": lambda one: _rate(one.ended / RECENT_SECONDS),
        "failed": _failed,
        "wait p95": lambda one: _seconds(one.wait_p95_seconds),
        "run p95": lambda one: _seconds(one.run_p95_seconds),
        "promise": _promise,
    }


def _rate(a_second: float) -> str:
    if 0 < a_second < SELDOM:
        return f"{60 * a_second:.2g}/min"
    return rate_words(a_second)


def _seconds(seconds: float | None) -> str:
    return ui.NOTHING if seconds is None else seconds_words(seconds)


def _failed(one: KindRow) -> Html | str:
    if not one.ended:
        return ui.NOTHING
    share = 100 * one.failed / one.ended
    words = f"{share:.0f} %" if share >= 1 or not share else "< 1 %"
    counted = f"{count_text(one.failed)} of {count_text(one.ended)}"
    return el("span", words, class_="ill" if one.failed else None, title=counted)


def _promise(one: KindRow) -> Html | str:
    if not one.promise_seconds:
        return ui.NOTHING
    words = f"within {seconds_words(one.promise_seconds)}"
    worst = max(one.oldest_seconds or 0.0, one.wait_p95_seconds or 0.0)
    return ui.badge(words, "ill" if worst > one.promise_seconds else "well")
