"""Turns a board into the JSON that Grafana reads, by the types of Grafana's own kit."""

from __future__ import annotations

import json
from typing import Any, TypeVar

from grafana_foundation_sdk.builders import common as common_builders
from grafana_foundation_sdk.builders import dashboard as builders
from grafana_foundation_sdk.builders import prometheus, stat, timeseries
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import common, dashboard

from deploy.grafana.source.shape import FULL_WIDTH, Board, Panel

P = TypeVar("P", stat.Panel, timeseries.Panel)
HEIGHTS = {"number": 4, "lines": 8, "areas": 8}
SOURCE = common.DataSourceRef(type_val="prometheus", uid="${datasource}")
TAG = "musterd"
# Where the documentation is served: Grafana's own folder of public files, if docs/ is put there.
DOCS_AT = "/public/musterd"

# Legends that are words of musterd's own keep their colour on all pages.
WORD_COLOURS = {
    "succeeded": "green",
    "failed": "red",
    "canceled": "purple",
    "retrying": "orange",
    "running": "blue",
    "queued": "yellow",
    "paused": "orange",
    "lost": "dark-red",
    "busy": "blue",
    "idle": "green",
    "retiring": "orange",
    "in": "blue",
    "out": "green",
    "largest": "red",
    "wished": "purple",
    "delivered": "green",
    "retried": "orange",
    "error": "red",
    "ok": "green",
}
WORD_LABELS = ("outcome", "state", "result")


def drawn(board: Board) -> str:
    """The text of the board's file."""
    made = (
        builders.Dashboard(board.title)
        .uid(board.uid)
        .description(board.says)
        .tags([TAG])
        .readonly()
        .tooltip(dashboard.DashboardCursorSync.CROSSHAIR)
        .time("now-1h", "now")
        .refresh("30s")
        .timezone("browser")
        .link(_others())
        .annotation(_reloads())
    )
    for variable in _variables():
        made.with_variable(variable)
    taken = 0
    for section in board.sections:
        taken += 1
        made.with_row(builders.Row(section.title).id(taken))
        for panel in section.panels:
            taken += 1
            made.with_panel(
                _number(panel, taken) if panel.look == "number" else _chart(panel, taken)
            )
        _check_lines(section.title, [panel.width for panel in section.panels])
    plain = json.loads(json.dumps(made.build(), cls=JSONEncoder), object_hook=_in_sight)
    return json.dumps(plain, indent=2, sort_keys=True) + "\n"


def _in_sight(found: dict[str, Any]) -> dict[str, Any]:
    """Without `placement`: as the kit has it, links and marks would be folded away in a menu."""
    return {key: value for key, value in found.items() if key != "placement"}


def _check_lines(title: str, widths: list[int]) -> None:
    """A line that is not full would push what follows over what stands there."""
    taken = 0
    for width in widths:
        taken += width
        if taken > FULL_WIDTH:
            raise ValueError(f"{title}: panels of {taken} in a line, {FULL_WIDTH} have room")
        taken %= FULL_WIDTH
    if taken:
        raise ValueError(f"{title}: the last line has {taken}, and is full with {FULL_WIDTH}")


def _variables() -> list[Any]:
    """Job, instance, tenant and kind as they are found; all of each at first."""
    asked = {
        "job": "label_values(musterd_build_info, job)",
        "instance": 'label_values(musterd_build_info{job=~"$job"}, instance)',
        "tenant": 'label_values(musterd_workers{job=~"$job"}, tenant)',
        "kind": 'label_values(musterd_job_wait_seconds_count{job=~"$job"}, kind)',
    }
    source = builders.DatasourceVariable("datasource").label("data source").type("prometheus")
    docs = (
        builders.TextBoxVariable("docs")
        .label("docs at")
        .description("Where the pages of docs/ are served; links of panels lead there.")
        .default_value(DOCS_AT)
        .current(dashboard.VariableOption(text=DOCS_AT, value=DOCS_AT))
        .hide(dashboard.VariableHide.HIDE_VARIABLE)
    )
    return [source, *(_asked(name, query) for name, query in asked.items()), docs]


def _asked(name: str, query: str) -> builders.QueryVariable:
    return (
        builders.QueryVariable(name)
        .label(name)
        .datasource(SOURCE)
        .query({"query": query, "refId": name, "qryType": 5})
        .definition(query)
        .refresh(dashboard.VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(dashboard.VariableSort.ALPHABETICAL_ASC)
        .multi(multi=True)
        .include_all(include_all=True)
        .all_value(".*")
        .current(dashboard.VariableOption(selected=True, text="All", value="$__all"))
    )


def _others() -> builders.DashboardLink:
    return (
        builders.DashboardLink("musterd")
        .type(dashboard.DashboardLinkType.DASHBOARDS)
        .tags([TAG])
        .include_vars(include_vars=True)
        .keep_time(keep_time=True)
    )


def _reloads() -> builders.AnnotationQuery:
    """A mark where a node started or took another configuration."""
    series = 'musterd_config_last_reload_timestamp_seconds{job=~"$job", instance=~"$instance"}'
    return (
        builders.AnnotationQuery()
        .name("started or reloaded")
        .datasource(SOURCE)
        .enable(enable=True)
        .icon_color("blue")
        .expr(f"{series} * 1000")
        .step("60s")
        .use_value_for_time(use_value_for_time=True)
        .title_format("{{instance}}: configuration taken")
    )


def _begun(made: P, panel: Panel, number: int) -> P:
    """With what panels of every look have."""
    return (
        made.id(number)
        .title(panel.title)
        .description(_description(panel))
        .datasource(SOURCE)
        .unit(panel.unit)
        .span(panel.width)
        .height(HEIGHTS[panel.look])
        .links(_links(panel))
        .thresholds(_limits(panel))
    )


def _chart(panel: Panel, number: int) -> timeseries.Panel:
    made = (
        _begun(timeseries.Panel(), panel, number)
        .min(0)
        .tooltip(
            common_builders.VizTooltipOptions()
            .mode(common.TooltipDisplayMode.MULTI)
            .sort(common.SortOrder.DESCENDING)
        )
        .legend(_legend())
        .show_points(common.VisibilityMode.NEVER)
    )
    if panel.look == "areas":
        made.fill_opacity(30).stacking(
            common_builders.StackingConfig().mode(common.StackingMode.NORMAL)
        )
    if panel.limits:
        dashed = common.GraphThresholdsStyleMode.DASHED
        made.thresholds_style(common_builders.GraphThresholdsStyleConfig().mode(dashed))
    if panel.whole is not None:
        made.axis_soft_max(panel.whole)
    for word in _words(panel):
        colour = {"mode": "fixed", "fixedColor": WORD_COLOURS[word]}
        made.override_by_name(word, [dashboard.DynamicConfigValue(id_val="color", value=colour)])
    for query in _targets(panel, instant=False):
        made.with_target(query)
    return made


def _legend() -> common_builders.VizLegendOptions:
    return (
        common_builders.VizLegendOptions()
        .display_mode(common.LegendDisplayMode.LIST)
        .placement(common.LegendPlacement.BOTTOM)
        .show_legend(show_legend=True)
    )


def _number(panel: Panel, number: int) -> stat.Panel:
    made = (
        _begun(stat.Panel(), panel, number)
        .color_mode(common.BigValueColorMode.BACKGROUND)
        .graph_mode(common.BigValueGraphMode.NONE)
        .reduce_options(common_builders.ReduceDataOptions().calcs(["lastNotNull"]))
        .no_value("nothing known")
    )
    for query in _targets(panel, instant=True):
        made.with_target(query)
    return made


def _targets(panel: Panel, *, instant: bool) -> list[prometheus.Dataquery]:
    made: list[prometheus.Dataquery] = []
    for place, asked in enumerate(panel.queries):
        query = prometheus.Dataquery().ref_id(chr(ord("A") + place)).datasource(SOURCE)
        query.expr(asked.expr).legend_format(asked.legend or "__auto")
        made.append(query.instant() if instant else query.range())
    return made


def _limits(panel: Panel) -> builders.ThresholdsConfig:
    steps = [dashboard.Threshold(value=None, color=panel.base)]
    steps += [dashboard.Threshold(value=one.value, color=one.colour) for one in panel.limits]
    return builders.ThresholdsConfig().mode(dashboard.ThresholdsMode.ABSOLUTE).steps(steps)


def _description(panel: Panel) -> str:
    """With the page, also for those who cannot follow its link."""
    return f"{panel.says}\n\n{_page(panel)}" if _page(panel) else panel.says


def _page(panel: Panel) -> str:
    if panel.runbook:
        return f"docs/runbooks/{panel.runbook}.md"
    return f"docs/{panel.page}.md" if panel.page else ""


def _links(panel: Panel) -> list[Any]:
    page = _page(panel)
    if not page:
        return []
    title = f"What to do: {panel.runbook}" if panel.runbook else f"More: {panel.page}"
    url = "${docs}" + page.removeprefix("docs")
    return [
        builders.DashboardLink(title)
        .type(dashboard.DashboardLinkType.LINK)
        .url(url)
        .target_blank(target_blank=True)
    ]


def _words(panel: Panel) -> list[str]:
    """Which legends of the panel may be words that have a colour."""
    legends = [query.legend for query in panel.queries]
    if any(legend == f"{{{{{label}}}}}" for label in WORD_LABELS for legend in legends):
        return sorted(WORD_COLOURS)
    return sorted(set(legends) & set(WORD_COLOURS))
