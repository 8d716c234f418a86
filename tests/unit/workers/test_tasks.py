"""`@task`: a function that is called as ever, enqueued with its arguments, run as a handler."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import musterd.tasks
from musterd import AsyncClient, Client, JobContext, task
from musterd.store.errors import InputRefused
from musterd.testing import recording, run_handler

NOWHERE = "postgresql://nobody@127.0.0.1:1/nowhere"


@task
def thumbnail(image: int, /, width: int = 200, **more: str) -> dict[str, Any]:
    """Makes one."""
    return {"image": image, "width": width, **more}


@task(kind="mail-it", takes_job=True, retryable=True, retry_on=[OSError, InputRefused])
async def mail(job: JobContext, to: str) -> str:  # noqa: ASYNC124 - as handlers are written
    return f"{to} {job.attempt}"


def test_it_is_called_as_ever() -> None:
    assert thumbnail(17, width=3) == {"image": 17, "width": 3}
    assert (thumbnail.__doc__, thumbnail.kind, mail.kind) == ("Makes one.", "thumbnail", "mail-it")
    assert mail.keys == {
        "retryable": True,
        "retry_on": ["OSError", "musterd.store.errors.InputRefused"],
    }


def test_a_call_becomes_a_job() -> None:
    client = Client(NOWHERE)
    with recording(client) as jobs:
        first = thumbnail.enqueue(client, 17, width=3, by="me")
        assert jobs.one("thumbnail").payload == {"image": 17, "width": 3, "by": "me"}
        mail.using(priority=5).using(target="t").enqueue(client, to="you")
        found = jobs.one("mail-it")
        assert (found.payload, found.priority, found.target) == ({"to": "you"}, 5, "t")
        client.enqueue_many([thumbnail.job(1), mail.using(hold=True).job("you")])
        assert (jobs[2].payload, jobs[3].state, first) == ({"image": 1}, "pending", 1)
        wrong: Any = thumbnail
        with pytest.raises(TypeError, match="missing a required argument: 'image'"):
            wrong.enqueue(client, width=3)
        with pytest.raises(InputRefused, match="unknown option 'prio'"):
            thumbnail.using(prio=1).enqueue(client, 17)
        assert len(jobs) == 4


async def test_with_the_async_client_it_is_awaited() -> None:
    async with AsyncClient(NOWHERE) as client:
        with recording(client) as jobs:
            assert await mail.enqueue(client, "you") == 1
            assert jobs.one("mail-it").payload == {"to": "you"}


def test_it_is_a_handler() -> None:
    assert run_handler(thumbnail, {"image": 17, "by": "me"}).result == {
        "image": 17, "width": 200, "by": "me",
    }  # fmt: skip
    assert run_handler(mail, {"to": "you"}, attempt=2).result == "you 2"


@pytest.mark.parametrize(
    ("payload", "said"),
    [
        ([17], "payload: found list, wanted the arguments of"),
        ({}, "payload: missing a required argument: 'image', wanted the arguments of"),
    ],
)
def test_a_payload_that_does_not_fit_fails_for_good(payload: Any, said: str) -> None:
    done = run_handler(thumbnail, payload)
    assert (done.outcome, done.retryable) == ("failure", False)
    assert done.error is not None
    assert said in done.error["message"]


def test_the_module_needs_nothing_but_the_standard_library() -> None:
    file = Path(musterd.tasks.__file__)
    code = f"import runpy, sys; runpy.run_path({str(file)!r}); print('attrs' in sys.modules)"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, check=True)
    assert done.stdout == b"False\n"
