"""`python -m tests.bench.plots FILE`: plots and tables for the docs, out of what
`python -m tests.bench.growth --json FILE` has written.

Plain SVG on no background, in colours that can be read on light and on dark.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from html import escape
from pathlib import Path

import attrs

from tests.bench.growth.figures import Row
from tests.bench.growth.telling import Told, last_runs, table
from tests.bench.running import ROOT

PAGE = ROOT / "docs" / "benchmarks.md"
PLOTS = ROOT / "docs" / "plots"
BEGIN, END = "<!-- growth: begin -->", "<!-- growth: end -->"

WIDTH, ROW, TOP, BOTTOM = 800, 30, 62, 12
LABEL_WIDTH, PANEL_WIDTH, FIGURE_WIDTH = 275, 170, 80
TEXT, FAINT = "#7d8590", "#7d859055"
RATE, DAEMON, SERVER = "#3d8fd1", "#c98a2b", "#8a78c9"
FONT = "font-family='system-ui, sans-serif' font-size='13'"


@attrs.frozen
class Panel:
    """One bar a row, of one or more parts. A dashed line stands where the first bar ends."""

    title: str
    parts: Callable[[Row], Sequence[tuple[float, str]]]
    figure: Callable[[Row], str]
    legend: Sequence[tuple[str, str]] = ()


RATES = Panel("jobs a second", lambda row: [(row.rate, RATE)], lambda row: f"{row.rate:,.0f}")
CLAIMS = Panel(
    "a claim, p50",
    lambda row: [(row.claim_milliseconds or 0.0, RATE)],
    lambda row: f"{row.claim_milliseconds or 0.0:.2f} ms",
)
SHARES = Panel(
    "share of what they allow",
    lambda row: [(row.rate / (row.ideal or row.rate), RATE)],
    lambda row: f"{row.rate / (row.ideal or row.rate):.2f}",
)
WORK = Panel(
    "processor time a job",
    lambda row: [(row.daemon_microseconds, DAEMON), (row.server_microseconds, SERVER)],
    lambda row: f"{row.microseconds:.1f} µs",
    [("daemon", DAEMON), ("server", SERVER)],
)


def plot(told: Told) -> str:
    """The whole SVG, as text."""
    height = TOP + ROW * len(told.rows) + BOTTOM
    size = f"viewBox='0 0 {WIDTH} {height}' width='{WIDTH}' height='{height}'"
    lines = [
        f"<svg xmlns='http://www.w3.org/2000/svg' {size} role='img' {FONT} fill='{TEXT}'>",
        f"<title>{escape(told.story.title)}</title>",
        f"<text x='0' y='18' font-size='15' font-weight='600'>{escape(told.story.title)}</text>",
    ]
    for number, row in enumerate(told.rows):
        lines.append(_text(0, _middle(number), row.label))
    for number, panel in enumerate((_measured(told.rows[0]), WORK)):
        left = LABEL_WIDTH + number * (PANEL_WIDTH + FIGURE_WIDTH + 10)
        lines += _panel(panel, told.rows, left)
    return "\n".join([*lines, "</svg>", ""])


def _measured(row: Row) -> Panel:
    if row.claim_milliseconds is not None:
        return CLAIMS
    return RATES if row.ideal is None else SHARES


def _panel(panel: Panel, rows: Sequence[Row], left: float) -> Iterator[str]:
    totals = [sum(size for size, _ in panel.parts(row)) for row in rows]
    scale = PANEL_WIDTH / (max(totals) or 1.0)
    yield _text(left, 48, panel.title)
    at = left
    for name, colour in panel.legend:
        yield f"<rect x='{at:.0f}' y='8' width='10' height='10' rx='2' fill='{colour}'/>"
        yield _text(at + 15, 18, name)
        at += 8 * len(name) + 30
    for number, row in enumerate(rows):
        at = left
        for size, colour in panel.parts(row):
            wide = size * scale
            yield (
                f"<rect x='{at:.1f}' y='{TOP + number * ROW + 5}' width='{wide:.1f}'"
                f" height='{ROW - 10}' rx='2' fill='{colour}'/>"
            )
            at += wide
        yield _text(at + 6, _middle(number), panel.figure(row))
    first, bottom = left + totals[0] * scale, TOP + ROW * len(rows)
    yield (
        f"<line x1='{first:.1f}' y1='{TOP}' x2='{first:.1f}' y2='{bottom}'"
        f" stroke='{FAINT}' stroke-dasharray='3 3'/>"
    )


def _middle(number: int) -> float:
    return TOP + number * ROW + ROW / 2 + 4.5


def _text(x: float, y: float, text: str) -> str:
    return f"<text x='{x:.0f}' y='{y:.0f}'>{escape(text)}</text>"


def told_in_page(page: str, runs: Sequence[Told]) -> str:
    """The page with these runs in the place of the earlier ones."""
    before, _, rest = page.partition(BEGIN)
    _, found, after = rest.partition(END)
    if not found:
        raise SystemExit(f"found no {BEGIN} … {END} in {PAGE.name}")
    return before + "\n".join([BEGIN, *_section(runs), END]) + after


def _section(runs: Sequence[Told]) -> Iterator[str]:
    for told in runs:
        scale = "" if told.scale == 1 else f", {told.scale:g} times the jobs"
        yield from ("", f"### {told.story.title}", "", f"Aim: {told.story.aim}.", "")
        yield f"![{told.story.title}](plots/growth-{told.case}.svg)"
        yield from ("", *table(told), "")
        yield f"Taken {told.taken} UTC, commit {told.commit}, {told.machine}{scale}."
    yield ""


def main(words: Sequence[str]) -> None:
    if len(words) != 1:
        sys.exit(__doc__)
    runs = last_runs(Path(words[0]))
    PLOTS.mkdir(exist_ok=True)
    for told in runs:
        path = PLOTS / f"growth-{told.case}.svg"
        path.write_text(plot(told))
        print(path.relative_to(ROOT))
    PAGE.write_text(told_in_page(PAGE.read_text(), runs))
    print(PAGE.relative_to(ROOT))


if __name__ == "__main__":
    main(sys.argv[1:])
