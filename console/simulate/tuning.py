"""`musterd tune`: finds counts that keep waits short at the least cost, and reports them. Waits
fall as the crew may grow, so each search halves what is left. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal

import attrs

from musterd.config.tenant_names import DEFAULT_TENANT
from musterd.config.toml_text import key_text
from musterd.console.output import Columns, table_of
from musterd.console.simulate.confidence import Confidence, confidence_sentence
from musterd.console.simulate.showing import trace_lines, trace_object
from musterd.manager.scaling.model.figures import (
    PLACES,
    Figures,
    figures_object,
    figures_of,
    quantile,
)
from musterd.manager.scaling.model.settings import ModelSettings
from musterd.manager.scaling.model.simulation import simulate
from musterd.manager.scaling.model.trace import Trace
from musterd.store.words import count_text, duration_text

SIMULATIONS_MAX = 40
COUNT_MAX = 10_000  # what the configuration allows
GAIN_SECONDS = 0.01  # less is no gain
GAIN_SHARE = 0.01
LOWER_SHARE = 0.05
NOT_TRIED = (
    "Not tried: up_step, down_step, tolerance_percent, stabilization_seconds, the cooldowns, hours,"
    " scale_interval_ms. Try those with `musterd simulate --with`."
)

Mark = Literal["present", "recommended", "same floor", "no gain beyond", "policy latency"]


@attrs.frozen
class Aim:
    """This share of the attempts waits no longer than that."""

    share: float
    wait_seconds: float


@attrs.frozen(order=True)
class Counts:
    """`workers.default_count` and `workers.max_count`."""

    least: int
    most: int


@attrs.frozen
class Candidate:
    """`wait_seconds` is at the aim's share."""

    counts: Counts
    wait_seconds: float
    figures: Figures
    marks: tuple[Mark, ...]


@attrs.frozen
class Advice:
    """`useful_most`: a larger crew would not shorten waits; None = not found in time. `latency`:
    the recommended counts under that policy, with the aim as promise; None = it is the policy, or
    the aim is no promise. `confidence` None = the jobs are of another store.
    """

    aim: Aim
    reached: bool
    present: Candidate
    recommended: Candidate
    candidates: Sequence[Candidate]  # both among them, the smallest first
    useful_most: int | None
    simulations: int
    latency: Candidate | None = None
    confidence: Confidence | None = None

    @property
    def proposed_wait_seconds(self) -> float:
        best = self.latency if self.latency is not None and self.prefers_latency else None
        return (best or self.recommended).wait_seconds

    @property
    def prefers_latency(self) -> bool:
        """Whether the policy reaches the aim too, at a cost that is clearly lower."""
        if self.latency is None or self.latency.wait_seconds > self.aim.wait_seconds:
            return False
        cost = self.recommended.figures.worker_seconds
        return self.latency.figures.worker_seconds < (1 - LOWER_SHARE) * cost


def tune(
    trace: Trace,
    settings: ModelSettings,
    aim: Aim,
    progress: Callable[[int], None] = lambda _: None,
) -> Advice:
    """Searches; calls `progress` after each simulation."""
    search = _Search(trace, settings, aim, progress)
    present = Counts(settings.policy.default_count, settings.policy.max_count)
    most = min(COUNT_MAX, max(present.most, trace.most_wanted))
    search.wait(present)
    reached = search.reaches(Counts(most, most))  # all workers are there from the start
    if reached:
        kept = search.smallest_most(present.least, most)
        recommended = search.cheaper(search.cheapest(present.least, most), kept)
    else:
        kept = Counts(present.least, most)
        recommended = kept
    useful = search.useful_most(recommended.least, most)
    if not reached and useful is not None:
        recommended = kept = Counts(recommended.least, useful)
    beyond = None if useful is None else Counts(recommended.least, useful)
    found = search.candidates(_marked(present, recommended, kept, beyond))
    of = {one.counts: one for one in found}
    latency = search.with_latency(recommended)
    simulations = search.count + (latency is not None)
    return Advice(aim, reached, of[present], of[recommended], found, useful, simulations, latency)


def _marked(
    present: Counts, recommended: Counts, kept: Counts, beyond: Counts | None
) -> dict[Counts, tuple[Mark, ...]]:
    marks: dict[Counts, tuple[Mark, ...]] = {present: ("present",)}
    marks[recommended] = (*marks.get(recommended, ()), "recommended")
    marks.setdefault(kept, ("same floor",))
    if beyond is not None:
        marks.setdefault(beyond, ("no gain beyond",))
    return marks


class _Search:
    """Remembers simulations and limits their number."""

    def __init__(
        self, trace: Trace, settings: ModelSettings, aim: Aim, progress: Callable[[int], None]
    ) -> None:
        self._trace, self._settings, self._aim, self._progress = trace, settings, aim, progress
        self._figures: dict[Counts, Figures] = {}
        self._waits: dict[Counts, float] = {}

    @property
    def count(self) -> int:
        return len(self._waits)

    def wait(self, counts: Counts) -> float:
        if counts not in self._waits:
            policy = attrs.evolve(
                self._settings.policy, default_count=counts.least, max_count=counts.most
            )
            settings = attrs.evolve(self._settings, policy=policy)
            run = simulate(self._trace, settings)
            self._waits[counts] = quantile(sorted(run.waits), self._aim.share)
            self._figures[counts] = figures_of(self._trace, settings, run)
            self._progress(self.count)
        return self._waits[counts]

    def with_latency(self, counts: Counts) -> Candidate | None:
        """These counts under the policy `latency`, with the aim as promise for all kinds."""
        policy, aim_seconds = self._settings.policy, self._aim.wait_seconds
        if policy.policy == "latency" or not aim_seconds:
            return None
        promises = attrs.evolve(policy.promises, max_wait_seconds=aim_seconds)
        policy = attrs.evolve(
            policy,
            policy="latency",
            promises=promises,
            default_count=counts.least,
            max_count=counts.most,
        )
        settings = attrs.evolve(self._settings, policy=policy)
        run = simulate(self._trace, settings)
        self._progress(self.count + 1)
        wait = quantile(sorted(run.waits), self._aim.share)
        figures = figures_of(self._trace, settings, run)
        span = max(one.span_seconds for one in (figures, *self._figures.values()))
        return Candidate(counts, wait, figures.over(span), ("policy latency",))

    def reaches(self, counts: Counts) -> bool:
        return self.wait(counts) <= self._aim.wait_seconds

    def cheapest(self, present: int, most: int) -> Counts:
        """The smallest floor that can reach the aim, then the smallest crew; 0 only if present."""
        floor = min(1, present)
        least = self._first(floor, most, lambda one: self.reaches(Counts(one, most)))
        return self.smallest_most(least, most)

    def smallest_most(self, least: int, most: int) -> Counts:
        """The smallest crew that reaches the aim with this floor; the largest if none does."""
        found = self._first(max(1, least), most, lambda one: self.reaches(Counts(least, one)))
        return Counts(least, found)

    def cheaper(self, one: Counts, other: Counts) -> Counts:
        """The one that reaches the aim; if both or neither do, the cheaper one."""
        reaches = {each: self.reaches(each) for each in (one, other)}
        cost = {each: self._over(each).worker_seconds for each in reaches}
        return min(reaches, key=lambda each: (not reaches[each], cost[each], each))

    def useful_most(self, least: int, most: int) -> int | None:
        """The smallest crew beyond which nothing is gained; None = no simulations left."""
        best = self.wait(Counts(least, most))
        enough = best + max(GAIN_SECONDS, best * GAIN_SHARE)
        found = self._first(
            max(1, least), most, lambda one: self.wait(Counts(least, one)) <= enough
        )
        return found if self._waits.get(Counts(least, found), enough + 1) <= enough else None

    def candidates(self, marks: Mapping[Counts, tuple[Mark, ...]]) -> list[Candidate]:
        """The smallest crew first, over the same span."""
        for counts in marks:
            self.wait(counts)
        return [
            Candidate(counts, self.wait(counts), self._over(counts), marks[counts])
            for counts in sorted(marks, key=lambda one: (one.most, one.least))
        ]

    def _first(self, low: int, high: int, fits: Callable[[int], bool]) -> int:
        """The smallest number that fits, given that all larger ones do; `high` is assumed to."""
        while low < high and self.count < SIMULATIONS_MAX - 4:  # the last few are for the table
            middle = (low + high) // 2
            if fits(middle):
                high = middle
            else:
                low = middle + 1
        return high

    def _over(self, counts: Counts) -> Figures:
        """Its figures over the longest span of all."""
        span = max(one.span_seconds for one in self._figures.values())
        return self._figures[counts].over(span)


def advice_object(
    advice: Advice, trace: Trace, settings: ModelSettings, tenant: str
) -> dict[str, Any]:
    return {
        "tenant": tenant,
        "trace": trace_object(trace),
        "aim": {"quantile": advice.aim.share, "wait_seconds": advice.aim.wait_seconds},
        "reached": advice.reached,
        "present": _candidate_object(advice.present),
        "recommended": _candidate_object(advice.recommended),
        "candidates": [_candidate_object(one) for one in advice.candidates],
        "no_gain_beyond": advice.useful_most,
        "latency": None if advice.latency is None else _candidate_object(advice.latency),
        "confidence": None if advice.confidence is None else attrs.asdict(advice.confidence),
        "simulations": advice.simulations,
        "settings": "\n".join(settings_lines(advice, tenant)),
        "summary": " ".join(summary_lines(advice, settings)),
    }


def _candidate_object(one: Candidate) -> dict[str, Any]:
    return {
        "default_count": one.counts.least,
        "max_count": one.counts.most,
        "wait_seconds": round(one.wait_seconds, PLACES),
        "marks": list(one.marks),
        **figures_object(one.figures),
    }


def advice_lines(advice: Advice, trace: Trace, settings: ModelSettings, tenant: str) -> list[str]:
    aim = f"aim: {_quantile_name(advice)} wait at most {duration_text(advice.aim.wait_seconds)}"
    lines = [*trace_lines(trace), aim, "", *_table(advice), "", *summary_lines(advice, settings)]
    changes = settings_lines(advice, tenant)
    return [*lines, "", *changes] if changes else lines


def settings_lines(advice: Advice, tenant: str) -> list[str]:
    """What is recommended as TOML; empty if it is set already."""
    above = () if tenant == DEFAULT_TENANT else ("tenants", tenant)
    counts, lines = advice.recommended.counts, list[str]()
    if advice.present.counts != counts:
        head = key_text((*above, "workers"))
        lines += [f"[{head}]", f"default_count = {counts.least}", f"max_count = {counts.most}"]
    if advice.prefers_latency:
        promise = f"max_wait_seconds = {advice.aim.wait_seconds:g}"
        blank = [""] if lines else []
        lines += [*blank, "[scaling]", 'policy = "latency"', promise]
    return lines


def summary_lines(advice: Advice, settings: ModelSettings) -> Iterator[str]:
    """What to do, to what effect, and what would not help."""
    yield _change(advice)
    if advice.useful_most is not None:
        beyond = max(advice.useful_most, advice.recommended.counts.most)
        yield f"Beyond max {beyond} there is no gain."
    if not advice.reached:
        yield _unreached(advice, settings)
    elif advice.recommended.counts.least > advice.present.counts.least:
        interval = duration_text(settings.interval_seconds)
        yield (
            "No max_count alone reaches the aim: a job that finds no idle worker waits for the"
            f" next decision, every {interval}. Keep more workers ready, or lower "
            "workers.scale_interval_ms."
        )
    if advice.latency is not None and advice.prefers_latency:
        wait = duration_text(advice.latency.wait_seconds)
        yield (
            f"With the policy latency: {_quantile_name(advice)} wait {wait}, worker-seconds"
            f" {_cost(advice.recommended)} -> {_cost(advice.latency)}."
        )
    if advice.confidence is not None:
        yield confidence_sentence(advice.confidence, advice.proposed_wait_seconds)
    yield NOT_TRIED


def _change(advice: Advice) -> str:
    old, new = advice.present, advice.recommended
    if old.counts == new.counts:
        wait = f"{_quantile_name(advice)} wait {duration_text(old.wait_seconds)}"
        return f"Leave default {old.counts.least}, max {old.counts.most} as they are: {wait}."
    names = (
        ("default", old.counts.least, new.counts.least),
        ("max", old.counts.most, new.counts.most),
    )
    changes = ", ".join(f"{name} {a} -> {b}" for name, a, b in names if a != b)
    waits = f"{duration_text(old.wait_seconds)} -> {duration_text(new.wait_seconds)}"
    costs = f"{_cost(old)} -> {_cost(new)}"
    return f"{changes}: {_quantile_name(advice)} wait {waits}, worker-seconds {costs}."


def _cost(one: Candidate) -> str:
    return count_text(round(one.figures.worker_seconds))


def _unreached(advice: Advice, settings: ModelSettings) -> str:
    """No crew reaches the aim. One as large as all that ever ran at once might."""
    best = f"Nothing reaches the aim; {duration_text(advice.recommended.wait_seconds)} is the best"
    most = settings.policy.max_running
    if most is not None:
        return f"{best}: limits.max_running = {most} lets no more jobs run. Raise that first."
    return f"{best} that {count_text(advice.candidates[-1].counts.most)} workers can do."


def _table(advice: Advice) -> list[str]:
    columns: Columns[Candidate] = {
        ">default": lambda one: str(one.counts.least),
        ">max": lambda one: str(one.counts.most),
        f">{_quantile_name(advice)} wait": lambda one: duration_text(one.wait_seconds),
        ">crew mean": lambda one: f"{one.figures.crew_mean:.1f}",
        ">crew most": lambda one: str(one.figures.crew_most),
        ">worker-seconds": _cost,
        "": lambda one: ", ".join(one.marks),
    }
    latency = [] if advice.latency is None else [advice.latency]
    return table_of([*advice.candidates, *latency], columns)


def _quantile_name(advice: Advice) -> str:
    return f"p{advice.aim.share * 100:g}"
