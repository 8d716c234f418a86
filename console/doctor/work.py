"""Whether the work that is configured can be done: kinds, hooks, schedules, webhooks. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from musterd.catalog.kinds import Catalog
from musterd.config.schedules import Schedule
from musterd.config.settings import Settings
from musterd.console.doctor.finding import Finding, fail, ok, warn
from musterd.store.words import cut, one_line, plural

WIDTH = 200
ZONES = 300  # the world has more than that


def judge_kinds(catalog: Catalog) -> list[Finding]:
    found = [
        warn(
            "kinds",
            f"kind {name} cannot run here: {cut(one_line(kind.broken), WIDTH)}",
            "what it names, on this machine",
            f"mend {kind.source}, then `musterd kinds --check`; its jobs wait until then",
        )
        for name, kind in catalog.items()
        if kind.broken is not None
    ]
    return found or [ok("kinds", f"{plural(len(catalog), 'kind')}; each can run here")]


def judge_hooks(broken: Mapping[str, str]) -> list[Finding]:
    advice = "mend it: what it is to be told of waits"
    found = [
        warn("hooks", f"{key}: {cut(one_line(why), WIDTH)}", "a function that is there", advice)
        for key, why in broken.items()
    ]
    return found or [ok("hooks", "none is broken")]


def judge_zones(known: int) -> list[Finding]:
    """`known`: how many time zones this machine knows."""
    if known >= ZONES:
        return []
    said, advice = f"this machine knows {known} time zones", "install tzdata"
    return [warn("schedules", said, "those of the whole world", advice)]


def judge_schedules(schedules: Mapping[str, Schedule], now: float) -> list[Finding]:
    """`now`: seconds since the epoch."""
    moment = datetime.fromtimestamp(now, UTC)
    found = [
        fail(
            "schedules",
            f"schedule {name} never fires: no slot within fifty years",
            "a date that comes",
            f"mend its cron at {schedule.source}",
        )
        for name, schedule in schedules.items()
        if schedule.enabled and schedule.rhythm.next_after(moment) is None
    ]
    off = sum(not schedule.enabled for schedule in schedules.values())
    said = plural(len(schedules), "schedule") + (f", {off} of them switched off" if off else "")
    return found or [ok("schedules", said)]


def judge_signing(settings: Settings, signs: bool) -> list[Finding]:
    if not settings.webhooks.url or signs:
        return []
    advice = "set webhooks.secret_file"
    return [warn("secrets", "webhooks are sent unsigned", "a secret that signs them", advice)]
