"""What a shop does, by name; prints what came of it as JSON."""

import asyncio
import json
import sys
from datetime import timedelta

import django

django.setup()

from django.core.management import call_command
from django.db import transaction
from django.utils import timezone
from shop.models import Order
from shop.tasks import broken, count, flaky, mail

try:
    from django.tasks import default_task_backend
    from django.tasks.exceptions import TaskResultDoesNotExist
except ImportError:
    from django_tasks import default_task_backend
    from django_tasks.exceptions import TaskResultDoesNotExist


def prepare():
    call_command("migrate", run_syncdb=True, verbosity=0)
    call_command("check", fail_level="ERROR")


def order():
    """One that is rolled back, one that is kept."""
    try:
        with transaction.atomic():
            Order.objects.create(number=16)
            mail.enqueue(16)
            raise LookupError
    except LookupError:
        pass
    with transaction.atomic():
        Order.objects.create(number=17)
        kept = mail.enqueue(17, greeting="ü")
        within = is_there(kept.id)
    return {"id": kept.id, "within": within, "after": is_there(kept.id), "args": kept.args}


def is_there(result_id):
    try:
        default_task_backend.get_result(result_id)
    except TaskResultDoesNotExist:
        return False
    return True


def others():
    later = mail.using(run_after=timezone.now() + timedelta(days=1)).enqueue(17)
    return [asyncio.run(count.aenqueue()).id, flaky.enqueue().id, broken.enqueue().id, later.id]


def result(result_id):
    found = default_task_backend.get_result(result_id)
    return {
        "status": found.status.value,
        "value": found.return_value if found.status == "SUCCESSFUL" else None,
        "task": found.task.module_path,
        "queue": found.task.queue_name,
        "attempts": found.attempts,
        "errors": [[one.exception_class.__name__, one.traceback] for one in found.errors],
        "times": [found.enqueued_at is not None, found.finished_at is not None],
    }


def mailed():
    return list(Order.objects.filter(mailed=True).values_list("number", flat=True))


def unknown():
    return [is_there("0"), is_there("x"), is_there("999")]


name, *arguments = sys.argv[1:]
print(json.dumps(globals()[name](*arguments)))
