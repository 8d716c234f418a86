"""What a kind of work is: frozen values, and the catalog that holds them by name."""

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Literal, TypeAlias

from attrs import field, frozen

from musterd.config.faults import nearest
from musterd.config.settings import Retry

# A kind's policy is the settings' own `[retry]`, with the keys that the kind overrides replaced.
RetryPolicy = Retry

Outcome = Literal["success", "fail", "cancel"]
OnLeaseLost = Literal["requeue", "fail", "pause"]


@frozen
class Deterministic:
    """Takes its time and ends as told: the same job always behaves the same, on every machine."""

    duration_ms_min: int
    duration_ms_max: int
    outcome: Outcome
    fail_first: int


Behaviour: TypeAlias = Deterministic


@frozen
class WorkKind:
    """What a job of this kind does and by which rules; `source` is the FILE:LINE that says so.

    `time_limit_seconds` is None where an attempt may take as long as it likes.
    """

    name: str
    behaviour: Behaviour
    retryable: bool
    retry: RetryPolicy
    time_limit_seconds: float | None
    priority: int
    on_lease_lost: OnLeaseLost
    source: str


def _by_name(kinds: Iterable[WorkKind]) -> Mapping[str, WorkKind]:
    return MappingProxyType({kind.name: kind for kind in kinds})


@frozen(eq=False)
class Catalog(Mapping[str, WorkKind]):
    """Every kind there is, by name; of two with one name the later counts. Never changes."""

    _kinds: Mapping[str, WorkKind] = field(converter=_by_name)

    def __getitem__(self, name: str) -> WorkKind:
        return self._kinds[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._kinds)

    def __len__(self) -> int:
        return len(self._kinds)

    def suggest(self, name: str) -> str | None:
        """Gives the kind that `name` was most likely meant to be, if there is one."""
        return nearest(name, self._kinds)
