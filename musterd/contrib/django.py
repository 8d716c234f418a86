"""Django's tasks on musterd: a backend for `TASKS`, and the handler that runs them.

For `django.tasks` of Django 6, and for the package django-tasks on older ones. A job's kind is
`django_` and the name of the task's queue; its handler is `musterd.contrib.django:run`.
"""

# Django has no types, and may be one of two.
# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false, reportGeneralTypeIssues=false
from __future__ import annotations

import builtins
import os
import threading
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import django
from django.core import checks
from django.db import close_old_connections, connections, transaction
from django.utils import timezone
from django.utils.module_loading import import_string

from musterd.store.errors import NoSuchJob

if TYPE_CHECKING:
    from musterd.store.client import Client
    from musterd.workers.context import JobContext

try:
    from django.tasks import TaskContext, TaskResult, TaskResultStatus
    from django.tasks.backends.base import BaseTaskBackend
    from django.tasks.base import TaskError
    from django.tasks.exceptions import TaskResultDoesNotExist
    from django.tasks.signals import task_enqueued, task_finished, task_started
    from django.utils.json import normalize_json
except ImportError:
    from django_tasks.backends.base import BaseTaskBackend
    from django_tasks.base import TaskContext, TaskError, TaskResult, TaskResultStatus
    from django_tasks.exceptions import TaskResultDoesNotExist
    from django_tasks.signals import task_enqueued, task_finished, task_started
    from django_tasks.utils import normalize_json

KIND = "django_"  # the name of the queue follows
OPTIONS = ("database", "url", "schema", "tenant")
STATUS = {"running": "RUNNING", "succeeded": "SUCCESSFUL", "failed": "FAILED", "canceled": "FAILED"}
NO_URL = (
    'the database {alias!r} is no PostgreSQL, so the jobs need a store of their own: "OPTIONS":'
    ' {{"url": "sqlite:////absolute/path/musterd.db"}} or a URL of PostgreSQL'
)


class AttemptFailed(Exception):
    """Stands for what ended an attempt, where that is no exception that can be imported here."""


class MusterdBackend(BaseTaskBackend):
    """A backend for `TASKS`. Without `url` in OPTIONS the jobs are in the database of Django's that
    OPTIONS name (`database`, "default"), and are made in the transaction that it is in. With `url`
    they are in that store, and are made when that transaction has been committed.
    """

    supports_defer = True
    supports_async_task = True
    supports_get_result = True
    supports_priority = True

    def __init__(self, alias: str, params: dict[str, Any]) -> None:
        super().__init__(alias, params)
        self.database: str = self.options.get("database", "default")
        self._client: Client | None = None
        self._lock = threading.Lock()

    def enqueue(self, task: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Gives the result. Its `id` is that of the job; where the job waits for a commit (`url`),
        it becomes that with the commit.
        """
        self.validate_task(task)
        result = _result(task, self.alias, f"uncommitted-{uuid4()}", args, kwargs)
        connection = connections[self.database]
        if "url" not in self.options:
            self._make(result, connection)
        elif connection.in_atomic_block:
            transaction.on_commit(lambda: self._make(result), using=self.database)
        else:
            self._make(result)
        return result

    def get_result(self, result_id: str) -> Any:
        """Raises `TaskResultDoesNotExist`, also for a job whose transaction is not committed."""
        try:
            job = self.client.job(int(result_id))
        except (NoSuchJob, ValueError):
            raise TaskResultDoesNotExist(result_id) from None
        payload = job["payload"]
        if not job["kind"].startswith(KIND) or "task" not in payload:
            raise TaskResultDoesNotExist(result_id)
        result = _result(
            import_string(payload["task"]).using(
                queue_name=job["kind"].removeprefix(KIND), backend=self.alias
            ),
            self.alias,
            str(job["id"]),
            payload["args"],
            payload["kwargs"],
        )
        _fill(result, job)
        return result

    @property
    def client(self) -> Client:
        """Of the store with the jobs: also to cancel them, or to wait for them."""
        with self._lock:
            if self._client is None:
                from musterd.store.client import Client  # where jobs run it need not be installed

                named: Any = {
                    name: self.options[name]
                    for name in ("schema", "tenant")
                    if name in self.options
                }
                self._client = Client(self.options.get("url") or _url_of(self.database), **named)
            return self._client

    def check(self, **_: Any) -> list[Any]:
        """For `manage.py check`."""
        found: list[Any] = []
        unknown = sorted(set(self.options) - set(OPTIONS))
        if unknown:
            said = f"unknown option {unknown[0]!r}: options are {', '.join(OPTIONS)}"
            found.append(checks.Error(f"TASKS[{self.alias!r}]: {said}", id="musterd.E001"))
        if "url" not in self.options and connections[self.database].vendor != "postgresql":
            said = f"TASKS[{self.alias!r}]: {NO_URL.format(alias=self.database)}"
            found.append(checks.Error(said, id="musterd.E002"))
        return found

    def _make(self, result: Any, connection: Any = None) -> None:
        task = result.task
        payload = {
            "task": task.module_path, "args": result.args, "kwargs": result.kwargs,
            "backend": self.alias,
        }  # fmt: skip
        job_id = self.client.enqueue(
            KIND + task.queue_name,
            payload,
            connection=connection,
            priority=task.priority or None,  # 0 = not given: the kind's counts
            run_at=_aware(task.run_after),
        )
        _set(result, id=str(job_id), enqueued_at=timezone.now())
        task_enqueued.send(type(self), task_result=result)


def run(job: JobContext) -> Any:
    """The handler. Django is set up in its process once, by DJANGO_SETTINGS_MODULE."""
    if "DJANGO_SETTINGS_MODULE" not in os.environ:
        from musterd.workers.context import Fatal

        raise Fatal(
            "DJANGO_SETTINGS_MODULE is not set for the daemon: wanted the project's settings"
        )
    if not django.apps.apps.ready:
        django.setup()
    payload: Any = job.payload
    task = import_string(payload["task"])
    result = _result(
        task, payload["backend"], str(job.fence.id), payload["args"], payload["kwargs"]
    )
    now = timezone.now()
    _set(result, status=TaskResultStatus.RUNNING, started_at=now, last_attempted_at=now)
    result.worker_ids.extend(["musterd"] * job.attempt)  # `attempts` is how many they are
    sender = type(task.get_backend())
    close_old_connections()
    task_started.send(sender, task_result=result)
    context = [TaskContext(task_result=result)] if task.takes_context else []
    try:
        value = normalize_json(task.call(*context, *result.args, **result.kwargs))
    except Exception as error:
        name = type(error)
        path = f"{name.__module__}.{name.__qualname__}"
        result.errors.append(TaskError(exception_class_path=path, traceback=""))
        _set(result, status=TaskResultStatus.FAILED, finished_at=timezone.now())
        raise
    else:
        _set(result, status=TaskResultStatus.SUCCESSFUL, finished_at=timezone.now())
        _set(result, _return_value=value)
        return value
    finally:
        task_finished.send(sender, task_result=result)
        close_old_connections()


def _result(
    task: Any, alias: str, result_id: str, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Any:
    return TaskResult(
        task=task, id=result_id, status=TaskResultStatus.READY, enqueued_at=None, started_at=None,
        last_attempted_at=None, finished_at=None, args=list(args), kwargs=dict(kwargs),
        backend=alias, errors=[], worker_ids=[],
    )  # fmt: skip


def _fill(result: Any, job: Mapping[str, Any]) -> None:
    started = sorted(one["started_at"] for one in job["attempts"] if one["started_at"])
    _set(
        result,
        status=TaskResultStatus[STATUS.get(job["state"], "READY")],
        enqueued_at=_moment(job["created_at"]),
        started_at=_moment(started[0]) if started else None,
        last_attempted_at=_moment(started[-1]) if started else None,
        finished_at=_moment(job["finished_at"]),
        _return_value=job["result"],
    )
    for one in job["attempts"]:
        result.worker_ids.append(f"{one['node']}:{one['worker']}")
        if one["error"] is not None:
            path = _importable(one["error"]["type"])
            text = one["log"] or f"{one['error']['type']}: {one['error']['message']}"
            result.errors.append(TaskError(exception_class_path=path, traceback=text))


def _importable(name: str) -> str:
    """The path of an exception that an attempt ended with: `ValueError`, or `shop.errors.Declined`.
    What musterd itself says (`time_limit`) has none.
    """
    if isinstance(getattr(builtins, name, None), type):
        return f"builtins.{name}"
    return name if "." in name else f"{AttemptFailed.__module__}.{AttemptFailed.__qualname__}"


def _set(result: Any, **fields: Any) -> None:
    """A result is frozen for all but its backend."""
    for name, value in fields.items():
        object.__setattr__(result, name, value)


def _aware(moment: datetime | None) -> datetime | None:
    if moment is None or timezone.is_aware(moment):
        return moment
    return timezone.make_aware(moment)


def _moment(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


def _url_of(alias: str) -> str:
    """How Django reaches this database, in the words of libpq."""
    from psycopg import pq
    from psycopg.conninfo import make_conninfo

    known = {one.keyword.decode() for one in pq.Conninfo.get_defaults()}
    params = connections[alias].get_connection_params()
    return make_conninfo(**{name: value for name, value in params.items() if name in known})
