"""Schedules: their tables, defaults and constraints."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NewType

import attrs
from attrs import Attribute, field, frozen

from musterd.config.cron import Every, Rhythm, read_cron, read_zone
from musterd.config.document import Document
from musterd.config.faults import ConstraintFault, Unfit
from musterd.config.job_options import KIND_LENGTH_MAX, NAME_LENGTH_MAX, PRIORITY_MAX, PRIORITY_MIN
from musterd.config.strict import Key, NamedTables, Reading, read_by, read_table
from musterd.config.tenant_names import DEFAULT_TENANT
from musterd.config.toml_text import plain_number
from musterd.config.validators import Between

TABLE = "schedules"

_DAY = 86_400
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
_NAME_WANTED = "a name of letters, digits, _, . and -, at most 100 long"

Missed = Literal["skip", "once", "all"]
Overlap = Literal["allow", "skip"]


JsonText = NewType("JsonText", str)  # of a value of TOML that JSON can hold


@frozen
class Schedule:
    """When to enqueue jobs of a kind, again and again."""

    name: str
    kind: str
    payload: str  # JSON text
    rhythm: Rhythm
    target: str | None
    priority: int | None  # None = the kind's own
    missed: Missed  # of what nobody was there for: nothing, one job, or one for each slot
    overlap: Overlap  # whether a job is made while that of the slot before has not ended
    tenant: str
    enabled: bool
    source: str  # FILE:LINE that says so


def json_text(raw: object) -> JsonText:
    try:
        text = json.dumps(raw, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    except (TypeError, ValueError):
        raise Unfit(
            "what JSON can hold: no dates, no infinities", "write a date as a text"
        ) from None
    return JsonText(text)


def _kind_name(_owner: object, _key: "Attribute[Any]", name: str) -> None:
    if not 1 <= len(name) <= KIND_LENGTH_MAX:
        raise Unfit("the name of a kind")


def _target_name(_owner: object, _key: "Attribute[Any]", name: str) -> None:
    if len(name) > NAME_LENGTH_MAX or "\0" in name:
        raise Unfit(f"a text of at most {NAME_LENGTH_MAX} characters, none of them NUL")


def _zone(_owner: object, _key: "Attribute[Any]", name: str) -> None:
    read_zone(name)


@frozen
class ScheduleTable:
    """The keys of `[schedules.NAME]` and their defaults."""

    kind: str = field(default="?", validator=_kind_name)
    payload: JsonText = read_by(json_text, default=JsonText("{}"))
    cron: str = ""
    every_seconds: float = field(default=60.0, validator=Between(1, 3660 * _DAY))
    timezone: str = field(default="UTC", validator=_zone)
    target: str = field(default="", validator=_target_name)
    priority: int | None = field(
        default=None, validator=attrs.validators.optional(Between(PRIORITY_MIN, PRIORITY_MAX))
    )
    missed: Missed = "once"
    overlap: Overlap = "allow"
    tenant: str = DEFAULT_TENANT
    enabled: bool = True


def attribute_of(path: Sequence[str]) -> "Key | None":
    """The key at `schedules.NAME.key`, if there is one."""
    match list(path):
        case [_, _, name]:
            return attrs.fields_dict(ScheduleTable).get(name)
        case _:
            return None


def _read_one(document: Document, name: str) -> Iterator[tuple[tuple[str, ...], Reading]]:
    path = (TABLE, name)
    yield path, read_table(document, path, ScheduleTable)


TABLES = NamedTables(TABLE, _NAME, _NAME_WANTED, _read_one)


def resolved(
    names: Sequence[str],
    values: Mapping[str, Any],
    tenants: Sequence[str],
    origins: Mapping[str, str],
) -> Iterator[Schedule | ConstraintFault]:
    """The valid schedules, and the faults of the others."""
    for name in names:
        own = f"{TABLE}.{name}"
        given = {
            key: values[f"{own}.{key}"]
            for key in attrs.fields_dict(ScheduleTable)
            if f"{own}.{key}" in values
        }
        faults = list(_faults(own, given, tenants))
        yield from faults
        if not faults:
            yield _schedule(name, given, origins.get(own, ""))


def as_written(schedule: Schedule) -> Mapping[str, object]:
    """The keys of its table, without those that are not set."""
    rhythm = schedule.rhythm
    clock: dict[str, object] = {}
    if isinstance(rhythm, Every):
        clock["every_seconds"] = plain_number(rhythm.seconds)
    else:
        clock |= {"cron": rhythm.text, "timezone": rhythm.zone.key}
    optional = {"target": schedule.target, "priority": schedule.priority}
    return {
        "kind": schedule.kind,
        "payload": json.loads(schedule.payload),
        **clock,
        **{name: value for name, value in optional.items() if value is not None},
        "missed": schedule.missed,
        "overlap": schedule.overlap,
        "tenant": schedule.tenant,
        "enabled": schedule.enabled,
    }


def _faults(
    own: str, given: Mapping[str, Any], tenants: Sequence[str]
) -> Iterator[ConstraintFault]:
    if "kind" not in given:
        yield ConstraintFault((own,), "no kind", "the kind of job that is to be made")
    rhythms = [key for key in ("cron", "every_seconds") if key in given]
    if not rhythms:
        yield ConstraintFault((own,), "no rhythm", "cron or every_seconds")
    elif len(rhythms) > 1:
        keys = tuple(f"{own}.{key}" for key in rhythms)
        yield ConstraintFault(keys, "both", "cron or every_seconds, not both")
    if "timezone" in given and rhythms == ["every_seconds"]:
        found, wanted = "a time zone", "none: every_seconds counts from the epoch"
        yield ConstraintFault((f"{own}.timezone",), found, wanted)
    if rhythms == ["cron"]:
        try:
            read_cron(given["cron"], read_zone(given.get("timezone", "UTC")))
        except Unfit as unfit:
            found = json.dumps(given["cron"], ensure_ascii=False)
            yield ConstraintFault((f"{own}.cron",), found, unfit.wanted, unfit.hint)
    tenant = given.get("tenant", DEFAULT_TENANT)
    if tenant not in tenants:
        wanted = f"a tenant of this node: {', '.join(tenants)}"
        yield ConstraintFault((f"{own}.tenant",), json.dumps(tenant), wanted)


def _schedule(name: str, given: Mapping[str, Any], source: str) -> Schedule:
    table = ScheduleTable(**given)
    rhythm: Rhythm = Every(table.every_seconds)
    if "cron" in given:
        rhythm = read_cron(table.cron, read_zone(table.timezone))
    same = attrs.fields_dict(Schedule).keys() & attrs.fields_dict(ScheduleTable).keys()
    written: dict[str, Any] = {key: getattr(table, key) for key in same}
    written["target"] = table.target or None
    return Schedule(**written, name=name, rhythm=rhythm, source=source)


def of_tenant(schedules: Mapping[str, Schedule], tenant: str) -> Mapping[str, Schedule]:
    return {name: one for name, one in schedules.items() if one.tenant == tenant}
