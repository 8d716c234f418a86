"""Kinds of work: frozen values, the catalog of all kinds, and what follows from a kind for one job:
what a deterministic one does, and when a failed attempt is retried.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from hashlib import blake2b
from pathlib import Path
from types import MappingProxyType
from typing import Literal, TypeAlias

from attrs import Factory, field, frozen

from musterd.config.faults import nearest
from musterd.config.retention import Ages
from musterd.config.secrets import mask_headers
from musterd.config.settings import OnLeaseLost, Retry
from musterd.config.webhook_urls import ANY_URL, UrlPolicy

# A kind's policy is the settings' own `[retry]`, with the keys that the kind overrides replaced.
RetryPolicy = Retry

Outcome = Literal["success", "fail", "cancel"]
Isolation = Literal["process", "task", "thread"]
PhaseInput = Literal["payload", "phases"]


@frozen
class Deterministic:
    """Takes a fixed time and ends in a fixed way: the same job always behaves the same."""

    duration_ms_min: int
    duration_ms_max: int
    outcome: Outcome
    fail_first: int


@frozen
class Python:
    """Calls a function with a JobContext. Its module is looked up in `search_path` first."""

    module: str
    function: str
    isolation: Isolation
    search_path: tuple[Path, ...]
    user: str = ""  # whom its process runs as; "" = whom the daemon does


@frozen
class Command:
    """Runs a program without a shell. `environment` names the variables that it sees."""

    argv: tuple[str, ...]
    cwd: Path | None
    umask: int
    environment: tuple[str, ...]
    rlimits: Mapping[str, int]
    retry_on_exit: tuple[int, ...]
    snooze_on_exit: tuple[int, ...] = ()  # puts the job off by `snooze_seconds`
    snooze_seconds: float = 60.0
    user: str = ""  # as in `Python`


@frozen
class HttpCall:
    """Sends the payload to a URL. `header_files` contain the values of secret headers."""

    method: str
    url: str
    headers: Mapping[str, str] = field(repr=lambda headers: repr(mask_headers(headers)))
    header_files: Mapping[str, Path]


@frozen
class Phase:
    """One step of a pipeline: a kind with its own rules, or those of the whole kind. `input` is
    what a program or server receives: the payload, or also the results of phases.
    """

    name: str
    kind: "WorkKind"
    input: PhaseInput = "payload"


@frozen
class Pipeline:
    """Runs its phases in order. A finished phase is not run again in a later attempt."""

    phases: tuple[Phase, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(phase.name for phase in self.phases)


@frozen
class Delay:
    """A phase that lets time pass, and holds no worker: so many seconds, or as many as a field of
    the result of an earlier phase says.
    """

    seconds: float | None
    phase: str = ""
    field: str = ""


Caps: TypeAlias = tuple[tuple[str, int], ...]  # (kind, max_running)
Behaviour: TypeAlias = Deterministic | Python | Command | HttpCall | Pipeline | Delay


@frozen
class WorkKind:
    """What jobs of this kind do; `source` is its FILE:LINE. No `time_limit_seconds` = any time."""

    name: str
    behaviour: Behaviour
    retryable: bool
    retry: RetryPolicy
    time_limit_seconds: float | None
    priority: int
    on_lease_lost: OnLeaseLost
    source: str
    grace_seconds: float = 5.0  # from TERM to KILL for work that must stop
    retry_on: tuple[str, ...] = ()  # error types that are retried though the kind is not retryable
    budgets: Mapping[str, int] = field(factory=dict[str, int])
    max_running: int | None = None  # in the whole cluster
    max_wait_seconds: float | None = None  # its promise; 0 = none, None = that of all kinds
    retention: Ages = field(factory=Ages)
    broken: str | None = None  # why it can't run here: its jobs wait
    webhook: str | None = None  # receives the end of its jobs
    phase: str | None = None  # its name, where this is one phase of a kind

    @property
    def parts(self) -> "tuple[WorkKind, ...]":
        """Its phases, or the kind itself if it has none."""
        if isinstance(self.behaviour, Pipeline):
            return tuple(phase.kind for phase in self.behaviour.phases)
        return (self,)


@frozen
class KindDefaults:
    """Settings that apply to kinds without values of their own."""

    retry: RetryPolicy
    grace_seconds: float = 5.0
    python_path: tuple[Path, ...] = ()  # searched after the folder of the kind's own file
    webhooks: UrlPolicy = ANY_URL
    on_lease_lost: OnLeaseLost = "requeue"


class UnknownKind(Exception):
    """The catalog has no such kind; `guess` is the most likely intended one, if any."""

    def __init__(self, name: str, guess: str | None) -> None:
        super().__init__(f"there is no kind {name!r}")
        self.guess = guess


def _by_name(kinds: Iterable[WorkKind]) -> Mapping[str, WorkKind]:
    return MappingProxyType({kind.name: kind for kind in kinds})


def _caps_of(kinds: Iterable[WorkKind]) -> Caps:
    return tuple((kind.name, kind.max_running) for kind in kinds if kind.max_running is not None)


def _promises_of(kinds: Iterable[WorkKind]) -> Mapping[str, float]:
    own = ((kind.name, kind.max_wait_seconds) for kind in kinds)
    return MappingProxyType({name: seconds for name, seconds in own if seconds is not None})


@frozen(eq=False)
class Catalog(Mapping[str, WorkKind]):
    """All kinds by name; if a name is given twice, the later kind counts. Immutable."""

    _kinds: Mapping[str, WorkKind] = field(converter=_by_name)
    caps: Caps = field(
        init=False, default=Factory(lambda self: _caps_of(self.values()), takes_self=True)
    )
    promises: Mapping[str, float] = field(
        init=False, default=Factory(lambda self: _promises_of(self.values()), takes_self=True)
    )

    def __getitem__(self, name: str) -> WorkKind:
        return self._kinds[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._kinds)

    def __len__(self) -> int:
        return len(self._kinds)

    def find(self, name: str) -> WorkKind | None:
        """As `get`, which costs ten times as much: each job is looked up here."""
        return self._kinds.get(name)

    def known(self, name: str) -> WorkKind:
        """The kind of that name. Raises `UnknownKind`."""
        kind = self.get(name)
        if kind is None:
            raise UnknownKind(name, nearest(name, self._kinds))
        return kind

    def budget_of(self, name: str) -> int | None:
        """How many attempts a job of this kind has; None = an unknown kind."""
        kind = self.get(name)
        return None if kind is None else kind.retry.max_retries + 1


JSON: TypeAlias = "bool | int | float | str | list[JSON] | dict[str, JSON] | None"

_DURATION_BYTES = 8  # of the hash that chooses a duration
_FRACTION_BYTES = 6  # 48 bits: a float holds each such fraction exactly
_COUNT_MAX = 1 << 53  # a float holds whole numbers up to here
_MS_PER_SECOND = 1_000


@frozen
class Planned:
    """How long an attempt takes and how it ends."""

    duration_seconds: float
    outcome: Outcome


def plan(kind: WorkKind, payload: JSON, attempt: int) -> Planned:
    """What an attempt (from 1) does: depends only on the arguments. `fail_first` applies only if
    the outcome is success. Raises TypeError for real work.
    """
    behaviour = kind.behaviour
    if not isinstance(behaviour, Deterministic):
        raise TypeError(f"kind {kind.name!r} does real work: nobody can say what comes of it")
    outcome = behaviour.outcome
    if outcome == "success" and attempt <= behaviour.fail_first:
        outcome = "fail"
    duration_ms = behaviour.duration_ms_min
    span_ms = behaviour.duration_ms_max - duration_ms
    if span_ms:
        name = kind.name if kind.phase is None else f"{kind.name}/{kind.phase}"
        spelt = json.dumps(_canonical(payload), sort_keys=True, separators=(",", ":"))
        text = f"{name}\0{attempt}\0{spelt}"
        duration_ms += _hash(text, _DURATION_BYTES) * (span_ms + 1) >> 8 * _DURATION_BYTES
    return Planned(duration_ms / _MS_PER_SECOND, outcome)


def _hash(text: str, size_bytes: int) -> int:
    return int.from_bytes(blake2b(text.encode(), digest_size=size_bytes).digest(), "big")


def _canonical(value: JSON) -> JSON:
    """One spelling for equal numbers: stores differ in whether 100 was 1e2 or 100.0."""
    if isinstance(value, dict):
        return {key: _canonical(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_canonical(each) for each in value]
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    try:
        number = float(value)
    except OverflowError:  # beyond a double: an int, which has one spelling only
        return value
    return int(number) if number.is_integer() else number


def delay_seconds(policy: RetryPolicy, failures: int, job_id: int, attempt: int) -> float:
    """The delay after `failures` failed attempts, at most `policy.max_seconds`. The jitter is a
    hash of job and attempt: a job always gets the same delays. Raises ValueError if `failures` is
    0.
    """
    if failures < 1:
        raise ValueError(f"failures is {failures}, wanted 1 or more: no failure, no delay")
    longest = min(policy.max_seconds, _backoff_seconds(policy, min(failures, _COUNT_MAX)))
    if policy.jitter == "none":
        return longest
    shortest = longest / 2 if policy.jitter == "equal" else 0.0
    fraction = _hash(f"{job_id}/{attempt}", _FRACTION_BYTES) / (1 << 8 * _FRACTION_BYTES)
    return shortest + (longest - shortest) * fraction


def _backoff_seconds(policy: RetryPolicy, failures: int) -> float:
    if policy.backoff == "fixed":
        return policy.base_seconds
    if policy.backoff == "linear":
        return policy.base_seconds * failures
    try:
        return policy.base_seconds * policy.factor ** (failures - 1)
    except OverflowError:
        return policy.max_seconds if policy.base_seconds else 0.0
