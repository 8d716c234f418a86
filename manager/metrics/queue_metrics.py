"""What Prometheus reads of the queues: what each store counted last."""

from __future__ import annotations

from collections.abc import Iterable

from attrs import define, field
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from musterd.store.lifecycle import JobState
from musterd.store.queue import Counts


@define(eq=False)
class QueueCollector(Collector):
    """Nothing of a store before it has been asked, and while it does not say."""

    by_tenant: dict[str, Counts] = field(factory=dict[str, Counts])

    def collect(self) -> Iterable[GaugeMetricFamily | CounterMetricFamily]:
        jobs = GaugeMetricFamily(
            "musterd_jobs", "Jobs in the store, by state.", labels=["tenant", "state"]
        )
        depth = _gauge("queue_depth", "Jobs that are due and claimable.")
        oldest = _gauge(
            "queue_oldest_age_seconds", "How long the longest-waiting due job has waited."
        )
        paused = _gauge(
            "queue_paused", "1 while nothing is claimed since somebody paused the queue."
        )
        halted = _gauge(
            "targets_halted", "Targets that a paused or failed job halts; 1,000 at most."
        )
        enqueued = CounterMetricFamily(
            "musterd_jobs_enqueued", "Jobs ever enqueued, from any source.", labels=["tenant"]
        )
        # Copied first: this runs in a thread, while the loop goes on.
        for tenant, counts in list(self.by_tenant.items()):
            for state in JobState:
                jobs.add_metric([tenant, state.value], counts.by_state.get(state, 0))
            depth.add_metric([tenant], counts.due)
            oldest.add_metric([tenant], counts.oldest_due_seconds)
            paused.add_metric([tenant], int(counts.paused_at is not None))
            halted.add_metric([tenant], counts.targets_halted)
            enqueued.add_metric([tenant], counts.enqueued_total)
        return (jobs, depth, oldest, paused, halted, enqueued)


def _gauge(name: str, help_text: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"musterd_{name}", help_text, labels=["tenant"])
