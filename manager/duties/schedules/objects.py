"""Schedules as `musterd schedules --json` and `GET /schedules` show them."""

from __future__ import annotations

import json
from datetime import datetime

from musterd.config.cron import Every
from musterd.config.schedules import Schedule
from musterd.config.toml_text import plain_number
from musterd.manager.duties.schedules.slots import upcoming
from musterd.store.schedules import ScheduleRecord
from musterd.store.words import time_text

SLOTS_SHOWN = 3


def schedule_object(schedule: Schedule, record: ScheduleRecord) -> dict[str, object]:
    """What is configured of a schedule, where it stands, and its next slots."""
    is_off = record.paused_at is not None or not schedule.enabled
    after = max(record.now, record.last_slot)
    slots = [] if is_off else upcoming(schedule.rhythm, after, SLOTS_SHOWN)
    return {
        "name": schedule.name,
        "kind": schedule.kind,
        "payload": json.loads(schedule.payload),
        **_rhythm(schedule),
        "target": schedule.target,
        "priority": schedule.priority,
        "missed": schedule.missed,
        "overlap": schedule.overlap,
        "tenant": schedule.tenant,
        "enabled": schedule.enabled,
        "paused_at": time_text(record.paused_at),
        "last_slot": time_text(record.last_slot),
        "last_fired_at": time_text(record.last_fired_at),
        "last_job_id": record.last_job_id,
        "last_job_state": record.last_job_state,
        "fired": record.fired,
        "skipped": record.skipped,
        "missed_slots": record.missed,
        "next": [time_text(slot) for slot in slots],
        "seconds_until_next": _seconds_until(slots, record.now),
    }


def _rhythm(schedule: Schedule) -> dict[str, object]:
    rhythm = schedule.rhythm
    if isinstance(rhythm, Every):
        return {"cron": None, "timezone": None, "every_seconds": plain_number(rhythm.seconds)}
    return {"cron": rhythm.text, "timezone": rhythm.zone.key, "every_seconds": None}


def _seconds_until(slots: list[datetime], now: datetime) -> float | None:
    return round((slots[0] - now).total_seconds(), 3) if slots else None
