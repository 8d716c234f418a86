"""Constraints between settings: rules that involve several keys."""

from collections.abc import Callable
from typing import Any

from attrs import frozen

from musterd.config.faults import Unfit
from musterd.config.listen import LONG_ENOUGH, MAKES_ONE, is_long_enough, is_open
from musterd.config.retention import ENDED, is_sound
from musterd.config.settings import Settings, lease_plan
from musterd.config.webhook_urls import check_allowed


@frozen
class Constraint:
    """A rule for `keys`. `detail` explains a fault better than the other keys' values would. With
    `defaults_give_way`, it is checked only if all keys are set.
    """

    keys: tuple[str, ...]
    wanted: str
    holds: Callable[[Settings], bool]
    hint: str = ""
    detail: Callable[[Settings], str] = lambda _settings: ""
    defaults_give_way: bool = False


def _lease_sum(settings: Settings) -> str:
    plan = lease_plan(settings)
    return (
        f"{plan.lease_seconds:g} is below {plan.lease_seconds_min:g} ="
        f" {plan.heartbeat_seconds:g} + {plan.request_timeout_seconds:g} + {plan.margin_seconds:g}"
    )


def _is_guarded(settings: Settings) -> bool:
    http = settings.http
    return bool(http.token or http.token_file or http.tokens) or not is_open(http.listen)


def _unsound_states(settings: Settings) -> str:
    return ", ".join(state for state in ENDED if not is_sound(getattr(settings.retention, state)))


def _why_not_allowed(settings: Settings) -> str:
    if settings.webhooks.url:
        try:
            check_allowed(settings.webhooks.url, settings.webhooks.policy)
        except Unfit as unfit:
            return unfit.hint
    return ""


def value_of(settings: Settings, key: str) -> Any:
    section, name = key.split(".")
    return getattr(getattr(settings, section), name)


def _ordered(low: str, high: str) -> Constraint:
    """The first key's value must not exceed the second's."""
    wanted = " <= ".join(key.partition(".")[2] for key in (low, high))
    return Constraint(
        (low, high), wanted, lambda settings: value_of(settings, low) <= value_of(settings, high)
    )


def _not_both(file: str, key: str) -> Constraint:
    wanted = " or ".join(each.partition(".")[2] for each in (key, file))
    return Constraint(
        (file, key),
        f"{wanted}, not both",
        lambda settings: not (value_of(settings, key) and value_of(settings, file)),
    )


def _faultless(keys: tuple[str, ...], wanted: str, fault: Callable[[Settings], str]) -> Constraint:
    """`fault` says what is wrong; "" = nothing."""
    return Constraint(keys, wanted, lambda settings: not fault(settings), detail=fault)


def _own_names(key: str, wanted: str) -> Constraint:
    """No two of the tables below the key may have one name."""

    def given_twice(settings: Settings) -> str:
        names = [one.name for one in value_of(settings, key)]
        return ", ".join(sorted({name for name in names if names.count(name) > 1}))

    return _faultless((key,), wanted, given_twice)


def _unsound_hours(settings: Settings) -> str:
    """The first of the hours whose bounds do not fit, and why."""
    workers = settings.workers
    for one in settings.scaling.hours:
        if one.default_count is one.max_count is None:
            return f"{one.name} has neither"
        floor = workers.default_count if one.default_count is None else one.default_count
        most = one.max_count or workers.max_count
        if floor > most or most > workers.max_count:
            return f"in {one.name} they are {floor} and {most}, and the node's {workers.max_count}"
    return ""


def _floors_in_hours(settings: Settings) -> str:
    """Each tenant's crew has the floor of the hours."""
    tenants, most = len(settings.tenants), settings.workers.max_count
    for one in settings.scaling.hours if tenants > 1 else ():
        if tenants * (one.default_count or 0) > most:
            return f"{tenants} tenants in {one.name} have {tenants * (one.default_count or 0)}"
    return ""


def _candidate_fits(settings: Settings) -> bool:
    proposed, (floor, most) = settings.scaling.candidate, _candidate_counts(settings)
    return floor <= most or proposed.default_count is proposed.max_count is None


def _candidate_counts(settings: Settings) -> tuple[int, int]:
    proposed, workers = settings.scaling.candidate, settings.workers
    floor = workers.default_count if proposed.default_count is None else proposed.default_count
    return floor, proposed.max_count or workers.max_count


CONSTRAINTS = (
    _ordered("workers.default_count", "workers.max_count"),
    Constraint(
        ("scaling.candidate", "workers.default_count", "workers.max_count"),
        "default_count <= max_count in the candidate",
        _candidate_fits,
        detail=lambda settings: "there they are {} and {}".format(*_candidate_counts(settings)),
    ),
    _own_names("scaling.hours", "a name of its own for each of the hours"),
    _faultless(
        ("scaling.hours", "workers.default_count", "workers.max_count"),
        "default_count <= max_count <= workers.max_count in each of the hours, or one of them",
        _unsound_hours,
    ),
    _faultless(
        ("scaling.hours", "workers.max_count"),
        "a default_count that all tenants can have together",
        _floors_in_hours,
    ),
    Constraint(
        (
            "workers.lease_timeout_seconds",
            "leases.heartbeat_seconds",
            "leases.request_timeout_seconds",
            "leases.margin_seconds",
        ),
        "lease_timeout_seconds >= heartbeat + request timeout + margin",
        lambda settings: (
            lease_plan(settings).lease_seconds >= lease_plan(settings).lease_seconds_min
        ),
        detail=_lease_sum,
    ),
    Constraint(
        ("leases.request_timeout_seconds", "leases.heartbeat_seconds"),
        "request_timeout_seconds < heartbeat",
        lambda settings: (
            lease_plan(settings).request_timeout_seconds < lease_plan(settings).heartbeat_seconds
        ),
        detail=lambda settings: f"the heartbeat is {lease_plan(settings).heartbeat_seconds:g} s",
    ),
    Constraint(
        ("leases.reap_interval_seconds", "workers.lease_timeout_seconds"),
        "reap_interval_seconds <= lease_timeout_seconds / 2",
        lambda settings: (
            lease_plan(settings).reap_interval_seconds <= settings.workers.lease_timeout_seconds / 2
        ),
    ),
    Constraint(
        ("duties.heartbeat_seconds", "duties.lease_seconds"),
        "lease_seconds >= 3 x heartbeat_seconds",
        lambda settings: settings.duties.lease_seconds >= 3 * settings.duties.heartbeat_seconds,
    ),
    _ordered("retry.base_seconds", "retry.max_seconds"),
    _ordered("store.reconnect_base_seconds", "store.reconnect_max_seconds"),
    _not_both("store.url_file", "store.url"),
    _not_both("http.token_file", "http.token"),
    Constraint(
        ("http.listen", "http.token", "http.token_file", "http.tokens"),
        "a loopback address, or a token",
        _is_guarded,
        hint="set http.token_file",
    ),
    Constraint(
        ("http.token", "http.listen"),
        LONG_ENOUGH,
        lambda settings: (
            not settings.http.token or is_long_enough(settings.http.token, settings.http.listen)
        ),
        hint=MAKES_ONE,
        detail=lambda settings: f"it has {len(settings.http.token)}",
    ),
    _own_names("http.tokens", "a name of its own for each token"),
    Constraint(
        ("webhooks.receivers",),
        "a URL of its own for each receiver",
        lambda settings: (
            len({one.url for one in settings.webhooks.receivers})
            == len(settings.webhooks.receivers)
        ),
    ),
    _ordered("webhooks.retry_base_seconds", "webhooks.retry_max_seconds"),
    _not_both("webhooks.secret_file", "webhooks.secret"),
    _faultless(
        ("webhooks.url", "webhooks.allow_http", "webhooks.allow_private"),
        "a URL that starts with https://, of a public host",
        _why_not_allowed,
    ),
    Constraint(
        ("retention.stale_after_hours", "retention.delete_after_hours"),
        "stale_after_hours <= delete_after_hours",
        lambda settings: is_sound(settings.retention),
        defaults_give_way=True,
    ),
    _faultless(
        tuple(f"retention.{state}" for state in ENDED),
        "stale_after_hours <= delete_after_hours in each table",
        _unsound_states,
    ),
)
