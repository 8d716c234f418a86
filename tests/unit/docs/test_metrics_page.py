"""The page on metrics tells each metric that there is, with its type and labels, and no other."""

from prometheus_client.parser import text_string_to_metric_families

from musterd.config.settings import Metrics as MetricsSettings
from musterd.manager.metrics import Metrics
from musterd.manager.view import Decision
from musterd.store.job import AttemptOutcome, Counts, JobState
from musterd.workers.listener import Report
from tests.support.pages import bare, codes, page, table

PAGE = page("metrics.md")
OWN_LABELS = {"le"}  # of the format, not of the metric


def exported() -> dict[str, tuple[str, frozenset[str]]]:
    """Type and labels of each metric, from a rendering in which each has been told of."""
    metrics = Metrics(MetricsSettings((1.0,), (1.0,), 10), "1")
    retrying, ended = AttemptOutcome.RETRYING, AttemptOutcome.SUCCEEDED
    metrics.counts(Counts({}, 0, 0, 0.0, None, None))
    metrics.claimed("report", 0.1)
    metrics.settled([Report(1, "report", 1, 1, retrying, JobState.QUEUED, 0.1, None)])
    metrics.settled([Report(1, "report", 2, 1, ended, JobState.SUCCEEDED, 0.1, None)])
    metrics.scaled(Decision(0.0, "demand", 0, 0, 2, 0, 2, "min", 0, 0, 0))
    metrics.crew(1, 1, 0)
    metrics.store_operation("claim", 0.1)
    metrics.store_error("claim")
    metrics.duties.ran("reaping", 1.0, well=True)
    found: dict[str, tuple[str, frozenset[str]]] = {}
    for family in text_string_to_metric_families(metrics.render().decode()):
        name = f"{family.name}_total" if family.type == "counter" else family.name
        labels = {label for sample in family.samples for label in sample.labels}
        found[name] = (family.type, frozenset(labels - OWN_LABELS))
    return found


def told() -> dict[str, tuple[str, frozenset[str]]]:
    return {
        bare(name): (kind, frozenset(codes(labels)))
        for section in PAGE.split("\n## ")[1:]
        if "| metric |" in section
        for name, kind, labels, *_ in table(section, "metric", "type", "labels")
    }


def test_each_metric_is_told_with_its_type_and_labels() -> None:
    assert told() == {name: what for name, what in exported().items() if "musterd" in name}


def test_what_the_page_says_of_the_process_is_exported() -> None:
    promised = {code for code in codes(PAGE) if code.startswith("process_")}
    assert promised == {name for name in exported() if name.startswith("process_")}
