"""An engine whose every call goes through something else: a measurement, or the faults of a test.

Each call has an operation's name, which metrics show. A new method of a part needs nothing here.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Generic, TypeVar, cast

from musterd.store.engine import Engine, SchemaState

T = TypeVar("T")
Through = Callable[[str, Callable[[], Awaitable[Any]]], Awaitable[Any]]

# Operations are named `part_method`, but for these: dashboards know them by other names.
_PREFIXES = {
    **dict.fromkeys(("jobs", "leases", "control", "queue", "nodes"), ""),
    "health": "vitals_",
    "overview": "board_",
    "idle": "outlook_",
}
_NAMES = {
    ("jobs", "enqueue_keyed"): "enqueue",
    ("jobs", "get"): "job",
    ("jobs", "look"): "jobs",
    ("jobs", "find"): "jobs",
    ("jobs", "briefs"): "job_rows",
    ("jobs", "log"): "job_log",
    ("jobs", "why_facts"): "standing",
    ("control", "apply"): "control",
    ("control", "apply_many"): "control_many",
    ("control", "select"): "select_jobs",
    ("queue", "next_due_seconds"): "next_due",
    ("queue", "pause"): "pause_queue",
    ("queue", "resume"): "resume_queue",
    ("nodes", "all"): "nodes",
    ("nodes", "declare_kinds"): "tell_kinds",
    ("events", "record"): "events_tell",
    ("idle", "check"): "outlook_look",
}


class WrappedPart(Generic[T]):
    """Stands for the part of an engine that is called `name`."""

    def __init__(self, part: T, name: str, through: Through) -> None:
        self._part, self._name, self._through = part, name, through

    def __getattr__(self, name: str) -> Any:
        method, part_name, through = getattr(self._part, name), self._name, self._through

        async def call(*args: Any, **named: Any) -> Any:
            operation = operation_name(part_name, name, args)
            return await through(operation, lambda: method(*args, **named))

        setattr(self, name, call)  # found at once the next time
        return call


def wrapped(part: T, name: str, through: Through) -> T:
    """Gives `part`, the one that an engine calls `name`, with all calls going through `through`."""
    return cast(T, WrappedPart(part, name, through))


def operation_name(part: str, method: str, args: tuple[Any, ...] = ()) -> str:
    if (part, method) == ("leases", "exchange"):
        # Two names: a full disk fails settlements while empty claims go well.
        return "settle" if args[0].are_any else "claim"
    return _NAMES.get((part, method)) or _PREFIXES.get(part, f"{part}_") + method


class WrappedEngine:
    """An `Engine` that is another one, all of its calls going through `through` but `close`."""

    def __init__(self, engine: Engine, through: Through) -> None:
        self._engine, self._through = engine, through
        self.name, self.where = engine.name, engine.where
        self.jobs = wrapped(engine.jobs, "jobs", through)
        self.leases = wrapped(engine.leases, "leases", through)
        self.control = wrapped(engine.control, "control", through)
        self.queue = wrapped(engine.queue, "queue", through)
        self.nodes = wrapped(engine.nodes, "nodes", through)
        self.phases = wrapped(engine.phases, "phases", through)
        self.events = wrapped(engine.events, "events", through)
        self.outbox = wrapped(engine.outbox, "outbox", through)
        self.schedules = wrapped(engine.schedules, "schedules", through)
        self.duties = wrapped(engine.duties, "duties", through)
        self.retention = wrapped(engine.retention, "retention", through)
        self.journal = wrapped(engine.journal, "journal", through)
        self.idle = wrapped(engine.idle, "idle", through)
        self.overview = wrapped(engine.overview, "overview", through)
        self.audit = wrapped(engine.audit, "audit", through)
        self.health = wrapped(engine.health, "health", through)
        self.history = wrapped(engine.history, "history", through)

    async def open(self) -> None:
        await self._through("open", self._engine.open)

    async def close(self) -> None:
        await self._engine.close()

    async def schema(self) -> SchemaState:
        found: SchemaState = await self._through("schema", self._engine.schema)
        return found

    async def migrate(self) -> list[str]:
        applied: list[str] = await self._through("migrate", self._engine.migrate)
        return applied

    async def start_node(self, node: str) -> int:
        found: int = await self._through("start_node", lambda: self._engine.start_node(node))
        return found
