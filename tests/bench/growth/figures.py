"""What was measured of one size of one case, and how the sizes of a case take turns."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import attrs

from tests.bench.running import Used


@attrs.frozen
class Figures:
    """Of one drain. Processor time is that of the daemons and of what the server does for them."""

    jobs_a_second: float
    daemon_microseconds: float
    server_microseconds: float
    claim_milliseconds: float | None = None
    log_bytes: float | None = None  # of write-ahead log, a job
    mebibytes: float | None = None  # of tables and indexes


@attrs.frozen
class Row:
    """Medians over the rounds; of the rates all. `ideal`: what jobs that only wait would allow."""

    case: str
    label: str
    size: int
    rates: Sequence[float]
    daemon_microseconds: float
    server_microseconds: float
    ideal: float | None = None
    claim_milliseconds: float | None = None
    log_bytes: float | None = None
    mebibytes: float | None = None

    @property
    def rate(self) -> float:
        return statistics.median(self.rates)

    @property
    def microseconds(self) -> float:
        return self.daemon_microseconds + self.server_microseconds


@attrs.frozen
class Moment:
    """So many jobs were done, after so much processor time."""

    done: int
    daemon: float
    server: Mapping[int, Used]

    def until(self, later: Moment, rate: float) -> Figures:
        jobs = later.done - self.done
        ours = later.daemon - self.daemon
        return Figures(rate, ours / jobs * 1e6, self._served(later) / jobs * 1e6)

    def _served(self, later: Moment) -> float:
        before = {pid: used.cpu_seconds for pid, used in self.server.items()}
        return sum(used.cpu_seconds - before.get(pid, 0.0) for pid, used in later.server.items())


@attrs.frozen
class Size:
    """One size of a case, ready to be measured as often as wanted."""

    label: str
    size: int
    measure: Callable[[], Figures]
    ideal: float | None = None


def in_turns(case: str, sizes: Sequence[Size], rounds: int) -> Iterator[Row]:
    """A B C, A B C, …: what else the machine does in a minute hits all sizes."""
    found: dict[str, list[Figures]] = {each.label: [] for each in sizes}
    for _ in range(rounds):
        for each in sizes:
            found[each.label].append(each.measure())
    for each in sizes:
        taken = found[each.label]
        yield Row(
            case,
            each.label,
            each.size,
            [one.jobs_a_second for one in taken],
            statistics.median(one.daemon_microseconds for one in taken),
            statistics.median(one.server_microseconds for one in taken),
            each.ideal,
            _median(one.claim_milliseconds for one in taken),
            _median(one.log_bytes for one in taken),
            _median(one.mebibytes for one in taken),
        )


def _median(values: Iterable[float | None]) -> float | None:
    known = [one for one in values if one is not None]
    return statistics.median(known) if known else None
