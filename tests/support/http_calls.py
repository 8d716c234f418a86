"""Calls of HTTP kinds, and answers for a scripted server to give."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any

import trio

from musterd.catalog.kinds import HttpCall
from musterd.workers.outcome import Outcome
from musterd.workers.runners.http_call import HttpRunner
from musterd.workers.runners.http_client import HttpClient
from musterd.workers.runners.results import AnswerLimits
from tests.support.assignments import given
from tests.support.scripted_server import Speech, scripted

TLS = Path(__file__).with_name("tls")
LIMITS = AnswerLimits(result_bytes_max=65_536, depth_max=64)
NO_CONTENT = b"HTTP/1.1 204 No Content\r\n\r\n"


def answer(status: str, body: bytes = b"", *headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", f"content-length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


def trusting() -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(TLS / "certificate.pem"))


async def call(client: HttpClient, url: str, payload: Any = None, **values: Any) -> Outcome:
    """`values`: of the call, of its kind, `limits`, `attempt`; as a test needs them. `said`: a list
    that gets what the job's log has; `spent`: one that gets the sums that were told.
    """
    spent: list[str] = values.pop("spent", [])
    said: list[str] = values.pop("said", [])
    runner = HttpRunner(client, values.pop("limits", LIMITS), {})
    behaviour = HttpCall(
        method=values.pop("method", "POST"),
        url=url,
        headers=values.pop("headers", {}),
        header_files=values.pop("header_files", {}),
    )
    job = given(behaviour, payload, **values)
    with trio.fail_after(30):
        outcome = await runner.run(job.assignment)
    await runner.close()
    spent += job.told.sums
    said += [f"{line.stream} {line.level} {line.text}" for line in job.lines]
    return outcome


async def answered(client: HttpClient, line: bytes | Speech | None, **values: Any) -> Outcome:
    async with scripted([line]) as server:
        return await call(client, server.url, **values)
