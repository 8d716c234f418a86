"""What the catalog and the limits make of the schedules: a job that could not be made or run is
better met at the start than at three in the morning.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from musterd.catalog.kinds import Catalog, UnknownKind
from musterd.config.faults import Fault
from musterd.config.schedules import Schedule
from musterd.config.settings import Limits, Settings
from musterd.config.tenants import settings_of
from musterd.store.errors import InputRefused
from musterd.store.payload import PayloadLimits, check_payload


def schedule_faults(
    settings: Settings, catalog: Catalog, origins: Mapping[str, str]
) -> list[Fault]:
    """The faults of schedules whose kind the catalog lacks, or whose payload is beyond the limits
    of their tenant. `origins`: where each key was given, as far as that is known.
    """
    faults: list[Fault] = []
    for schedule in settings.schedules.values():
        limits = settings_of(settings, schedule.tenant).limits
        for name, found, wanted, hint in _faults(schedule, catalog, limits):
            key = f"schedules.{schedule.name}.{name}"
            source = origins.get(key, schedule.source)
            faults.append(Fault(source, key=key, found=found, wanted=wanted, hint=hint))
    return faults


def payload_limits(limits: Limits) -> PayloadLimits:
    return PayloadLimits(limits.max_payload_bytes, limits.max_payload_depth)


def _faults(
    schedule: Schedule, catalog: Catalog, limits: Limits
) -> Iterator[tuple[str, str, str, str]]:
    """Key, what was found, what is wanted, what may help."""
    try:
        catalog.known(schedule.kind)
    except UnknownKind as error:
        found = json.dumps(schedule.kind, ensure_ascii=False)
        hint = f"did you mean {error.guess}?" if error.guess else "`musterd kinds` lists them"
        yield "kind", found, "a kind of the catalog", hint
    try:
        check_payload(schedule.payload, payload_limits(limits))
    except InputRefused as error:
        yield "payload", str(error).removeprefix("payload").lstrip(": "), "", ""
