"""The shipped dashboards as Grafana reads them: what they ask, with the variables put in."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import attrs

from tests.support.pages import ROOT

FOLDER = ROOT / "deploy" / "grafana" / "dashboards"
FILES = sorted(FOLDER.glob("*.json"))

_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")
_LABEL_VALUES = re.compile(r"label_values\((.+), (\w+)\)")
_SPECIAL = re.compile(r"[\\^$*+?.()|{}\[\]]")


@attrs.frozen
class Asked:
    """A query and the place at which it stands. `instant`: only its value of now counts."""

    place: str
    expr: str
    instant: bool = False


@attrs.frozen
class Choice:
    """A variable's query: the values of `label` in the series that `series` names."""

    place: str
    name: str
    series: str
    label: str


def dashboards() -> list[dict[str, Any]]:
    return [json.loads(file.read_text("utf-8")) for file in FILES]


def panels(dashboard: Mapping[str, Any]) -> list[dict[str, Any]]:
    """All of them, the headings between them left out."""
    return [panel for panel in dashboard["panels"] if panel["type"] != "row"]


def asked(dashboard: Mapping[str, Any]) -> Iterator[Asked]:
    """What its panels and its marks ask."""
    title = dashboard["title"]
    for panel in panels(dashboard):
        for target in panel["targets"]:
            place = f"{title}: {panel['title']} ({target['refId']})"
            yield Asked(place, target["expr"], target.get("instant", False))
    for mark in dashboard["annotations"]["list"]:
        yield Asked(f"{title}: mark {mark['name']}", mark["expr"])


def choices(dashboard: Mapping[str, Any]) -> Iterator[Choice]:
    """What its variables ask."""
    for variable in dashboard["templating"]["list"]:
        if variable["type"] == "query":
            found = _LABEL_VALUES.fullmatch(variable["query"]["query"])
            assert found, f"{variable['name']}: {variable['query']}"
            yield Choice(dashboard["title"], variable["name"], found[1], found[2])


def filled(text: str, values: Mapping[str, str]) -> str:
    """With each `$name` and `${name}` replaced. Fails for a name that has no value."""
    return _VARIABLE.sub(lambda found: values[found[1] or found[2]], text)


def chosen(values: list[str]) -> str:
    """What Grafana puts in for several values of a variable, each taken as it is."""
    return "(" + "|".join(_SPECIAL.sub(r"\\\\\g<0>", value) for value in values) + ")"


def spans(step_seconds: float, scrape_seconds: float, range_seconds: float) -> dict[str, str]:
    """The variables of time, as Grafana works them out."""
    rate = max(step_seconds + scrape_seconds, 4 * scrape_seconds)
    return {
        "__interval": f"{step_seconds:g}s",
        "__rate_interval": f"{rate:g}s",
        "__range": f"{range_seconds:.0f}s",
    }
