"""What is counted for every job, kept as plain numbers: a fraction of what instruments cost.

A collector turns the numbers into metrics when somebody asks.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence

from attrs import define, field
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector

from musterd.store.lifecycle import AttemptOutcome, JobState

OTHER = "other"
OUTCOMES = (JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELED)


class Spread:
    """A histogram: how many values fell up to each bound, and their sum."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def observe(self, values: Sequence[float]) -> None:
        """What is below 0 counts as 0: two clocks may differ by a little."""
        if max(values) <= self.bounds[0]:
            self.counts[0] += len(values)
        else:
            for value in values:
                self.counts[bisect_left(self.bounds, value)] += 1
        self.total += sum([value for value in values if value > 0])

    def buckets(self) -> list[tuple[str, float]]:
        """Cumulated, as Prometheus wants them; the last is `+Inf`."""
        found: list[tuple[str, float]] = []
        so_far = 0
        for bound, count in zip(self.bounds, self.counts, strict=False):
            so_far += count
            found.append((repr(float(bound)), so_far))
        found.append(("+Inf", so_far + self.counts[-1]))
        return found


@define(eq=False)
class KindCounters:
    """The numbers of one kind; what has ended by tenant and state."""

    waited: Spread
    retries: int = 0
    finished: dict[tuple[str, JobState], int] = field(factory=dict[tuple[str, JobState], int])
    ran: dict[AttemptOutcome, Spread] = field(factory=dict[AttemptOutcome, Spread])


@define(eq=False)
class JobCounters(Collector):
    """By kind, at most `kinds_max` of them; the kinds beyond share the label `other`."""

    kinds_max: int
    wait_bounds: Sequence[float]
    run_bounds: Sequence[float]
    kinds: dict[str, KindCounters] = field(factory=dict[str, KindCounters], init=False)

    def of(self, kind: str) -> KindCounters:
        found = self.kinds.get(kind)
        if found is None:
            label = kind if len(self.kinds) < self.kinds_max else OTHER
            found = self.kinds.get(label)
            if found is None:
                found = self.kinds[label] = KindCounters(Spread(self.wait_bounds))
        return found

    def ran(self, tally: KindCounters, outcome: AttemptOutcome) -> Spread:
        found = tally.ran.get(outcome)
        if found is None:
            found = tally.ran[outcome] = Spread(self.run_bounds)
        return found

    def forget(self, tenant: str) -> None:
        """Drops the series of a tenant that is no longer served."""
        for tally in self.kinds.values():
            tally.finished = {key: n for key, n in tally.finished.items() if key[0] != tenant}

    def collect(self) -> Iterable[CounterMetricFamily | HistogramMetricFamily]:
        # Copied first: this runs in a thread, while the loop goes on counting.
        kinds = list(self.kinds.items())
        return (
            self._claimed(kinds),
            self._finished(kinds),
            self._retries(kinds),
            self._waited(kinds),
            self._ran(kinds),
        )

    def _claimed(self, kinds: list[tuple[str, KindCounters]]) -> CounterMetricFamily:
        total = sum(sum(tally.waited.counts) for _, tally in kinds)
        return CounterMetricFamily(
            "musterd_jobs_claimed", "Jobs claimed by this node.", value=total
        )

    def _finished(self, kinds: list[tuple[str, KindCounters]]) -> CounterMetricFamily:
        family = CounterMetricFamily(
            "musterd_jobs_finished",
            "Jobs ended by this node.",
            labels=["tenant", "kind", "outcome"],
        )
        for kind, tally in kinds:
            finished = dict(tally.finished)
            # All outcomes of a kind begin together, so that its first failure is a rise from 0.
            for tenant in dict.fromkeys(tenant for tenant, _ in finished):
                for state in OUTCOMES:
                    family.add_metric([tenant, kind, state.value], finished.get((tenant, state), 0))
        return family

    def _retries(self, kinds: list[tuple[str, KindCounters]]) -> CounterMetricFamily:
        family = CounterMetricFamily(
            "musterd_job_retries", "Attempts that ended in a retry.", labels=["kind"]
        )
        for kind, tally in kinds:
            family.add_metric([kind], tally.retries)
        return family

    def _waited(self, kinds: list[tuple[str, KindCounters]]) -> HistogramMetricFamily:
        family = HistogramMetricFamily(
            "musterd_job_wait_seconds", "From a job's due time to its claim.", labels=["kind"]
        )
        for kind, tally in kinds:
            family.add_metric([kind], tally.waited.buckets(), tally.waited.total)
        return family

    def _ran(self, kinds: list[tuple[str, KindCounters]]) -> HistogramMetricFamily:
        family = HistogramMetricFamily(
            "musterd_job_run_seconds", "How long an attempt ran.", labels=["kind", "outcome"]
        )
        for kind, tally in kinds:
            for outcome, spread in list(tally.ran.items()):
                family.add_metric([kind, outcome.value], spread.buckets(), spread.total)
        return family
