"""Charts over time, drawn as SVG where they are made: the script only adds a read-out. Pure.

A chart is one or several panels above each other, each with an axis of its own, over one span.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from math import ceil, floor, log10

from attrs import frozen

from musterd.store.history import PastMark
from musterd.store.words import count_text, cut, duration_text
from musterd.web.pages import layout as ui
from musterd.web.pages.layout import Html, el, join
from musterd.web.picture import Span

WIDTH, HEIGHT = 1000, 100  # of a panel's own coordinates: it is stretched to its place
ROWS_MAX = 13  # of the table beneath
MARKS_SHOWN = 6
LABELS = 4  # stretches of the time axis
MARK_WIDTH = 80

ROUND = (1, 1.5, 2, 3, 4, 5, 6, 8, 10)  # upper ends of axes
NEARLY = 0.999  # what rounding leaves above is not seen
BETWEEN = "|"
DAY_SECONDS = 86_400

Value = float | None  # None = unknown: a gap


@frozen
class Line:
    """`look` is a class of the style sheet."""

    name: str
    values: Sequence[Value]
    look: str


@frozen
class Panel:
    """`words` writes a value with its unit."""

    title: str
    lines: Sequence[Line]
    words: Callable[[float], str] = lambda value: count_text(round(value))
    is_whole: bool = True  # only whole numbers are on its axis


@frozen
class Chart:
    """`name` is an element's id; `about` says what is to be seen."""

    name: str
    about: str
    span: Span
    panels: Sequence[Panel]
    marks: Sequence[PastMark] = ()


def chart(drawn: Chart) -> Html:
    begins = drawn.span.begins
    keys = "Arrow keys move through time."
    return el(
        "figure",
        el("figcaption", drawn.about),
        el(
            "div",
            [_panel(panel, drawn) for panel in drawn.panels],
            _time_axis(drawn.span),
            class_="plots", tabindex="0", role="group", data_key=f"{drawn.name}-plots",
            aria_label=f"{drawn.about}. {keys}", data_chart=_facts(drawn),
        ),
        el("output", _latest(drawn), class_="readout", aria_live="off"),
        _marks(drawn.marks),
        _table(drawn, begins),
        class_="chart", id=drawn.name,
    )  # fmt: skip


def top_of(panel: Panel) -> float:
    """The upper end of the axis: a round number that no value is above."""
    known = [value for line in panel.lines for value in line.values if value is not None]
    high = max(known, default=0.0)
    if high <= 0:
        return 1.0
    unit = 10.0 ** floor(log10(high))
    enough = (step * unit for step in ROUND if step * unit >= high * NEARLY)
    top = next(enough)
    return float(max(2, ceil(top))) if panel.is_whole else top


def points_of(line: Line, top: float) -> Iterator[list[tuple[int, float]]]:
    """Stretches of known values, in a panel's own coordinates."""
    last = max(len(line.values) - 1, 1)
    part: list[tuple[int, float]] = []
    for place, value in enumerate(line.values):
        if value is None:
            if part:
                yield part
            part = []
        else:
            height = round(HEIGHT - min(value, top) / top * HEIGHT, 1)
            part.append((round(place / last * WIDTH), height))
    if part:
        yield part


def _panel(panel: Panel, drawn: Chart) -> Html:
    top = top_of(panel)
    legend = [el("span", one.name, class_=f"key {one.look}") for one in panel.lines]
    grid = el("path", d=f"M0 0H{WIDTH}M0 {HEIGHT // 2}H{WIDTH}M0 {HEIGHT}H{WIDTH}", class_="grid")
    lines = [_drawn(line, top) for line in panel.lines]
    picture = el(
        "svg", grid, _mark_lines(drawn), lines, el("path", d="", class_="cross"),
        viewBox=f"0 0 {WIDTH} {HEIGHT}", preserveAspectRatio="none", aria_hidden="true",
    )  # fmt: skip
    axis = [el("span", panel.words(value)) for value in (top, top / 2, 0.0)]
    return el(
        "div",
        el("p", el("strong", panel.title), " ", legend, class_="legend"),
        el("div", axis, class_="axis", aria_hidden="true"),
        el("div", picture, class_="plot"),
        class_="panel",
    )


def _drawn(line: Line, top: float) -> Html:
    strokes, areas = "", ""
    for part in points_of(line, top):
        (first, height), *rest = part
        way = "".join(f"L{x} {y:g}" for x, y in rest) or f"L{first + 1} {height:g}"
        strokes += f"M{first} {height:g}{way}"
        areas += f"M{first} {HEIGHT}V{height:g}{way}V{HEIGHT}Z"
    area = el("path", d=areas, class_=f"area {line.look}") if "filled" in line.look else None
    return join(area, el("path", d=strokes, class_=f"line {line.look}", data_line=line.name))


def _mark_lines(drawn: Chart) -> Html:
    places = sorted({_place(one.at, drawn.span) for one in drawn.marks})
    way = "".join(f"M{round(place * WIDTH)} 0V{HEIGHT}" for place in places if 0 <= place <= 1)
    return el("path", d=way, class_="mark") if way else join()


def _place(at: float, span: Span) -> float:
    """From 0 to 1."""
    first, last = span.begins[0], span.begins[-1]
    return (at - at % span.step - first) / max(1, last - first)


def _time_axis(span: Span) -> Html:
    first, last = span.begins[0], span.begins[-1]
    moments = [first + (last - first) * part / LABELS for part in range(LABELS + 1)]
    return el("div", [_clock(at, span) for at in moments], class_="times", aria_hidden="true")


def _clock(at: float, span: Span) -> Html:
    moment = datetime.fromtimestamp(at, UTC)
    is_long = span.until - span.since > DAY_SECONDS
    words = f"{moment:%d %b %H:%M}" if is_long else f"{moment:%H:%M}"
    return el("time", words, datetime=f"{moment:%Y-%m-%dT%H:%M:%SZ}", data_short=True)


def _facts(drawn: Chart) -> str:
    """What the script reads out. The values of a line are one text, since each quotation mark
    would take six characters of an attribute.
    """
    lines = [
        [line.name, BETWEEN.join("" if one is None else panel.words(one) for one in line.values)]
        for panel in drawn.panels
        for line in panel.lines
    ]
    marks = [[one.at, _mark_words(one)] for one in drawn.marks]
    first, step = drawn.span.begins[0], drawn.span.step
    facts = {"first": first, "step": step, "lines": lines, "marks": marks}
    return json.dumps(facts, ensure_ascii=False, separators=(",", ":"))


def _latest(drawn: Chart) -> str:
    named = [(panel, line) for panel in drawn.panels for line in panel.lines]
    known = [
        (line.name, panel.words(value))
        for panel, line in named
        if (value := next((one for one in reversed(line.values) if one is not None), None))
        is not None
    ]
    return "latest: " + (", ".join(f"{name} {words}" for name, words in known) or "nothing yet")


def _mark_words(one: PastMark) -> str:
    what = {"config.reloaded": "reload"}.get(one.mark.what, one.mark.what.replace(".", " "))
    return cut(f"{what}: {one.mark.node}, {one.mark.said}", MARK_WIDTH)


def _marks(marks: Sequence[PastMark]) -> Html | None:
    shown = [
        el("li", ui.moment(datetime.fromtimestamp(one.at, UTC)), " ", _mark_words(one))
        for one in reversed(marks[-MARKS_SHOWN:])
    ]
    return el("ul", shown, class_="plain marks") if shown else None


def _table(drawn: Chart, begins: Sequence[int]) -> Html:
    """The same for those who do not see it: some steps, the latest first."""
    every = max(1, ceil(len(begins) / ROWS_MAX))
    places = range(len(begins) - 1, -1, -every)
    named = [(panel, line) for panel in drawn.panels for line in panel.lines]
    heads = [el("th", name, scope="col") for name in ("from", *(line.name for _, line in named))]
    rows = [
        el(
            "tr",
            el("td", ui.moment(datetime.fromtimestamp(begins[place], UTC))),
            [el("td", _cell(panel, line.values[place])) for panel, line in named],
        )
        for place in places
    ]
    caption = f"{drawn.about}: steps of {duration_text(drawn.span.step)}"
    made = el("table", el("caption", caption), el("thead", el("tr", heads)), el("tbody", rows))
    region = el("div", made, class_="scroll", tabindex="0", role="region", aria_label=caption)
    return el("details", el("summary", "As a table"), region, id=f"{drawn.name}-table")


def _cell(panel: Panel, value: Value) -> str:
    return ui.NOTHING if value is None else panel.words(value)
