"""Who is told of the end of jobs: a receiver of webhooks, which is not always at its best."""

from __future__ import annotations

import json
from collections.abc import Mapping

import attrs
import trio

from musterd.config.webhook_urls import UrlPolicy
from musterd.workers.runners.http_messages import Answer, HttpTrouble
from tests.simulation.recording import Recorder
from tests.simulation.weather import Weather

SILENCE_SECONDS = 600.0


@attrs.define(eq=False)
class Receiver:
    """`names` are those that messages have in the history: their own are random."""

    recorder: Recorder
    weather: Weather
    names: dict[str, str] = attrs.field(factory=dict[str, str])

    def name_of(self, message_id: str) -> str:
        return self.names.setdefault(message_id, f"m{len(self.names) + 1}")

    async def post(
        self, url: str, headers: Mapping[str, str], body: bytes, policy: UrlPolicy
    ) -> Answer:
        """As the product's own sender: raises `HttpTrouble` where there is no answer."""
        del url, policy
        await trio.sleep(0.01)
        if self.weather.is_deaf("hook_silent", None):
            await trio.sleep(SILENCE_SECONDS)
        status = 503 if self.weather.is_deaf("hook_refuses", None) else 204
        said = json.loads(body)
        self.recorder.note(
            "delivery", message=self.name_of(headers["webhook-id"]), job=said["data"]["id"],
            type=said["type"], status=status,
        )  # fmt: skip
        if self.weather.is_deaf("hook_unheard", None):
            raise HttpTrouble("the connection was closed")
        return Answer(status, {}, b"", False)
