"""What a dashboard is made of, without a word of Grafana's."""

from __future__ import annotations

from typing import Literal

import attrs

FULL_WIDTH = 24

Colour = Literal["green", "yellow", "orange", "red", "blue"]


@attrs.frozen
class Query:
    """What Prometheus is asked, and the name that each answer gets: `{{label}}` is its value."""

    expr: str
    legend: str = ""


@attrs.frozen
class Limit:
    """From `value` on it has that colour; below the first one that of the panel's `base`."""

    value: float
    colour: Colour


@attrs.frozen
class Panel:
    """`says` is for people: what it tells, then what to do. `runbook` names an alert, `page` a page
    of the documentation. `whole` = the least that stands at the top of the scale.
    """

    title: str
    says: str
    queries: tuple[Query, ...]
    unit: str = "short"
    look: Literal["lines", "areas", "number"] = "lines"  # areas: stacked; number: the last value
    limits: tuple[Limit, ...] = ()
    base: Colour = "green"
    runbook: str = ""
    page: str = ""
    width: int = 8
    whole: float | None = None


@attrs.frozen
class Section:
    """Panels under one heading. They fill whole lines of the page: their widths add up to that."""

    title: str
    panels: tuple[Panel, ...]


@attrs.frozen
class Board:
    """One dashboard. `uid` is its address in Grafana and stays for ever; `file` has its name."""

    uid: str
    title: str
    says: str
    sections: tuple[Section, ...]

    @property
    def file(self) -> str:
        return f"{self.uid}.json"

    @property
    def panels(self) -> list[Panel]:
        return [panel for section in self.sections for panel in section.panels]
