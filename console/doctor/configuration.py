"""Whether the configured times, kinds, hooks, schedules and secrets can work well. Pure.

The configuration refuses what cannot work at all; these findings are about what works badly.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

from musterd.catalog.kinds import Catalog
from musterd.config.schedules import Schedule
from musterd.config.settings import Settings, lease_plan
from musterd.console.doctor.finding import Finding, fail, ok, warn
from musterd.store.words import cut, one_line, plural

NAME = "leases"
SPARE_RENEWALS = 4  # below this a short hiccup of the store costs leases


def judge_leases(settings: Settings) -> list[Finding]:
    plan = lease_plan(settings)
    said = (
        f"a lease of {plan.lease_seconds:g} s, renewed every {plan.heartbeat_seconds:g} s,"
        f" trusted until {plan.margin_seconds:g} s before its end"
    )
    found = [*_of_lease(settings), *_of_database(settings), *_of_looks(settings)]
    return found or [ok(NAME, said)]


def _of_lease(settings: Settings) -> Iterator[Finding]:
    plan = lease_plan(settings)
    trusted = plan.lease_seconds - plan.margin_seconds
    renewals = trusted / plan.heartbeat_seconds
    if renewals < SPARE_RENEWALS:
        yield warn(
            NAME,
            f"a lease of {plan.lease_seconds:g} s has room for {renewals:.1f} renewals",
            f"room for {SPARE_RENEWALS}",
            "raise workers.lease_timeout_seconds, or lower leases.heartbeat_seconds",
        )
    if plan.request_timeout_seconds >= plan.heartbeat_seconds:
        yield warn(
            NAME,
            f"a renewal may take {plan.request_timeout_seconds:g} s, the next one is due after"
            f" {plan.heartbeat_seconds:g} s",
            "a shorter leases.request_timeout_seconds",
            "set it to 0, which means three quarters of the heartbeat",
        )


def _of_database(settings: Settings) -> Iterator[Finding]:
    plan, store = lease_plan(settings), settings.store
    for name in ("statement_timeout_seconds", "idle_transaction_timeout_seconds"):
        seconds = getattr(store, name)
        if seconds >= plan.lease_seconds - plan.margin_seconds:
            yield warn(
                NAME,
                f"store.{name} = {seconds:g} is not shorter than a lease is trusted",
                f"less than {plan.lease_seconds - plan.margin_seconds:g} s",
                f"lower store.{name}: a longer statement ends with its lease anyway",
            )
    if store.lock_timeout_seconds >= store.statement_timeout_seconds:
        yield warn(
            NAME,
            f"store.lock_timeout_seconds = {store.lock_timeout_seconds:g} is not below"
            f" store.statement_timeout_seconds = {store.statement_timeout_seconds:g}",
            "lock waits that end before the statement does",
            "lower store.lock_timeout_seconds",
        )
    if store.reconnect_max_seconds >= plan.lease_seconds / 3:
        yield warn(
            NAME,
            f"store.reconnect_max_seconds = {store.reconnect_max_seconds:g} is a third of a lease"
            " or more",
            f"less than {plan.lease_seconds / 3:g} s",
            "lower it: after a short outage leases would expire before anyone reconnects",
        )


def _of_looks(settings: Settings) -> Iterator[Finding]:
    plan, workers = lease_plan(settings), settings.workers
    for name, ms in (
        ("poll_interval_ms", workers.poll_interval_ms),
        ("scale_interval_ms", workers.scale_interval_ms),
    ):
        if ms / 1000 >= plan.lease_seconds / 3:
            yield warn(
                NAME,
                f"workers.{name} = {ms} is a third of a lease or more",
                f"less than {plan.lease_seconds / 3 * 1000:.0f}",
                f"lower workers.{name}, or raise workers.lease_timeout_seconds",
            )
    duties = settings.duties
    if duties.mode == "leader" and duties.lease_seconds > 2 * plan.lease_seconds:
        yield warn(
            NAME,
            f"duties.lease_seconds = {duties.lease_seconds:g}: after a node dies, nobody looks"
            " for lost leases for this long",
            f"at most {2 * plan.lease_seconds:g} s, two leases of a job",
            "lower duties.lease_seconds",
        )
    if duties.mode == "everyone":
        yield warn(
            NAME,
            'duties.mode = "everyone": all nodes do all background work',
            '"leader"',
            "remove it: it is meant for development",
        )


WIDTH = 200
ZONES = 300  # the world has more than that


def judge_kinds(catalog: Catalog) -> list[Finding]:
    found = [
        warn(
            "kinds",
            f"kind {name} cannot run here: {cut(one_line(kind.broken), WIDTH)}",
            "everything that it names, on this machine",
            f"fix {kind.source}, then `musterd kinds --check`; its jobs wait until then",
        )
        for name, kind in catalog.items()
        if kind.broken is not None
    ]
    return found or [ok("kinds", f"{plural(len(catalog), 'kind')}, all of which can run here")]


def judge_hooks(broken: Mapping[str, str]) -> list[Finding]:
    advice = "fix it: calls to it wait until then"
    found = [
        warn("hooks", f"{key}: {cut(one_line(why), WIDTH)}", "a function that exists", advice)
        for key, why in broken.items()
    ]
    return found or [ok("hooks", "none is broken")]


def judge_zones(known: int) -> list[Finding]:
    """`known`: how many time zones this machine knows."""
    if known >= ZONES:
        return []
    said, advice = f"this machine knows {known} time zones", "install tzdata"
    return [warn("schedules", said, "all time zones", advice)]


def judge_schedules(schedules: Mapping[str, Schedule], now: float) -> list[Finding]:
    """`now`: seconds since the epoch."""
    moment = datetime.fromtimestamp(now, UTC)
    found = [
        fail(
            "schedules",
            f"schedule {name} never fires: no slot within fifty years",
            "a date that occurs",
            f"fix its cron in {schedule.source}",
        )
        for name, schedule in schedules.items()
        if schedule.enabled and schedule.rhythm.next_after(moment) is None
    ]
    off = sum(not schedule.enabled for schedule in schedules.values())
    said = plural(len(schedules), "schedule") + (f", {off} of them disabled" if off else "")
    return found or [ok("schedules", said)]


def judge_signing(settings: Settings, signs: bool) -> list[Finding]:
    if not settings.webhooks.url or signs:
        return []
    advice = "set webhooks.secret_file"
    return [warn("secrets", "webhooks are sent unsigned", "a signing secret", advice)]
